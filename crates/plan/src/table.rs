//! A workload's table in a plan's text. It keeps the places of its values for error messages.

use std::convert::Infallible;
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// `[workload.NAME]` as parsed, before it becomes a workload's options.
#[derive(Debug)]
pub struct Table<'a>(Spanned<DeValue<'a>>);

/// Why a table cannot become options. The error knows the place in the file.
#[derive(Debug)]
pub struct TableError(pub(crate) toml::de::Error);

/// An error that refuses a table whatever it holds, at the table's place.
struct Refusal(String);

impl<'a> Visitor<'a> for Refusal {
    type Value = Infallible;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a table")
    }

    fn visit_map<A: MapAccess<'a>>(self, _: A) -> Result<Infallible, A::Error> {
        Err(A::Error::custom(self.0))
    }
}

/// Writes the sentence for what a build of dbdyno leaves out, with the command that builds it in.
pub fn built_without(part: BuildPart) -> String {
    format!("this dbdyno was built without {}; {} has them", part.what, part.command())
}

/// A part of dbdyno that a build may leave out.
#[derive(Debug, Clone, Copy)]
pub struct BuildPart {
    /// Name in the plural, as a sentence uses it.
    what: &'static str,
    /// Cargo feature that builds it in.
    feature: &'static str,
}

impl BuildPart {
    pub const SCRIPTS: Self = Self { what: "sysbench scripts", feature: "scripts" };
    pub const PARQUET: Self = Self { what: "Parquet files", feature: "parquet" };

    /// Returns the command that runs dbdyno with this part.
    pub fn command(self) -> String {
        format!("`cargo run --release --features {} -- ...`", self.feature)
    }
}

impl<'a> Table<'a> {
    pub(crate) fn new(value: Spanned<DeValue<'a>>) -> Self {
        Self(value)
    }

    fn keys(&self) -> Option<&DeTable<'a>> {
        self.0.get_ref().as_table()
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        self.keys()?.get(key)?.get_ref().as_str()
    }

    /// Sets `key` where the plan does not, because of what it says at `cause`. A mistake in the
    /// value is reported there.
    pub fn set_default(&mut self, key: &'static str, value: TableValue, cause: &str) {
        let DeValue::Table(keys) = self.0.get_mut() else { return };
        let Some(span) = keys.get(cause).map(Spanned::span) else { return };
        if keys.contains_key(key) {
            return;
        }
        let value = match value {
            TableValue::Text(text) => DeValue::String(text.into()),
            TableValue::Flag(flag) => DeValue::Boolean(flag),
        };
        keys.insert(Spanned::new(span.clone(), key.into()), Spanned::new(span, value));
    }

    /// Makes the error for a table that cannot be read whatever it says.
    pub fn refused(self, reason: String) -> TableError {
        let Err(error) = ValueDeserializer::from(self.0).deserialize_any(Refusal(reason));
        TableError(error)
    }

    pub fn read<T: Deserialize<'a>>(self) -> Result<T, TableError> {
        T::deserialize(ValueDeserializer::from(self.0)).map_err(TableError)
    }
}

/// A value that a table gets.
#[derive(Debug, Clone, Copy)]
pub enum TableValue {
    Text(&'static str),
    Flag(bool),
}
