//! Where an intent is possible: products and versions, in words, derived from the options that its
//! rules need.

use super::data::{Intent, IntentData, OptionState, RenderRule};
use super::span::{Span, joined, words};
use dbdyno_products::Product;

/// Versions of `product` in which some rule of `intent` that `fits` accepts can be rendered.
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
                spans.iter().flat_map(|span| exists.iter().filter_map(|other| span.meet(*other))).collect()
            })
        })
        .collect()
}

/// Versions in which the option exists and has an effect. A bare word such as `skip_log_bin` is no
/// variable, so the variable behind it counts.
fn existing(product: &'static Product, option: &str) -> Vec<Span> {
    let option = option.strip_prefix("skip_").unwrap_or(option);
    let ranges = IntentData::get().ranges(product, option).iter();
    ranges.filter(|range| range.state != OptionState::Ignored).map(|range| range.span).collect()
}

/// Where the rules that `fits` accepts can be rendered: `MySQL and Percona Server from 5.6.2;
/// MariaDB before 11.0`.
pub(crate) fn described(intent: &Intent, fits: impl Fn(&RenderRule) -> bool) -> String {
    let of = |product| spans(intent, product, &fits);
    let as_base = |heir: &&'static Product| heir.base.is_some_and(|base| of(base) == of(*heir));
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
