//! How a variant was configured: lines of a configuration, and the settings that they mean. Each
//! product reads its own.
//!
//! Reading never fails: what starts a server has been checked before, and a report must be possible
//! of any record.

use std::collections::BTreeMap;

use crate::known::KNOWN;
use crate::value::switch;

/// One line that sets something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfiguredLine {
    /// Counts from 1.
    pub line: usize,
    /// `mysqld`; empty where files have no groups.
    pub group: String,
    /// In small letters with `_`, without `loose_`: `innodb_doublewrite`, `skip_log_bin`.
    pub name: String,
    /// `None` for a bare name.
    pub value: Option<String>,
    /// Marked `loose_`: the server passes over it when it does not know it.
    pub is_loose: bool,
    /// The server reads the line's group.
    pub is_read: bool,
    /// It is meant for other programs or versions: that it is not read is no mistake.
    pub is_for_others: bool,
}

impl ConfiguredLine {
    /// The setting that the line means among those of a server, and its value there: `skip_log_bin`
    /// is `log_bin = OFF`, `log_bin = x` is `log_bin = ON`. `None` when the server has no such
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

    /// The name without `skip_`, `disable_` and `enable_`, and what they make of it.
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

/// The name under which the server has what `name` says: itself, an alias, or the only one that
/// begins so.
fn known_name(name: &str, settings: &BTreeMap<String, String>) -> Option<String> {
    if settings.contains_key(name) {
        return Some(name.to_owned());
    }
    if let Some(alias) = KNOWN.aliases.get(name).filter(|alias| settings.contains_key(*alias)) {
        return Some(alias.clone());
    }
    let mut longer = settings.keys().filter(|known| known.starts_with(name));
    match (longer.next(), longer.next()) {
        // The servers take a shortened name when it is the beginning of one option only.
        (Some(only), None) if name.len() > 3 => Some(only.clone()),
        _ => None,
    }
}
