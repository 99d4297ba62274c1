//! What a run says: the one type that reports are made from. Everything in it is computed from the
//! records.

use std::collections::{BTreeMap, BTreeSet};

use dbdyno_model::{Colours, Report};
use dbdyno_record::{Deviation, HostCalibration, HostInfo, ToolInfo};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::failure::Failure;
use crate::model::notice::Notice;
use crate::model::published::PublishedComparison;
use crate::model::steps::{StepFindings, VariantStep};
use crate::parity::Parity;

#[derive(Debug, Clone, Serialize)]
pub struct Findings {
    pub run: RunSummary,
    pub variants: Vec<VariantSummary>,
    pub workloads: Vec<WorkloadFindings>,
    #[serde(skip_serializing_if = "Report::is_empty")]
    pub prose: Report,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<SectionFindings>,
    /// A published report, figure by figure; `None` for a plan that names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<PublishedComparison>,
    /// How the variants are configured, and in what they differ; `None` when the plan does not want
    /// to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parity: Option<Parity>,
    /// What a reader must know before any number, worst first: failed cells, invalid steps, debug
    /// build, damaged files.
    pub warnings: Vec<Notice>,
    /// Cells that failed, each with the end of its server's log.
    pub failures: Vec<Failure>,
}

impl Findings {
    /// Every variant of every step, with its workload.
    pub fn variants_of_steps(
        &self,
    ) -> impl Iterator<Item = (&WorkloadFindings, &StepFindings, &VariantStep)> {
        let steps = self
            .workloads
            .iter()
            .flat_map(|workload| workload.steps.iter().map(move |step| (workload, step)));
        steps.flat_map(|(workload, step)| step.variants.iter().map(move |variant| (workload, step, variant)))
    }

    /// Steps that are compared, each with its workload's name.
    pub(crate) fn judged_steps(&self) -> impl Iterator<Item = (&str, &StepFindings)> {
        let workloads = self.workloads.iter();
        workloads.flat_map(|workload| workload.judged_steps().map(|step| (workload.name.as_str(), step)))
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct RunSummary {
    pub run_id: String,
    pub name: String,
    pub started: String,
    pub tool: ToolInfo,
    pub host: HostInfo,
    pub seed: u64,
    pub base: String,
    /// Of steps that `margins` has nothing for.
    pub margin: f64,
    /// Margins of single steps, by pattern of the step's name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub margins: BTreeMap<String, f64>,
    /// Name of the variant that is the base under a second name (A/A).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
    /// Time that the run could take, and how often it was looked at, in a run with a budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    pub blocks_planned: u32,
    /// `alternate`: step by step in servers that stayed up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub design: Option<String>,
    /// The machines of a fleet, each with the blocks that it measured.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub machines: BTreeMap<String, BTreeSet<u32>>,
    /// What was measured of each of them: the medians over its blocks.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub calibrations: BTreeMap<String, HostCalibration>,
    /// Where the time of the run went; `None` where no cell has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeBreakdown>,
    /// Cells that completed, and cells that were planned.
    pub cells_completed: usize,
    pub cells_planned: usize,
    /// Steps that ended and whose files have no checksums, of a run that has such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchecked_steps: Option<usize>,
    /// Of tables of ratios.
    #[serde(skip)]
    pub colours: Colours,
    /// The order in which cells were planned, as `block variant workload`.
    pub order: Vec<String>,
}

/// How a run with a budget went on after the plan's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Budget {
    pub seconds: f64,
    pub looks: u32,
    /// Blocks that were added to those of the plan.
    pub further_blocks: u32,
}

/// Seconds of a run by what they went into.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct TimeBreakdown {
    pub total_seconds: f64,
    /// Common windows of steps that are measured.
    pub windows_seconds: f64,
    /// Warm-up within steps, and steps that only fill caches.
    pub warm_up_seconds: f64,
    /// Steps that only make the data.
    pub load_seconds: f64,
    /// Bringing servers to rest between steps.
    pub settle_seconds: f64,
    /// Connecting, the rest of the last operations, content checks.
    pub checks_seconds: f64,
    /// Servers and their data: initialise, copy, start, stop, remove; questions to them.
    pub servers_seconds: f64,
    pub rest_seconds: f64,
    /// Between cells otherwise: interim analyses, preparation.
    pub other_seconds: f64,
}

impl TimeBreakdown {
    /// All that belongs to a cell.
    pub(crate) fn within_cells(&self) -> f64 {
        let measured = self.windows_seconds + self.warm_up_seconds + self.load_seconds;
        measured + self.settle_seconds + self.checks_seconds + self.servers_seconds
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct VariantSummary {
    pub name: String,
    pub driver: String,
    pub server: String,
    /// As the server said it; empty when it never answered.
    pub version_text: String,
    /// What the server is, where it is none of the products: `PGlite, which speaks PostgreSQL's
    /// protocol`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign: Option<String>,
    /// What such a server did not do when it was asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Storage engine of the workload's tables; the server's default where tables ask for none.
    pub engine: Option<String>,
    /// Limit on the memory of its server and the page cache of the server's files, as the kernel
    /// rounds it; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
    pub config: String,
    /// Level by factor, in a plan with factors.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub factors: BTreeMap<String, String>,
    pub external: bool,
    /// How its connections were encrypted; `None` where TLS was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encryption: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct WorkloadFindings {
    /// With its set-up, where there are several: `insert-benchmark@IO-bound`.
    pub name: String,
    pub version: u32,
    pub follows: String,
    pub options: Map<String, Value>,
    pub deviations: Vec<Deviation>,
    pub steps: Vec<StepFindings>,
}

/// A section of the report: some variants, set-ups and steps, compared with a base of their own.
#[derive(Debug, Clone, Serialize)]
pub struct SectionFindings {
    pub title: String,
    /// Markdown; empty without any.
    pub text: String,
    pub base: String,
    /// As those of the run, without what single executions did second by second.
    #[serde(skip)]
    pub workloads: Vec<WorkloadFindings>,
}

impl WorkloadFindings {
    /// Steps that are compared: all but warm-ups.
    pub fn judged_steps(&self) -> impl Iterator<Item = &StepFindings> {
        self.steps.iter().filter(|step| !step.is_warm_up)
    }

    /// The most blocks that a ratio to `base` is made of, over all steps and variants; 0 where
    /// there is no ratio.
    pub fn most_ratio_blocks(&self, base: &str) -> usize {
        let variants = self.steps.iter().flat_map(|step| &step.variants);
        let ratios = variants
            .filter(|variant| variant.variant != base)
            .filter_map(|variant| variant.to_base.ratio.as_ref());
        ratios.map(|ratio| ratio.blocks.len()).max().unwrap_or(0)
    }
}
