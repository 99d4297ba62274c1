//! Brings a database to rest between the load and the first read-write step, as the insert
//! benchmark does.
//!
//! The original benchmark waits W = min(1200, 60 + loaded rows / 1,000,000) seconds, counted from
//! the start of this work. The work runs inside W, and dbdyno sleeps only for the remainder. After
//! work that takes longer there is no sleep. [`Rest::Quiet`] instead waits until the server's state
//! is below limits. Each product defines its work in [`Product::upkeep`].

mod rest;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

#[cfg(test)]
pub(crate) use rest::TEST_BOUNDS;
pub use rest::{Bounds, DeviceGauge, Quiet, Rest, Settling};

use super::{Limited, LimitedSession, Product};
use crate::{Capabilities, Result};

/// What upkeep did, how long each part took, and what it changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpkeepReport {
    /// Named parts with their durations, in order. `wait` is the sleep for the remainder, and
    /// `settle` is the wait for a state. PostgreSQL's `vacuum` parts run at the same time.
    pub parts: Vec<(String, Duration)>,
    /// Numbers observed: `dirty_pages_before` and `_after`, `history_list_length_before` and
    /// `_after`, `wal_frames_left`, `dead_rows_before` and `_after`. A number that the server does
    /// not report is absent.
    pub facts: BTreeMap<String, i64>,
    /// Settings that were changed and restored: `innodb_max_dirty_pages_pct: 90.000000, for this
    /// work 1`.
    pub settings: Vec<String>,
    /// What was skipped, and why.
    pub notes: Vec<String>,
    /// How the server came to rest; `None` after a fixed wait.
    pub settling: Option<Settling>,
}

/// Does the product's work on `tables` and waits for rest. See [`crate::settle`].
pub(crate) async fn settle<P: Product>(
    session: &mut P::Session,
    capabilities: &Capabilities,
    tables: &[String],
    rest: Rest,
    owned: bool,
) -> Result<UpkeepReport> {
    let start = Instant::now();
    let mut session = Limited(session);
    let before = rest::state_before::<P>(&mut session, capabilities, &rest).await?;
    let report = UpkeepReport::default();
    let mut work = Work { session, capabilities, report, start, rest, before, owned };
    if owned && capabilities.drops_binlog {
        let part = Instant::now();
        if P::drop_binlog(&mut work.session).await? {
            work.ended("drop binary log", part);
        }
    }
    P::upkeep(&mut work, tables).await?;
    work.come_to_rest().await?;
    Ok(work.report)
}

/// The work in progress.
pub(crate) struct Work<'a, P: Product> {
    pub(crate) session: LimitedSession<'a, P>,
    pub(crate) capabilities: &'a Capabilities,
    pub(crate) report: UpkeepReport,
    pub(super) start: Instant,
    pub(super) rest: Rest,
    /// The server's state when the work began. It is set only if the rest waits for a state.
    pub(super) before: BTreeMap<String, i64>,
    /// Whether dbdyno started the server and may change its settings.
    pub(crate) owned: bool,
}

impl<P: Product> Work<'_, P> {
    pub(crate) fn ended(&mut self, part: &str, since: Instant) {
        self.report.parts.push((part.to_owned(), since.elapsed()));
    }

    /// Notes once what was skipped, and why.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.report.notes.contains(&note) {
            self.report.notes.push(note);
        }
    }

    pub(crate) fn fact(&mut self, name: &str, value: Option<i64>) {
        if let Some(value) = value {
            self.report.facts.insert(name.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::testing;
    use crate::{AnySession, DatabaseAddress, DatabaseServer, Session, drop_binlog, null, settle, sqlite};

    fn part_names(report: &UpkeepReport) -> Vec<&str> {
        report.parts.iter().map(|(name, _)| name.as_str()).collect()
    }

    async fn sqlite_session(folder: &tempfile::TempDir, mode: &str) -> AnySession {
        let options = testing::options(folder.path(), &[("journal_mode", mode)]);
        let database_server = DatabaseServer {
            address: DatabaseAddress::Sqlite(options),
            capabilities: sqlite::capabilities(),
        };
        let mut session = database_server.connect().await.unwrap();
        for sql in
            ["CREATE TABLE pi1 (a)", "CREATE INDEX pi1_a ON pi1 (a)", "INSERT INTO pi1 VALUES (1), (2)"]
        {
            session.query(sql.as_bytes()).await.unwrap();
        }
        session
    }

    /// Settles within a short wait. If a delay lets the work use up the whole wait, it tries again
    /// with a longer one, because nothing would be left to wait.
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
                // The query for statistics above wrote nothing, so the emptied log is still empty.
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
        let address = DatabaseAddress::Null(null::NullOptions::default());
        let mut session =
            DatabaseServer { address, capabilities: null::capabilities() }.connect().await.unwrap();
        let report = settled(&mut session, &null::capabilities()).await;
        assert_eq!(part_names(&report), ["wait"]);
        assert!(!drop_binlog(&mut session, &null::capabilities()).await.unwrap());
    }
}
