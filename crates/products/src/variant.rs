//! A variant's properties beyond its settings: the kind of server on which it runs, its storage
//! engine, and its options. The options are the table `options` in a variant, for which the product
//! family defines types and checks.

use std::path::PathBuf;

use dbdyno_model::Variant;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::EMBEDDED;

/// A variant's kind, after the plan's check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VariantKind {
    /// The database works inside dbdyno. Each connection has its own thread and files.
    Embedded,
    Null,
    /// The base directory of a server that dbdyno starts.
    BaseDir(PathBuf),
    /// A name to look up in the servers folder.
    Named(String),
    /// The address of a server that others run.
    Address(String),
}

impl VariantKind {
    /// Determines a variant's kind. In a checked plan it has exactly one of `server`, `basedir` and
    /// `address`. In an unchecked one, `basedir` takes precedence over `address`, and that over
    /// `server`.
    pub fn of(variant: &Variant) -> Self {
        match (&variant.basedir, &variant.address, variant.server.as_deref().unwrap_or_default()) {
            (Some(basedir), _, _) => Self::BaseDir(basedir.clone()),
            (None, Some(address), _) => Self::Address(address.clone()),
            (None, None, "null") => Self::Null,
            (None, None, name) if name == EMBEDDED.name => Self::Embedded,
            (None, None, name) => Self::Named(name.to_owned()),
        }
    }

    /// Whether dbdyno starts a server for it.
    pub fn is_started(&self) -> bool {
        matches!(self, Self::BaseDir(_) | Self::Named(_))
    }

    pub fn is_embedded(&self) -> bool {
        *self == Self::Embedded
    }

    /// Whether others run its server.
    pub fn is_address(&self) -> bool {
        matches!(self, Self::Address(_))
    }
}

/// The engine that a variant names for its tables, in lower case. All families whose tables have
/// engines use the same option name.
pub fn engine_of(variant: &Variant) -> Option<String> {
    variant.options.get("engine")?.as_str().map(str::to_lowercase)
}

/// An engine's name for people, however a plan or a server spells it: `rocksdb` is MyRocks.
pub fn engine_name(word: &str) -> String {
    let name = match word.to_ascii_lowercase().as_str() {
        "innodb" => "InnoDB",
        "rocksdb" => "MyRocks",
        "myisam" => "MyISAM",
        "aria" => "Aria",
        "memory" => "MEMORY",
        _ => word,
    };
    name.to_owned()
}

/// An option, and the text that completes a sentence beginning with the variant's name.
type Mistake = (&'static str, String);

/// A family's options, as a type that is read from a variant's table `options`.
pub trait TypedOptions: Default + DeserializeOwned + JsonSchema {
    /// Options that name a file.
    const FILES: &'static [&'static str] = &[];
    /// Options that are only for servers at addresses.
    const OF_ADDRESSES: &'static [&'static str] = &[];

    /// The first mistake that is not a wrong type.
    fn problem(&self) -> Option<Mistake> {
        None
    }

    /// Reads the options in a checked plan.
    fn read(options: &Map<String, Value>) -> Self {
        serde_json::from_value(Value::Object(options.clone())).unwrap_or_default()
    }
}

/// The options that a family's variants may have.
#[derive(Debug, Clone, Copy)]
pub struct VariantOptions {
    /// Options that name a file.
    pub files: &'static [&'static str],
    of_addresses: &'static [&'static str],
    check: fn(Map<String, Value>) -> Result<Option<Mistake>, String>,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

/// The mistake in one option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionProblem {
    /// The family has no such option.
    Unknown { known: Vec<String> },
    /// The option is only for servers at addresses.
    OfAddresses,
    /// The option's value has another type. The text is serde's message.
    Type(String),
    /// The value is wrong. The text completes a sentence that begins with the variant's name.
    Value(String),
}

/// The options of a family that has none.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoOptions {}

impl TypedOptions for NoOptions {}

impl VariantOptions {
    pub(crate) const fn of<T: TypedOptions>() -> Self {
        Self {
            files: T::FILES,
            of_addresses: T::OF_ADDRESSES,
            check: problem_of::<T>,
            schema: T::json_schema,
        }
    }

    /// The options by name, each with its JSON Schema.
    pub fn schemas(&self, generator: &mut SchemaGenerator) -> Map<String, Value> {
        match (self.schema)(generator).remove("properties") {
            Some(Value::Object(properties)) => properties,
            _ => Map::new(),
        }
    }

    /// The first mistake in `options`, and the option with the mistake.
    pub fn problem<'o>(
        &self,
        options: &'o Map<String, Value>,
        is_address: bool,
    ) -> Option<(&'o str, OptionProblem)> {
        let known: Vec<String> =
            self.schemas(&mut SchemaGenerator::default()).into_iter().map(|(name, _)| name).collect();
        let of_one = |(name, value): (&'o String, &Value)| {
            let problem = if !known.contains(name) {
                OptionProblem::Unknown { known: known.clone() }
            } else if !is_address && self.of_addresses.contains(&name.as_str()) {
                OptionProblem::OfAddresses
            } else {
                // The option is read alone, so that a message about a wrong type is about this
                // option.
                let alone = Map::from_iter([(name.clone(), value.clone())]);
                OptionProblem::Type((self.check)(alone).err()?)
            };
            Some((name.as_str(), problem))
        };
        if let Some(found) = options.iter().find_map(of_one) {
            return Some(found);
        }
        let (name, message) = (self.check)(options.clone()).ok().flatten()?;
        let (name, _) = options.get_key_value(name)?;
        Some((name, OptionProblem::Value(message)))
    }
}

fn problem_of<T: TypedOptions>(options: Map<String, Value>) -> Result<Option<Mistake>, String> {
    let options: T = serde_json::from_value(Value::Object(options)).map_err(|error| error.to_string())?;
    Ok(options.problem())
}

/// Whether a text has only letters, digits and underscores. This is needed for texts that become
/// part of SQL or name an environment variable.
pub fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ALL;

    /// Returns the message about the options of a variant of this family. `is_address` says that
    /// the variant's server is at an address.
    fn problem(family: &str, options: Value, is_address: bool) -> String {
        let options = options.as_object().unwrap();
        let family = crate::FamilyFacts::named(family);
        family.options.problem(options, is_address).map_or("none".to_owned(), |found| format!("{found:?}"))
    }

    #[test]
    fn every_mistake_is_about_one_option() {
        let mysql = |options| problem("mysql", options, false);
        assert_eq!(mysql(json!({ "engine": "rocksdb", "session_track": false })), "none");
        insta::assert_snapshot!(mysql(json!({ "enigne": "x" })), @r#"("enigne", Unknown { known: ["engine", "client_charset", "column_definitions", "deprecate_eof", "session_track", "server_public_key", "allow_public_key_retrieval"] })"#);
        insta::assert_snapshot!(mysql(json!({ "session_track": "no" })), @r#"("session_track", Type("invalid type: string \"no\", expected a boolean"))"#);
        insta::assert_snapshot!(mysql(json!({ "server_public_key": "k.pem" })), @r#"("server_public_key", OfAddresses)"#);
        insta::assert_snapshot!(mysql(json!({ "engine": "innodb; drop" })), @r#"("engine", Value("has an engine that is not a plain name such as innodb"))"#);
        let both = json!({ "server_public_key": "k.pem", "allow_public_key_retrieval": true });
        insta::assert_snapshot!(problem("mysql", both, true), @r#"("allow_public_key_retrieval", Value("has server_public_key and allow_public_key_retrieval at once: the given key is used; remove allow_public_key_retrieval"))"#);
        insta::assert_snapshot!(problem("postgres", json!({ "engine": "heap" }), false), @r#"("engine", Unknown { known: [] })"#);
        insta::assert_snapshot!(problem("sqlite", json!({ "pragmas": { "a": -1 } }), false), @r#"("pragmas", Type("invalid type: integer `-1`, expected a string"))"#);
        insta::assert_snapshot!(problem("sqlite", json!({ "pragmas": { "a": "b;" } }), false), @r#"("pragmas", Value("has a pragma that is not a name and a plain value: a"))"#);
    }

    /// All families share one table in a plan's schema.
    #[test]
    fn no_option_belongs_to_two_families() {
        let names = |family: &&crate::FamilyFacts| {
            family.options.schemas(&mut SchemaGenerator::default()).into_iter().map(|(name, _)| name)
        };
        let mut all: Vec<String> = ALL.iter().flat_map(names).collect();
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count, "{all:?}");
    }

    #[test]
    fn the_lists_of_files_and_address_options_name_existing_options() {
        for family in ALL {
            let known = family.options.schemas(&mut SchemaGenerator::default());
            let named = family.options.files.iter().chain(family.options.of_addresses);
            assert!(named.into_iter().all(|name| known.contains_key(*name)), "{}", family.name);
        }
    }
}
