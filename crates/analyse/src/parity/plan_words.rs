//! What a plan says about parity. The record holds the plan's text; this reads the few keys that
//! matter here.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::subject::Extra;

/// What is to happen when variants are not set alike.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    Off,
    /// It is reported.
    #[default]
    Warn,
    /// Nothing is measured.
    Refuse,
}

/// The plan's words on parity.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanWords {
    pub mode: Mode,
    /// Classes in which the variants are meant to differ, by id.
    pub differs: Vec<String>,
    /// By the variant's name.
    pub variants: BTreeMap<String, Extra>,
}

impl PlanWords {
    /// Reads the text of a plan. What it does not say, or cannot be read, is the default.
    pub fn read(plan: &str) -> Self {
        let Ok(plan) = plan.parse::<Table>() else { return Self::default() };
        let mode = match plan.get("parity").and_then(Value::as_str) {
            Some("off") => Mode::Off,
            Some("refuse") => Mode::Refuse,
            _ => Mode::Warn,
        };
        let differs = plan.get("differs").and_then(Value::as_array).into_iter().flatten();
        let variants = plan.get("variant").and_then(Value::as_array).into_iter().flatten();
        Self {
            mode,
            differs: differs.filter_map(|id| Some(id.as_str()?.to_owned())).collect(),
            variants: variants.filter_map(extra).collect(),
        }
    }

    /// What the plan says of one variant.
    pub fn extra(&self, variant: &str) -> Extra {
        self.variants.get(variant).cloned().unwrap_or_default()
    }
}

fn extra(variant: &Value) -> Option<(String, Extra)> {
    let name = variant.get("name")?.as_str()?.to_owned();
    let engine = variant.get("engine").and_then(Value::as_str).map(str::to_owned);
    let tls = variant.get("tls").is_some_and(|tls| tls.get("mode").and_then(Value::as_str) != Some("off"));
    let word = |key| variant.get(key).and_then(Value::as_str);
    let switch = |key| variant.get(key).and_then(Value::as_bool);
    let extra = Extra {
        engine,
        tls,
        column_definitions_always: word("column_definitions") == Some("always"),
        deprecate_eof: switch("deprecate_eof"),
        session_track: switch("session_track"),
        client_charset: word("client_charset").map(str::to_owned),
        ..Extra::default()
    };
    Some((name, extra))
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
                engine: Some("rocksdb".to_owned()),
                tls: true,
                column_definitions_always: true,
                deprecate_eof: Some(true),
                session_track: Some(false),
                client_charset: Some("latin1".to_owned()),
                sends_text_only: false,
            }
        );
        assert_eq!([words.extra("b"), words.extra("c")], [Extra::default(), Extra::default()]);
    }

    #[test]
    fn a_plan_from_before_these_keys_is_reported_and_declares_nothing() {
        assert_eq!(PlanWords::read("name = \"p\"\n"), PlanWords::default());
        assert_eq!(PlanWords::read("not a plan").mode, Mode::Warn);
    }
}
