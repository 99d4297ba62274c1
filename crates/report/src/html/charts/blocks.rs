//! The rate of each block as a point, with the variant's median: the views `rate_by_block` and rate
//! as a chart.

use dbdyno_analyse::{StepFindings, Validity};
use serde_json::{Value, json};

use super::{Charts, chart, figure, rate_of};
use crate::document::{Chart, Table};
use crate::views::cells::sign_of;
use crate::views::details::rate;
use crate::views::details::rates::by_block;

/// The chart; `None` for one block.
pub(super) fn blocks(charts: &Charts<'_>, step: &StepFindings) -> Option<Chart> {
    let (blocks, medians) = (by_block(step).pop()?, rate(step)?);
    let all: Vec<(usize, Vec<Value>)> =
        charts.names.iter().enumerate().map(|(number, name)| (number, points(&blocks, name))).collect();
    if all.iter().all(|(_, points)| points.len() < 2) {
        return None;
    }
    let drawn = all.into_iter().filter(|(_, points)| !points.is_empty());
    let series = drawn.map(|(number, points)| {
        let median = rate_of(&medians, charts.names[number]).map(figure);
        json!({ "variant": number, "points": points, "median": median })
    });
    Some(chart(
        format!("{}: {} of each block; a bar is the median.", step.name, step.rate_label),
        json!({ "kind": "blocks", "unit": step.rate_label, "series": series.collect::<Vec<_>>() }),
    ))
}

/// Block and rate of the valid runs, and the sign of a time that is only a bound.
fn points(blocks: &Table, variant: &str) -> Vec<Value> {
    let valid = Validity::Valid.state();
    let rows = blocks.rows_of(variant);
    let rows = rows.filter(|row| blocks.cell(row, "state").is_some_and(|cell| cell.text == valid));
    let point = |row| {
        let (block, rate) = (blocks.cell(row, "block")?, blocks.cell(row, "rate")?);
        let sign = rate.bound.map(|bound| json!(sign_of(Some(bound)).trim_end()));
        let pair = [figure(block.value?), figure(rate.value?)];
        Some(Value::Array(pair.into_iter().chain(sign).collect()))
    };
    rows.filter_map(point).collect()
}
