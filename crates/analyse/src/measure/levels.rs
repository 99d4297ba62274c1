//! Levels of put-off work in words and with their units.

/// What people call a level.
pub(crate) fn words(level: &str) -> &str {
    match level {
        "dirty_bytes" => "dirty pages",
        "checkpoint_age_bytes" => "redo since the checkpoint",
        "history_list_length" => "transactions to purge",
        "change_buffer_pages" => "change buffer pages to merge",
        "memtable_bytes" => "memtables",
        "flushes_pending" => "memtable flushes pending",
        "compactions_pending" => "compactions pending",
        "compactions_running" => "compactions running",
        "dead_rows" => "dead rows",
        "wal_since_checkpoint_bytes" => "log since the checkpoint",
        "vacuums_running" => "vacuums running",
        "autovacuum_workers" => "autovacuum workers",
        "checkpoints_running" => "checkpoints running",
        "wal_bytes" => "log to write back",
        "device_requests_in_flight" => "requests at the device",
        "device_written_bytes" => "written to the device in a second",
        other => other,
    }
}

pub(crate) fn is_bytes(level: &str) -> bool {
    level.ends_with("_bytes")
}

/// `512.0 MB` of a level in bytes, `17` of any other.
pub(crate) fn value(level: &str, value: i64) -> String {
    if is_bytes(level) { megabytes(value) } else { value.to_string() }
}

/// 10^6 bytes.
pub(crate) fn megabytes(bytes: i64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_megabytes_and_counts_stay_counts() {
        assert_eq!(value("dirty_bytes", 1_250_000), "1.2 MB");
        assert_eq!(value("history_list_length", 17), "17");
        assert_eq!((words("dead_rows"), words("unheard_of")), ("dead rows", "unheard_of"));
    }
}
