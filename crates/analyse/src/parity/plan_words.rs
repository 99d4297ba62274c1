//! What a plan says about parity.

use std::collections::BTreeMap;

use dbdyno_plan::{ColumnDefinitions, TlsMode, Variant};

pub use dbdyno_plan::Parity as Mode;

use super::subject::Extra;
use crate::plan_text::PlanText;

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
        let plan = PlanText::read(plan);
        let variants: Vec<Variant> = plan.tables("variant");
        Self {
            mode: plan.key("parity"),
            differs: plan.key("differs"),
            variants: variants.into_iter().map(|variant| (variant.name.clone(), variant.into())).collect(),
        }
    }

    pub fn extra(&self, variant: &str) -> Extra {
        self.variants.get(variant).cloned().unwrap_or_default()
    }
}

impl From<Variant> for Extra {
    fn from(variant: Variant) -> Self {
        Self {
            engine: variant.engine,
            tls: variant.tls.is_some_and(|tls| tls.mode != TlsMode::Off),
            column_definitions_always: variant.column_definitions == Some(ColumnDefinitions::Always),
            deprecate_eof: variant.deprecate_eof,
            session_track: variant.session_track,
            client_charset: variant.client_charset,
            sends_text_only: false,
        }
    }
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
