//! How two factors act on each other: the rates of a step's table at the levels of the first, a line
//! for each level of the second.

use dbdyno_analyse::{StepFindings, VariantSummary, unique};
use serde_json::{Value, json};

use super::{Charts, chart, figure, rate_of};
use crate::document::Chart;
use crate::views::details;

/// The chart for the first two factors, with the others at the base's levels. `None` without two
/// factors.
pub(super) fn interaction(charts: &Charts<'_>, step: &StepFindings) -> Option<Chart> {
    let variants = &charts.findings.variants;
    let base = variants.iter().find(|variant| variant.name == charts.findings.run.base)?;
    let mut factors = base.factors.keys();
    let (first, second) = (factors.next()?, factors.next()?);
    let is_shown = |variant: &&VariantSummary| {
        let others = base.factors.iter().filter(|(factor, _)| *factor != first && *factor != second);
        variant.factors.len() == base.factors.len()
            && others.clone().all(|(factor, level)| variant.factors.get(factor) == Some(level))
    };
    let shown: Vec<&VariantSummary> = variants.iter().filter(is_shown).collect();
    let levels = |factor: &str| {
        unique(shown.iter().filter_map(|variant| variant.factors.get(factor)).map(String::as_str))
    };
    let rates = details::rate(step)?;
    let rate = |of_first: &str, of_second: &str| -> Option<f64> {
        let is_it = |variant: &&&VariantSummary| {
            variant.factors.get(first).is_some_and(|level| level == of_first)
                && variant.factors.get(second).is_some_and(|level| level == of_second)
        };
        rate_of(&rates, &shown.iter().find(is_it)?.name)
    };
    let across = levels(first);
    let line = |level: &&str| {
        let rates: Vec<Option<Value>> = across.iter().map(|at| rate(at, level).map(figure)).collect();
        json!({ "level": level, "rates": rates })
    };
    let lines: Vec<Value> = levels(second).iter().map(line).collect();
    let is_known = across.iter().any(|at| levels(second).iter().any(|level| rate(at, level).is_some()));
    is_known.then(|| {
        chart(
            format!("{}: {first} and {second} together. Parallel lines do not interact.", step.name),
            json!({
                "kind": "interaction",
                "unit": step.rate_label,
                "first": first,
                "second": second,
                "levels": across,
                "lines": lines,
            }),
        )
    })
}
