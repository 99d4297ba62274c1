//! The view `executions` as bars with whiskers and points: seconds of queries as they are, or with
//! the base as 100 %, with and without outliers.

use dbdyno_analyse::StepFindings;
use serde_json::{Value, json};

use super::{Charts, chart, figure, rate_of, rounded};
use crate::document::{Chart, Table};
use crate::views::details::statistics::{composite, one_by_one};
use crate::views::{Scope, details};

/// A median beyond this many times the third quartile of all is an outlier.
const FAR: f64 = 2.5;
/// Length of the axis ÷ the highest value that is not an outlier.
const ROOM: f64 = 1.25;

/// One variant in one row: its executions' times, each divided by the unit.
struct Bar {
    row: usize,
    variant: usize,
    median: f64,
    times: Vec<f64>,
    is_over: bool,
}

/// The charts; none where no time counts by itself. Without a variant to compare with, they are in
/// seconds.
pub(super) fn queries(charts: &Charts<'_>, scope: Scope<'_>) -> Vec<Chart> {
    let steps: Vec<(&StepFindings, Table)> = scope.steps().filter_map(of_one_query).collect();
    let (base, is_compared) = (&scope.run.base, !scope.compared().is_empty());
    let mut bars = Vec::new();
    for (row, (step, executions)) in steps.iter().enumerate() {
        let Some(medians) = details::rate(step) else { continue };
        let percent = || Some(rate_of(&medians, base)? / 100.0);
        let unit = if is_compared { percent() } else { Some(1.0) };
        let Some(unit) = unit.filter(|unit| *unit > 0.0) else { continue };
        let of = |(number, name): (usize, &&str)| bar((row, number), &medians, executions, (name, unit));
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
    let marks = "median, lowest and highest, a point for each execution; > ended at its time limit";
    let drawn = |title: String, cut: Option<f64>| {
        let data = json!({
            "kind": "queries", "unit": unit, "rows": rows, "cut": cut, "series": series(&bars),
        });
        chart(title, data)
    };
    let mut all = vec![drawn(format!("{what}: {marks}."), None)];
    if let Some(cut) = outliers_from(&bars) {
        all.push(drawn(format!("{what}, without outliers, which are cut and labelled: {marks}."), Some(cut)));
    }
    all
}

/// The step with its executions, if each of these is a time of its own.
fn of_one_query(step: &StepFindings) -> Option<(&StepFindings, Table)> {
    let executions = step.less_is_better.then(|| one_by_one(step))?;
    (!executions.rows.is_empty() && composite(step).rows.is_empty()).then_some((step, executions))
}

/// A variant's row of the step's table, with its rows of the table of executions. Those of runs that
/// are not valid have another label.
fn bar(
    (row, variant): (usize, usize),
    medians: &Table,
    executions: &Table,
    (name, unit): (&str, f64),
) -> Option<Bar> {
    let median = medians.rows_of(name).find_map(|row| medians.cell(row, "rate"))?;
    let times = executions.rows_of(name).filter_map(|row| executions.cell(row, "time")?.value);
    Some(Bar {
        row,
        variant,
        median: median.value? / unit,
        times: times.map(|seconds| seconds / unit).collect(),
        is_over: median.bound.is_some(),
    })
}

fn series(bars: &[Bar]) -> Vec<Value> {
    let mut variants: Vec<usize> = bars.iter().map(|bar| bar.variant).collect();
    variants.sort_unstable();
    variants.dedup();
    let points = |variant: usize| -> Vec<Value> {
        bars.iter().filter(|bar| bar.variant == variant).map(point).collect()
    };
    variants.into_iter().map(|variant| json!({ "variant": variant, "points": points(variant) })).collect()
}

fn point(bar: &Bar) -> Value {
    let ends = |end: fn(f64, f64) -> f64| rounded(bar.times.iter().copied().fold(bar.median, end), 6);
    json!({
        "row": bar.row,
        "median": figure(bar.median),
        "min": ends(f64::min),
        "max": ends(f64::max),
        "times": bar.times.iter().map(|time| rounded(*time, 6)).collect::<Vec<_>>(),
        "over": bar.is_over,
    })
}

/// The value at which the axis ends without outliers; `None` where there are none.
fn outliers_from(bars: &[Bar]) -> Option<f64> {
    let mut medians: Vec<f64> = bars.iter().map(|bar| bar.median).collect();
    medians.sort_unstable_by(f64::total_cmp);
    let far = FAR * medians[3 * (medians.len() - 1) / 4];
    let most = medians.iter().copied().filter(|median| *median <= far).fold(0.0, f64::max);
    medians.last().is_some_and(|last| *last > far).then_some(most * ROOM)
}
