//! Many runs of one plan in order: where the rate of a step changed its level, and whether noise would do that too.
//!
//! One value a run and step: of the rate, or of the ratio to the plan's base, which what the machine does from night to
//! night is not in. The value of the greatest change is judged by permutations of the whole series, adjusted over all
//! series; docs/concepts/statistics.md has the sources.

use dbdyno_record::Run;
use serde::Serialize;

use crate::alike::{differences, small_differences};
use crate::ratio::valid;
use crate::statistics::change_point::{changes, greatest_change, permutations_for};
use crate::statistics::describe::geometric_mean;
use crate::statistics::equivalence::bounds;
use crate::statistics::false_discovery::benjamini_hochberg;
use crate::verdict::LEVEL;
use crate::{Error, Findings, VariantStep, Verdict, analyse};

/// Fewer values have no two on either side of a change.
const LEAST_RUNS: usize = 4;

/// What a value of a series is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Geometric mean of the rates of the valid blocks.
    #[default]
    Rate,
    /// Ratio to the base of the same run.
    Ratio,
}

/// What the caller may choose about a history.
#[derive(Debug, Clone, Copy, Default)]
pub struct HistoryChoices<'a> {
    /// `None` = every variant.
    pub variant: Option<&'a str>,
    pub measure: Measure,
    /// Changes below this fraction have no verdict; `None` = the last run's margin.
    pub margin: Option<f64>,
    /// Put runs that are not alike into one series too, and say so.
    pub anyway: bool,
}

/// The series of all steps over the runs.
#[derive(Debug, Clone, Serialize)]
pub struct History {
    /// The plan's name.
    pub name: String,
    pub measure: Measure,
    pub margin: f64,
    /// In the order of the series.
    pub runs: Vec<HistoryRun>,
    /// What a reader must know before any number.
    pub notes: Vec<String>,
    pub series: Vec<Series>,
}

#[derive(Debug, Clone, Serialize)]
pub struct HistoryRun {
    pub run_id: String,
    pub started: String,
    /// What the servers said they are, by variant.
    pub versions: Vec<(String, String)>,
}

/// One step of one variant over the runs.
#[derive(Debug, Clone, Serialize)]
pub struct Series {
    pub workload: String,
    pub step: String,
    pub variant: String,
    pub rate_label: String,
    /// One a run; `None` where the step has no valid block.
    pub values: Vec<Option<f64>>,
    /// Probability of so great a greatest change in noise; `None` for fewer than four values.
    pub p: Option<f64>,
    /// The same, adjusted over all series.
    pub adjusted_p: Option<f64>,
    /// In their order; empty unless the adjusted p says that there is one.
    pub changes: Vec<Change>,
}

/// A change of level.
#[derive(Debug, Clone, Serialize)]
pub struct Change {
    /// Position of the first run at the new level, and its name.
    pub at: usize,
    pub run_id: String,
    /// Levels before and after, each up to the neighbouring change: geometric means.
    pub before: f64,
    pub after: f64,
    pub ratio: f64,
    /// Faster, slower, or same for a change within the margin.
    pub verdict: Verdict,
}

impl Series {
    /// The newest change is to slower, and nothing has mended it since.
    pub fn is_slower_now(&self) -> bool {
        self.changes.last().is_some_and(|change| change.verdict == Verdict::Slower)
    }
}

/// The history of `runs`, in the order given.
///
/// Each run must be like the first one, as for a comparison. [`Error::NotAlike`] says what differs, unless `anyway` was
/// chosen; then it is a note.
pub fn history(runs: &[&Run], choices: HistoryChoices<'_>) -> Result<History, Error> {
    let [first, .., last] = runs else { return Err(Error::TooFewRuns { count: runs.len() }) };
    let mut notes = Vec::new();
    let names: Vec<&str> = first.manifest.variants.iter().map(|variant| variant.name.as_str()).collect();
    let followed = names.into_iter().filter(|name| choices.variant.is_none_or(|asked| asked == *name));
    let pairs: Vec<(&str, &str)> = followed.map(|name| (name, name)).collect();
    for run in &runs[1..] {
        let differences = differences(first, run, &pairs);
        if !differences.is_empty() && !choices.anyway {
            return Err(Error::NotAlike { differences });
        }
        let told = differences.into_iter();
        notes.extend(told.map(|what| format!("Run {} is not like the first: {what}.", run.manifest.run_id)));
    }
    notes.extend(runs.windows(2).filter_map(changed_in_small));
    if runs.len() < LEAST_RUNS {
        notes.push(format!("{} runs: a change can be judged from {LEAST_RUNS} runs on.", runs.len()));
    }
    let findings: Vec<Findings> = runs.iter().map(|run| analyse(run)).collect();
    let margin = choices.margin.unwrap_or(last.manifest.margin);
    let mut series = series(&findings, choices);
    if let (Some(asked), true) = (choices.variant, series.is_empty()) {
        let known = last.manifest.variants.iter().map(|variant| variant.name.clone()).collect();
        let run = last.manifest.run_id.clone();
        return Err(Error::UnknownVariant { run, asked: asked.to_owned(), known });
    }
    let runs: Vec<HistoryRun> = findings.iter().map(history_run).collect();
    judge(&mut series, &runs, margin, first.manifest.seed);
    Ok(History { name: last.manifest.name.clone(), measure: choices.measure, margin, runs, notes, series })
}

/// What a change of level may come from that is no change of the servers.
fn changed_in_small(neighbours: &[&Run]) -> Option<String> {
    let [before, after] = neighbours else { return None };
    let small = small_differences(&before.manifest, &after.manifest).join("; ");
    (!small.is_empty()).then(|| format!("With run {} changed: {small}.", after.manifest.run_id))
}

fn history_run(findings: &Findings) -> HistoryRun {
    let version = |variant: &crate::VariantSummary| (variant.name.clone(), variant.version_text.clone());
    HistoryRun {
        run_id: findings.run.run_id.clone(),
        started: findings.run.started.clone(),
        versions: findings.variants.iter().map(version).collect(),
    }
}

/// Every step and variant that any of the runs has, in the order in which they come first.
fn series(findings: &[Findings], choices: HistoryChoices<'_>) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for (position, found) in findings.iter().enumerate() {
        for workload in &found.workloads {
            for (step, variant) in
                workload.steps.iter().flat_map(|step| step.variants.iter().map(move |own| (step, own)))
            {
                if choices.variant.is_some_and(|asked| asked != variant.variant)
                    || (choices.measure == Measure::Ratio && variant.variant == found.run.base)
                {
                    continue;
                }
                let names = (&workload.name, &step.name, &variant.variant);
                let known = all.iter().position(|one| (&one.workload, &one.step, &one.variant) == names);
                let at = known.unwrap_or_else(|| {
                    all.push(Series {
                        workload: workload.name.clone(),
                        step: step.name.clone(),
                        variant: variant.variant.clone(),
                        rate_label: step.rate_label.clone(),
                        values: vec![None; findings.len()],
                        p: None,
                        adjusted_p: None,
                        changes: Vec::new(),
                    });
                    all.len() - 1
                });
                all[at].values[position] = value(variant, choices.measure);
            }
        }
    }
    all.retain(|series| series.values.iter().any(Option::is_some));
    all
}

fn value(variant: &VariantStep, measure: Measure) -> Option<f64> {
    match measure {
        Measure::Rate => geometric_mean(&valid(&variant.runs).map(|run| run.rate).collect::<Vec<_>>()),
        Measure::Ratio => variant.ratio.as_ref().map(|ratio| ratio.value),
    }
}

/// Looks for changes on a log scale, where a change is a ratio whatever the level.
fn judge(series: &mut [Series], runs: &[HistoryRun], margin: f64, seed: u64) {
    let logs: Vec<Vec<(usize, f64)>> = series
        .iter()
        .map(|series| {
            let values = series.values.iter().enumerate();
            values.filter_map(|(at, value)| Some((at, value.filter(|value| *value > 0.0)?.ln()))).collect()
        })
        .collect();
    let only_values = |logs: &[(usize, f64)]| logs.iter().map(|(_, log)| *log).collect::<Vec<f64>>();
    let permutations = permutations_for(logs.iter().filter(|logs| logs.len() >= LEAST_RUNS).count());
    for (series, logs) in series.iter_mut().zip(&logs) {
        series.p = (logs.len() >= LEAST_RUNS)
            .then(|| greatest_change(&only_values(logs), seed, permutations).map_or(1.0, |change| change.p));
    }
    let judged: Vec<usize> = (0..series.len()).filter(|at| series[*at].p.is_some()).collect();
    let adjusted = benjamini_hochberg(&judged.iter().filter_map(|at| series[*at].p).collect::<Vec<_>>());
    let within = bounds(margin).exp();
    for (at, adjusted) in judged.into_iter().zip(adjusted) {
        series[at].adjusted_p = Some(adjusted);
        if adjusted > LEVEL {
            continue;
        }
        let change = |change: crate::statistics::change_point::ChangePoint| {
            let first = logs[at][change.at].0;
            let ratio = (change.after - change.before).exp();
            Change {
                at: first,
                run_id: runs[first].run_id.clone(),
                before: change.before.exp(),
                after: change.after.exp(),
                ratio,
                verdict: match ratio {
                    ratio if ratio > within.high => Verdict::Faster,
                    ratio if ratio < within.low => Verdict::Slower,
                    _ => Verdict::Same,
                },
            }
        };
        let found = changes(&only_values(&logs[at]), LEVEL, seed, permutations);
        series[at].changes = found.into_iter().map(change).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, load_step, run};
    use crate::statistics::simulations::{chance, normal};

    /// A run of `a` and `b` with these rates in `l.i0`.
    fn night(number: usize, rates: [f64; 2]) -> Run {
        let rate = |at: usize| load_step(rates[at].round() as u64);
        let mut run = run(&["a", "b"], 1, vec![cell(1, "a", vec![rate(0)]), cell(1, "b", vec![rate(1)])]);
        run.manifest.run_id = format!("night-{number}");
        run
    }

    fn nights(rates: &[[f64; 2]]) -> Vec<Run> {
        rates.iter().enumerate().map(|(number, rates)| night(number, *rates)).collect()
    }

    fn found(runs: &[Run], choices: HistoryChoices<'_>) -> History {
        history(&runs.iter().collect::<Vec<_>>(), choices).unwrap()
    }

    /// Twelve nights with 1 % of noise; from the eighth on `b` has 90 % of its rate.
    fn slower_from_the_eighth() -> Vec<Run> {
        let rates = (0..12).map(|n| {
            let noise = |side| 1.0 + 0.01 * normal(21_u64 + side, n);
            [1e6 * noise(0), 1e6 * noise(1) * if n < 7 { 1.0 } else { 0.9 }]
        });
        nights(&rates.collect::<Vec<_>>())
    }

    #[test]
    fn a_change_is_found_at_its_run_with_its_ratio() {
        let found = found(&slower_from_the_eighth(), HistoryChoices::default());
        let names: Vec<&str> = found.series.iter().map(|series| series.variant.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert!(found.series[0].changes.is_empty(), "{:?}", found.series[0]);
        let [change] = found.series[1].changes.as_slice() else { panic!("{:?}", found.series[1]) };
        assert_eq!((change.run_id.as_str(), change.verdict), ("night-7", Verdict::Slower));
        assert!((change.ratio - 0.9).abs() < 0.01, "{change:?}");
        assert!(found.series[1].is_slower_now());
    }

    #[test]
    fn a_ratio_does_not_see_what_befell_the_whole_machine() {
        let mut rates = [[1e6, 9e5]; 12];
        for (n, rates) in rates.iter_mut().enumerate() {
            let machine = if n < 6 { 1.0 } else { 0.8 };
            *rates = [rates[0] * machine, rates[1] * machine * (1.0 + 0.005 * normal(9, n as u64))];
        }
        let runs = nights(&rates);
        let of = |measure| found(&runs, HistoryChoices { measure, ..HistoryChoices::default() });
        assert!(of(Measure::Rate).series.iter().all(Series::is_slower_now));
        let ratio = of(Measure::Ratio);
        assert_eq!(ratio.series.len(), 1);
        assert!(ratio.series[0].changes.is_empty(), "{:?}", ratio.series[0]);
    }

    #[test]
    fn a_run_without_the_step_leaves_a_gap_and_the_change_keeps_its_run() {
        let mut runs = slower_from_the_eighth();
        runs[3].cells.pop();
        let found = found(&runs, HistoryChoices { variant: Some("b"), ..HistoryChoices::default() });
        assert_eq!(found.series[0].values[3], None);
        assert_eq!(found.series[0].changes[0].run_id, "night-7");
    }

    #[test]
    fn a_certain_change_within_the_margin_is_the_same() {
        let choices = HistoryChoices { margin: Some(0.2), ..HistoryChoices::default() };
        let found = found(&slower_from_the_eighth(), choices);
        assert_eq!(found.series[1].changes[0].verdict, Verdict::Same);
        assert!(!found.series[1].is_slower_now());
    }

    #[test]
    fn noise_has_a_change_in_5_percent_of_histories_at_most() {
        // Two series a history, as one family: a false change in either counts.
        let runs = nights(&[[1e6, 1e6]; 15]);
        let choices = HistoryChoices::default();
        let template = found(&runs, choices);
        let studies = 2_000;
        let with_change = (0..studies).filter(|study| {
            let mut series = template.series.clone();
            for (side, series) in series.iter_mut().enumerate() {
                let noise = |n| Some(1e6 * (0.01 * normal(1_000 + 2 * study + side as u64, n)).exp());
                series.values = (0..15).map(noise).collect();
            }
            judge(&mut series, &template.runs, 0.0, 7 + study);
            series.iter().any(|series| !series.changes.is_empty())
        });
        let share = with_change.count() as f64 / studies as f64;
        assert!(share <= 0.05 + chance(0.05, studies), "{share} of {studies}");
    }

    #[test]
    fn what_is_no_history_is_refused() {
        let mut runs = slower_from_the_eighth();
        let fail = |runs: &[Run], choices| history(&runs.iter().collect::<Vec<_>>(), choices).unwrap_err();
        insta::assert_snapshot!(fail(&runs[..1], HistoryChoices::default()), @"a history has two runs or more, not 1");
        let other = HistoryChoices { variant: Some("c"), ..HistoryChoices::default() };
        insta::assert_snapshot!(fail(&runs, other), @r#"run night-11 has no variant named "c"; its variants are: a, b"#);
        runs[4].manifest.seed = 8;
        insta::assert_snapshot!(fail(&runs, HistoryChoices::default()), @"the runs are not alike: seed 7 and 8; --anyway compares them all the same");
        let anyway = found(&runs, HistoryChoices { anyway: true, ..HistoryChoices::default() });
        insta::assert_snapshot!(anyway.notes.join("\n"), @"Run night-4 is not like the first: seed 7 and 8.");
    }

    #[test]
    fn a_new_kernel_or_dbdyno_is_told_with_the_run_that_it_came_with() {
        let mut runs = slower_from_the_eighth();
        for run in &mut runs[7..] {
            run.manifest.host.kernel = "6.12.0".to_owned();
        }
        runs[9].manifest.tool.version = "0.2.0".to_owned();
        let notes = found(&runs, HistoryChoices::default()).notes;
        insta::assert_snapshot!(notes.join("\n"), @r"
        With run night-7 changed: kernel 6.1.0 and 6.12.0.
        With run night-9 changed: dbdyno 0.1.0 (abc) and 0.2.0 (abc).
        With run night-10 changed: dbdyno 0.2.0 (abc) and 0.1.0 (abc).
        ");
    }
}
