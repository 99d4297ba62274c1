//! Derives the values of classes that combine several settings, on MariaDB, MySQL and Percona
//! Server.

use dbdyno_model::ColumnDefinitions;

use super::{MARIADB, MysqlOptions};
use crate::settings::{LATER, NEVER, SYNCED, Value, io_words, switch};
use crate::variant::{TypedOptions, engine_name};
use crate::{Derive, Reader, SettingsSource, Subject};

/// Every function for a class, by its name in `classes.toml` or `pitfalls.toml`.
pub(super) const CLASSES: &[(&str, Derive)] = &[
    ("binlog", binlog),
    ("binlog_content", binlog_content),
    ("buffer_pool", buffer_pool),
    ("change_buffer", change_buffer),
    ("charset", charset),
    ("checksums", checksums),
    ("client_charset", client_charset),
    ("collation", |reader| of_database(reader, "collation_database", "collation_server").map(Value::words)),
    ("column_definitions", column_definitions),
    ("commit", commit),
    ("engine", |reader| reader.engine().map(|engine| Value::words(engine_name(engine)))),
    ("flush_neighbours", flush_neighbours),
    ("gtid", gtid),
    ("io", io),
    ("isolation", isolation),
    ("page_size", page_size),
    ("protocol_options", protocol_options),
    ("query_cache", query_cache),
    ("redo", redo),
    ("statement_logging", statement_logging),
    ("statistics", statistics),
    ("strictness", strictness),
    ("sync_call", sync_call),
    ("thread_pool", thread_pool),
    ("tls", |reader| reader.subject.tls.map(Value::Switch)),
    ("torn_pages", torn_pages),
];

/// Returns `None` when the tables have another engine than InnoDB.
fn of_innodb(reader: &Reader<'_>) -> Option<()> {
    (reader.engine() == Some("innodb")).then_some(())
}

fn commit(reader: &Reader<'_>) -> Option<Value> {
    let method = reader.text("innodb_flush_method");
    let setting = match reader.engine() {
        _ if method.is_some_and(|method| method.eq_ignore_ascii_case("nosync")) => {
            return Some(Value::words(NEVER));
        }
        Some("rocksdb") => "rocksdb_flush_log_at_trx_commit",
        Some("innodb") => "innodb_flush_log_at_trx_commit",
        // MyISAM and similar engines have no commit.
        _ => return Some(Value::words(NEVER)),
    };
    Some(Value::words(match reader.text(setting)? {
        "0" => "written and synced within a second or so",
        "2" => LATER,
        // MariaDB's 3 is the old group commit.
        _ => SYNCED,
    }))
}

fn binlog(reader: &Reader<'_>) -> Option<Value> {
    if !reader.is_on("log_bin")? {
        return Some(Value::words("off"));
    }
    Some(Value::words(match reader.text("sync_binlog")? {
        "0" => "binary log, not synced".to_owned(),
        "1" => "binary log, synced at each commit".to_owned(),
        every => format!("binary log, synced every {every} commits"),
    }))
}

fn binlog_content(reader: &Reader<'_>) -> Option<Value> {
    if !reader.is_on("log_bin")? {
        return None;
    }
    let image = reader.text("binlog_row_image").unwrap_or("FULL").to_ascii_lowercase();
    let format = reader.text("binlog_format")?;
    let rows =
        if format.eq_ignore_ascii_case("statement") { String::new() } else { format!(", {image} rows") };
    Some(Value::words(format!("{format}{rows}")))
}

/// Whether the server writes transactions with GTIDs.
fn gtid(reader: &Reader<'_>) -> Option<Value> {
    Some(Value::Switch(reader.is_on("gtid_mode")? && reader.is_on("log_bin")?))
}

fn buffer_pool(reader: &Reader<'_>) -> Option<Value> {
    let bytes = reader.size(match reader.engine()? {
        "rocksdb" => "rocksdb_block_cache_size",
        "innodb" => "innodb_buffer_pool_size",
        "aria" => "aria_pagecache_buffer_size",
        _ => "key_buffer_size",
    })?;
    Some(Value::Size(bytes))
}

/// The redo log's size. MySQL has a setting for its capacity from 8.0.30 on. The capacity follows
/// from the old settings when only those are configured.
fn redo(reader: &Reader<'_>) -> Option<Value> {
    of_innodb(reader)?;
    let files = || {
        let size = reader.size("innodb_log_file_size")?;
        // Versions that have only one file have no setting for the number of files.
        Some(size * reader.size("innodb_log_files_in_group").unwrap_or(1))
    };
    let is_configured = |name| reader.subject.is_configured(name);
    let old_ones = is_configured("innodb_log_file_size") || is_configured("innodb_log_files_in_group");
    let bytes = match reader.size("innodb_redo_log_capacity") {
        Some(_) if old_ones && !is_configured("innodb_redo_log_capacity") => files()?,
        Some(capacity) => capacity,
        None => files()?,
    };
    Some(Value::Size(bytes))
}

fn torn_pages(reader: &Reader<'_>) -> Option<Value> {
    of_innodb(reader)?;
    let text = reader.text("innodb_doublewrite")?;
    Some(Value::words(match (switch(text), text.to_ascii_lowercase().as_str()) {
        (Some(false), _) => "off",
        (_, "detect_only") => "detected only",
        _ => "on",
    }))
}

fn checksums(reader: &Reader<'_>) -> Option<Value> {
    of_innodb(reader)?;
    let is_off = reader.is_on("innodb_checksums") == Some(false)
        || reader
            .text("innodb_checksum_algorithm")
            .is_some_and(|text| text.to_ascii_lowercase().contains("none"));
    Some(Value::Switch(!is_off))
}

/// The page size. MySQL 5.5 has no setting for it, and its pages have 16 KiB.
fn page_size(reader: &Reader<'_>) -> Option<Value> {
    const PAGE_BYTES_IN_5_5: u64 = 16 << 10;
    of_innodb(reader)?;
    Some(Value::Size(reader.size("innodb_page_size").unwrap_or(PAGE_BYTES_IN_5_5)))
}

fn io(reader: &Reader<'_>) -> Option<Value> {
    Some(io_words(match reader.engine() {
        Some("rocksdb") => reader.is_on("rocksdb_use_direct_reads")?,
        Some("innodb") => match reader.is_on("innodb_data_file_buffering") {
            Some(is_buffered) => !is_buffered,
            None => reader.text("innodb_flush_method")?.to_ascii_lowercase().contains("o_direct"),
        },
        _ => false,
    }))
}

fn isolation(reader: &Reader<'_>) -> Option<Value> {
    let level = reader.text("transaction_isolation").or_else(|| reader.text("tx_isolation"))?;
    let level = level.to_ascii_lowercase().replace('-', " ");
    let refuses = level == "repeatable read" && reader.is_on("innodb_snapshot_isolation") == Some(true);
    Some(Value::words(if refuses { format!("{level}, refuses changed rows") } else { level }))
}

/// How often the server sends the definitions of a result's columns, as agreed between the server
/// and the connection. Before the run the value is predicted from the connection with which the
/// build was probed, unless the plan requests something else.
fn column_definitions(reader: &Reader<'_>) -> Option<Value> {
    let planned = &reader.subject.planned;
    if planned.sends_text_only {
        return Some(Value::words("nothing is prepared"));
    }
    let is_once = reader.text("column_definitions")? == "once";
    let is_asked =
        MysqlOptions::read(&planned.variant.options).column_definitions != ColumnDefinitions::Always;
    Some(Value::words(if is_once && is_asked { "once" } else { "with each answer" }))
}

/// The protocol options on which the server and the connection agreed. Before the run they are
/// predicted in the same way as in [`column_definitions`].
fn protocol_options(reader: &Reader<'_>) -> Option<Value> {
    let agreed = reader.text("protocol_options")?;
    let Subject { planned, settings_source, .. } = reader.subject;
    if *settings_source == SettingsSource::Effective {
        return Some(Value::words(agreed));
    }
    let MysqlOptions { deprecate_eof, session_track, .. } = MysqlOptions::read(&planned.variant.options);
    let options = [("DEPRECATE_EOF", deprecate_eof), ("SESSION_TRACK", session_track)];
    let is_used = |(name, asked): &(&str, Option<bool>)| asked.unwrap_or_else(|| agreed.contains(name));
    let names: Vec<&str> = options.iter().filter(|option| is_used(option)).map(|(name, _)| *name).collect();
    Some(Value::words(if names.is_empty() { "none".to_owned() } else { names.join(", ") }))
}

/// The connection's character set. The plan or dbdyno chooses it, so it is not the server's
/// default.
fn client_charset(reader: &Reader<'_>) -> Option<Value> {
    let subject = reader.subject;
    let charset = match subject.settings_source {
        SettingsSource::Effective => subject.session.get("character_set_client")?.clone(),
        _ => {
            let asked = MysqlOptions::read(&subject.planned.variant.options).client_charset;
            asked.unwrap_or_else(|| "utf8mb4".to_owned())
        }
    };
    // Later versions report utf8 as utf8mb3.
    Some(Value::words(if charset.eq_ignore_ascii_case("utf8") { "utf8mb3".to_owned() } else { charset }))
}

/// A database's own value, such as its character set. Where it equals the server's default, the
/// server's setting is read instead, because that one can be configured. A server default that
/// differs from the database's own value has no effect.
fn of_database<'a>(reader: &Reader<'a>, of_database: &str, of_server: &str) -> Option<&'a str> {
    let Some(own) = reader.text(of_database) else { return reader.text(of_server) };
    let is_default = reader.subject.value(of_server).is_some_and(|default| default.eq_ignore_ascii_case(own));
    if is_default { reader.text(of_server) } else { Some(own) }
}

fn charset(reader: &Reader<'_>) -> Option<Value> {
    let text = of_database(reader, "character_set_database", "character_set_server")?;
    Some(Value::words(match text.to_ascii_lowercase().as_str() {
        "utf8mb4" => "UTF-8",
        "utf8" | "utf8mb3" => "UTF-8 of up to 3 bytes",
        _ => text,
    }))
}

/// The number of thread groups, where there is a thread pool.
fn thread_pool(reader: &Reader<'_>) -> Option<Value> {
    let is_pool = reader.text("thread_handling")? == "pool-of-threads";
    is_pool.then(|| reader.size("thread_pool_size")).flatten().map(|size| Value::Number(size as f64))
}

/// The kind of index statistics. MySQL 5.5 has only transient ones.
fn statistics(reader: &Reader<'_>) -> Option<Value> {
    of_innodb(reader)?;
    Some(Value::words(
        match (reader.is_on("innodb_stats_persistent"), reader.is_on("innodb_stats_auto_recalc")) {
            (Some(true), Some(false)) => "kept, not renewed",
            (Some(true), _) => "kept, renewed",
            _ => "transient",
        },
    ))
}

/// The query cache. With `query_cache_type = ON` the server takes its lock even when the cache has
/// no memory.
fn query_cache(reader: &Reader<'_>) -> Option<Value> {
    let Some(kind) = reader.text("query_cache_type") else { return Some(Value::words("off")) };
    let is_empty = reader.size("query_cache_size").unwrap_or(0) == 0;
    Some(Value::words(match (switch(kind), is_empty) {
        (Some(false), _) => "off",
        (_, true) => "on, without memory",
        _ if kind.eq_ignore_ascii_case("demand") => "on demand",
        _ => "on",
    }))
}

fn statement_logging(reader: &Reader<'_>) -> Option<Value> {
    Some(Value::words(match (reader.is_on("general_log")?, reader.is_on("slow_query_log")?) {
        (true, _) => "all or some",
        (_, true) => "slow ones",
        _ => "none",
    }))
}

/// The change buffer. MariaDB 11 has no such setting, because it has no change buffer.
fn change_buffer(reader: &Reader<'_>) -> Option<Value> {
    of_innodb(reader)?;
    Some(Value::words(reader.text("innodb_change_buffering").unwrap_or("none")))
}

/// Whether neighbouring pages are flushed too. MySQL 5.5 always flushes them and has no setting for
/// it. XtraDB 5.5 uses words instead of numbers.
fn flush_neighbours(reader: &Reader<'_>) -> Option<Value> {
    let setting =
        ["innodb_flush_neighbors", "innodb_flush_neighbor_pages"].iter().find_map(|name| reader.text(name));
    of_innodb(reader)?;
    Some(Value::Switch(setting.is_none_or(|text| !matches!(text, "0" | "none"))))
}

/// The system call that syncs files. MariaDB has no setting for it.
fn sync_call(reader: &Reader<'_>) -> Option<Value> {
    of_innodb(reader)?;
    let uses_fdatasync = reader.is_on("innodb_use_fdatasync") == Some(true);
    let call = if uses_fdatasync { "fdatasync" } else { "fsync" };
    (reader.subject.product != MARIADB).then(|| Value::words(call))
}

fn strictness(reader: &Reader<'_>) -> Option<Value> {
    let mode = reader.text("sql_mode")?;
    Some(Value::Switch(mode.contains("STRICT_TRANS_TABLES") || mode.contains("STRICT_ALL_TABLES")))
}
