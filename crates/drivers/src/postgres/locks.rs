//! How a connection locks a database of PostgreSQL: with an advisory lock.

use crate::product::Locks;

/// 0 is for ever; the setting came with 14.
pub(super) const STAY_WHILE_IDLE: &str =
    "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'";

/// Locks are numbers, and each database has its own: `dbdyno` in ASCII, its upper and its lower
/// half.
const KEY: [u32; 2] = [0x6462, 0x6479_6e6f];

pub(super) fn of_session() -> Locks {
    let [upper, lower] = KEY;
    let key = u64::from(upper) << 32 | u64::from(lower);
    let of_database = format!(
        "locktype = 'advisory' AND classid = {upper} AND objid = {lower} AND objsubid = 1 AND granted \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    );
    Locks {
        own_number: "pg_backend_pid()",
        server: "SELECT concat_ws('|', current_setting('port'), pg_postmaster_start_time(), current_database())",
        take: format!("SELECT pg_try_advisory_lock({key})::int"),
        is_kept: format!("SELECT COUNT(*) FROM pg_locks WHERE {of_database} AND pid = pg_backend_pid()"),
        holder: format!(
            "SELECT pid, usename || '@' || coalesce(host(client_addr) || ':' || client_port, 'localhost') \
             FROM pg_locks LEFT JOIN pg_stat_activity USING (pid) WHERE {of_database}"
        ),
        release: format!("SELECT pg_advisory_unlock({key})"),
        others: "SELECT 'connection ' || pid || ' of ' || usename || ': ' || left(query, 80) FROM pg_stat_activity \
                 WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'active' \
                 AND query NOT LIKE 'autovacuum:%' AND clock_timestamp() - query_start >= interval '1 s'",
    }
}
