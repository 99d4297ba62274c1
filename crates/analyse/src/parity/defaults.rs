//! How the settings of a variant come to be known: read back from its server, or predicted from the
//! defaults of its product and version and what was configured.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use dbdyno_record::{ServerInfo, VariantInfo};
use serde::Deserialize;

use super::configured::ConfiguredLine;
use super::data;
use super::products::{self, UNKNOWN};
use super::remarks::Foreign;
use super::subject::{Build, Extra, Knowledge, Product, Settings, Subject};
use super::value;

/// Values read from real servers; the file says how.
static DEFAULTS: LazyLock<BTreeMap<String, Vec<Entry>>> =
    LazyLock::new(|| data(include_str!("defaults.toml")));

impl Subject {
    /// A variant whose server was read back.
    pub fn effective(variant: &VariantInfo, server: &ServerInfo, extra: &Extra) -> Self {
        let build = Build { product: server.product.clone(), version: server.version.clone() };
        let mut subject = Self::bare(variant, Some(&build), extra);
        let of_product = |speaks: &String| Foreign { name: server.product.clone(), speaks: speaks.clone() };
        subject.foreign = server.speaks.as_ref().map(of_product);
        subject.settings = server.settings.clone();
        subject.session = server.session.clone();
        if let Some(word) = subject.product.word {
            subject.settings.iter_mut().for_each(|(name, value)| *value = word(name, value));
        }
        subject.knowledge = match (&subject.foreign, subject.settings.is_empty()) {
            (Some(_), _) => Knowledge::Foreign,
            (None, true) => Knowledge::Unknown,
            (None, false) => Knowledge::Effective,
        };
        subject
    }

    /// A variant that has not run: its settings are those of its version's defaults and of its
    /// configuration. `config` of `variant` is the text of its configuration; an option file
    /// rendered from intents will do.
    pub fn predicted(variant: &VariantInfo, build: Option<&Build>, extra: &Extra) -> Self {
        let mut subject = Self::bare(variant, build, extra);
        if subject.is_external {
            return subject;
        }
        if let Some(found) = defaults(subject.product, subject.version, subject.engine.as_deref()) {
            subject.settings = found.settings;
            overlay(&mut subject.settings, &subject.configured, subject.product, subject.version);
            subject.knowledge = Knowledge::Predicted { assumed_from: found.assumed_from };
        }
        subject
    }

    fn bare(variant: &VariantInfo, build: Option<&Build>, extra: &Extra) -> Self {
        let product = build.map_or(&UNKNOWN, |build| products::of(&build.product));
        let version = build.map_or([0; 3], |build| parts(&build.version));
        let engine = |default| extra.engine.as_deref().unwrap_or(default).to_ascii_lowercase();
        Self {
            name: variant.name.clone(),
            product,
            version,
            engine: product.engine.map(engine),
            settings: Settings::new(),
            session: Settings::new(),
            configured: (product.lines)(&variant.config, product, version),
            knowledge: Knowledge::Unknown,
            tls: product.has_tls.then_some(extra.tls),
            extra: extra.clone(),
            is_external: variant.external,
            foreign: None,
        }
    }
}

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
pub(super) fn defaults(product: &Product, version: [u32; 3], engine: Option<&str>) -> Option<Defaults> {
    let entries = DEFAULTS.get(product.defaults)?;
    let version = (product.cut)(version);
    let is_older = |entry: &Entry| version.is_some_and(|version| parts(&entry.version) <= version);
    let last = entries.iter().rposition(is_older).unwrap_or(0);
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
    let is_known = version.is_none_or(|version| is_surely(entries, last, version));
    Some(Defaults { settings, assumed_from: (!is_known).then(|| known.clone()) })
}

/// Whether a version has the values of entry `last`: it is that version, or lies between two that
/// have the same.
fn is_surely(entries: &[Entry], last: usize, version: [u32; 3]) -> bool {
    parts(&entries[last].version) == version
        || (parts(&entries[last].version) <= version
            && entries.get(last + 1).is_some_and(|next| next.set.is_empty() && next.gone.is_empty()))
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
    product: &Product,
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
    (product.follow)(settings, &is_configured, product, version);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parity::products;

    fn of(product: &str, version: [u32; 3]) -> Defaults {
        defaults(products::of(product), version, None).unwrap()
    }

    fn laid_over(settings: &mut Settings, text: &str, product: &str, version: [u32; 3]) {
        let product = products::of(product);
        overlay(settings, &(product.lines)(text, product, version), product, version);
    }

    #[test]
    fn a_version_that_was_read_has_its_own_values() {
        let old = of("MySQL", [5, 7, 22]);
        let new = of("MySQL", [8, 0, 31]);
        assert_eq!((old.assumed_from, new.assumed_from), (None, None));
        assert_eq!((old.settings["log_bin"].as_str(), new.settings["log_bin"].as_str()), ("OFF", "ON"));
        assert!(
            old.settings.contains_key("query_cache_type") && !new.settings.contains_key("query_cache_type")
        );
        assert_eq!(of("PostgreSQL", [18, 6, 0]).settings["data_checksums"], "on");
    }

    #[test]
    fn a_version_between_two_is_taken_for_the_older_and_said_to_be_assumed() {
        assert_eq!(of("MySQL", [8, 0, 20]).assumed_from.as_deref(), Some("8.0.15"));
        assert_eq!(of("MySQL", [8, 0, 13]).assumed_from, None, "the two around it are the same");
        assert_eq!(of("MySQL", [5, 1, 73]).assumed_from.as_deref(), Some("5.5.9"));
        assert_eq!(of("MariaDB", [12, 3, 1]).assumed_from.as_deref(), Some("11.8.9"));
        assert_eq!(of("PostgreSQL", [17, 2, 0]).assumed_from, None);
        assert_eq!(of("PostgreSQL", [20, 1, 0]).assumed_from.as_deref(), Some("19"));
    }

    #[test]
    fn what_is_configured_is_shown_as_the_server_would_show_it() {
        let mut settings = of("MySQL", [8, 0, 31]).settings;
        let text = "[mysqld]\ninnodb_buffer_pool_size=200M\nskip-log-bin\ninnodb_io_capacity=3000\n\
                    character_set_server=latin1\nperformance_schema=0\n";
        laid_over(&mut settings, text, "MySQL", [8, 0, 31]);
        let shown = [
            "innodb_buffer_pool_size",
            "log_bin",
            "innodb_io_capacity_max",
            "collation_server",
            "performance_schema",
        ]
        .map(|name| settings[name].as_str());
        assert_eq!(shown, ["268435456", "OFF", "6000", "latin1_swedish_ci", "OFF"]);
        let mut settings = of("PostgreSQL", [15, 1, 0]).settings;
        let text = "fsync = 0\nshared_buffers = 65536";
        laid_over(&mut settings, text, "PostgreSQL", [15, 1, 0]);
        assert_eq!((settings["fsync"].as_str(), settings["shared_buffers"].as_str()), ("off", "536870912"));
    }
}
