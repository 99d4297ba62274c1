//! CPU and IO of an operation, stacked by who used it.

use dbdyno_analyse::{OperationUse, StepFindings, operation_use};
use serde_json::{Value, json};

use super::{Charts, chart, rounded};
use crate::document::Chart;

type CostComponent = (&'static str, fn(&OperationUse) -> Option<f64>);

const CPU: [CostComponent; 5] = [
    ("server, user", |found| found.server_user_us),
    ("server, kernel", |found| found.server_kernel_us),
    ("client", |found| found.client_us),
    ("rest of the host", |found| found.rest_us),
    ("IO wait", |found| found.iowait_us),
];
const IO: [CostComponent; 3] = [
    ("read by the server", |found| found.server_read_kib),
    ("read by others", |found| found.others_read_kib),
    ("written", |found| found.written_kib),
];

/// `None` where neither was sampled.
pub(super) fn cost(charts: &Charts<'_>, step: &StepFindings) -> Option<Chart> {
    let found: Vec<(usize, OperationUse)> = step
        .variants
        .iter()
        .filter_map(|variant| Some((charts.variant(&variant.variant), operation_use(variant)?)))
        .collect();
    let panels: Vec<Value> = [("CPU, µs per operation", &CPU[..]), ("device, KiB per operation", &IO[..])]
        .into_iter()
        .filter_map(|(unit, parts)| panel(unit, parts, &found))
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
                "variants": found.iter().map(|(variant, _)| *variant).collect::<Vec<_>>(),
                "panels": panels,
            }),
        )
    })
}

fn panel(unit: &str, parts: &[CostComponent], found: &[(usize, OperationUse)]) -> Option<Value> {
    let parts: Vec<Value> = parts
        .iter()
        .map(|(name, value)| (*name, found.iter().map(|(_, of)| value(of)).collect::<Vec<_>>()))
        .filter(|(_, values)| values.iter().flatten().any(|value| *value > 0.0))
        .map(|(name, values)| {
            let values: Vec<Option<Value>> =
                values.iter().map(|value| value.map(|value| rounded(value, 4))).collect();
            json!({ "name": name, "values": values })
        })
        .collect();
    (!parts.is_empty()).then(|| json!({ "unit": unit, "parts": parts }))
}
