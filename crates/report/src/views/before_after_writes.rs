//! Builds the table of the effect of writes on reads: the rate of each test after the steps that
//! write ÷ its rate before them. The table has one row per test and one column per variant.

use dbdyno_analyse::{StepFindings, ZeroRates, interval_of_blocks, ratio_of_runs};
use serde_json::Value;

use super::cells::{absent, joined, placeholder, ratio_cell};
use super::{BY_THRESHOLD, Scope, explained};
use crate::document::{Table, TableCell};
use crate::warnings::reasons_text;
use crate::words::blocks_text;

/// The suffix of a test's name in a step that runs before the steps that write.
const BEFORE_SUFFIX: &str = ".pre";

/// Data modes in which each step has tables of its own, so that no table ages.
const FRESH_MODES: [&str; 2] = ["reset", "restore-each-step"];

/// The steps of a test before and after the steps that write.
#[derive(Clone, Copy)]
struct Test<'a> {
    before: &'a StepFindings,
    after: &'a StepFindings,
}

/// Returns the table, or none where no test ran both before and after the steps that write.
pub(super) fn tables(scope: Scope<'_>) -> Vec<Table> {
    let variants = scope.variants();
    let mut table = Table::new("After ÷ before writes", "", ["test"], variants.iter().copied());
    for test in tests(scope) {
        let cells = variants.iter().map(|variant| cell(scope, test, variant));
        table.push(std::iter::once(TableCell::from(test.after.name.as_str())).chain(cells));
    }
    if table.rows.is_empty() {
        return Vec::new();
    }
    table.note = note(scope, table.rows.iter().flatten().any(|cell| cell.interval.is_some()));
    vec![explained(table, &BY_THRESHOLD)]
}

/// Returns the tests that have both steps, in the order of the steps before the writes.
fn tests(scope: Scope<'_>) -> impl Iterator<Item = Test<'_>> {
    scope.steps().filter_map(move |before| {
        let name = step_after(&before.name)?;
        let after = scope.steps().find(|step| step.name == name)?;
        Some(Test { before, after })
    })
}

/// Returns the name of the same step after the writes: `random-points_range=10.c4` for
/// `random-points.pre_range=10.c4`. The result is `None` for a step that is not before the writes.
fn step_after(name: &str) -> Option<String> {
    let (test, rest) = name.split_once(BEFORE_SUFFIX)?;
    let ends = rest.is_empty() || rest.starts_with(['.', '_']);
    ends.then(|| format!("{test}{rest}"))
}

fn note(scope: Scope<'_>, has_intervals: bool) -> String {
    let over = match has_intervals {
        true => "the geometric mean over the blocks with its 95 % interval",
        false => "the geometric mean where there are several blocks",
    };
    let mode = scope.workload.options.get("data").and_then(Value::as_str);
    let fresh = mode.filter(|mode| FRESH_MODES.contains(mode)).map_or_else(String::new, |mode| {
        format!(
            " In this run there are no writes between them: each step began on fresh tables (data = \"{mode}\")."
        )
    });
    format!(
        "Rate of each test after the steps that write ÷ its rate before them (.pre) in the same \
         block; {over}.{fresh}"
    )
}

fn cell(scope: Scope<'_>, test: Test<'_>, variant: &str) -> TableCell {
    let [before, after] = [test.before, test.after].map(|step| step.runs_of(variant));
    // The step before the writes takes the base's place, and the step after them the variant's.
    let zero_rates = ZeroRates::in_pairs(after, before);
    let mut stalled = [zero_rates.stalled, zero_rates.base_stalled].concat();
    stalled.sort_unstable();
    let without = (!stalled.is_empty()).then(|| {
        format!("without {}, in which one of the two steps answered nothing", blocks_text(&stalled))
    });
    let Some(ratio) = ratio_of_runs(after, before) else {
        return match without {
            Some(_) => absent("one of the two steps answered nothing"),
            None => missing_ratio(scope, test, variant),
        };
    };
    let cell = ratio_cell(ratio.value, 2, false, scope.run.colours);
    let note = joined([Some(cell.note.clone()), without]);
    TableCell { interval: interval_of_blocks(&ratio.blocks), note, ..cell }
}

/// Returns a table cell that says why there is no ratio. It names the first of the two steps that
/// has no rate, and what happened to that step.
fn missing_ratio(scope: Scope<'_>, test: Test<'_>, variant: &str) -> TableCell {
    let without_rate = |step: &&StepFindings| step.variant(variant).is_some_and(|found| found.rate.is_none());
    let step = [test.before, test.after].into_iter().find(without_rate);
    match step.and_then(|step| Some((&step.name, placeholder(scope, step.variant(variant)?)))) {
        Some((name, placeholder)) => TableCell {
            note: format!("{name}: {}", reasons_text(&placeholder.why)),
            ..TableCell::from(placeholder.text)
        },
        None => absent("no block in which both are valid"),
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::{Findings, Validity};

    use super::*;
    use crate::fixture::{NAMES, of_steps, step};
    use crate::views::testing::scope;

    /// Makes findings from one variant's rates before and after the writes, with one rate per
    /// block.
    fn blocks(before: &[f64], after: &[f64]) -> Findings {
        let of = |name, rates| step(name, &[(NAMES[0], rates)]);
        of_steps(vec![of("ro.pre", before), of("write", &[500.0; 3]), of("ro", after)])
    }

    fn table(findings: &Findings) -> Option<Table> {
        tables(scope(findings)).pop()
    }

    fn only_cell(findings: &Findings) -> TableCell {
        let table = table(findings).expect("both steps");
        assert_eq!((table.rows.len(), table.rows[0][0].text.as_str()), (1, "ro"));
        table.rows[0][1].clone()
    }

    fn close(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() < tolerance, "{found} is not {expected}");
    }

    #[test]
    fn the_step_after_the_writes_has_the_name_without_pre() {
        let of = |name| step_after(name);
        assert_eq!(of("point-query.pre").as_deref(), Some("point-query"));
        assert_eq!(of("point-query.pre.c16").as_deref(), Some("point-query.c16"));
        assert_eq!(of("random-points.pre_range=10.c4").as_deref(), Some("random-points_range=10.c4"));
        assert_eq!([of("point-query"), of("scan.warmpre"), of("a.preface")], [None, None, None]);
    }

    #[test]
    fn rates_are_divided_within_their_block_and_averaged_on_a_log_scale() {
        // The ratios are 0.8 and 0.2, and their geometric mean is 0.4. The ratio of the medians
        // would be 0.5.
        let found = only_cell(&blocks(&[10_000.0, 20_000.0], &[8_000.0, 4_000.0]));
        close(found.value.unwrap(), 0.4, 1e-12);
        // The interval's half-width is Student's t × the standard error. Both log ratios
        // lie ln 2 from their mean, so the half-width is 12.706 × (√2 × ln 2) ÷ √2.
        let interval = found.interval.unwrap();
        close((interval.high / 0.4).ln(), 12.706_204_736 * 2.0_f64.ln(), 1e-6);
        close((0.4 / interval.low).ln(), 12.706_204_736 * 2.0_f64.ln(), 1e-6);
    }

    #[test]
    fn one_block_has_a_ratio_and_no_interval() {
        let findings = blocks(&[10_000.0], &[9_000.0]);
        let found = only_cell(&findings);
        assert_eq!((found.value, found.interval), (Some(0.9), None));
        assert!(table(&findings).unwrap().note.ends_with("where there are several blocks."));
    }

    #[test]
    fn a_block_with_an_invalid_step_and_one_with_a_stalled_step_are_left_out() {
        let mut findings = blocks(&[10_000.0; 3], &[8_000.0, 8_000.0, 0.0]);
        findings.workloads[0].steps[0].variants[0].runs[0].validity = Validity::Interrupted;
        let found = only_cell(&findings);
        let note = "without block 3, in which one of the two steps answered nothing";
        assert_eq!((found.value, found.interval, found.note.as_str()), (Some(0.8), None, note));
    }

    #[test]
    fn a_step_without_a_rate_says_why_there_is_no_ratio() {
        let mut findings = blocks(&[10_000.0], &[8_000.0]);
        let variant = &mut findings.workloads[0].steps[2].variants[0];
        (variant.rate, variant.runs[0].validity) = (None, Validity::Failed { message: "gone".to_owned() });
        let found = only_cell(&findings);
        assert_eq!((found.text.as_str(), found.note.as_str()), ("failed", "ro: gone"));
    }

    #[test]
    fn each_concurrency_level_has_a_row_and_a_step_without_its_counterpart_has_none() {
        let names = ["ro.pre.c1", "ro.pre.c4", "only.pre.c1", "w.c1", "ro.c1", "ro.c4", "hot.c1"];
        let rates = [1_000.0, 2_000.0, 3_000.0, 4_000.0, 5_000.0, 6_000.0, 7_000.0];
        let steps = names.iter().zip(rates).map(|(name, rate)| step(name, &[(NAMES[0], &[rate])]));
        let table = table(&of_steps(steps.collect())).unwrap();
        let rows: Vec<_> = table.rows.iter().map(|row| (row[0].text.as_str(), row[1].value)).collect();
        assert_eq!(rows, [("ro.c1", Some(5.0)), ("ro.c4", Some(3.0))]);
    }
}
