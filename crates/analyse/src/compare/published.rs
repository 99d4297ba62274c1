//! Compares published figures with the measured ones. A measured figure agrees with the published
//! one, contradicts it, or is too uncertain for either. Published findings are looked for in the
//! run's own comparisons.

use std::collections::BTreeMap;

use dbdyno_model::{
    GroupFigures, PublishedFigures, PublishedFinding, Quantity, Relation, StepFigures, Variant,
};
use dbdyno_record::{Manifest, workload_and_setup};

use crate::compare::comparisons::Comparisons;
use crate::compare::pairs::{PublishedPair, fits};
use crate::compare::ratio::{GroupRatios, interval_of_blocks, ratio_of_blocks};
use crate::model::{
    Agreement, CLOSE, FindingSeen, PublishedComparison, PublishedRow, Seen, StepComparison, StepFindings,
    StepRun, Verdict, WorkloadFindings, steps,
};
use crate::statistics::Interval;
use crate::statistics::describe::{Group as Figures, GroupFigure};

/// Largest rounding error of a published ratio. Published ratios have two decimals.
const ROUNDED: f64 = 0.005;

/// The published report that a plan names.
pub(crate) struct Published<'a> {
    figures: &'a PublishedFigures,
    /// The plan's names of the variants, by their published names.
    names: BTreeMap<String, String>,
}

/// A step in a run, with its workload's name.
type StepOfWorkload<'a> = (&'a str, &'a StepFindings);

/// The run's own figures, with which the published ones are compared.
struct RunFigures<'a> {
    names: &'a BTreeMap<String, String>,
    workloads: &'a [WorkloadFindings],
    comparisons: &'a Comparisons,
}

/// A ratio that was measured.
#[derive(Debug, Clone, Copy)]
struct Measured {
    value: f64,
    interval: Option<Interval>,
    blocks: usize,
}

/// What a single step shows about a finding. [`Seen`] is the result over all of its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Seen,
    NotSeen,
    Undecided,
    /// Both variants ran the step, and no block is valid on both sides.
    Invalid,
}

impl<'a> Published<'a> {
    /// Reads the report. The result is `None` for a plan that names none.
    pub(crate) fn read(manifest: &'a Manifest) -> Option<Self> {
        let Some(dbdyno_model::Published::Figures(figures)) = &manifest.plan.report.published else {
            return None;
        };
        let named = |variant: &Variant| {
            (variant.published.clone().unwrap_or_else(|| variant.name.clone()), variant.name.clone())
        };
        let names = manifest.plan.variants.iter().map(named).collect();
        Some(Self { figures, names })
    }

    /// Returns the pairs of variants that the report compares, under the plan's names.
    pub(crate) fn pairs(&self) -> Vec<PublishedPair> {
        let of_steps = self.figures.figures.iter().map(|one| (&one.setup, &one.base, &one.variant));
        let of_groups = self.figures.groups.iter().map(|one| (&one.setup, &one.base, &one.variant));
        let findings = self.figures.findings.iter().map(|one| (&one.setup, &one.base, &one.variant));
        let pair = |(setup, base, variant): (&Option<String>, &String, &String)| {
            let named = |name: &String| self.names.get(name).cloned();
            Some(PublishedPair { setup: setup.clone(), base: named(base)?, variant: named(variant)? })
        };
        of_steps.chain(of_groups).chain(findings).filter_map(pair).collect()
    }

    pub(crate) fn compared(
        self,
        workloads: &[WorkloadFindings],
        comparisons: &Comparisons,
    ) -> PublishedComparison {
        let Self { figures, names } = self;
        let run = RunFigures { names: &names, workloads, comparisons };
        let of_steps = figures.figures.iter().flat_map(|one| run.rows_of_steps(one));
        let of_groups = figures.groups.iter().flat_map(|one| run.rows_of_groups(one));
        PublishedComparison {
            rows: of_steps.chain(of_groups).collect(),
            findings: figures.findings.iter().map(|finding| run.look_for(finding)).collect(),
            title: figures.title.clone(),
            author: figures.author.clone(),
            year: figures.year,
            sponsor: figures.sponsor.clone(),
            machine: figures.machine.clone(),
        }
    }
}

impl RunFigures<'_> {
    fn rows_of_steps(&self, figures: &StepFigures) -> Vec<PublishedRow> {
        let pair = (figures.base.as_str(), figures.variant.as_str());
        let row = |(name, published): (&String, &f64)| {
            let place = self.steps(figures.setup.as_deref()).find(|(_, step)| is_named(step, name));
            let measured = place.and_then(|place| self.ratio(place, pair, figures.quantity));
            let subject = (name.clone(), figures.quantity);
            let row = published_row(figures.setup.as_ref(), pair, subject, (*published, measured));
            PublishedRow { workload: place.map(|(workload, _)| workload.to_owned()), ..row }
        };
        figures.values.iter().map(row).collect()
    }

    fn rows_of_groups(&self, figures: &GroupFigures) -> Vec<PublishedRow> {
        let pair = (figures.base.as_str(), figures.variant.as_str());
        let mut rows = Vec::new();
        let GroupFigures { average, median, min, max, stddev, .. } = figures;
        for group in average.keys() {
            let (workload, ratios) = self.group(figures, group).unzip();
            // These are in the order of `Figures::PUBLISHED`. Its entries are a statistic's name
            // and the function that picks it from a group's summary.
            let of_values = [average, median, min, max, stddev].map(|values| values.get(group));
            for (published, statistic) in of_values.into_iter().zip(Figures::PUBLISHED) {
                let Some(published) = published else { continue };
                let measured = ratios.as_ref().and_then(|ratios| of_group(ratios, statistic));
                let subject = (format!("{group}: {}", statistic.0), Quantity::Rate);
                let row = published_row(figures.setup.as_ref(), pair, subject, (*published, measured));
                rows.push(PublishedRow { workload: workload.flatten().map(str::to_owned), ..row });
            }
        }
        rows
    }

    /// Returns the set-up's steps, or the steps of all set-ups where none is named. Steps that only
    /// warm up are left out.
    fn steps<'s>(&'s self, setup: Option<&'s str>) -> impl Iterator<Item = StepOfWorkload<'s>> {
        let of_setup = move |workload: &&WorkloadFindings| {
            setup.is_none() || workload_and_setup(&workload.name).1 == setup
        };
        let of_workload = |workload: &'s WorkloadFindings| {
            workload.judged_steps().map(move |step| (workload.name.as_str(), step))
        };
        self.workloads.iter().filter(of_setup).flat_map(of_workload)
    }

    /// Returns the comparison of two variants, given by their published names.
    fn against(
        &self,
        (workload, step): StepOfWorkload<'_>,
        (base, variant): (&str, &str),
    ) -> Option<&StepComparison> {
        let (base, variant) = (self.names.get(base)?, self.names.get(variant)?);
        self.comparisons.find(workload, &step.name, base, variant)
    }

    fn ratio(&self, place: StepOfWorkload<'_>, pair: (&str, &str), quantity: Quantity) -> Option<Measured> {
        let (_, step) = place;
        let against = self.against(place, pair)?;
        let is_time = step.less_is_better;
        match quantity {
            Quantity::Rate if is_time => Some(inverse(of_ratio(against.ratio.as_ref()?)?)),
            Quantity::Seconds if !is_time => Some(inverse(of_ratio(against.ratio.as_ref()?)?)),
            Quantity::Rate | Quantity::Seconds => of_ratio(against.ratio.as_ref()?),
            Quantity::P99 => of_ratio(&against.p99.as_ref()?.ratio),
            Quantity::Cpu => self.cost(step, pair, |run| run.efficiency.cpu_o),
            Quantity::ReadKb => self.cost(step, pair, |run| run.efficiency.rkb_o),
        }
    }

    /// Returns the measured ratio of a cost, such as CPU time per operation. Costs have ratios and
    /// no verdict.
    fn cost(
        &self,
        step: &StepFindings,
        (base, variant): (&str, &str),
        figure: fn(&StepRun) -> Option<f64>,
    ) -> Option<Measured> {
        let (base, new) = (step.runs_of(self.names.get(base)?), step.runs_of(self.names.get(variant)?));
        let of_block = |(run, base): (&StepRun, &StepRun)| {
            let ratio = figure(run)? / figure(base)?;
            (ratio.is_finite() && ratio > 0.0).then_some((run.block, ratio))
        };
        let blocks: Vec<(u32, f64)> = steps::pairs(new, base).filter_map(of_block).collect();
        let interval = interval_of_blocks(&blocks);
        let ratio = ratio_of_blocks(blocks)?;
        Some(Measured { value: ratio.value, interval, blocks: ratio.blocks.len() })
    }

    /// Returns the workload of the group's first step, and the group's ratios as ratios of rates.
    /// The group has the same steps here as in the report's table of groups. Steps in a sweep count
    /// only at the first concurrency level, because published figures are for that level.
    fn group<'s>(
        &'s self,
        figures: &'s GroupFigures,
        group: &str,
    ) -> Option<(Option<&'s str>, GroupRatios<'s>)> {
        let pair = (figures.base.as_str(), figures.variant.as_str());
        let variant = self.names.get(pair.1)?;
        let is_member =
            |step: &StepFindings| step.groups.get(&figures.grouping).is_some_and(|name| name == group);
        let members: Vec<StepOfWorkload<'s>> =
            self.steps(figures.setup.as_deref()).filter(|(_, step)| is_member(step)).collect();
        let workload = members.first().map(|(workload, _)| *workload);
        let first = members.iter().find_map(|(_, step)| step.sweep_connections());
        let is_first = |step: &StepFindings| step.sweep_connections().is_none_or(|own| Some(own) == first);
        let members = members.into_iter().filter(|(_, step)| is_first(step));
        let members = members.map(|place| (place.1, self.against(place, pair)));
        Some((workload, GroupRatios::of(variant, members).into_speeds()))
    }

    fn look_for(&self, finding: &PublishedFinding) -> FindingSeen {
        let fits_step = |pattern: &String, step: &StepFindings| {
            fits(pattern, &step.name) || fits(pattern, &test_of(step))
        };
        let is_about = |step: &StepFindings| finding.steps.iter().any(|pattern| fits_step(pattern, step));
        let all: Vec<Shown> = self
            .steps(finding.setup.as_deref())
            .filter(|(_, step)| is_about(step))
            .filter_map(|place| self.shown(place, finding))
            .collect();
        let count = |shown: Shown| all.iter().filter(|one| **one == shown).count();
        let [seen, not_seen, undecided, invalid] =
            [Shown::Seen, Shown::NotSeen, Shown::Undecided, Shown::Invalid].map(count);
        FindingSeen {
            says: finding.says.clone(),
            seen: match (seen, not_seen, undecided) {
                (0, 0, 0) if invalid > 0 => Seen::Invalid,
                (0, 0, 0) => Seen::CannotBeTried,
                _ if seen > not_seen + undecided => Seen::Seen,
                (seen, 1.., _) if not_seen >= seen => Seen::NotSeen,
                _ => Seen::Undecided,
            },
            steps_seen: seen,
            steps_not_seen: not_seen,
            steps_undecided: undecided,
            steps_invalid: invalid,
        }
    }

    /// Returns what a step shows about a finding, or `None` where one of the two variants did not
    /// run. The comparison's verdict decides. Where the finding has its own threshold, or is about
    /// a cost, which has no verdict, the ratio's interval decides.
    fn shown(&self, place: StepOfWorkload<'_>, finding: &PublishedFinding) -> Option<Shown> {
        let (_, step) = place;
        let pair = (finding.base.as_str(), finding.variant.as_str());
        let ran = |name: &str| self.names.get(name).is_some_and(|name| !step.runs_of(name).is_empty());
        if !ran(pair.0) || !ran(pair.1) {
            return None;
        }
        let against = self.against(place, pair)?;
        let verdict = match finding.quantity {
            _ if finding.than.is_some_and(|than| than != 1.0) => None,
            Quantity::Rate | Quantity::Seconds => Some(against.verdict),
            Quantity::P99 => Some(against.p99.as_ref().and_then(|p99| p99.verdict)),
            Quantity::Cpu | Quantity::ReadKb => None,
        };
        // `zero_rates.blocks` counts all blocks in which both variants are valid, whatever their
        // rates.
        if against.zero_rates.blocks == 0 {
            return Some(Shown::Invalid);
        }
        Some(match verdict {
            // More is faster for a rate and slower for a time.
            Some(verdict) => by_verdict(finding.is, verdict, finding.quantity == Quantity::Rate),
            None => {
                let interval = self.ratio(place, pair, finding.quantity).and_then(|ratio| ratio.interval);
                match interval.and_then(|interval| holds(finding, interval, step.margin)) {
                    Some(true) => Shown::Seen,
                    Some(false) => Shown::NotSeen,
                    None => Shown::Undecided,
                }
            }
        })
    }
}

/// Returns a statistic over a group's steps, which `figure` picks from the group's summary. Average
/// and median have an interval.
fn of_group(ratios: &GroupRatios<'_>, (statistic, figure): (&str, GroupFigure)) -> Option<Measured> {
    // The others have none: the lowest ratios of two blocks may come from different steps, as may
    // the highest, and a standard deviation does not say which variant is faster.
    let has_interval = matches!(statistic, "average" | "median");
    let interval = has_interval.then(|| ratios.interval_of(figure)).flatten();
    Some(Measured { value: figure(&ratios.figures()?)?, interval, blocks: ratios.blocks().len() })
}

fn published_row(
    setup: Option<&String>,
    (base, variant): (&str, &str),
    (subject, quantity): (String, Quantity),
    (published, measured): (f64, Option<Measured>),
) -> PublishedRow {
    PublishedRow {
        workload: None,
        setup: setup.cloned(),
        base: base.to_owned(),
        variant: variant.to_owned(),
        subject,
        quantity,
        published,
        measured: measured.map(|ratio| ratio.value),
        interval: measured.and_then(|ratio| ratio.interval),
        blocks: measured.map_or(0, |ratio| ratio.blocks),
        agreement: agreement(published, measured),
    }
}

/// Returns the measured ratio, or `None` where it is only a bound.
fn of_ratio(ratio: &crate::model::Ratio) -> Option<Measured> {
    let measured = Measured { value: ratio.value, interval: ratio.interval(), blocks: ratio.blocks.len() };
    ratio.bound.is_none().then_some(measured)
}

fn inverse(ratio: Measured) -> Measured {
    let turned = |Interval { low, high }| Interval { low: 1.0 / high, high: 1.0 / low };
    Measured { value: 1.0 / ratio.value, interval: ratio.interval.map(turned), ..ratio }
}

fn by_verdict(is: Relation, verdict: Option<Verdict>, more_is_faster: bool) -> Shown {
    let above = if more_is_faster { Verdict::Faster } else { Verdict::Slower };
    match (is, verdict) {
        (Relation::Same, Some(Verdict::Same)) => Shown::Seen,
        (Relation::Same, Some(Verdict::Faster | Verdict::Slower)) => Shown::NotSeen,
        (Relation::Above | Relation::Below, Some(Verdict::Same)) => Shown::NotSeen,
        (Relation::Above, Some(word @ (Verdict::Faster | Verdict::Slower))) if word == above => Shown::Seen,
        (Relation::Below, Some(word @ (Verdict::Faster | Verdict::Slower))) if word != above => Shown::Seen,
        (Relation::Above | Relation::Below, Some(Verdict::Faster | Verdict::Slower)) => Shown::NotSeen,
        _ => Shown::Undecided,
    }
}

/// Returns the step's name. For a step in a sweep, the name is without its number of connections.
fn test_of(step: &StepFindings) -> String {
    step.test_of_sweep().unwrap_or_else(|| step.name.clone())
}

/// Returns whether a published figure with this name may be about the step. The name of a sweep
/// fits each of its steps, and the caller takes the first one that fits.
fn is_named(step: &StepFindings, name: &str) -> bool {
    step.name == name || test_of(step) == name
}

/// Returns whether a ratio in `interval` is as the finding says, or `None` where this cannot be
/// decided.
fn holds(finding: &PublishedFinding, interval: Interval, margin: f64) -> Option<bool> {
    let than = finding.than.unwrap_or(1.0);
    let interval = Interval { low: interval.low / than, high: interval.high / than };
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

/// Returns whether the two agree. They do if the measured interval is within [`CLOSE`] of the
/// published figure.
fn agreement(published: f64, measured: Option<Measured>) -> Agreement {
    let Some(Measured { interval, .. }) = measured else { return Agreement::NotMeasured };
    let (low, high) = (published / (1.0 + CLOSE) - ROUNDED, published * (1.0 + CLOSE) + ROUNDED);
    match interval {
        Some(interval) if low <= interval.low && interval.high <= high => Agreement::Agrees,
        Some(interval) if interval.high < low || high < interval.low => Agreement::Contradicts,
        _ => Agreement::TooWide,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use crate::fixtures::{cell, load_step, plan, run};

    /// Makes a run with a sweep over 1, 2 and 4 connections and with a scan. In the sweep,
    /// `thousands` has `b`'s rates in thousands of rows per second, and `a` always has 2,000 rows
    /// per second. The scan has one connection, and the same rate in both.
    fn sweep(thousands: [u64; 3]) -> dbdyno_record::Run {
        let step = |name: String, connections: u32, rate| {
            let mut step = load_step(rate);
            (step.name, step.spec.name) = (name.clone(), name);
            step.spec.clients = connections;
            step.spec.groups.insert("2024".to_owned(), "writes".to_owned());
            step
        };
        let of = |thousands: [u64; 3]| {
            let steps = [1, 2, 4].into_iter().zip(thousands);
            let steps = steps.map(|(number, rate)| step(format!("ro.c{number}"), number, 1_000 * rate));
            steps.chain([step("scan".to_owned(), 1, 1_000)]).collect::<Vec<_>>()
        };
        let cells = (1..=3).flat_map(|block| [cell(block, "a", of([2; 3])), cell(block, "b", of(thousands))]);
        run(&["a", "b"], 3, cells.collect())
    }

    #[test]
    fn a_published_group_counts_the_first_step_of_a_sweep_and_all_steps_outside_sweeps() {
        let mut run = sweep([4, 8, 16]);
        run.manifest.plan = plan(PLAN);
        let rows = analyse(&run).published.expect("the plan names some").rows;
        let average = rows.iter().find(|row| row.subject == "writes: average").expect("the plan has it");
        assert_eq!(
            average.measured,
            Some(1.5),
            "ratio 2 at the first number of connections, ratio 1 for the scan"
        );
    }

    #[test]
    fn a_finding_is_seen_where_most_of_its_steps_show_it_and_may_name_one_step_of_a_sweep() {
        let seen = |steps: &str, thousands: [u64; 3]| {
            let mut run = sweep(thousands);
            let finding = format!("says = 's'\nbase = 'a'\nvariant = 'b'\nsteps = ['{steps}']\nis = 'above'");
            run.manifest.plan = plan(&format!(
                "[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\n[report.published]\ntitle = 'T'\nauthor = 'A'\nyear = 2024\n\
                     machine = 'M'\n[[report.published.findings]]\n{finding}"
            ));
            analyse(&run).published.expect("the plan names some").findings[0].seen
        };
        assert_eq!(seen("ro", [4, 4, 1]), Seen::Seen);
        assert_eq!(seen("ro", [4, 1, 2]), Seen::NotSeen);
        assert_eq!(seen("ro", [4, 2, 2]), Seen::NotSeen, "the same in two steps");
        assert_eq!(seen("ro.c4", [1, 1, 4]), Seen::Seen);
    }

    /// Returns the comparison for two variants in three blocks. The rate of `b` is that of `a`
    /// times these parts.
    fn published(parts: [f64; 3], makes_invalid: bool) -> PublishedComparison {
        let cells = (1..).zip(parts).flat_map(|(block, part)| {
            let mut of_b = load_step((100_000.0 * part) as u64);
            if makes_invalid {
                of_b.events.push(dbdyno_record::StepEvent::Invalid { reason: "x".to_owned() });
            }
            [cell(block, "a", vec![load_step(100_000)]), cell(block, "b", vec![of_b])]
        });
        let mut run = run(&["a", "b"], 3, cells.collect());
        run.manifest.plan = plan(PLAN);
        analyse(&run).published.expect("the plan names some")
    }

    #[test]
    fn a_figure_agrees_when_the_whole_interval_is_near_it_and_a_wide_interval_shows_nothing() {
        let of = |parts| published(parts, false).rows[0].agreement;
        assert_eq!(of([0.5, 0.505, 0.495]), Agreement::Agrees);
        assert_eq!(of([0.7, 0.705, 0.695]), Agreement::Contradicts);
        // The interval contains the published 0.50 and a wide range around it.
        assert_eq!(of([0.2, 0.5, 1.2]), Agreement::TooWide);
        let measured =
            |value, low, high| Some(Measured { value, interval: Some(Interval { low, high }), blocks: 3 });
        assert_eq!(agreement(1.33, measured(0.47, 0.133, 1.679)), Agreement::TooWide);
        assert_eq!(agreement(1.33, measured(1.30, 1.25, 1.36)), Agreement::Agrees);
        assert_eq!(agreement(1.33, measured(1.15, 1.10, 1.20)), Agreement::Contradicts);
        assert_eq!(
            agreement(1.33, Some(Measured { value: 1.33, interval: None, blocks: 1 })),
            Agreement::TooWide
        );
        assert_eq!(agreement(1.33, None), Agreement::NotMeasured);
    }

    #[test]
    fn steps_that_ran_and_are_invalid_are_not_reported_as_untested() {
        let found = published([0.5, 0.5, 0.5], true);
        let of = |says: &str| found.findings.iter().find(|one| one.says == says).unwrap();
        assert_eq!((of("b is slower").seen, of("b is slower").steps_invalid), (Seen::Invalid, 1));
        assert_eq!(of("c is faster").seen, Seen::CannotBeTried);
    }

    #[test]
    fn a_finding_is_seen_where_the_comparison_has_that_verdict() {
        let seen = |parts| {
            let findings = published(parts, false).findings;
            findings.into_iter().find(|one| one.says == "b is slower").unwrap()
        };
        assert_eq!(seen([0.5, 0.51, 0.52]).seen, Seen::Seen);
        assert_eq!(seen([1.0, 1.001, 0.999]).seen, Seen::NotSeen, "it is the same");
        // The ratio is certainly lower, and within the margin.
        assert_eq!(seen([0.985, 0.986, 0.984]).seen, Seen::NotSeen);
        assert_eq!((seen([0.5, 1.1, 0.9]).seen, seen([0.5, 1.1, 0.9]).steps_undecided), (Seen::Undecided, 1));
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
    min = {}
    max = {}
    stddev = {}
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
        let rates = [(1, 10_000, 5_000), (2, 10_100, 5_000), (3, 9_900, 5_000)];
        let cells = rates
            .iter()
            .flat_map(|(block, a, b)| [cell(*block, "a", vec![step(*a)]), cell(*block, "b", vec![step(*b)])]);
        let mut run = run(&["a", "b"], 3, cells.collect());
        run.manifest.plan = plan(PLAN);
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
            b old l.i0: 1.9 2.00 Agrees
            b old l.i1: 1 - NotMeasured
            old c l.i0: 1 - NotMeasured
            old b writes: average: 1.4 0.50 Contradicts
            old b writes: median: 0.4 0.50 Contradicts
            b is slower: Seen
            b is faster: NotSeen
            b keeps half: Seen
            c is faster: CannotBeTried
            ");
    }
}
