//! Many runs of one plan in order: where the rate of a step changed its level, and whether noise would do that too.
//!
//! One value a run and step: of the rate, or of the ratio to the plan's base, which what the machine does from night to
//! night is not in. The value of the greatest change is judged by permutations of the whole series, adjusted over all
//! series; docs/concepts/statistics.md has the sources.

use dbdyno_record::Run;
use serde::Serialize;

use crate::alike::{differences, small_differences};
use crate::margins::Margins;
use crate::ratio::valid;
use crate::statistics::change_point::{
    changes, greatest_change, least_newer, least_values, permutations_for,
};
use crate::statistics::describe::geometric_mean;
use crate::statistics::equivalence::bounds;
use crate::statistics::false_discovery::benjamini_hochberg;
use crate::verdict::LEVEL;
use crate::{Error, Findings, VariantStep, Verdict, analyse};

/// Fewer values have no two on either side of a change, and no p.
const LEAST_RUNS: usize = 4;

/// How many runs it takes to find a change, however great it is: the shuffled series are too few otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Reach {
    /// Series that are judged together.
    pub series: usize,
    /// Runs that the longest of them has.
    pub runs: usize,
    /// Runs from which on a change of one series alone can be found, and one that all series have.
    pub least_runs: usize,
    pub least_runs_of_all: usize,
    /// Newest runs at another level from which on that of one series alone can be found; `None` with fewer than `least_runs`.
    pub least_newest: Option<usize>,
}

impl Reach {
    fn too_few(&self) -> Option<String> {
        let Self { series, runs, least_runs, least_runs_of_all, .. } = self;
        (runs < least_runs).then(|| {
            let of_all = if least_runs_of_all < least_runs {
                format!(", and one of all series at once from {least_runs_of_all} on")
            } else {
                String::new()
            };
            format!(
                "{runs} runs are too few to find a change of one series among {series}, however great: that takes {least_runs} \
                 or more{of_all}."
            )
        })
    }
}

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
    /// Changes of any step below this fraction have no verdict; `None` = the last run's, step by step.
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
    /// Of steps that have none of their own.
    pub margin: f64,
    /// In the order of the series.
    pub runs: Vec<HistoryRun>,
    /// What a reader must know before any number.
    pub notes: Vec<String>,
    pub reach: Reach,
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
    /// Changes below this fraction count as none.
    pub margin: f64,
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
        let mut differences = differences(first, run, &pairs);
        let (base, other) = (&first.manifest.base, &run.manifest.base);
        if choices.measure == Measure::Ratio && base != other {
            differences.push(format!("base of the ratios {base} and {other}"));
        }
        if !differences.is_empty() && !choices.anyway {
            return Err(Error::NotAlike { differences });
        }
        let told = differences.into_iter();
        notes.extend(told.map(|what| format!("Run {} is not like the first: {what}.", run.manifest.run_id)));
    }
    notes.extend(runs.windows(2).filter_map(changed_in_small));
    refuse_no_ratios(last, choices)?;
    let findings: Vec<Findings> = runs.iter().map(|run| analyse(run)).collect();
    let margins = choices.margin.map_or_else(|| Margins::planned(&last.manifest), Margins::all);
    let mut series = series(&findings, choices, margins);
    if let (Some(asked), true) = (choices.variant, series.is_empty()) {
        let known = last.manifest.variants.iter().map(|variant| variant.name.clone()).collect();
        let run = last.manifest.run_id.clone();
        return Err(Error::UnknownVariant { run, asked: asked.to_owned(), known });
    }
    let runs: Vec<HistoryRun> = findings.iter().map(history_run).collect();
    judge(&mut series, &runs, first.manifest.seed);
    let reach = reach(&series);
    notes.extend(reach.too_few());
    let (name, margin) = (last.manifest.name.clone(), margins.general());
    Ok(History { name, measure: choices.measure, margin, runs, notes, reach, series })
}

fn refuse_no_ratios(last: &Run, choices: HistoryChoices<'_>) -> Result<(), Error> {
    let base = || last.manifest.base.clone();
    match (choices.measure, choices.variant) {
        (Measure::Ratio, _) if last.manifest.variants.len() == 1 => Err(Error::NoRatios { base: base() }),
        (Measure::Ratio, Some(asked)) if asked == last.manifest.base => {
            Err(Error::RatioOfBase { base: base() })
        }
        _ => Ok(()),
    }
}

fn reach(series: &[Series]) -> Reach {
    let count = |series: &Series| series.values.iter().flatten().count();
    let runs = series.iter().map(count).max().unwrap_or(0);
    let judged = series.iter().filter(|series| series.p.is_some()).count();
    let judged = if judged == 0 { series.len().max(1) } else { judged };
    Reach {
        series: judged,
        runs,
        least_runs: least_values(judged, LEVEL),
        least_runs_of_all: least_values(1, LEVEL),
        least_newest: least_newer(runs, judged, LEVEL),
    }
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
fn series(findings: &[Findings], choices: HistoryChoices<'_>, margins: Margins<'_>) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for (position, found) in findings.iter().enumerate() {
        for workload in &found.workloads {
            for (step, variant) in
                workload.judged_steps().flat_map(|step| step.variants.iter().map(move |own| (step, own)))
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
                        margin: margins.of(&step.name),
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
fn judge(series: &mut [Series], runs: &[HistoryRun], seed: u64) {
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
    for (at, adjusted) in judged.into_iter().zip(adjusted) {
        series[at].adjusted_p = Some(adjusted);
        if adjusted > LEVEL {
            continue;
        }
        let within = bounds(series[at].margin).exp();
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
#[path = "history_tests.rs"]
mod tests;
