//! Charts of a workload's steps together.
//!
//! * Ratios: the view `ratios` as dots with intervals around 1, with one chart per group of steps
//!   and number of connections.
//! * Queries: the view `executions` as bars with whiskers and points, in seconds or with the base
//!   as 100 %, with and without outliers.
//! * Sweeps: rates and response times against the number of connections.

use dbdyno_analyse::{StepFindings, Verdict};
use serde_json::{Map, Value, json};

use super::{Charts, bound_sign, chart, figure, rate_of, rounded};
use crate::document::{Chart, Table, TableCell};
use crate::views::details::statistics::{composite, one_by_one};
use crate::views::groups::in_sets;
use crate::views::sweeps::{self, PointOf, Sweep};
use crate::views::{self, Scope, details};

/// Draws the ratios to the base. There are no charts where nothing is compared.
pub(super) fn ratios(charts: &Charts<'_>, scope: Scope<'_>, sweeps: &[Sweep<'_>]) -> Vec<Chart> {
    let Some(table) = views::ratios::tables(scope).pop() else { return Vec::new() };
    let sets = in_sets(scope, |step| set_of(step, sweeps));
    sets.iter().filter_map(|(name, steps)| of_set(charts, scope, &table, (name, steps))).collect()
}

/// Names the chart in which a step is shown, such as `point, part 1, 16 connections`. The name is
/// empty for steps without a group that ran with one number of connections.
fn set_of(step: &StepFindings, sweeps: &[Sweep<'_>]) -> String {
    let group = step.groups.values().next().cloned();
    let has_step = |sweep: &Sweep<'_>| sweep.steps.iter().any(|other| other.name == step.name);
    // If there is only one sweep, its steps are in one chart.
    let is_apart = sweeps.len() > 1 && sweeps.iter().any(has_step);
    let connections = is_apart.then(|| dbdyno_analyse::numbered(step.connections as usize, "connection"));
    group.into_iter().chain(connections).collect::<Vec<_>>().join(", ")
}

/// Makes one chart from the table's rows for these steps.
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
            points.extend(
                others.filter_map(|(column, cell)| ratio_point(row, charts.variant(&column.name), cell)),
            );
        }
    }
    if points.is_empty() {
        return None;
    }
    let is_compared = |name: &str| name != base && table.columns.iter().any(|column| column.name == name);
    let compared = charts.names.iter().enumerate().filter(|(_, name)| is_compared(name));
    let name = if name.is_empty() { String::new() } else { format!(", {name}") };
    let bounds =
        if points.iter().any(has_sign) { "; marked >, < or ≷: only a bound, by a time limit" } else { "" };
    let what = if steps.iter().all(|step| step.less_is_better) { "seconds" } else { "rate" };
    let workload = &scope.workload.name;
    Some(chart(
        format!("Relative {what}{name}: new ÷ base, 95 % interval; hollow: undecided{bounds}. Base: {base}"),
        json!({
            "kind": "ratios",
            "base": charts.variant(base),
            "of": what,
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

/// Returns the data of a point: row, variant, ratio, ends of the interval and verdict. A ratio that
/// is only a bound has `>`, `<` or `≷` as a last item.
fn ratio_point(row: usize, variant: usize, cell: &TableCell) -> Option<Value> {
    let mut point = vec![
        json!(row),
        json!(variant),
        json!(cell.value?),
        json!(cell.interval.map(|interval| interval.low)),
        json!(cell.interval.map(|interval| interval.high)),
        json!(cell.verdict.map(Verdict::word)),
    ];
    point.extend(bound_sign(cell.bound).map(|sign| json!(sign)));
    Some(Value::Array(point))
}

/// A median beyond this many times the third quartile of all medians is an outlier.
const FAR: f64 = 2.5;
/// Length of the axis ÷ the highest value that is not an outlier.
const ROOM: f64 = 1.25;

/// One variant in one row: its executions' times, each divided by the unit.
struct Bar {
    row: usize,
    variant: usize,
    median: f64,
    times: Vec<f64>,
    /// The sign of a time that is only a bound.
    sign: Option<&'static str>,
}

/// Draws the times of queries. There are no charts where no time counts by itself. Without a
/// variant to compare with, times are in seconds.
pub(super) fn queries(charts: &Charts<'_>, scope: Scope<'_>) -> Vec<Chart> {
    let steps: Vec<(&StepFindings, Table)> = scope.steps().filter_map(of_one_query).collect();
    let (base, is_compared) = (&scope.run.base, !scope.compared().is_empty());
    let mut bars = Vec::new();
    for (row, (step, executions)) in steps.iter().enumerate() {
        let Some(medians) = details::rate(step) else { continue };
        let of_base = rate_of(&medians, base).filter(|_| is_compared);
        let percent = of_base.and_then(|cell| cell.value).map(|median| median / 100.0);
        let unit = if is_compared { percent } else { Some(1.0) };
        let Some(unit) = unit.filter(|unit| *unit > 0.0) else { continue };
        let is_base_over = of_base.is_some_and(|cell| cell.bound.is_some());
        let of = |(number, name): (usize, &&str)| {
            let is_below = is_base_over && name != base;
            bar((row, number), &medians, executions, (name, unit, is_below))
        };
        bars.extend(charts.names.iter().enumerate().filter_map(of));
    }
    if bars.is_empty() {
        return Vec::new();
    }
    let rows: Vec<&str> = steps.iter().map(|(step, _)| step.name.as_str()).collect();
    let (unit, what) = match is_compared {
        true => (format!("% of {base}"), format!("Seconds of each query, the median of {base} is 100 %")),
        false => ("seconds".to_owned(), "Seconds of each query".to_owned()),
    };
    let marks =
        "median, lowest and highest, a point for each execution; > or <: only a bound, by a time limit";
    let drawn = |title: String, cut: Option<f64>| {
        let data = json!({
            "kind": "queries", "unit": unit, "rows": rows, "cut": cut, "series": bar_series(&bars),
        });
        chart(title, data)
    };
    let mut all = vec![drawn(format!("{what}: {marks}."), None)];
    if let Some(cut) = outliers_from(&bars) {
        all.push(drawn(format!("{what}, without outliers, which are cut and labelled: {marks}."), Some(cut)));
    }
    all
}

/// Returns the step with its executions, if each of these is a time that counts by itself.
fn of_one_query(step: &StepFindings) -> Option<(&StepFindings, Table)> {
    let executions = step.less_is_better.then(|| one_by_one(step))?;
    (!executions.rows.is_empty() && composite(step).rows.is_empty()).then_some((step, executions))
}

/// Makes the bar for a variant, from its row in the step's table of rates and its rows in the table
/// of executions. Rows of invalid runs have another label, so that they are not found.
fn bar(
    (row, variant): (usize, usize),
    medians: &Table,
    executions: &Table,
    (name, unit, is_below): (&str, f64, bool),
) -> Option<Bar> {
    let median = rate_of(medians, name)?;
    // Nothing is known of the ratio of two times that were both cut off.
    if is_below && median.bound.is_some() {
        return None;
    }
    let times = executions.rows_of(name).filter_map(|row| executions.cell(row, "time")?.value);
    Some(Bar {
        row,
        variant,
        median: median.value? / unit,
        times: times.map(|seconds| seconds / unit).collect(),
        sign: if is_below { Some("<") } else { bound_sign(median.bound) },
    })
}

fn bar_series(bars: &[Bar]) -> Vec<Value> {
    let mut variants: Vec<usize> = bars.iter().map(|bar| bar.variant).collect();
    variants.sort_unstable();
    variants.dedup();
    let points = |variant: usize| -> Vec<Value> {
        bars.iter().filter(|bar| bar.variant == variant).map(bar_point).collect()
    };
    variants.into_iter().map(|variant| json!({ "variant": variant, "points": points(variant) })).collect()
}

fn bar_point(bar: &Bar) -> Value {
    let ends = |end: fn(f64, f64) -> f64| rounded(bar.times.iter().copied().fold(bar.median, end), 6);
    json!({
        "row": bar.row,
        "median": figure(bar.median),
        "min": ends(f64::min),
        "max": ends(f64::max),
        "times": bar.times.iter().map(|time| rounded(*time, 6)).collect::<Vec<_>>(),
        "sign": bar.sign,
    })
}

/// Returns the value at which the axis ends in the chart without outliers. It is `None` where there
/// are no outliers.
fn outliers_from(bars: &[Bar]) -> Option<f64> {
    let mut medians: Vec<f64> = bars.iter().map(|bar| bar.median).collect();
    medians.sort_unstable_by(f64::total_cmp);
    let far = FAR * medians[3 * (medians.len() - 1) / 4];
    let highest = medians.iter().copied().filter(|median| *median <= far).fold(0.0, f64::max);
    medians.last().is_some_and(|last| *last > far).then_some(highest * ROOM)
}

/// Name in the data, the function that gives a point, and the divisor, which turns µs into ms.
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
            "{test}: {unit} and response time against connections, vertical lines from the lowest to the \
             highest block."
        ),
        json!({
            "kind": "sweep",
            "unit": unit,
            "connections": connections,
            "series": sweep.variants().map(line).collect::<Vec<_>>(),
        }),
    )
}
