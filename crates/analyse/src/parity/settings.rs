//! Finds a variant's settings. They are read back from its server, or predicted before it runs,
//! from what its build reported and what was configured. The file also finds the lines in a
//! configuration that did not take effect as written (not read, repeated, not taken, or changed by
//! the server).

use dbdyno_products::{
    ConfiguredLine, FamilyFacts, Foreign, KNOWN, Planned, Product, Release, Settings, SettingsSource,
    Subject, Value, number, says_the_same, size, switch,
};
use dbdyno_record::{ServerInfo, VariantInfo};
use serde::Serialize;

/// What is known about a server before it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Build {
    /// `MariaDB`, `MySQL`, `Percona Server`, `PostgreSQL`, `SQLite`; empty where it is not known.
    pub product: String,
    /// The version, such as `10.11.19`.
    pub version: String,
    /// The settings that the build reported when it was started without an option file; empty where
    /// it was not asked.
    pub settings: Settings,
    /// The command that asks the build for its settings.
    pub ask: String,
}

/// A variant whose settings were read back from its server.
pub fn effective(variant: &VariantInfo, server: &ServerInfo, planned: &Planned) -> Subject {
    let mut subject = bare(variant, &server.product, &server.version, planned);
    // `speaks` is set for an unknown product: it names the known product whose protocol it speaks.
    let foreign = |speaks: &String| Foreign { name: server.product.clone(), speaks: speaks.clone() };
    subject.foreign = server.speaks.as_ref().map(foreign);
    subject.settings = in_words(subject.family, server.settings.clone());
    subject.session = server.session.clone();
    subject.settings_source = match (&subject.foreign, subject.settings.is_empty()) {
        (Some(_), _) => SettingsSource::Foreign,
        (None, true) => SettingsSource::Unknown,
        (None, false) => SettingsSource::Effective,
    };
    subject
}

/// A variant that has not run. Its settings are those that its build reported, overridden by those
/// in its configuration, whose text is `variant.config`. If the plan has config intents (settings
/// in terms that are valid for every product), the text is the option file that dbdyno makes of
/// them.
///
/// For a build that was not asked, only the configured settings are known. They are enough for
/// [`super::buffer_pool_bytes`], but not for a comparison.
pub fn predicted(variant: &VariantInfo, build: Option<&Build>, planned: &Planned) -> Subject {
    let Some(build) = build else { return bare(variant, "", "", planned) };
    let mut subject = bare(variant, &build.product, &build.version, planned);
    subject.settings = in_words(subject.family, build.settings.clone());
    if build.settings.is_empty() {
        subject.ask.clone_from(&build.ask);
        // The empty values are placeholders. `overlay` changes only settings that are there.
        let read = subject.configured.iter().filter(|line| line.is_read);
        subject.settings.extend(read.map(|line| (line.name.clone(), String::new())));
    } else {
        subject.settings_source = SettingsSource::Predicted;
    }
    overlay(&mut subject.settings, &subject.configured, subject.family);
    subject
}

fn bare(variant: &VariantInfo, product: &str, version: &str, planned: &Planned) -> Subject {
    let product = Product::named(product);
    let family = product.family();
    let version = Release::parse(version).unwrap_or_default();
    Subject {
        name: variant.name.clone(),
        family,
        product,
        version,
        engine: family.default_engine.map(|_| family.engine_of(&planned.variant)),
        settings: Settings::new(),
        session: Settings::new(),
        configured: (family.lines)(&variant.config, product, version),
        settings_source: SettingsSource::Unknown,
        ask: String::new(),
        tls: (!family.is_embedded()).then(|| planned.asks_for_tls()),
        planned: planned.clone(),
        is_external: variant.external,
        foreign: None,
    }
}

/// Settings with their values in the words that the product's configuration uses.
fn in_words(family: &FamilyFacts, mut settings: Settings) -> Settings {
    if let Some(word) = family.word {
        settings.iter_mut().for_each(|(name, value)| *value = word(name, value));
    }
    settings
}

/// Replaces reported values by configured ones, written as the server would report them. Some
/// settings depend on a configured one. Where only a running server knows their values
/// (`KNOWN.follows`), they are removed. Where the values are known, such as the default collation
/// of a character set, `family.follow` updates them. It also rounds a buffer pool's size up to
/// whole chunks, as MySQL does.
fn overlay(settings: &mut Settings, configured: &[ConfiguredLine], family: &FamilyFacts) {
    let reported = settings.clone();
    let mut names = Vec::new();
    for line in configured.iter().filter(|line| line.is_read) {
        // `setting` gives the server's name and value for the line: `log_bin` and `OFF` for
        // `skip_log_bin`.
        if let Some((name, wanted)) = line.setting(settings) {
            let shown = as_shown(settings.get(&name).map_or("", String::as_str), &wanted);
            settings.insert(name.clone(), shown);
            names.push(name);
        }
    }
    for (follower, leaders) in &KNOWN.follows {
        if !names.contains(follower) && leaders.iter().any(|leader| names.contains(leader)) {
            settings.remove(follower);
        }
    }
    (family.follow)(settings, &reported);
}

/// The wanted value in the form in which the server writes its current one: switches as `ON`, sizes
/// in bytes.
fn as_shown(now: &str, wanted: &str) -> String {
    let is_switch = switch(now).is_some() && now.parse::<f64>().is_err();
    if let (true, Some(is_on)) = (is_switch, switch(wanted)) {
        let word = if is_on { "ON" } else { "OFF" };
        let is_small = now.chars().all(char::is_lowercase);
        return if is_small { word.to_ascii_lowercase() } else { word.to_owned() };
    }
    match (now.parse::<i64>(), size(wanted)) {
        (Ok(_), Some(bytes)) => bytes.to_string(),
        _ => wanted.to_owned(),
    }
}

/// A configuration line that did not take effect as written.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LineProblem {
    /// The line is in a group that the server does not read.
    Unread { line: usize, setting: String, group: String },
    /// A later line has another value for the same setting.
    Twice { line: usize, setting: String, value: String, later_line: usize, later_value: String },
    /// The line is marked `loose`, and the server has no such setting.
    NotTaken { line: usize, setting: String },
    /// The server has a value other than the configured one.
    Changed { line: usize, setting: String, configured: String, effective: Value },
}

/// A function that finds the lines which did not take effect for one of the reasons in
/// [`LineProblem`].
pub(super) type LineCheck = fn(&Subject) -> Vec<LineProblem>;

/// The functions that find such lines, each with its name in the rows of `pitfalls.toml`.
pub(super) const LINE_CHECKS: [(&str, LineCheck); 4] =
    [("unread", unread), ("twice", twice), ("not-taken", not_taken), ("changed", changed)];

fn unread(subject: &Subject) -> Vec<LineProblem> {
    // A line for another version, another product or a client program (`is_for_others`) is not read
    // either, but that is no mistake.
    let lines = subject.configured.iter().filter(|line| !line.is_read && !line.is_for_others);
    lines
        .filter_map(|line| {
            let (setting, _) = line.setting(&subject.settings)?;
            Some(LineProblem::Unread { line: line.line, setting, group: line.group.clone() })
        })
        .collect()
}

fn twice(subject: &Subject) -> Vec<LineProblem> {
    let read: Vec<(&ConfiguredLine, (String, String))> = subject
        .configured
        .iter()
        .filter(|line| line.is_read)
        .filter_map(|line| Some((line, line.setting(&subject.settings)?)))
        .collect();
    let mut found = Vec::new();
    for (index, (line, (setting, value))) in read.iter().enumerate() {
        let later = read[index + 1..].iter().find(|(_, (other, _))| other == setting);
        if let Some((later, (_, later_value))) = later
            && !says_the_same(value, later_value)
        {
            found.push(LineProblem::Twice {
                line: line.line,
                setting: setting.clone(),
                value: value.clone(),
                later_line: later.line,
                later_value: later_value.clone(),
            });
        }
    }
    found
}

fn not_taken(subject: &Subject) -> Vec<LineProblem> {
    // Without recorded settings, it is not known which settings the server has.
    if subject.settings.is_empty() {
        return Vec::new();
    }
    let lines = subject.configured.iter().filter(|line| line.is_read && line.is_loose);
    lines
        .filter(|line| line.setting(&subject.settings).is_none())
        .map(|line| LineProblem::NotTaken { line: line.line, setting: line.name.clone() })
        .collect()
}

fn changed(subject: &Subject) -> Vec<LineProblem> {
    let changed = |(setting, (configured, line)): (String, (String, &ConfiguredLine))| {
        // The server's own value is compared, and not the one that a connection has set.
        let actual = subject.settings.get(&setting)?;
        is_changed(subject.family, &setting, &configured, actual).then(|| LineProblem::Changed {
            line: line.line,
            effective: size_or_words(actual),
            setting,
            configured,
        })
    };
    subject.configured_settings().into_iter().filter_map(changed).collect()
}

/// Whether the two values differ. Only switches, numbers and words can be compared. Paths, lists,
/// numbers that the server shows as words, and numbers that let the server choose (such as -1)
/// count as equal. So does a value that the server shows in a longer form with the same beginning.
fn is_changed(family: &FamilyFacts, name: &str, configured: &str, actual: &str) -> bool {
    let lower = |text: &str| text.to_ascii_lowercase();
    let is_number_for_word =
        number(configured).is_some() && number(actual).is_none() && switch(actual).is_none();
    let is_automatic = configured.trim().starts_with('-')
        || (family.zero_is_automatic && configured.trim() == "0" && number(actual).is_some());
    let is_comparable = !KNOWN.not_compared.iter().any(|known| known == name)
        && !name.starts_with("plugin")
        && !configured.contains(['/', ','])
        && !actual.contains(['/', ','])
        && !is_number_for_word
        && !is_automatic;
    is_comparable && !says_the_same(configured, actual) && !lower(actual).starts_with(&lower(configured))
}

/// Reads a size, or words. Servers write sizes as plain numbers, but a small number may be
/// anything.
fn size_or_words(value: &str) -> Value {
    const MIN: u64 = 1 << 20;
    match size(value) {
        Some(bytes) if bytes >= MIN && value.chars().all(|c| c.is_ascii_digit()) => Value::Size(bytes),
        _ => Value::words(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parity::testing::configured;

    #[test]
    fn a_configured_value_is_shown_as_the_server_would_show_it() {
        let text = "[mysqld]\ninnodb_buffer_pool_size=200M\nskip-log-bin\ninnodb_io_capacity=3000\n\
                    character_set_server=latin1\nperformance_schema=0\n";
        let settings = configured("a", "MySQL", "8.0.31", text).settings;
        let shown = |name: &str| settings.get(name).map_or("not known", String::as_str);
        let names = ["innodb_buffer_pool_size", "log_bin", "collation_server", "performance_schema"];
        assert_eq!(names.map(shown), ["268435456", "OFF", "latin1_swedish_ci", "OFF"]);
        let followers = ["innodb_io_capacity_max", "character_set_database", "collation_database"];
        assert_eq!(followers.map(shown), ["not known"; 3]);
        let settings = configured("a", "PostgreSQL", "15.1", "fsync = 0\nshared_buffers = 65536").settings;
        assert_eq!((settings["fsync"].as_str(), settings["shared_buffers"].as_str()), ("off", "536870912"));
    }

    #[test]
    fn only_configured_settings_are_known_of_a_build_that_was_not_asked() {
        let build = Build { product: "MySQL".to_owned(), version: "8.0.31".to_owned(), ..Build::default() };
        let variant = crate::parity::testing::variant("a", "[mysqld]\ninnodb_buffer_pool_size = 1G\n");
        let subject = predicted(&variant, Some(&build), &Planned::default());
        assert_eq!((subject.settings_source.clone(), subject.settings.len()), (SettingsSource::Unknown, 1));
        // The flag says that the size is configured.
        assert_eq!(crate::parity::buffer_pool_bytes(&subject), Some((1 << 30, true)));
        let pool = crate::parity::classes().iter().find(|class| class.id == "buffer-pool").unwrap();
        assert_eq!(pool.of(&subject), None, "it is not compared");
    }

    fn all(product: &str, version: &str, config: &str) -> Vec<LineProblem> {
        let subject = configured("a", product, version, config);
        LINE_CHECKS.iter().flat_map(|(_, check)| check(&subject)).collect()
    }

    #[test]
    fn every_line_that_did_not_take_effect_as_written_is_named() {
        let config = "[mysql]\ninnodb_flush_log_at_trx_commit = 2\n[client]\nport = 3306\n[mysqld]\n\
                      sync_binlog = 1\nloose-innodb_foo = 1\ninnodb_buffer_pool_size = 200M\nsync-binlog = 0\n\
                      [mariadb]\nlog_bin = x\n";
        let text = str::to_owned;
        let expected = [
            LineProblem::Unread {
                line: 2,
                setting: text("innodb_flush_log_at_trx_commit"),
                group: text("mysql"),
            },
            LineProblem::Twice {
                line: 6,
                setting: text("sync_binlog"),
                value: text("1"),
                later_line: 9,
                later_value: text("0"),
            },
            LineProblem::NotTaken { line: 7, setting: text("innodb_foo") },
            LineProblem::Changed {
                line: 8,
                setting: text("innodb_buffer_pool_size"),
                configured: text("200M"),
                effective: Value::Size(256 << 20),
            },
        ];
        assert_eq!(all("MySQL", "8.0.31", config), expected);
    }

    #[test]
    fn lines_that_took_effect_as_configured_are_not_reported() {
        let config = "[mysqld]\nskip-log-bin\ninnodb_buffer_pool_size = 1G\nperformance_schema = off\n\
                      innodb_flush_method = o_direct\nsql_mode = TRADITIONAL\ntmpdir = /x\n";
        assert!(all("MySQL", "8.0.31", config).is_empty());
        let config = "shared_buffers = 131072\ncheckpoint_timeout = 300\njit = 0\n";
        assert!(all("PostgreSQL", "15.1.0", config).is_empty());
    }
}
