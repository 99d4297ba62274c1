//! Tables of each step's rate by variant, and of background rates against their targets.

use dbdyno_analyse::statistics::Interval;
use dbdyno_analyse::{ReachedRate, StepFindings, VariantStep, Verdict};
use dbdyno_model::Colours;

use super::cells::{self, Rated, fixed_cell, headline_cell, headline_text, joined, placeholder};
use super::{Scope, explained};
use crate::document::{Table, TableCell, Tone};
use crate::words::{TIMES_TABLE, listed, missed_blocks_text, missed_text, reached_rate_text};

const MEANINGS: [(Tone, &str); 3] = [
    (Tone::Highest, "within the highest quarter of its step"),
    (Tone::Lowest, "within the lowest quarter of its step"),
    (Tone::Missed, "the planned rate was missed"),
];

const OF_TIMES: [(Tone, &str); 2] = [
    (Tone::Highest, "within the fastest quarter of its step"),
    (Tone::Lowest, "within the slowest quarter of its step"),
];

pub(super) fn tables(scope: Scope<'_>) -> Vec<Table> {
    let row = |step| Some(rate_cells(scope, step));
    if scope.are_times() {
        let note =
            "Seconds of each step: less is better; the median where there are several executions or blocks.";
        return vec![explained(scope.by_step(("Seconds", note), &scope.variants(), row), &OF_TIMES)];
    }
    let note = format!(
        "Rate over the common window of each step{}; the median where there are several blocks.{}",
        labels(scope),
        open_loops(scope)
    );
    vec![explained(scope.by_step(("Throughput", &note), &scope.variants(), row), &MEANINGS)]
}

/// Smallest number of variants for which quarters are coloured. With fewer, a quarter is not a
/// position among the others.
const MIN_FOR_QUARTERS: usize = 4;

/// Returns whether a rate is neither high nor low, because its difference from the base's rate was
/// not shown or was shown to be small. For the base this must hold for all others.
fn is_not_different(scope: Scope<'_>, step: &StepFindings, variant: &VariantStep) -> bool {
    let is_similar =
        |found: &VariantStep| matches!(found.to_base.verdict, Some(Verdict::Same | Verdict::Undecided));
    let is_base = |found: &VariantStep| found.variant == scope.run.base;
    match is_base(variant) {
        true => step.variants.iter().all(|other| is_base(other) || is_similar(other)),
        false => is_similar(variant),
    }
}

fn rate_cells(scope: Scope<'_>, step: &StepFindings) -> Vec<TableCell> {
    let is_fixed_rate = step.is_fixed_rate(&scope.run.base);
    // A rate that the plan sets is neither high nor low.
    let of_variant = |variant| rated(step, variant).filter(|rated| !(is_fixed_rate && rated.kept));
    let rated: Vec<_> = step.variants.iter().map(of_variant).collect();
    let tones = match step.less_is_better {
        true => cells::absolute_times(&step.variants.iter().map(|variant| variant.rate).collect::<Vec<_>>()),
        false => cells::absolute(&rated),
    };
    let is_by_threshold = scope.run.colours == Colours::Threshold;
    let has_quarters = is_by_threshold && step.variants.len() >= MIN_FOR_QUARTERS;
    let cells = step.variants.iter().zip(rated.iter().zip(tones));
    cells
        .map(|(variant, (rated, tone))| match variant.rate {
            Some(rate) => {
                let misses = rated.is_some_and(|rated| !rated.kept);
                let tone = match has_quarters && !is_not_different(scope, step, variant) {
                    true => tone,
                    false if misses => Tone::Missed,
                    false => Tone::Plain,
                };
                let sign = if misses && tone == Tone::Lowest { "▼ SLA" } else { tone.sign() };
                let cell = headline_cell(step, rate, variant.cut_off);
                TableCell { tone, sign, note: note(step, variant, tone), spread: spread(variant), ..cell }
            }
            None => placeholder(scope, variant).into(),
        })
        .collect()
}

fn rated(step: &StepFindings, variant: &VariantStep) -> Option<Rated> {
    let keeps_schedule = step.reached_rate(variant).is_none_or(ReachedRate::is_kept);
    variant.rate.map(|rate| Rated { rate, kept: keeps_schedule && !step.misses(variant) })
}

fn note(step: &StepFindings, variant: &VariantStep, tone: Tone) -> String {
    let colour = match tone {
        Tone::Lowest if step.less_is_better => Some("slowest quarter of this step".to_owned()),
        Tone::Highest if step.less_is_better => Some("fastest quarter of this step".to_owned()),
        Tone::Lowest => Some("lowest quarter of this step".to_owned()),
        Tone::Highest => Some("highest quarter of this step".to_owned()),
        _ => None,
    };
    let missed = missed_text(step, variant);
    let reached_rate =
        step.reached_rate(variant).filter(|reached_rate| !reached_rate.is_kept()).map(reached_rate_text);
    let range = spread(variant).map(|ends| {
        let [lowest, highest] = [ends.low, ends.high].map(|figure| headline_text(step, figure, false));
        format!("median of {} blocks, {lowest} to {highest}", variant.valid_runs().count())
    });
    joined([colour, missed, reached_rate, range])
}

/// Returns the lowest and the highest rate, where there are several valid blocks.
pub(super) fn spread(variant: &VariantStep) -> Option<Interval> {
    let ends = Interval { low: variant.rate_min?, high: variant.rate_max? };
    (variant.valid_runs().count() > 1).then_some(ends)
}

/// Says what the rates are: `: inserts/s in l.i0 and l.i1, queries/s in qr100`. The label that most
/// steps share comes last, for the other steps.
fn labels(scope: Scope<'_>) -> String {
    let mut by_label: Vec<(&str, Vec<&str>)> = Vec::new();
    for step in scope.steps().filter(|step| !step.rate_label.is_empty()) {
        match by_label.iter_mut().find(|(label, _)| *label == step.rate_label) {
            Some((_, names)) => names.push(&step.name),
            None => by_label.push((&step.rate_label, vec![&step.name])),
        }
    }
    let largest = by_label.iter().map(|(_, names)| names.len()).max().unwrap_or(0);
    let Some(last) = by_label.iter().rposition(|(_, names)| names.len() == largest) else {
        return String::new();
    };
    let (label, names) = by_label.remove(last);
    let mut parts: Vec<String> =
        by_label.iter().map(|(label, names)| format!("{label} in {}", listed(names))).collect();
    parts.push(match (parts.len(), names.as_slice()) {
        (0, _) => label.to_owned(),
        (_, [_, _, ..]) => format!("{label} in the others"),
        (_, names) => format!("{label} in {}", listed(names)),
    });
    format!(": {}", parts.join(", "))
}

/// Says where response times are shown, for steps whose headline is an open loop.
fn open_loops(scope: Scope<'_>) -> String {
    let is_open =
        |step: &&StepFindings| step.variants.iter().any(|variant| step.reached_rate(variant).is_some());
    let names: Vec<&str> = scope.steps().filter(is_open).map(|step| step.name.as_str()).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(
            " In {} the plan fixes the rate: compare latencies in the step's table {TIMES_TABLE}.",
            listed(&names)
        ),
    }
}

/// Makes the table of targets. There is none for a workload without targets.
pub(super) fn targets(scope: Scope<'_>) -> Vec<Table> {
    let Some((_, share)) = scope.steps().find_map(|step| step.target) else { return Vec::new() };
    let note = format!(
        "Rows inserted per second by the background writers of each read-write step, all clients together; \
         the target is kept where each client reaches {:.0} % of its part.",
        100.0 * share
    );
    let heads: Vec<&str> = scope.variants().into_iter().chain(["target"]).collect();
    let row = |step: &StepFindings| {
        let target = TableCell { tone: Tone::Missed, ..fixed_cell(step.target?.0, 0) };
        let cells = step.variants.iter().map(|variant| target_cell(scope, step, variant));
        Some(cells.chain([target]).collect())
    };
    let table = scope.by_step(("Background inserts", &note), &heads, row);
    vec![explained(table, &[(Tone::Lowest, "target missed")])]
}

fn target_cell(scope: Scope<'_>, step: &StepFindings, variant: &VariantStep) -> TableCell {
    let Some(rate) = variant.background_rate else { return placeholder(scope, variant).into() };
    let tone = if step.misses(variant) { Tone::Lowest } else { Tone::Plain };
    let note = missed_text(step, variant).or_else(|| missed_blocks_text(step, variant));
    TableCell { tone, sign: tone.sign(), note: note.unwrap_or_default(), ..fixed_cell(rate, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{of_steps, step};
    use crate::views::testing::scope;

    /// Makes the table for the base `a`.
    fn table(step: StepFindings) -> Table {
        let mut findings = of_steps(vec![step]);
        findings.run.base = "a".to_owned();
        findings.run.colours = Colours::Threshold;
        tables(scope(&findings)).remove(0)
    }

    #[test]
    fn a_rate_in_the_lowest_quarter_that_missed_its_target_says_both() {
        let rates: [(&str, &[f64]); 4] =
            [("a", &[7_000.0]), ("b", &[1_000.0]), ("c", &[5_600.0]), ("d", &[6_500.0])];
        let mut step = step("qr1000", &rates);
        step.target = Some((4_000.0, 0.95));
        for (variant, rate) in step.variants.iter_mut().zip([4_000.0, 3_600.0, 4_000.0, 3_600.0]) {
            (variant.background_rate, variant.judged_background_rate) = (Some(rate), Some(rate));
        }
        let table = table(step);
        let tones: Vec<Tone> = table.rows[0][1..].iter().map(|cell| cell.tone).collect();
        assert_eq!(tones, [Tone::Highest, Tone::Lowest, Tone::Highest, Tone::Missed]);
        let note =
            "lowest quarter of this step; background inserts 3,600/s, at least 3,800/s of 4,000/s needed";
        assert_eq!((table.rows[0][2].sign, table.rows[0][2].note.as_str()), ("▼ SLA", note));
        let tones: Vec<Tone> = table.legend.iter().map(|(tone, _)| *tone).collect();
        assert_eq!(tones, [Tone::Highest, Tone::Lowest, Tone::Missed]);
    }

    /// Returns the tone of the variant at `lowest`, which has the lowest rate. Each variant has its
    /// verdict.
    fn tone(lowest: usize, verdicts: &[Option<Verdict>]) -> Tone {
        let rates = ["a", "b", "c", "d"].map(|name| (name, &[9_000.0][..]));
        let mut step = step("l.i0", &rates[..verdicts.len()]);
        for (variant, verdict) in step.variants.iter_mut().zip(verdicts) {
            variant.to_base.verdict = *verdict;
        }
        step.variants[lowest].rate = Some(1_000.0);
        table(step).rows[0][1 + lowest].tone
    }

    #[test]
    fn quarters_take_four_variants_and_a_difference() {
        let of_four = |verdict| tone(1, &[None, verdict, None, None]);
        assert_eq!(of_four(None), Tone::Lowest);
        assert_eq!(of_four(Some(Verdict::Slower)), Tone::Lowest);
        assert_eq!(of_four(Some(Verdict::Undecided)), Tone::Plain);
        assert_eq!(of_four(Some(Verdict::Same)), Tone::Plain);
        assert_eq!(tone(1, &[None, Some(Verdict::Slower), None]), Tone::Plain);
        let undecided = Some(Verdict::Undecided);
        let base = |verdict| tone(0, &[None, undecided, undecided, verdict]);
        assert_eq!((base(Some(Verdict::Faster)), base(undecided)), (Tone::Lowest, Tone::Plain));
    }
}
