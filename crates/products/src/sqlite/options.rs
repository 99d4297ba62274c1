//! The options that variants on SQLite have.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::options::{TypedOptions, is_word};

/// `options` of a variant.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SqliteOptions {
    /// SQLite: pragmas, set on every connection: `{ journal_mode = "wal", synchronous = "full" }`.
    /// They win over `config`.
    pub pragmas: BTreeMap<String, String>,
}

impl TypedOptions for SqliteOptions {
    fn problem(&self) -> Option<(&'static str, String)> {
        let is_value = |text: &str| !text.is_empty() && is_word(&text.replace(['-', '.'], "_"));
        let bad = self.pragmas.iter().find(|(pragma, value)| !is_word(pragma) || !is_value(value))?;
        // The value is not shown, because some SQLite builds take their key from a pragma.
        Some(("pragmas", format!("has a pragma that is not a name and a plain value: {}", bad.0)))
    }
}
