//! Settings and their values. This module reads values in the forms of servers and option files,
//! and decides when two values are equal. It also has the lines of a configuration and the facts in
//! `known.toml`.
//!
//! Reading never fails. A configuration has been checked before a server starts with it, and a
//! report must be possible for any record.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// Relative difference within which sizes count as equal, because servers round them to chunks,
/// pages and files.
const SIZE_TOLERANCE: f64 = 0.05;

// These words say when a commit is on the disk. Every product uses them.
pub(crate) const SYNCED: &str = "synced";
pub(crate) const LATER: &str = "synced within a second or so";
pub(crate) const NEVER: &str = "never synced";

/// The words for how table files are read and written.
pub(crate) fn io_words(is_direct: bool) -> Value {
    Value::words(if is_direct { "O_DIRECT" } else { "page cache" })
}

/// The meaning of a setting, or of several together.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// A number of bytes.
    Size(u64),
    Number(f64),
    Switch(bool),
    Words(String),
}

impl Value {
    pub fn words(text: impl Into<String>) -> Self {
        Self::Words(text.into())
    }

    /// Whether both count as equal for a reader of results: sizes within 5 %, words in any case.
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Size(a), Self::Size(b)) => {
                let (a, b) = (*a as f64, *b as f64);
                (a - b).abs() <= SIZE_TOLERANCE * a.max(b)
            }
            (Self::Words(a), Self::Words(b)) => a.eq_ignore_ascii_case(b),
            _ => self == other,
        }
    }

    /// The value as a number, where it is one: bytes, a number, 1 or 0.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Size(bytes) => Some(*bytes as f64),
            Self::Number(number) => Some(*number),
            Self::Switch(on) => Some(f64::from(u8::from(*on))),
            Self::Words(text) => number(text),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(bytes) => f.write_str(&size_text(*bytes)),
            Self::Number(number) => write!(f, "{number}"),
            Self::Switch(on) => f.write_str(if *on { "on" } else { "off" }),
            Self::Words(text) => f.write_str(text),
        }
    }
}

/// Reads `on`, `1`, `true`, `yes`, `enabled` and their opposites, in any case.
pub fn switch(text: &str) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is(&["on", "1", "true", "yes", "enabled"]) {
        return Some(true);
    }
    is(&["off", "0", "false", "no", "disabled"]).then_some(false)
}

/// Reads a number with or without a suffix for a size (`K`, `kB`, `M`, `MB`, `GiB`) or a time
/// (`ms`, `s`, `min`, `h`, `d`), in bytes or milliseconds. The result is `None` for words.
pub fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(split);
    let digits: f64 = digits.trim().parse().ok()?;
    Some(digits * factor(suffix.trim())?)
}

/// Does the same as [`number`], but the result must be a whole number of bytes.
pub fn size(text: &str) -> Option<u64> {
    let bytes = number(text)?;
    (bytes >= 0.0).then_some(bytes as u64)
}

fn factor(suffix: &str) -> Option<f64> {
    let times = |power: i32| Some(1024_f64.powi(power));
    match suffix.to_ascii_lowercase().as_str() {
        "" | "b" | "ms" => Some(1.0),
        "k" | "kb" | "kib" => times(1),
        "m" | "mb" | "mib" => times(2),
        "g" | "gb" | "gib" => times(3),
        "t" | "tb" | "tib" => times(4),
        "us" => Some(0.001),
        "s" => Some(1e3),
        "min" => Some(60e3),
        "h" => Some(3_600e3),
        "d" => Some(86_400e3),
        _ => None,
    }
}

/// Whether two texts for one setting mean the same: `1G` and `1073741824`, `ON` and `1`, `O_DIRECT`
/// and `o_direct`.
pub fn says_the_same(a: &str, b: &str) -> bool {
    let (a, b) = (plain(a), plain(b));
    if a.eq_ignore_ascii_case(b) {
        return true;
    }
    if let (Some(a), Some(b)) = (switch(a), switch(b)) {
        return a == b;
    }
    matches!((number(a), number(b)), (Some(a), Some(b)) if a == b)
}

fn plain(text: &str) -> &str {
    text.trim().trim_matches(['\'', '"'])
}

/// Formats bytes, such as `128 MiB`: in the largest unit that gives a whole number, otherwise with
/// two decimals in the largest unit that fits.
pub fn size_text(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let fits = UNITS.iter().find(|(_, shift)| bytes >> shift > 0);
    let Some((_, highest)) = fits else { return format!("{bytes} B") };
    let whole = UNITS
        .iter()
        .find(|(_, shift)| shift <= highest && bytes.is_multiple_of(1 << shift))
        .filter(|(_, shift)| bytes >> shift < 10_000);
    match (whole, fits) {
        (Some((unit, shift)), _) => match bytes >> shift {
            count @ 1_000.. => format!("{},{:03} {unit}", count / 1_000, count % 1_000),
            count => format!("{count} {unit}"),
        },
        (None, Some((unit, shift))) => format!("{:.2} {unit}", bytes as f64 / (1_u64 << shift) as f64),
        (None, None) => format!("{bytes} B"),
    }
}

/// One line in a configuration that sets something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfiguredLine {
    /// Line number, counted from 1.
    pub line: usize,
    /// The line's group, such as `mysqld`; empty where files have no groups.
    pub group: String,
    /// Name in lower case with `_`, without `loose_`: `innodb_doublewrite`, `skip_log_bin`.
    pub name: String,
    /// The value; `None` for a bare name.
    pub value: Option<String>,
    /// Whether the line has the prefix `loose_`. The server ignores such a line when it does not
    /// know the option.
    pub is_loose: bool,
    /// Whether the server reads the line's group.
    pub is_read: bool,
    /// Whether the line is for other programs or versions, so that it is no mistake if the server
    /// does not read it.
    pub is_for_others: bool,
}

impl ConfiguredLine {
    /// The server setting that the line means, and its value there: `skip_log_bin` is `log_bin =
    /// OFF`, `log_bin = x` is `log_bin = ON`. The result is `None` when the server has no such
    /// setting.
    pub fn setting(&self, settings: &BTreeMap<String, String>) -> Option<(String, String)> {
        let (name, negated) = self.base_name();
        let known = known_name(&name, settings)?;
        let value = match (&self.value, negated) {
            (_, Some(is_on)) => if is_on { "ON" } else { "OFF" }.to_owned(),
            (None, None) => "ON".to_owned(),
            (Some(value), None) if known == "log_bin" && switch(value).is_none() => "ON".to_owned(),
            (Some(value), None) if name == "innodb_checksums" && known != name => {
                if switch(value) == Some(false) { "none" } else { "innodb" }.to_owned()
            }
            (Some(value), None) => value.clone(),
        };
        Some((known, value))
    }

    /// The name without `skip_`, `disable_` and `enable_`, and the value that the prefix gives it.
    fn base_name(&self) -> (String, Option<bool>) {
        if !KNOWN.real_skips.contains(&self.name) {
            for (prefix, is_on) in [("skip_", false), ("disable_", false), ("enable_", true)] {
                if let Some(rest) = self.name.strip_prefix(prefix) {
                    return (rest.to_owned(), Some(is_on));
                }
            }
        }
        (self.name.clone(), None)
    }
}

/// The server's name for the setting `name`: the name itself, an alias, or the only name that
/// begins with it.
fn known_name(name: &str, settings: &BTreeMap<String, String>) -> Option<String> {
    if settings.contains_key(name) {
        return Some(name.to_owned());
    }
    if let Some(alias) = KNOWN.aliases.get(name).filter(|alias| settings.contains_key(*alias)) {
        return Some(alias.clone());
    }
    let mut longer = settings.keys().filter(|known| known.starts_with(name));
    match (longer.next(), longer.next()) {
        // The servers accept a shortened name when exactly one option begins with it.
        (Some(only), None) if name.len() > 3 => Some(only.clone()),
        _ => None,
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownSettings {
    pub of_each_start: Vec<String>,
    pub not_compared: Vec<String>,
    pub(crate) real_skips: Vec<String>,
    pub(crate) of_clients: Vec<String>,
    pub(crate) aliases: BTreeMap<String, String>,
    pub follows: BTreeMap<String, Vec<String>>,
    pub(crate) collations: BTreeMap<String, String>,
    pub(crate) units: BTreeMap<String, f64>,
}

pub static KNOWN: LazyLock<KnownSettings> =
    LazyLock::new(|| toml::from_str(include_str!("known.toml")).expect("tests read it"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_times_and_switches_are_read_in_all_their_forms() {
        assert_eq!(["1G", "1GB", "1024 MiB", "1073741824"].map(size), [Some(1 << 30); 4]);
        assert_eq!(["5min", "300s", "300000"].map(number), [Some(300_000.0); 3]);
        assert_eq!(["on", "TRUE", "1", "Enabled"].map(switch), [Some(true); 4]);
        assert_eq!((switch("DEMAND"), number("O_DIRECT"), size("-1")), (None, None, None));
    }

    #[test]
    fn values_of_one_setting_are_equal_in_all_their_forms() {
        for (a, b) in [("1G", "1073741824"), ("'ON'", "1"), ("O_DIRECT", "o_direct"), ("5min", "300s")] {
            assert!(says_the_same(a, b), "{a} {b}");
        }
        for (a, b) in [("1G", "1073741825"), ("ON", "2"), ("fsync", "")] {
            assert!(!says_the_same(a, b), "{a} {b}");
        }
    }

    #[test]
    fn sizes_are_written_in_the_largest_unit_that_gives_a_whole_number() {
        let texts = [0, 512, 8 << 10, 100_663_296, 1 << 30, (1 << 30) + 1, 3 << 29].map(size_text);
        assert_eq!(texts, ["0 B", "512 B", "8 KiB", "96 MiB", "1 GiB", "1.00 GiB", "1,536 MiB"]);
    }

    #[test]
    fn a_size_is_like_the_one_from_which_it_was_rounded() {
        assert!(Value::Size(1000).is_like(&Value::Size(1050)));
        assert!(!Value::Size(1000).is_like(&Value::Size(1060)));
        assert!(Value::words("UTF-8").is_like(&Value::words("utf-8")));
        assert!(!Value::Switch(true).is_like(&Value::Number(1.0)));
    }
}
