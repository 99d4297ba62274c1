//! Brings a database to rest between the load and the first read-write step, as the insert benchmark does.
//!
//! The original waits W = min(1200, 60 + loaded rows / 1,000,000) seconds, counted from the start of this work: the
//! work runs inside W and only the remainder is slept; work that takes longer is followed by no sleep. [`Rest::Quiet`]
//! waits until the server's state is under bounds instead. What the work is depends on the engine ([`Upkeep`]). The
//! original knows no SQLite; there it is `ANALYZE`, then a WAL checkpoint.

mod history;
mod myrocks;
mod postgres;
mod rest;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub use rest::{Bounds, DeviceGauge, Quiet, Rest, Settling};

use crate::status::{cell, status, variables, version_numbers};
use crate::{AnySession, Capabilities, Cells, Class, DbError, Session, Upkeep};

/// Settings that make InnoDB write its dirty pages out, in the order in which they are set; they are restored in the
/// opposite order, because `_lwm` may not exceed `innodb_max_dirty_pages_pct`. One that the version does not have
/// is left out (`innodb_idle_flush_pct` came with MySQL 8.0.18).
const INNODB_FLUSH: &[(&str, &str)] = &[
    ("innodb_max_dirty_pages_pct_lwm", "1"),
    ("innodb_max_dirty_pages_pct", "1"),
    ("innodb_idle_flush_pct", "100"),
];

/// What was done, how long each part took, and what it changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpkeepReport {
    /// Named parts with their durations, in their order; `wait` is the sleep for the remainder, `settle` the wait for a
    /// state. PostgreSQL's `vacuum` parts go on at the same time.
    pub parts: Vec<(String, Duration)>,
    /// Numbers seen: `dirty_pages_before` and `_after`, `history_list_length_before` and `_after`,
    /// `wal_frames_left`, `dead_rows_before` and `_after`. One that the server does not report is absent.
    pub facts: BTreeMap<String, i64>,
    /// Settings that were changed and restored: `innodb_max_dirty_pages_pct: 90.000000, for this work 1`.
    pub settings: Vec<String>,
    /// What was left out, and why.
    pub notes: Vec<String>,
    /// How the server came to rest; `None` after a fixed wait.
    pub settling: Option<Settling>,
}

/// Does the work that `capabilities.upkeep` names on `tables` (plain names in the session's database), and rests: for
/// what is left of a time, or until the server is quiet.
///
/// A server that others run (`owned == false`) keeps its global settings and its binary log: only statistics
/// are collected, and the report says so. Settings of an owned server are restored also when the work fails; not when
/// this future is dropped halfway, so the caller then stops the server.
///
/// # Errors
/// As [`Session::query`]; Fatal if a table cannot be analysed; Lost if the server gives no answer while it is to settle.
pub async fn settle(
    session: &mut AnySession,
    capabilities: &Capabilities,
    tables: &[String],
    rest: impl Into<Rest>,
    owned: bool,
) -> Result<UpkeepReport, DbError> {
    let (start, rest) = (Instant::now(), rest.into());
    let before = rest::state_before(session, capabilities, &rest).await?;
    let report = UpkeepReport::default();
    let mut work = Work { session, capabilities, report, start, rest, before, owned };
    if owned && capabilities.drops_binlog {
        let part = Instant::now();
        if drop_binlog(work.session, capabilities).await? {
            work.ended("drop binary log", part);
        }
    }
    match capabilities.upkeep {
        Upkeep::None => {}
        Upkeep::Sqlite => work.sqlite(tables).await?,
        Upkeep::Postgres => work.postgres(tables, owned).await?,
        Upkeep::InnoDb if owned => work.innodb(tables).await?,
        Upkeep::MyRocks if owned => work.myrocks(tables).await?,
        Upkeep::AnalyzeOnly => work.analyze(tables).await?,
        Upkeep::InnoDb | Upkeep::MyRocks => {
            let note = "external server: its global settings were not changed and nothing was flushed";
            work.report.notes.push(note.to_owned());
            work.analyze(tables).await?;
        }
    }
    work.come_to_rest().await?;
    Ok(work.report)
}

/// Deletes the binary logs if the server keeps any and `capabilities` allow it. Says whether it did.
///
/// # Errors
/// As [`Session::query`].
pub async fn drop_binlog(session: &mut AnySession, capabilities: &Capabilities) -> Result<bool, DbError> {
    if !capabilities.drops_binlog || !matches!(session, AnySession::Mysql(_)) {
        return Ok(false);
    }
    if !variables(session, "log_bin").await?.values().any(|value| value.eq_ignore_ascii_case("on")) {
        return Ok(false);
    }
    let version = cell(session, "SELECT VERSION()").await?.unwrap_or_default();
    session.query(reset_statement(&version).as_bytes()).await?;
    Ok(true)
}

/// The statement that deletes all binary logs; MySQL 8.2 renamed it and 8.4 dropped the old name.
fn reset_statement(version: &str) -> &'static str {
    if !version.contains("MariaDB") && version_numbers(version) >= [8, 2, 0] {
        "RESET BINARY LOGS AND GTIDS"
    } else {
        "RESET MASTER"
    }
}

/// The work while it goes on.
struct Work<'a> {
    session: &'a mut AnySession,
    capabilities: &'a Capabilities,
    report: UpkeepReport,
    start: Instant,
    rest: Rest,
    /// The server's state when the work began, if the rest is a state.
    before: BTreeMap<String, i64>,
    owned: bool,
}

impl Work<'_> {
    async fn sqlite(&mut self, tables: &[String]) -> Result<(), DbError> {
        for table in tables {
            let part = Instant::now();
            let sql = format!("ANALYZE \"{}\"", table.replace('"', "\"\""));
            self.session.query(sql.as_bytes()).await?;
            self.ended(&format!("analyze {table}"), part);
        }
        if cell(self.session, "PRAGMA journal_mode").await?.as_deref() != Some("wal") {
            return Ok(());
        }
        let part = Instant::now();
        // Answers busy (0 or 1), frames in the log, frames written back; an emptied log has 0 frames.
        let answer = self.session.rows("PRAGMA wal_checkpoint(TRUNCATE)").await?;
        self.ended("checkpoint", part);
        let number = |column: usize| answer.first()?.get(column)?.as_deref()?.parse::<i64>().ok();
        self.fact("wal_frames_left", number(1));
        if number(0) != Some(0) {
            self.report
                .notes
                .push("the checkpoint was not complete: another connection was reading".to_owned());
        }
        Ok(())
    }

    async fn innodb(&mut self, tables: &[String]) -> Result<(), DbError> {
        self.innodb_facts("before").await?;
        let mut old = Vec::new();
        let done = self.innodb_flush(tables, &mut old).await;
        let restored = self.restore(&old).await;
        done.and(restored)
    }

    /// Lowers the settings, noting in `old` what they were, and lets the server write for the whole of the wait.
    async fn innodb_flush(
        &mut self,
        tables: &[String],
        old: &mut Vec<(String, String)>,
    ) -> Result<(), DbError> {
        let part = Instant::now();
        for &(name, value) in INNODB_FLUSH {
            if let Some(was) = variables(self.session, name).await?.remove(name) {
                self.report.settings.push(format!("{name}: {was}, for this work {value}"));
                old.push((name.to_owned(), was));
                self.session.query(format!("SET GLOBAL {name} = {value}").as_bytes()).await?;
            }
        }
        self.ended("lower flush settings", part);
        self.analyze(tables).await?;
        self.come_to_rest().await?;
        self.innodb_facts("after").await
    }

    /// Puts settings back, the last one first. Goes on after an error and returns the first.
    async fn restore(&mut self, old: &[(String, String)]) -> Result<(), DbError> {
        let part = Instant::now();
        let mut outcome = Ok(());
        for (name, value) in old.iter().rev() {
            let restored = self.session.query(format!("SET GLOBAL {name} = {value}").as_bytes()).await;
            outcome = outcome.and(restored.map(drop).map_err(|mut error| {
                error.message = format!("restoring {name} = {value}: {}", error.message);
                error
            }));
        }
        self.ended("restore flush settings", part);
        outcome
    }

    async fn innodb_facts(&mut self, when: &str) -> Result<(), DbError> {
        let counters = status(self.session).await?;
        let dirty = counters.get("Innodb_buffer_pool_pages_dirty").copied();
        self.fact(&format!("dirty_pages_{when}"), dirty);
        let history = history::history_length(self.session, &counters).await?;
        self.fact(&format!("history_list_length_{when}"), history);
        Ok(())
    }

    async fn analyze(&mut self, tables: &[String]) -> Result<(), DbError> {
        for table in tables {
            let part = Instant::now();
            let answer = self.session.rows(&format!("ANALYZE TABLE `{}`", table.replace('`', "``"))).await?;
            analyze_outcome(table, &answer)?;
            self.ended(&format!("analyze {table}"), part);
        }
        Ok(())
    }

    fn ended(&mut self, part: &str, since: Instant) {
        self.report.parts.push((part.to_owned(), since.elapsed()));
    }

    fn fact(&mut self, name: &str, value: Option<i64>) {
        if let Some(value) = value {
            self.report.facts.insert(name.to_owned(), value);
        }
    }
}

/// `ANALYZE TABLE` reports a table that it cannot analyse as a row (table, operation, kind, text), not as an error.
fn analyze_outcome(table: &str, answer: &Cells) -> Result<(), DbError> {
    let text = |row: &[Option<String>], column: usize| row.get(column).cloned().flatten().unwrap_or_default();
    match answer.iter().find(|row| text(row, 2).eq_ignore_ascii_case("error")) {
        Some(row) => {
            Err(DbError::new(Class::Fatal, "", format!("table {table} cannot be analysed: {}", text(row, 3))))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::testing;
    use crate::{Endpoint, Target, null, sqlite};

    #[test]
    fn the_binary_log_is_reset_in_the_versions_own_words() {
        for version in ["5.6.24-log", "8.0.31", "8.1.0", "10.11.19-MariaDB", "11.8.6-MariaDB"] {
            assert_eq!(reset_statement(version), "RESET MASTER", "{version}");
        }
        for version in ["8.2.0", "8.4.3", "9.7.4"] {
            assert_eq!(reset_statement(version), "RESET BINARY LOGS AND GTIDS", "{version}");
        }
    }

    #[test]
    fn a_table_that_cannot_be_analysed_is_fatal() {
        let row = |kind: &str, text: &str| {
            ["ib.pi1", "analyze", kind, text].map(|cell| Some(cell.to_owned())).to_vec()
        };
        let fine = vec![row("status", "Engine-independent statistics collected"), row("status", "OK")];
        assert_eq!(analyze_outcome("pi1", &fine), Ok(()));
        let failed = vec![row("Error", "Table 'ib.pi1' doesn't exist"), row("status", "Operation failed")];
        let error = analyze_outcome("pi1", &failed).unwrap_err();
        assert_eq!(error.class, Class::Fatal);
        insta::assert_snapshot!(error, @"table pi1 cannot be analysed: Table 'ib.pi1' doesn't exist");
    }

    fn part_names(report: &UpkeepReport) -> Vec<&str> {
        report.parts.iter().map(|(name, _)| name.as_str()).collect()
    }

    async fn sqlite_session(folder: &tempfile::TempDir, mode: &str) -> AnySession {
        let options = testing::options(folder.path(), &[("journal_mode", mode)]);
        let endpoint = Endpoint { target: Target::Sqlite(options), capabilities: sqlite::capabilities() };
        let mut session = endpoint.connect().await.unwrap();
        for sql in
            ["CREATE TABLE pi1 (a)", "CREATE INDEX pi1_a ON pi1 (a)", "INSERT INTO pi1 VALUES (1), (2)"]
        {
            session.query(sql.as_bytes()).await.unwrap();
        }
        session
    }

    /// Settles within a short wait; within a longer one where a hold-up lets the work take all of it, for then nothing is left
    /// to wait.
    async fn settled(session: &mut AnySession, capabilities: &Capabilities) -> UpkeepReport {
        let mut report = UpkeepReport::default();
        for wait in [400, 4_000, 40_000].map(Duration::from_millis) {
            let start = Instant::now();
            report = settle(session, capabilities, &["pi1".to_owned()], wait, true).await.unwrap();
            let took = start.elapsed();
            assert!(took >= wait, "{took:?} of {wait:?}");
            if part_names(&report).contains(&"wait") {
                break;
            }
        }
        report
    }

    #[tokio::test]
    async fn sqlite_is_analysed_and_its_log_emptied_inside_the_wait() {
        for (mode, parts) in
            [("wal", &["analyze pi1", "checkpoint", "wait"][..]), ("delete", &["analyze pi1", "wait"])]
        {
            let folder = testing::folder();
            let mut session = sqlite_session(&folder, mode).await;
            let [_, log, ..] = sqlite::database_files(&folder.path().join("bench.db"));
            assert_eq!(log.exists(), mode == "wal");
            let report = settled(&mut session, &sqlite::capabilities()).await;
            assert_eq!(part_names(&report), parts);
            assert!(report.notes.is_empty(), "{report:?}");
            let statistics = session.rows("SELECT stat FROM sqlite_stat1 WHERE idx = 'pi1_a'").await.unwrap();
            assert_eq!(statistics, [[Some("2 1".to_owned())]]);
            if mode == "wal" {
                assert_eq!(report.facts["wal_frames_left"], 0);
                // The statistics query above wrote nothing, so the emptied log is still empty.
                assert_eq!(std::fs::metadata(&log).unwrap().len(), 0);
            }
        }
    }

    #[tokio::test]
    async fn work_that_takes_longer_than_the_wait_is_followed_by_no_sleep() {
        let folder = testing::folder();
        let mut session = sqlite_session(&folder, "delete").await;
        let (tables, wait) = (["pi1".to_owned()], Duration::from_nanos(1));
        let report = settle(&mut session, &sqlite::capabilities(), &tables, wait, true).await.unwrap();
        assert_eq!(part_names(&report), ["analyze pi1"]);
    }

    #[tokio::test]
    async fn a_table_that_is_absent_fails_the_work_on_sqlite() {
        let folder = testing::folder();
        let mut session = sqlite_session(&folder, "wal").await;
        let tables = ["absent".to_owned()];
        let error =
            settle(&mut session, &sqlite::capabilities(), &tables, Duration::ZERO, true).await.unwrap_err();
        assert!(error.message.contains("no such table: absent"), "{error}");
    }

    #[tokio::test]
    async fn the_null_database_only_waits() {
        let target = Target::Null(null::Options::default());
        let mut session = Endpoint { target, capabilities: null::capabilities() }.connect().await.unwrap();
        let report = settled(&mut session, &null::capabilities()).await;
        assert_eq!(part_names(&report), ["wait"]);
        assert!(!drop_binlog(&mut session, &null::capabilities()).await.unwrap());
    }
}
