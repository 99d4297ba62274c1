//! An advisory lock on a database, held by a connection of its own as long as someone uses the database.

use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::status::cell;
use crate::{AnySession, Class, DbError, Endpoint, Session, Target, first_i64};

const POLL: Duration = Duration::from_millis(100);
/// A server that does not answer this long is not asked whether a lock is still there: the connection that holds it is.
const ANSWER: Duration = Duration::from_secs(10);

/// The greatest value that every server of the MySQL family takes for `wait_timeout`: a year.
const LONGEST_IDLE_SECONDS: u32 = 31_536_000;
/// The same for PostgreSQL, where 0 is for ever; the setting came with 14.
const NEVER_IDLE_TOO_LONG: &str =
    "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'";

/// PostgreSQL's locks are numbers, and each database has its own: `dbdyno` in ASCII, its upper and its lower half.
const KEY: [u32; 2] = [0x6462, 0x6479_6e6f];
/// Longest name of a lock in MySQL from 5.7 on, in characters.
const LONGEST_NAME: usize = 64;

/// A lock that was taken. It ends with its connection.
#[derive(Debug)]
pub struct Hold {
    session: AnySession,
    /// Of the lock, as a literal of the MySQL family.
    name: String,
    holder: Holder,
}

/// Who holds a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Which server, and which start of it: the same through every address of it.
    server: String,
    /// The server's number for the connection.
    connection: i64,
    /// `bench@10.0.0.7:41002`, as far as the server reports.
    from: Option<String>,
}

/// What became of the wish to hold a database.
#[derive(Debug)]
pub enum Held {
    Taken(Box<Hold>),
    /// By another connection, maybe one of ours.
    By(Holder),
    /// The server has no locks that last; why, unless it does not even answer SQL.
    Impossible(Option<String>),
}

impl Holder {
    /// The same connection to the same server.
    pub fn is(&self, other: &Self) -> bool {
        (&self.server, self.connection) == (&other.server, other.connection)
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "connection {}", self.connection)?;
        self.from.iter().try_for_each(|from| write!(formatter, " of {from}"))
    }
}

impl Endpoint {
    /// Takes the lock on the endpoint's database, with a connection that the server does not close for being idle. Waits for it
    /// up to `patience`, in whole seconds.
    ///
    /// # Errors
    /// As [`Endpoint::connect`].
    pub async fn hold(&self, patience: Duration) -> Result<Held, DbError> {
        let (Target::Mysql(options) | Target::Postgres(options)) = &self.target else {
            return Ok(Held::Impossible(None));
        };
        let name = name(options.database.as_deref().unwrap_or_default());
        let session = self.connect_as("conductor").await?;
        match held(session, name, patience).await {
            // What speaks the protocol need not have all that is asked here.
            Err(error) if error.class != Class::Lost => Ok(Held::Impossible(Some(error.to_string()))),
            held => held,
        }
    }
}

async fn held(mut session: AnySession, name: String, patience: Duration) -> Result<Held, DbError> {
    if let Some(why) = obstacle(&mut session).await {
        session.close().await;
        return Ok(Held::Impossible(why));
    }
    session.stay_while_idle().await?;
    let server = server(&mut session).await?;
    if !take(&mut session, &name, patience).await? {
        let (connection, from) = other(&mut session, &name).await?;
        session.close().await;
        return Ok(Held::By(Holder { server, connection, from }));
    }
    let connection = own_number(&session);
    let mut hold = Hold { session, name, holder: Holder { server, connection, from: None } };
    if hold.is_kept().await {
        return Ok(Held::Taken(Box::new(hold)));
    }
    Ok(Held::Impossible(Some("the server does not show the lock that it has given".to_owned())))
}

impl Hold {
    /// The connection that holds it.
    pub fn holder(&self) -> &Holder {
        &self.holder
    }

    /// Whether the lock is still there. A server that does not answer has not let go of it.
    pub async fn is_kept(&mut self) -> bool {
        let asked = match &self.session {
            AnySession::Mysql(_) => format!("SELECT IS_USED_LOCK({}) = CONNECTION_ID()", self.name),
            _ => format!("SELECT COUNT(*) FROM pg_locks WHERE {} AND pid = pg_backend_pid()", of_database()),
        };
        match tokio::time::timeout(ANSWER, self.session.rows(&asked)).await {
            Ok(Ok(rows)) => first_i64(&rows) == Some(1),
            Ok(Err(_)) => false,
            Err(_) => true,
        }
    }

    /// Statements of others that have been at work in the database for a second or longer, as far as the server shows them.
    pub async fn others_at_work(&mut self) -> Vec<String> {
        let sql = match &self.session {
            AnySession::Mysql(_) => {
                "SELECT CONCAT('connection ', ID, ' of ', USER, ': ', LEFT(INFO, 80)) FROM information_schema.PROCESSLIST \
                 WHERE DB = DATABASE() AND ID <> CONNECTION_ID() AND COMMAND IN ('Query', 'Execute') AND TIME >= 1"
            }
            _ => {
                "SELECT 'connection ' || pid || ' of ' || usename || ': ' || left(query, 80) FROM pg_stat_activity \
                 WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'active' \
                 AND query NOT LIKE 'autovacuum:%' AND clock_timestamp() - query_start >= interval '1 s'"
            }
        };
        let answer = tokio::time::timeout(ANSWER, self.session.rows(sql)).await;
        answer.ok().and_then(Result::ok).unwrap_or_default().into_iter().flatten().flatten().collect()
    }

    /// Gives the lock back; a caller that asks after this gets it.
    pub async fn release(mut self) {
        let sql = match &self.session {
            AnySession::Mysql(_) => format!("SELECT RELEASE_LOCK({})", self.name),
            _ => format!("SELECT pg_advisory_unlock({})", key()),
        };
        // It ends with the connection at the latest.
        let _ = tokio::time::timeout(ANSWER, self.session.query(sql.as_bytes())).await;
        self.session.close().await;
    }
}

impl AnySession {
    /// From now on the server does not close this session for having nothing to do: a step meanwhile may take longer than the
    /// server would leave it alone.
    ///
    /// # Errors
    /// As [`Session::query`].
    pub async fn stay_while_idle(&mut self) -> Result<(), DbError> {
        let sql = match self {
            Self::Mysql(_) => format!("SET SESSION wait_timeout = {LONGEST_IDLE_SECONDS}"),
            Self::Postgres(_) => NEVER_IDLE_TOO_LONG.to_owned(),
            Self::Sqlite(_) | Self::Null(_) => return Ok(()),
        };
        self.query(sql.as_bytes()).await.map(drop)
    }
}

/// Why a lock would not last. A proxy has numbers of its own for connections, and may give each statement to another one of the
/// server's; what does not repeat a word does not answer SQL.
async fn obstacle(session: &mut AnySession) -> Option<Option<String>> {
    const WORD: &str = "dbdyno";
    let number = match session {
        AnySession::Mysql(_) => "CONNECTION_ID()",
        _ => "pg_backend_pid()",
    };
    let rows = session.rows(&format!("SELECT {number}, '{WORD}'")).await.unwrap_or_default();
    let word = rows.first().and_then(|row| row.get(1)?.as_deref());
    if word != Some(WORD) {
        return Some(None);
    }
    (first_i64(&rows) != Some(own_number(session))).then(|| {
        Some("a proxy or pooler is between, through which a lock of a connection need not last".to_owned())
    })
}

fn own_number(session: &AnySession) -> i64 {
    match session {
        AnySession::Mysql(session) => session.connection_id().into(),
        AnySession::Postgres(session) => session.connection_id().into(),
        AnySession::Sqlite(_) | AnySession::Null(_) => 0,
    }
}

async fn server(session: &mut AnySession) -> Result<String, DbError> {
    let sql = match session {
        AnySession::Mysql(_) => "SELECT CONCAT_WS('|', @@hostname, @@port, @@datadir, @@socket)",
        _ => "SELECT concat_ws('|', current_setting('port'), pg_postmaster_start_time(), current_database())",
    };
    Ok(cell(session, sql).await?.unwrap_or_default())
}

async fn take(session: &mut AnySession, name: &str, patience: Duration) -> Result<bool, DbError> {
    if let AnySession::Mysql(_) = session {
        let sql = format!("SELECT GET_LOCK({name}, {})", patience.as_secs());
        return Ok(first_i64(&session.rows(&sql).await?) == Some(1));
    }
    let sql = format!("SELECT pg_try_advisory_lock({})::int", key());
    let began = std::time::Instant::now();
    loop {
        if first_i64(&session.rows(&sql).await?) == Some(1) {
            return Ok(true);
        }
        if began.elapsed() >= patience {
            return Ok(false);
        }
        tokio::time::sleep(POLL).await;
    }
}

/// The connection that holds the lock, and whose it is.
async fn other(session: &mut AnySession, name: &str) -> Result<(i64, Option<String>), DbError> {
    if let AnySession::Mysql(_) = session {
        let id = first_i64(&session.rows(&format!("SELECT IS_USED_LOCK({name})")).await?).unwrap_or(0);
        let sql =
            format!("SELECT CONCAT(USER, '@', HOST) FROM information_schema.PROCESSLIST WHERE ID = {id}");
        return Ok((id, cell(session, &sql).await?));
    }
    let sql = format!(
        "SELECT pid, usename || '@' || coalesce(host(client_addr) || ':' || client_port, 'localhost') \
         FROM pg_locks LEFT JOIN pg_stat_activity USING (pid) WHERE {}",
        of_database()
    );
    let rows = session.rows(&sql).await?;
    let from = rows.first().and_then(|row| row.get(1)?.clone());
    Ok((first_i64(&rows).unwrap_or(0), from))
}

fn key() -> u64 {
    u64::from(KEY[0]) << 32 | u64::from(KEY[1])
}

/// Picks the lock out of `pg_locks`.
fn of_database() -> String {
    let [upper, lower] = KEY;
    format!(
        "locktype = 'advisory' AND classid = {upper} AND objid = {lower} AND objsubid = 1 AND granted \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
}

/// `dbdyno:` and the database's name, as a literal that means the same in every SQL mode. Of a long name a part of its hash.
fn name(database: &str) -> String {
    let mut name = format!("dbdyno:{database}");
    if name.chars().count() > LONGEST_NAME {
        name = format!("dbdyno:{}", &hex(&Sha256::digest(database))[..32]);
    }
    format!("CONVERT(X'{}' USING utf8)", hex(name.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_locks_fit_and_tell_databases_apart() {
        insta::assert_snapshot!(name("ib"), @"CONVERT(X'646264796e6f3a6962' USING utf8)");
        let [one, other] = ["a", "b"].map(|end| name(&("x".repeat(63) + end)));
        assert_ne!(one, other);
        assert!(one.len() < "CONVERT(X'' USING utf8)".len() + 2 * LONGEST_NAME, "{one}");
    }

    #[test]
    fn a_holder_is_told_as_far_as_it_is_known() {
        let known =
            Holder { server: String::new(), connection: 7, from: Some("bench@10.0.0.7:41002".into()) };
        insta::assert_snapshot!(known, @"connection 7 of bench@10.0.0.7:41002");
        insta::assert_snapshot!(Holder { from: None, ..known }, @"connection 7");
    }
}
