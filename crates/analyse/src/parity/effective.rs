//! Lines in a variant's configuration that did not take effect as written: not read, repeated, not
//! taken, or changed by the server.

use dbdyno_products::{
    ConfiguredLine, FamilyFacts, KNOWN, Subject, Value, number, says_the_same, size, switch,
};
use serde::Serialize;

/// A configuration line that did not take effect as written.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FatedLine {
    /// The line is in a group that the server does not read.
    Unread { line: usize, setting: String, group: String },
    /// A later line has another value for the same setting.
    Twice { line: usize, setting: String, value: String, later_line: usize, later_value: String },
    /// The line is marked `loose`, and the server has no such setting.
    NotTaken { line: usize, setting: String },
    /// The server has a value other than the configured one.
    Changed { line: usize, setting: String, configured: String, effective: Value },
}

/// Finds the lines to which one of these happened.
pub(super) type Fate = fn(&Subject) -> Vec<FatedLine>;

/// Each function, with its name in the rows of `pitfalls.toml`.
pub(super) const FATES: [(&str, Fate); 4] =
    [("unread", unread), ("twice", twice), ("not-taken", not_taken), ("changed", changed)];

fn unread(subject: &Subject) -> Vec<FatedLine> {
    let lines = subject.configured.iter().filter(|line| !line.is_read && !line.is_for_others);
    lines
        .filter_map(|line| {
            let (setting, _) = line.setting(&subject.settings)?;
            Some(FatedLine::Unread { line: line.line, setting, group: line.group.clone() })
        })
        .collect()
}

fn twice(subject: &Subject) -> Vec<FatedLine> {
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
            found.push(FatedLine::Twice {
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

fn not_taken(subject: &Subject) -> Vec<FatedLine> {
    // Where no settings are on record, it is not known.
    if subject.settings.is_empty() {
        return Vec::new();
    }
    let lines = subject.configured.iter().filter(|line| line.is_read && line.is_loose);
    lines
        .filter(|line| line.setting(&subject.settings).is_none())
        .map(|line| FatedLine::NotTaken { line: line.line, setting: line.name.clone() })
        .collect()
}

fn changed(subject: &Subject) -> Vec<FatedLine> {
    let changed = |(setting, (configured, line)): (String, (String, &ConfiguredLine))| {
        // The comparison takes what the server was configured with, not what a connection makes of
        // it.
        let is = subject.settings.get(&setting)?;
        is_changed(subject.family, &setting, &configured, is).then(|| FatedLine::Changed {
            line: line.line,
            effective: size_or_words(is),
            setting,
            configured,
        })
    };
    subject.configured_settings().into_iter().filter_map(changed).collect()
}

/// Whether the two values differ. Only switches, numbers and words can be compared, not values that
/// the server expands.
fn is_changed(family: &FamilyFacts, name: &str, configured: &str, is: &str) -> bool {
    let lower = |text: &str| text.to_ascii_lowercase();
    let is_number_for_word = number(configured).is_some() && number(is).is_none() && switch(is).is_none();
    let is_automatic = configured.trim().starts_with('-')
        || (family.zero_is_automatic && configured.trim() == "0" && number(is).is_some());
    let is_comparable = !KNOWN.not_compared.iter().any(|known| known == name)
        && !name.starts_with("plugin")
        && !configured.contains(['/', ','])
        && !is.contains(['/', ','])
        && !is_number_for_word
        && !is_automatic;
    is_comparable && !says_the_same(configured, is) && !lower(is).starts_with(&lower(configured))
}

/// Reads a size, or words. Servers write sizes as plain numbers, but a small number may be
/// anything.
fn size_or_words(value: &str) -> Value {
    const LEAST: u64 = 1 << 20;
    match size(value) {
        Some(bytes) if bytes >= LEAST && value.chars().all(|c| c.is_ascii_digit()) => Value::Size(bytes),
        _ => Value::words(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parity::testing::configured;

    fn all(product: &str, version: &str, config: &str) -> Vec<FatedLine> {
        let subject = configured("a", product, version, config);
        FATES.iter().flat_map(|(_, fate)| fate(&subject)).collect()
    }

    #[test]
    fn every_line_that_does_not_mean_what_it_says_is_named() {
        let config = "[mysql]\ninnodb_flush_log_at_trx_commit = 2\n[client]\nport = 3306\n[mysqld]\n\
                      sync_binlog = 1\nloose-innodb_foo = 1\ninnodb_buffer_pool_size = 200M\nsync-binlog = 0\n\
                      [mariadb]\nlog_bin = x\n";
        let text = str::to_owned;
        let expected = [
            FatedLine::Unread {
                line: 2,
                setting: text("innodb_flush_log_at_trx_commit"),
                group: text("mysql"),
            },
            FatedLine::Twice {
                line: 6,
                setting: text("sync_binlog"),
                value: text("1"),
                later_line: 9,
                later_value: text("0"),
            },
            FatedLine::NotTaken { line: 7, setting: text("innodb_foo") },
            FatedLine::Changed {
                line: 8,
                setting: text("innodb_buffer_pool_size"),
                configured: text("200M"),
                effective: Value::Size(256 << 20),
            },
        ];
        assert_eq!(all("MySQL", "8.0.31", config), expected);
    }

    #[test]
    fn what_was_taken_as_configured_is_no_finding() {
        let config = "[mysqld]\nskip-log-bin\ninnodb_buffer_pool_size = 1G\nperformance_schema = off\n\
                      innodb_flush_method = o_direct\nsql_mode = TRADITIONAL\ntmpdir = /x\n";
        assert!(all("MySQL", "8.0.31", config).is_empty());
        let config = "shared_buffers = 131072\ncheckpoint_timeout = 300\njit = 0\n";
        assert!(all("PostgreSQL", "15.1.0", config).is_empty());
    }
}
