//! Sections of the report: the same executions of steps, with some of the variants, compared with
//! another base.

use dbdyno_model::{Report, Section};
use dbdyno_record::Manifest;

use crate::assemble::workloads::workload_findings;
use crate::compare::comparisons::Comparisons;
use crate::compare::pairs::{has_step, has_workload, variants_of};
use crate::model::{RatioContext, SectionFindings, StepFindings, StepRun, WorkloadFindings};

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

/// Where steps have several groupings, keeps only that of the year of the report that the plan
/// follows, if there is one.
pub(crate) fn keep_grouping(report: &Report, steps: &mut [Vec<StepFindings>]) {
    let year = report.year.map(|year| year.to_string()).unwrap_or_default();
    let has_it = |step: &StepFindings| step.groups.contains_key(&year);
    if steps.iter().flatten().any(has_it) {
        steps.iter_mut().flatten().for_each(|step| step.groups.retain(|grouping, _| *grouping == year));
    }
}

/// Removes figures per second and per statement, which the run's own steps have.
fn without_seconds(run: &mut StepRun) {
    run.seconds.clear();
    run.device_seconds.clear();
    for kind in &mut run.kinds {
        kind.buckets.clear();
        kind.statements.clear();
    }
}

/// A step with some of its variants. It does not have what belongs to the run's own comparison
/// only, and what the run's own steps show already.
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
    use crate::analyse;
    use crate::fixtures::{cell, load_step, plan, run};
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
        assert_eq!(own.to_base.value(), Some(4.0), "the run's own base is the plan's");
    }
}
