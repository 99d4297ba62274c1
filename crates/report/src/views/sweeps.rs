//! Tables of sweeps over connections, as in published comparisons of scaling. There is one row per
//! number of connections, and columns for rates and response times by variant. With more than two
//! variants, each figure has its own table. Charts of sweeps take the same points.

use dbdyno_analyse::statistics::Interval;
use dbdyno_analyse::{Latency, StepFindings, StepRun, VariantStep, WorkloadFindings};

use super::Scope;
use super::cells::{absent, milliseconds_cell, placeholder, rate_cell};
use super::throughput::spread as rate_spread;
use crate::document::{Table, TableCell};
use crate::number::count;

/// Smallest number of steps in a sweep. With one number of connections there is nothing to compare.
const MIN_STEPS: usize = 2;

/// A test that ran with several numbers of connections.
#[derive(Debug)]
pub(crate) struct Sweep<'a> {
    /// The steps' common name: `read-only` for `read-only.c1`, `read-only.c2`, ...
    pub(crate) test: String,
    /// One step per number of connections, in ascending order.
    pub(crate) steps: Vec<&'a StepFindings>,
}

/// A variant's figure with one number of connections.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SweepPoint {
    /// Value over all valid blocks together. For rates it is the median.
    pub(crate) value: f64,
    /// Lowest and highest of the valid blocks; `None` for one block.
    pub(crate) blocks: Option<Interval>,
}

/// A function that gives the point of a variant in a step. It is `None` without a valid run, and
/// for response times where nothing was answered.
pub(crate) type PointOf = fn(&StepFindings, &VariantStep) -> Option<SweepPoint>;

/// A figure in the table: its name, its value, and how it is written.
type SweepFigure = (&'static str, PointOf, fn(f64) -> TableCell);

const FIGURES: [SweepFigure; 6] = [
    ("rate", rate, rate_cell),
    ("mean ms", |_, variant| alone(variant, |latency| latency.mean_us), milliseconds_cell),
    ("p50 ms", p50_us, milliseconds_cell),
    ("p95 ms", p95_us, milliseconds_cell),
    ("p99 ms", p99_us, milliseconds_cell),
    ("max ms", |_, variant| alone(variant, |latency| latency.max_us as f64), milliseconds_cell),
];

/// Makes the tables. There are none without a test on several numbers of connections.
pub(super) fn tables(scope: Scope<'_>) -> Vec<Table> {
    let of_sweep = |sweep: &Sweep<'_>| {
        let at_once = if sweep.variants().count() > 2 { 1 } else { FIGURES.len() };
        FIGURES.chunks(at_once).map(|figures| table(scope, sweep, figures)).collect::<Vec<_>>()
    };
    sweeps(scope.workload).iter().flat_map(of_sweep).collect()
}

/// Returns all sweeps of a workload, in the order in which their first steps ran.
pub(crate) fn sweeps(workload: &WorkloadFindings) -> Vec<Sweep<'_>> {
    let mut all: Vec<Sweep<'_>> = Vec::new();
    for step in workload.judged_steps() {
        let Some(test) = step.test_of_sweep() else { continue };
        match all.iter_mut().find(|sweep| sweep.test == test) {
            Some(sweep) => sweep.steps.push(step),
            None => all.push(Sweep { test, steps: vec![step] }),
        }
    }
    all.retain(|sweep| sweep.steps.len() >= MIN_STEPS);
    all.iter_mut().for_each(|sweep| sweep.steps.sort_by_key(|step| step.connections));
    all
}

impl<'a> Sweep<'a> {
    /// Returns the unit of the rates, such as `transactions/s`.
    pub(crate) fn rate_label(&self) -> &'a str {
        &self.steps[0].rate_label
    }

    /// Returns the names of the variants.
    pub(crate) fn variants(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.steps[0].variants.iter().map(|variant| variant.variant.as_str())
    }
}

/// Returns the step's rate, which is the median over the valid blocks.
pub(crate) fn rate(_: &StepFindings, variant: &VariantStep) -> Option<SweepPoint> {
    Some(SweepPoint { value: variant.rate?, blocks: rate_spread(variant) })
}

pub(crate) fn p50_us(step: &StepFindings, variant: &VariantStep) -> Option<SweepPoint> {
    percentile(step, variant, |latency| Some(latency.p50_us))
}

pub(crate) fn p95_us(step: &StepFindings, variant: &VariantStep) -> Option<SweepPoint> {
    percentile(step, variant, Latency::known_p95_us)
}

pub(crate) fn p99_us(step: &StepFindings, variant: &VariantStep) -> Option<SweepPoint> {
    percentile(step, variant, Latency::known_p99_us)
}

/// Returns a percentile of the response times of the headline's kind.
fn percentile(
    step: &StepFindings,
    variant: &VariantStep,
    of: fn(&Latency) -> Option<u64>,
) -> Option<SweepPoint> {
    let of_block = |run: &StepRun| {
        let response = &run.kind(&step.headline_kind)?.response;
        of(response).filter(|_| response.count > 0).map(|us| us as f64)
    };
    Some(SweepPoint {
        value: of(latency(variant)?)? as f64,
        blocks: spread(variant.valid_runs().filter_map(of_block)),
    })
}

/// Returns a figure over all blocks together, without the range of single blocks.
fn alone(variant: &VariantStep, of: fn(&Latency) -> f64) -> Option<SweepPoint> {
    Some(SweepPoint { value: of(latency(variant)?), blocks: None })
}

fn latency(variant: &VariantStep) -> Option<&Latency> {
    variant.latency.as_ref().filter(|latency| latency.count > 0)
}

/// Returns the lowest and the highest value. It is `None` for fewer than two values.
fn spread(values: impl Iterator<Item = f64>) -> Option<Interval> {
    let values: Vec<f64> = values.collect();
    let (low, high) = (values.iter().copied().reduce(f64::min)?, values.iter().copied().reduce(f64::max)?);
    (values.len() > 1).then_some(Interval { low, high })
}

fn table(scope: Scope<'_>, sweep: &Sweep<'_>, figures: &[SweepFigure]) -> Table {
    let columns = || figures.iter().flat_map(|figure| sweep.variants().map(move |variant| (figure, variant)));
    let label = sweep.rate_label();
    let note = match figures {
        [("rate", ..)] => format!("{label}."),
        [_] => String::new(),
        _ => format!("{label} and response times by number of connections, all blocks together."),
    };
    let heads = columns().map(|((name, ..), variant)| (variant, *name, ""));
    let title = match figures {
        [(name, ..)] => format!("Connections: {}, {name}", sweep.test),
        _ => format!("Connections: {}", sweep.test),
    };
    let mut table = Table::new(&title, &note, ["connections"], heads);
    for step in &sweep.steps {
        let connections =
            TableCell { value: Some(step.connections.into()), ..count(step.connections).into() };
        let cells = columns().map(|(figure, variant)| cell(scope, step, figure, variant));
        table.push(std::iter::once(connections).chain(cells));
    }
    table
}

fn cell(scope: Scope<'_>, step: &StepFindings, (_, point, cell): &SweepFigure, variant: &str) -> TableCell {
    let Some(variant) = step.variant(variant) else { return absent("did not run") };
    if variant.rate.is_none() {
        return placeholder(scope, variant).into();
    }
    let Some(point) = point(step, variant) else { return absent("nothing was answered") };
    let ends = point.blocks.map(|ends| [ends.low, ends.high].map(cell));
    let note = ends.as_ref().map(|[low, high]| format!("blocks from {} to {}", low.text, high.text));
    let spread = ends.and_then(|[low, high]| Some(Interval { low: low.value?, high: high.value? }));
    TableCell { note: note.unwrap_or_default(), spread, ..cell(point.value) }
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::{Findings, Validity};

    use super::*;
    use crate::fixture::{NAMES, of_steps, step};
    use crate::views::testing::scope;

    /// Makes steps with these numbers of connections, and a variant's rates in each block.
    fn findings(steps: &[(&str, u32, &[f64])]) -> Findings {
        let of = |(name, connections, rates): &(&str, u32, &[f64])| StepFindings {
            connections: *connections,
            ..step(name, &[(NAMES[0], rates)])
        };
        of_steps(steps.iter().map(of).collect())
    }

    fn tests(findings: &Findings) -> Vec<String> {
        sweeps(&findings.workloads[0]).into_iter().map(|sweep| sweep.test).collect()
    }

    #[test]
    fn a_test_on_several_numbers_of_connections_is_a_sweep_in_their_order() {
        let of = |name, connections| -> (&str, u32, &[f64]) { (name, connections, &[5.0]) };
        let steps = [of("ro.c4", 4), of("ro.c1", 1), of("ro.c16", 16), of("rw.c1", 1), of("rw.c4", 4)];
        let findings = findings(&[&steps[..], &[of("wo.c1", 1), of("load", 8)]].concat());
        assert_eq!(tests(&findings), ["ro", "rw"], "one number is none");
        let sweeps = sweeps(&findings.workloads[0]);
        let names: Vec<&str> = sweeps[0].steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["ro.c1", "ro.c4", "ro.c16"]);
    }

    #[test]
    fn the_number_of_connections_may_stand_anywhere_in_the_name() {
        let of = |name| StepFindings { connections: 16, ..step(name, &[]) }.test_of_sweep();
        assert_eq!(of("read-only.c16").as_deref(), Some("read-only"));
        assert_eq!(of("read-only.c16.r500").as_deref(), Some("read-only.r500"));
        assert_eq!([of("read-only"), of("read-only.c1"), of("read-only.c160")], [None, None, None]);
    }

    #[test]
    fn each_rate_has_a_sweep_of_its_own() {
        let of = |name, connections| -> (&str, u32, &[f64]) { (name, connections, &[5.0]) };
        let steps = [of("ro.c1.r10", 1), of("ro.c2.r10", 2), of("ro.c1.r90", 1), of("ro.c2.r90", 2)];
        assert_eq!(tests(&findings(&steps)), ["ro.r10", "ro.r90"]);
    }

    #[test]
    fn a_rate_is_that_of_the_median_block_with_the_ends_of_all() {
        let findings = findings(&[("ro.c1", 1, &[100.0]), ("ro.c4", 4, &[2.0, 6.0, 900.0])]);
        let tables = tables(scope(&findings));
        let [one, many] = [0, 1].map(|row| tables[0].rows[row][1].clone());
        assert_eq!((one.value, one.spread, one.note.as_str()), (Some(100.0), None, ""));
        assert_eq!((many.value, many.note.as_str()), (Some(6.0), "blocks from 2.00 to 900"));
        assert_eq!(many.spread, Some(Interval { low: 2.0, high: 900.0 }));
    }

    #[test]
    fn times_are_in_milliseconds_and_absent_where_nothing_was_answered() {
        let mut findings = findings(&[("ro.c1", 1, &[1_000.0]), ("ro.c2", 2, &[1_000.0])]);
        let latency = findings.workloads[0].steps[0].variants[0].runs[0].kinds[0].response.clone();
        findings.workloads[0].steps[0].variants[0].latency = Some(Latency { p95_us: 203, ..latency });
        let tables = tables(scope(&findings));
        let [known, unknown] = [0, 1].map(|row| tables[0].rows[row][4].clone());
        assert_eq!((known.value, known.text.as_str()), (Some(0.203), "0.203"));
        assert_eq!((unknown.text.as_str(), unknown.note.as_str()), ("n/a", "nothing was answered"));
    }

    #[test]
    fn a_step_without_a_valid_run_says_why() {
        let mut findings = findings(&[("ro.c1", 1, &[1.0]), ("ro.c2", 2, &[1.0])]);
        let variant = &mut findings.workloads[0].steps[1].variants[0];
        (variant.rate, variant.runs[0].validity) = (None, Validity::Failed { message: "gone".to_owned() });
        let tables = tables(scope(&findings));
        let row = tables[0].rows[1].join(" ");
        assert_eq!(row, "2 failed failed failed failed failed failed");
    }
}
