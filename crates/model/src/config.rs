//! A variant's `config`: intents in the plan, in files, or both over each other. An intent names a
//! setting in words that hold for every product.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a server is configured, in words that hold for every product. Several parts are laid over
/// each other, intent by intent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "config is the path of a config file, a table of intents such as { buffer_pool = \"1 GiB\" }, or a list of these"
)]
pub enum Config {
    One(ConfigPart),
    /// Later ones win.
    Several(Vec<ConfigPart>),
}

/// One part of a config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ConfigPart {
    /// A TOML file of intents, relative to the plan.
    File(PathBuf),
    /// Intents and their values. Those under `where_possible` may be left out.
    Intents(BTreeMap<String, IntentValue>),
}

/// The value of an intent; which kind it must have is the intent's matter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum IntentValue {
    Switch(bool),
    Number(i64),
    Fraction(f64),
    Text(String),
    Table(BTreeMap<String, IntentValue>),
}

impl Config {
    /// Returns the parts in the order in which they are laid over each other.
    pub fn parts(&self) -> &[ConfigPart] {
        match self {
            Self::One(part) => std::slice::from_ref(part),
            Self::Several(parts) => parts,
        }
    }

    pub fn files_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let parts = match self {
            Self::One(part) => std::slice::from_mut(part),
            Self::Several(parts) => parts.as_mut_slice(),
        };
        parts.iter_mut().filter_map(|part| match part {
            ConfigPart::File(path) => Some(path),
            ConfigPart::Intents(_) => None,
        })
    }
}
