//! Puts together the findings of one workload: its steps in order, each with rates, ratios and runs
//! for all variants and blocks. A section of the report shows the same runs of steps again, for
//! some of the variants, and may compare them with another base.

use dbdyno_model::{Report, Section};
use dbdyno_record::{CellRecord, Manifest, Run, StepRecord, StepSpec, VariantInfo, WorkloadInfo, parallel};
use hdrhistogram::Histogram;

use crate::assemble::steps::{StepContext, add_reason, step_run, timed_run};
use crate::compare::comparisons::{Comparisons, Rules};
use crate::compare::pairs::{has_step, has_workload, variants_of};
use crate::compare::query_plans::{executed_plans, plans_of};
use crate::compare::rates::keeps_target;
use crate::measure::hosts::client_has_own_cpus;
use crate::measure::latency::pooled;
use crate::measure::statements::is_median_bound;
use crate::metrics::fsyncs::syncs_of;
use crate::model::steps::valid;
use crate::model::{
    Latency, RatioContext, SectionFindings, StepFindings, StepRun, Validity, VariantStep, Warning,
    WorkloadFindings,
};
use crate::statistics::describe::median;
use crate::statistics::ranks::trend;
use crate::unique;
use crate::validity::operations::answer_faults;
use crate::validity::validity;
use crate::window::Hosting;

/// A workload's steps, not compared yet, because comparisons need all workloads of the run.
pub(crate) fn steps_of(run: &Run, info: &WorkloadInfo, rules: Rules<'_>) -> Vec<StepFindings> {
    let cells: Vec<&CellRecord> = run.cells.iter().filter(|cell| cell.id.workload == info.name).collect();
    let names = step_names(info, &cells);
    parallel::map(&names, |name| step_findings(run, &cells, name, rules))
}

/// A workload with its steps.
pub(crate) fn workload_findings(info: &WorkloadInfo, steps: Vec<StepFindings>) -> WorkloadFindings {
    WorkloadFindings {
        name: info.name.clone(),
        version: info.version,
        follows: info.follows.clone(),
        options: info.options.clone(),
        deviations: info.deviations.clone(),
        steps,
    }
}

/// The steps as planned, then any others that were recorded.
fn step_names(info: &WorkloadInfo, cells: &[&CellRecord]) -> Vec<String> {
    let recorded = cells.iter().flat_map(|cell| &cell.steps).map(|step| &step.name);
    unique(info.steps.iter().chain(recorded)).into_iter().cloned().collect()
}

fn step_findings(run: &Run, cells: &[&CellRecord], name: &str, rules: Rules<'_>) -> StepFindings {
    let records = || cells.iter().flat_map(|cell| &cell.steps).filter(|step| step.name == name);
    // The record of a step that is damaged or was killed at once may lack the step's description.
    // Every other record of the step contains it.
    let is_whole = |step: &&StepRecord| step.damaged.is_none() && !step.events.is_empty();
    let described = records().find(is_whole).or_else(|| records().next());
    let unknown = StepSpec::default();
    let spec = described.map_or(&unknown, |step| &step.spec);
    let mut runs: Vec<VariantRuns<'_>> =
        run.manifest.variants.iter().map(|variant| runs_of(run, cells, variant, name)).collect();
    check_answers(&mut runs, rules.base);
    StepFindings {
        name: name.to_owned(),
        meaning: spec.meaning.clone(),
        headline_kind: spec.headline.kind.clone(),
        headline_class: spec.headline_class(),
        rate_label: spec.headline.label.clone(),
        less_is_better: spec.headline.unit.is_time(),
        connections: spec.clients * spec.kinds.iter().map(|kind| kind.connections_per_client).sum::<u32>(),
        margin: rules.margins.of(name),
        statements: spec.kinds.iter().map(|kind| (kind.kind.clone(), kind.statement.clone())).collect(),
        groups: spec.groups.clone(),
        is_warm_up: spec.is_warm_up,
        target: spec.target.as_ref().map(|target| (target.rows_per_second, target.share)),
        variants: runs.into_iter().map(|of_variant| variant_step(of_variant, spec)).collect(),
        effects: Vec::new(),
    }
}

/// Makes a variant invalid in a step where it answers a query differently from the base.
fn check_answers(runs: &mut [VariantRuns<'_>], base: &str) {
    let Some(of_base) = runs.iter().position(|of| of.variant.name == base) else { return };
    let base_runs: Vec<StepRun> = valid(&runs[of_base].runs).cloned().collect();
    // Only executions (queries and other work that is timed one by one) have answers in the record.
    if base_runs.iter().all(|run| run.executions.is_empty()) {
        return;
    }
    for of_variant in runs.iter_mut() {
        for run in &mut of_variant.runs {
            let found = answer_faults(run, &base_runs, base).into_iter();
            run.validity = found.fold(run.validity.clone(), add_reason);
        }
    }
}

/// Returns a step's context as far as the manifest gives it. `block` and `syncs` (those of the
/// binary log) are not in the manifest; a caller that needs them sets them.
fn step_context<'a>(manifest: &'a Manifest, variant: &'a VariantInfo, step: &StepRecord) -> StepContext<'a> {
    StepContext {
        block: 0,
        tag: &variant.name,
        hosting: Hosting::in_step(variant, &step.counters),
        cpus: manifest.host.cpus,
        // Other builds have a slow client, so a step that the client limits stays valid there.
        judges_client: manifest.tool.build == "release",
        client_has_own_cpus: client_has_own_cpus(&manifest.host, variant.external),
        driver: &variant.driver,
        calibration: manifest.client_calibration.as_ref(),
        syncs: None,
    }
}

/// Returns whether the figures of a step that has just ended may be used. `variant` is a name in
/// the manifest. For another name, only the step's own record decides.
pub fn step_validity(manifest: &Manifest, variant: &str, step: &StepRecord) -> Validity {
    match manifest.variants.iter().find(|known| known.name == variant) {
        Some(variant) => step_run(step, step_context(manifest, variant, step)).validity,
        None => validity(step),
    }
}

/// Returns the figures of one step in a cell.
pub(crate) fn run_of_step(
    manifest: &Manifest,
    variant: &VariantInfo,
    cell: &CellRecord,
    step: &StepRecord,
) -> StepRun {
    let around = StepContext { block: cell.id.block, ..step_context(manifest, variant, step) };
    let run = step_run(step, around);
    let of_cell = cell.invalid_reasons().map(Warning::quoted);
    StepRun { validity: of_cell.fold(run.validity.clone(), add_reason), ..run }
}

/// A variant's runs of one step in the order of blocks, and the response times of the valid ones.
struct VariantRuns<'a> {
    variant: &'a VariantInfo,
    records: Vec<(&'a CellRecord, &'a StepRecord)>,
    runs: Vec<StepRun>,
    latency: Option<Latency>,
}

/// One run per block in which the variant began the step.
fn runs_of<'a>(run: &Run, cells: &[&'a CellRecord], variant: &'a VariantInfo, name: &str) -> VariantRuns<'a> {
    let figures = |cell: &CellRecord, step: &StepRecord| {
        let around = step_context(&run.manifest, variant, step);
        let around = StepContext { block: cell.id.block, syncs: syncs_of(cell), ..around };
        let (run, times) = timed_run(step, around);
        let of_cell = cell.invalid_reasons().map(Warning::quoted);
        (StepRun { validity: of_cell.fold(run.validity, add_reason), ..run }, times)
    };
    let mut records: Vec<(&CellRecord, &StepRecord)> = cells
        .iter()
        .filter(|cell| cell.id.variant == variant.name)
        .flat_map(|cell| cell.steps.iter().map(move |step| (*cell, step)))
        .filter(|(_, step)| step.name == name)
        .collect();
    records.sort_by_key(|(cell, _)| cell.id.block);
    let runs: Vec<(StepRun, Option<Histogram<u64>>)> =
        records.iter().map(|(cell, step)| figures(cell, step)).collect();
    let is_valid = |found: &&(StepRun, _)| found.0.validity == Validity::Valid;
    let latency = pooled(runs.iter().filter(is_valid).filter_map(|(_, times)| times.as_ref()));
    VariantRuns { variant, records, runs: runs.into_iter().map(|(run, _)| run).collect(), latency }
}

fn variant_step(of_variant: VariantRuns<'_>, spec: &StepSpec) -> VariantStep {
    let VariantRuns { variant, records, runs, latency } = of_variant;
    let steps = records.iter().map(|(cell, step)| (cell.id.block, *step));
    let rates: Vec<f64> = valid(&runs).map(|run| run.rate).collect();
    let target = spec.target.as_ref();
    let background: Vec<f64> = target.map_or_else(Vec::new, |target| {
        valid(&runs).filter_map(|run| Some(run.kind(&target.kind)?.rows_per_second)).collect()
    });
    // The judged rate is that of the client with the fewest background writes, times the number of
    // clients. The background rate is the sum over all clients.
    let judged = || valid(&runs).filter_map(|run| Some((run.block, run.judged_background_rate?)));
    let is_missed =
        |rate: f64| target.is_some_and(|target| !keeps_target(rate, target.rows_per_second, target.share));
    VariantStep {
        variant: variant.name.clone(),
        rate: median(&rates),
        latency,
        query_plans: plans_of(steps.clone()),
        executed_plans: executed_plans(steps),
        // Whether a time limit ended runs, so that the median of their times is only a lower bound.
        cut_off: is_median_bound(valid(&runs).map(|run| (run.rate, run.cut_off))),
        rate_min: rates.iter().copied().reduce(f64::min),
        rate_max: rates.iter().copied().reduce(f64::max),
        drift: trend(&rates).filter(|_| !spec.is_warm_up),
        background_rate: median(&background),
        judged_background_rate: median(&judged().map(|(_, rate)| rate).collect::<Vec<_>>()),
        target_missed_blocks: judged().filter(|(_, rate)| is_missed(*rate)).map(|(block, _)| block).collect(),
        runs,
        ..VariantStep::default()
    }
}

pub(crate) fn sections(
    manifest: &Manifest,
    workloads: &[WorkloadFindings],
    comparisons: &Comparisons,
    run_base: &str,
) -> Vec<SectionFindings> {
    let of_section = |section: &Section| {
        let (base, variants) = variants_of(section, manifest, run_base)?;
        let of_workload = |workload: &WorkloadFindings| {
            let info = manifest.workloads.iter().find(|info| info.name == workload.name)?;
            let wanted = workload.steps.iter().filter(|step| has_step(section, &step.name));
            let steps = wanted.map(|step| {
                let mut step = with_variants(step, &variants);
                comparisons.fill(&workload.name, &mut step, base);
                step
            });
            Some(workload_findings(info, steps.collect()))
        };
        Some(SectionFindings {
            title: section.title.clone(),
            text: section.text.clone().unwrap_or_default(),
            base: base.to_owned(),
            workloads: workloads
                .iter()
                .filter(|workload| has_workload(section, &workload.name))
                .filter_map(of_workload)
                .collect(),
        })
    };
    manifest.plan.sections.iter().filter_map(of_section).collect()
}

/// Keeps one of several groupings of the steps: the one that is named after the year of the
/// published report that the plan follows. Without such a grouping, all stay.
pub(crate) fn keep_grouping(report: &Report, steps: &mut [Vec<StepFindings>]) {
    let year = report.year.map(|year| year.to_string()).unwrap_or_default();
    let has_it = |step: &StepFindings| step.groups.contains_key(&year);
    if steps.iter().flatten().any(has_it) {
        steps.iter_mut().flatten().for_each(|step| step.groups.retain(|grouping, _| *grouping == year));
    }
}

/// Removes the figures per second and per statement. A section repeats runs that the workload's own
/// steps already show with these figures.
fn without_seconds(run: &mut StepRun) {
    run.seconds.clear();
    run.device_seconds.clear();
    for kind in &mut run.kinds {
        kind.buckets.clear();
        kind.statements.clear();
    }
}

/// Returns a step with some of its variants. The copy has no figures that belong only to the run's
/// own comparison, and none that the run's own steps already show.
fn with_variants(step: &StepFindings, names: &[&str]) -> StepFindings {
    let mut variants = step.variants.clone();
    variants.retain(|variant| names.contains(&variant.variant.as_str()));
    for variant in &mut variants {
        variant.context = RatioContext::default();
        variant.query_plans.clear();
        variant.runs.iter_mut().for_each(without_seconds);
    }
    StepFindings { variants, effects: Vec::new(), ..step.clone() }
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{CellEvent, Outcome};

    use super::*;
    use crate::analyse;
    use crate::fixtures::{cell, ended, failed_cell, load_step, plan, query_step, run};
    use crate::model::SectionFindings;

    fn findings(run: &Run) -> WorkloadFindings {
        crate::analyse(run).workloads.remove(0)
    }

    #[test]
    fn rates_of_blocks_become_median_lowest_and_highest() {
        let cells =
            [1_000, 3_000, 1_200].iter().zip(1..).map(|(rate, n)| cell(n, "a", vec![load_step(*rate)]));
        let found = findings(&run(&["a"], 3, cells.collect()));
        let step = &found.steps[0].variants[0];
        assert_eq!((step.rate, step.rate_min, step.rate_max), (Some(1_200.0), Some(1_000.0), Some(3_000.0)));
        assert_eq!(step.runs.iter().map(|run| run.block).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(found.steps[0].rate_label, "inserts/s");
        assert_eq!(found.steps[0].statements, [("insert".to_owned(), "insert ?".to_owned())]);
    }

    #[test]
    fn an_invalid_block_has_a_run_but_no_part_in_rate_and_ratio() {
        let broken = ended(load_step(9_000), Outcome::Interrupted, "ctrl-c");
        let cells = vec![
            cell(1, "a", vec![load_step(1_000)]),
            cell(1, "b", vec![load_step(1_100)]),
            cell(2, "a", vec![load_step(1_000)]),
            cell(2, "b", vec![broken]),
        ];
        let found = findings(&run(&["a", "b"], 2, cells));
        let step = &found.steps[0].variants[1];
        assert_eq!((step.rate, step.runs.len()), (Some(1_100.0), 2));
        assert_eq!(step.to_base.ratio.as_ref().unwrap().blocks, [(1, 1.1)]);
    }

    #[test]
    fn a_failed_cells_completed_steps_stay_valid_and_those_that_never_ran_have_no_run() {
        let cells = vec![failed_cell(1, "a", vec![load_step(1_000)], "server died")];
        let found = findings(&run(&["a"], 1, cells));
        assert_eq!(found.steps[0].variants[0].runs[0].validity, Validity::Valid);
        assert_eq!(found.steps[1].name, "qr100");
        assert!(found.steps[1].variants[0].runs.is_empty());
        assert_eq!(found.steps[1].variants[0].rate, None);
    }

    #[test]
    fn a_reason_that_makes_a_cell_invalid_makes_its_completed_steps_invalid() {
        let why = "another run of dbdyno uses the database";
        let mut spoilt = failed_cell(1, "a", vec![load_step(1_000)], why);
        spoilt.events.insert(1, CellEvent::Invalid { at: String::new(), reason: why.to_owned() });
        let found = findings(&run(&["a"], 2, vec![spoilt, cell(2, "a", vec![load_step(900)])]));
        let step = &found.steps[0].variants[0];
        assert_eq!(step.runs[0].validity, Validity::Invalid { reasons: vec![Warning::quoted(why)] });
        assert_eq!((&step.runs[1].validity, step.rate), (&Validity::Valid, Some(900.0)));
    }

    #[test]
    fn the_background_rate_is_that_of_the_operations_with_a_target() {
        let cells = vec![cell(1, "a", vec![query_step(500, 150)])];
        let found = findings(&run(&["a"], 1, cells));
        assert_eq!(found.steps[1].target, Some((200.0, 0.95)));
        assert_eq!(found.steps[1].variants[0].background_rate, Some(150.0));
        assert_eq!(found.steps[1].variants[0].rate, Some(500.0));
    }

    #[test]
    fn a_step_that_no_plan_names_is_shown_after_the_others() {
        let mut extra = load_step(700);
        extra.name = "l.z".to_owned();
        let found = findings(&run(&["a"], 1, vec![cell(1, "a", vec![extra])]));
        assert_eq!(
            found.steps.iter().map(|step| step.name.as_str()).collect::<Vec<_>>(),
            ["l.i0", "qr100", "l.z"]
        );
    }

    const PLAN: &str = r#"
    [report]
    title = "T"
    [[section]]
    title = "New to old"
    base = "c"
    text = "Why."
    [[section]]
    title = "Two"
    variants = ["b", "c"]
    steps = ["l.*"]
    [[section]]
    title = "Of a variant that did not run"
    base = "z"
    "#;

    #[test]
    fn each_section_has_its_own_base_variants_and_steps() {
        let rates = [("a", 1_000), ("b", 2_000), ("c", 4_000)];
        let cells = rates.map(|(name, rate)| cell(1, name, vec![load_step(rate)]));
        let mut run = run(&["a", "b", "c"], 1, cells.to_vec());
        run.manifest.plan = plan(PLAN);
        let found = analyse(&run);
        assert_eq!(found.prose.title.as_deref(), Some("T"));
        let reported = |section: &SectionFindings| {
            let steps = section.workloads[0].steps.iter().map(|step| {
                let variants = step.variants.iter().map(|variant| {
                    let ratio = variant
                        .to_base
                        .ratio
                        .as_ref()
                        .map_or("-".to_owned(), |ratio| format!("{:.2}", ratio.value));
                    format!("{} {ratio}", variant.variant)
                });
                format!("{}: {}", step.name, variants.collect::<Vec<_>>().join(", "))
            });
            let steps = steps.collect::<Vec<_>>().join("; ");
            format!("{} ({} base {}) {steps}", section.title, section.text, section.base)
        };
        insta::assert_snapshot!(found.sections.iter().map(reported).collect::<Vec<_>>().join("\n"), @"
            New to old (Why. base c) l.i0: a 0.25, b 0.50, c 1.00; qr100: a -, b -, c -
            Two ( base b) l.i0: b 1.00, c 2.00
            ");
        let own = &found.workloads[0].steps[0].variants[2];
        assert_eq!(
            own.to_base.value(),
            Some(4.0),
            "the run's own steps are still compared with the plan's base"
        );
    }
}
