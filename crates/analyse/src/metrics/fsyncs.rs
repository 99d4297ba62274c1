//! Computes how often a server synced its files per commit: redo log, data files and binary log.

use dbdyno_record::{CellRecord, KindSpec, ServerInfo, StatementClass, StepEvent};

use crate::servers::servers_of;
use crate::window::counters::{CounterChange, Counters, change_reported_late, highest, is_reported_late};
use crate::window::{KindSummary, WindowSummary};

/// Counters in which servers count the fsyncs of their logs and data files. Each entry is a set.
/// The first set of which a server has all counters is summed.
///
/// InnoDB counts each fsync(2) and fdatasync(2) that it makes, for data files and redo log alike.
/// `Innodb_os_log_fsyncs` is a part of it, so adding the two would count the log twice.
/// MyRocks, which runs next to it, counts those of its own log. PostgreSQL 14 and 15 count only the
/// log, 16 and 17 count the log and the data files separately, and from 18 on both are in one
/// counter.
const FSYNCS: [&[&str]; 5] = [
    &["Innodb_data_fsyncs", "Rocksdb_wal_synced"],
    &["Innodb_data_fsyncs"],
    &["pg_stat_wal.wal_sync", "pg_stat_io.fsyncs"],
    &["pg_stat_wal.wal_sync"],
    &["pg_stat_io.fsyncs"],
];

/// Counter of the transaction groups that went to the binary log together, in MariaDB and Percona
/// Server 5.5. The file is synced for each `sync_binlog`th group.
const GROUPS: &str = "Binlog_group_commits";
/// Counter of the operations on binary logs other than reads and writes, from the performance
/// schema of MySQL 5.6 and later. It counts the syncs, and a few operations per file that is opened
/// or closed.
const FILE_OPERATIONS: &str = "binlog.COUNT_MISC";
/// Counters of transactions before 5.6, when each was written and synced alone. The first counts
/// those that changed transactional tables, the second the others.
const TRANSACTIONS: [&str; 2] = ["Binlog_cache_use", "Binlog_stmt_cache_use"];
/// Version from which on transactions are written and synced in groups.
const GROUPS_SINCE: [u32; 2] = [5, 6];

/// Engines whose fsyncs are in [`FSYNCS`].
const COUNTED_ENGINES: [&str; 4] = ["innodb", "xtradb", "rocksdb", "myrocks"];
/// PostgreSQL's ways to write its log in which each write is a sync, and none is counted.
const SYNCED_BY_WRITING: [&str; 2] = ["open_datasync", "open_sync"];

/// How often a server syncs its binary log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Binlog {
    /// There is no binary log, or the operating system decides when to write it.
    #[default]
    NotSynced,
    /// The log is synced after this many groups of transactions, or after single ones where there
    /// are no groups.
    Synced { every: u32, in_groups: bool },
}

impl Binlog {
    /// How often the binary log is synced, by the settings of the cell's server when it started.
    pub(crate) fn of_cell(cell: &CellRecord) -> Self {
        servers_of(cell).next().map_or(Self::NotSynced, Self::of)
    }

    fn of(server: &ServerInfo) -> Self {
        let setting = |name: &str| server.settings.get(name).map_or("", String::as_str);
        let is_on = matches!(setting("log_bin").to_ascii_uppercase().as_str(), "ON" | "1");
        // A binary log in InnoDB's files (MariaDB from 12.3) is made durable by the redo log alone.
        let is_a_file = setting("binlog_storage_engine").is_empty();
        match setting("sync_binlog").parse::<u32>() {
            Ok(every @ 1..) if is_on && is_a_file => {
                let mut version = server.version.split('.').map_while(|part| part.parse::<u32>().ok());
                let version = [version.next().unwrap_or(0), version.next().unwrap_or(0)];
                Self::Synced { every, in_groups: version >= GROUPS_SINCE }
            }
            _ => Self::NotSynced,
        }
    }

    /// Number of syncs of the binary log; `None` where it is not known.
    fn syncs(self, step: &WindowSummary<'_>) -> Option<f64> {
        let Self::Synced { every, in_groups } = self else { return Some(0.0) };
        let change = |key: &str| step.change("status", &[key]).map(|change| change.value);
        if let Some(groups) = change(GROUPS) {
            return Some(groups / f64::from(every));
        }
        // Instruments can be switched off. The count is then 0 although the log was opened.
        if highest(step.counters, "status", FILE_OPERATIONS).is_some_and(|count| count > 0) {
            return change(FILE_OPERATIONS);
        }
        let alone = || TRANSACTIONS.into_iter().filter_map(change).reduce(|all, one| all + one);
        if in_groups { None } else { alone().map(|transactions| transactions / f64::from(every)) }
    }

    pub(crate) fn is_counted(self, counters: &Counters) -> bool {
        let has = |key: &str| highest(counters, "status", key);
        match self {
            Self::NotSynced => true,
            Self::Synced { in_groups, .. } => {
                has(GROUPS).is_some() || has(FILE_OPERATIONS).is_some_and(|count| count > 0) || !in_groups
            }
        }
    }
}

/// How often the cell's server syncs its binary log in addition to the engine's files; `None` where
/// commits are made durable in a way that the server does not count.
pub(crate) fn syncs_of(cell: &CellRecord) -> Option<Binlog> {
    is_counted(servers_of(cell).next()).then(|| Binlog::of_cell(cell))
}

fn is_counted(server: Option<&ServerInfo>) -> bool {
    let Some(server) = server else { return true };
    let engine = server.tables_engine.as_ref().map(|engine| engine.to_ascii_lowercase());
    let method = server.settings.get("wal_sync_method").map(String::as_str);
    engine.is_none_or(|engine| COUNTED_ENGINES.contains(&engine.as_str()))
        && method.is_none_or(|method| !SYNCED_BY_WRITING.contains(&method))
}

/// Returns the fsyncs per commit.
///
/// The figure is `None` where the server does not count all of its fsyncs (`syncs` is then `None`
/// too), and where its sessions had not reported all of them. It is also `None` for a step that is
/// one piece of work, because commits mean nothing for it.
pub(crate) fn per_commit(step: &WindowSummary<'_>, syncs: Option<Binlog>) -> Option<f64> {
    if !has_commits(step) {
        return None;
    }
    let binlog = syncs?;
    let CounterChange { value, between } = FSYNCS.iter().find_map(|keys| change(step, keys))?;
    let fsyncs = value + binlog.syncs(step)?;
    let commits =
        |kind: &KindSummary<'_>| kind.intervals.sum(between).operations * commits_per_operation(step, kind);
    let commits: f64 = step.kinds.iter().filter(|kind| kind.spec.writes()).map(commits).sum();
    (commits > 0.0).then(|| fsyncs / commits)
}

/// The change over the window, or over the whole step for counters that sessions report late.
fn change(step: &WindowSummary<'_>, keys: &[&str]) -> Option<CounterChange> {
    if keys.iter().any(|key| is_reported_late(key)) {
        return change_reported_late(step.counters, keys);
    }
    step.change("status", keys)
}

/// Whether a step has commits that can be counted: it writes, and is not one piece of work.
fn has_commits(step: &WindowSummary<'_>) -> bool {
    step.spec.kinds.iter().any(KindSpec::writes) && !step.is_one_piece
}

/// Commits that had something to make durable, per operation of `kind`, on average over the window.
/// A transaction commits once; otherwise each statement that changed a row commits. The result is 1
/// where the record does not count the operation's statements.
fn commits_per_operation(step: &WindowSummary<'_>, kind: &KindSummary<'_>) -> f64 {
    let mut changed = None;
    for event in step.events {
        let StepEvent::Statement { kind: of, statement, done, empty, .. } = event else { continue };
        if *of != kind.spec.kind {
            continue;
        }
        match StatementClass::of(statement) {
            StatementClass::Commit => {
                changed = Some(*done);
                break;
            }
            StatementClass::Write | StatementClass::Delete => {
                changed = Some(changed.unwrap_or(0) + done.saturating_sub(*empty));
            }
            StatementClass::Reconnect | StatementClass::Other => {}
        }
    }
    let operations = kind.answered.operations;
    match changed {
        Some(changed) if operations > 0.0 => changed as f64 / operations,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_record::StepRecord;

    use super::*;
    use crate::fixtures::{interval, read_write_step, series, summary, with_counters};

    fn server(version: &str, settings: &[(&str, &str)]) -> ServerInfo {
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ServerInfo { version: version.to_owned(), settings: settings.collect(), ..ServerInfo::default() }
    }

    /// fsyncs per commit for 10 inserts and 10 deletes, between two samples of these counters.
    fn found(binlog: Binlog, counters: &[(&str, i64)]) -> Option<f64> {
        let keys: Vec<&str> = counters.iter().map(|(key, _)| *key).collect();
        let ends: Vec<i64> = counters.iter().map(|(_, value)| *value).collect();
        let counters = series("status", &keys, &[(0, vec![0; keys.len()]), (2_500_000, ends)]);
        per_commit(&summary(&with_counters(&counters)), Some(binlog))
    }

    /// 20 fsyncs for 10 inserts and 10 deletes, for which the record counts these statements: kind,
    /// name, done, empty.
    fn found_with(syncs: Option<Binlog>, statements: &[(&str, &str, u64, u64)]) -> Option<f64> {
        let counters = series("status", &[INNODB.0], &[(0, vec![0]), (2_500_000, vec![INNODB.1])]);
        let event = |(kind, statement, done, empty): &(&str, &str, u64, u64)| StepEvent::Statement {
            kind: (*kind).to_owned(),
            statement: (*statement).to_owned(),
            from_us: 0,
            to_us: 2_500_000,
            done: *done,
            empty: *empty,
            rows: done - empty,
        };
        let mut step = with_counters(&counters);
        step.events.extend(statements.iter().map(event));
        per_commit(&summary(&step), syncs)
    }

    const INNODB: (&str, i64) = ("Innodb_data_fsyncs", 20);

    #[test]
    fn the_binary_log_is_synced_as_its_settings_say() {
        let of = |settings: &[(&str, &str)]| Binlog::of(&server("8.0.31", settings));
        let synced = |every| Binlog::Synced { every, in_groups: true };
        assert_eq!(of(&[("log_bin", "ON"), ("sync_binlog", "1")]), synced(1));
        assert_eq!(of(&[("log_bin", "1"), ("sync_binlog", "100")]), synced(100));
        for none in
            [&[("log_bin", "OFF"), ("sync_binlog", "1")][..], &[("log_bin", "ON"), ("sync_binlog", "0")], &[]]
        {
            assert_eq!(of(none), Binlog::NotSynced, "{none:?}");
        }
        let in_innodb = [("log_bin", "ON"), ("sync_binlog", "1"), ("binlog_storage_engine", "innodb")];
        assert_eq!(of(&in_innodb), Binlog::NotSynced);
        let old = server("5.5.34", &[("log_bin", "ON"), ("sync_binlog", "1")]);
        assert_eq!(Binlog::of(&old), Binlog::Synced { every: 1, in_groups: false });
    }

    #[test]
    fn syncs_of_the_binary_log_are_added_in_each_servers_way() {
        let every = |every, in_groups| Binlog::Synced { every, in_groups };
        assert_eq!(found(Binlog::NotSynced, &[INNODB, ("Binlog_group_commits", 20)]), Some(1.0));
        assert_eq!(found(every(1, true), &[INNODB, ("Binlog_group_commits", 20)]), Some(2.0));
        assert_eq!(found(every(10, true), &[INNODB, ("Binlog_group_commits", 20)]), Some(1.1));
        assert_eq!(found(every(10, true), &[INNODB, ("binlog.COUNT_MISC", 2)]), Some(1.1));
        let old = [INNODB, ("Binlog_cache_use", 18), ("Binlog_stmt_cache_use", 2)];
        assert_eq!(found(every(1, false), &old), Some(2.0));
        assert_eq!(found(every(1, false), &old[..2]), Some(1.9));
    }

    #[test]
    fn syncs_that_are_not_counted_leave_no_figure() {
        let synced = Binlog::Synced { every: 1, in_groups: true };
        assert_eq!(found(synced, &[INNODB, ("Binlog_cache_use", 20)]), None);
        assert_eq!(found(synced, &[INNODB, ("binlog.COUNT_MISC", 0)]), None, "not instrumented");
    }

    #[test]
    fn a_statement_that_found_no_row_commits_nothing() {
        let alone = Some(Binlog::NotSynced);
        // 10 inserts, and 10 deletes of which 9 found nothing, make 11 commits.
        let deletes = [("delete", "delete", 10, 9)];
        assert_eq!(found_with(alone, &deletes), Some(20.0 / 11.0));
    }

    #[test]
    fn each_statement_outside_of_a_transaction_is_a_commit_and_a_transaction_is_one() {
        let alone = Some(Binlog::NotSynced);
        // Each of the 10 inserts is an operation with three updates. One update in ten found its
        // row changed already.
        let updates = [
            ("insert", "index-update", 20, 2),
            ("insert", "point-select", 90, 0),
            ("insert", "non-index-update", 10, 1),
        ];
        assert_eq!(found_with(alone, &updates), Some(20.0 / (27.0 + 10.0)));
        let transaction =
            [("insert", "begin", 10, 10), ("insert", "index-update", 20, 2), ("insert", "commit", 10, 10)];
        assert_eq!(found_with(alone, &transaction), Some(1.0));
        assert_eq!(found_with(None, &transaction), None);
    }

    #[test]
    fn a_step_that_ends_by_a_count_has_fsyncs_per_commit_and_one_piece_of_work_has_none() {
        let mut step = read_write_step();
        step.spec.window = dbdyno_record::WindowRule::LastEnded;
        assert!(has_commits(&summary(&step)));
        step.spec.headline.kind = "delete".to_owned();
        step.intervals.truncate(2);
        assert!(!has_commits(&summary(&step)), "the first second of two kinds");
    }

    #[test]
    fn there_is_no_figure_where_the_server_does_not_count() {
        let with = |engine: Option<&str>, settings: &[(&str, &str)]| {
            let server = ServerInfo { tables_engine: engine.map(str::to_owned), ..server("17.0", settings) };
            is_counted(Some(&server))
        };
        assert!(with(Some("InnoDB"), &[]) && with(Some("ROCKSDB"), &[]) && with(None, &[]));
        assert!(!with(Some("Aria"), &[]) && !with(Some("myisam"), &[]));
        for method in ["fdatasync", "fsync", "fsync_writethrough"] {
            assert!(with(None, &[("wal_sync_method", method)]), "{method}");
        }
        for method in ["open_datasync", "open_sync"] {
            assert!(!with(None, &[("wal_sync_method", method)]), "{method}");
        }
    }

    #[test]
    fn logs_of_two_engines_are_added() {
        assert_eq!(found(Binlog::NotSynced, &[INNODB, ("Rocksdb_wal_synced", 20)]), Some(2.0));
    }

    /// 12 inserts and 12 deletes in 3 s. At the window's end (2.5 s) their sessions have reported 3
    /// of their fsyncs, and after the sessions' end all 24.
    fn reported_late(left: Option<i64>) -> StepRecord {
        let mut step = read_write_step();
        let last = [31].into_iter().chain(left).collect();
        let samples = [(-50_000, vec![7]), (1_000_000, vec![9]), (2_510_000, vec![10]), (3_060_000, last)];
        let status = series("status", &["pg_stat_io.fsyncs", "load_sessions"], &samples);
        step.counters.extend(status);
        step
    }

    fn fsyncs_of(step: &StepRecord) -> Option<f64> {
        per_commit(&summary(step), Some(Binlog::NotSynced))
    }

    #[test]
    fn counts_that_sessions_report_when_they_end_cover_all_their_operations() {
        assert_eq!(fsyncs_of(&reported_late(Some(0))), Some(1.0));
    }

    #[test]
    fn operations_after_the_window_count_too_because_their_fsyncs_do() {
        let mut step = reported_late(Some(0));
        step.intervals.push(interval(3_000_000, 3_050_000, 1, "insert", 24, 1_200));
        assert_eq!(fsyncs_of(&step), Some(0.5));
    }

    #[test]
    fn sessions_that_are_left_or_were_not_counted_leave_no_figure() {
        assert_eq!((fsyncs_of(&reported_late(Some(1))), fsyncs_of(&reported_late(None))), (None, None));
    }
}
