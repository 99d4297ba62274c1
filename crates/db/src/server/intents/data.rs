//! The data behind config intents: the intents that a config can request, and the options that each
//! version of a product has, with their defaults. The data determine the products and version
//! ranges in which an intent is possible. A version range includes its start and excludes its end.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use dbdyno_products::{ALL, Product, Release};
use serde::Deserialize;

/// The intents, as TOML.
const INTENTS: [&str; 2] = [include_str!("innodb.toml"), include_str!("other.toml")];

/// Names and values of options.
pub(crate) type IntentSettings = BTreeMap<String, String>;

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
    /// One of the words in the intent's rules.
    Choice,
    /// A time with a unit: `"30m"`.
    Duration,
    /// A number from 0 to 1.
    Fraction,
    /// A name, such as a character set's.
    Word,
}

/// A property that a config can request from every server, and the options that fulfil the request
/// on each server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Intent {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    #[cfg_attr(not(test), expect(dead_code, reason = "only the reference page shows it"))]
    pub(crate) about: String,
    /// Rules. The first rule that fits applies.
    pub(crate) way: Vec<RenderRule>,
    /// More rules. Each rule that fits applies in addition.
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
    pub(crate) set: Option<IntentSettings>,
    /// Options for particular values.
    #[serde(default)]
    pub(crate) values: BTreeMap<String, IntentSettings>,
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

/// The range of values that some versions of a product accept.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limit {
    pub(crate) on: Vec<&'static Product>,
    #[serde(flatten)]
    pub(crate) span: Span,
    #[serde(default)]
    pub(crate) min: Option<String>,
    #[serde(default)]
    pub(crate) max: Option<String>,
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
    /// The intents in the order in which they are rendered. If two intents set the same option, the
    /// later intent wins.
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

    /// The versions of `product` in which the option exists. If Percona Server has no entry for the
    /// option, MySQL's entry applies.
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
        self.ranges(product, name).iter().find(|range| range.span.contains(version))
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

/// Versions of `product` in which at least one rule of `intent` can be rendered, among the rules
/// that `fits` accepts.
pub(crate) fn spans(
    intent: &Intent,
    product: &'static Product,
    fits: impl Fn(&RenderRule) -> bool,
) -> Vec<Span> {
    let rules = intent.way.iter().filter(|rule| rule.on.iter().any(|on| on.covers(product)) && fits(rule));
    joined(rules.flat_map(|rule| rule_spans(rule, product, None)).collect())
}

/// Versions of `product` in which `rule` can be rendered, which means that all of its options exist
/// and have an effect. With a `word`, only that value's options count.
pub(crate) fn rule_spans(rule: &RenderRule, product: &'static Product, word: Option<&str>) -> Vec<Span> {
    let of_values = rule.values.iter().filter(|(value, _)| word.is_none_or(|word| word == value.as_str()));
    let sets: Vec<_> = rule.set.iter().chain(of_values.map(|(_, set)| set)).collect();
    sets.iter()
        .flat_map(|set| {
            set.keys().fold(vec![rule.span], |spans, option| {
                let exists = existing(product, option);
                spans
                    .iter()
                    .flat_map(|span| exists.iter().filter_map(|other| span.intersection(*other)))
                    .collect()
            })
        })
        .collect()
}

/// Versions in which the option exists and has an effect. The data do not list options such as
/// `skip_log_bin`, so the prefix `skip_` is removed first.
fn existing(product: &'static Product, option: &str) -> Vec<Span> {
    let option = option.strip_prefix("skip_").unwrap_or(option);
    let ranges = IntentData::get().ranges(product, option).iter();
    ranges.filter(|range| range.state != OptionState::Ignored).map(|range| range.span).collect()
}

/// Names the products and versions in which the rules that `fits` accepts can be rendered: `MySQL
/// and Percona Server from 5.6.2; MariaDB before 11.0`.
pub(crate) fn described(intent: &Intent, fits: impl Fn(&RenderRule) -> bool) -> String {
    let of = |product| spans(intent, product, &fits);
    let as_base = |derived: &&'static Product| derived.base.is_some_and(|base| of(base) == of(*derived));
    let mut parts = Vec::new();
    for product in Product::all().filter(|product| !as_base(product)) {
        let found = of(product);
        if found.is_empty() {
            continue;
        }
        let is_alike =
            |other: &&'static Product| *other == product || (other.base == Some(product) && as_base(other));
        let names = Product::all().filter(|other| is_alike(other)).map(|other| other.to_string());
        let name = names.collect::<Vec<_>>().join(" and ");
        let versions = words(&found);
        parts.push(if versions.is_empty() { name } else { format!("{name} {versions}") });
    }
    parts.join("; ")
}

/// Versions from `from` up to but not including `until`. If a bound is missing, the range is open
/// at that end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Span {
    #[serde(default)]
    pub(crate) from: Option<Release>,
    #[serde(default)]
    pub(crate) until: Option<Release>,
}

impl Span {
    pub(crate) fn contains(self, version: Release) -> bool {
        self.from.is_none_or(|from| version >= from) && self.until.is_none_or(|until| version < until)
    }

    /// The versions in both spans; `None` if the spans do not overlap.
    pub(crate) fn intersection(self, other: Self) -> Option<Self> {
        let until = match (self.until, other.until) {
            (Some(left), Some(right)) => Some(left.min(right)),
            (left, right) => left.or(right),
        };
        let met = Self { from: self.from.max(other.from), until };
        let is_empty = met.from.zip(met.until).is_some_and(|(from, until)| from >= until);
        (!is_empty).then_some(met)
    }
}

/// Joins spans that touch or overlap. The result is in ascending order.
pub(crate) fn joined(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| span.from);
    let mut joined: Vec<Span> = Vec::new();
    for span in spans {
        match joined.last_mut() {
            Some(last) if last.until.is_none_or(|until| span.from.is_none_or(|from| from <= until)) => {
                last.until = last.until.zip(span.until).map(|(left, right)| left.max(right));
            }
            _ => joined.push(span),
        }
    }
    joined
}

/// The versions in `spans` that are not in `others`.
#[cfg(test)]
pub(crate) fn subtracted(spans: Vec<Span>, others: &[Span]) -> Vec<Span> {
    others.iter().fold(spans, |spans, other| {
        let before = other.from.map(|from| Span { from: None, until: Some(from) });
        let after = other.until.map(|until| Span { from: Some(until), until: None });
        let rest: Vec<Span> = before.into_iter().chain(after).collect();
        spans.iter().flat_map(|span| rest.iter().filter_map(|part| span.intersection(*part))).collect()
    })
}

/// Writes `from 8.0.30`, `before 11.0` or `5.6.2 to before 8.0`. It writes nothing for all
/// versions.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.from, self.until) {
            (None, None) => Ok(()),
            (Some(from), None) => write!(f, "from {from}"),
            (None, Some(until)) => write!(f, "before {until}"),
            (Some(from), Some(until)) => write!(f, "{from} to before {until}"),
        }
    }
}

/// Describes the spans: `before 10.7, from 11.0`.
pub(crate) fn words(spans: &[Span]) -> String {
    let words: Vec<String> = spans.iter().map(Span::to_string).filter(|text| !text.is_empty()).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: &str, until: &str) -> Span {
        Span { from: Release::parse(from), until: Release::parse(until) }
    }

    #[test]
    fn a_span_includes_its_start_and_excludes_its_end() {
        let span = span("5.6.8", "8.0.30");
        let holds = |text: &str| span.contains(Release::parse(text).unwrap());
        assert!(holds("5.6.8") && holds("8.0.29") && !holds("5.6.7") && !holds("8.0.30"));
    }

    #[test]
    fn spans_meet_and_join() {
        assert_eq!(span("5.6", "").intersection(span("", "8.0")), Some(span("5.6", "8.0")));
        assert_eq!(span("8.0", "").intersection(span("", "8.0")), None);
        assert_eq!(joined(vec![span("8.0", ""), span("", "5.6"), span("5.6", "8.0")]), [span("", "")]);
        assert_eq!(subtracted(vec![span("", "")], &[span("5.6", "8.0")]), [span("", "5.6"), span("8.0", "")]);
        assert_eq!(subtracted(vec![span("5.6", "8.0")], &[span("", "")]), []);
        let apart = joined(vec![span("10.11.8", "11.0"), span("10.6.18", "10.7")]);
        assert_eq!(words(&apart), "10.6.18 to before 10.7, 10.11.8 to before 11.0");
    }
}
