//! Facts about particular settings beyond their values. The data file `known.toml` explains them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

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
