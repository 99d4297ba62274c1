//! Reads how much work a server has deferred. For InnoDB it comes from status counters and the
//! engine's report, for MyRocks from its tables.

use std::collections::BTreeMap;

use super::Mysql;
use super::status::{counters, variables, version_numbers};
use crate::product::{DeferredWork, LEAST_BOUND_COUNT, LimitedSession, cell, numbers, permitted};
use crate::{Bounds, Capabilities, Result, Session, first_i64};

/// The first version that merges the change buffer only when a page is read, MariaDB 10.5. Waiting
/// for the merge is useless from there on.
const MARIADB_MERGES_ON_READ_SINCE: [u32; 3] = [10, 5, 0];

/// The engine's `stat_type` and the level's name. The values are sums over all column families.
const COLUMN_FAMILIES: &[(&str, &str)] = &[
    ("CUR_SIZE_ALL_MEM_TABLES", "memtable_bytes"),
    ("MEM_TABLE_FLUSH_PENDING", "flushes_pending"),
    ("COMPACTION_PENDING", "compactions_pending"),
];

/// Reads the deferred work. It reads MyRocks' part only where the benchmark's tables are in that
/// engine.
pub(super) async fn read(
    session: &mut LimitedSession<'_, Mysql>,
    capabilities: &Capabilities,
) -> Result<DeferredWork> {
    let mut deferred_work = DeferredWork::default();
    innodb(session, &mut deferred_work).await?;
    if capabilities.engine.as_ref().is_some_and(|engine| engine.eq_ignore_ascii_case("rocksdb")) {
        myrocks(session, &mut deferred_work).await?;
    }
    Ok(deferred_work)
}

/// The highest value that a level has on a quiet server.
pub(super) fn quiet_at(level: &str, deferred_work: &DeferredWork, bounds: &Bounds) -> Option<i64> {
    match level {
        "dirty_bytes" => deferred_work.share_bytes(bounds.dirty_share, "buffer_pool_bytes"),
        "checkpoint_age_bytes" => deferred_work.share_bytes(bounds.redo_share, "redo_capacity_bytes"),
        "history_list_length" => Some(bounds.history_length),
        "change_buffer_pages" => {
            let merges_by_itself = deferred_work.capacities.get("merges_by_itself") == Some(&1);
            merges_by_itself.then_some(LEAST_BOUND_COUNT)
        }
        "flushes_pending" | "compactions_pending" | "compactions_running" => Some(0),
        _ => None,
    }
}

async fn innodb(session: &mut LimitedSession<'_, Mysql>, deferred_work: &mut DeferredWork) -> Result<()> {
    let Some(counters) = permitted(counters(session).await)?.map(numbers) else { return Ok(()) };
    let counter = |name: &str| counters.get(name).copied();
    let page_bytes = counter("Innodb_page_size");
    let pages = |name: &str| Some(counter(name)?.saturating_mul(page_bytes?));
    // Compressed pages make the page count times page size a little too small, so the server's own
    // sum comes first.
    let dirty = counter("Innodb_buffer_pool_bytes_dirty").or_else(|| pages("Innodb_buffer_pool_pages_dirty"));
    deferred_work.level("dirty_bytes", dirty);
    deferred_work.capacity("buffer_pool_bytes", pages("Innodb_buffer_pool_pages_total"));
    if let Some(settings) = permitted(variables(session, "innodb%log%").await)? {
        deferred_work.capacity("redo_capacity_bytes", redo_capacity(&counters, &settings));
    }
    let text = permitted(innodb_report(session).await)?.unwrap_or_default();
    deferred_work
        .level("checkpoint_age_bytes", counter("Innodb_checkpoint_age").or_else(|| checkpoint_age(&text)));
    deferred_work
        .level("history_list_length", counted_history(&counters).or_else(|| reported_history(&text)));
    // The change buffer's tree has one root page even when it is empty.
    deferred_work.level("change_buffer_pages", number_after(&text, "Ibuf: size ").map(|pages| pages - 1));
    if !text.is_empty() {
        let version = permitted(cell(session, "SELECT VERSION()").await)?.flatten().unwrap_or_default();
        deferred_work.capacity("merges_by_itself", Some(i64::from(merges_by_itself(&version))));
    }
    Ok(())
}

/// Reads the engine's own report. The answer is one row with type, name and text.
pub(super) async fn innodb_report(session: &mut LimitedSession<'_, Mysql>) -> Result<String> {
    let rows = session.rows("SHOW ENGINE INNODB STATUS").await?;
    Ok(rows.into_iter().next().and_then(|row| row.into_iter().nth(2)?).unwrap_or_default())
}

/// Transactions whose old rows InnoDB has still to purge, as MariaDB and Percona Server count them.
pub(super) fn counted_history(counters: &BTreeMap<String, i64>) -> Option<i64> {
    counters.get("Innodb_history_list_length").copied()
}

/// The same number from the engine's report. It is `None` where the report lacks it.
pub(super) fn reported_history(report: &str) -> Option<i64> {
    number_after(report, "History list length ")
}

/// Reads the levels from the engine's tables in `information_schema`.
async fn myrocks(session: &mut LimitedSession<'_, Mysql>, deferred_work: &mut DeferredWork) -> Result<()> {
    let sql = "SELECT stat_type, sum(value) FROM information_schema.ROCKSDB_CFSTATS GROUP BY stat_type";
    for row in permitted(session.rows(sql).await)?.unwrap_or_default() {
        let mut cells = row.into_iter().flatten();
        let (Some(kind), Some(value)) = (cells.next(), cells.next()) else { continue };
        if let Some((_, name)) = COLUMN_FAMILIES.iter().find(|(known, _)| *known == kind) {
            deferred_work.level(name, value.parse().ok());
        }
    }
    let sql = "SELECT count(*) FROM information_schema.ROCKSDB_ACTIVE_COMPACTION_STATS";
    let running = permitted(session.rows(sql).await)?.and_then(|rows| first_i64(&rows));
    deferred_work.level("compactions_running", running);
    Ok(())
}

fn merges_by_itself(version: &str) -> bool {
    !version.contains("MariaDB") || version_numbers(version) < MARIADB_MERGES_ON_READ_SINCE
}

/// Size of all redo files together. MySQL has one capacity setting since 8.0.30, and before that a
/// number of files of equal size.
fn redo_capacity(counters: &BTreeMap<String, i64>, settings: &BTreeMap<String, String>) -> Option<i64> {
    let setting = |name: &str| settings.get(name)?.parse::<i64>().ok();
    let in_force = counters.get("Innodb_redo_log_capacity_resized").copied();
    in_force.or_else(|| setting("innodb_redo_log_capacity")).or_else(|| {
        let files = setting("innodb_log_files_in_group").unwrap_or(1);
        Some(setting("innodb_log_file_size")?.saturating_mul(files))
    })
}

fn checkpoint_age(report: &str) -> Option<i64> {
    let now = number_after(report, "Log sequence number")?;
    Some(now - number_after(report, "Last checkpoint at")?)
}

/// The number after `label` at the start of a line.
fn number_after(report: &str, label: &str) -> Option<i64> {
    let rest = report.lines().find_map(|line| line.strip_prefix(label))?.trim_start();
    let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::product::TEST_BOUNDS;

    const REPORT: &str = "History list length 17\n---\nIbuf: size 3, free list len 0, seg size 5, 9 merges\n---\nLOG\n---\n\
                          Log sequence number          19643184\nLog flushed up to 19643184\n\
                          Last checkpoint at           19000000\n";

    #[test]
    fn the_engines_report_tells_age_history_and_change_buffer() {
        assert_eq!(checkpoint_age(REPORT), Some(643_184));
        assert_eq!(number_after(REPORT, "History list length "), Some(17));
        assert_eq!(number_after(REPORT, "Ibuf: size "), Some(3));
        assert_eq!((checkpoint_age(""), number_after("Ibuf: size x", "Ibuf: size ")), (None, None));
    }

    #[test]
    fn bounds_are_shares_of_what_the_server_has_and_never_less_than_an_idle_one_needs() {
        let capacities = |pairs: &[(&str, i64)]| DeferredWork {
            capacities: pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            ..DeferredWork::default()
        };
        let of = |deferred_work: &DeferredWork| {
            ["dirty_bytes", "checkpoint_age_bytes", "change_buffer_pages", "memtable_bytes"]
                .map(|level| quiet_at(level, deferred_work, &TEST_BOUNDS))
        };
        let big = [("buffer_pool_bytes", 1 << 30), ("redo_capacity_bytes", 1 << 30), ("merges_by_itself", 1)];
        assert_eq!(of(&capacities(&big)), [Some(21_474_836), Some(107_374_182), Some(1000), None]);
        let small = [("buffer_pool_bytes", 1 << 20), ("redo_capacity_bytes", 1 << 20)];
        assert_eq!(of(&capacities(&small)), [Some(1 << 20), Some(1 << 20), None, None]);
        assert_eq!(of(&capacities(&[])), [None; 4], "without the whole there is no share");
    }

    #[test]
    fn redo_is_one_capacity_or_files_of_one_size() {
        let settings = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let old = settings(&[("innodb_log_file_size", "1000"), ("innodb_log_files_in_group", "4")]);
        assert_eq!(redo_capacity(&BTreeMap::new(), &old), Some(4000));
        let mariadb = settings(&[("innodb_log_file_size", "1000")]);
        assert_eq!(redo_capacity(&BTreeMap::new(), &mariadb), Some(1000));
        let new = settings(&[("innodb_log_file_size", "1000"), ("innodb_redo_log_capacity", "5000")]);
        assert_eq!(redo_capacity(&BTreeMap::new(), &new), Some(5000));
        let resized = BTreeMap::from([("Innodb_redo_log_capacity_resized".to_owned(), 7000)]);
        assert_eq!(redo_capacity(&resized, &new), Some(7000));
        assert_eq!(redo_capacity(&BTreeMap::new(), &settings(&[])), None);
    }

    #[test]
    fn mariadb_stopped_merging_in_the_background() {
        let of = |versions: &[&str]| versions.iter().map(|text| merges_by_itself(text)).collect::<Vec<_>>();
        assert_eq!(
            of(&["5.6.24-log", "9.7.4", "10.2.11-MariaDB", "10.5.23-MariaDB"]),
            [true, true, true, false]
        );
    }
}
