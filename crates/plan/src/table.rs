//! A workload's table in a plan's text, with the places of its values.

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// `[workload.NAME]` before anything is made of it.
#[derive(Debug)]
pub struct Table<'a>(Spanned<DeValue<'a>>);

/// Why options cannot be made of a table; it knows the place.
#[derive(Debug)]
pub struct TableError(pub(crate) toml::de::Error);

impl TableError {
    /// A reason that is not a value's, as that this build lacks the workload.
    pub fn new(reason: impl std::fmt::Display) -> Self {
        Self(serde::de::Error::custom(reason))
    }
}

/// The sentence for what a build of dbdyno leaves out, with the command that builds it in.
pub fn built_without(what: &str, feature: &str) -> String {
    format!(
        "this dbdyno was built without {what}; `cargo run --release --features {feature} -- ...` has them"
    )
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

    /// Sets `key` where the plan does not, because of what it says at `cause`: a mistake in it
    /// would be shown there.
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
