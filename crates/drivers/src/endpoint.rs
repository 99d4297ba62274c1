//! Where to connect: one value for each kind of database, and the session that comes of it.

use std::time::Duration;

use crate::excerpt::excerpt;
use crate::{
    Answer, Capabilities, Cells, Class, ConnectionLog, DbError, Encryption, Param, Session, Statement, Tls,
    first_i64, mysql, null, postgres, sqlite,
};

/// A database that sessions can be opened to. Cheap to clone, may go to any thread.
#[derive(Debug, Clone)]
pub struct Endpoint {
    pub target: Target,
    pub capabilities: Capabilities,
}

/// Which driver, with its options.
#[derive(Debug, Clone)]
pub enum Target {
    Mysql(mysql::Options),
    Postgres(postgres::Options),
    Sqlite(sqlite::Options),
    Null(null::Options),
}

/// A session of any driver; the match costs less than a nanosecond and keeps the hot path free of boxes.
#[derive(Debug)]
pub enum AnySession {
    Mysql(mysql::MysqlSession),
    Postgres(postgres::PostgresSession),
    Sqlite(sqlite::SqliteSession),
    Null(null::NullSession),
}

impl Endpoint {
    /// Opens one session.
    ///
    /// # Errors
    /// [`crate::Class::Lost`] when no one answers, `Fatal` when the server refuses user, password or database.
    pub async fn connect(&self) -> Result<AnySession, DbError> {
        self.connect_as("other").await
    }

    /// Opens one session and, where TLS was asked for, notes what it agreed on for connections of `class`: the kind of
    /// a lane, or any other user of a connection.
    ///
    /// # Errors
    /// As [`Endpoint::connect`].
    pub async fn connect_as(&self, class: &str) -> Result<AnySession, DbError> {
        let session = self.open().await?;
        if let Some(log) = self.connections() {
            log.note(class, session.encryption());
        }
        Ok(session)
    }

    /// As [`Endpoint::connect_as`], for a session whose rows get keys from the server: they go up by 1, whatever the server's
    /// own settings say (`auto_increment_increment` of MySQL and MariaDB).
    ///
    /// # Errors
    /// As [`Endpoint::connect`]; the server's refusal, where its settings say otherwise.
    pub async fn connect_to_insert(&self, class: &str) -> Result<AnySession, DbError> {
        let mut session = self.connect_as(class).await?;
        if let AnySession::Mysql(mysql) = &mut session {
            mysql::one_by_one(mysql).await?;
        }
        Ok(session)
    }

    /// As [`Endpoint::connect_to_insert`], for a session that loads `table` and such as it with texts of ASCII only: it speaks
    /// the character set of its columns, so that MySQL and MariaDB convert no text.
    ///
    /// # Errors
    /// As [`Endpoint::connect_to_insert`].
    pub async fn connect_to_load(&self, class: &str, table: &str) -> Result<AnySession, DbError> {
        let mut session = self.connect_to_insert(class).await?;
        if let AnySession::Mysql(mysql) = &mut session {
            mysql::as_the_table(mysql, table).await?;
        }
        Ok(session)
    }

    /// As [`Endpoint::connect_to_insert`], for a session that may send rows with [`AnySession::load_rows`].
    ///
    /// # Errors
    /// As [`Endpoint::connect_to_insert`].
    pub async fn connect_to_stream(&self, class: &str) -> Result<AnySession, DbError> {
        let mut endpoint = self.clone();
        if let Target::Mysql(options) = &mut endpoint.target {
            options.local_infile = true;
        }
        endpoint.connect_to_insert(class).await
    }

    /// Sees to it that sessions from now on commit after each statement: asks one whether it does, and has the others say so where
    /// it does not (MySQL and MariaDB; `autocommit` of the server, or an `init_connect`). Asked, because most versions report to clients
    /// that it is on whatever it is.
    ///
    /// # Errors
    /// As [`Endpoint::connect`]; the server's refusal.
    pub async fn commit_each_statement(&mut self) -> Result<(), DbError> {
        const ASKS: &str = "SELECT @@SESSION.autocommit";
        let Target::Mysql(_) = self.target else { return Ok(()) };
        let mut session = self.connect_as("conductor").await?;
        let is_off = first_i64(&session.rows(ASKS).await?) == Some(0);
        session.close().await;
        if let Target::Mysql(options) = &mut self.target {
            options.manner.sets_autocommit |= is_off;
        }
        Ok(())
    }

    /// What the connections made so far agreed on; `None` where TLS was not asked for.
    pub fn connections(&self) -> Option<&ConnectionLog> {
        match &self.target {
            Target::Mysql(options) | Target::Postgres(options) => options.manner.tls.as_ref().map(Tls::log),
            Target::Sqlite(_) | Target::Null(_) => None,
        }
    }

    async fn open(&self) -> Result<AnySession, DbError> {
        Ok(match &self.target {
            Target::Mysql(options) => AnySession::Mysql(mysql::MysqlSession::connect(options).await?),
            Target::Postgres(options) => {
                AnySession::Postgres(postgres::PostgresSession::connect(options).await?)
            }
            Target::Sqlite(options) => AnySession::Sqlite(sqlite::SqliteSession::open(options)?),
            Target::Null(options) => AnySession::Null(null::NullSession::new(options)),
        })
    }
}

impl AnySession {
    /// What the connection agreed on; `None` in clear.
    pub fn encryption(&self) -> Option<Encryption> {
        match self {
            Self::Mysql(session) => session.encryption(),
            Self::Postgres(session) => session.encryption(),
            Self::Sqlite(_) | Self::Null(_) => None,
        }
    }
}

impl AnySession {
    /// Runs `sql`, a bulk statement in the words of [`crate::RowStream::LocalInfile`] or [`crate::RowStream::CopyIn`], with
    /// `rows` as what it reads: lines whose columns are separated by tabs. The answer's `affected` is the number of rows.
    ///
    /// # Errors
    /// As [`Session::query`]; `Refused` when `sql` asks for no rows, or the driver knows no such statement.
    pub async fn load_rows(&mut self, sql: &str, rows: &[u8]) -> Result<Answer, DbError> {
        match self {
            Self::Mysql(session) => session.load_rows(sql, rows).await,
            Self::Postgres(session) => session.copy_in(sql, [rows]).await,
            Self::Sqlite(_) => Err(DbError::new(
                Class::Refused,
                "",
                "SQLite knows no statement that reads rows from the client",
            )),
            Self::Null(session) => Ok(session.load_rows(sql, rows).await),
        }
    }
}

/// What the session of whichever driver does.
macro_rules! each {
    ($any:expr, $session:ident => $done:expr) => {
        match $any {
            AnySession::Mysql($session) => $done,
            AnySession::Postgres($session) => $done,
            AnySession::Sqlite($session) => $done,
            AnySession::Null($session) => $done,
        }
    };
}

/// The same within the session's limit; without one, as in steps, the statement's own future and nothing around it.
macro_rules! within_limit {
    ($any:expr, $what:expr, $session:ident => $done:expr) => {
        match $any.limit() {
            None => each!($any, $session => $done),
            Some(limit) => {
                let work = Box::pin(async { each!(&mut *$any, $session => $done) });
                tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err($any.silent(limit, $what)))
            }
        }
    };
}

impl AnySession {
    /// From now on a statement of this session that has no answer after `limit` fails, and the session is of no use any more. Sessions
    /// begin with a minute, which is enough for statements whose time does not depend on how many rows there are. SQLite's have none:
    /// it works in this process.
    pub fn limit_statements(&mut self, limit: Option<Duration>) {
        match self {
            Self::Mysql(session) => session.exchange_mut().limit = limit,
            Self::Postgres(session) => session.exchange_mut().limit = limit,
            Self::Sqlite(_) | Self::Null(_) => {}
        }
    }

    #[inline]
    pub(crate) fn limit(&self) -> Option<Duration> {
        match self {
            Self::Mysql(session) => session.exchange().limit,
            Self::Postgres(session) => session.exchange().limit,
            Self::Sqlite(_) | Self::Null(_) => None,
        }
    }

    /// The failure of a statement that had no answer within `limit`.
    fn silent(&self, limit: Duration, what: &[u8]) -> DbError {
        let place = match self {
            Self::Mysql(session) => &session.exchange().place,
            Self::Postgres(session) => &session.exchange().place,
            Self::Sqlite(_) | Self::Null(_) => "",
        };
        let what = excerpt(what);
        let advice = "see what the server does; statement_timeout in [host] is for statements whose time depends on the data";
        DbError::new(Class::Lost, "io", format!("{what} on {place}: no answer within {limit:?}; {advice}"))
    }
}

impl Session for AnySession {
    async fn query(&mut self, sql: &[u8]) -> Result<Answer, DbError> {
        within_limit!(self, sql, session => session.query(sql).await)
    }

    async fn prepare(&mut self, sql: &str) -> Result<Statement, DbError> {
        within_limit!(self, sql.as_bytes(), session => session.prepare(sql).await)
    }

    async fn forget(&mut self, statement: Statement) -> Result<(), DbError> {
        within_limit!(self, b"closing a statement", session => session.forget(statement).await)
    }

    async fn execute(&mut self, statement: Statement, params: &[Param]) -> Result<Answer, DbError> {
        within_limit!(self, b"a prepared statement", session => session.execute(statement, params).await)
    }

    async fn rows(&mut self, sql: &str) -> Result<Cells, DbError> {
        within_limit!(self, sql.as_bytes(), session => session.rows(sql).await)
    }

    async fn close(self) {
        each!(self, session => session.close().await)
    }
}
