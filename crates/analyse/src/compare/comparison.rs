//! Compares two variants step by step: within one run in pairs of blocks, or between two runs
//! without pairs.

use crate::compare::comparability::{
    self, differences, small_differences, start_difference_warnings, without_checksums_note,
};
use crate::compare::exclusions::left_out;
use crate::compare::interim_analyses::{Compared, judge_family, looks, looks_note, unpaired_looks_notes};
use crate::compare::pairs::Margins;
use crate::compare::rates;
use crate::compare::ratio::{judge_percentiles, unpaired_p99_ratio};
use crate::compare::verdicts::{self, Subject, VerdictInput, is_below_clock_resolution, unpaired, verdict};
use crate::error::Error;
use crate::findings_against;
use crate::model::steps::valid;
use crate::model::{
    Code, ComparedSide, ComparedStep, Comparison, Exclusion, Findings, ForeignLoad, Latency, Ratio, Side,
    StepComparison, StepFindings, VariantStep, Verdict, Warning, ZeroRates,
};
use crate::parity::{ClassDifference, class_differences};
use crate::statistics::describe::{geometric_mean, group};
use crate::warnings::servers;
use crate::why::{self, StepProfile};

#[derive(Debug, Clone, Copy, Default)]
pub struct CompareChoices {
    /// Margin of all steps as a fraction; `None` = the margins of the base's run, step by step.
    pub margin: Option<f64>,
    /// Whether two runs are compared even if they are not comparable. A note then says what
    /// differs.
    pub anyway: bool,
}

/// Compares `new` with `base`.
///
/// Two runs must be comparable: they need the same plan name, workloads with their versions and
/// options (including the size of the data), seed, class of host, server memory, load client and
/// kind of build. [`Error::NotComparable`] says what differs, unless `anyway` was chosen; then it
/// is a note.
pub fn compare(base: Side<'_>, new: Side<'_>, choices: CompareChoices) -> Result<Comparison, Error> {
    // Two runs can have the same id if they began on two machines in the same second, because an id
    // is made of the time and the plan's name.
    let one_run = base.run.manifest == new.run.manifest;
    let margins = choices.margin.map_or_else(|| Margins::planned(&base.run.manifest), Margins::all);
    let base_findings = findings_with_base(base, margins)?;
    let other = if one_run { None } else { Some(findings_with_base(new, margins)?) };
    let mut notes = Vec::new();
    let mut steps = if one_run {
        if base.variant == new.variant {
            return Err(Error::WithItself { variant: base.variant.to_owned() });
        }
        require_variant(new)?;
        notes.extend(start_difference_warnings(base.run, base.variant, new.variant));
        paired_steps(&base_findings, new.variant, margins)
    } else {
        notes.extend(notes_on_two_runs(base, new, choices.anyway)?);
        let new_findings = other.as_ref().unwrap_or(&base_findings);
        unpaired_steps(&base_findings, base.variant, new_findings, new.variant, margins)
    };
    let new_findings = other.as_ref().unwrap_or(&base_findings);
    for step in &mut steps {
        step.base_left_out = left_out_of(base, &base_findings, step);
        step.new_left_out = left_out_of(new, new_findings, step);
    }
    let runs = if one_run { &[base.run][..] } else { &[base.run, new.run] };
    if runs.iter().any(|run| run.manifest.tool.build != "release") {
        notes.push(Warning::new(Code::DebugBuildCompared));
    }
    // The next two notes are for runs that several builds of dbdyno measured, and for steps without
    // checksums.
    notes.extend(runs.iter().filter_map(|run| comparability::several_builds_note(run)));
    notes.extend(runs.iter().filter_map(|run| without_checksums_note(run)));
    let changed =
        [base, new].into_iter().flat_map(|side| comparability::changes_of_variant(side.run, side.variant));
    let changed: Vec<Warning> = changed.collect();
    let setting_differences = class_differences((base.run, base.variant), (new.run, new.variant));
    let differ =
        |difference: ClassDifference| Warning::new(Code::SettingsDiffer).with("difference", difference);
    notes.extend(setting_differences.into_iter().map(differ));
    // The looks at a run are its interim analyses.
    let looks = if one_run { looks(base.run) } else { Vec::new() };
    notes.extend(looks_note(&looks));
    notes.extend(if one_run { Vec::new() } else { unpaired_looks_notes([base.run, new.run]) });
    notes.extend(rates::zero_rate_notes(&steps));
    for (side, findings) in [(base, &base_findings), (new, new_findings)].into_iter().take(runs.len()) {
        let is_compared = |name: &str| name == side.variant || one_run && name == new.variant;
        notes.extend(servers::cache_warnings(side.run, &findings.workloads, is_compared));
    }
    notes.extend(missed_target_note(&steps));
    notes.extend(verdicts::foreign_load_note(&steps));
    notes.extend(rates::fixed_rate_notes(&steps));
    // A ratio from one block has no inference (interval and tests) and no verdict.
    let one_block = |step: &ComparedStep| step.to_base.ratio.is_some() && step.to_base.verdict.is_none();
    if steps.iter().all(|step| step.to_base.inference().is_none()) && steps.iter().any(one_block) {
        notes.push(Warning::new(Code::OneBlockCompared));
    }
    notes.extend(changed);
    Ok(Comparison {
        base: compared_side(base, &base_findings),
        new: compared_side(new, new_findings),
        paired: one_run,
        margin: margins.general,
        notes,
        ratios: group(&steps.iter().filter_map(counted_ratio).collect::<Vec<_>>()),
        steps,
        why: if one_run { profiles_of(&base_findings, new.variant) } else { why::between(base, new) },
    })
}

/// Returns the profiles of a run with the comparison of one variant.
fn profiles_of(findings: &Findings, variant: &str) -> Vec<StepProfile> {
    let mut steps = findings.why.clone().map_or_else(Vec::new, |why| why.steps);
    for step in &mut steps {
        step.differences.retain(|found| found.variant == variant);
    }
    steps
}

/// Returns a step's ratio, or `None` where it does not count in the mean over the steps. A ratio
/// does not count if the plan sets the step's rates, if a block has a rate of zero, or if the new
/// variant did not keep the rate of background writes that the base kept.
fn counted_ratio(step: &ComparedStep) -> Option<f64> {
    let is_counted = !step.is_fixed_rate && !step.target_missed && step.to_base.zero_rates.is_empty();
    step.to_base.ratio.as_ref().filter(|_| is_counted).map(|ratio| ratio.value)
}

/// The notes that a comparison of two runs needs.
fn notes_on_two_runs(base: Side<'_>, new: Side<'_>, anyway: bool) -> Result<Vec<Warning>, Error> {
    let differences = differences(base.run, new.run, &[(base.variant, new.variant)]);
    if !differences.is_empty() && !anyway {
        return Err(Error::NotComparable { differences });
    }
    let differ = |difference| Warning::new(Code::NotComparable).with("difference", vec![difference]);
    let mut notes: Vec<Warning> = differences.into_iter().map(differ).collect();
    notes.push(Warning::new(Code::TwoRuns));
    let small = small_differences(&base.run.manifest, &new.run.manifest);
    if !small.is_empty() {
        notes.push(Warning::new(Code::ChangedBetweenRuns).with("changes", small));
    }
    Ok(notes)
}

fn left_out_of(side: Side<'_>, findings: &Findings, step: &ComparedStep) -> Vec<Exclusion> {
    let workload = findings.workloads.iter().find(|workload| workload.name == step.workload);
    let own = workload.and_then(|workload| workload.steps.iter().find(|own| own.name == step.step));
    own.map_or_else(Vec::new, |own| left_out(side, &step.workload, own))
}

/// Returns the findings for the side's run, with the side's variant as their base.
fn findings_with_base(side: Side<'_>, margins: Margins<'_>) -> Result<Findings, Error> {
    require_variant(side)?;
    Ok(findings_against(side.run, side.variant, margins))
}

fn require_variant(side: Side<'_>) -> Result<(), Error> {
    let known: Vec<String> = side.run.manifest.variants.iter().map(|variant| variant.name.clone()).collect();
    if known.iter().any(|name| name == side.variant) {
        return Ok(());
    }
    Err(Error::UnknownVariant {
        run: side.run.manifest.run_id.clone(),
        asked: side.variant.to_owned(),
        known,
    })
}

fn compared_side(side: Side<'_>, findings: &Findings) -> ComparedSide {
    let found = findings.variants.iter().find(|variant| variant.name == side.variant);
    ComparedSide {
        run_id: side.run.manifest.run_id.clone(),
        variant: side.variant.to_owned(),
        version_text: found.map_or_else(String::new, |variant| match &variant.foreign {
            Some(foreign) => format!("{foreign}, {}", variant.version_text),
            None => variant.version_text.clone(),
        }),
    }
}

/// The steps of one run, with the comparisons that the run's findings have already made.
fn paired_steps(findings: &Findings, new: &str, margins: Margins<'_>) -> Vec<ComparedStep> {
    let compared = |workload: &str, step: &StepFindings| {
        let base = step.variant(&findings.run.base)?;
        let new = step.variant(new)?;
        let blocks = new.to_base.ratio.as_ref().map_or(0, |ratio| ratio.blocks.len());
        let in_block = |block: u32| valid(&new.runs).any(|run| run.block == block);
        // A reader would divide two medians that are shown together, even if they are over
        // different blocks. Without a common block, neither is shown.
        let shares_a_block =
            !(base.rate.is_some() && new.rate.is_some()) || valid(&base.runs).any(|run| in_block(run.block));
        Some(ComparedStep {
            base_rate: base.rate.filter(|_| shares_a_block),
            new_rate: new.rate.filter(|_| shares_a_block),
            base_blocks: blocks,
            new_blocks: blocks,
            to_base: new.to_base.clone(),
            ..common_fields(workload, (step, base), (step, new), margins)
        })
    };
    findings.judged_steps().filter_map(|(workload, step)| compared(workload, step)).collect()
}

/// Compares two runs in the steps that both have, by workload and name. Their blocks are not
/// paired.
fn unpaired_steps<'a>(
    base: &'a Findings,
    base_name: &str,
    new: &'a Findings,
    new_name: &str,
    margins: Margins<'_>,
) -> Vec<ComparedStep> {
    let other = |workload: &str, name: &str| -> Option<&'a StepFindings> {
        let workload = new.workloads.iter().find(|other| other.name == workload)?;
        workload.steps.iter().find(|step| step.name == name)
    };
    let rates = |variant: &VariantStep| -> Vec<f64> {
        valid(&variant.runs).map(|run| run.rate).filter(|rate| *rate > 0.0).collect()
    };
    let compared = |(workload, step): (&str, &'a StepFindings)| {
        let base = step.variant(base_name)?;
        let new_step = other(workload, &step.name)?;
        let new = new_step.variant(new_name)?;
        let (base_rates, new_rates) = (rates(base), rates(new));
        let ratio = geometric_mean(&new_rates).zip(geometric_mean(&base_rates)).map(|(new, base)| new / base);
        let common = common_fields(workload, (step, base), (new_step, new), margins);
        let found = ComparedStep {
            base_blocks: base_rates.len(),
            new_blocks: new_rates.len(),
            to_base: StepComparison {
                // Times that are shorter than the clock resolves have no ratio.
                ratio: ratio.filter(|_| !is_below_clock_resolution(step, &new.runs, &base.runs)).map(
                    |value| Ratio {
                        value,
                        blocks: Vec::new(),
                        bound: None,
                        inference: unpaired(&base_rates, &new_rates, step.margin)
                            .filter(|_| !common.is_fixed_rate),
                    },
                ),
                p99: unpaired_p99_ratio(&new.runs, &base.runs, &step.headline_kind, step.margin),
                zero_rates: ZeroRates::unpaired(&new.runs, &base.runs),
                foreign_load: ForeignLoad::between(&new.runs, &base.runs, margins.of(&step.name)),
                ..StepComparison::default()
            },
            ..common
        };
        Some((found, step, [new, base]))
    };
    let mut all: Vec<(ComparedStep, &StepFindings, [&VariantStep; 2])> =
        base.judged_steps().filter_map(compared).collect();
    judge(&mut all.iter_mut().map(|(found, ..)| found).collect::<Vec<_>>());
    all.into_iter().map(|(found, step, sides)| with_verdict(found, step, sides)).collect()
}

/// A compared step with the fields that do not depend on whether its blocks are paired.
fn common_fields(
    workload: &str,
    (step, base): (&StepFindings, &VariantStep),
    (new_step, new): (&StepFindings, &VariantStep),
    margins: Margins<'_>,
) -> ComparedStep {
    let is_fixed_rate = step.is_fixed_rate(&base.variant);
    ComparedStep {
        workload: workload.to_owned(),
        step: step.name.clone(),
        rate_label: step.rate_label.clone(),
        less_is_better: step.less_is_better,
        margin: margins.of(&step.name),
        base_rate: base.rate,
        new_rate: new.rate,
        base_p99_us: base.latency.as_ref().and_then(Latency::known_p99_us),
        new_p99_us: new.latency.as_ref().and_then(Latency::known_p99_us),
        target_missed: base.background_rate.is_some() && !step.misses(base) && new_step.misses(new),
        is_fixed_rate,
        schedule_missed: is_fixed_rate
            && rates::fixed_rate_verdict(new_step.reached_rate(new)) == Verdict::Missed,
        ..ComparedStep::default()
    }
}

/// Adjusts the p-values over the steps of a comparison of two runs, and sets the verdicts that
/// follow from the tests.
fn judge(steps: &mut [&mut ComparedStep]) {
    // Such a comparison has no interim analyses, so both lists of looks (`&[]`) are empty.
    let percentiles = steps.iter_mut().filter_map(|step| Some((step.to_base.p99.as_mut()?, step.margin)));
    judge_percentiles(&mut percentiles.collect::<Vec<_>>(), &[]);
    let rates = steps.iter_mut().filter_map(|step| {
        // `decided` names the interim analysis that reached the verdict. It stays `None` here.
        let StepComparison { ratio, verdict, decided, .. } = &mut step.to_base;
        Compared::of(ratio.as_mut()?, step.margin, verdict, Some(decided))
    });
    judge_family(&[], &mut rates.collect::<Vec<_>>());
}

/// Adds the step's verdict, which depends on the tests and on stalls, missed rates and foreign load
/// in the runs.
fn with_verdict(
    mut found: ComparedStep,
    step: &StepFindings,
    [new, base]: [&VariantStep; 2],
) -> ComparedStep {
    let by_schedule = if found.schedule_missed { Verdict::Missed } else { Verdict::OnSchedule };
    let to_base = &mut found.to_base;
    (to_base.verdict, to_base.undecided) = verdict(&VerdictInput {
        subject: Subject {
            step,
            runs: &new.runs,
            base_runs: &base.runs,
            ratio: to_base.ratio.as_ref(),
            zero_rates: &to_base.zero_rates,
            foreign_load: to_base.foreign_load,
        },
        by_ratio: to_base.verdict,
        misses_target: found.target_missed,
        by_schedule: found.is_fixed_rate.then_some(by_schedule),
    });
    // Under foreign load, the verdict on the 99th percentile is always undecided.
    if let (Some(_), Some(p99)) = (to_base.foreign_load, &mut to_base.p99) {
        p99.verdict = ForeignLoad::percentile_verdict(p99.verdict);
    }
    found
}

/// A note on steps in which the new variant did not keep the rate of background writes that the
/// base kept.
fn missed_target_note(steps: &[ComparedStep]) -> Option<Warning> {
    let missed = steps.iter().filter(|step| step.target_missed);
    let names: Vec<&str> = missed.map(|step| step.step.as_str()).collect();
    (!names.is_empty()).then(|| Warning::new(Code::NewMissedTarget).at_all(names))
}

#[cfg(test)]
#[path = "comparison_tests.rs"]
mod tests;
