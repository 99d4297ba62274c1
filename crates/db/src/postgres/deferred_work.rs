//! Reads how much work PostgreSQL has deferred, from its statistics views and the control file.

use super::Postgres;
use super::status::{NEW_NAMES_SINCE, major};
use crate::product::{DeferredWork, LEAST_BOUND_COUNT, LimitedSession, name_value_pairs, permitted};
use crate::{Bounds, Result};

/// Names that are capacities. All others are levels.
const CAPACITIES: &[&str] = &["live_rows", "redo_capacity_bytes"];

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
            Some(((bounds.dead_rows_share * live_rows as f64) as i64).max(LEAST_BOUND_COUNT))
        }
        "vacuums_running" | "autovacuum_workers" | "checkpoints_running" => Some(0),
        _ => None,
    }
}

/// Returns several statements, so that one without permission loses only its own levels.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::product::TEST_BOUNDS;

    #[test]
    fn dead_rows_are_a_share_of_the_live_ones_and_work_has_ended() {
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
    fn version_9_6_is_asked_in_its_own_words() {
        assert!(queries(9).iter().any(|sql| sql.contains("pg_current_xlog_location")));
        assert!(queries(10).iter().all(|sql| !sql.contains("xlog")));
        assert!(queries(9).iter().all(|sql| !sql.contains("backend_type")));
    }
}
