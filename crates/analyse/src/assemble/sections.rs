//! Sections of the report: the same executions of steps, some variants of them, compared with
//! another base.

use dbdyno_plan::{Section, pattern_fits};
use dbdyno_record::{Run, workload_and_setup};

use crate::assemble::workloads::workload_findings;
use crate::compare::by_machine;
use crate::compare::latency_verdicts::{self, p99_ratio};
use crate::compare::ratio::ratio;
use crate::compare::relative_metrics::relative_metrics;
use crate::compare::verdicts::{self, Rules};
use crate::model::{Prose, SectionFindings, StepFindings, StepRun, VariantStep, WorkloadFindings, ZeroRates};

/// Of several groupings only that of the year of the report that the plan follows, where there is
/// one.
pub(crate) fn keep_grouping(report: &Prose, steps: &mut [Vec<StepFindings>]) {
    let year = report.year.map(|year| year.to_string()).unwrap_or_default();
    let has_it = |step: &StepFindings| step.groups.contains_key(&year);
    if steps.iter().flatten().any(has_it) {
        steps.iter_mut().flatten().for_each(|step| step.groups.retain(|grouping, _| *grouping == year));
    }
}

/// A section, whose verdicts are a family of their own; `None` for one whose base is no variant of
/// the run.
pub(crate) fn section_findings(
    run: &Run,
    workloads: &[WorkloadFindings],
    section: &Section,
    rules: Rules<'_>,
) -> Option<SectionFindings> {
    let names: Vec<&str> = run.manifest.variants.iter().map(|variant| variant.name.as_str()).collect();
    let wanted = |name: &&str| section.variants.is_empty() || section.variants.iter().any(|one| one == name);
    let variants: Vec<&str> = names.into_iter().filter(wanted).collect();
    let base = section.base.as_deref().or_else(|| section.variants.first().map(String::as_str));
    let base = base.unwrap_or(rules.base);
    if !variants.contains(&base) {
        return None;
    }
    let rules = Rules { base, again: rules.again.filter(|_| base == rules.base), ..rules };
    let of_setup = |workload: &&WorkloadFindings| {
        let setup = workload_and_setup(&workload.name).1.unwrap_or_default();
        section.setups.is_empty() || section.setups.iter().any(|name| name == setup)
    };
    let chosen: Vec<&WorkloadFindings> = workloads.iter().filter(of_setup).collect();
    let mut steps: Vec<Vec<StepFindings>> = chosen
        .iter()
        .map(|workload| {
            let fits = |step: &&StepFindings| {
                section.steps.is_empty()
                    || section.steps.iter().any(|pattern| pattern_fits(pattern, &step.name))
            };
            workload.steps.iter().filter(fits).map(|step| rebased(step, &variants, base)).collect()
        })
        .collect();
    let mut judged: Vec<&mut StepFindings> =
        steps.iter_mut().flatten().filter(|step| !step.is_warm_up).collect();
    verdicts::judge(&mut judged, rules);
    latency_verdicts::judge(&mut judged, rules);
    by_machine::fill(&mut judged, &by_machine::machines(run), base);
    let of_workload = |(workload, steps): (&&WorkloadFindings, Vec<StepFindings>)| {
        let info = run.manifest.workloads.iter().find(|info| info.name == workload.name)?;
        let mut found = workload_findings(info, rules, steps);
        for variant in found.steps.iter_mut().flat_map(|step| &mut step.variants) {
            variant.query_plans.clear();
            variant.runs.iter_mut().for_each(without_seconds);
        }
        Some(found)
    };
    let workloads: Vec<WorkloadFindings> = chosen.iter().zip(steps).filter_map(of_workload).collect();
    Some(SectionFindings {
        title: section.title.clone(),
        text: section.text.clone().unwrap_or_default(),
        base: base.to_owned(),
        workloads,
    })
}

/// Second by second, and statement by statement, they are with the run's own steps.
fn without_seconds(run: &mut StepRun) {
    run.seconds.clear();
    run.device_seconds.clear();
    for kind in &mut run.kinds {
        kind.buckets.clear();
        kind.statements.clear();
    }
}

/// A step with some of its variants, not yet judged against another base.
fn rebased(step: &StepFindings, variants: &[&str], base: &str) -> StepFindings {
    let base_runs = step.runs_of(base);
    let kept = step.variants.iter().filter(|variant| variants.contains(&variant.variant.as_str()));
    let compared = |variant: &VariantStep| {
        let is_base = variant.variant == base;
        let runs = &variant.runs;
        VariantStep {
            ratio: ratio(runs, base_runs),
            by_machine: None,
            zero_rates: ZeroRates::in_pairs(runs, base_runs),
            p99: if is_base { None } else { p99_ratio(runs, base_runs, &step.headline_kind) },
            relative: if is_base { None } else { relative_metrics(runs, base_runs) },
            cost_breakdown: None,
            context: crate::model::RatioContext::default(),
            verdict: None,
            decided: None,
            ..variant.clone()
        }
    };
    StepFindings { variants: kept.map(compared).collect(), effects: Vec::new(), ..step.clone() }
}

#[cfg(test)]
mod tests {
    use crate::analyse;
    use crate::fixtures::{cell, load_step, run};
    use crate::model::SectionFindings;

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
        run.manifest.plan_toml = PLAN.to_owned();
        let found = analyse(&run);
        assert_eq!(found.prose.title.as_deref(), Some("T"));
        let reported = |section: &SectionFindings| {
            let steps = section.workloads[0].steps.iter().map(|step| {
                let variants = step.variants.iter().map(|variant| {
                    let ratio =
                        variant.ratio.as_ref().map_or("-".to_owned(), |ratio| format!("{:.2}", ratio.value));
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
            own.ratio.as_ref().map(|ratio| ratio.value),
            Some(4.0),
            "the run's own base is the plan's"
        );
    }
}
