//! Table of the headline operations' response times, with one row per step and variant.

use dbdyno_analyse::{Latency, PercentileRatio, StepFindings};

use super::Scope;
use super::cells::{milliseconds_cell, number};
use crate::document::{Cell, Table, Tone};
use crate::number::{count, ratio};
use crate::words::table;

/// The table; none where nothing was timed.
pub(super) fn tables(scope: Scope<'_>) -> Vec<Table> {
    let table = of_steps(&scope.steps().collect::<Vec<_>>());
    if table.rows.is_empty() { Vec::new() } else { vec![table] }
}

/// The same table for the steps that a reader asks for.
pub(crate) fn of_steps(steps: &[&StepFindings]) -> Table {
    let has_ratios =
        steps.iter().flat_map(|step| &step.variants).any(|variant| variant.to_base.p99.is_some());
    let ratio = if has_ratios { " p99 ÷ base: geometric mean over the blocks." } else { "" };
    let note = format!(
        "Response time of each step's headline operation: all clients and all valid blocks together.{ratio}"
    );
    let mut grid =
        Table { note, ..table("latency").without(if has_ratios { &[] } else { &["p99 ÷ base"] }) };
    for step in steps {
        for variant in &step.variants {
            let Some(latency) = &variant.latency else { continue };
            let mut row = vec![Cell::from(step.name.as_str()), Cell::from(variant.variant.as_str())];
            row.extend(cells(latency));
            row.extend(has_ratios.then(|| variant.to_base.p99.as_ref().map_or(Cell::from(""), p99_ratio)));
            grid.push(row);
        }
    }
    grid
}

fn cells(latency: &Latency) -> impl Iterator<Item = Cell> {
    let percentiles =
        [latency.p50_us, latency.p90_us, latency.p95_us, latency.p99_us, latency.p999_us, latency.max_us];
    let times = std::iter::once(latency.mean_us).chain(percentiles.map(|us| us as f64));
    std::iter::once(number(latency.count as f64, count(latency.count))).chain(times.map(milliseconds_cell))
}

fn p99_ratio(found: &PercentileRatio) -> Cell {
    Cell {
        value: Some(found.ratio.value),
        interval: found.ratio.interval(),
        verdict: found.verdict,
        ..Cell::toned(ratio(Some(found.ratio.value), 2), Tone::of(found.verdict))
    }
}
