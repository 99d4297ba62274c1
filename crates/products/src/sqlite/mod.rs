//! Facts about SQLite, and the options that variants on it have.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::settings::{ConfiguredLine, NEVER, SYNCED, Value};
use crate::variant::{TypedOptions, VariantOptions, is_word};
use crate::{FamilyFacts, Product, Reader};

pub const SQLITE: &Product = &Product { word: "sqlite", name: "SQLite", prefixes: &[], base: None };

pub static FACTS: FamilyFacts = FamilyFacts {
    name: "sqlite",
    products: &[SQLITE],
    config_options: include_str!("config-options.toml"),
    option_file_form: ("", "PRAGMA "),
    options: VariantOptions::of::<SqliteOptions>(),
    lines: |text, _, _| pragmas(text),
    word: Some(word),
    plan_nodes: |rows| rows.iter().filter_map(|row| plan_node(row)).collect(),
    classes: &[("buffer_pool", buffer_pool), ("commit", commit), ("redo", redo)],
    ..FamilyFacts::DEFAULT
};

/// Reads lines with `PRAGMA name = value`.
fn pragmas(text: &str) -> Vec<ConfiguredLine> {
    let configured = (1..).zip(text.lines()).filter_map(|(line, text)| {
        let (name, value) = text.trim().strip_prefix("PRAGMA ")?.split_once('=')?;
        let name = name.trim().to_ascii_lowercase();
        let value = Some(word(&name, value.trim().trim_matches(['\'', '"'])));
        Some(ConfiguredLine { line, name, value, is_read: true, ..Default::default() })
    });
    configured.collect()
}

/// The word that stands for a number. SQLite shows numbers, and a plan may configure them too.
fn word(name: &str, value: &str) -> String {
    let words: &[&str] = match name {
        "synchronous" => &["off", "normal", "full", "extra"],
        "auto_vacuum" => &["none", "full", "incremental"],
        "temp_store" => &["default", "file", "memory"],
        _ => &[],
    };
    let number: Option<usize> = value.trim().parse().ok();
    let word = number.and_then(|number| words.get(number)).map(|word| (*word).to_owned());
    word.unwrap_or_else(|| value.trim().to_ascii_lowercase())
}

fn buffer_pool(reader: &Reader<'_>) -> Option<Value> {
    let pages: i64 = reader.text("cache_size")?.parse().ok()?;
    // A negative number counts KiB.
    let unit = if pages < 0 { 1024 } else { reader.size("page_size")? };
    Some(Value::Size(pages.unsigned_abs() * unit))
}

fn commit(reader: &Reader<'_>) -> Option<Value> {
    Some(Value::words(match (reader.text("synchronous")?, reader.text("journal_mode")?) {
        ("off", _) | (_, "off" | "memory") => NEVER,
        ("normal", "wal") => "synced at checkpoints only",
        _ => SYNCED,
    }))
}

fn redo(reader: &Reader<'_>) -> Option<Value> {
    let in_wal = reader.text("journal_mode")? == "wal";
    let pages = reader.size("wal_autocheckpoint")?;
    in_wal.then_some(Value::Size(pages * reader.size("page_size")?))
}

/// The last column in EXPLAIN QUERY PLAN, without `TABLE` and estimates. Versions before 3.36 write
/// `TABLE` before a table's name, and very old ones append estimates.
fn plan_node(row: &[Option<String>]) -> Option<String> {
    let detail = row.last()?.as_deref()?.replace(" TABLE ", " ");
    Some(detail.split(" (~").next().unwrap_or_default().to_owned())
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_plans_from_all_versions_are_equal() {
        let of = |detail: &str| (FACTS.plan_nodes)(&[vec![Some("3".to_owned()), Some(detail.to_owned())]]);
        let new = "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)";
        let old = "SEARCH TABLE t USING INTEGER PRIMARY KEY (rowid=?) (~1 rows)";
        assert_eq!((of(new), of(old)), (vec![new.to_owned()], vec![new.to_owned()]));
    }

    #[test]
    fn pragmas_are_read_one_per_line() {
        let configured = pragmas("PRAGMA journal_mode = wal\nPRAGMA synchronous = full\n");
        assert_eq!(
            (configured.len(), configured[1].name.as_str(), configured[1].value.as_deref()),
            (2, "synchronous", Some("full"))
        );
    }
}
