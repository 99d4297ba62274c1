//! Helpers for the checks of both protocols: sessions whose failures name the server.

use std::time::{Duration, Instant};

use dbdyno_db::{
    Answer, AnySession, Class, DatabaseAddress, DatabaseServer, Session, first_i64, mysql, postgres,
};

/// Length of a value that needs more than one packet of 16 MiB.
pub(crate) const BIG: usize = (16 << 20) + 12_345;

/// Length of a value below 8 MiB, which is the limit for answers to dbdyno's own queries.
pub(crate) const KEPT: usize = (8 << 20) - 12_345;

/// Longest time that a check waits for work that a server does after its answer.
const PATIENCE: Duration = Duration::from_secs(600);

/// One server to which a check connects, with its name for messages.
#[derive(Clone)]
pub(crate) struct TestServer {
    pub(crate) name: String,
    database_server: DatabaseServer,
}

impl TestServer {
    pub(crate) fn mysql(name: &str, options: mysql::Options) -> Self {
        let capabilities = mysql::capabilities("InnoDB", true);
        let database_server = DatabaseServer { address: DatabaseAddress::Mysql(options), capabilities };
        Self { name: name.to_owned(), database_server }
    }

    pub(crate) fn postgres(name: &str, options: postgres::Options) -> Self {
        let database_server = DatabaseServer {
            address: DatabaseAddress::Postgres(options),
            capabilities: postgres::capabilities(),
        };
        Self { name: name.to_owned(), database_server }
    }

    pub(crate) async fn connect(&self) -> TestClient {
        let session =
            self.database_server.connect().await.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        TestClient { name: self.name.clone(), session }
    }

    /// Class and code of the error with which the server refuses to connect.
    pub(crate) async fn refusal(&self) -> (Class, String) {
        match self.database_server.connect().await {
            Ok(_) => panic!("{}: someone was let in who should not", self.name),
            Err(error) => (error.class, error.code),
        }
    }
}

/// One session, whose failures name the server.
pub(crate) struct TestClient {
    pub(crate) name: String,
    pub(crate) session: AnySession,
}

impl TestClient {
    pub(crate) async fn run(&mut self, sql: &str) -> Answer {
        self.session.query(sql.as_bytes()).await.unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    pub(crate) async fn cells(&mut self, sql: &str) -> Vec<Vec<Option<String>>> {
        self.session.rows(sql).await.unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// The first row. NULL becomes the text `NULL`.
    pub(crate) async fn row(&mut self, sql: &str) -> Vec<String> {
        let cells = self.cells(sql).await;
        let row = cells.first().unwrap_or_else(|| panic!("{}: {sql}: no row", self.name));
        row.iter().map(|cell| cell.clone().unwrap_or_else(|| "NULL".to_owned())).collect()
    }

    pub(crate) async fn number(&mut self, sql: &str) -> i64 {
        first_i64(&self.cells(sql).await).unwrap_or_else(|| panic!("{}: {sql}: no number", self.name))
    }

    pub(crate) async fn fails(&mut self, sql: &str, class: Class, code: &str) {
        match self.session.query(sql.as_bytes()).await {
            Ok(answer) => panic!("{}: {sql}: {answer:?}", self.name),
            Err(error) => {
                assert_eq!((error.class, error.code.as_str()), (class, code), "{}: {error}", self.name);
            }
        }
    }

    /// Checks that an answer above the limit is refused.
    pub(crate) async fn refuses_large_answer(&mut self, sql: &str) {
        match self.session.rows(sql).await {
            Ok(_) => panic!("{}: {sql}: the whole answer was kept", self.name),
            Err(error) => {
                assert_eq!(error.class, Class::Lost, "{}: {error}", self.name);
                assert!(
                    error.message.contains("the answer is larger than the 8 MiB"),
                    "{}: {error}",
                    self.name
                );
            }
        }
    }

    /// Runs the query until its number is `wanted`.
    pub(crate) async fn wait_for_number(&mut self, sql: &str, wanted: i64) {
        let begun = Instant::now();
        loop {
            let number = self.number(sql).await;
            if number == wanted {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{}: {sql}: {number}, not {wanted}", self.name);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
