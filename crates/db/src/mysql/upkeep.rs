//! Brings a MySQL-family server to rest after a load. It makes InnoDB flush its dirty pages, makes
//! MyRocks compact its files, and gathers statistics.

use std::time::{Duration, Instant};

use super::Mysql;
use super::status::{counted_history, counters, innodb_report, reported_history, variables, version_numbers};
use crate::mysql::status;
use crate::product::{LimitedSession, UpkeepWork, first_value, numbers};
use crate::{Capabilities, Cells, Class, DbError, Result, Session};

/// Settings that make InnoDB flush its dirty pages, in the order in which they are set. They are
/// restored in reverse order, because `_lwm` may not exceed `innodb_max_dirty_pages_pct`. A setting
/// that the version does not have is skipped (`innodb_idle_flush_pct` came with MySQL 8.0.18).
const INNODB_FLUSH: &[(&str, &str)] = &[
    ("innodb_max_dirty_pages_pct_lwm", "1"),
    ("innodb_max_dirty_pages_pct", "1"),
    ("innodb_idle_flush_pct", "100"),
];

/// Brings the tables to rest in the way that their engine needs. On a server that others run, the
/// global settings stay unchanged.
pub(super) async fn run(work: &mut UpkeepWork<'_, Mysql>, tables: &[String]) -> Result<()> {
    let engine_is = |name: &str| {
        work.capabilities.engine.as_ref().is_some_and(|engine| engine.eq_ignore_ascii_case(name))
    };
    let (is_innodb, is_myrocks) = (engine_is("innodb"), engine_is("rocksdb"));
    if work.owned && is_innodb {
        return work.innodb(tables).await;
    }
    if work.owned && is_myrocks {
        return work.myrocks(tables).await;
    }
    if is_innodb || is_myrocks {
        work.note("external server: its global settings were not changed and nothing was flushed");
    }
    work.analyze(tables).await
}

/// Deletes the binary logs if the server keeps any.
pub(super) async fn drop_binlog(session: &mut LimitedSession<'_, Mysql>) -> Result<bool> {
    if !variables(session, "log_bin").await?.values().any(|value| value.eq_ignore_ascii_case("on")) {
        return Ok(false);
    }
    let version = first_value(session, "SELECT VERSION()").await?.unwrap_or_default();
    session.query(reset_statement(&version).as_bytes()).await?;
    Ok(true)
}

/// Returns the statement that deletes all binary logs. MySQL 8.2 renamed it, and 8.4 dropped the
/// old name.
fn reset_statement(version: &str) -> &'static str {
    if !version.contains("MariaDB") && version_numbers(version) >= [8, 2, 0] {
        "RESET BINARY LOGS AND GTIDS"
    } else {
        "RESET MASTER"
    }
}

impl UpkeepWork<'_, Mysql> {
    async fn innodb(&mut self, tables: &[String]) -> Result<()> {
        self.innodb_facts("before").await?;
        let mut old = Vec::new();
        let done = self.innodb_flush(tables, &mut old).await;
        let restored = self.restore(&old).await;
        done.and(restored)
    }

    /// Lowers the settings, records their old values in `old`, and lets the server flush for the
    /// whole wait.
    async fn innodb_flush(&mut self, tables: &[String], old: &mut Vec<(String, String)>) -> Result<()> {
        let part_start = Instant::now();
        for &(name, value) in INNODB_FLUSH {
            if let Some(was) = variables(&mut self.session, name).await?.remove(name) {
                self.report.settings.push(format!("{name}: {was}, for this work {value}"));
                old.push((name.to_owned(), was));
                self.session.query(format!("SET GLOBAL {name} = {value}").as_bytes()).await?;
            }
        }
        self.ended("lower flush settings", part_start);
        self.analyze(tables).await?;
        self.come_to_rest().await?;
        self.innodb_facts("after").await
    }

    /// Restores settings, the last one first. It continues after an error, and returns the first
    /// error.
    async fn restore(&mut self, old: &[(String, String)]) -> Result<()> {
        let part_start = Instant::now();
        let mut outcome = Ok(());
        for (name, value) in old.iter().rev() {
            let restored = self.session.query(format!("SET GLOBAL {name} = {value}").as_bytes()).await;
            outcome = outcome.and(restored.map(drop).map_err(|mut error| {
                error.message = format!("restoring {name} = {value}: {}", error.message);
                error
            }));
        }
        self.ended("restore flush settings", part_start);
        outcome
    }

    /// Records the numbers of dirty pages and of transactions that wait for purge.
    async fn innodb_facts(&mut self, when: &str) -> Result<()> {
        let counters = numbers(counters(&mut self.session).await?);
        let dirty = counters.get("Innodb_buffer_pool_pages_dirty").copied();
        self.fact(&format!("dirty_pages_{when}"), dirty);
        let history = match counted_history(&counters) {
            None => reported_history(&innodb_report(&mut self.session).await?),
            counted => counted,
        };
        self.fact(&format!("history_list_length_{when}"), history);
        Ok(())
    }

    async fn analyze(&mut self, tables: &[String]) -> Result<()> {
        if self.capabilities.gather_statistics.is_empty() {
            self.note("the server has no statement that gathers statistics");
            return Ok(());
        }
        for table in tables {
            let part_start = Instant::now();
            let answer = self.session.rows(&format!("ANALYZE TABLE `{}`", table.replace('`', "``"))).await?;
            analyze_outcome(table, &answer)?;
            self.ended(&format!("analyze {table}"), part_start);
        }
        Ok(())
    }
}

/// Checks the result of `ANALYZE TABLE`, which reports a table that it cannot analyse as a row
/// (table, operation, kind, text) and not as an error.
fn analyze_outcome(table: &str, answer: &Cells) -> Result<()> {
    let text = |row: &[Option<String>], column: usize| row.get(column).cloned().flatten().unwrap_or_default();
    match answer.iter().find(|row| text(row, 2).eq_ignore_ascii_case("error")) {
        Some(row) => {
            Err(DbError::new(Class::Fatal, "", format!("table {table} cannot be analysed: {}", text(row, 3))))
        }
        None => Ok(()),
    }
}

/// Interval between two checks of the server's background work.
const PERIOD: Duration = Duration::from_secs(1);
/// Longest wait for compactions, because the original benchmark may wait for ever. The limit is the
/// highest value of that benchmark's wait W (see `product/upkeep.rs`).
const LONGEST: Duration = Duration::from_secs(1200);
/// Number of checks in a row without a byte written, after which dbdyno assumes that the server
/// will not do the pending work.
const STUCK_CHECKS: u32 = 10;
/// Counters for the bytes that flushes and compactions have written so far.
const WRITTEN: [&str; 2] = ["Rocksdb_flush_write_bytes", "Rocksdb_compact_write_bytes"];

impl UpkeepWork<'_, Mysql> {
    /// Brings MyRocks to rest. The original benchmark waits for running compactions where the
    /// server reports them, otherwise 30 s. It then flushes, waits 20 s, and compacts. This version
    /// waits only for what the server reports.
    pub(super) async fn myrocks(&mut self, tables: &[String]) -> Result<()> {
        self.analyze(tables).await?;
        self.await_background("await compactions").await?;
        self.set_if_known("rocksdb_force_flush_memtable_now").await?;
        self.await_background("await compactions after flush").await?;
        self.set_if_known("rocksdb_compact_lzero_now").await
    }

    /// Waits until no compaction is pending or running, as far as the server reports that.
    async fn await_background(&mut self, part: &str) -> Result<()> {
        let start = Instant::now();
        let (mut before, mut idle) = (None, 0);
        loop {
            let now = Background::look(&mut self.session, self.capabilities).await?;
            idle = if before == Some(now.written) { idle + 1 } else { 0 };
            match now.rest(idle) {
                MyrocksRest::AtRest => break,
                MyrocksRest::Stuck => {
                    self.note("the server does not begin its pending compactions");
                    break;
                }
                MyrocksRest::Unreported => {
                    self.note("this version does not report its compactions: none was awaited");
                    break;
                }
                MyrocksRest::NotYet if start.elapsed() >= LONGEST => {
                    self.note(format!("compactions still ran after {LONGEST:?}"));
                    break;
                }
                MyrocksRest::NotYet => before = Some(now.written),
            }
            tokio::time::sleep(PERIOD).await;
        }
        self.ended(part, start);
        Ok(())
    }

    /// Sets a variable that acts as a command (`..._now`), if this version has it. The command is
    /// complete when this returns.
    async fn set_if_known(&mut self, name: &str) -> Result<()> {
        if variables(&mut self.session, name).await?.is_empty() {
            self.note(format!("this version has no {name}"));
            return Ok(());
        }
        let part_start = Instant::now();
        self.session.query(format!("SET GLOBAL {name} = 1").as_bytes()).await?;
        self.ended(name, part_start);
        Ok(())
    }
}

/// What a server reports about its background work. `None` means that this version does not report
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Background {
    /// Flushes and compactions in the column families that have not begun.
    pending: Option<i64>,
    running: Option<i64>,
    written: Option<i64>,
}

#[derive(Debug, PartialEq, Eq)]
enum MyrocksRest {
    /// No background work is left.
    AtRest,
    NotYet,
    /// Work is pending, but nothing is written.
    Stuck,
    /// The server reports no background work.
    Unreported,
}

impl Background {
    async fn look(session: &mut LimitedSession<'_, Mysql>, capabilities: &Capabilities) -> Result<Self> {
        let levels = status::read(session, capabilities).await?.levels;
        let counters = numbers(counters(session).await?);
        let sum = |found: [Option<i64>; 2]| found.into_iter().flatten().reduce(|a, b| a + b);
        Ok(Self {
            pending: sum(["flushes_pending", "compactions_pending"].map(|name| levels.get(name).copied())),
            running: levels.get("compactions_running").copied(),
            written: sum(WRITTEN.map(|name| counters.get(name).copied())),
        })
    }

    /// Judges the background work. `idle` counts the checks in a row, [`PERIOD`] apart, without a
    /// byte written. A running compaction is no longer pending. Where a version does not list the
    /// running ones, only the bytes that they write show them.
    fn rest(&self, idle: u32) -> MyrocksRest {
        if self.running.is_some_and(|running| running > 0) {
            return MyrocksRest::NotYet;
        }
        match (self.pending, self.running, self.written) {
            (Some(pending), _, _) if pending > 0 && idle >= STUCK_CHECKS => MyrocksRest::Stuck,
            (Some(pending), _, _) if pending > 0 => MyrocksRest::NotYet,
            (_, Some(_), _) => MyrocksRest::AtRest,
            (_, None, Some(_)) if idle > 0 => MyrocksRest::AtRest,
            (_, None, Some(_)) => MyrocksRest::NotYet,
            (_, None, None) => MyrocksRest::Unreported,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_has_its_statement_to_delete_binary_logs() {
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

    fn seen(pending: Option<i64>, running: Option<i64>, written: Option<i64>) -> Background {
        Background { pending, running, written }
    }

    #[test]
    fn a_server_that_lists_compactions_is_at_rest_at_the_first_check_without_one() {
        assert_eq!(seen(Some(0), Some(0), Some(9)).rest(0), MyrocksRest::AtRest);
        assert_eq!(seen(Some(0), Some(2), Some(9)).rest(99), MyrocksRest::NotYet);
        assert_eq!(seen(Some(1), Some(0), Some(9)).rest(0), MyrocksRest::NotYet);
    }

    #[test]
    fn a_server_that_lists_none_is_at_rest_when_nothing_is_written_between_two_checks() {
        let look = |pending| seen(Some(pending), None, Some(9));
        assert_eq!(look(0).rest(0), MyrocksRest::NotYet, "one look shows nothing");
        assert_eq!(look(0).rest(1), MyrocksRest::AtRest);
        assert_eq!(look(1).rest(STUCK_CHECKS - 1), MyrocksRest::NotYet);
        assert_eq!(look(1).rest(STUCK_CHECKS), MyrocksRest::Stuck);
    }

    #[test]
    fn unreported_compactions_are_not_awaited() {
        assert_eq!(seen(None, None, None).rest(0), MyrocksRest::Unreported);
        assert_eq!(seen(Some(0), None, None).rest(0), MyrocksRest::Unreported);
    }
}
