//! What a plan says about parity. The record holds the plan's text; of that these few keys matter
//! here.

use serde::{Deserialize, Deserializer};

/// What is to happen when variants are not set alike.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    Off,
    /// It is reported.
    #[default]
    Warn,
    /// Nothing is measured.
    Refuse,
}

/// The plan's words on parity.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PlanWords {
    #[serde(rename = "parity")]
    pub mode: Mode,
    /// Classes in which the variants are meant to differ, by id.
    pub differs: Vec<String>,
    #[serde(rename = "variant")]
    pub variants: Vec<Extra>,
}

/// What a plan says of a variant beyond its option file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Extra {
    pub name: String,
    pub engine: Option<String>,
    /// Whether the plan asks for encrypted connections.
    #[serde(deserialize_with = "is_asked_for")]
    pub tls: bool,
    /// `always` or `once`, where the plan says how often answers define their columns.
    pub column_definitions: Option<String>,
    /// Whether connections ask for results without EOF packets, where the plan says so.
    pub deprecate_eof: Option<bool>,
    /// Whether they ask for reports of changes of the session's state, where the plan says so.
    pub session_track: Option<bool>,
    /// Character set of connections, where the plan names one.
    pub client_charset: Option<String>,
    /// The plan's workloads prepare no statement on MariaDB and MySQL.
    #[serde(skip)]
    pub sends_text_only: bool,
}

impl PlanWords {
    /// Reads the text of a plan. What it does not say, or cannot be read, is the default.
    pub fn read(plan: &str) -> Self {
        toml::from_str(plan).unwrap_or_default()
    }

    /// What the plan says of one variant.
    pub fn extra(&self, variant: &str) -> Extra {
        self.variants.iter().find(|extra| extra.name == variant).cloned().unwrap_or_default()
    }
}

fn is_asked_for<'de, D: Deserializer<'de>>(tls: D) -> Result<bool, D::Error> {
    let tls = toml::Table::deserialize(tls)?;
    Ok(tls.get("mode").and_then(toml::Value::as_str) != Some("off"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_says_mode_declared_classes_engines_and_encryption() {
        let words = PlanWords::read(
            "name = \"p\"\nparity = \"refuse\"\ndiffers = [\"binlog\"]\n[[variant]]\nname = \"a\"\nengine = \"rocksdb\"\n\
             client_charset = \"latin1\"\ncolumn_definitions = \"always\"\ndeprecate_eof = true\nsession_track = false\n[variant.tls]\nmode = \"verify\"\n[[variant]]\nname = \"b\"\ntls = { mode = \"off\" }\n[workload.oltp]\n",
        );
        assert_eq!((words.mode, words.differs.as_slice()), (Mode::Refuse, &["binlog".to_owned()][..]));
        assert_eq!(
            words.extra("a"),
            Extra {
                name: "a".to_owned(),
                engine: Some("rocksdb".to_owned()),
                tls: true,
                column_definitions: Some("always".to_owned()),
                deprecate_eof: Some(true),
                session_track: Some(false),
                client_charset: Some("latin1".to_owned()),
                sends_text_only: false,
            }
        );
        let named = |name: &str| Extra { name: name.to_owned(), ..Extra::default() };
        assert_eq!([words.extra("b"), words.extra("c")], [named("b"), Extra::default()]);
    }

    #[test]
    fn a_plan_without_these_keys_is_reported_and_declares_nothing() {
        assert_eq!(PlanWords::read("name = \"p\"\n"), PlanWords::default());
        assert_eq!(PlanWords::read("not a plan").mode, Mode::Warn);
    }
}
