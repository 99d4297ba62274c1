//! Config intents describe a server's configuration in terms that are valid for every product. The
//! data say to which options of each version dbdyno renders them.
//!
//! [`Intents`] are the intents in a plan. [`render()`] turns them into options for one
//! [`ConfigServer`]. The data are TOML files in this folder and in the crate `dbdyno-products`. The
//! page docs/reference/config-intents.md is generated from them.

mod data;
#[cfg(test)]
#[path = "tests/reference.rs"]
mod reference;
mod render;
mod value;

use std::path::Path;

use dbdyno_products::{Product, Release};
use strsim::levenshtein;

use crate::server::Error;
use data::IntentData;
pub use data::{OptionRange, OptionState};
pub use render::{ConfigServer, Plugins, Rendered, Setting, render};
pub(crate) use render::{OwnConfig, plain_name};
use value::RequestedValue;
pub use value::same_value;

/// Names of all `product` options in the data, in alphabetical order.
pub fn option_names(product: &'static Product) -> Vec<&'static str> {
    IntentData::get().names(product)
}

/// An option in one version of a product, with its default there. The result is `None` where the
/// option does not exist or is not in the data.
pub fn option_at(product: &'static Product, version: Release, option: &str) -> Option<&'static OptionRange> {
    IntentData::get().option(product, version, option)
}

/// The `product` versions that the data was compared with.
pub fn checked(product: &'static Product) -> &'static [String] {
    IntentData::get().checked(product)
}

/// Name of the table in a config whose intents are skipped on servers that do not support them.
pub const WHERE_POSSIBLE: &str = "where_possible";

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RequestedIntent {
    pub(crate) name: String,
    pub(crate) value: RequestedValue,
    /// Whether the intent is skipped on servers that do not support it.
    pub(crate) where_possible: bool,
}

/// All intents in a config. Each appears once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Intents {
    requested: Vec<RequestedIntent>,
}

impl Intents {
    /// Reads the TOML config file with intents at `path`.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let wrong = |why: String| Error::ConfigFile { path: path.to_path_buf(), why };
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let table: toml::Table =
            text.parse().map_err(|error: toml::de::Error| wrong(not_toml(&text, &error)))?;
        Self::from_table(&table).map_err(|error| wrong(error.to_string().replace('\n', "\n  ")))
    }

    /// Reads a table with intents. Its table `where_possible` holds the intents that are skipped on
    /// servers that do not support them.
    pub fn from_table(table: &toml::Table) -> Result<Self, Error> {
        let (mut intents, mut wrong) = (Self::default(), Vec::new());
        for (name, given) in table {
            match (name.as_str(), given) {
                (WHERE_POSSIBLE, toml::Value::Table(inner)) => {
                    for (name, given) in inner {
                        match table.contains_key(name) {
                            true => wrong.push(format!(
                                "`{name}` is in the config and under {WHERE_POSSIBLE}: keep one of them"
                            )),
                            false => intents.add(name, given, true, &mut wrong),
                        }
                    }
                }
                (WHERE_POSSIBLE, _) => wrong.push(format!("`{WHERE_POSSIBLE}` is a table of intents")),
                _ => intents.add(name, given, false, &mut wrong),
            }
        }
        match wrong.is_empty() {
            true => Ok(intents),
            false => Err(Error::Config { why: wrong.join("\n") }),
        }
    }

    /// Overlays `later` on these intents. If both have the same intent, `later` wins.
    #[must_use]
    pub fn overlaid(mut self, later: Self) -> Self {
        self.requested.retain(|requested| later.get(&requested.name).is_none());
        self.requested.extend(later.requested);
        self
    }

    pub fn is_empty(&self) -> bool {
        self.requested.is_empty()
    }

    /// Names and values as a plan writes them, in the data's order, for records and tables.
    pub fn pairs(&self) -> Vec<(String, String)> {
        let requested = IntentData::get().intents.iter().filter_map(|intent| self.get(&intent.name));
        requested.map(|requested| (requested.name.clone(), requested.value.to_string())).collect()
    }

    /// An intent's value in bytes, if it is a size.
    pub fn bytes(&self, name: &str) -> Option<u64> {
        match self.get(name)?.value {
            RequestedValue::Size(bytes) => Some(bytes),
            _ => None,
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&RequestedIntent> {
        self.requested.iter().find(|requested| requested.name == name)
    }

    fn add(&mut self, name: &str, given: &toml::Value, where_possible: bool, wrong: &mut Vec<String>) {
        let Some(intent) = IntentData::get().intent(name) else {
            wrong.push(unknown(name));
            return;
        };
        match RequestedValue::read(intent, given) {
            Ok(value) => {
                self.requested.push(RequestedIntent { name: name.to_owned(), value, where_possible })
            }
            Err(what) => wrong.push(format!("`{name}` {what}")),
        }
    }
}

fn not_toml(text: &str, error: &toml::de::Error) -> String {
    let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
    format!("line {line} is not TOML: {}", error.message())
}

/// Help for an unknown intent. It names the intents with the most similar spelling. If there are
/// none, it says where all intents are listed.
fn unknown(name: &str) -> String {
    let mut near: Vec<(usize, &str)> = IntentData::get()
        .intents
        .iter()
        .map(|intent| (levenshtein(name, &intent.name), intent.name.as_str()))
        .filter(|(edits, known)| *edits <= known.len().max(name.len()) / 3 || related(name, known))
        .collect();
    near.sort_unstable();
    let near: Vec<String> = near.iter().take(3).map(|(_, known)| format!("`{known}`")).collect();
    let help = match near.is_empty() {
        true => {
            "the list is in docs/reference/config-intents.md; a server's own options belong in own_config"
                .to_owned()
        }
        false => format!("did you mean {}?", near.join(" or ")),
    };
    format!("`{name}` is not an intent; {help}")
}

/// Whether one name contains the other: `buffer_pool` and `innodb_buffer_pool_size`,
/// `max_connections` and `connections`.
fn related(name: &str, known: &str) -> bool {
    let (short, long) = if name.len() < known.len() { (name, known) } else { (known, name) };
    short.len() >= 4 && long.contains(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Intents, Error> {
        Intents::from_table(&text.parse().unwrap())
    }

    #[test]
    fn later_configs_win_intent_by_intent() {
        let base =
            read("buffer_pool = '1 GiB'\ndoublewrite = true\n[where_possible]\nbinlog = 'off'").unwrap();
        let later = read("doublewrite = false\nbinlog = 'on'").unwrap();
        let both = base.overlaid(later);
        let pairs: Vec<String> =
            both.pairs().iter().map(|(name, value)| format!("{name} = {value}")).collect();
        assert_eq!(pairs, ["buffer_pool = 1 GiB", "doublewrite = false", "binlog = on"]);
        assert!(!both.get("binlog").unwrap().where_possible);
    }

    #[test]
    fn every_mistake_is_reported_with_the_most_similar_names() {
        let text = "bufer_pool = '1 GiB'\ninnodb_io_capacity = 4\nfrobnicate = 1\nredo = '1 GB'\nbinlog = 'off'\n[where_possible]\nbinlog = 'on'";
        insta::assert_snapshot!(read(text).unwrap_err(), @r#"
        `bufer_pool` is not an intent; did you mean `buffer_pool`?
        `frobnicate` is not an intent; the list is in docs/reference/config-intents.md; a server's own options belong in own_config
        `innodb_io_capacity` is not an intent; did you mean `io_capacity`?
        `redo` is "1 GB", but GB means 1000 to some and 1024 to others: write a number and its unit (KiB, MiB, GiB, TiB) in quotes, e.g. "1 GiB"
        `binlog` is in the config and under where_possible: keep one of them
        "#);
    }

    #[test]
    fn an_error_in_a_config_file_names_the_file_and_the_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        std::fs::write(&path, "redo = '1 GiB'\nbuffer_pool = 1 GiB\n").unwrap();
        let message = Intents::read(&path).unwrap_err().to_string();
        let message = message.replace(folder.path().to_str().unwrap(), "FOLDER");
        assert!(message.starts_with("config file FOLDER/c.toml: line 2 is not TOML: "), "{message}");
    }
}
