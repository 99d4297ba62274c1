//! Turns a run's records into findings: rates, costs, comparisons and warnings. It reads a run
//! directory's records and touches nothing else.
//!
//! A figure goes through these folders, and each folder imports only those above it:
//!
//! * `statistics`: the statistical methods. `servers` and `words` have functions that several
//!   folders share.
//! * `parity`: settings in which the variants differ, and settings that only one product has.
//! * `window`: what a step did in its common window. It reads the records once.
//! * `metrics`: the catalogue of metrics, each with its formula.
//! * `model`: the types of findings.
//! * `measure`: the other figures for one execution of a step, such as `latency`.
//! * `validity`: whether a step's figures may be used.
//! * `compare`: comparisons of variants over blocks. `comparisons` makes each comparison once, with
//!   its `ratio` and its verdict (`verdicts`), over the plan's `pairs`. A run with a budget
//!   compares at its `interim_analyses`. `rates` finds ratios that do not say which variant is
//!   faster. `context` says where differences come from. The other files compare two runs, judge
//!   factors, and forecast what a plan can detect.
//! * `history`: series over many runs. `warnings`: warnings to read before the figures.
//! * `assemble`: puts steps and workloads together. `why`: which functions make the difference.
//! * `tables`: puts all values and all ratios into two long tables.
//!
//! docs/reference/metrics.md has each metric's formula and source.

mod assemble;
mod compare;
mod error;
mod history;
mod join;
mod measure;
pub mod metrics;
mod model;
pub mod parity;
mod servers;
pub mod statistics;
pub mod tables;
#[cfg(test)]
mod tests;
mod validity;
mod warnings;
mod why;
mod window;
mod words;

use dbdyno_model::{Colours, Report};
use dbdyno_record::{Manifest, Run, StepRecord};

use compare::comparisons::{Comparisons, Rules, Sources};
use compare::interim_analyses::{Look, looks};
use compare::pairs::{Margins, RequestedPairs};
use compare::published::Published;
#[cfg(test)]
use tests::{fixtures, simulations};

pub use dbdyno_record::{CheckPart, OperationClass, workload_and_setup};

pub use assemble::workloads::step_validity;
pub use compare::comparability::host_class;
pub use compare::comparison::{CompareChoices, compare};
pub use compare::noise::{Forecast, StepNoise, fixed_blocks, forecast, noise, pooled};
pub use compare::pairs::{fits, margin_of, margins_without_step};
pub use compare::rates::{ReachedRate, keeps_target, min_accepted};
pub use compare::ratio::{GroupRatios, interval_of_blocks, ratio_of_blocks, ratio_of_runs};
pub use compare::verdicts::{MIN_SECONDS, p_text};
pub use error::Error;
pub use history::{
    Change, Detectable, Followed, History, HistoryChoices, HistoryRun, Lapse, Measure, RunValues, Series,
    history,
};
pub use join::{UnlikeWords, join};
pub use measure::latency::{OperationHistogram, operation_histograms};
pub use measure::server_state::is_in_bytes;
pub use metrics::{Cost, DeviceLoad, Efficiency, HostCheck, MetricRow};
pub use model::findings::failure_words;
pub use model::steps::pairs;
pub use model::{
    Agreement, Aspect, BlockShare, Bound, Bucket, Budget, ByMachine, CLOSE, CONFIDENCE, Cause,
    ClientHeadroom, Code, ComparedSide, ComparedStep, Comparison, Composite, CostBreakdown, CostPart,
    Decided, DeferredLevel, DeferredWork, DesignFault, DeviceSecond, Difference, Effect, Exclusion,
    ExclusionKind, ExecutedPlan, Execution, Failure, FarthestMachine, Figure, FindingSeen, Findings,
    ForeignLoad, GroupMemory, Inference, KindResult, LEVEL, Latency, Lookups, MachineRatio, MetricGroup,
    Operator, Paired, PercentileRatio, PlanDifference, PublishedComparison, PublishedRow, Ratio,
    RatioContext, RelativeMetrics, RestlessLevel, RunSummary, Schedule, SecondPoint, SectionFindings, Seen,
    ServerEvent, ServerEventKind, SessionPart, SettingChange, Severity, Side, StallDifference, StallFigure,
    StatementPlans, StatementResult, Steadiness, StepComparison, StepFindings, StepRun, TimeBreakdown,
    TooFewOperations, Undecided, Validity, VariantShare, VariantStep, VariantSummary, Verdict, Warning,
    WorkLeft, WorkloadFindings, ZeroRates,
};
pub use parity::SettingDifference;
pub use validity::failed_check;
pub use warnings::servers::unsettled_warning;
pub use why::{
    Contribution, FunctionContribution, FunctionTime, NamedWait, Presence, ProfileDifference, ProfileFault,
    SettingContribution, StepProfile, TimePerOperation, VariantProfile, Why,
};
pub use words::{grouped, numbered};

/// What a caller may choose about a run's findings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choices {
    /// Name of the variant that the others are compared with; `None` = the base in the plan.
    pub base: Option<String>,
}

/// Returns all findings of a run, compared with the base in its plan.
///
/// The result depends on the records alone, so the same records give the same findings on any
/// machine. What cannot be computed is `None` or a warning, never an error.
pub fn analyse(run: &Run) -> Findings {
    findings_against(run, run.manifest.base(), Margins::planned(&run.manifest))
}

/// Returns all findings of a run, compared as chosen. It fails where the chosen base is not a
/// variant in the run.
pub fn analyse_with(run: &Run, choices: &Choices) -> Result<Findings, Error> {
    let Some(asked) = &choices.base else { return Ok(analyse(run)) };
    let known: Vec<String> = run.manifest.variants.iter().map(|variant| variant.name.clone()).collect();
    if !known.contains(asked) {
        return Err(Error::UnknownBase { asked: asked.clone(), known });
    }
    Ok(findings_against(run, asked, Margins::planned(&run.manifest)))
}

/// Does the same as [`analyse_with`] for these variants alone, and removes the others from the run.
/// It takes all variants when none is named. The base is the first of them if the run's own base is
/// not among them. Each comparison has the result that it has in the whole run.
///
/// # Errors
/// It fails where a name, or the base, is not a variant of the run.
pub fn analyse_only(run: &mut Run, names: &[String], choices: &Choices) -> Result<Findings, Error> {
    if names.is_empty() {
        return analyse_with(run, choices);
    }
    let known: Vec<String> = run.manifest.variants.iter().map(|variant| variant.name.clone()).collect();
    if let Some(asked) = names.iter().find(|name| !known.contains(name)) {
        let run = run.manifest.run_id.clone();
        return Err(Error::UnknownVariant { run, asked: asked.clone(), known });
    }
    if let Some(asked) = choices.base.as_ref().filter(|base| !names.contains(base)) {
        return Err(Error::UnknownBase { asked: asked.clone(), known: names.to_vec() });
    }
    let own = names.iter().find(|name| *name == run.manifest.base());
    let base = choices.base.as_ref().or(own).unwrap_or(&names[0]).clone();
    let looks = looks(run);
    let margins = Margins::planned(&run.manifest);
    let (mut steps, comparisons) = steps_and_comparisons(run, Rules::of(run, &base, margins, &looks));
    steps.iter_mut().flatten().for_each(|step| step.variants.retain(|of| names.contains(&of.variant)));
    run.manifest.variants.retain(|variant| names.contains(&variant.name));
    run.manifest.order.retain(|cell| names.contains(&cell.variant));
    run.cells.retain(|cell| names.contains(&cell.id.variant));
    run.profiled_cells.retain(|cell| names.contains(&cell.id.variant));
    if own.is_none() {
        run.manifest.plan.base = Some(names[0].clone());
    }
    Ok(findings_of(run, &base, (steps, &comparisons), &looks))
}

/// Returns one step's headline figure (a rate, or seconds) and the length of its common window in
/// seconds, or `None` when it has no window.
pub fn headline_rate(step: &StepRecord) -> Option<(f64, f64)> {
    step.window()?;
    let summary = window::WindowSummary::of(step, window::Hosting::Nothing, 0);
    let (figure, _) = measure::statements::headline(&summary, &measure::statements::executions(step));
    Some((figure, summary.window.seconds()))
}

/// Returns the name of the control, which is the base under a second name. It is `None` where the
/// base is not the plan's, because only the plan's base ran twice.
pub(crate) fn control_of<'a>(manifest: &'a Manifest, base: &str) -> Option<&'a str> {
    manifest.plan.control().filter(|_| manifest.base() == base)
}

/// Returns each of `items` once, in the order of its first occurrence.
pub fn unique<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

fn findings_against(run: &Run, base: &str, margins: Margins<'_>) -> Findings {
    let looks = looks(run);
    let (steps, comparisons) = steps_and_comparisons(run, Rules::of(run, base, margins, &looks));
    findings_of(run, base, (steps, &comparisons), &looks)
}

/// Returns each workload's steps, and every comparison in them.
fn steps_and_comparisons(run: &Run, rules: Rules<'_>) -> (Vec<Vec<StepFindings>>, Comparisons) {
    let manifest = &run.manifest;
    let mut steps: Vec<Vec<StepFindings>> =
        manifest.workloads.iter().map(|info| assemble::workloads::steps_of(run, info, rules)).collect();
    let plan = &manifest.plan;
    assemble::workloads::keep_grouping(&plan.report, &mut steps);
    let published = Published::read(manifest).map_or_else(Vec::new, |published| published.pairs());
    let asked =
        RequestedPairs { manifest, sections: &plan.sections, published: &published, base: rules.base };
    let names = manifest.workloads.iter().map(|info| info.name.as_str());
    let by_workload: Vec<(&str, &[StepFindings])> = names.zip(steps.iter().map(Vec::as_slice)).collect();
    let comparisons = Comparisons::of(&Sources { run, asked, rules }, &by_workload);
    (steps, comparisons)
}

fn findings_of(
    run: &Run,
    base: &str,
    (mut steps, comparisons): (Vec<Vec<StepFindings>>, &Comparisons),
    looks: &[Look],
) -> Findings {
    let manifest = &run.manifest;
    for (info, steps) in manifest.workloads.iter().zip(&mut steps) {
        steps.iter_mut().for_each(|step| comparisons.fill(&info.name, step, base));
    }
    let mut all: Vec<&mut StepFindings> =
        steps.iter_mut().flatten().filter(|step| !step.is_warm_up).collect();
    let control = manifest.plan.control();
    let control = if control == Some(base) { Some(manifest.base()) } else { control };
    let design = compare::factorial::Design::of(&manifest.variants, base, control);
    if let Ok(Some(design)) = &design {
        compare::factorial::judge_effects(&mut all, design, (base, manifest.plan.seed), looks);
    }
    let parity = parity::of_run(run);
    for steps in &mut steps {
        compare::context::fill(steps, base, parity.as_ref());
    }
    let of_workload = |(info, steps)| assemble::workloads::workload_findings(info, steps);
    let workloads: Vec<WorkloadFindings> = manifest.workloads.iter().zip(steps).map(of_workload).collect();
    let report = &manifest.plan.report;
    let sections = assemble::workloads::sections(manifest, &workloads, comparisons, base);
    let summary = |variant| assemble::overview::variant_summary(run, variant);
    Findings {
        run: RunSummary { colours: report.colours, ..assemble::overview::run_summary(run, base) },
        variants: manifest.variants.iter().map(summary).collect(),
        warnings: warnings::warnings(&warnings::Facts {
            run,
            workloads: &workloads,
            base,
            parity: parity.as_ref(),
            design: design.err(),
        }),
        failures: model::findings::failures(run),
        why: why::of_run(run, &workloads, base, parity.as_ref()),
        parity,
        prose: Report { published: None, colours: Colours::default(), ..report.clone() },
        sections,
        published: Published::read(manifest).map(|found| found.compared(&workloads, comparisons)),
        workloads,
    }
}
