//! What one run contributes to a series: its value, or why it has none, and how many of its blocks
//! stalled.

use dbdyno_record::{Manifest, Run};
use serde::Serialize;

use crate::analyse;
use crate::compare::comparability::{Starts, starts};
use crate::compare::fixed_rate::ReachedRate;
use crate::history::{Followed, HistoryChoices, HistoryRun, Measure, Series};
use crate::model::runs::{pairs, valid};
use crate::model::{BlockShare, Code, Findings, StepFindings, StepRun, VariantStep, Warning};
use crate::statistics::describe::geometric_mean;

/// Largest number of steps that one note names.
const NAMED: usize = 10;

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
    /// Headline figure and p99 of response times; first as measured, then as ratios to the base.
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
    /// Values from a run's records, whose findings it computes.
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

/// The value of one step for one variant in one run. It is 0 as soon as one of its valid blocks
/// stalled, as the geometric mean is. A block in which the base stalled has no ratio.
fn value(step: &StepFindings, variant: &VariantStep, base: &str, measure: Measure) -> Option<f64> {
    let base_ran = |block: u32| valid(step.runs_of(base)).any(|run| run.block == block && run.rate > 0.0);
    let mut stood = valid(&variant.runs).filter(|run| run.rate <= 0.0);
    match measure {
        Measure::Rate if stood.next().is_some() => Some(0.0),
        Measure::Rate => geometric_mean(&valid(&variant.runs).map(|run| run.rate).collect::<Vec<_>>()),
        Measure::Ratio if stood.any(|run| base_ran(run.block)) => Some(0.0),
        Measure::Ratio => variant.to_base.value(),
    }
}

/// The 99th percentile of response times in microseconds, or its ratio to the base's in the same
/// block, as the geometric mean over the blocks. It is 0 as soon as a block stalled, as above:
/// there are no times then.
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

/// A note that names the series which follow response times.
pub(crate) fn fixed_rate_warning(series: &[Series]) -> Option<Warning> {
    let paced =
        series.iter().filter(|series| series.follows == Followed::ResponseP99 && !series.is_secondary);
    let mut names: Vec<String> = paced.map(|series| format!("{} {}", series.variant, series.step)).collect();
    let more = more(names.len());
    names.truncate(NAMED);
    (!names.is_empty()).then(|| Warning::new(Code::TimesFollowed).at_all(names).with_some("more", more))
}

/// How many names are left out where there are `all` of them.
fn more(all: usize) -> Option<usize> {
    all.checked_sub(NAMED).filter(|more| *more > 0)
}

/// In how many valid blocks the rate was zero; `None` where each valid block has a rate.
fn zero_rate(step: &StepFindings, variant: &VariantStep) -> Option<BlockShare> {
    let stood = valid(&variant.runs).filter(|run| run.rate <= 0.0).count();
    let all = valid(&variant.runs).count();
    let place = format!("{} {}", variant.variant, step.name);
    (stood > 0).then_some(BlockShare { place, blocks: stood, of: all })
}

fn zero_rate_warning(run_id: &str, mut zero_rates: Vec<BlockShare>) -> Option<Warning> {
    let warning = Warning::new(Code::DroppedToZero).with("run", run_id);
    let warning = warning.with_some("more", more(zero_rates.len()));
    zero_rates.truncate(NAMED);
    (!zero_rates.is_empty()).then(|| warning.with("steps", zero_rates))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_there_before_can_lapse() {
        let of = |values: &[Option<f64>]| Lapse::of_newest(values, true);
        assert_eq!(of(&[Some(9.0), Some(8.0), Some(0.0)]), Some(Lapse::ZeroRate));
        assert_eq!(of(&[Some(9.0), None, None]), Some(Lapse::NoValue));
        assert_eq!(
            [of(&[Some(9.0), None, Some(1.0)]), of(&[Some(0.0), Some(0.0)]), of(&[None, None])],
            [None; 3]
        );
        assert_eq!(Lapse::of_newest(&[Some(9.0), None], false), None, "its plan no longer has the step");
    }

    #[test]
    fn a_note_does_not_name_hundreds_of_steps() {
        let zero_rates = (0..12).map(|step| BlockShare { place: format!("b s{step}"), blocks: 1, of: 1 });
        let zero_rates: Vec<BlockShare> = zero_rates.collect();
        let note = Warning::new(Code::DroppedToZero).with("run", "night-3").with("more", 2_u32);
        let note = note.with("steps", zero_rates[..NAMED].to_vec());
        assert_eq!(zero_rate_warning("night-3", zero_rates), Some(note));
        assert_eq!(zero_rate_warning("night-3", Vec::new()), None);
    }
}
