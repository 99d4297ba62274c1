//! The view `ratios` as dots with intervals around 1, a chart for each group of steps and number of
//! connections.

use dbdyno_analyse::{StepFindings, Verdict};
use serde_json::{Value, json};

use super::{Charts, chart};
use crate::document::{Cell, Chart, Table};
use crate::views::cells::sign_of;
use crate::views::groups::in_published_order;
use crate::views::sweeps::Sweep;
use crate::views::{self, Scope};

/// The charts; none where nothing is compared.
pub(super) fn ratios(charts: &Charts<'_>, scope: Scope<'_>, sweeps: &[Sweep<'_>]) -> Vec<Chart> {
    let Some(table) = views::ratios::tables(scope).pop() else { return Vec::new() };
    let mut sets: Vec<(String, Vec<&StepFindings>)> = Vec::new();
    for step in scope.steps() {
        let name = set_of(step, sweeps);
        match sets.iter_mut().find(|(known, _)| *known == name) {
            Some((_, members)) => members.push(step),
            None => sets.push((name, vec![step])),
        }
    }
    in_published_order(&mut sets, |(_, steps)| steps[0].groups.values().next().map_or("", String::as_str));
    sets.iter().filter_map(|(name, steps)| of_set(charts, scope, &table, (name, steps))).collect()
}

/// The chart in which a step is shown, such as `point, part 1, 16 connections`. It is empty for
/// steps without a group that ran with one number of connections.
fn set_of(step: &StepFindings, sweeps: &[Sweep<'_>]) -> String {
    let group = step.groups.values().next().cloned();
    let has_step = |sweep: &Sweep<'_>| sweep.steps.iter().any(|other| other.name == step.name);
    // If there is only one sweep, its steps are in one chart.
    let is_apart = sweeps.len() > 1 && sweeps.iter().any(has_step);
    let connections = is_apart.then(|| dbdyno_analyse::numbered(step.connections as usize, "connection"));
    group.into_iter().chain(connections).collect::<Vec<_>>().join(", ")
}

/// One chart of these steps' rows of the table.
fn of_set(
    charts: &Charts<'_>,
    scope: Scope<'_>,
    table: &Table,
    (name, steps): (&str, &[&StepFindings]),
) -> Option<Chart> {
    let base = &scope.run.base;
    let mut points = Vec::new();
    for (row, step) in steps.iter().enumerate() {
        for cells in table.rows_of(&step.name) {
            let variants = table.columns.iter().zip(cells).skip(table.labels);
            let others = variants.filter(|(column, _)| column.name != *base);
            points.extend(others.filter_map(|(column, cell)| point(row, charts.variant(&column.name), cell)));
        }
    }
    if points.is_empty() {
        return None;
    }
    let is_compared = |name: &str| name != base && table.columns.iter().any(|column| column.name == name);
    let compared = charts.names.iter().enumerate().filter(|(_, name)| is_compared(name));
    let name = if name.is_empty() { String::new() } else { format!(", {name}") };
    let bounds =
        if points.iter().any(has_sign) { "; marked > or <: only a bound, by a time limit" } else { "" };
    let what = if steps.iter().all(|step| step.less_is_better) { "seconds" } else { "rate" };
    let workload = &scope.workload.name;
    Some(chart(
        format!("Relative {what}{name}: new ÷ base, 95 % interval; hollow: undecided{bounds}. Base: {base}"),
        json!({
            "kind": "ratios",
            "margin": steps.iter().map(|step| step.margin).fold(0.0, f64::max),
            "rows": steps.iter().map(|step| step.name.as_str()).collect::<Vec<_>>(),
            "keys": steps.iter().map(|step| charts.step_id(workload, &step.name)).collect::<Vec<_>>(),
            "variants": compared.map(|(number, _)| number).collect::<Vec<_>>(),
            "points": points,
        }),
    ))
}

fn has_sign(point: &Value) -> bool {
    point.get(6).is_some()
}

/// Row, variant, ratio, ends of the interval, verdict, and `>`, `<` or `≷` of a ratio that is only a
/// bound.
fn point(row: usize, variant: usize, cell: &Cell) -> Option<Value> {
    let bound = cell.bound.map(|bound| sign_of(Some(bound)).trim_end());
    let mut point = vec![
        json!(row),
        json!(variant),
        json!(cell.value?),
        json!(cell.interval.map(|interval| interval.low)),
        json!(cell.interval.map(|interval| interval.high)),
        json!(cell.verdict.map(Verdict::word)),
    ];
    point.extend(bound.map(|sign| json!(sign)));
    Some(Value::Array(point))
}
