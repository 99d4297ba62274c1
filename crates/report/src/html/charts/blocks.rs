//! The rate of each block as a point, with the variant's median.

use dbdyno_analyse::{StepFindings, VariantStep};
use serde_json::{Value, json};

use super::{Charts, chart, figure};
use crate::document::Chart;

/// `None` for one block.
pub(super) fn blocks(charts: &Charts<'_>, step: &StepFindings) -> Option<Chart> {
    let points = |variant: &VariantStep| -> Vec<(u32, Value)> {
        variant.valid_runs().map(|run| (run.block, figure(run.rate))).collect()
    };
    let series: Vec<Value> = step
        .variants
        .iter()
        .filter(|variant| !points(variant).is_empty())
        .map(|variant| {
            json!({
                "variant": charts.variant(&variant.variant),
                "points": points(variant),
                "median": variant.rate.map(figure),
            })
        })
        .collect();
    step.variants.iter().any(|variant| points(variant).len() > 1).then(|| {
        chart(
            format!("{}: {} of each block; a bar is the median.", step.name, step.rate_label),
            json!({ "kind": "blocks", "unit": step.rate_label, "series": series }),
        )
    })
}
