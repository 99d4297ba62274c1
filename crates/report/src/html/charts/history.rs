//! Chart of a series over runs: one point per run, levels between changes, and where each change
//! is.

use dbdyno_analyse::{Change, Series, Verdict};
use serde_json::{Value, json};

use super::{chart, figure};
use crate::document::Chart;
use crate::number::ratio;

/// The chart; `None` for fewer than two values. `runs` are names and dates of all runs.
pub(crate) fn history_chart(
    title: &str,
    unit: &str,
    series: &Series,
    runs: &[(String, String)],
) -> Option<Chart> {
    let known = series.values.iter().flatten().count();
    let values: Vec<Option<Value>> = series.values.iter().map(|value| value.map(figure)).collect();
    let change = |change: &Change| json!({ "at": change.at, "word": word(change) });
    (known > 1).then(|| {
        chart(
            title,
            json!({
                "kind": "history",
                "name": series.variant,
                "names": [series.variant],
                "unit": unit,
                "runs": runs,
                "values": values,
                "changes": series.changes.iter().map(change).collect::<Vec<_>>(),
                "levels": levels(series, runs.len()),
            }),
        )
    })
}

/// First run, run after the last, and value for each stretch between two changes; empty where there
/// is no change.
fn levels(series: &Series, runs: usize) -> Vec<(usize, usize, f64)> {
    let Some(first) = series.changes.first() else { return Vec::new() };
    let values = std::iter::once(first.before).chain(series.changes.iter().map(|change| change.after));
    let begins = std::iter::once(0).chain(series.changes.iter().map(|change| change.at));
    let ends = series.changes.iter().map(|change| change.at).chain([runs]);
    begins.zip(ends).zip(values).map(|((from, to), value)| (from, to, value)).collect()
}

fn word(change: &Change) -> String {
    let word = match change.verdict {
        Verdict::Faster => "▲ faster",
        Verdict::Slower => "▼ slower",
        _ => "within the margin",
    };
    // After a level with a rate of zero, there is no ratio.
    if change.before > 0.0 { format!("{word} ×{}", ratio(Some(change.ratio), 3)) } else { word.to_owned() }
}
