//! Functions that the tests share. They start a server on its own socket and open sessions to it.

use std::time::Duration;

use dbdyno_db::{AnySession, Capabilities, Class, DatabaseAddress, DatabaseServer, DbError, mysql, postgres};
use dbdyno_known_answer::{Handle, Listen, Protocol, Script, Server, Stats, Threads};
use tempfile::TempDir;

/// Both protocols.
pub(crate) const BOTH: [Protocol; 2] = [Protocol::Mysql, Protocol::Postgres];

/// Number of times that a test may run when other load on the machine spoils its timing.
const ATTEMPTS: usize = 8;

/// Repeats `attempt` until it succeeds, because other load on the machine can spoil its timing. A
/// fault of the server would spoil every attempt. The error of an attempt says what was seen.
pub(crate) async fn retry_if_disturbed(attempt: impl AsyncFn() -> Result<(), String>) {
    let mut spoilt = Vec::new();
    for _ in 0..ATTEMPTS {
        match attempt().await {
            Ok(()) => return,
            Err(what) => spoilt.push(what),
        }
    }
    panic!("no attempt went well: {spoilt:#?}");
}

/// Returns the result of an attempt. It is an error with the text of `seen` unless `condition`
/// holds.
pub(crate) fn ok_if(condition: bool, seen: impl std::fmt::Debug) -> Result<(), String> {
    if condition { Ok(()) } else { Err(format!("{seen:?}")) }
}

/// A running server, and the folder of its socket.
pub(crate) struct Running {
    handle: Handle,
    database_server: DatabaseServer,
    _folder: TempDir,
}

impl Running {
    pub(crate) fn start(protocol: Protocol, script: Script) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = match protocol {
            Protocol::Mysql => folder.path().join("s"),
            Protocol::Postgres => folder.path().to_owned(),
        };
        let handle = Server::start(Listen::Unix(path.clone()), protocol, script, Threads::count(2)).unwrap();
        let (address, capabilities) = database_address(protocol, handle.address());
        Self { handle, database_server: DatabaseServer { address, capabilities }, _folder: folder }
    }

    pub(crate) async fn connect(&self) -> AnySession {
        self.database_server.connect().await.unwrap()
    }

    /// The error of a connection that must fail.
    pub(crate) async fn refused(&self) -> DbError {
        self.database_server.connect().await.expect_err("a connection that fails")
    }

    pub(crate) fn stats(&self) -> Stats {
        self.handle.stats()
    }

    /// Waits until the statistics are as wanted, because a client may have its answer before the
    /// server has counted it.
    pub(crate) async fn settled(&self, wanted: impl Fn(&Stats) -> bool) -> Stats {
        for _ in 0..2000 {
            if wanted(&self.stats()) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let stats = self.stats();
        assert!(wanted(&stats), "{stats:?}");
        stats
    }

    pub(crate) fn stop(self) -> Stats {
        self.handle.stop()
    }
}

/// Returns the address by which the drivers reach a server, and the server's capabilities.
pub(crate) fn database_address(protocol: Protocol, address: &Listen) -> (DatabaseAddress, Capabilities) {
    match (protocol, address) {
        (Protocol::Mysql, Listen::Unix(path)) => mysql_address(mysql::Options::socket(path, "any")),
        (Protocol::Mysql, Listen::Tcp(tcp)) => {
            mysql_address(mysql::Options::tcp(tcp.ip().to_string(), tcp.port(), "any"))
        }
        (Protocol::Postgres, Listen::Unix(path)) => postgres_address(postgres::Options::socket(path, "any")),
        (Protocol::Postgres, Listen::Tcp(tcp)) => {
            postgres_address(postgres::Options::tcp(tcp.ip().to_string(), tcp.port(), "any"))
        }
    }
}

fn mysql_address(options: mysql::Options) -> (DatabaseAddress, Capabilities) {
    let options = options.with_password(dbdyno_db::mysql::Secret::new("any")).with_database("any");
    (DatabaseAddress::Mysql(options), mysql::capabilities("", false))
}

fn postgres_address(options: postgres::Options) -> (DatabaseAddress, Capabilities) {
    (DatabaseAddress::Postgres(options.with_database("any")), postgres::capabilities())
}

/// Whether `result` is an error of `class`.
#[track_caller]
pub(crate) fn expect_class<T: std::fmt::Debug>(result: Result<T, DbError>, class: Class, code: &str) {
    let error = result.expect_err("an error");
    assert_eq!((error.class, error.code.as_str()), (class, code), "{error}");
}
