//! Charts of rates and response times against the number of connections.

use serde_json::{Map, Value, json};

use super::{Charts, chart, figure};
use crate::document::Chart;
use crate::views::sweeps::{self, PointOf, Sweep};

/// Name in the data, the function that gives a point, and the divisor: times are in ms.
const LINES: [(&str, PointOf, f64); 4] = [
    ("rate", sweeps::rate, 1.0),
    ("p50", sweeps::p50_us, 1e3),
    ("p95", sweeps::p95_us, 1e3),
    ("p99", sweeps::p99_us, 1e3),
];

pub(super) fn sweep(charts: &Charts<'_>, sweep: &Sweep<'_>) -> Chart {
    let line = |variant: &str| {
        let points = |of: PointOf| sweep.steps.iter().map(move |step| of(step, step.variant(variant)?));
        let spread = LINES.map(|(name, of, unit)| {
            let ends = points(of).map(|point| {
                let ends = point?.blocks?;
                Some(json!([ends.low, ends.high].map(|end| figure(end / unit))))
            });
            (name.to_owned(), ends.collect::<Value>())
        });
        let values = LINES.map(|(name, of, unit)| {
            let values = points(of).map(|point| Some(figure(point?.value / unit)));
            (name.to_owned(), values.collect::<Value>())
        });
        let mut line = Map::new();
        line.insert("variant".to_owned(), json!(charts.variant(variant)));
        line.insert("spread".to_owned(), spread.into_iter().collect());
        line.extend(values);
        Value::Object(line)
    };
    let (test, unit) = (&sweep.test, sweep.rate_label());
    let connections: Vec<u32> = sweep.steps.iter().map(|step| step.connections).collect();
    chart(
        format!(
            "{test}: {unit} and response time against connections, upright lines from the lowest to the highest block; logarithmic \
             axes."
        ),
        json!({
            "kind": "sweep",
            "unit": unit,
            "connections": connections,
            "series": sweep.variants().map(line).collect::<Vec<_>>(),
        }),
    )
}
