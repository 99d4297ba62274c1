//! Chart of response times by percentile, over all valid blocks together.

use dbdyno_analyse::StepFindings;
use serde_json::{Value, json};

use super::{Charts, chart, milliseconds};
use crate::document::Chart;

/// The chart; `None` where no variant has a curve.
pub(super) fn percentiles(charts: &Charts<'_>, step: &StepFindings) -> Option<Chart> {
    let curves: Vec<(&str, &[(f64, u64)])> = step
        .variants
        .iter()
        .filter_map(|variant| Some((variant.variant.as_str(), variant.latency.as_ref()?.curve.as_slice())))
        .filter(|(_, curve)| curve.len() > 1)
        .collect();
    let mut percentiles: Vec<f64> =
        curves.iter().flat_map(|(_, curve)| curve.iter().map(|(percentile, _)| *percentile)).collect();
    percentiles.sort_by(f64::total_cmp);
    percentiles.dedup();
    let line = |(variant, curve): &(&str, &[(f64, u64)])| {
        let of = |percentile: &f64| curve.iter().find(|(known, _)| known == percentile);
        let times: Vec<Option<Value>> = percentiles
            .iter()
            .map(|percentile| of(percentile).map(|(_, time_us)| milliseconds(*time_us)))
            .collect();
        json!({ "variant": charts.variant(variant), "ms": times })
    };
    let series: Vec<Value> = curves.iter().map(line).collect();
    (!series.is_empty()).then(|| {
        chart(
            format!("{}: response time by percentile, ms, all valid blocks together.", step.name),
            json!({ "kind": "percentiles", "percentiles": percentiles, "series": series }),
        )
    })
}
