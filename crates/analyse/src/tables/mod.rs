//! The two long tables of a run. *Observations* are the values of metrics, and *comparisons* are
//! their ratios to a base. Both have the same keys. JSON, CSV, Parquet and OpenMetrics are
//! projections of them, and the views of metrics filter, group and pivot them.
//!
//! | workload | step | variant | block | metric | value |
//! |---|---|---|---|---|---|
//! | insert-benchmark | l.i0 | mariadb-11.4 | 1 | rate | 148213.5 |
//! | insert-benchmark | l.i0 | mariadb-11.4 | | response_p99_us | 6712 |

mod comparisons;
mod observations;

use std::collections::BTreeMap;

use dbdyno_record::workload_and_setup;
use serde::Serialize;

pub use comparisons::ComparisonRow;
pub use observations::{Observation, columns};

use crate::model::{Findings, RunSummary, StepFindings, VariantStep, WorkloadFindings};

/// What a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Key<'a> {
    /// Name of the workload without its set-up. It is empty for a published figure that was not
    /// measured here.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub workload: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<&'a str>,
    /// Name of the step. For a published figure it may be a group of steps with its statistic:
    /// `writes: average`.
    pub step: &'a str,
    /// Connections of all clients together; `None` where a published report does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    pub variant: &'a str,
    /// Number of the block; `None` for all valid blocks together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<u32>,
    /// The fleet's machine that measured the block; `None` in a run on one machine, and for all
    /// machines together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<&'a str>,
    pub source: Source,
}

impl Key<'_> {
    /// Says whether the row belongs to the run's own comparison, over all valid blocks and machines.
    pub fn is_whole(&self) -> bool {
        self.block.is_none() && self.machine.is_none() && self.source == Source::Run
    }
}

/// Says where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    Run,
    /// The run, compared with the base of one of the plan's sections, which is not the run's base.
    Section,
    /// The published report that the plan names. Its rows have the published names of the variants.
    Published,
    /// This run, in the way and under the names of the published report.
    AsPublished,
}

impl Source {
    /// Returns the name that tables for programs have for the source.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Section => "section",
            Self::Published => "published",
            Self::AsPublished => "as_published",
        }
    }
}

/// Both long tables.
#[derive(Debug, Clone, Default)]
pub struct Tables<'a> {
    pub observations: Vec<Observation<'a>>,
    pub comparisons: Vec<ComparisonRow<'a>>,
}

impl<'a> Tables<'a> {
    /// Returns the tables of a whole run. They have a section's comparison once, and not again
    /// where the section has the run's own base.
    pub fn of(findings: &'a Findings) -> Self {
        let mut all = Self::default();
        for workload in &findings.workloads {
            let own = Self::of_workload(&findings.run, &findings.run.base, workload);
            all.observations.extend(own.observations);
            all.comparisons.extend(own.comparisons);
        }
        comparisons::add_sections(&mut all.comparisons, findings);
        all.comparisons.extend(comparisons::published(findings));
        all
    }

    /// Returns the tables of one workload, compared with this base.
    pub fn of_workload(run: &'a RunSummary, base: &'a str, workload: &'a WorkloadFindings) -> Self {
        let machines = machines(run);
        let mut all = Self::default();
        for (step, variant) in
            workload.steps.iter().flat_map(|step| step.variants.iter().map(move |variant| (step, variant)))
        {
            let key = key(workload, step, variant);
            observations::over_blocks(&mut all.observations, key, step, variant);
            for run in &variant.runs {
                let key = of_block(key, run.block, &machines);
                observations::of_run(&mut all.observations, key, step, run);
            }
            let source = if base == run.base { Source::Run } else { Source::Section };
            let of = (Key { source, ..key }, base);
            comparisons::over_blocks(&mut all.comparisons, of, (step, variant));
            comparisons::of_blocks_and_machines(&mut all.comparisons, of, (step, variant), &machines);
        }
        all
    }

    /// Returns the published report's figures, and the run's figures that are compared with them.
    pub fn published(findings: &'a Findings) -> Self {
        Self { comparisons: comparisons::published(findings).collect(), ..Self::default() }
    }

    /// Returns the tables without single blocks and machines, and without steps that are not
    /// compared.
    pub fn over_blocks(base: &'a str, workload: &'a WorkloadFindings) -> Self {
        let mut all = Self::default();
        for step in workload.judged_steps() {
            for variant in &step.variants {
                let key = key(workload, step, variant);
                observations::over_blocks(&mut all.observations, key, step, variant);
                comparisons::over_blocks(&mut all.comparisons, (key, base), (step, variant));
            }
        }
        all
    }
}

/// Returns the name of a step's headline. More is better for a rate, and less for a time.
fn headline(step: &StepFindings) -> &'static str {
    if step.less_is_better { "seconds" } else { "rate" }
}

/// The fleet's machine that measured each block, by the block's number.
type Machines<'a> = BTreeMap<u32, &'a str>;

fn machines(run: &RunSummary) -> Machines<'_> {
    run.machines
        .iter()
        .flat_map(|(name, blocks)| blocks.iter().map(move |block| (*block, name.as_str())))
        .collect()
}

fn key<'a>(workload: &'a WorkloadFindings, step: &'a StepFindings, variant: &'a VariantStep) -> Key<'a> {
    let (name, setup) = workload_and_setup(&workload.name);
    Key {
        workload: name,
        setup,
        step: &step.name,
        connections: Some(step.connections),
        variant: &variant.variant,
        block: None,
        machine: None,
        source: Source::Run,
    }
}

fn of_block<'a>(key: Key<'a>, block: u32, machines: &Machines<'a>) -> Key<'a> {
    Key { block: Some(block), machine: machines.get(&block).copied(), ..key }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::analyse;
    use crate::fixtures::{cell, load_step, plan, run};
    use crate::model::Validity;

    fn found() -> Findings {
        let cells = (1..=3).flat_map(|block| {
            [("a", 1_000), ("b", 2_000)]
                .map(|(name, rate)| cell(block, name, vec![load_step(rate * u64::from(block))]))
        });
        let mut run = run(&["a", "b"], 3, cells.collect());
        let failed = &mut run.cells[5].steps[0];
        failed.events.push(dbdyno_record::StepEvent::Invalid { reason: "x".to_owned() });
        run.manifest.plan = plan(
            "[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\n[[section]]\ntitle = 'Back'\nbase = 'b'\n[[section]]\ntitle = 'Again'\nbase = 'b'",
        );
        analyse(&run)
    }

    #[test]
    fn a_key_has_each_metric_once() {
        let findings = found();
        let tables = Tables::of(&findings);
        let of_value = |one: &Observation<'_>| format!("{:?} {}", one.key, one.metric);
        let of_ratio = |one: &ComparisonRow<'_>| format!("{:?} {} {}", one.key, one.metric, one.base);
        let values: BTreeSet<String> = tables.observations.iter().map(of_value).collect();
        let ratios: BTreeSet<String> = tables.comparisons.iter().map(of_ratio).collect();
        assert_eq!((values.len(), ratios.len()), (tables.observations.len(), tables.comparisons.len()));
    }

    #[test]
    fn a_run_that_must_not_be_used_has_its_values_and_says_so() {
        let findings = found();
        let tables = Tables::of(&findings);
        let rate = |block| {
            let is_asked = |one: &&Observation<'_>| {
                one.key.variant == "b" && one.key.step == "l.i0" && one.key.block == block
            };
            tables
                .observations
                .iter()
                .filter(is_asked)
                .find(|one| one.metric == "rate")
                .expect("each has one")
        };
        assert_eq!(rate(Some(1)).validity, Some(&Validity::Valid));
        assert!(matches!(rate(Some(3)).validity, Some(Validity::Invalid { .. })));
        assert_eq!((rate(Some(2)).value, rate(None).value, rate(None).validity), (4_000.0, 3_000.0, None));
    }

    #[test]
    fn a_ratio_has_its_blocks_and_a_section_adds_its_own_base_once() {
        let findings = found();
        let tables = Tables::of(&findings);
        let rates = tables.comparisons.iter().filter(|one| one.metric == "rate" && one.key.step == "l.i0");
        let text = |one: &ComparisonRow<'_>| {
            format!("{} {:?} to {}: {:.2}", one.key.variant, one.key.block, one.base, one.ratio.unwrap())
        };
        let rates: Vec<String> = rates.filter(|one| one.key.variant != one.base).map(text).collect();
        insta::assert_snapshot!(rates.join("\n"), @"
        b None to a: 2.00
        b Some(1) to a: 2.00
        b Some(2) to a: 2.00
        a None to b: 0.50
        a Some(1) to b: 0.50
        a Some(2) to b: 0.50
        ");
    }

    #[test]
    fn a_ratio_of_a_time_that_was_cut_off_is_a_bound_in_its_block_and_over_all() {
        let mut findings = found();
        let step = &mut findings.workloads[0].steps[0];
        step.less_is_better = true;
        step.variants[1].runs[0].cut_off = true;
        let ratio = crate::ratio_of_runs(&step.variants[1].runs, &step.variants[0].runs);
        let bounds = crate::compare::ratio::block_bounds(&step.variants[1].runs, &step.variants[0].runs);
        (step.variants[1].to_base.ratio, step.variants[1].to_base.block_bounds) = (ratio, bounds);
        let tables = Tables::of_workload(&findings.run, "a", &findings.workloads[0]);
        let of = tables.comparisons.iter().filter(|one| one.metric == "seconds");
        let bounds: Vec<_> = of.map(|one| (one.key.block, one.bound)).collect();
        let is_more = Some(crate::model::Bound::MoreThan);
        assert_eq!(bounds, [(None, is_more), (Some(1), is_more), (Some(2), None)]);
    }
}
