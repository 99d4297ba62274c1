//! Queries that any database can answer about its state.

use std::collections::BTreeMap;

use crate::product::{self, DeferredWork, Limited, Product, numbers};
use crate::products::each_session;
use crate::{
    AnySession, Capabilities, Cells, Class, Description, Rest, Result, Session, Unreported, UpkeepReport,
    first_i64,
};

/// The server's counters now, under its own names. Numbers stay as they are, fractions are rounded,
/// numbers above the range of `i64` become its maximum, and words are left out. The null driver has
/// none. For PostgreSQL these are the columns of its statistics views for the session's database
/// and the server, such as `pg_stat_wal.wal_sync`, and `wal_position_bytes`.
///
/// For MySQL from 5.6 on the result also has `binlog.COUNT_MISC` from the performance schema, if
/// that schema is on and the user may read it.
///
/// The query takes about a millisecond in the MySQL family (`SHOW GLOBAL STATUS`) and in
/// PostgreSQL. In SQLite it takes a short read lock.
pub async fn status(session: &mut AnySession) -> Result<BTreeMap<String, i64>> {
    let counters = each_session!(session, session, P => P::counters(&mut Limited(session)).await);
    counters.map(numbers)
}

/// Names of the tables in the session's database, in order. dbdyno's own tables and those whose
/// names need quotes are left out.
pub async fn tables(session: &mut AnySession) -> Result<Vec<String>> {
    let asks = each_session!(&*session, _session, P => P::TABLES);
    if asks.is_empty() {
        return Ok(Vec::new());
    }
    let is_plain = |name: &String| {
        let is_sign = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '_';
        name.chars().all(is_sign) && !name.starts_with(|sign: char| sign.is_ascii_digit())
    };
    let is_own = |name: &str| name.starts_with("dbdyno_");
    let names = session.rows(asks).await?.into_iter().flatten().flatten();
    Ok(names.filter(|name| is_plain(name) && !is_own(name)).collect())
}

/// Describes the server: product, version, engine, and all settings in force.
pub async fn describe(session: &mut AnySession) -> Result<Description> {
    each_session!(session, session, P => P::describe(&mut Limited(session)).await)
}

/// How many of the server's other connections are in each wait now, by the server's names of waits.
/// Connections that wait for their client, or for nothing, are not counted. It is empty for a
/// database without such names.
pub async fn waits(session: &mut AnySession) -> Result<BTreeMap<String, i64>> {
    let asks = each_session!(&*session, _session, P => P::WAITS);
    if asks.is_empty() {
        return Ok(BTreeMap::new());
    }
    let pairs = session.rows(asks).await?.into_iter().filter_map(|row| {
        let mut cells = row.into_iter();
        Some((cells.next()??, cells.next()??.parse().ok()?))
    });
    Ok(pairs.collect())
}

/// The sessions whose work may still be missing in [`status`]. It is `None` for servers whose
/// counters are never late.
pub async fn unreported(session: &mut AnySession) -> Result<Option<Unreported>> {
    each_session!(session, session, P => P::unreported(&mut Limited(session)).await)
}

/// Reads the work that the session's server has deferred. The query takes a few milliseconds. In
/// SQLite it only reads the log's index.
///
/// Levels that the session may not read are left out, because a server that others run may not
/// grant the rights.
pub async fn deferred_work(session: &mut AnySession, capabilities: &Capabilities) -> Result<DeferredWork> {
    each_session!(session, session, P => product::deferred_work::<P>(&mut Limited(session), capabilities).await)
}

/// Does the upkeep that the engine of `tables` (plain names in the session's database) needs after
/// a load. It then waits as `rest` says: for the remainder of a fixed time, or until the server is
/// quiet.
///
/// A server that others run (`owned == false`) keeps its global settings and its binary log. Only
/// statistics are collected there, and the report says so. An owned server's settings are restored
/// even when the work fails. They are not restored if this future is dropped before it has
/// finished, so the caller must then stop the server. The error is [`crate::Class::Lost`] if the
/// server does not answer while it settles.
pub async fn settle(
    session: &mut AnySession,
    capabilities: &Capabilities,
    tables: &[String],
    rest: impl Into<Rest>,
    owned: bool,
) -> Result<UpkeepReport> {
    let rest = rest.into();
    each_session!(session, session, P => product::settle::<P>(session, capabilities, tables, rest, owned).await)
}

/// Deletes the binary logs if the server keeps any and `capabilities` allow it. The result says
/// whether logs were deleted.
pub async fn drop_binlog(session: &mut AnySession, capabilities: &Capabilities) -> Result<bool> {
    if !capabilities.drops_binlog {
        return Ok(false);
    }
    each_session!(session, session, P => P::drop_binlog(&mut Limited(session)).await)
}

/// The engine of each table in the session's database, in the server's spelling. The result is
/// empty for a product without a choice of engines, and it lacks tables that the server does not
/// report.
pub async fn table_engines(session: &mut AnySession, tables: &[String]) -> Result<BTreeMap<String, String>> {
    each_session!(session, session, P => P::table_engines(&mut Limited(session), tables).await)
}

/// Whether `found`, in the server's spelling, is the engine that was requested as `asked`.
pub fn is_engine(session: &AnySession, asked: &str, found: &str) -> bool {
    each_session!(session, _session, P => P::is_engine(asked, found))
}

/// The server's plan for `sql`, which is not executed. The result has the plan's format (`mysql`,
/// `postgres`, `sqlite`), and the plan's rows or the error. It is `None` for a database that has no
/// plans.
pub async fn explain(session: &mut AnySession, sql: &str) -> Option<(&'static str, Result<Cells>)> {
    let statements = each_session!(session, _session, P => P::EXPLAIN);
    understood(session, statements, sql).await
}

/// Does the same as [`explain`], but executes `sql`, so that the server counts rows and times by
/// operator. The result is `None` where the database has no such statement.
pub async fn explain_executed(session: &mut AnySession, sql: &str) -> Option<(&'static str, Result<Cells>)> {
    let statements = each_session!(session, _session, P => P::ANALYZE);
    understood(session, statements, sql).await
}

/// The format and the answer of the first of these statements that the server understands.
async fn understood(
    session: &mut AnySession,
    statements: &'static [(&'static str, &'static str)],
    sql: &str,
) -> Option<(&'static str, Result<Cells>)> {
    let mut last = None;
    for (words, form) in statements {
        match session.rows(&format!("{words} {sql}")).await {
            Err(error) if error.class != Class::Lost => last = Some((*form, Err(error))),
            answer => return Some((form, answer)),
        }
    }
    last
}

/// The highest number of objects of one kind that a server accepts, and the setting that limits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    pub most: u64,
    pub setting: &'static str,
}

/// Number of connections that the server accepts; `None` if there is no server or it does not
/// report the number.
pub async fn connection_room(session: &mut AnySession) -> Option<Room> {
    let probe = each_session!(session, _session, P => P::ROOM);
    room(session, probe).await
}

/// Number of prepared statements that the server keeps for all connections together; `None` if the
/// server has no such limit.
pub async fn prepared_room(session: &mut AnySession) -> Option<Room> {
    let probe = each_session!(session, _session, P => P::PREPARED_ROOM);
    room(session, probe).await
}

async fn room(session: &mut AnySession, probe: Option<(&str, &'static str)>) -> Option<Room> {
    let (sql, setting) = probe?;
    let most = first_i64(&session.rows(sql).await.ok()?)?;
    Some(Room { most: u64::try_from(most).ok()?, setting })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{DatabaseAddress, DatabaseServer, null, sqlite};

    async fn answer(address: DatabaseAddress, sql: &str) -> Option<(&'static str, Result<Cells>)> {
        let database_server = DatabaseServer { address, capabilities: sqlite::capabilities() };
        let mut session = database_server.connect().await.unwrap();
        explain(&mut session, sql).await
    }

    #[tokio::test]
    async fn sqlite_explains_a_statement_or_says_why_it_cannot() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        let options = sqlite::SqliteFile { path, pragmas: Vec::new(), busy_timeout: Duration::from_secs(1) };
        let address = || DatabaseAddress::Sqlite(options.clone());
        let (form, rows) = answer(address(), "SELECT name FROM sqlite_master").await.unwrap();
        assert_eq!(form, "sqlite");
        assert!(rows.unwrap()[0].last().unwrap().as_deref().unwrap().contains("sqlite_master"));
        let (_, refused) = answer(address(), "SELECT x FROM nowhere").await.unwrap();
        assert!(refused.unwrap_err().message.contains("nowhere"));
    }

    #[tokio::test]
    async fn a_database_that_stores_nothing_has_no_plans() {
        assert!(answer(DatabaseAddress::Null(null::NullOptions::default()), "SELECT 1").await.is_none());
    }
}
