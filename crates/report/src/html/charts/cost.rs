//! The view `by_user` as bars: CPU and IO of an operation, stacked by who used it.

use dbdyno_analyse::StepFindings;
use serde_json::{Value, json};

use super::{Charts, chart, rounded};
use crate::document::{Chart, Table};
use crate::views::details::by_user::{self, CPU_UNIT, IO_UNIT};

/// The chart; `None` where neither CPU nor IO was sampled.
pub(super) fn cost(charts: &Charts<'_>, step: &StepFindings) -> Option<Chart> {
    let table = by_user::table(step);
    let all = [("CPU, µs per operation", CPU_UNIT), ("device, KiB per operation", IO_UNIT)];
    let panels: Vec<Value> = all.into_iter().filter_map(|(title, unit)| panel(&table, title, unit)).collect();
    let variants = table.rows.iter().map(|row| charts.variant(&row[0].text));
    let unit = step.rate_label.trim_end_matches("/s");
    (!panels.is_empty()).then(|| {
        chart(
            format!(
                "{}: CPU and IO per operation ({unit}), by who used it; medians of the blocks.",
                step.name
            ),
            json!({ "kind": "cost", "variants": variants.collect::<Vec<_>>(), "panels": panels }),
        )
    })
}

/// Of the columns with this unit.
fn panel(table: &Table, title: &str, unit: &str) -> Option<Value> {
    let columns = table.columns.iter().enumerate().filter(|(_, column)| column.unit == unit);
    let values = |at: usize| table.rows.iter().map(move |row| row[at].value.map(|value| rounded(value, 4)));
    let parts: Vec<Value> = columns
        .map(|(at, column)| json!({ "name": column.name, "values": values(at).collect::<Vec<_>>() }))
        .collect();
    (!parts.is_empty()).then(|| json!({ "unit": title, "parts": parts }))
}
