//! The data behind config intents: what a config can ask for, which options each product has in
//! which versions, and their defaults.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use super::span::Span;
use dbdyno_products::{ALL, Product, Release};

const INTENTS: [&str; 2] = [include_str!("innodb.toml"), include_str!("other.toml")];

/// Names and values of options.
pub(crate) type Settings = BTreeMap<String, String>;

/// The type that an intent's value has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// Bytes with a unit: `"1 GiB"`.
    Size,
    /// A whole number of 0 or more.
    Number,
    /// `true` or `false`.
    Switch,
    /// One word from those in the intent's rules.
    Choice,
    /// A time with a unit: `"30m"`.
    Duration,
    /// A number from 0 to 1.
    Fraction,
    /// A name, such as a character set's.
    Word,
}

/// Something that a config can ask from every server, and the options that each server sets for it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Intent {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    #[cfg_attr(not(test), expect(dead_code, reason = "only the reference page shows it"))]
    pub(crate) about: String,
    /// Rules, of which the first that fits applies.
    pub(crate) way: Vec<RenderRule>,
    /// Rules, of which every one that fits applies in addition.
    #[serde(default)]
    pub(crate) also: Vec<RenderRule>,
    #[serde(default)]
    pub(crate) absent: Vec<Absent>,
    #[serde(default)]
    pub(crate) limit: Vec<Limit>,
}

/// The options that fulfil an intent on some products and versions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RenderRule {
    pub(crate) on: Vec<&'static Product>,
    #[serde(flatten)]
    pub(crate) span: Span,
    /// The engine that the benchmark's tables must have for this rule to fit.
    #[serde(default)]
    pub(crate) engine: Option<String>,
    /// The plugin that the rule needs. It is loaded at start.
    #[serde(default)]
    pub(crate) plugin: Option<String>,
    /// Options that apply to any value.
    #[serde(default)]
    pub(crate) set: Option<Settings>,
    /// Options for particular values.
    #[serde(default)]
    pub(crate) values: BTreeMap<String, Settings>,
}

/// A value that servers without the feature fulfil by themselves.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Absent {
    /// The products. An empty list means every product.
    #[serde(default)]
    pub(crate) on: Vec<&'static Product>,
    #[serde(flatten)]
    pub(crate) span: Span,
    pub(crate) value: String,
}

/// The range that a product's versions accept.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limit {
    pub(crate) on: Vec<&'static Product>,
    #[serde(flatten)]
    pub(crate) span: Span,
    #[serde(default)]
    pub(crate) least: Option<String>,
    #[serde(default)]
    pub(crate) most: Option<String>,
}

/// Whether an existing option still has an effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OptionState {
    #[default]
    Active,
    /// The option works, but the server warns about it.
    Deprecated,
    /// The server accepts the option and ignores it.
    Ignored,
}

/// Versions of a product in which an option exists with one default.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptionRange {
    #[serde(flatten)]
    pub(crate) span: Span,
    /// The value when nothing sets the option. It is `auto` when the server computes it at start.
    pub default: String,
    #[serde(default)]
    pub state: OptionState,
    /// The plugin file that provides the option.
    #[serde(default)]
    pub plugin: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct IntentFile {
    intent: Vec<Intent>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OptionFile {
    checked: BTreeMap<&'static Product, Vec<String>>,
    option: BTreeMap<String, BTreeMap<&'static Product, Vec<OptionRange>>>,
}

#[derive(Debug)]
pub(crate) struct IntentData {
    /// In the order in which they are rendered. When two set the same option, the later one wins.
    pub(crate) intents: Vec<Intent>,
    options: BTreeMap<(&'static Product, String), Vec<OptionRange>>,
    checked: BTreeMap<&'static Product, Vec<String>>,
}

impl IntentData {
    pub(crate) fn get() -> &'static Self {
        static DATA: OnceLock<IntentData> = OnceLock::new();
        DATA.get_or_init(|| {
            let intents = INTENTS.iter().flat_map(|text| parsed::<IntentFile>(text).intent).collect();
            let (mut options, mut checked) = (BTreeMap::new(), BTreeMap::new());
            let texts = ALL.iter().map(|family| family.config_options);
            for file in texts.map(parsed::<OptionFile>) {
                checked.extend(file.checked);
                for (name, products) in file.option {
                    options.extend(
                        products.into_iter().map(|(product, ranges)| ((product, name.clone()), ranges)),
                    );
                }
            }
            Self { intents, options, checked }
        })
    }

    pub(crate) fn intent(&self, name: &str) -> Option<&Intent> {
        self.intents.iter().find(|intent| intent.name == name)
    }

    /// The versions of `product` in which the option exists. Percona Server shares MySQL's entry
    /// where it has none itself.
    pub(crate) fn ranges(&self, product: &'static Product, option: &str) -> &[OptionRange] {
        let of = |product| self.options.get(&(product, option.to_owned())).map(Vec::as_slice);
        of(product).or_else(|| of(product.base?)).unwrap_or_default()
    }

    /// The option in one version, if it exists there.
    pub(crate) fn option(
        &self,
        product: &'static Product,
        version: Release,
        name: &str,
    ) -> Option<&OptionRange> {
        self.ranges(product, name).iter().find(|range| range.span.holds(version))
    }

    pub(crate) fn names(&self, product: &'static Product) -> Vec<&str> {
        let of = |of: &&'static Product| of.covers(product);
        let names = self.options.keys().filter(|(product, _)| of(product)).map(|(_, name)| name.as_str());
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The `product` versions that the data was compared with.
    pub(crate) fn checked(&self, product: &'static Product) -> &[String] {
        self.checked.get(&product).map(Vec::as_slice).unwrap_or_default()
    }
}

fn parsed<T: for<'de> Deserialize<'de>>(text: &str) -> T {
    toml::from_str(text).expect("the data is part of the program and read by tests")
}
