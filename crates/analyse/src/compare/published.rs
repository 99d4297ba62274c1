//! Published figures next to the measured ones: each in the interval, in the same direction, or
//! against it.

use std::collections::BTreeMap;

use dbdyno_record::{Manifest, workload_and_setup};
use serde::Deserialize;

use crate::compare::latency_verdicts::p99_us;
use crate::compare::margins::{Margins, fits};
use crate::compare::ratio::{interval_of_blocks, of_blocks};
use crate::compare::sweep::Rung;
use crate::model::runs::valid;
use crate::model::{
    Agreement, CONFIDENCE, FindingSeen, PublishedComparison, PublishedRow, Quantity, Seen, StepFindings,
    StepRun, WorkloadFindings,
};
use crate::statistics::Interval;
use crate::statistics::describe;
use crate::statistics::student::Estimate;

/// A published ratio has two decimals: half of the last one.
const ROUNDED: f64 = 0.005;

/// The plan's table `[report]` and the names of its variants, as far as published figures need
/// them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PlanText {
    report: ReportText,
    variant: Vec<VariantText>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReportText {
    published: Option<Figures>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct VariantText {
    name: String,
    published: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Figures {
    title: String,
    author: String,
    year: u32,
    sponsor: Option<String>,
    machine: String,
    figures: Vec<OfSteps>,
    groups: Vec<OfGroups>,
    findings: Vec<Finding>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OfSteps {
    base: String,
    variant: String,
    setup: Option<String>,
    quantity: Quantity,
    values: BTreeMap<String, f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OfGroups {
    grouping: String,
    base: String,
    variant: String,
    setup: Option<String>,
    #[serde(flatten)]
    statistics: BTreeMap<String, BTreeMap<String, f64>>,
}

#[derive(Debug, Deserialize)]
struct Finding {
    says: String,
    base: String,
    variant: String,
    #[serde(default)]
    setup: Option<String>,
    steps: Vec<String>,
    #[serde(default)]
    quantity: Quantity,
    is: Relation,
    /// What the ratio is above, below or the same as.
    #[serde(default = "one")]
    than: f64,
}

fn one() -> f64 {
    1.0
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Relation {
    Above,
    Below,
    Same,
}

/// Statistics of groups in the order of published tables.
const STATISTICS: [&str; 5] = ["average", "median", "min", "max", "stddev"];

/// The run's steps, with the plan's names of variants by their published ones.
struct RunFigures<'a> {
    workloads: &'a [WorkloadFindings],
    names: BTreeMap<String, String>,
    margins: Margins<'a>,
}

/// A ratio that was measured.
#[derive(Debug, Clone, Copy)]
struct Ratio {
    value: f64,
    interval: Option<Interval>,
    blocks: usize,
}

/// The published report that the plan names, compared with the run; `None` for a plan that names
/// none.
pub(crate) fn published(manifest: &Manifest, workloads: &[WorkloadFindings]) -> Option<PublishedComparison> {
    let plan: PlanText = toml::from_str(&manifest.plan_toml).ok()?;
    let figures = plan.report.published?;
    let named =
        |variant: VariantText| (variant.published.unwrap_or_else(|| variant.name.clone()), variant.name);
    let measured = RunFigures {
        workloads,
        names: plan.variant.into_iter().map(named).collect(),
        margins: Margins::planned(manifest),
    };
    let of_steps = figures.figures.iter().flat_map(|one| measured.rows_of_steps(one));
    let of_groups = figures.groups.iter().flat_map(|one| measured.rows_of_groups(one));
    Some(PublishedComparison {
        rows: of_steps.chain(of_groups).collect(),
        findings: figures.findings.iter().map(|finding| measured.look_for(finding)).collect(),
        title: figures.title,
        author: figures.author,
        year: figures.year,
        sponsor: figures.sponsor,
        machine: figures.machine,
    })
}

impl RunFigures<'_> {
    fn rows_of_steps(&self, figures: &OfSteps) -> Vec<PublishedRow> {
        let row = |(name, published): (&String, &f64)| {
            let step = self.steps(figures.setup.as_deref()).find(|step| is_named(step, name));
            let pair = (figures.base.as_str(), figures.variant.as_str());
            let measured = step.and_then(|step| self.ratio(step, pair, figures.quantity));
            let margin = step.map_or(self.margins.general, |step| step.margin);
            self.row(
                figures.setup.as_ref(),
                pair,
                name.clone(),
                figures.quantity,
                (*published, measured, margin),
            )
        };
        figures.values.iter().map(row).collect()
    }

    fn rows_of_groups(&self, figures: &OfGroups) -> Vec<PublishedRow> {
        let pair = (figures.base.as_str(), figures.variant.as_str());
        let mut rows = Vec::new();
        let groups = figures.statistics.get("average").into_iter().flat_map(BTreeMap::keys);
        for group in groups {
            for statistic in STATISTICS {
                let Some(published) = figures.statistics.get(statistic).and_then(|all| all.get(group)) else {
                    continue;
                };
                let measured = self.group(figures, group, statistic);
                let subject = format!("{group}: {statistic}");
                let margin = self.margins.general;
                let values = (*published, measured, margin);
                let mut row = self.row(figures.setup.as_ref(), pair, subject, Quantity::Rate, values);
                // A spread has no direction.
                if statistic == "stddev" && row.agreement != Agreement::NotMeasured {
                    row.agreement = Agreement::Undecided;
                }
                rows.push(row);
            }
        }
        rows
    }

    fn row(
        &self,
        setup: Option<&String>,
        (base, variant): (&str, &str),
        subject: String,
        quantity: Quantity,
        (published, measured, margin): (f64, Option<Ratio>, f64),
    ) -> PublishedRow {
        PublishedRow {
            setup: setup.cloned(),
            base: base.to_owned(),
            variant: variant.to_owned(),
            subject,
            quantity,
            published,
            measured: measured.map(|ratio| ratio.value),
            interval: measured.and_then(|ratio| ratio.interval),
            blocks: measured.map_or(0, |ratio| ratio.blocks),
            agreement: agreement(published, measured, margin),
        }
    }

    /// Steps of the set-up; of all where none is named.
    fn steps<'s>(&'s self, setup: Option<&'s str>) -> impl Iterator<Item = &'s StepFindings> {
        let of_setup = move |workload: &&WorkloadFindings| {
            setup.is_none() || workload_and_setup(&workload.name).1 == setup
        };
        self.workloads.iter().filter(of_setup).flat_map(WorkloadFindings::judged_steps)
    }

    /// By block: the variant's figure ÷ the base's, where both are valid. `with_bounds`: also where
    /// a time limit cut off the variant, so that its ratio is more than this.
    fn blocks(
        &self,
        step: &StepFindings,
        (base, variant): (&str, &str),
        quantity: Quantity,
        with_bounds: bool,
    ) -> Vec<(u32, f64)> {
        let runs = |name: &str| step.variant(self.names.get(name)?).map(|found| found.runs.as_slice());
        let (Some(base), Some(new)) = (runs(base), runs(variant)) else { return Vec::new() };
        let of_block = |run: &StepRun| {
            let base = valid(base).find(|base| base.block == run.block)?;
            let of = |run| figure(run, quantity, step);
            let is_figure = !base.cut_off && (with_bounds || !run.cut_off);
            let ratio = is_figure.then_some(of(run)? / of(base)?)?;
            (ratio.is_finite() && ratio > 0.0).then_some((run.block, ratio))
        };
        valid(new).filter_map(of_block).collect()
    }

    fn ratio(&self, step: &StepFindings, pair: (&str, &str), quantity: Quantity) -> Option<Ratio> {
        ratio_of(self.blocks(step, pair, quantity, false))
    }

    /// The statistic over the steps of a group in each block, and its mean over the blocks.
    fn group(&self, figures: &OfGroups, group: &str, statistic: &str) -> Option<Ratio> {
        let is_member =
            |step: &&StepFindings| step.groups.get(&figures.grouping).is_some_and(|name| name == group);
        let pair = (figures.base.as_str(), figures.variant.as_str());
        let members: Vec<Vec<(u32, f64)>> = self
            .steps(figures.setup.as_deref())
            .filter(is_member)
            .map(|step| self.blocks(step, pair, Quantity::Rate, false))
            .collect();
        let of_block = |block: u32| {
            let ratios: Option<Vec<f64>> = members
                .iter()
                .map(|ratios| Some(ratios.iter().find(|(other, _)| *other == block)?.1))
                .collect();
            let all = describe::group(&ratios?)?;
            match statistic {
                "average" => Some(all.average),
                "median" => Some(all.median),
                "min" => Some(all.min),
                "max" => Some(all.max),
                _ => all.deviation,
            }
        };
        let blocks = members.first()?.iter().map(|(block, _)| *block);
        let values: Vec<f64> = blocks.filter_map(of_block).collect();
        let value = describe::mean(&values)?;
        let interval = Estimate::of_mean(&values).map(|estimate| estimate.interval(CONFIDENCE));
        Some(Ratio { value, interval, blocks: values.len() })
    }

    fn look_for(&self, finding: &Finding) -> FindingSeen {
        let [mut seen, mut not_seen, mut undecided] = [0; 3];
        let is_named = |pattern: &String, step: &StepFindings| {
            fits(pattern, &step.name) || fits(pattern, &test_of(step))
        };
        let is_about = |step: &&StepFindings| finding.steps.iter().any(|pattern| is_named(pattern, step));
        for step in self.steps(finding.setup.as_deref()).filter(is_about) {
            let pair = (finding.base.as_str(), finding.variant.as_str());
            let least = finding.quantity == Quantity::Seconds && matches!(finding.is, Relation::Above);
            let blocks = self.blocks(step, pair, finding.quantity, least);
            let is_bound = self.blocks(step, pair, finding.quantity, false).len() < blocks.len();
            let Some(ratio) = ratio_of(blocks) else { continue };
            match ratio.interval.and_then(|interval| holds(finding, interval, step.margin)) {
                Some(true) => seen += 1,
                Some(false) if !is_bound => not_seen += 1,
                _ => undecided += 1,
            }
        }
        FindingSeen {
            says: finding.says.clone(),
            seen: match (seen, not_seen, undecided) {
                (0, 0, 0) => Seen::CannotBeTried,
                _ if seen > not_seen + undecided => Seen::Seen,
                (seen, 1.., _) if not_seen >= seen => Seen::NotSeen,
                _ => Seen::Undecided,
            },
            steps_seen: seen,
            steps_not_seen: not_seen,
            steps_undecided: undecided,
        }
    }
}

fn ratio_of(blocks: Vec<(u32, f64)>) -> Option<Ratio> {
    let interval = interval_of_blocks(&blocks);
    let ratio = of_blocks(blocks)?;
    Some(Ratio { value: ratio.value, interval, blocks: ratio.blocks.len() })
}

/// The step's name; without its number of connections where it is a rung of a ladder.
fn test_of(step: &StepFindings) -> String {
    Rung::of(step).map_or_else(|| step.name.clone(), |rung| rung.test)
}

/// Of a ladder published figures are those of its lowest rung, which comes first.
fn is_named(step: &StepFindings, name: &str) -> bool {
    step.name == name || test_of(step) == name
}

fn figure(run: &StepRun, quantity: Quantity, step: &StepFindings) -> Option<f64> {
    let is_time = step.less_is_better;
    let inverse = (run.rate > 0.0).then(|| 1.0 / run.rate);
    match quantity {
        Quantity::Rate if is_time => inverse,
        Quantity::Seconds if !is_time => inverse,
        Quantity::Rate | Quantity::Seconds => Some(run.rate),
        Quantity::Cpu => run.efficiency.cpu_o,
        Quantity::ReadKb => run.efficiency.rkb_o,
        Quantity::P99 => p99_us(run, &step.headline_kind),
    }
}

/// Whether a ratio in `interval` is as the finding says; `None` where that cannot be said.
fn holds(finding: &Finding, interval: Interval, margin: f64) -> Option<bool> {
    let interval = Interval { low: interval.low / finding.than, high: interval.high / finding.than };
    let (low, high) = (1.0 - margin, 1.0 + margin);
    let (is_so, is_not) = match finding.is {
        Relation::Above => (interval.low > 1.0, interval.high < 1.0),
        Relation::Below => (interval.high < 1.0, interval.low > 1.0),
        Relation::Same => {
            (interval.low >= low && interval.high <= high, interval.low > high || interval.high < low)
        }
    };
    if is_so { Some(true) } else { is_not.then_some(false) }
}

fn agreement(published: f64, measured: Option<Ratio>, margin: f64) -> Agreement {
    let Some(Ratio { value, interval, .. }) = measured else { return Agreement::NotMeasured };
    let side = |ratio: f64| i8::from(ratio > 1.0 + margin) - i8::from(ratio < 1.0 - margin);
    let Some(Interval { low, high }) = interval else {
        return if side(value) == side(published) { Agreement::SameDirection } else { Agreement::Undecided };
    };
    if low - ROUNDED <= published && published <= high + ROUNDED {
        return Agreement::Agrees;
    }
    let reaches = match side(published) {
        1 => high > 1.0 + margin,
        -1 => low < 1.0 - margin,
        _ => low <= 1.0 + margin && high >= 1.0 - margin,
    };
    match (side(value) == side(published), reaches) {
        (true, _) => Agreement::SameDirection,
        (false, true) => Agreement::Undecided,
        (false, false) => Agreement::Contradicts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use crate::fixtures::{cell, load_step, run};

    /// Rungs of a ladder in which `b` has so many times the rate of `a`.
    #[test]
    fn a_finding_is_seen_where_most_of_its_steps_show_it_and_may_name_rungs() {
        let rung = |connections: u32, rate| {
            let mut step = load_step(rate);
            step.name = format!("ro.c{connections}");
            step.spec.name = step.name.clone();
            step.spec.clients = connections;
            step
        };
        let seen = |steps: &str, times: [u64; 3]| {
            let of = |times: [u64; 3]| {
                let rungs = [1, 2, 4].into_iter().zip(times);
                rungs.map(|(connections, times)| rung(connections, 1_000 * times)).collect::<Vec<_>>()
            };
            let cells = (1..=3).flat_map(|block| [cell(block, "a", of([2; 3])), cell(block, "b", of(times))]);
            let mut run = run(&["a", "b"], 3, cells.collect());
            let finding = format!("says = 's'\nbase = 'a'\nvariant = 'b'\nsteps = ['{steps}']\nis = 'above'");
            run.manifest.plan_toml = format!(
                "[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\n[report.published]\n[[report.published.findings]]\n{finding}"
            );
            analyse(&run).published.expect("it names some").findings[0].seen
        };
        assert_eq!(seen("ro", [4, 4, 1]), Seen::Seen);
        assert_eq!(seen("ro", [4, 1, 2]), Seen::NotSeen);
        assert_eq!(seen("ro", [4, 2, 2]), Seen::Undecided);
        assert_eq!(seen("ro.c4", [1, 1, 4]), Seen::Seen);
    }

    const PLAN: &str = r#"
[[variant]]
name = "a"
published = "old"
[[variant]]
name = "b"
[report.published]
title = "T"
author = "A"
year = 2024
machine = "M"
[[report.published.figures]]
base = "old"
variant = "b"
values = { "l.i0" = 0.50 }
[[report.published.figures]]
base = "b"
variant = "old"
values = { "l.i0" = 1.9, "l.i1" = 1.0 }
[[report.published.figures]]
base = "old"
variant = "c"
values = { "l.i0" = 1.0 }
[[report.published.groups]]
grouping = "2024"
base = "old"
variant = "b"
average = { writes = 1.40 }
median = { writes = 0.4 }
[[report.published.findings]]
says = "b is slower"
base = "old"
variant = "b"
steps = ["l.*"]
is = "below"
[[report.published.findings]]
says = "b is faster"
base = "old"
variant = "b"
steps = ["l.*"]
is = "above"
[[report.published.findings]]
says = "b keeps half"
base = "old"
variant = "b"
steps = ["l.i0"]
is = "above"
than = 0.45
[[report.published.findings]]
says = "c is faster"
base = "old"
variant = "c"
steps = ["l.*"]
is = "above"
"#;

    #[test]
    fn published_figures_are_compared_with_their_own_base_and_findings_are_looked_for() {
        let step = |rate| {
            let mut step = load_step(rate);
            step.spec.groups = [("2024".to_owned(), "writes".to_owned())].into();
            step
        };
        let rates = [(1, 1_000, 500), (2, 1_010, 500), (3, 990, 500)];
        let cells = rates
            .iter()
            .flat_map(|(block, a, b)| [cell(*block, "a", vec![step(*a)]), cell(*block, "b", vec![step(*b)])]);
        let mut run = run(&["a", "b"], 3, cells.collect());
        run.manifest.plan_toml = PLAN.to_owned();
        let found = analyse(&run).published.expect("the plan names some");
        let row = |row: &PublishedRow| {
            let measured = row.measured.map_or("-".to_owned(), |value| format!("{value:.2}"));
            format!(
                "{} {} {}: {} {measured} {:?}",
                row.base, row.variant, row.subject, row.published, row.agreement
            )
        };
        let finding = |one: &FindingSeen| format!("{}: {:?}", one.says, one.seen);
        let lines: Vec<String> =
            found.rows.iter().map(row).chain(found.findings.iter().map(finding)).collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        old b l.i0: 0.5 0.50 Agrees
        b old l.i0: 1.9 2.00 SameDirection
        b old l.i1: 1 - NotMeasured
        old c l.i0: 1 - NotMeasured
        old b writes: average: 1.4 0.50 Contradicts
        old b writes: median: 0.4 0.50 SameDirection
        b is slower: Seen
        b is faster: NotSeen
        b keeps half: Seen
        c is faster: CannotBeTried
        ");
    }
}
