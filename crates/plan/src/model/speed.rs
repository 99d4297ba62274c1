//! Assumed speeds and sizes of each kind of server: the documented guesses that estimates are made
//! of.

use super::VariantKind;

const MEBIBYTE: u64 = 1 << 20;

/// How fast a data directory is copied: from the page cache to an SSD. Where the filesystem lets
/// copies share blocks, it takes no time.
pub(crate) const COPIED_BYTES_PER_SECOND: f64 = 1e9;

/// How fast a kind of server is taken to be, on a small machine with an SSD and with all data in
/// memory. Guesses, good to a factor of about three; they decide nothing but the forecast.
#[derive(Debug, Clone, Copy)]
pub struct Speed {
    /// Start with a fresh data directory, create tables, stop.
    pub prepare_seconds: f64,
    /// Stop and start again on data that are there.
    pub restart_seconds: f64,
    /// One row of a multi-row insert into a table with its primary key only.
    pub load_row_us: f64,
    /// One row for one secondary index, built over a full table.
    pub index_row_us: f64,
    /// One row put into, or deleted from, one index or table in random order.
    pub write_entry_us: f64,
    /// One commit that waits for the disk.
    pub commit_us: f64,
    /// One row read by the check of a table's contents.
    pub verify_row_us: f64,
    /// Clients that make progress at the same time.
    pub parallel_clients: u32,
    /// Whether inserts and deletes of one client wait for each other.
    pub is_one_writer: bool,
}

/// Bytes on disk.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// A row with its primary key only.
    pub row_bytes: f64,
    /// What one secondary index adds when it is built over a full table.
    pub built_index_bytes: f64,
    /// What one secondary index costs in the steady state, after random inserts and deletes.
    pub steady_index_bytes: f64,
    /// Redo logs and the like, however few rows there are.
    pub log_bytes: u64,
    /// Binlog of one written or deleted row.
    pub binlog_row_bytes: u64,
    /// An initialised data directory, kept to be copied for each cell.
    pub template_bytes: u64,
}

/// Any server: MariaDB and MySQL with InnoDB; others are taken to be like them. The load is near
/// the original client's 182,000 rows a second on MariaDB 10.11.
const SERVER_SPEED: Speed = Speed {
    prepare_seconds: 8.0,
    restart_seconds: 2.0,
    load_row_us: 4.0,
    index_row_us: 1.0,
    write_entry_us: 8.0,
    commit_us: 500.0,
    verify_row_us: 0.3,
    parallel_clients: 4,
    is_one_writer: false,
};

/// From published Insert Benchmark data on InnoDB: 70.5 bytes a row with the primary key only, 164
/// after three indexes were built, 225 in the steady state. Logs: 1 GiB of redo and 256 MiB for
/// undo and system tables. Binlog: a row-based event of such a row is about 80 bytes.
const SERVER_SIZE: Size = Size {
    row_bytes: 70.5,
    built_index_bytes: (164.0 - 70.5) / 3.0,
    steady_index_bytes: (225.0 - 70.5) / 3.0,
    log_bytes: 1280 * MEBIBYTE,
    binlog_row_bytes: 80,
    template_bytes: 200 * MEBIBYTE,
};

/// SQLite commits one writer at a time, so more clients do not make it faster.
const EMBEDDED_SPEED: Speed = Speed {
    prepare_seconds: 0.2,
    restart_seconds: 0.1,
    load_row_us: 3.0,
    index_row_us: 0.8,
    write_entry_us: 5.0,
    commit_us: 1000.0,
    verify_row_us: 0.3,
    parallel_clients: 1,
    is_one_writer: true,
};

/// Measured with SQLite 3.40 and 100,000 rows: 57 bytes a row, 126 after three indexes were built,
/// 139 after random writes. Logs: a write-ahead log or a rollback journal, as a rule a few MiB.
const EMBEDDED_SIZE: Size = Size {
    row_bytes: 57.0,
    built_index_bytes: (126.0 - 57.0) / 3.0,
    steady_index_bytes: (139.0 - 57.0) / 3.0,
    log_bytes: 16 * MEBIBYTE,
    binlog_row_bytes: 0,
    template_bytes: 0,
};

/// The driver that answers at once and keeps nothing.
const NULL_SPEED: Speed = Speed {
    prepare_seconds: 0.0,
    restart_seconds: 0.0,
    load_row_us: 0.1,
    index_row_us: 0.0,
    write_entry_us: 0.01,
    commit_us: 1.0,
    verify_row_us: 0.0,
    parallel_clients: 4,
    is_one_writer: false,
};

const NULL_SIZE: Size = Size {
    row_bytes: 0.0,
    built_index_bytes: 0.0,
    steady_index_bytes: 0.0,
    log_bytes: 0,
    binlog_row_bytes: 0,
    template_bytes: 0,
};

/// The assumptions for one kind of variant.
pub(crate) fn assumed(kind: &VariantKind) -> (Speed, Size) {
    match kind {
        VariantKind::Embedded => (EMBEDDED_SPEED, EMBEDDED_SIZE),
        VariantKind::Null => (NULL_SPEED, NULL_SIZE),
        VariantKind::BaseDir(_) | VariantKind::Named(_) => (SERVER_SPEED, SERVER_SIZE),
        // Someone else starts it, so there is nothing to start and no template to keep.
        VariantKind::Address(_) => {
            (Speed { prepare_seconds: 1.0, ..SERVER_SPEED }, Size { template_bytes: 0, ..SERVER_SIZE })
        }
    }
}
