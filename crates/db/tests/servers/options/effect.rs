//! Checks that a server that is started with rendered intents runs with the rendered values.

use dbdyno_db::server::Base;
use dbdyno_db::server::intents::{ConfigServer, Intents, render, same_value};
use dbdyno_products::postgres::POSTGRESQL;

use super::facts::{self, Values};

/// Most intents for MariaDB and MySQL, with values that are not the default of any version.
const BUSY: &str = "
buffer_pool = '64 MiB'
redo = '128 MiB'
durability = 'second'
doublewrite = false
[where_possible]
binlog = 'on'
binlog_format = 'row'
binlog_row_image = 'minimal'
sync_binlog = 7
gtid = true
log_buffer = '4 MiB'
flush_method = 'o_direct'
change_buffer = 'inserts'
purge_threads = 2
purge_lag = 100000
purge_lag_delay = 5000
io_capacity = 1000
io_capacity_max = 3000
read_io_threads = 2
write_io_threads = 3
page_cleaners = 1
dirty_pages_pct = 60
dirty_pages_lwm_pct = 20
flush_neighbors = 'extent'
adaptive_hash_index = false
page_size = '8 KiB'
checksums = true
statistics_persistent = false
snapshot_isolation = false
threads = 'pool'
thread_pool_size = 3
max_connections = 77
table_open_cache = 900
performance_schema = true
query_cache = '4 MiB'
charset = 'latin1'
collation = 'latin1_bin'
isolation = 'read-committed'
temp_table_size = '2 MiB'
tls = 'off'
rocksdb_block_cache = '64 MiB'
rocksdb_compression = 'lz4'
rocksdb_background_jobs = 3
rocksdb_direct_io = true
wal_sync_method = 'open_datasync'
wal_compression = 'pglz'
wal_level = 'minimal'
wal_segment_size = '1 MiB'
min_wal_size = '32 MiB'
checkpoint_timeout = '10m'
checkpoint_completion_target = 0.7
autovacuum = false
autovacuum_workers = 2
io_method = 'sync'
effective_io_concurrency = 3
jit = false
huge_pages = 'off'
worker_processes = 5
parallel_workers = 2
work_mem = '1 MiB'
maintenance_work_mem = '16 MiB'
";

/// The other value of intents that have two values.
const PLAIN: &str = "
buffer_pool = '32 MiB'
durability = 'off'
binlog = 'off'
[where_possible]
doublewrite = true
redo = '64 MiB'
redo_files = 3
flush_method = 'fsync'
change_buffer = 'off'
flush_neighbors = 'off'
adaptive_hash_index = true
checksums = false
statistics_persistent = true
undo_tablespaces = 2
aio = 'sync'
compression = 'zlib'
threads = 'per-connection'
performance_schema = false
query_cache = 'off'
charset = 'utf8mb4'
isolation = 'serializable'
gtid = false
rocksdb_compression = 'zstd'
wal_compression = 'off'
wal_level = 'logical'
autovacuum = true
io_workers = 2
jit = true
synchronous_commit = 'local'
";

/// Options whose variable has another value than the option, each with the reason.
const OTHER_VALUES: &[&str] = &[
    // The option turns TLS on or off. The variable with that name does not exist or has another
    // meaning.
    "ssl",
    // The option may be given more than once.
    "plugin_load_add",
    // The server limits the value to one page cleaner per buffer pool instance.
    "innodb_page_cleaners",
    // The variable says whether the log is on, but the option's value is the name of the log's
    // files.
    "log_bin",
];

pub(crate) fn check(name: &str, base: &Base) {
    for text in [BUSY, PLAIN] {
        let server = ConfigServer::of_base(base, facts::engine(base));
        let text = match server.product {
            POSTGRESQL => text.replace("page_size = '8 KiB'\n", ""),
            _ => text.to_owned(),
        };
        let intents = Intents::from_table(&text.parse().unwrap()).unwrap();
        let rendered = render(&server, &intents).unwrap_or_else(|error| panic!("{name}: {error}"));
        let running = facts::running(base, Some(&rendered)).unwrap_or_else(|error| {
            panic!("{name}: {error}\n{}\nwith\n{}", rendered.causes(&error).join("\n"), rendered.text())
        });
        let wrong: Vec<String> = rendered
            .settings
            .iter()
            .filter_map(|setting| difference(&setting.name, setting.value.as_deref(), &running))
            .collect();
        assert!(wrong.is_empty(), "{name}:\n{}\nwith\n{}", wrong.join("\n"), rendered.text());
    }
}

fn difference(option: &str, wanted: Option<&str>, running: &Values) -> Option<String> {
    if OTHER_VALUES.contains(&option) {
        return None;
    }
    let (variable, wanted) = match option.strip_prefix("skip_") {
        Some(plain) => (plain, "OFF"),
        None => (option, wanted.unwrap_or("ON")),
    };
    // Before MySQL 5.7.20 and in MariaDB before 11.1 the variable has an older name than the
    // option.
    let older = (variable == "transaction_isolation").then_some("tx_isolation");
    let found = running.get(variable).or_else(|| running.get(older?));
    match found {
        Some(value) if same_value(wanted, value) => None,
        Some(value) => Some(format!("{variable} is {value:?}, asked for was {wanted:?}")),
        None => Some(format!("there is no variable {variable}")),
    }
}
