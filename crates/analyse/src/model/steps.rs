//! Findings for one step: each variant's figures over all blocks, and its comparison with the base.

use std::collections::BTreeMap;

use dbdyno_record::OperationClass;
use serde::{Serialize, Serializer};

use crate::model::context::{ExecutedPlan, RatioContext, StatementPlans};
use crate::model::cost_breakdown::CostBreakdown;
use crate::model::groups::RelativeMetrics;
use crate::model::step_run::{Latency, StepRun};
use crate::model::undecided::Undecided;
use crate::model::verdict::{Bound, Decided, Effect, ForeignLoad, Inference, LEVEL, Ratio, Verdict};
use crate::statistics::Interval;
use crate::statistics::kendall::Trend;

#[derive(Debug, Clone, Serialize)]
pub struct StepFindings {
    pub name: String,
    /// The kind of operation that the rate counts: `insert`, `index`, `query`.
    pub headline_kind: String,
    #[serde(skip)]
    pub headline_class: OperationClass,
    /// Unit of the headline: `inserts/s`, `queries/s`, `seconds`, ...
    pub rate_label: String,
    /// The headline is a time, so that ratios below 1 are faster.
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

    /// Returns whether this variant's ratio, as it is held `against` a base, is counted among those
    /// of other steps. A ratio that leaves out rates of zero is not counted, because it would make
    /// the mean better than the variant. A ratio of rates that the plan sets is not counted either,
    /// because it says nothing.
    pub(crate) fn is_counted(&self, variant: &str, against: &StepComparison) -> bool {
        let has_schedule = self.variant(variant).is_some_and(|found| self.reached_rate(found).is_some());
        let is_fixed_rate = has_schedule && matches!(against.verdict, Some(Verdict::Paced | Verdict::Missed));
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
    /// The times behind the median were cut off, so that it is only a bound.
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
    /// Median over the valid blocks of the rate that is judged against the target.
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
    /// `None` for one block unless it says enough, and for a step that one of the two did not run.
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

/// A percentile of the response times ÷ the base's, paired by block. A value below 1 is better.
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
