//! Table of the headline operations' response times, with one row per step and variant.

use dbdyno_analyse::tables::{ComparisonRow, Tables};

use super::Scope;
use super::cells::{Pivot, milliseconds_cell, number, steps, variants};
use crate::document::{Table, TableCell, Tone};
use crate::number::{count, ratio};
use crate::words::table;

/// The columns after the count, in the order of the table.
const TIMES: [&str; 7] = [
    "response_mean_us",
    "response_p50_us",
    "response_p90_us",
    "response_p95_us",
    "response_p99_us",
    "response_p999_us",
    "response_max_us",
];

/// Makes the table. There is none where nothing was timed. Steps whose headline is a time are left
/// out, because they run few operations, and the table of times shows these.
pub(super) fn tables(scope: Scope<'_>) -> Vec<Table> {
    let is_time =
        |name: &str| scope.workload.steps.iter().any(|step| step.name == name && step.less_is_better);
    of_steps(scope, |name| !is_time(name)).into_iter().collect()
}

/// Makes the same table for the steps for which `is_asked` holds.
pub(crate) fn of_steps(scope: Scope<'_>, is_asked: impl Fn(&str) -> bool) -> Option<Table> {
    Some(of_tables(&scope.tables(), is_asked)).filter(|table| !table.rows.is_empty())
}

fn of_tables(tables: &Tables<'_>, is_asked: impl Fn(&str) -> bool) -> Table {
    let counts = Pivot::of(tables, "response_count");
    let times = TIMES.map(|metric| Pivot::of(tables, metric));
    let [.., p99, _, _] = &times;
    let (steps, variants) = (steps(tables), variants(tables));
    let pairs = || {
        steps
            .iter()
            .filter(|step| is_asked(step))
            .flat_map(|step| variants.iter().map(move |variant| (*step, *variant)))
    };
    let has_ratios = pairs().any(|(step, variant)| p99.comparison(step, variant).is_some());
    let ratio = if has_ratios { " p99 ÷ base: geometric mean over the blocks." } else { "" };
    let note = format!(
        "Response time of each step's headline operation: all clients and all valid blocks together.{ratio}"
    );
    let mut grid =
        Table { note, ..table("latency").without(if has_ratios { &[] } else { &["p99 ÷ base"] }) };
    for (step, variant) in pairs() {
        let Some(all) = counts.value(step, variant) else { continue };
        let mut row = vec![TableCell::from(step), TableCell::from(variant), number(all, count(all as u64))];
        row.extend(
            times
                .iter()
                .map(|time| time.value(step, variant).map_or(TableCell::default(), milliseconds_cell)),
        );
        row.extend(
            has_ratios.then(|| p99.comparison(step, variant).map_or(TableCell::default(), ratio_cell)),
        );
        grid.push(row);
    }
    grid
}

fn ratio_cell(found: &ComparisonRow<'_>) -> TableCell {
    TableCell {
        value: found.ratio,
        interval: found.interval,
        verdict: found.verdict,
        ..TableCell::toned(ratio(found.ratio, 2), Tone::of(found.verdict))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::testing::{comparison, observation, rows};

    #[test]
    fn a_step_that_was_timed_has_a_row_per_variant_and_the_ratio_of_its_p99() {
        let timed = |place, us: f64| {
            let all = TIMES.map(|metric| observation(place, metric, us));
            std::iter::once(observation(place, "response_count", 1_234.0)).chain(all)
        };
        let observations = timed(("l.i0", "old"), 1_500.0).chain(timed(("l.i0", "new"), 800.0));
        let observations = observations.chain([observation(("l.x", "old"), "rate", 9.0)]).collect();
        let of = |comparisons| {
            of_tables(&Tables { comparisons, observations: Vec::clone(&observations) }, |_| true)
        };
        insta::assert_snapshot!(rows(&of(vec![comparison(("l.i0", "new"), "response_p99_us", 0.53)])), @"
        l.i0 | old | 1,234 | 1.50 | 1.50 | 1.50 | 1.50 | 1.50 | 1.50 | 1.50 |
        l.i0 | new | 1,234 | 0.800 | 0.800 | 0.800 | 0.800 | 0.800 | 0.800 | 0.800 | 0.53
        ");
        let without = of(Vec::new());
        assert_eq!((without.columns.len(), without.rows[0].len()), (10, 10), "no ratio, no column");
        assert!(
            of_tables(&Tables { observations, comparisons: Vec::new() }, |step| step == "l.x")
                .rows
                .is_empty()
        );
    }
}
