//! Chart of CPU and IO per operation, stacked by who used it.

use dbdyno_analyse::{StepFindings, StepRun, VariantStep};
use serde_json::{Value, json};

use super::{Charts, chart, rounded};
use crate::document::Chart;

/// Name of a part, and the function that gives it per operation: CPU in µs, IO in KiB.
type CostComponent = (&'static str, fn(&StepRun) -> Option<f64>);

const CPU: [CostComponent; 5] = [
    ("server, user", |run| run.cost.server_user_us),
    ("server, kernel", |run| run.cost.server_kernel_us),
    // For an embedded database this includes the database.
    ("client", |run| run.cost.client_cpu_us),
    ("rest of the host", |run| run.cost.rest_cpu_us),
    ("IO wait", |run| run.cost.host_iowait_us),
];
const IO: [CostComponent; 3] = [
    ("read by the server", |run| run.cost.server_read_kib),
    ("read by others", StepRun::others_read_kib),
    ("written", StepRun::written_kib),
];

/// The chart; `None` where neither CPU nor IO was sampled.
pub(super) fn cost(charts: &Charts<'_>, step: &StepFindings) -> Option<Chart> {
    let is_measured = |variant: &&VariantStep| variant.valid_runs().next().is_some();
    let variants: Vec<&VariantStep> = step.variants.iter().filter(is_measured).collect();
    let panels: Vec<Value> = [("CPU, µs per operation", &CPU[..]), ("device, KiB per operation", &IO[..])]
        .into_iter()
        .filter_map(|(unit, parts)| panel(unit, parts, &variants))
        .collect();
    let unit = step.rate_label.trim_end_matches("/s");
    (!panels.is_empty()).then(|| {
        chart(
            format!(
                "{}: CPU and IO per operation ({unit}), by who used it; medians of the blocks.",
                step.name
            ),
            json!({
                "kind": "cost",
                "variants": variants.iter().map(|of| charts.variant(&of.variant)).collect::<Vec<_>>(),
                "panels": panels,
            }),
        )
    })
}

fn panel(unit: &str, parts: &[CostComponent], variants: &[&VariantStep]) -> Option<Value> {
    let parts: Vec<Value> = parts
        .iter()
        .map(|(name, figure)| (*name, variants.iter().map(|of| of.median(figure)).collect::<Vec<_>>()))
        .filter(|(_, values)| values.iter().flatten().any(|value| *value > 0.0))
        .map(|(name, values)| {
            let values: Vec<Option<Value>> =
                values.iter().map(|value| value.map(|value| rounded(value, 4))).collect();
            json!({ "name": name, "values": values })
        })
        .collect();
    (!parts.is_empty()).then(|| json!({ "unit": unit, "parts": parts }))
}
