//! Counters to rates to findings; pure: reads a run directory's records, touches nothing else.
//!
//! The way of a figure: `span` cuts intervals at the common window, `rates`, `counters` and `latency` measure in it,
//! `metrics` and `cost` make the columns, `validity` judges, `steps` gathers one execution, `ratio` and `workloads` join the
//! blocks. `judge` turns ratios over blocks into verdicts, by the methods of `statistics` and with the margins of `margins`,
//! once or at the `looks` of a run with a budget; `targets`, `paced` and `standstills` say where ratios show nothing. `tables`,
//! `relative`, `control`, `sweep`, `aging` and `colours` make the summary, `warnings` says what to know before reading it, `parity` in what
//! the variants were not set alike. `account` and `factorial` say what differences come from. `noise` and `forecast` say what the
//! next plan can detect. Each figure's formula and source are in docs/reference/metrics.md.

mod account;
mod aging;
mod aging_table;
mod alike;
mod beside;
mod cell_warnings;
mod changed;
mod client_wait;
mod colours;
mod compare;
mod control;
mod cost;
mod counted;
mod counters;
mod debt;
mod device;
mod effects_table;
mod efficiency;
mod empty_deletes;
mod encryption;
mod engines;
mod error;
mod factorial;
mod failure;
mod findings;
#[cfg(test)]
mod fixtures;
mod forecast;
mod fsyncs;
mod group_memory;
mod groups;
mod groups_table;
mod headroom;
mod history;
mod history_values;
mod host_check;
mod hosts;
mod invalid_runs;
mod judge;
mod latency;
mod left_out;
mod levels;
mod looks;
mod lookups;
mod margins;
mod measured;
mod metrics;
mod noise;
mod numbered;
mod outages;
mod overview;
mod own_stops;
mod paced;
pub mod parity;
mod polling;
mod query_plans;
mod rates;
mod ratio;
mod reach;
mod reads;
mod refused;
mod relative;
mod relative_metrics;
mod rung;
mod scans;
mod schedule;
mod sessions;
mod settling;
mod short_steps;
mod slowest_client;
mod span;
mod standstills;
mod statements;
pub mod statistics;
mod steadiness;
mod steal;
mod step_findings;
mod steps;
mod sweep;
mod sweep_table;
mod tables;
mod targets;
mod told_late;
mod valid_runs;
mod validity;
mod verdict;
mod warnings;
mod whole;
mod workloads;

use dbdyno_record::{Manifest, Run, StepRecord};

pub use account::{Account, Cause, Part};
pub use aging::{Aging, AgingVariant};
pub use alike::host_class;
pub use beside::{Beside, SettingDifference, StallDifference, StallFigure};
pub use compare::{CompareChoices, ComparedSide, ComparedStep, Comparison, Side, compare};
pub use cost::Cost;
pub use debt::{Debt, DebtLevel};
pub use device::DeviceLoad;
pub use efficiency::Efficiency;
pub use error::Error;
pub use factorial::Effect;
pub use failure::{Failure, words as failure_words};
pub use findings::{
    Budget, Cell, Colour, Findings, Ratio, RunSummary, StepFindings, Summary, Table, TableRow, Validity,
    VariantStep, VariantSummary, WorkloadFindings,
};
pub use forecast::{Forecast, forecast};
pub use group_memory::GroupMemory;
pub use groups::GroupFindings;
pub use history::{Change, Followed, History, HistoryChoices, HistoryRun, Measure, Reach, Series, history};
pub use history_values::Lapse;
pub use host_check::HostCheck;
pub use invalid_runs::{first_clause, reason_class};
pub use left_out::{LeftOut, LeftOutKind};
pub use looks::Decided;
pub use lookups::Lookups;
pub use margins::{margin_of, margins_without_step};
pub use noise::{StepNoise, noise, pooled};
pub use numbered::numbered;
pub use paced::Pace;
pub use query_plans::{PlanDifference, StatementPlans};
pub use ratio::ratio_text;
pub use relative_metrics::RelativeMetrics;
pub use settling::restless;
pub use standstills::Standstills;
pub use steadiness::Steadiness;
pub use step_findings::{
    Bucket, ClientReach, KindResult, Latency, MetricRow, Schedule, SecondPoint, StatementResult, StepRun,
};
pub use sweep::{RateOf, Sweep, SweepRung, SweepVariant};
pub use verdict::{CONFIDENCE, Inference, LEVEL, Paired, Verdict, p_text};
pub use workloads::step_validity;

/// What a reader may choose about the findings of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choices {
    /// Name of the variant that the others are compared with; `None` = the one that the run was planned with.
    pub base: Option<String>,
}

/// All findings of a run, compared with the base it was planned with.
///
/// Pure: the same records give the same findings on any machine. What cannot be computed is `None` or a warning,
/// never an error.
pub fn analyse(run: &Run) -> Findings {
    findings_against(run, &run.manifest.base)
}

/// All findings of a run, compared as chosen. Fails when the chosen base is no variant of the run.
pub fn analyse_with(run: &Run, choices: &Choices) -> Result<Findings, Error> {
    let Some(asked) = &choices.base else { return Ok(analyse(run)) };
    let known: Vec<String> = run.manifest.variants.iter().map(|variant| variant.name.clone()).collect();
    if !known.contains(asked) {
        return Err(Error::UnknownBase { asked: asked.clone(), known });
    }
    Ok(findings_against(run, asked))
}

/// The headline rate of one step and the length of its common window in seconds; `None` when it has no window.
pub fn headline_rate(step: &StepRecord) -> Option<(f64, f64)> {
    let (from_us, to_us) = step.window()?;
    let window = span::Span::new(from_us, to_us);
    let rate = rates::rate(&step.spec, &step.intervals, &step.spec.headline.kind, window);
    Some((rate, window.seconds()))
}

/// The second name of the base; `None` where another variant than the plan's is the base, against which nothing ran twice.
pub(crate) fn again_of<'a>(manifest: &'a Manifest, base: &str) -> Option<&'a str> {
    manifest.experiment.again.as_deref().filter(|_| manifest.base == base)
}

fn findings_against(run: &Run, base: &str) -> Findings {
    let manifest = &run.manifest;
    let looks = looks::looks(run);
    let rules = judge::Rules {
        base,
        again: again_of(manifest, base),
        margins: margins::Margins::planned(manifest),
        seed: manifest.seed,
        looks: &looks,
    };
    let mut steps: Vec<Vec<StepFindings>> =
        manifest.workloads.iter().map(|info| workloads::steps_of(run, info, rules)).collect();
    let mut all: Vec<&mut StepFindings> =
        steps.iter_mut().flatten().filter(|step| !step.is_warm_up).collect();
    judge::judge(&mut all, rules);
    let twin = manifest.experiment.again.as_deref();
    let twin = if twin == Some(base) { Some(manifest.base.as_str()) } else { twin };
    let design = factorial::Design::of(&manifest.variants, base, twin);
    if let Ok(Some(design)) = &design {
        factorial::judge_effects(&mut all, design, (base, manifest.seed), &looks);
    }
    let parity = parity::of_run(run);
    for steps in &mut steps {
        beside::fill(steps, base, parity.as_ref());
    }
    let workloads: Vec<WorkloadFindings> = manifest
        .workloads
        .iter()
        .zip(steps)
        .map(|(info, steps)| workloads::workload_findings(run, info, rules, steps))
        .collect();
    Findings {
        run: overview::run_summary(run, base),
        variants: manifest.variants.iter().map(|variant| overview::variant_summary(run, variant)).collect(),
        warnings: warnings::warnings(run, &workloads, base, parity.as_ref())
            .into_iter()
            .chain(factorial::warning(design))
            .collect(),
        failures: failure::failures(run),
        parity,
        workloads,
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::fixtures::{cell, load_step, run};

    fn two() -> Run {
        let cells = vec![cell(1, "a", vec![load_step(1_000)]), cell(1, "b", vec![load_step(2_000)])];
        run(&["a", "b"], 1, cells)
    }

    fn ratios(findings: &Findings) -> Vec<f64> {
        findings.workloads[0].steps[0].variants.iter().filter_map(|v| Some(v.ratio.as_ref()?.value)).collect()
    }

    #[test]
    fn findings_compare_with_the_planned_base_or_with_the_chosen_one() {
        let run = two();
        assert_eq!(ratios(&analyse(&run)), [1.0, 2.0]);
        let chosen = analyse_with(&run, &Choices { base: Some("b".to_owned()) }).unwrap();
        assert_eq!((ratios(&chosen), chosen.run.base.as_str()), (vec![0.5, 1.0], "b"));
        assert_eq!(ratios(&analyse_with(&run, &Choices::default()).unwrap()), [1.0, 2.0]);
    }

    #[test]
    fn a_base_that_is_no_variant_is_an_error_that_names_the_variants() {
        let error = analyse_with(&two(), &Choices { base: Some("c".to_owned()) }).unwrap_err();
        assert_snapshot!(error, @r#"the run has no variant named "c" to compare with; its variants are: a, b"#);
    }

    #[test]
    fn a_run_without_any_cell_has_findings_too() {
        let findings = analyse(&run(&["a"], 1, Vec::new()));
        assert_eq!(findings.workloads[0].steps.len(), 2);
        assert_eq!(findings.workloads[0].summary.absolute.rows[0].cells[0].text, "n/a");
    }
}
