//! What any database can be asked.

use std::collections::BTreeMap;

use crate::product::{self, DeferredWork, Limited, Product, numbers};
use crate::products::each_session;
use crate::{
    AnySession, Capabilities, Cells, Class, Description, Rest, Result, Session, Unreported, UpkeepReport,
    first_i64,
};

/// The server's counters now, under its own names: numbers as they are, fractions rounded, anything
/// above the range of `i64` as its maximum, words left out. Empty for the null driver. PostgreSQL:
/// the columns of its statistics views for the session's database and the server, as
/// `pg_stat_wal.wal_sync`, and `wal_position_bytes`.
///
/// MySQL from 5.6 on: `binlog.COUNT_MISC` of its performance schema too, where that is on and may
/// be read.
///
/// Costs the server about a millisecond for the MySQL family (`SHOW GLOBAL STATUS`) and PostgreSQL,
/// SQLite a short read lock.
pub async fn status(session: &mut AnySession) -> Result<BTreeMap<String, i64>> {
    let counters = each_session!(session, session, P => P::counters(&mut Limited(session)).await);
    counters.map(numbers)
}

/// Names of the tables of the session's database, in their order: all but dbdyno's own, and those
/// whose names need quotes.
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

/// Who the server is: product, version, engine, and all its settings as they are in force.
pub async fn describe(session: &mut AnySession) -> Result<Description> {
    each_session!(session, session, P => P::describe(&mut Limited(session)).await)
}

/// What [`status`] does not hold yet; `None` of servers that count at once.
pub async fn unreported(session: &mut AnySession) -> Result<Option<Unreported>> {
    each_session!(session, session, P => P::unreported(&mut Limited(session)).await)
}

/// Reads what the server of `session` owes. Costs a few milliseconds, in SQLite a look at the log's
/// index.
///
/// What the session may not ask for is left out: a server of others may not give the rights.
pub async fn deferred_work(session: &mut AnySession, capabilities: &Capabilities) -> Result<DeferredWork> {
    each_session!(session, session, P => product::owed::<P>(&mut Limited(session), capabilities).await)
}

/// Does the work on `tables` (plain names in the session's database) that their engine needs after
/// a load, and rests: for what is left of a time, or until the server is quiet.
///
/// A server that others run (`owned == false`) keeps its global settings and its binary log: only
/// statistics are collected, and the report says so. Settings of an owned server are restored also
/// when the work fails; not when this future is dropped halfway, so the caller then stops the
/// server. [`crate::Class::Lost`] if the server gives no answer while it is to settle.
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

/// Deletes the binary logs if the server keeps any and `capabilities` allow it. Says whether it
/// did.
pub async fn drop_binlog(session: &mut AnySession, capabilities: &Capabilities) -> Result<bool> {
    if !capabilities.drops_binlog {
        return Ok(false);
    }
    each_session!(session, session, P => P::drop_binlog(&mut Limited(session)).await)
}

/// The engine of each of these tables of the session's database, in the server's words. Empty where
/// tables have no engines to choose from; without those that the server does not report.
pub async fn table_engines(session: &mut AnySession, tables: &[String]) -> Result<BTreeMap<String, String>> {
    each_session!(session, session, P => P::table_engines(&mut Limited(session), tables).await)
}

/// Whether `found`, as the server spells it, is the engine that was asked for as `asked`.
pub fn is_engine(session: &AnySession, asked: &str, found: &str) -> bool {
    each_session!(session, _session, P => P::is_engine(asked, found))
}

/// What the server says of `sql`, which it does not execute: the form of the answer (`mysql`,
/// `postgres`, `sqlite`), and its rows or why there are none. `None` for a database that has no
/// plans.
pub async fn explain(session: &mut AnySession, sql: &str) -> Option<(&'static str, Result<Cells>)> {
    let questions = each_session!(session, _session, P => P::EXPLAIN);
    understood(session, questions, sql).await
}

/// As [`explain`], of an execution of `sql` in which the server counts rows and times by operator.
/// `None` where none can.
pub async fn explain_executed(session: &mut AnySession, sql: &str) -> Option<(&'static str, Result<Cells>)> {
    let questions = each_session!(session, _session, P => P::ANALYZE);
    understood(session, questions, sql).await
}

/// The answer to the first of the questions that the server understands, and its form.
async fn understood(
    session: &mut AnySession,
    questions: &'static [(&'static str, &'static str)],
    sql: &str,
) -> Option<(&'static str, Result<Cells>)> {
    let mut last = None;
    for (words, form) in questions {
        match session.rows(&format!("{words} {sql}")).await {
            Err(error) if error.class != Class::Lost => last = Some((*form, Err(error))),
            answer => return Some((form, answer)),
        }
    }
    last
}

/// How many of something a server takes, and the setting that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    pub most: u64,
    pub setting: &'static str,
}

/// Connections that the server takes; `None` where there is no server, or it does not report.
pub async fn connection_room(session: &mut AnySession) -> Option<Room> {
    let question = each_session!(session, _session, P => P::ROOM);
    room(session, question).await
}

/// Prepared statements that the server holds for all connections together; `None` where it has no
/// such limit.
pub async fn prepared_room(session: &mut AnySession) -> Option<Room> {
    let question = each_session!(session, _session, P => P::PREPARED_ROOM);
    room(session, question).await
}

async fn room(session: &mut AnySession, question: Option<(&str, &'static str)>) -> Option<Room> {
    let (sql, setting) = question?;
    let most = first_i64(&session.rows(sql).await.ok()?)?;
    Some(Room { most: u64::try_from(most).ok()?, setting })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Endpoint, Target, null, sqlite};

    async fn answer(target: Target, sql: &str) -> Option<(&'static str, Result<Cells>)> {
        let endpoint = Endpoint { target, capabilities: sqlite::capabilities() };
        let mut session = endpoint.connect().await.unwrap();
        explain(&mut session, sql).await
    }

    #[tokio::test]
    async fn sqlite_tells_its_plan_or_why_it_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        let options = sqlite::Options { path, pragmas: Vec::new(), busy_timeout: Duration::from_secs(1) };
        let target = || Target::Sqlite(options.clone());
        let (form, rows) = answer(target(), "SELECT name FROM sqlite_master").await.unwrap();
        assert_eq!(form, "sqlite");
        assert!(rows.unwrap()[0].last().unwrap().as_deref().unwrap().contains("sqlite_master"));
        let (_, refused) = answer(target(), "SELECT x FROM nowhere").await.unwrap();
        assert!(refused.unwrap_err().message.contains("nowhere"));
    }

    #[tokio::test]
    async fn a_database_that_stores_nothing_has_no_plans() {
        assert!(answer(Target::Null(null::Options::default()), "SELECT 1").await.is_none());
    }
}
