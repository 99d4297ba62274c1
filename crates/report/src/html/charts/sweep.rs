//! Rates and response times against the number of connections.

use dbdyno_analyse::{Sweep, SweepRung};
use serde_json::{Value, json};

use super::{Charts, chart, figure};
use crate::document::Chart;

pub(super) fn sweep(charts: &Charts<'_>, sweep: &Sweep) -> Chart {
    let line = |of: &dbdyno_analyse::SweepVariant| {
        let values = |value: fn(&SweepRung) -> Option<f64>| -> Vec<Option<Value>> {
            let known = of.rungs.iter().map(|rung| rung.as_ref().and_then(value));
            known.map(|value| value.filter(|value| value.is_finite()).map(figure)).collect()
        };
        json!({
            "variant": charts.variant(&of.variant),
            "rate": values(|rung| Some(rung.median_rate)),
            "p50": values(|rung| Some(rung.p50_us? / 1e3)),
            "p95": values(|rung| Some(rung.p95_us? / 1e3)),
            "p99": values(|rung| Some(rung.p99_us? / 1e3)),
        })
    };
    let (test, unit) = (&sweep.test, &sweep.rate_label);
    chart(
        format!("{test}: {unit} and response time against connections; logarithmic axes."),
        json!({
            "kind": "sweep",
            "unit": unit,
            "connections": sweep.connections,
            "series": sweep.variants.iter().map(line).collect::<Vec<_>>(),
        }),
    )
}
