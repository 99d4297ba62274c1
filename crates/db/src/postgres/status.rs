//! Reads PostgreSQL's own counters and settings, finds out which product the server is, and reads
//! and finishes the work that it has deferred.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::{Postgres, PostgresSession};
use crate::foreign::{Identification, Identity, identify, identifying_names};
use crate::product::{
    Answering, DeferredWork, Description, Limited, LimitedSession, MIN_BOUND_COUNT, Product, Texts,
    Unreported, UpkeepWork, answering, column, first_value, name_value_pairs, permitted, version_numbers,
};
use crate::{Bounds, Class, DbError, Result, Session, first_i64};

/// Settings that may hold a password. Their values are never kept.
const SECRET_SETTINGS: &[&str] = &["primary_conninfo"];

/// Views with one row, the first major version that has each, and the condition that picks the row.
/// Each numeric column becomes a counter `view.column`.
const VIEWS: &[(&str, u32, &str)] = &[
    ("pg_stat_database", 9, "WHERE datname = current_database()"),
    ("pg_stat_bgwriter", 9, ""),
    ("pg_stat_checkpointer", 17, ""),
    ("pg_stat_wal", 14, ""),
];

/// The first version with `pg_stat_io`, which has a row for each kind of process, object and
/// purpose. The counters are sums over these rows. The column `op_bytes` is no counter.
const IO_SINCE: u32 = 16;
const IO_SUMS: &str = "SELECT 'pg_stat_io.' || key, sum(value::numeric)::text \
     FROM pg_stat_io AS view, json_each_text(row_to_json(view)) \
     WHERE value ~ '^[0-9.]+$' AND key <> 'op_bytes' GROUP BY key";

/// The first version in which sessions report one of these counters late: the write-ahead log's
/// fsyncs.
const REPORTS_LATE_SINCE: u32 = 14;
/// The first version that keeps counters in shared memory. Before it, a separate process collects
/// them and writes them to a file, which readers get as long as it is not older than [`FILE_AGE`]
/// (`PGSTAT_STAT_INTERVAL`).
const IN_MEMORY_SINCE: u32 = 15;
const FILE_AGE: Duration = Duration::from_millis(500);

/// Query that counts dbdyno's sessions in the session's database, this one included.
const SESSIONS: &str = "SELECT count(*)::text FROM pg_stat_activity \
     WHERE application_name = 'dbdyno' AND datname = current_database()";

/// Query for session settings that change what a load measures, and for the database's collation.
const SESSION: &str = "SELECT name, current_setting(name) FROM pg_settings WHERE name IN ('client_encoding', 'synchronous_commit', \
     'transaction_isolation', 'search_path', 'work_mem', 'jit', 'plan_cache_mode') UNION ALL \
     SELECT 'lc_collate', datcollate::text FROM pg_database WHERE datname = current_database()";

/// Query for settings that someone has set, with the source of each, and for those that wait for a
/// restart.
const SOURCES: &str = "SELECT name, CASE WHEN pending_restart THEN source || ', waits for a restart' ELSE source END \
     FROM pg_settings WHERE pending_restart OR source NOT IN ('default', 'override', 'client')";

/// The version in which the write-ahead log's functions lost the `xlog` in their names, and
/// `pg_stat_activity` got the column `backend_type`.
const NEW_NAMES_SINCE: u32 = 10;

/// Reads the counters for the session's database and for the whole server, as the server keeps
/// them. The server counts a session's own work up to a second late. A view that the server lacks
/// is skipped, here and in the session's later queries.
pub(super) async fn counters(session: &mut LimitedSession<'_, Postgres>) -> Result<Texts> {
    let parts = match session.counted.take() {
        Some(parts) => parts,
        None => counters_queries(major(session)),
    };
    if parts.is_empty() {
        session.counted = Some(parts);
        return Ok(Texts::new());
    }
    if let Some(counters) = permitted(name_value_pairs(session, &parts.join(" UNION ALL ")).await)? {
        session.counted = Some(parts);
        return Ok(counters);
    }
    let (mut counters, mut answered) = (Texts::new(), Vec::new());
    for part in parts {
        if let Some(found) = permitted(name_value_pairs(session, &part).await)? {
            counters.extend(found);
            answered.push(part);
        }
    }
    session.counted = Some(answered);
    Ok(counters)
}

/// Returns one query for each view with counters. Each query's answer has pairs of name and value.
fn counters_queries(major: u32) -> Vec<String> {
    let counters = |(view, _, condition): &(&str, u32, &str)| {
        format!(
            "SELECT '{view}.' || key, value FROM (SELECT * FROM {view} {condition}) AS view, \
             json_each_text(row_to_json(view)) WHERE key <> 'datid'"
        )
    };
    let views = VIEWS.iter().filter(|(_, since, _)| major >= *since);
    let mut parts: Vec<String> = views.map(counters).collect();
    if major >= IO_SINCE {
        parts.push(IO_SUMS.to_owned());
    }
    let position = if major >= NEW_NAMES_SINCE {
        "pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')"
    } else {
        "pg_xlog_location_diff(pg_current_xlog_location(), '0/0')"
    };
    // A standby has no position of its own, and asking for it is an error.
    parts.push(format!(
        "SELECT 'wal_position_bytes', CASE WHEN NOT pg_is_in_recovery() THEN {position}::text END"
    ));
    parts
}

/// Reads product, version and all settings, with the units that `SHOW` prints.
pub(super) async fn describe(session: &mut LimitedSession<'_, Postgres>) -> Result<Description> {
    let mut settings = permitted(name_value_pairs(session, "SHOW ALL").await)?.unwrap_or_default();
    for secret in SECRET_SETTINGS {
        if let Some(value) = settings.get_mut(*secret).filter(|value| !value.is_empty()) {
            "***".clone_into(value);
        }
    }
    let identity = identity(session, &settings).await?;
    let is_product = identity.foreign.as_ref().is_none_or(|foreign| foreign.is_proxy);
    // Before 12 there was only one table access method.
    let only = if is_product { "heap" } else { "" };
    Ok(Description {
        engine: settings.get("default_table_access_method").map_or(only, String::as_str).to_owned(),
        settings,
        // Another product's server with the same protocol may lack such views.
        session: name_value_pairs(session, SESSION).await.unwrap_or_default(),
        sources: name_value_pairs(session, SOURCES).await.unwrap_or_default(),
        ..Description::of(identity)
    })
}

/// Settings that every build of the product shows, and that other servers with the same protocol
/// rarely have.
const OWN_SETTINGS: &[&str] = &["block_size", "server_version_num", "shared_buffers", "wal_segment_size"];

/// Finds out which product the server is. A server that reports a version like PostgreSQL's may
/// still have functions that only another product has. They are looked up in its catalogue, because
/// calling a missing one would leave an error in the server's log.
async fn identity(session: &mut LimitedSession<'_, Postgres>, settings: &Texts) -> Result<Identity> {
    let at_login = session.server_version().to_owned();
    let said = permitted(first_value(session, "SELECT version()").await)?.flatten().unwrap_or_default();
    let mut has = settings.clone();
    let names: Vec<String> = identifying_names(Postgres::NAME).map(|name| format!("'{name}'")).collect();
    let functions =
        format!("SELECT proname FROM pg_proc WHERE pronargs = 0 AND proname IN ({})", names.join(", "));
    for name in permitted(column(session, &functions).await)?.unwrap_or_default() {
        // The name comes from dbdyno's own list, so that no statement contains a function name from
        // the server.
        let Some(name) = identifying_names(Postgres::NAME).find(|known| *known == name) else { continue };
        let version = permitted(first_value(session, &format!("SELECT {name}()")).await)?.flatten();
        has.insert(name.to_owned(), version.unwrap_or_default());
    }
    let version = settings.get("server_version").map_or(at_login.as_str(), String::as_str);
    let is_own = names_itself(&said) && OWN_SETTINGS.iter().all(|name| settings.contains_key(*name));
    let number = session.connection_id();
    let identification = Identification {
        driver: Postgres::NAME,
        protocol: Postgres::PROTOCOL,
        said: &[&said, &at_login],
        has: &has,
        own: is_own.then(|| ("PostgreSQL", version, version_numbers(version))),
        through_proxy: answering(session, "pg_backend_pid()", number).await == Answering::Another,
    };
    Ok(identify(&identification))
}

/// Whether a version text has the product's own form: `PostgreSQL 15.19 on x86_64-pc-linux-gnu,
/// compiled by gcc (GCC) 12.2.0, 64-bit`. Words from its builder may follow the number.
fn names_itself(version: &str) -> bool {
    let number = version.strip_prefix("PostgreSQL ").and_then(|rest| rest.split([' ', ',']).next());
    number.is_some_and(|number| number.starts_with(|sign: char| sign.is_ascii_digit()))
        && version.contains("compiled by ")
        && version.ends_with("-bit")
}

/// Returns the server's major version, which is 9 for 9.6.
pub(super) fn major(session: &PostgresSession) -> u32 {
    version_numbers(session.server_version())[0]
}

/// Returns how many sessions may have work that the server has not counted yet. Sessions report
/// their work at most once per second, and when they end (`pgstat_report_stat`).
pub(super) async fn unreported(session: &mut LimitedSession<'_, Postgres>) -> Result<Option<Unreported>> {
    let major = major(session);
    if major < REPORTS_LATE_SINCE {
        return Ok(None);
    }
    let sessions =
        permitted(first_value(session, SESSIONS).await)?.flatten().and_then(|count| count.parse().ok());
    let age = if major < IN_MEMORY_SINCE { FILE_AGE } else { Duration::ZERO };
    Ok(sessions.map(|sessions| Unreported { sessions, age }))
}

/// Names in the answers to [`queries`] that are capacities. All others are levels.
const CAPACITIES: &[&str] = &["live_rows", "redo_capacity_bytes"];

/// Reads the deferred work. Levels that the session may not read are absent.
pub(super) async fn read(session: &mut LimitedSession<'_, Postgres>) -> Result<DeferredWork> {
    let mut deferred_work = DeferredWork::default();
    for sql in queries(major(session)) {
        for (name, value) in permitted(name_value_pairs(session, sql).await)?.unwrap_or_default() {
            let value = value.parse::<i64>().ok();
            if CAPACITIES.contains(&name.as_str()) {
                deferred_work.capacity(&name, value);
            } else {
                deferred_work.level(&name, value);
            }
        }
    }
    Ok(deferred_work)
}

/// The highest value that a level has on a quiet server.
pub(super) fn quiet_at(level: &str, deferred_work: &DeferredWork, bounds: &Bounds) -> Option<i64> {
    match level {
        "wal_since_checkpoint_bytes" => deferred_work.share_bytes(bounds.redo_share, "redo_capacity_bytes"),
        "dead_rows" => {
            let live_rows = *deferred_work.capacities.get("live_rows")?;
            Some(((bounds.dead_rows_share * live_rows as f64) as i64).max(MIN_BOUND_COUNT))
        }
        "vacuums_running" | "autovacuum_workers" | "checkpoints_running" => Some(0),
        _ => None,
    }
}

/// Returns separate queries, so that one without permission loses only its own levels.
fn queries(major: u32) -> [&'static str; 4] {
    let rows = "SELECT 'dead_rows', sum(n_dead_tup)::bigint::text FROM pg_stat_user_tables UNION ALL \
                SELECT 'live_rows', sum(n_live_tup)::bigint::text FROM pg_stat_user_tables";
    let vacuums = "SELECT 'vacuums_running', count(*)::text FROM pg_stat_progress_vacuum";
    if major < NEW_NAMES_SINCE {
        return [
            rows,
            vacuums,
            "SELECT 'wal_since_checkpoint_bytes', \
             pg_xlog_location_diff(pg_current_xlog_location(), redo_location)::bigint::text FROM pg_control_checkpoint() \
             UNION ALL SELECT 'redo_capacity_bytes', pg_size_bytes(current_setting('max_wal_size'))::text",
            "SELECT 'autovacuum_workers', count(*)::text FROM pg_stat_activity WHERE query LIKE 'autovacuum: %'",
        ];
    }
    [
        rows,
        vacuums,
        "SELECT 'wal_since_checkpoint_bytes', pg_wal_lsn_diff(pg_current_wal_lsn(), redo_lsn)::bigint::text \
         FROM pg_control_checkpoint() \
         UNION ALL SELECT 'redo_capacity_bytes', pg_size_bytes(current_setting('max_wal_size'))::text",
        // An idle checkpointer waits for work. One that works waits for the disk, for its pacing,
        // or for nothing.
        "SELECT 'autovacuum_workers', count(*)::text FROM pg_stat_activity WHERE backend_type = 'autovacuum worker' \
         UNION ALL SELECT 'checkpoints_running', count(*)::text FROM pg_stat_activity \
         WHERE backend_type = 'checkpointer' AND wait_event_type IS DISTINCT FROM 'Activity'",
    ]
}

/// First version whose VACUUM has an option to clean indexes in any case. From version 14 on,
/// VACUUM may otherwise skip them.
const INDEX_CLEANUP_SINCE: u32 = 12;

impl UpkeepWork<'_, Postgres> {
    /// Vacuums each table on a separate connection, so these parts' durations overlap. The
    /// checkpoint needs rights over the whole server, so it is skipped on one that others run.
    pub(super) async fn vacuum(&mut self, tables: &[String]) -> Result<()> {
        if !self.capabilities.gather_statistics.starts_with("VACUUM") {
            return self.without_vacuum(tables).await;
        }
        self.dead_rows(tables, "before").await?;
        let major = major(&self.session);
        let begun = Instant::now();
        let mut vacuums = JoinSet::new();
        for (number, table) in tables.iter().enumerate() {
            let mut another = self.session.another().await?;
            another.exchange.limit = self.session.exchange.limit;
            vacuums.spawn(vacuum(another, number, vacuum_statement(table, major)));
        }
        let mut took = vec![Duration::ZERO; tables.len()];
        while let Some(ended) = vacuums.join_next().await {
            let number = ended.map_err(|error| DbError::new(Class::Fatal, "", error.to_string()))??;
            took[number] = begun.elapsed();
        }
        for (table, took) in tables.iter().zip(took) {
            self.report.parts.push((format!("vacuum {table}"), took));
        }
        if self.owned {
            let part_start = Instant::now();
            self.session.query(b"CHECKPOINT").await?;
            self.ended("checkpoint", part_start);
        } else {
            self.note("external server: no checkpoint was requested");
        }
        // Before 15 the statistics are half a second late, so the rows are counted after the wait.
        self.come_to_rest().await?;
        self.dead_rows(tables, "after").await
    }

    /// Only gathers statistics, because the server has no VACUUM. It does nothing if the server
    /// cannot gather them either.
    async fn without_vacuum(&mut self, tables: &[String]) -> Result<()> {
        self.note("the server has no VACUUM");
        let words = self.capabilities.gather_statistics;
        for table in tables.iter().filter(|_| !words.is_empty()) {
            let part_start = Instant::now();
            let sql = format!("{words} \"{}\"", table.replace('"', "\"\""));
            self.session.query(sql.as_bytes()).await?;
            self.ended(&format!("analyze {table}"), part_start);
        }
        Ok(())
    }

    /// Records the number of deleted rows that are still in the tables, as the server estimates it.
    async fn dead_rows(&mut self, tables: &[String], when: &str) -> Result<()> {
        let names: Vec<String> = tables.iter().map(|table| literal(table)).collect();
        let sql = format!(
            "SELECT sum(n_dead_tup)::bigint FROM pg_stat_user_tables WHERE relname IN ({})",
            names.join(", ")
        );
        let rows = match names.is_empty() {
            true => None,
            false => permitted(self.session.rows(&sql).await)?.as_ref().and_then(first_i64),
        };
        self.fact(&format!("dead_rows_{when}"), rows);
        Ok(())
    }
}

/// Runs a VACUUM, and returns the `number` of its table.
async fn vacuum(mut session: PostgresSession, number: usize, sql: String) -> Result<usize> {
    Limited(&mut session).query(sql.as_bytes()).await?;
    session.close().await;
    Ok(number)
}

fn vacuum_statement(table: &str, major: u32) -> String {
    let cleanup = if major >= INDEX_CLEANUP_SINCE { ", INDEX_CLEANUP ON" } else { "" };
    format!("VACUUM (VERBOSE, ANALYZE{cleanup}) \"{}\"", table.replace('"', "\"\""))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::product::TEST_BOUNDS;

    #[test]
    fn each_version_is_asked_only_for_views_that_it_has() {
        let views = |major| {
            let sql = counters_queries(major).concat();
            let all = ["checkpointer", "pg_stat_wal", "pg_stat_io", "xlog", "wal_lsn"];
            all.into_iter().filter(|word| sql.contains(word)).collect::<Vec<_>>()
        };
        assert_eq!(views(9), ["xlog"]);
        assert_eq!(views(10), ["wal_lsn"]);
        assert_eq!(views(15), ["pg_stat_wal", "wal_lsn"]);
        assert_eq!(views(16), ["pg_stat_wal", "pg_stat_io", "wal_lsn"]);
        assert_eq!(views(18), ["checkpointer", "pg_stat_wal", "pg_stat_io", "wal_lsn"]);
    }

    #[test]
    fn a_quiet_server_has_few_dead_rows_and_no_work_in_progress() {
        let deferred_work = |live_rows| {
            let mut deferred_work = DeferredWork::default();
            deferred_work.capacity("live_rows", Some(live_rows));
            deferred_work
        };
        let of = |level: &str, live_rows| quiet_at(level, &deferred_work(live_rows), &TEST_BOUNDS);
        assert_eq!((of("dead_rows", 50_000), of("dead_rows", 200_000)), (Some(1000), Some(2000)));
        assert_eq!((of("vacuums_running", 1), of("other", 1)), (Some(0), None));
    }

    #[test]
    fn version_9_6_is_queried_with_its_own_function_names() {
        assert!(queries(9).iter().any(|sql| sql.contains("pg_current_xlog_location")));
        assert!(queries(10).iter().all(|sql| !sql.contains("xlog")));
        assert!(queries(9).iter().all(|sql| !sql.contains("backend_type")));
    }

    #[test]
    fn vacuum_cleans_indexes_where_the_version_has_that_option() {
        assert_eq!(vacuum_statement("pi1", 9), "VACUUM (VERBOSE, ANALYZE) \"pi1\"");
        assert_eq!(vacuum_statement("p\"i", 12), "VACUUM (VERBOSE, ANALYZE, INDEX_CLEANUP ON) \"p\"\"i\"");
    }
}
