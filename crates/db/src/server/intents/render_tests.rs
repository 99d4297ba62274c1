//! Tests of rendering config intents: the same intents on many versions, and refusals.

use super::*;
use dbdyno_products::Product;

use crate::server::intents::Plugins;
use crate::server::intents::data::rule_spans;

fn server(name: &str) -> ConfigServer {
    ConfigServer::named(name, "innodb").unwrap()
}

fn intents(text: &str) -> Intents {
    Intents::from_table(&text.parse().unwrap()).unwrap()
}

fn file(name: &str, text: &str) -> String {
    let rendered = render(&server(name), &intents(text)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let notes = rendered.notes.iter().map(|note| format!("; {note}\n"));
    rendered.text() + &notes.collect::<String>()
}

fn refusal(server: &ConfigServer, text: &str) -> String {
    render(server, &intents(text)).unwrap_err().to_string()
}

const DURABLE: &str =
    "buffer_pool = '1 GiB'\nredo = '1 GiB'\ndurability = 'commit'\nbinlog = 'off'\nflush_method = 'o_direct'";

#[test]
fn the_same_intents_become_each_versions_own_options() {
    insta::assert_snapshot!(file("mysql-5.6.24", DURABLE), @r"
    # For MySQL 5.6.24, from the config of the plan.
    [mysqld]
    # buffer_pool = 1 GiB
    innodb_buffer_pool_size = 1073741824
    # redo = 1 GiB
    innodb_log_file_size = 536870912
    innodb_log_files_in_group = 2
    # durability = commit
    innodb_flush_log_at_trx_commit = 1
    sync_binlog = 1
    # binlog = off
    skip_log_bin
    # flush_method = o_direct
    innodb_flush_method = O_DIRECT
    ");
    insta::assert_snapshot!(file("mysql-9.7.4", DURABLE), @r"
    # For MySQL 9.7.4, from the config of the plan.
    [mysqld]
    # buffer_pool = 1 GiB
    innodb_buffer_pool_size = 1073741824
    # redo = 1 GiB
    innodb_redo_log_capacity = 1073741824
    # durability = commit
    innodb_flush_log_at_trx_commit = 1
    sync_binlog = 1
    # binlog = off
    skip_log_bin
    # flush_method = o_direct
    innodb_flush_method = O_DIRECT
    ");
    insta::assert_snapshot!(file("mariadb-11.8.6", DURABLE), @r"
    # For MariaDB 11.8.6, from the config of the plan.
    [mysqld]
    # buffer_pool = 1 GiB
    innodb_buffer_pool_size = 1073741824
    # redo = 1 GiB
    innodb_log_file_size = 1073741824
    # durability = commit
    innodb_flush_log_at_trx_commit = 1
    sync_binlog = 1
    # binlog = off
    skip_log_bin
    # flush_method = o_direct
    innodb_data_file_buffering = OFF
    innodb_data_file_write_through = OFF
    innodb_log_file_write_through = OFF
    ");
    let postgres = DURABLE.replace("flush_method = 'o_direct'", "checksums = true");
    insta::assert_snapshot!(file("pg-18.6", &postgres), @r"
    # For PostgreSQL 18.6, from the config of the plan.
    # checksums = true (initdb --data-checksums)
    # buffer_pool = 1 GiB
    shared_buffers = 1048576kB
    # redo = 1 GiB
    max_wal_size = 1024MB
    # durability = commit
    fsync = on
    synchronous_commit = on
    ");
}

#[test]
fn optimizer_switches_of_several_intents_share_one_option() {
    let asked = "multi_range_read = 'always'\nbatched_key_access = true\nsemi_join = false";
    insta::assert_snapshot!(file("mysql-5.6.24", asked), @r"
    # For MySQL 5.6.24, from the config of the plan.
    [mysqld]
    # multi_range_read = always, batched_key_access = true, semi_join = false
    optimizer_switch = mrr=on,mrr_cost_based=off,batched_key_access=on,semijoin=off
    ");
    let asked = format!("{asked}\njoin_cache_level = 8");
    assert!(
        file("mariadb-10.1.23", &asked).contains("mrr=on,mrr_cost_based=off,join_cache_bka=on,semijoin=off")
    );
    assert!(refusal(&server("mysql-5.5.9"), "batched_key_access = true").contains("it exists in"));
    assert!(refusal(&server("mariadb-10.1.23"), "join_cache_level = 9").contains("at most 8"));
}

#[test]
fn a_redo_size_above_an_old_servers_limit_is_refused() {
    let said = refusal(&server("mysql-5.5.34"), "redo = '4 GiB'");
    insta::assert_snapshot!(said, @r"
    redo = 4 GiB: MySQL 5.5.34 takes at most 4095 MiB
    MySQL 5.5.34 cannot do this: leave it out, or put it under [where_possible] to have it on the servers that can
    ");
    assert!(file("mysql-5.6.24", "redo = '4 GiB'").contains("innodb_log_file_size = 2147483648\n"));
    let four = file("mysql-5.6.24", "redo = '4 GiB'\nredo_files = 4");
    assert!(four.contains("innodb_log_file_size = 1073741824\n"), "{four}");
    assert_eq!(four.matches("innodb_log_files_in_group").count(), 1, "{four}");
}

#[test]
fn an_impossible_intent_is_refused_with_the_versions_that_support_it() {
    let text = "change_buffer = 'all'\nbuffer_pool_instances = 8\nbinlog_in_engine = true\nflush_method = 'all_o_direct'";
    insta::assert_snapshot!(refusal(&server("mariadb-11.8.6"), text), @r"
    buffer_pool_instances = 8: MariaDB 11.8.6 has none; it exists in MySQL and Percona Server; MariaDB before 10.5.1
    binlog_in_engine = true: MariaDB 11.8.6 has none; it exists in MariaDB from 12.3
    flush_method = all_o_direct: MariaDB 11.8.6 takes fsync, o_direct, o_direct_no_fsync, o_dsync here; it exists in Percona Server before 8.0; MariaDB before 10.2
    change_buffer = all: MariaDB 11.8.6 has none; it exists in MySQL and Percona Server; MariaDB before 11.0
    MariaDB 11.8.6 cannot do these: leave them out, or put them under [where_possible] to have them on the servers that can
    ");
}

#[test]
fn an_impossible_intent_under_where_possible_is_left_out_with_a_note() {
    let text = "[where_possible]\nchange_buffer = 'all'\nio_capacity = 2000";
    insta::assert_snapshot!(file("mariadb-11.8.6", text), @r"
    # For MariaDB 11.8.6, from the config of the plan.
    [mysqld]
    # io_capacity = 2000
    innodb_io_capacity = 2000
    ; change_buffer = all is left out, as where_possible allows: MariaDB 11.8.6 has none; it exists in MySQL and Percona Server; MariaDB before 11.0
    ");
}

#[test]
fn a_server_without_a_feature_fulfils_the_request_for_its_absence() {
    let asked = "query_cache = 'off'\nadaptive_hash_index = false\nthreads = 'per-connection'";
    assert_eq!(file("pg-18.6", asked), "# For PostgreSQL 18.6, from the config of the plan.\n");
    assert!(!file("mariadb-11.8.6", "change_buffer = 'off'").contains("change_buffer"));
    assert!(refusal(&server("mysql-8.0.31"), "query_cache = '64 MiB'").contains("MySQL 8.0.31 has none"));
}

#[test]
fn engines_and_plugins_that_an_intent_needs_are_named() {
    let said = refusal(&server("mariadb-11.8.6"), "rocksdb_block_cache = '1 GiB'");
    insta::assert_snapshot!(said, @r#"
    rocksdb_block_cache = 1 GiB: it applies only to rocksdb tables: set options.engine = "rocksdb" in the variant
    MariaDB 11.8.6 cannot do this: leave it out, or put it under [where_possible] to have it on the servers that can
    "#);
    let rocksdb = ConfigServer::named("mariadb-11.8.6", "rocksdb").unwrap();
    let both = render(&rocksdb, &intents("durability = 'second'\nrocksdb_compression = 'lz4'")).unwrap();
    insta::assert_snapshot!(both.text(), @r"
    # For MariaDB 11.8.6, from the config of the plan.
    [mysqld]
    # durability = second
    innodb_flush_log_at_trx_commit = 2
    sync_binlog = 0
    rocksdb_flush_log_at_trx_commit = 2
    # rocksdb_compression = lz4
    rocksdb_default_cf_options = compression=kLZ4Compression;bottommost_compression=kLZ4Compression
    ");
    let bare = ConfigServer { plugins: Plugins::In(None), ..server("mysql-9.7.4") };
    insta::assert_snapshot!(refusal(&bare, "threads = 'pool'"), @r"
    threads = pool: it needs the plugin thread_pool.so, which this build of MySQL 9.7.4 does not have
    MySQL 9.7.4 cannot do this: leave it out, or put it under [where_possible] to have it on the servers that can
    ");
    assert!(file("mysql-9.7.4", "threads = 'pool'").contains("plugin_load_add = thread_pool.so\n"));
    assert!(file("percona-8.0.36", "threads = 'pool'").contains("thread_handling = pool-of-threads\n"));
}

#[test]
fn mariadb_12_3_can_keep_the_binlog_in_the_engine() {
    insta::assert_snapshot!(file("mariadb-12.3.1", "binlog = 'on'\nbinlog_in_engine = true"), @r"
    # For MariaDB 12.3.1, from the config of the plan.
    [mysqld]
    # binlog = on
    server_id = 1
    # binlog_in_engine = true
    binlog_storage_engine = innodb
    log_bin
    ; log_bin is set by binlog_in_engine = true, not by binlog = on
    ");
    assert!(!file("mysql-8.0.31", "binlog_in_engine = false").contains("binlog"));
}

#[test]
fn xtradb_5_5_has_another_name_for_flush_neighbors() {
    let last = |name| file(name, "flush_neighbors = 'off'").lines().last().unwrap_or_default().to_owned();
    let servers = ["percona-5.5.24", "mariadb-5.5.24", "percona-8.0.36", "mariadb-10.1.23"];
    let (old, new) = ("innodb_flush_neighbor_pages = none", "innodb_flush_neighbors = 0");
    assert_eq!(servers.map(last), [old, old, new, new]);
}

#[test]
fn an_own_option_is_found_even_with_the_prefix_loose() {
    let own = |name: &str| vec![(name.to_owned(), Some("x".to_owned()))];
    let sets =
        |name: &str| Rendered::of(&server("mariadb-11.8.6")).with_own(own(name)).sets_itself("ssl_cert");
    assert!(sets("ssl_cert") && sets("loose_ssl_cert") && !sets("ssl_certificates"));
}

#[test]
fn sqlite_gets_pragmas() {
    let text = "buffer_pool = '64 MiB'\ndurability = 'second'\njournal_mode = 'wal'\npage_size = '8 KiB'";
    let rendered = render(&ConfigServer::embedded(), &intents(text)).unwrap();
    insta::assert_snapshot!(rendered.text(), @r"
    # For SQLite, from the config of the plan.
    # buffer_pool = 64 MiB
    PRAGMA cache_size = -65536
    # durability = second
    PRAGMA synchronous = normal
    # page_size = 8 KiB
    PRAGMA page_size = 8192
    # journal_mode = wal
    PRAGMA journal_mode = wal
    ");
}

#[test]
fn the_shipped_configs_can_be_rendered_for_their_servers() {
    let of_config = [
        (
            "small.toml",
            "mysql-5.5.34 mysql-5.6.24 mysql-8.4.3 mysql-9.7.4 mariadb-10.1.23 mariadb-12.3.1 percona-8.0.36 pg-9.6.24 pg-18.6",
        ),
        (
            "insert-benchmark-16gb.toml",
            "mysql-5.6.51 mysql-5.7.44 mysql-8.0.36 mariadb-10.2.44 mariadb-10.6.17 mariadb-11.4.1",
        ),
        ("insert-benchmark-128gb-sync.toml", "mariadb-10.11.5 mariadb-11.8.2 mariadb-12.3.1"),
        ("oltp-2012.toml", "mysql-5.5.25 percona-5.5.24 mariadb-5.5.24"),
        ("postgres-alike.toml", "pg-9.6.24 pg-10.23 pg-11.22 pg-18.6"),
    ];
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans/configs");
    for (config, servers) in of_config {
        let intents = Intents::read(&std::path::Path::new(folder).join(config)).unwrap();
        for name in servers.split(' ') {
            render(&server(name), &intents).unwrap_or_else(|error| panic!("{config} on {name}: {error}"));
        }
    }
    let files = std::fs::read_dir(folder).unwrap().flatten();
    let is_config = |name: &String| name.ends_with(".toml");
    let names = files.map(|file| file.file_name().into_string().unwrap()).filter(is_config);
    assert_eq!(names.count(), of_config.len(), "each shipped config is tried");
}

/// Every option that a rule names must be in the data for each product in the rule. A spelling
/// mistake would make the rule impossible without any error.
#[test]
fn every_rule_can_be_rendered_in_some_version() {
    for intent in &IntentData::get().intents {
        for rule in intent.way.iter().chain(&intent.also) {
            for product in &rule.on {
                for word in rule.values.keys() {
                    let spans = rule_spans(rule, product, Some(word));
                    assert!(!spans.is_empty(), "{} = {word} on {product}", intent.name);
                }
                assert!(!rule_spans(rule, product, None).is_empty(), "{} on {product}", intent.name);
            }
        }
        for limit in &intent.limit {
            for bound in limit.min.iter().chain(&limit.max) {
                assert!(value::limit(intent.kind, bound).is_some(), "{}: {bound}", intent.name);
            }
        }
    }
}

/// A default would be ambiguous if ranges overlapped.
#[test]
fn an_options_version_ranges_do_not_overlap() {
    for product in Product::all() {
        for name in IntentData::get().names(product) {
            let spans: Vec<_> =
                IntentData::get().ranges(product, name).iter().map(|range| range.span).collect();
            for (index, span) in spans.iter().enumerate() {
                let met = spans[..index].iter().find_map(|other| other.intersection(*span));
                assert_eq!(met, None, "{name} of {product}");
            }
        }
    }
}
