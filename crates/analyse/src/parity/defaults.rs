//! Default settings by product and version, and what a server would say after it was configured: a
//! prediction.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::configured::ConfiguredLine;
use super::product::{Product, Settings};
use super::value;

/// Values read from real servers; the file says how.
const TEXT: &str = include_str!("defaults.toml");

static DEFAULTS: LazyLock<BTreeMap<String, Vec<Entry>>> =
    LazyLock::new(|| toml::from_str(TEXT).expect("defaults.toml is a part of the program and is tested"));

/// What one version has different from the one before it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    version: String,
    #[serde(default)]
    set: Settings,
    #[serde(default)]
    gone: Vec<String>,
}

/// Settings of a server that has no configuration.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Defaults {
    pub(super) settings: Settings,
    /// The version that they were read from, where it is another one than asked for.
    pub(super) assumed_from: Option<String>,
}

/// Of the nearest version that is not newer, or of the oldest known one. `None` for a product that
/// is not known.
pub(super) fn defaults(product: Product, version: [u32; 3], engine: Option<&str>) -> Option<Defaults> {
    let entries = DEFAULTS.get(product.name())?;
    let last = entries.iter().rposition(|entry| parts(&entry.version) <= cut(product, version)).unwrap_or(0);
    let mut settings = Settings::new();
    for entry in &entries[..=last] {
        entry.gone.iter().for_each(|name| {
            settings.remove(name);
        });
        settings.extend(entry.set.clone());
    }
    if engine == Some("rocksdb") {
        let rocks = DEFAULTS.get("MyRocks").into_iter().flatten();
        settings.extend(rocks.flat_map(|entry| entry.set.clone()));
    }
    let known = &entries[last].version;
    let is_known = product == Product::Sqlite || is_surely(entries, last, cut(product, version));
    Some(Defaults { settings, assumed_from: (!is_known).then(|| known.clone()) })
}

/// Whether a version has the values of entry `last`: it is that version, or lies between two that
/// have the same.
fn is_surely(entries: &[Entry], last: usize, version: [u32; 3]) -> bool {
    parts(&entries[last].version) == version
        || (parts(&entries[last].version) <= version
            && entries.get(last + 1).is_some_and(|next| next.set.is_empty() && next.gone.is_empty()))
}

/// PostgreSQL changes no default within a major version.
fn cut(product: Product, version: [u32; 3]) -> [u32; 3] {
    match (product, version) {
        (Product::Postgres, [major, ..]) if major >= 10 => [major, 0, 0],
        (Product::Postgres, [major, minor, _]) => [major, minor, 0],
        _ => version,
    }
}

/// `10.1.23` as three numbers; of `19rc1` the first.
pub(super) fn parts(text: &str) -> [u32; 3] {
    let mut parts = [0; 3];
    for (part, number) in parts.iter_mut().zip(text.split('.')) {
        let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        *part = number[..digits].parse().unwrap_or(0);
    }
    parts
}

/// Lays what was configured over `settings`, as the server would show it.
pub(super) fn overlay(
    settings: &mut Settings,
    configured: &[ConfiguredLine],
    product: Product,
    version: [u32; 3],
) {
    let mut names = Vec::new();
    for line in configured.iter().filter(|line| line.is_read) {
        if let Some((name, wanted)) = line.setting(settings) {
            let shown = as_shown(settings.get(&name).map_or("", String::as_str), &wanted);
            settings.insert(name.clone(), shown);
            names.push(name);
        }
    }
    let is_configured = |name: &str| names.iter().any(|configured| configured == name);
    // MariaDB from 11.1 and MySQL 5.7 show one value under both names.
    for (one, other) in [("tx_isolation", "transaction_isolation"), ("transaction_isolation", "tx_isolation")]
    {
        if let (true, true, Some(level)) =
            (is_configured(one), settings.contains_key(other), settings.get(one).cloned())
        {
            settings.insert(other.to_owned(), level);
        }
    }
    if product.is_mysql() {
        collation_follows(settings, &is_configured, product, version);
        greatest_io_follows(settings, &is_configured);
        pool_is_whole_chunks(settings, product, version);
        buffering_follows(settings, &is_configured);
    }
}

/// Written as the server writes the value that it has now: switches as `ON`, sizes in bytes.
fn as_shown(now: &str, wanted: &str) -> String {
    let is_switch = value::switch(now).is_some() && now.parse::<f64>().is_err();
    if let (true, Some(is_on)) = (is_switch, value::switch(wanted)) {
        let word = if is_on { "ON" } else { "OFF" };
        let is_small = now.chars().all(char::is_lowercase);
        return if is_small { word.to_ascii_lowercase() } else { word.to_owned() };
    }
    match (now.parse::<i64>(), value::size(wanted)) {
        (Ok(_), Some(bytes)) => bytes.to_string(),
        _ => wanted.to_owned(),
    }
}

/// A character set brings its own collation, unless one was configured.
fn collation_follows(
    settings: &mut Settings,
    is_configured: &dyn Fn(&str) -> bool,
    product: Product,
    version: [u32; 3],
) {
    if !is_configured("character_set_server") || is_configured("collation_server") {
        return;
    }
    let (since, newest) = match product {
        Product::MariaDb => ([11, 6, 0], "utf8mb4_uca1400_ai_ci"),
        Product::MySql | Product::PerconaServer => ([8, 0, 0], "utf8mb4_0900_ai_ci"),
        Product::Postgres | Product::Sqlite | Product::Other => return,
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
fn greatest_io_follows(settings: &mut Settings, is_configured: &dyn Fn(&str) -> bool) {
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
fn pool_is_whole_chunks(settings: &mut Settings, product: Product, version: [u32; 3]) {
    let size = |name: &str| settings.get(name).and_then(|text| value::size(text));
    let (Some(pool), Some(chunk)) = (size("innodb_buffer_pool_size"), size("innodb_buffer_pool_chunk_size"))
    else {
        return;
    };
    // From 10.8 the chunk follows the pool.
    if product == Product::MariaDb && version >= [10, 8, 0] {
        settings.remove("innodb_buffer_pool_chunk_size");
    } else if chunk > 0 && pool > chunk {
        settings.insert("innodb_buffer_pool_size".to_owned(), (pool.div_ceil(chunk) * chunk).to_string());
    }
}

/// MariaDB from 11 keeps the flush method as a word for four switches.
fn buffering_follows(settings: &mut Settings, is_configured: &dyn Fn(&str) -> bool) {
    let data = "innodb_data_file_buffering";
    if !settings.contains_key(data) || !is_configured("innodb_flush_method") || is_configured(data) {
        return;
    }
    let method = settings.get("innodb_flush_method").cloned().unwrap_or_default().to_ascii_lowercase();
    let is_buffered = !method.starts_with("o_direct");
    settings.insert(data.to_owned(), if is_buffered { "ON" } else { "OFF" }.to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parity::configured::{option_file, postgresql_conf};

    fn of(product: Product, version: [u32; 3]) -> Defaults {
        defaults(product, version, None).unwrap()
    }

    #[test]
    fn a_version_that_was_read_has_its_own_values() {
        let old = of(Product::MySql, [5, 7, 22]);
        let new = of(Product::MySql, [8, 0, 31]);
        assert_eq!((old.assumed_from, new.assumed_from), (None, None));
        assert_eq!((old.settings["log_bin"].as_str(), new.settings["log_bin"].as_str()), ("OFF", "ON"));
        assert!(
            old.settings.contains_key("query_cache_type") && !new.settings.contains_key("query_cache_type")
        );
        assert_eq!(of(Product::Postgres, [18, 6, 0]).settings["data_checksums"], "on");
    }

    #[test]
    fn a_version_between_two_is_taken_for_the_older_and_said_to_be_assumed() {
        assert_eq!(of(Product::MySql, [8, 0, 20]).assumed_from.as_deref(), Some("8.0.15"));
        assert_eq!(of(Product::MySql, [8, 0, 13]).assumed_from, None, "the two around it are the same");
        assert_eq!(of(Product::MySql, [5, 1, 73]).assumed_from.as_deref(), Some("5.5.9"));
        assert_eq!(of(Product::MariaDb, [12, 3, 1]).assumed_from.as_deref(), Some("11.8.9"));
        assert_eq!(of(Product::Postgres, [17, 2, 0]).assumed_from, None);
        assert_eq!(of(Product::Postgres, [20, 1, 0]).assumed_from.as_deref(), Some("19"));
    }

    #[test]
    fn what_is_configured_is_shown_as_the_server_would_show_it() {
        let mut settings = of(Product::MySql, [8, 0, 31]).settings;
        let text = "[mysqld]\ninnodb_buffer_pool_size=200M\nskip-log-bin\ninnodb_io_capacity=3000\n\
                    character_set_server=latin1\nperformance_schema=0\n";
        overlay(&mut settings, &option_file(text, Product::MySql, [8, 0, 31]), Product::MySql, [8, 0, 31]);
        let shown = [
            "innodb_buffer_pool_size",
            "log_bin",
            "innodb_io_capacity_max",
            "collation_server",
            "performance_schema",
        ]
        .map(|name| settings[name].as_str());
        assert_eq!(shown, ["268435456", "OFF", "6000", "latin1_swedish_ci", "OFF"]);
        let mut settings = of(Product::Postgres, [15, 1, 0]).settings;
        overlay(
            &mut settings,
            &postgresql_conf("fsync = 0\nshared_buffers = 65536"),
            Product::Postgres,
            [15, 1, 0],
        );
        assert_eq!((settings["fsync"].as_str(), settings["shared_buffers"].as_str()), ("off", "536870912"));
    }
}
