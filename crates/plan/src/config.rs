//! The `config` of a variant: intents in the plan, in files, or both over each other.

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
    /// The parts, in the order in which they are laid over each other.
    pub fn parts(&self) -> &[ConfigPart] {
        match self {
            Self::One(part) => std::slice::from_ref(part),
            Self::Several(parts) => parts,
        }
    }

    pub(crate) fn files_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
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

#[cfg(test)]
mod tests {
    use crate::fake::parse;
    use crate::{Config, ConfigPart, Plan, Variant};

    fn plan(server: &str, config: &str) -> Result<Plan, String> {
        let text = format!(
            "name = \"p\"\n[[variant]]\nname = \"a\"\n{server}\nconfig = {config}\n[workload.fake]\n"
        );
        parse(&text, "p.toml").map_err(|error| error.to_string())
    }

    #[test]
    fn a_config_is_a_file_a_table_or_a_list_and_survives_being_written_down() {
        for config in [
            "\"c.toml\"",
            "{ redo = \"1 GiB\", where_possible = { purge_threads = 4 } }",
            "[\"c.toml\", { jit = false }]",
        ] {
            let plan = plan("server = \"mysql-8.0.31\"", config).unwrap();
            let text = toml::to_string(&plan).unwrap();
            assert_eq!(parse(&text, "own output").unwrap(), plan);
            let json = serde_json::to_string(&plan.variants).unwrap();
            assert_eq!(serde_json::from_str::<Vec<Variant>>(&json).unwrap(), plan.variants);
        }
        let plan = plan("server = \"mysql-8.0.31\"", "[\"c.toml\", { jit = false }]").unwrap();
        let parts = plan.variants[0].config.as_ref().map(Config::parts).unwrap();
        assert!(matches!(parts, [ConfigPart::File(_), ConfigPart::Intents(_)]), "{parts:?}");
    }

    #[test]
    fn what_is_no_config_is_said_with_what_would_be_one() {
        let message = plan("server = \"mysql-8.0.31\"", "3").unwrap_err();
        insta::assert_snapshot!(message, @r#"p.toml:5:10: config is the path of a config file, a table of intents such as { buffer_pool = "1 GiB" }, or a list of these"#);
        let message = plan("address = \"mysql://u@h/d\"", "\"c.toml\"").unwrap_err();
        insta::assert_snapshot!(message, @"p.toml:5:10: variant `a` has config, which is only for a server that dbdyno starts (server or basedir) and for sqlite");
    }
}
