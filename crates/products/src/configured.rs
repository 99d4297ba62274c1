//! A variant's configuration: the lines in its option file, and the settings that they mean. Each
//! product has its own reader.
//!
//! Reading never fails. Whatever starts a server has been checked before, and a report must be
//! possible for any record.

use std::collections::BTreeMap;

use crate::known::KNOWN;
use crate::value::switch;

/// One line that sets something.
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
        // The servers accept a shortened name when it is the start of exactly one option.
        (Some(only), None) if name.len() > 3 => Some(only.clone()),
        _ => None,
    }
}
