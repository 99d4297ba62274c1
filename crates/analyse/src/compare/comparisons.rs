//! Makes every comparison in a run once: a variant against a base in a step, with its ratios and
//! its verdict. Sections, the report's sentences, published figures and `compare` look comparisons
//! up here, so a comparison has the same result wherever it is shown.
//!
//! Two variants in a step are one comparison, whichever of them is the base. It is tested once, and
//! the other direction is its mirror image.

use std::collections::{BTreeMap, BTreeSet};

use dbdyno_record::{Run, VariantInfo, parallel};

use crate::compare::by_machine::{self, Machines, by_machine, machines};
use crate::compare::context::{cost_breakdown, cpus};
use crate::compare::interim_analyses::{Compared, Look, judge_family};
use crate::compare::pairs::{Family, Margins, Pair, RequestedPairs};
use crate::compare::rates;
use crate::compare::ratio::{
    block_bounds, instructions_ratio, judge_percentiles, p99_ratio, ratio_of_runs, relative_metrics,
};
use crate::compare::verdicts::{Subject, VerdictInput, is_below_clock_resolution, paired, verdict};
use crate::measure::hosts::hosting_of;
use crate::model::{
    ForeignLoad, Inference, PercentileRatio, Ratio, StepComparison, StepFindings, StepRun, Verdict, ZeroRates,
};
use crate::statistics::Interval;
use crate::window::Hosting;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules<'a> {
    pub(crate) base: &'a str,
    pub(crate) margins: Margins<'a>,
    pub(crate) seed: u64,
    /// The looks (interim analyses) at a run with a budget; empty for a run that is judged once, at
    /// its end.
    pub(crate) looks: &'a [Look],
}

impl<'a> Rules<'a> {
    /// Makes the rules. The bootstrap uses the plan's seed.
    pub(crate) fn of(run: &Run, base: &'a str, margins: Margins<'a>, looks: &'a [Look]) -> Self {
        Self { base, margins, seed: run.manifest.plan.seed, looks }
    }
}

/// Workload, step, base and variant.
type ComparisonKey = [String; 4];

pub(crate) struct Comparisons {
    all: BTreeMap<ComparisonKey, StepComparison>,
}

/// A comparison that has no verdict yet.
struct PendingComparison<'a> {
    workload: &'a str,
    step: &'a StepFindings,
    pair: Pair<'a>,
    against: StepComparison,
}

/// The input from which all comparisons are made.
pub(crate) struct Sources<'a> {
    pub(crate) run: &'a Run,
    pub(crate) asked: RequestedPairs<'a>,
    pub(crate) rules: Rules<'a>,
}

impl Comparisons {
    /// Makes the comparisons for all steps, given by workload. Warm-ups have ratios and no verdict.
    pub(crate) fn of(sources: &Sources<'_>, steps: &[(&str, &[StepFindings])]) -> Self {
        let databases = databases(sources.run);
        let machines = machines(sources.run);
        let mut step_pairs: Vec<(&str, &StepFindings, Pair<'_>)> = Vec::new();
        for (workload, steps) in steps {
            for step in *steps {
                let pairs = sources.asked.pairs(workload, &step.name);
                step_pairs.extend(pairs.into_iter().map(|pair| (*workload, step, pair)));
            }
        }
        // Intervals and power are most of the work. At this stage no comparison depends on another,
        // so they run in parallel.
        let all = parallel::map(&step_pairs, |(_, step, pair)| {
            against(step, *pair, (sources, &databases, &machines))
        });
        let mut entries: Vec<PendingComparison<'_>> = step_pairs
            .into_iter()
            .zip(all)
            .map(|((workload, step, pair), against)| PendingComparison { workload, step, pair, against })
            .collect();
        for family in Family::ALL {
            judge_rates(&mut entries, family, sources.rules.looks);
            for field in JUDGED_FIELDS {
                judge_field(&mut entries, family, sources.rules.looks, field);
            }
            judge_machines(&mut entries, family);
        }
        entries.iter_mut().filter(|entry| !entry.step.is_warm_up).for_each(PendingComparison::judge);
        let keyed = |entry: PendingComparison<'_>| {
            let Pair { base, variant, .. } = entry.pair;
            (key(entry.workload, &entry.step.name, base, variant), entry.against)
        };
        Self { all: entries.into_iter().map(keyed).collect() }
    }

    /// Looks a comparison up; `None` for a pair that neither the plan nor the reader asked for, and
    /// for a variant and itself.
    pub(crate) fn find(
        &self,
        workload: &str,
        step: &str,
        base: &str,
        variant: &str,
    ) -> Option<&StepComparison> {
        self.all.get(&key(workload, step, base, variant))
    }

    /// Gives each variant in a step its comparison with this base.
    pub(crate) fn fill(&self, workload: &str, step: &mut StepFindings, base: &str) {
        let of_base = itself(step.runs_of(base));
        for variant in &mut step.variants {
            let found = match variant.variant == base {
                true => Some(of_base.clone()),
                false => self.find(workload, &step.name, base, &variant.variant).cloned(),
            };
            variant.to_base = found.unwrap_or_default();
        }
    }
}

fn key(workload: &str, step: &str, base: &str, variant: &str) -> ComparisonKey {
    [workload, step, base, variant].map(str::to_owned)
}

/// Where each variant's database runs, and whether someone other than dbdyno started it.
type Databases<'a> = BTreeMap<&'a str, (Hosting, bool)>;

fn databases(run: &Run) -> Databases<'_> {
    let of = |variant: &'_ VariantInfo| (hosting_of(run, variant), variant.external);
    run.manifest.variants.iter().map(|variant| (variant.name.as_str(), of(variant))).collect()
}

/// The comparison of the base with itself, whose ratio is 1.
fn itself(runs: &[StepRun]) -> StepComparison {
    StepComparison {
        ratio: ratio_of_runs(runs, runs),
        zero_rates: ZeroRates::in_pairs(runs, runs),
        ..StepComparison::default()
    }
}

/// A comparison that is not adjusted yet and has no verdict.
fn against(
    step: &StepFindings,
    pair: Pair<'_>,
    (sources, databases, machines): (&Sources<'_>, &Databases<'_>, &Machines),
) -> StepComparison {
    let (runs, base_runs) = (step.runs_of(pair.variant), step.runs_of(pair.base));
    let inference = |ratio: &Ratio| -> Option<Inference> {
        let ratios: Vec<f64> = ratio.blocks.iter().map(|(_, ratio)| *ratio).collect();
        paired(&ratios, step.margin, sources.rules.seed).filter(|_| !step.is_warm_up)
    };
    let mut ratio =
        ratio_of_runs(runs, base_runs).filter(|_| !is_below_clock_resolution(step, runs, base_runs));
    let mut by_machine_found = None;
    // Where the plan sets the rate, no variant and no machine changes it. A bound has no mean.
    let is_tested = |ratio: &&mut Ratio| ratio.bound.is_none() && !step.is_fixed_rate(pair.base);
    if let Some(ratio) = ratio.as_mut().filter(is_tested) {
        ratio.inference = inference(ratio);
        by_machine_found = by_machine(&ratio.blocks, machines).filter(|_| !step.is_warm_up);
    }
    let with_inference = |mut found: PercentileRatio| {
        found.ratio.inference = inference(&found.ratio);
        found
    };
    let p99 = p99_ratio(runs, base_runs, &step.headline_kind).map(with_inference);
    let instructions = instructions_ratio(runs, base_runs).map(with_inference);
    // The breakdown splits a ratio of rates into its causes. It needs both variants to have the
    // same CPUs. An embedded database and a server do not have the same CPUs. Neither do a server
    // that someone else started and a server that dbdyno started.
    let database = databases.get(pair.variant).filter(|own| databases.get(pair.base) == Some(own));
    let of_rate = ratio.as_ref().filter(|_| !step.less_is_better);
    let cost_breakdown = database.zip(of_rate).and_then(|((hosting, is_external), ratio)| {
        let cpus = cpus(*hosting, *is_external, &sources.run.manifest.host)?;
        cost_breakdown(runs, base_runs, ratio, *hosting, cpus)
    });
    let foreign_load = ratio.as_ref().and_then(|_| ForeignLoad::between(runs, base_runs, step.margin));
    StepComparison {
        ratio,
        block_bounds: block_bounds(runs, base_runs),
        zero_rates: ZeroRates::in_pairs(runs, base_runs),
        foreign_load,
        p99,
        instructions,
        by_machine: by_machine_found,
        cost_breakdown,
        relative: relative_metrics(runs, base_runs),
        ..StepComparison::default()
    }
}

/// Indexes of a family's comparisons: those that are tested, and the mirror images, each with the
/// index of its original.
struct Tested {
    originals: BTreeSet<usize>,
    mirrored: Vec<(usize, usize)>,
}

impl Tested {
    fn of(
        entries: &[PendingComparison<'_>],
        family: Family,
        is_tested: &[bool],
    ) -> Self {
        let mut found = Self { originals: BTreeSet::new(), mirrored: Vec::new() };
        let mut first: BTreeMap<[&str; 4], usize> = BTreeMap::new();
        for (at, PendingComparison { workload, step, pair, .. }) in entries.iter().enumerate() {
            if pair.family != family || !is_tested[at] {
                continue;
            }
            let mut ends = [pair.base, pair.variant];
            ends.sort_unstable();
            match first.get(&[workload, step.name.as_str(), ends[0], ends[1]]) {
                Some(original) => found.mirrored.push((at, *original)),
                None => {
                    first.insert([workload, &step.name, ends[0], ends[1]], at);
                    found.originals.insert(at);
                }
            }
        }
        found
    }

    fn originals<'e, 'a>(
        &self,
        entries: &'e mut [PendingComparison<'a>],
    ) -> impl Iterator<Item = &'e mut PendingComparison<'a>> {
        let chosen = entries.iter_mut().enumerate().filter(|(at, _)| self.originals.contains(at));
        chosen.map(|(_, entry)| entry)
    }
}

fn judge_rates(entries: &mut [PendingComparison<'_>], family: Family, looks: &[Look]) {
    let have_it: Vec<bool> = entries.iter().map(|entry| entry.against.inference().is_some()).collect();
    let tested = Tested::of(entries, family, &have_it);
    let compared = tested.originals(entries).filter_map(|entry| {
        let StepComparison { ratio, verdict, decided, .. } = &mut entry.against;
        Compared::of(ratio.as_mut()?, entry.step.margin, verdict, Some(decided))
    });
    judge_family(looks, &mut compared.collect::<Vec<_>>());
    for (at, original) in tested.mirrored {
        let original = &entries[original].against;
        let (verdict, decided) = (original.verdict.map(Verdict::of_time), original.decided);
        let inference = original.inference().cloned();
        let own = &mut entries[at].against;
        (own.verdict, own.decided) = (verdict, decided);
        mirror(own.ratio.as_mut(), inference.as_ref());
    }
}

/// A figure of a comparison, of which less is better, that has a verdict of its own.
type JudgedField = fn(&mut StepComparison) -> &mut Option<PercentileRatio>;

/// Each field is a family of tests for itself.
const JUDGED_FIELDS: [JudgedField; 2] = [|against| &mut against.p99, |against| &mut against.instructions];

fn judge_field(entries: &mut [PendingComparison<'_>], family: Family, looks: &[Look], field: JudgedField) {
    let is_tested = |found: &PercentileRatio| found.ratio.inference.is_some();
    let have_it: Vec<bool> = entries
        .iter_mut()
        .map(|entry| field(&mut entry.against).as_ref().is_some_and(is_tested))
        .collect();
    let tested = Tested::of(entries, family, &have_it);
    let found =
        tested.originals(entries).filter_map(|entry| Some((field(&mut entry.against).as_mut()?, entry.step.margin)));
    judge_percentiles(&mut found.collect::<Vec<_>>(), looks);
    for (at, original) in tested.mirrored {
        let Some(original) = field(&mut entries[original].against).clone() else { continue };
        if let Some(own) = field(&mut entries[at].against) {
            own.verdict = original.verdict.map(Verdict::of_time);
            mirror(Some(&mut own.ratio), original.ratio.inference.as_ref());
        }
    }
}

/// Tests whether ratios depend on the machine.
fn judge_machines(entries: &mut [PendingComparison<'_>], family: Family) {
    let have_it: Vec<bool> = entries.iter().map(|entry| entry.against.by_machine.is_some()).collect();
    let tested = Tested::of(entries, family, &have_it);
    let found = tested.originals(entries).filter_map(|entry| entry.against.by_machine.as_mut());
    by_machine::adjust(&mut found.collect::<Vec<_>>());
    for (at, original) in tested.mirrored {
        let Some(original) = entries[original].against.by_machine.clone() else { continue };
        if let Some(own) = &mut entries[at].against.by_machine {
            own.q_interaction = original.q_interaction;
            if let Some((own, original)) = own.farthest.as_mut().zip(original.farthest) {
                own.q = original.q;
            }
        }
    }
}

/// Fills in a comparison's inference from the tested comparison in the other direction.
fn mirror(own: Option<&mut Ratio>, original: Option<&Inference>) {
    let own = own.and_then(|ratio| ratio.inference.as_mut());
    if let Some((own, original)) = own.zip(original) {
        (own.q_difference, own.q_same) = (original.q_difference, original.q_same);
        let Interval { low, high } = original.interval;
        own.interval = Interval { low: 1.0 / high, high: 1.0 / low };
    }
}

impl PendingComparison<'_> {
    fn judge(&mut self) {
        let Pair { base, variant, family } = self.pair;
        let step = self.step;
        let of_variant = step.variant(variant);
        let has_fixed_rates = step.is_fixed_rate(base);
        let (word, undecided) = verdict(&VerdictInput {
            subject: Subject {
                step,
                runs: step.runs_of(variant),
                base_runs: step.runs_of(base),
                ratio: self.against.ratio.as_ref(),
                zero_rates: &self.against.zero_rates,
                foreign_load: self.against.foreign_load,
            },
            by_ratio: self.against.verdict,
            // The control is the base under its second name. A control that misses the target says
            // nothing about a variant.
            misses_target: family != Family::Control && step.only_variant_misses_target(base, variant),
            by_schedule: of_variant
                .filter(|_| has_fixed_rates)
                .map(|variant| rates::fixed_rate_verdict(step.reached_rate(variant))),
        });
        if word == Some(Verdict::Stalled) || undecided.is_some() {
            self.against.decided = None;
        }
        (self.against.verdict, self.against.undecided) = (word, undecided);
        if let (Some(_), Some(p99)) = (self.against.foreign_load, &mut self.against.p99) {
            p99.verdict = ForeignLoad::percentile_verdict(p99.verdict);
        }
    }
}

#[cfg(test)]
#[path = "comparisons_tests.rs"]
mod tests;
