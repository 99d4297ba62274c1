//! Types for the findings of one step: each variant's figures over all blocks, and its comparison
//! with the base. The file also lists the runs of all steps under the names that warnings use.

use std::collections::BTreeMap;

use dbdyno_record::OperationClass;
use serde::{Serialize, Serializer};

use crate::metrics::{Cost, DeviceLoad, Efficiency, Figures, HardwareUse, Metric, MetricRow};
use crate::model::context::{CostBreakdown, ExecutedPlan, RatioContext, StatementPlans};
use crate::model::findings::WorkloadFindings;
use crate::model::step_run::{Latency, StepRun, Validity};
use crate::model::verdict::{
    Bound, Decided, Effect, ForeignLoad, Inference, LEVEL, Ratio, Undecided, Verdict,
};
use crate::model::warning::{Code, Warning};
use crate::statistics::Interval;
use crate::statistics::describe::median;
use crate::statistics::ranks::Trend;

#[derive(Debug, Clone, Serialize)]
pub struct StepFindings {
    pub name: String,
    /// What the step does, in a few words; empty where the name says it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub meaning: String,
    /// The kind of operation that the rate counts: `insert`, `index`, `query`.
    pub headline_kind: String,
    #[serde(skip)]
    pub headline_class: OperationClass,
    /// Unit of the headline: `inserts/s`, `queries/s`, `seconds`, ...
    pub rate_label: String,
    /// The headline is a time, so ratios below 1 are faster.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub less_is_better: bool,
    /// Connections of all clients together.
    pub connections: u32,
    /// Differences below this fraction count as none.
    pub margin: f64,
    /// The groups over which published reports add steps up: each grouping's name, and the step's
    /// group in it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<String, String>,
    /// The step only prepares the next one. It is in no summary and gets no verdict.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_warm_up: bool,
    /// Statement shapes by kind.
    pub statements: Vec<(String, String)>,
    /// Target rate of the background writers in rows per second over all clients, and the share of
    /// it that counts as kept.
    pub target: Option<(f64, f64)>,
    pub variants: Vec<VariantStep>,
    /// Effects in a full factorial design: what each factor does to the rate, and each two factors
    /// together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
}

impl StepFindings {
    pub fn variant(&self, name: &str) -> Option<&VariantStep> {
        self.variants.iter().find(|variant| variant.variant == name)
    }

    /// Returns the test's name, for a step that has its number of connections in its name, as a
    /// sweep's steps have. It is `read-only` for `read-only.c16`, and `read-only.r500` for
    /// `read-only.c16.r500`. It is `None` for another step.
    pub fn test_of_sweep(&self) -> Option<String> {
        let number = format!("c{}", self.connections);
        let mut parts: Vec<&str> = self.name.split('.').collect();
        let at = parts.iter().rposition(|part| *part == number)?;
        parts.remove(at);
        Some(parts.join("."))
    }

    /// Returns the step's number of connections, where its test ran with several numbers
    /// (`point-query.c16`).
    pub fn sweep_connections(&self) -> Option<u32> {
        self.test_of_sweep().map(|_| self.connections)
    }

    /// Returns whether a mean over several steps counts this variant's ratio, given its comparison
    /// `against` a base. A ratio that leaves out rates of zero is not counted, because it would
    /// make the mean better than the variant. A ratio of rates that the plan sets is not counted
    /// either, because it says nothing.
    pub(crate) fn is_counted(&self, variant: &str, against: &StepComparison) -> bool {
        let has_schedule = self.variant(variant).is_some_and(|found| self.reached_rate(found).is_some());
        let is_fixed_rate =
            has_schedule && matches!(against.verdict, Some(Verdict::OnSchedule | Verdict::Missed));
        against.zero_rates.is_empty() && !is_fixed_rate
    }

    /// Returns the variant's runs, block by block. There are none where the step does not have the
    /// variant.
    pub fn runs_of(&self, name: &str) -> &[StepRun] {
        self.variant(name).map_or(&[], |variant| &variant.runs)
    }
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct VariantStep {
    pub variant: String,
    /// Median rate over the valid blocks.
    #[serde(skip)]
    pub rate: Option<f64>,
    /// The times behind the median were cut off, so it is only a bound.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
    #[serde(skip)]
    pub rate_min: Option<f64>,
    #[serde(skip)]
    pub rate_max: Option<f64>,
    /// Response times of the headline operations, over all valid blocks together; `None` where none
    /// was timed.
    #[serde(rename = "latency_curve", serialize_with = "curve", skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// Comparison with the base. For the base itself it holds a ratio of 1 and nothing else.
    #[serde(skip)]
    pub to_base: StepComparison,
    /// What else differs from the base; empty for the base itself.
    #[serde(skip_serializing_if = "RatioContext::is_empty")]
    pub context: RatioContext,
    /// How the server executed the step's statements; empty where the server was not asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub query_plans: Vec<StatementPlans>,
    /// Plans of separate executions, by block; empty unless the plan asks for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub executed_plans: Vec<ExecutedPlan>,
    /// Whether the rate rises or falls from block to block; `None` for fewer than three valid
    /// blocks.
    pub drift: Option<Trend>,
    /// Median background rate over valid blocks, for steps with a target.
    #[serde(skip)]
    pub background_rate: Option<f64>,
    /// Median over the valid blocks of the rate that is judged against the target: that of the client
    /// whose background writer wrote least, times the number of clients.
    #[serde(skip)]
    pub judged_background_rate: Option<f64>,
    /// Valid blocks in which the target was missed, even where the median meets it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub target_missed_blocks: Vec<u32>,
    pub runs: Vec<StepRun>,
}

/// Writes the latency's curve alone, because the table of observations has its other figures.
fn curve<S: Serializer>(latency: &Option<Latency>, serializer: S) -> Result<S::Ok, S::Error> {
    latency.as_ref().map(|latency| &latency.curve).serialize(serializer)
}

/// The comparison of a variant with a base in one step.
#[derive(Debug, Clone, Default, Serialize)]
pub struct StepComparison {
    /// Variant ÷ base. It is paired by block within one run; between two runs it is the ratio of
    /// the geometric means.
    pub ratio: Option<Ratio>,
    /// The blocks whose ratio is only a bound.
    #[serde(skip)]
    pub block_bounds: BTreeMap<u32, Bound>,
    /// The ratio on each machine of a fleet; `None` where fewer than two machines have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_machine: Option<ByMachine>,
    /// The 99th percentile ÷ the base's; `None` without a block in which both had 100 operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99: Option<PercentileRatio>,
    /// The server's instructions per operation ÷ the base's. They are the quietest figure there is;
    /// `None` where the CPU does not count them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<PercentileRatio>,
    /// The causes that the ratio is made of; `None` where CPU was not sampled.
    pub cost_breakdown: Option<CostBreakdown>,
    /// All metrics ÷ the base's; `None` without a block in which both are valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative: Option<RelativeMetrics>,
    /// Blocks that are in no ratio, because one of the two answered nothing in them.
    #[serde(skip_serializing_if = "ZeroRates::is_empty")]
    pub zero_rates: ZeroRates,
    /// CPU time that other programs took; `None` where it changes no verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign_load: Option<ForeignLoad>,
    /// What the blocks show; `None` for one block, unless that is enough for a verdict, and for a
    /// step that one of the two did not run.
    pub verdict: Option<Verdict>,
    /// Why the comparison is undecided, where more blocks would not decide it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undecided: Option<Undecided>,
    /// The interim analysis at which the verdict was reached; `None` for a run without a budget and
    /// for an undecided comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided: Option<Decided>,
}

impl StepComparison {
    /// Returns the ratio's value alone.
    pub fn value(&self) -> Option<f64> {
        Some(self.ratio.as_ref()?.value)
    }

    /// Returns the ratio's 95 % interval.
    pub fn interval(&self) -> Option<Interval> {
        self.ratio.as_ref()?.interval()
    }

    /// Returns what the blocks say about the ratio beyond its value.
    pub fn inference(&self) -> Option<&Inference> {
        self.ratio.as_ref()?.inference.as_ref()
    }
}

/// A ratio on each of the machines that measured its blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ByMachine {
    /// One entry per machine, in the order of the machines' names.
    pub machines: Vec<MachineRatio>,
    /// Probability of means so far apart if the ratio were the same on all machines (F test of
    /// machine × variant); `None` where fewer than two machines have two blocks.
    pub p_interaction: Option<f64>,
    /// The same probability, adjusted (Benjamini and Hochberg) over all steps and variants of the
    /// run.
    pub q_interaction: Option<f64>,
    /// The machine that lies farthest from the others; `None` for two machines, which lie equally
    /// far from each other.
    pub farthest: Option<FarthestMachine>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MachineRatio {
    pub machine: String,
    pub ratio: f64,
    pub blocks: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FarthestMachine {
    pub machine: String,
    pub ratio: f64,
    /// Geometric mean over the other machines' blocks.
    pub others: f64,
    /// Probability that any machine lies so far from the others if the ratio were the same on all
    /// (Bonferroni).
    pub p: f64,
    /// The same probability, adjusted over all steps and variants of the run.
    pub q: f64,
}

impl FarthestMachine {
    pub fn is_odd(&self) -> bool {
        self.q <= LEVEL
    }
}

/// A percentile of the response times, or instructions per operation, ÷ the base's, paired by block.
/// A value below 1 is better.
#[derive(Debug, Clone, Serialize)]
pub struct PercentileRatio {
    pub ratio: Ratio,
    /// `Faster` where the percentile is lower; `None` for one block.
    pub verdict: Option<Verdict>,
}

/// Valid blocks with a rate of zero, for a variant and for the base that it is compared with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ZeroRates {
    /// Blocks in which the variant answered nothing, while the base did.
    pub stalled: Vec<u32>,
    pub base_stalled: Vec<u32>,
    /// Blocks in which both are valid.
    pub blocks: usize,
}

/// Shortest window for which a share of time is judged. In a shorter window, a tick of the kernel's
/// clocks (10 ms), a single delay or the imprecise times of the samples at its two ends could make
/// up most of a reported share.
pub(crate) const JUDGED_FROM_SECONDS: f64 = 2.0;

/// One execution of a step, with the step and variant that it belongs to.
#[derive(Clone, Copy)]
pub(crate) struct RunOfStep<'a> {
    pub(crate) step: &'a StepFindings,
    pub(crate) variant: &'a VariantStep,
    pub(crate) run: &'a StepRun,
}

impl RunOfStep<'_> {
    /// The run's name in warnings, such as `block 2 mysql-8.0 l.i1`.
    pub(crate) fn place(&self) -> String {
        format!("block {} {} {}", self.run.block, self.variant.variant, self.step.name)
    }
}

/// All valid runs, in the order of workloads, steps, variants and blocks.
pub(crate) fn valid_runs(workloads: &[WorkloadFindings]) -> impl Iterator<Item = RunOfStep<'_>> {
    let steps = workloads.iter().flat_map(|workload| &workload.steps);
    steps.flat_map(all_runs).filter(|found| found.run.validity == Validity::Valid)
}

/// The valid runs whose window is long enough for a share of time.
pub(crate) fn judged_runs(workloads: &[WorkloadFindings]) -> impl Iterator<Item = RunOfStep<'_>> {
    valid_runs(workloads).filter(|found| found.run.window_seconds >= JUDGED_FROM_SECONDS)
}

/// All runs of a step in the order of variants and blocks, including those that must not be used.
pub(crate) fn all_runs(step: &StepFindings) -> impl Iterator<Item = RunOfStep<'_>> {
    let variants = step.variants.iter().map(move |variant| (step, variant));
    variants.flat_map(|(step, variant)| variant.runs.iter().map(move |run| RunOfStep { step, variant, run }))
}

/// The run in which a share is highest, and the number of runs whose share is high enough to be
/// reported.
pub(crate) struct Worst {
    pub(crate) share: f64,
    pub(crate) place: String,
    pub(crate) reported: usize,
    /// Number of runs whose share is known.
    pub(crate) all: usize,
}

/// Finds the run in which the share by `share_of` is highest, among valid runs whose window is long
/// enough for a share of time. `None` where no run has more than `reported_share`.
pub(crate) fn worst(
    workloads: &[WorkloadFindings],
    reported_share: f64,
    share_of: impl Fn(&StepRun) -> Option<f64>,
) -> Option<Worst> {
    let shares: Vec<(f64, RunOfStep<'_>)> =
        judged_runs(workloads).filter_map(|found| Some((share_of(found.run)?, found))).collect();
    let reported = shares.iter().filter(|(share, _)| *share > reported_share);
    let (share, found) = reported.clone().max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some(Worst { share: *share, place: found.place(), reported: reported.count(), all: shares.len() })
}

impl Worst {
    /// Makes the warning. `reported_share` is the share above which a run is counted.
    pub(crate) fn warning(self, code: Code, reported_share: f64) -> Warning {
        let warning = Warning::new(code).at(self.place).with("share", self.share);
        warning.with("limit", reported_share).with("runs", self.reported).with("all", self.all)
    }
}

/// Runs whose figures may be used.
pub(crate) fn valid(runs: &[StepRun]) -> impl Iterator<Item = &StepRun> {
    runs.iter().filter(|run| run.validity == Validity::Valid)
}

/// The valid runs whose block is valid for the base too, each with the base's run.
pub fn pairs<'a>(
    runs: &'a [StepRun],
    base: &'a [StepRun],
) -> impl Iterator<Item = (&'a StepRun, &'a StepRun)> {
    valid(runs).filter_map(|run| Some((run, valid(base).find(|base| base.block == run.block)?)))
}

impl VariantStep {
    pub fn valid_runs(&self) -> impl Iterator<Item = &StepRun> {
        valid(&self.runs)
    }

    /// Median over the valid runs; `None` where none has the figure.
    pub fn median(&self, figure: impl Fn(&StepRun) -> Option<f64>) -> Option<f64> {
        median(&self.valid_runs().filter_map(figure).collect::<Vec<_>>())
    }
}

/// A variant's metrics ÷ the base's, under the metrics' ids: 1.1 for `cpupq` is a tenth more CPU
/// per query. A ratio that is not known is left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RelativeMetrics(pub BTreeMap<&'static str, f64>);

impl RelativeMetrics {
    pub fn of(&self, metric: &Metric) -> Option<f64> {
        self.0.get(metric.id).copied()
    }
}

/// Writes an infinite ratio as the text `infinite`, because JSON has no number for it. A ratio is
/// infinite where the base has 0 and the variant more.
impl Serialize for RelativeMetrics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = |ratio: &f64| match ratio.is_finite() {
            true => serde_json::Value::from(*ratio),
            false => serde_json::Value::from("infinite"),
        };
        serializer.collect_map(self.0.iter().map(|(id, ratio)| (id, value(ratio))))
    }
}

pub struct MetricGroup {
    pub name: &'static str,
    /// The group's metrics in the order of the fields.
    pub metrics: &'static [Metric],
    /// Reads the group from a run, or gives `None` where it was not sampled.
    pub of: fn(&StepRun) -> Option<&dyn Figures>,
    /// Whether the group's metrics are compared with the base's.
    pub is_compared: bool,
}

impl MetricGroup {
    /// All groups, in the order of a report.
    pub const ALL: &'static [Self] = &[
        Self {
            name: "metrics",
            metrics: MetricRow::METRICS,
            of: |run| Some(&run.metrics),
            is_compared: true,
        },
        Self {
            name: "efficiency",
            metrics: Efficiency::METRICS,
            of: |run| Some(&run.efficiency),
            is_compared: true,
        },
        Self { name: "cost", metrics: Cost::METRICS, of: |run| Some(&run.cost), is_compared: true },
        Self {
            name: "hardware",
            metrics: HardwareUse::METRICS,
            of: |run| Some(run.hardware.as_ref()?),
            is_compared: true,
        },
        Self {
            name: "device",
            metrics: DeviceLoad::METRICS,
            of: |run| Some(run.device.as_ref()?),
            is_compared: false,
        },
    ];

    /// Returns the metrics in the order of tables and CSV files.
    pub fn in_tables(&self) -> impl Iterator<Item = &'static Metric> + use<> {
        let metrics = self.metrics;
        let of = move |is_last| metrics.iter().filter(move |metric| metric.is_last == is_last);
        of(false).chain(of(true))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use dbdyno_record::Unit;

    use super::*;
    use crate::fixtures::{cell, load_step, run, series, step_run, with_counters};
    use crate::metrics::{Better, Cost};

    #[test]
    fn medians_are_over_valid_blocks_and_others_reads_exclude_the_servers() {
        let block = |block: u32, user_us: f64, read: f64| StepRun {
            cost: Cost { server_user_us: Some(user_us), server_read_kib: Some(2.0), ..Cost::default() },
            metrics: MetricRow { rkbpq: Some(read), ..MetricRow::default() },
            ..step_run(block, 100.0)
        };
        let found = crate::analyse(&run(&["a"], 1, vec![cell(1, "a", vec![load_step(1_000)])]));
        let mut variant = found.workloads[0].steps[0].variants[0].clone();
        variant.runs = vec![block(1, 10.0, 5.0), block(2, 30.0, 1.0), block(3, 20.0, 3.0)];
        assert_eq!(variant.median(|run| run.cost.server_user_us), Some(20.0));
        assert_eq!(variant.median(StepRun::others_read_kib), Some(1.0));
        for run in &mut variant.runs {
            run.cost.server_read_kib = None;
        }
        assert_eq!(variant.median(StepRun::others_read_kib), None, "whose reads they are is not known");
        for run in &mut variant.runs {
            run.validity = Validity::Interrupted;
        }
        assert_eq!(variant.median(|run| run.cost.server_user_us), None);
    }

    /// The headline of such a step is a time, but IO is still given per operation.
    #[test]
    fn what_a_query_writes_is_per_query_and_not_per_second_of_its_time() {
        let counted = series("disk", &["written_bytes"], &[(0, vec![0]), (2_500_000, vec![500 * 2_048])]);
        let mut step = with_counters(&counted);
        step.spec.headline.unit = Unit::Seconds;
        let found = crate::analyse(&run(&["a"], 1, vec![cell(1, "a", vec![step])]));
        assert_eq!(found.workloads[0].steps[1].variants[0].runs[0].written_kib, Some(2.0));
    }

    #[test]
    fn no_two_metrics_of_one_unit_share_a_name() {
        let (per_unit, device): (Vec<&MetricGroup>, Vec<_>) =
            MetricGroup::ALL.iter().partition(|group| group.is_compared);
        for groups in [per_unit, device] {
            let all: Vec<&Metric> = groups.iter().flat_map(|group| group.metrics).collect();
            let ids: BTreeSet<&str> = all.iter().map(|metric| metric.id).collect();
            let names: BTreeSet<&str> = all.iter().map(|metric| metric.name).collect();
            assert_eq!((ids.len(), names.len()), (all.len(), all.len()));
        }
    }

    /// With `DBDYNO_UPDATE=1` this test writes the tables again. The page gives the command, which
    /// finds this test by the word `groups` in its name.
    #[test]
    fn the_page_on_metrics_has_the_tables_of_all_groups() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");
        let page = std::fs::read_to_string(path).unwrap();
        let mut wanted = page.clone();
        for group in MetricGroup::ALL {
            let begin =
                format!("<!-- {}: DBDYNO_UPDATE=1 cargo test -p dbdyno-analyse groups -->\n", group.name);
            let (before, rest) = wanted.split_once(&begin).expect("the page has a place for the group");
            let (_, after) = rest.split_once(END).expect("the table has an end");
            wanted = format!("{before}{begin}\n{}\n{END}{after}", table(group));
        }
        if std::env::var_os("DBDYNO_UPDATE").is_some() {
            std::fs::write(path, wanted).unwrap();
        } else {
            assert!(page == wanted, "the tables are not the catalogue's; write them again: DBDYNO_UPDATE=1");
        }
    }

    const END: &str = "<!-- end -->\n";

    fn table(group: &MetricGroup) -> String {
        let row = |metric: &Metric| {
            let Metric { id, name, unit, meaning, .. } = metric;
            let meaning = meaning.replace('*', "\\*");
            let better = match metric.better {
                Better::Less => "less",
                Better::More => "more",
                Better::Neither | Better::NotCompared => "",
            };
            format!("| {name} | `{id}` | {unit} | {better} | {meaning} |\n")
        };
        let rows: String = group.in_tables().map(row).collect();
        format!("| name | field | unit | better | meaning |\n|---|---|---|---|---|\n{rows}")
    }
}
