//! Rates and response times against the number of connections.

use dbdyno_analyse::statistics::Interval;
use dbdyno_analyse::{Sweep, SweepPoint, SweepSpread};
use serde_json::{Value, json};

use super::{Charts, chart, figure};
use crate::document::Chart;

pub(super) fn sweep(charts: &Charts<'_>, sweep: &Sweep) -> Chart {
    let line = |of: &dbdyno_analyse::SweepVariant| {
        let values = |value: fn(&SweepPoint) -> Option<f64>| -> Vec<Option<Value>> {
            let known = of.rungs.iter().map(|rung| rung.as_ref().and_then(value));
            known.map(|value| value.filter(|value| value.is_finite()).map(figure)).collect()
        };
        let spread = |of_block: fn(&SweepSpread) -> Option<Interval>, unit: f64| -> Vec<Option<Value>> {
            let known = of.rungs.iter().map(|rung| rung.as_ref().and_then(|rung| of_block(&rung.spread)));
            known
                .map(|ends| ends.map(|ends| json!([figure(ends.low / unit), figure(ends.high / unit)])))
                .collect()
        };
        json!({
            "variant": charts.variant(&of.variant),
            "spread": {
                "rate": spread(|of| of.rate, 1.0),
                "p50": spread(|of| of.p50_us, 1e3),
                "p95": spread(|of| of.p95_us, 1e3),
                "p99": spread(|of| of.p99_us, 1e3),
            },
            "rate": values(|rung| Some(rung.median_rate)),
            "p50": values(|rung| Some(rung.p50_us? / 1e3)),
            "p95": values(|rung| Some(rung.p95_us? / 1e3)),
            "p99": values(|rung| Some(rung.p99_us? / 1e3)),
        })
    };
    let (test, unit) = (&sweep.test, &sweep.rate_label);
    chart(
        format!(
            "{test}: {unit} and response time against connections, upright lines from the least to the greatest block; logarithmic \
             axes."
        ),
        json!({
            "kind": "sweep",
            "unit": unit,
            "connections": sweep.connections,
            "series": sweep.variants.iter().map(line).collect::<Vec<_>>(),
        }),
    )
}
