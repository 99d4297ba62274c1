//! Chart with each block's rate as a point, and the variant's median.

use dbdyno_analyse::StepFindings;
use serde_json::{Value, json};

use super::{Charts, block_rates, chart, figure};
use crate::document::Chart;

/// The chart; `None` for one block.
pub(super) fn blocks(charts: &Charts<'_>, step: &StepFindings) -> Option<Chart> {
    let series: Vec<Value> = step
        .variants
        .iter()
        .map(|variant| (variant, block_rates(variant)))
        .filter(|(_, points)| !points.is_empty())
        .map(|(variant, points)| {
            json!({
                "variant": charts.variant(&variant.variant),
                "points": points,
                "median": variant.rate.map(figure),
            })
        })
        .collect();
    step.variants.iter().any(|variant| variant.valid_runs().count() > 1).then(|| {
        chart(
            format!("{}: {} of each block; a bar is the median.", step.name, step.rate_label),
            json!({ "kind": "blocks", "unit": step.rate_label, "series": series }),
        )
    })
}
