//! Settings of which something is to be known beyond their values. The data file says what.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::data;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KnownSettings {
    pub(crate) of_each_start: Vec<String>,
    pub(super) not_compared: Vec<String>,
    pub(super) real_skips: Vec<String>,
    pub(super) of_clients: Vec<String>,
    pub(super) aliases: BTreeMap<String, String>,
    pub(super) follows: BTreeMap<String, Vec<String>>,
    pub(super) collations: BTreeMap<String, String>,
    pub(super) units: BTreeMap<String, f64>,
}

pub(crate) static KNOWN: LazyLock<KnownSettings> = LazyLock::new(|| data(include_str!("settings.toml")));
