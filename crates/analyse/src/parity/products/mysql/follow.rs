//! Settings that follow others: what a server says of one when another was configured.

use super::is_mariadb;
use crate::parity::subject::{Configured, Product, Settings};
use crate::parity::value;

pub(super) fn follow(
    settings: &mut Settings,
    is_configured: Configured<'_>,
    product: &Product,
    version: [u32; 3],
) {
    isolation_has_two_names(settings, is_configured);
    collation_follows(settings, is_configured, product, version);
    greatest_io_follows(settings, is_configured);
    pool_is_whole_chunks(settings, product, version);
    buffering_follows(settings, is_configured);
}

/// MariaDB from 11.1 and MySQL 5.7 show one value under both names.
fn isolation_has_two_names(settings: &mut Settings, is_configured: Configured<'_>) {
    for (one, other) in [("tx_isolation", "transaction_isolation"), ("transaction_isolation", "tx_isolation")]
    {
        if let (true, true, Some(level)) =
            (is_configured(one), settings.contains_key(other), settings.get(one).cloned())
        {
            settings.insert(other.to_owned(), level);
        }
    }
}

/// A character set brings its own collation, unless one was configured.
fn collation_follows(
    settings: &mut Settings,
    is_configured: Configured<'_>,
    product: &Product,
    version: [u32; 3],
) {
    if !is_configured("character_set_server") || is_configured("collation_server") {
        return;
    }
    let (since, newest) = match is_mariadb(product) {
        true => ([11, 6, 0], "utf8mb4_uca1400_ai_ci"),
        false => ([8, 0, 0], "utf8mb4_0900_ai_ci"),
    };
    let collation = match settings.get("character_set_server").map(|set| set.to_ascii_lowercase()).as_deref()
    {
        Some("latin1") => "latin1_swedish_ci",
        Some("binary") => "binary",
        Some("utf8mb4") if version >= since => newest,
        Some("utf8mb4") => "utf8mb4_general_ci",
        _ => return,
    };
    settings.insert("collation_server".to_owned(), collation.to_owned());
}

/// The greatest rate of background writes is twice the planned one and at least 2000, unless it is
/// set.
fn greatest_io_follows(settings: &mut Settings, is_configured: Configured<'_>) {
    const LEAST: u64 = 2000;
    let (planned, greatest) = ("innodb_io_capacity", "innodb_io_capacity_max");
    if !is_configured(planned) || is_configured(greatest) || !settings.contains_key(greatest) {
        return;
    }
    if let Some(planned) = settings.get(planned).and_then(|text| value::size(text)) {
        settings.insert(greatest.to_owned(), (planned * 2).max(LEAST).to_string());
    }
}

/// Rounds a buffer pool up to whole chunks, where the version has chunks of a fixed size.
fn pool_is_whole_chunks(settings: &mut Settings, product: &Product, version: [u32; 3]) {
    let size = |name: &str| settings.get(name).and_then(|text| value::size(text));
    let (Some(pool), Some(chunk)) = (size("innodb_buffer_pool_size"), size("innodb_buffer_pool_chunk_size"))
    else {
        return;
    };
    // From 10.8 the chunk follows the pool.
    if is_mariadb(product) && version >= [10, 8, 0] {
        settings.remove("innodb_buffer_pool_chunk_size");
    } else if chunk > 0 && pool > chunk {
        settings.insert("innodb_buffer_pool_size".to_owned(), (pool.div_ceil(chunk) * chunk).to_string());
    }
}

/// MariaDB from 11 keeps the flush method as a word for four switches.
fn buffering_follows(settings: &mut Settings, is_configured: Configured<'_>) {
    let data = "innodb_data_file_buffering";
    if !settings.contains_key(data) || !is_configured("innodb_flush_method") || is_configured(data) {
        return;
    }
    let method = settings.get("innodb_flush_method").cloned().unwrap_or_default().to_ascii_lowercase();
    let is_buffered = !method.starts_with("o_direct");
    settings.insert(data.to_owned(), if is_buffered { "ON" } else { "OFF" }.to_owned());
}
