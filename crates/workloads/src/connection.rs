//! A task's connection to a database. A new [`Connection`] is not open yet. It turns database
//! errors into those of the load engine, and times look-ups. [`StatementsTask`] sends statements
//! one after the other, and `any_task` makes one type of several kinds of tasks.

use std::time::{Duration, Instant};

use dbdyno_db::{
    Answer, AnySession, Cells, Class, DatabaseServer, DbError, Param, Rows, Sent, Session, Statement,
    first_i64,
};
use dbdyno_loadgen::{ConnectionTask, Done, Failure, Notes};
use dbdyno_record::ErrorClass;

/// Number of tries of a look-up. The load engine retries operations, but not look-ups.
const LOOKUP_RETRIES: u32 = 100;

#[derive(Debug)]
pub(crate) struct Connection {
    database_server: DatabaseServer,
    /// Kind of the task, under which the connection is recorded.
    kind: &'static str,
    session: Option<AnySession>,
}

impl Connection {
    pub(crate) fn new(database_server: &DatabaseServer, kind: &'static str) -> Self {
        Self { database_server: database_server.clone(), kind, session: None }
    }

    pub(crate) async fn open(&mut self) -> Result<(), Failure> {
        self.take(self.database_server.connect_as(self.kind).await)
    }

    /// Opens like [`Connection::open`], for inserting rows whose keys the server gives and which go
    /// up by 1.
    pub(crate) async fn open_to_insert(&mut self) -> Result<(), Failure> {
        self.take(self.database_server.connect_to_insert(self.kind).await)
    }

    /// Opens like [`Connection::open_to_insert`], for loading `table` and similar ones by INSERTs
    /// whose texts are ASCII, so that the server converts none of them.
    pub(crate) async fn open_to_load(&mut self, table: &str) -> Result<(), Failure> {
        self.take(self.database_server.connect_to_load(self.kind, table).await)
    }

    /// Opens like [`Connection::open_to_insert`], for sending rows with [`Connection::load_rows`].
    pub(crate) async fn open_to_stream(&mut self) -> Result<(), Failure> {
        self.take(self.database_server.connect_to_stream(self.kind).await)
    }

    /// Keeps the opened session, and removes the time limit from its statements, because a step
    /// measures how long its statements take.
    fn take(&mut self, opened: Result<AnySession, DbError>) -> Result<(), Failure> {
        let mut session = opened.map_err(failure)?;
        session.limit_statements(None);
        self.session = Some(session);
        Ok(())
    }

    pub(crate) async fn close(mut self) {
        self.leave().await;
    }

    /// Logs out. [`Connection::open`] logs in again.
    pub(crate) async fn leave(&mut self) {
        if let Some(session) = self.session.take() {
            session.close().await;
        }
    }

    pub(crate) async fn prepare(&mut self, sql: &str) -> Result<Statement, Failure> {
        self.session()?.prepare(sql).await.map_err(failure)
    }

    pub(crate) async fn forget(&mut self, statement: Statement) -> Result<(), Failure> {
        self.session()?.forget(statement).await.map_err(failure)
    }

    pub(crate) async fn query(&mut self, sql: &[u8]) -> Result<Answer, Failure> {
        self.session()?.query(sql).await.map_err(failure)
    }

    #[cfg(feature = "scripts")]
    pub(crate) async fn rows(&mut self, sql: &str) -> Result<Cells, Failure> {
        self.session()?.rows(sql).await.map_err(failure)
    }

    /// Returns the rows of `sql`, or `None` when the statement was ended after `limit`.
    pub(crate) async fn rows_within(
        &mut self,
        sql: &str,
        limit: Option<Duration>,
    ) -> Result<Option<Cells>, Failure> {
        let database_server = self.database_server.clone();
        database_server.rows_within(self.session()?, sql, limit).await.map_err(failure)
    }

    /// Runs a bulk statement that reads `rows`.
    pub(crate) async fn load_rows(&mut self, sql: &str, rows: &[u8]) -> Result<Answer, Failure> {
        self.session()?.load_rows(sql, rows).await.map_err(failure)
    }

    pub(crate) async fn execute(
        &mut self,
        statement: Statement,
        params: &[Param],
    ) -> Result<Answer, Failure> {
        self.session()?.execute(statement, params).await.map_err(failure)
    }

    /// Sends `sql` or, where there is one, the prepared `statement` with `params`.
    pub(crate) async fn send(
        &mut self,
        statement: Option<Statement>,
        params: &[Param],
        sql: &[u8],
    ) -> Result<Answer, Failure> {
        match statement {
            Some(statement) => self.execute(statement, params).await,
            None => self.query(sql).await,
        }
    }

    /// Ends a transaction according to the `outcome` of its statements. If one failed, the whole
    /// transaction is rolled back.
    pub(crate) async fn end<T>(&mut self, outcome: Result<T, Failure>) -> Result<T, Failure> {
        let outcome = match outcome {
            Ok(done) => self.query(b"COMMIT").await.map(|_| done),
            Err(failure) => Err(failure),
        };
        if outcome.is_err() {
            // A refused ROLLBACK is no error here. A full disk has ended the transaction already,
            // and otherwise the refusal shows with the next BEGIN.
            let _ = self.query(b"ROLLBACK").await;
        }
        outcome
    }

    /// Returns whether a transaction is open, according to the database's last answer.
    pub(crate) fn in_transaction(&self) -> bool {
        self.session.as_ref().is_some_and(AnySession::in_transaction)
    }

    pub(crate) async fn pipeline(&mut self, statements: &[Sent<'_>]) -> Result<Answer, Failure> {
        self.session()?.pipeline(statements).await.map_err(failure)
    }

    pub(crate) async fn results(&mut self, statement: Sent<'_>) -> Result<Vec<Rows>, Failure> {
        self.session()?.results(statement).await.map_err(failure)
    }

    /// Looks up one number and notes how long that took.
    pub(crate) async fn lookup(
        &mut self,
        name: &'static str,
        sql: &str,
        notes: &mut Notes,
    ) -> Result<Option<i64>, Failure> {
        let session = self.session()?;
        let mut tries = 0;
        loop {
            tries += 1;
            let began = Instant::now();
            match session.rows(sql).await {
                Ok(cells) => {
                    let value = first_i64(&cells);
                    notes.lookup(name, began.elapsed(), value);
                    return Ok(value);
                }
                Err(error) if error.class != Class::Retry => return Err(failure(error)),
                Err(error) if tries == LOOKUP_RETRIES => return Err(locked_out(name, &error)),
                Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    }

    fn session(&mut self) -> Result<&mut AnySession, Failure> {
        let never_opened = || Failure::new(ErrorClass::Lost, "", "the connection was never opened");
        self.session.as_mut().ok_or_else(never_opened)
    }
}

/// Returns the result of an operation that changes rows. Its rows are the changed ones.
pub(crate) fn changed(answer: Answer) -> Done {
    Done { rows: answer.affected, received_bytes: answer.bytes }
}

/// Returns the result of an operation that fetches rows. Its rows are the fetched ones.
pub(crate) fn fetched(answer: Answer) -> Done {
    Done { rows: answer.rows, received_bytes: answer.bytes }
}

/// Gives the failure of a statement that later steps need, such as one that builds an index, the
/// class that ends the step. After a lost connection the step ends too, even if the plan says to go
/// on, because the outcome of the statement is not known. Only a failure after which the statement
/// may be sent again keeps its class.
pub(crate) fn indispensable(failure: Failure) -> Failure {
    match failure.class {
        ErrorClass::Retry => failure,
        _ => Failure { class: ErrorClass::Fatal, ..failure },
    }
}

/// Does what [`indispensable`] does, for a statement of the load. After its failure, rows that all
/// later steps work on are missing. After a lost connection they may be missing, and the message
/// says so.
pub(crate) fn of_load(failure: Failure) -> Failure {
    let failure = match failure.class {
        ErrorClass::Lost => {
            let message =
                format!("the connection was lost while it sent rows of the load: {}", failure.message);
            Failure { message, ..failure }
        }
        _ => failure,
    };
    indispensable(failure)
}

/// Returns a failure that ends a step. Its message is from dbdyno and not from the server.
pub(crate) fn fatal(message: impl Into<String>) -> Failure {
    Failure::new(ErrorClass::Fatal, "", message)
}

/// Does what [`fatal`] does, for a script that is wrong. Running it again would only fail again.
pub(crate) fn of_script(message: impl Into<String>) -> Failure {
    Failure::new(ErrorClass::Fatal, "script", message)
}

/// Returns the failure of a look-up that met a lock in every try. `last` is the last error.
fn locked_out(name: &str, last: &DbError) -> Failure {
    fatal(format!(
        "the look-up of {name} met a lock {LOOKUP_RETRIES} times in a row, the last error: {last}; look for a session that holds a lock on \
         the table"
    ))
}

fn failure(error: DbError) -> Failure {
    let class = match error.class {
        Class::Retry => ErrorClass::Retry,
        Class::Refused => ErrorClass::Refused,
        Class::Lost => ErrorClass::Lost,
        Class::Fatal => ErrorClass::Fatal,
    };
    Failure { class, code: error.code, message: error.message }
}

#[derive(Debug)]
pub struct StatementsTask {
    connection: Connection,
    statements: Vec<String>,
    /// Rows that count with each statement.
    rows: u64,
}

impl StatementsTask {
    /// `kind` is the task's kind, under which its connection is recorded.
    pub(crate) fn new(
        database_server: &DatabaseServer,
        kind: &'static str,
        statements: Vec<String>,
        rows: u64,
    ) -> Self {
        Self { connection: Connection::new(database_server, kind), statements, rows }
    }
}

impl ConnectionTask for StatementsTask {
    async fn open(&mut self) -> Result<(), Failure> {
        self.connection.open().await
    }

    async fn perform(&mut self, number: u64) -> Result<Done, Failure> {
        let sql = &self.statements[usize::try_from(number).unwrap_or(usize::MAX)];
        let answer = self.connection.query(sql.as_bytes()).await.map_err(indispensable)?;
        Ok(Done { rows: self.rows, received_bytes: answer.bytes })
    }

    async fn close(self) {
        self.connection.close().await;
    }
}

/// Makes an enum of tasks that hands each call to the task inside.
macro_rules! any_task {
    ($($Kind:ident($ConnectionTask:ty),)+) => {
        pub enum AnyTask {
            $($Kind($ConnectionTask),)+
        }

        impl ConnectionTask for AnyTask {
            async fn open(&mut self) -> Result<(), Failure> {
                match self {
                    $(Self::$Kind(task) => task.open().await,)+
                }
            }

            async fn prepare(&mut self, number: u64, notes: &mut Notes) -> Result<(), Failure> {
                match self {
                    $(Self::$Kind(task) => task.prepare(number, notes).await,)+
                }
            }

            async fn perform(&mut self, number: u64) -> Result<Done, Failure> {
                match self {
                    $(Self::$Kind(task) => task.perform(number).await,)+
                }
            }

            fn timed(&mut self, times: dbdyno_loadgen::OperationTimes) {
                match self {
                    $(Self::$Kind(task) => task.timed(times),)+
                }
            }

            fn skipped(&mut self, numbers: std::ops::Range<u64>) {
                match self {
                    $(Self::$Kind(task) => task.skipped(numbers),)+
                }
            }

            fn statements(&self) -> &[StatementDone] {
                match self {
                    $(Self::$Kind(task) => task.statements(),)+
                }
            }

            async fn close(self) {
                match self {
                    $(Self::$Kind(task) => task.close().await,)+
                }
            }
        }
    };
}

pub(crate) use any_task;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_up_that_only_meets_locks_names_the_last_error_and_what_to_look_for() {
        let last = DbError::new(Class::Retry, "1205", "Lock wait timeout exceeded");
        let Failure { class, message, .. } = locked_out("min_id", &last);
        assert_eq!(class, ErrorClass::Fatal);
        insta::assert_snapshot!(message, @"the look-up of min_id met a lock 100 times in a row, the last error: Lock wait timeout exceeded (1205); look for a session that holds a lock on the table");
    }

    #[test]
    fn a_statement_that_steps_need_is_sent_again_or_ends_the_step() {
        let class_of = |class| {
            let message = "no space".to_owned();
            indispensable(Failure { class, code: "1878".to_owned(), message }).class
        };
        assert_eq!(class_of(ErrorClass::Retry), ErrorClass::Retry);
        for class in [ErrorClass::Refused, ErrorClass::Lost, ErrorClass::Fatal] {
            assert_eq!(class_of(class), ErrorClass::Fatal);
        }
    }

    #[test]
    fn a_load_is_sent_again_or_ends_the_step_and_says_that_rows_were_on_their_way() {
        let failed = |class| {
            let failure = Failure { class, code: "2013".to_owned(), message: "it was closed".to_owned() };
            let Failure { class, message, .. } = of_load(failure);
            (class, message)
        };
        let same = |class| (class, "it was closed".to_owned());
        assert_eq!(failed(ErrorClass::Retry), same(ErrorClass::Retry));
        assert_eq!(failed(ErrorClass::Refused), same(ErrorClass::Fatal));
        assert_eq!(failed(ErrorClass::Fatal), same(ErrorClass::Fatal));
        let lost = "the connection was lost while it sent rows of the load: it was closed".to_owned();
        assert_eq!(failed(ErrorClass::Lost), (ErrorClass::Fatal, lost));
    }
}
