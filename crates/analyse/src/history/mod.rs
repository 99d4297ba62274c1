//! Follows a plan's steps over many runs. It finds where a step's rate changed its level, and says
//! whether noise alone could look the same.
//!
//! Each step has two values per run: the rate, and the 99th percentile of response times. A run in
//! which no block of the step is valid has no value, and a run in which a valid block stalled has
//! the value 0. With ratios, both values are divided by the plan's base, so changes in the machine
//! from night to night cancel out. Permutation tests find the changes, and their p-values are
//! adjusted over all series. docs/concepts/statistics-methods.md has the sources.

use dbdyno_record::{Manifest, Run, parallel};
use serde::Serialize;

use crate::analyse;
use crate::compare::comparability::{Starts, differences_of, small_differences, starts};
use crate::compare::pairs::Margins;
use crate::compare::rates::ReachedRate;
use crate::error::Error;
use crate::model::steps::{pairs, valid};
use crate::model::{
    Aspect, BlockShare, Code, Difference, Findings, LEVEL, StepFindings, StepRun, VariantStep, Verdict,
    Warning,
};
use crate::statistics::change_point::{Changes, ReportedChange, changes_of_all, min_newer, min_values};
use crate::statistics::describe::{geometric_mean, median};
use crate::statistics::student::equivalence_bounds;

/// How many runs it takes to find a change, however large it is. With fewer runs there are too few
/// ways to shuffle the series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Detectable {
    /// Number of series that are judged together.
    pub series: usize,
    /// Number of runs that the longest of them has.
    pub runs: usize,
    /// Smallest number of runs with which a change in one series alone can be found. The next field
    /// is the number for a change that all series have.
    pub min_runs: usize,
    pub min_runs_of_all: usize,
    /// How many of the newest runs must be at the new level before a change in one series alone can
    /// be found; `None` with fewer than `min_runs` runs.
    pub min_newest: Option<usize>,
}

impl Detectable {
    fn too_few(&self) -> Option<Warning> {
        let Self { series, runs, min_runs, min_runs_of_all, .. } = *self;
        let warning = Warning::new(Code::TooFewRuns).with("runs", runs).with("series", series);
        let warning = warning.with("min_runs", min_runs);
        let of_all = (min_runs_of_all < min_runs).then_some(min_runs_of_all);
        (runs < min_runs).then(|| warning.with_some("min_runs_of_all", of_all))
    }
}

/// The values of a series: rates, or ratios to the base.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Geometric mean of the valid blocks' rates. It is 0 when one of them stalled.
    #[default]
    Rate,
    /// Ratio to the base in the same run.
    Ratio,
}

/// The figure that a series follows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Followed {
    #[default]
    Rate,
    /// Seconds, for a step whose headline figure is a time, such as one that builds an index. Less
    /// is better.
    Seconds,
    /// The 99th percentile of the step's response times, in microseconds. An open loop that kept
    /// its schedule in any run has only this series, because its rate is the plan's, night after
    /// night.
    ResponseP99,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct HistoryChoices<'a> {
    /// `None` = every variant.
    pub variant: Option<&'a str>,
    pub measure: Measure,
    /// The margin of every step: a change below this fraction counts as no change. `None` = each
    /// step has its margin in the last run's plan.
    pub margin: Option<f64>,
    /// Put runs that are not comparable into one series too, and add a note that says so.
    pub anyway: bool,
}

#[derive(Debug, Clone, Serialize)]
pub struct History {
    /// The plan's name.
    pub name: String,
    pub measure: Measure,
    /// Margin of the steps that have none of their own.
    pub margin: f64,
    /// The runs in the order of the series' values.
    pub runs: Vec<HistoryRun>,
    /// Notes that a reader must know before any number.
    #[serde(rename = "warnings")]
    pub notes: Vec<Warning>,
    pub detectable: Detectable,
    pub series: Vec<Series>,
}

#[derive(Debug, Clone, Serialize)]
pub struct HistoryRun {
    pub run_id: String,
    pub started: String,
    /// What each variant's server reported as its version.
    pub versions: Vec<(String, String)>,
}

/// One step of one variant over the runs.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Series {
    pub workload: String,
    pub step: String,
    pub variant: String,
    pub follows: Followed,
    /// `true` for a series of response times, where another series follows the same step's rate.
    /// Only that other series reports whether the newest run stalled or has no value. The p-values
    /// of all secondary series are adjusted as one family, and those of the rest as another.
    #[serde(skip)]
    pub is_secondary: bool,
    /// Unit of the values, where they are not ratios.
    pub rate_label: String,
    /// Changes below this fraction count as no change.
    pub margin: f64,
    /// One value per run: 0 where a valid block stalled, `None` where the step has no valid block.
    pub values: Vec<Option<f64>>,
    /// Set where the newest run stalled or has no value, although an earlier run had a rate.
    pub newest: Option<Lapse>,
    /// Probability that the largest change would be at least this large if the series had only
    /// noise; `None` for fewer than four values.
    pub p: Option<f64>,
    /// The same probability, adjusted over all series.
    pub adjusted_p: Option<f64>,
    /// The changes in their order; empty unless the adjusted p says that there is one.
    pub changes: Vec<Change>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Change {
    /// Position of the first run at the new level; the next field has its name.
    pub at: usize,
    pub run_id: String,
    /// Levels before and after the change, each up to the neighbouring change. They are geometric
    /// means, or medians where a run in that stretch stalled.
    pub before: f64,
    pub after: f64,
    /// After ÷ before. It is infinite (in JSON `null`) where the level before is 0.
    pub ratio: f64,
    /// The change's own p, in the stretch in which it was found. The next field is the same p,
    /// adjusted over all that was tested with it.
    pub p: f64,
    pub adjusted_p: f64,
    /// Faster, slower, or same for a change within the margin.
    pub verdict: Verdict,
}

impl Series {
    /// Turns a value into one of which more is better. A value of 0 stays 0, because it stands for
    /// a rate of zero in a series of times too.
    fn speed(&self, value: f64) -> f64 {
        match self.follows {
            Followed::ResponseP99 | Followed::Seconds if value > 0.0 => 1.0 / value,
            _ => value,
        }
    }

    /// Whether the newest change made the step slower, or the newest run stalled or has no value.
    pub fn is_worse_now(&self) -> bool {
        self.newest.is_some() || self.changes.last().is_some_and(|change| change.verdict == Verdict::Slower)
    }
}

/// The history of `runs`, in the order given.
///
/// Each run must be comparable with the first one. [`Error::NotComparable`] says what differs,
/// unless `anyway` was chosen; then it is a note. A run that is still going on is left out, with a
/// note.
pub fn history(runs: &[&RunValues], choices: HistoryChoices<'_>) -> Result<History, Error> {
    let (going_on, runs): (Vec<&RunValues>, Vec<&RunValues>) =
        runs.iter().copied().partition(|run| run.is_going_on);
    let [first, .., last] = runs.as_slice() else {
        return Err(Error::TooFewRuns { count: runs.len(), going_on: going_on.len() });
    };
    // A run that is still going on is left out. The steps that it has yet to measure would
    // otherwise count as steps without a value.
    let left_out =
        |run: &&RunValues| Warning::new(Code::LeftOutGoingOn).with("run", run.manifest.run_id.as_str());
    let mut notes: Vec<Warning> = going_on.iter().map(left_out).collect();
    let names: Vec<&str> = first.manifest.variants.iter().map(|variant| variant.name.as_str()).collect();
    let followed = names.into_iter().filter(|name| choices.variant.is_none_or(|asked| asked == *name));
    let pairs: Vec<(&str, &str)> = followed.map(|name| (name, name)).collect();
    let of_first = (&first.manifest, &first.starts);
    let differences =
        parallel::map(&runs[1..], |run| differences_of(of_first, (&run.manifest, &run.starts), &pairs));
    for (run, mut differences) in runs[1..].iter().zip(differences) {
        let (base, other) = (first.manifest.base(), run.manifest.base());
        if choices.measure == Measure::Ratio {
            let [base, other] = [base, other].map(|name| Some(name.to_owned()));
            differences.extend(Difference::of(Aspect::RatioBase, base, other));
        }
        if !differences.is_empty() && !choices.anyway {
            return Err(Error::NotComparable { differences });
        }
        let unlike = |difference| {
            let warning = Warning::new(Code::UnlikeFirst).with("difference", vec![difference]);
            warning.with("run", run.manifest.run_id.as_str())
        };
        notes.extend(differences.into_iter().map(unlike));
    }
    notes.extend(runs.windows(2).filter_map(small_differences_note));
    require_ratios(last, choices)?;
    let margins = choices.margin.map_or_else(|| Margins::planned(&last.manifest), Margins::all);
    let mut series = series(&runs, choices, margins);
    notes.extend(fixed_rate_warning(&series));
    for own in series.iter_mut().filter(|own| !own.is_secondary) {
        own.newest = Lapse::of_newest(&own.values, is_planned(own, last));
    }
    notes.extend(runs.iter().filter_map(|run| run.zero_rate_warning(choices)));
    if let (Some(asked), true) = (choices.variant, series.is_empty()) {
        let known = last.manifest.variants.iter().map(|variant| variant.name.clone()).collect();
        let run = last.manifest.run_id.clone();
        return Err(Error::UnknownVariant { run, asked: asked.to_owned(), known });
    }
    let runs: Vec<HistoryRun> = runs.iter().map(|run| run.summary.clone()).collect();
    for is_secondary in [false, true] {
        let family = series.iter_mut().filter(|own| own.is_secondary == is_secondary);
        judge(&mut family.collect::<Vec<_>>(), &runs, first.manifest.plan.seed);
    }
    let detectable = detectable(&series);
    notes.extend(detectable.too_few());
    let (name, margin) = (last.manifest.plan.name.clone(), margins.general);
    Ok(History { name, measure: choices.measure, margin, runs, notes, detectable, series })
}

fn is_planned(series: &Series, run: &RunValues) -> bool {
    let workloads = &run.manifest.workloads;
    let of_workload = workloads.iter().filter(|workload| workload.name == series.workload);
    run.manifest.variants.iter().any(|variant| variant.name == series.variant)
        && of_workload.flat_map(|workload| &workload.steps).any(|step| *step == series.step)
}

fn require_ratios(last: &RunValues, choices: HistoryChoices<'_>) -> Result<(), Error> {
    let base = || last.manifest.base().to_owned();
    match (choices.measure, choices.variant) {
        (Measure::Ratio, _) if last.manifest.variants.len() == 1 => Err(Error::NoRatios { base: base() }),
        (Measure::Ratio, Some(asked)) if asked == last.manifest.base() => {
            Err(Error::RatioOfBase { base: base() })
        }
        _ => Ok(()),
    }
}

fn detectable(series: &[Series]) -> Detectable {
    let series: Vec<&Series> = series.iter().filter(|series| !series.is_secondary).collect();
    let count = |series: &&Series| series.values.iter().flatten().count();
    let runs = series.iter().map(count).max().unwrap_or(0);
    let judged = series.iter().filter(|series| series.p.is_some()).count();
    // As long as every series is too short for a p, all of them count as judged.
    let judged = if judged == 0 { series.len().max(1) } else { judged };
    Detectable {
        series: judged,
        runs,
        min_runs: min_values(judged, LEVEL),
        min_runs_of_all: min_values(1, LEVEL),
        min_newest: min_newer(runs, judged, LEVEL),
    }
}

/// A note on small differences between two successive runs. They may explain a change of level
/// although the servers did not change.
fn small_differences_note(neighbours: &[&RunValues]) -> Option<Warning> {
    let [before, after] = neighbours else { return None };
    let small = small_differences(&before.manifest, &after.manifest);
    let warning = Warning::new(Code::ChangedWithRun).with("run", after.manifest.run_id.as_str());
    (!small.is_empty()).then(|| warning.with("changes", small))
}

/// A step's p99 of response times, one value per run, and whether its schedule was kept in any run.
struct P99Values {
    values: Vec<Option<f64>>,
    is_fixed_rate: bool,
}

/// The series of every step and variant that any of the runs has, in the order in which they first
/// occur.
fn series(runs: &[&RunValues], choices: HistoryChoices<'_>, margins: Margins<'_>) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    let mut times: Vec<P99Values> = Vec::new();
    for (position, run) in runs.iter().enumerate() {
        for step in &run.steps {
            if choices.variant.is_some_and(|asked| asked != step.variant)
                || (choices.measure == Measure::Ratio && step.variant == run.manifest.base())
            {
                continue;
            }
            let names = (&step.workload, &step.step, &step.variant);
            let known = all.iter().position(|one| (&one.workload, &one.step, &one.variant) == names);
            let at = known.unwrap_or_else(|| {
                all.push(Series {
                    workload: step.workload.clone(),
                    step: step.step.clone(),
                    variant: step.variant.clone(),
                    follows: if step.less_is_better { Followed::Seconds } else { Followed::Rate },
                    rate_label: step.rate_label.clone(),
                    margin: margins.of(&step.step),
                    values: vec![None; runs.len()],
                    ..Series::default()
                });
                times.push(P99Values { values: vec![None; runs.len()], is_fixed_rate: false });
                all.len() - 1
            });
            [all[at].values[position], times[at].values[position]] = step.values(choices.measure);
            times[at].is_fixed_rate |= step.is_fixed_rate;
        }
    }
    let mut all: Vec<Series> =
        all.into_iter().zip(times).flat_map(|(rates, times)| followed(rates, times)).collect();
    all.retain(|series| series.values.iter().any(Option::is_some));
    all
}

/// The series of the rate, where the plan does not set the rate, and the series of the response
/// times.
fn followed(rates: Series, P99Values { values, is_fixed_rate }: P99Values) -> impl Iterator<Item = Series> {
    let times = Series {
        follows: Followed::ResponseP99,
        is_secondary: !is_fixed_rate,
        rate_label: "p99 µs".to_owned(),
        // A value of 0 stands for a rate of zero. It is kept only where no series of the rate shows
        // the zero.
        values: values.into_iter().map(|value| value.filter(|value| is_fixed_rate || *value > 0.0)).collect(),
        ..rates.clone()
    };
    (!is_fixed_rate).then_some(rates).into_iter().chain([times])
}

/// Looks for changes on a log scale, so that a change by the same ratio counts the same at every
/// level of a series. `LEVEL` is no such level, but the false discovery rate that is allowed.
fn judge(series: &mut [&mut Series], runs: &[HistoryRun], seed: u64) {
    let logs: Vec<Vec<f64>> = series.iter().map(|series| logs(series)).collect();
    for (series, found) in series.iter_mut().zip(changes_of_all(&logs, LEVEL, seed)) {
        (series.p, series.adjusted_p) = (found.p, found.adjusted_p);
        series.changes = changes(series, &found, runs);
    }
}

/// Logarithms of a series' speeds. Zero has no logarithm, so a run with a rate of zero counts as
/// the lowest rate above zero. Any lower value would be arbitrary and would decide what is found,
/// and a single one could hide the changes in all other runs.
fn logs(series: &Series) -> Vec<f64> {
    let values = || series.values.iter().flatten().map(|value| series.speed(*value));
    let lowest = values().filter(|value| *value > 0.0).reduce(f64::min).unwrap_or(1.0);
    values().map(|value| value.max(lowest).ln()).collect()
}

fn changes(series: &Series, found: &Changes, runs: &[HistoryRun]) -> Vec<Change> {
    // Positions in `found` count only the runs that have a value, so they are positions in `known`.
    let known: Vec<(usize, f64)> =
        series.values.iter().enumerate().filter_map(|(run, value)| Some((run, (*value)?))).collect();
    let within = equivalence_bounds(series.margin).exp();
    let places: Vec<usize> = found.found.iter().map(|reported| reported.change.at).collect();
    let levels: Vec<f64> = [0]
        .iter()
        .chain(&places)
        .zip(places.iter().chain([&known.len()]))
        .map(|(start, end)| level(&known[*start..*end]))
        .collect();
    let change = |(reported, levels): (&ReportedChange, &[f64])| {
        let first = known[reported.change.at].0;
        let (before, after) = (levels[0], levels[1]);
        let ratio_of = |before: f64, after: f64| if before == after { 1.0 } else { after / before };
        let ratio = ratio_of(before, after);
        Change {
            at: first,
            run_id: runs[first].run_id.clone(),
            before,
            after,
            ratio,
            p: reported.change.p,
            adjusted_p: reported.adjusted_p,
            verdict: match ratio_of(series.speed(before), series.speed(after)) {
                ratio if ratio > within.high => Verdict::Faster,
                ratio if ratio < within.low => Verdict::Slower,
                _ => Verdict::Same,
            },
        }
    };
    found.found.iter().zip(levels.windows(2)).map(change).collect()
}

/// The level of a stretch of runs: the geometric mean, or the median where a zero would make that
/// mean 0.
fn level(stretch: &[(usize, f64)]) -> f64 {
    let values: Vec<f64> = stretch.iter().map(|(_, value)| *value).collect();
    geometric_mean(&values).or_else(|| median(&values)).unwrap_or_default()
}

/// Largest number of steps that one note names.
const MAX_NAMED_STEPS: usize = 10;

/// Why the newest run is worse than those before it, whatever the levels say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lapse {
    /// Nothing was done in one or more of its valid blocks.
    #[serde(rename = "standstill")]
    ZeroRate,
    /// The run has no valid block of a step that is in its plan.
    NoValue,
}

impl Lapse {
    /// The lapse of the newest of `values`; `None` where it has a rate, and where no earlier run
    /// had one. `is_planned` says whether the newest run's plan has the step.
    pub(crate) fn of_newest(values: &[Option<f64>], is_planned: bool) -> Option<Self> {
        let (newest, earlier) = values.split_last()?;
        let had_rate = earlier.iter().flatten().any(|value| *value > 0.0);
        match newest {
            _ if !had_rate => None,
            Some(value) if *value <= 0.0 => Some(Self::ZeroRate),
            None if is_planned => Some(Self::NoValue),
            _ => None,
        }
    }
}

/// The part of a run that a history keeps, because the records of thousands of runs do not fit into
/// memory.
#[derive(Debug)]
pub struct RunValues {
    pub manifest: Manifest,
    pub(crate) is_going_on: bool,
    /// How each variant's first server was started.
    pub(crate) starts: Starts,
    pub(crate) summary: HistoryRun,
    pub(crate) steps: Vec<StepValues>,
}

#[derive(Debug)]
pub(crate) struct StepValues {
    pub(crate) workload: String,
    pub(crate) step: String,
    pub(crate) variant: String,
    pub(crate) less_is_better: bool,
    pub(crate) rate_label: String,
    /// Whether the schedule of an open loop was kept.
    pub(crate) is_fixed_rate: bool,
    zero_rate: Option<BlockShare>,
    /// Headline figure and p99 of response times, as measured. The next field has them as ratios to
    /// the base.
    rates: [Option<f64>; 2],
    ratios: [Option<f64>; 2],
}

impl StepValues {
    /// Headline figure and p99 of response times.
    pub(crate) fn values(&self, measure: Measure) -> [Option<f64>; 2] {
        match measure {
            Measure::Rate => self.rates,
            Measure::Ratio => self.ratios,
        }
    }
}

impl RunValues {
    /// Computes the findings of `run` from its records, and takes the values from them.
    pub fn of(run: &Run) -> Self {
        Self::of_findings(run, &analyse(run))
    }

    /// Values from `found`, which are the findings of `run` against its own base.
    pub fn of_findings(run: &Run, found: &Findings) -> Self {
        let base = &found.run.base;
        let mut steps = Vec::new();
        for (workload, step) in found.judged_steps() {
            for variant in &step.variants {
                let values = |measure| {
                    [value(step, variant, base, measure), response_p99(step, variant, base, measure)]
                };
                steps.push(StepValues {
                    workload: workload.to_owned(),
                    step: step.name.clone(),
                    variant: variant.variant.clone(),
                    less_is_better: step.less_is_better,
                    rate_label: step.rate_label.clone(),
                    is_fixed_rate: step.reached_rate(variant).is_some_and(ReachedRate::is_kept),
                    zero_rate: zero_rate(step, variant),
                    rates: values(Measure::Rate),
                    ratios: values(Measure::Ratio),
                });
            }
        }
        let versions =
            found.variants.iter().map(|variant| (variant.name.clone(), variant.version_text.clone()));
        let summary = HistoryRun {
            run_id: found.run.run_id.clone(),
            started: found.run.started.clone(),
            versions: versions.collect(),
        };
        Self {
            manifest: run.manifest.clone(),
            is_going_on: run.is_going_on,
            starts: starts(run),
            summary,
            steps,
        }
    }

    /// A note on steps with a rate of zero, for the variants that are followed. With ratios it
    /// includes their base.
    pub(crate) fn zero_rate_warning(&self, choices: HistoryChoices<'_>) -> Option<Warning> {
        let is_followed = |name: &str| {
            choices.variant.is_none_or(|asked| asked == name)
                || (choices.measure == Measure::Ratio && name == self.manifest.base())
        };
        let followed = self.steps.iter().filter(|step| is_followed(&step.variant));
        zero_rate_warning(&self.manifest.run_id, followed.filter_map(|step| step.zero_rate.clone()).collect())
    }
}

/// The value of one step for one variant in one run. It is 0 if any of its valid blocks stalled,
/// because a single zero makes a geometric mean 0. A block in which the base stalled has no ratio.
fn value(step: &StepFindings, variant: &VariantStep, base: &str, measure: Measure) -> Option<f64> {
    let base_ran = |block: u32| valid(step.runs_of(base)).any(|run| run.block == block && run.rate > 0.0);
    let mut stalled = valid(&variant.runs).filter(|run| run.rate <= 0.0);
    match measure {
        Measure::Rate if stalled.next().is_some() => Some(0.0),
        Measure::Rate => geometric_mean(&valid(&variant.runs).map(|run| run.rate).collect::<Vec<_>>()),
        Measure::Ratio if stalled.any(|run| base_ran(run.block)) => Some(0.0),
        Measure::Ratio => variant.to_base.value(),
    }
}

/// The 99th percentile of response times in microseconds, or its ratio to the base's in the same
/// block, as the geometric mean over the blocks. It is 0 if any block stalled, because a stalled
/// block has no times.
fn response_p99(step: &StepFindings, variant: &VariantStep, base: &str, measure: Measure) -> Option<f64> {
    if value(step, variant, base, measure) == Some(0.0) {
        return Some(0.0);
    }
    let p99 = |run: &StepRun| step.response_p99_us_in(run);
    let ratio = |(run, base): (&StepRun, &StepRun)| Some(p99(run)? / p99(base)?);
    let of_blocks: Vec<f64> = match measure {
        Measure::Rate => valid(&variant.runs).filter_map(p99).collect(),
        Measure::Ratio => pairs(&variant.runs, step.runs_of(base)).filter_map(ratio).collect(),
    };
    geometric_mean(&of_blocks)
}

/// A note that names the steps whose only series is that of response times.
fn fixed_rate_warning(series: &[Series]) -> Option<Warning> {
    let fixed =
        series.iter().filter(|series| series.follows == Followed::ResponseP99 && !series.is_secondary);
    let mut names: Vec<String> = fixed.map(|series| format!("{} {}", series.variant, series.step)).collect();
    let more = more(names.len());
    names.truncate(MAX_NAMED_STEPS);
    (!names.is_empty()).then(|| Warning::new(Code::TimesFollowed).at_all(names).with_some("more", more))
}

/// How many names are left out where there are `all` of them.
fn more(all: usize) -> Option<usize> {
    all.checked_sub(MAX_NAMED_STEPS).filter(|more| *more > 0)
}

/// The number of valid blocks in which the rate was zero; `None` where each valid block has a rate.
fn zero_rate(step: &StepFindings, variant: &VariantStep) -> Option<BlockShare> {
    let blocks = valid(&variant.runs).filter(|run| run.rate <= 0.0).count();
    let all = valid(&variant.runs).count();
    let place = format!("{} {}", variant.variant, step.name);
    (blocks > 0).then_some(BlockShare { place, blocks, of: all })
}

fn zero_rate_warning(run_id: &str, mut zero_rates: Vec<BlockShare>) -> Option<Warning> {
    let warning = Warning::new(Code::DroppedToZero).with("run", run_id);
    let warning = warning.with_some("more", more(zero_rates.len()));
    zero_rates.truncate(MAX_NAMED_STEPS);
    (!zero_rates.is_empty()).then(|| warning.with("steps", zero_rates))
}

#[cfg(test)]
mod tests;
