//! All findings of a run, in the one type that reports are made from. Everything in it is computed
//! from the records.

use std::collections::{BTreeMap, BTreeSet};

use dbdyno_model::{Colours, Report};
use dbdyno_record::{Deviation, HostCalibration, HostInfo, ToolInfo};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::failure::Failure;
use crate::model::published::PublishedComparison;
use crate::model::steps::{StepFindings, VariantStep};
use crate::model::warning::Warning;
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
    /// Comparison with a published report, figure by figure; `None` for a plan that names no
    /// report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<PublishedComparison>,
    /// How the variants are configured, and where they differ; `None` where the plan turns this
    /// off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parity: Option<Parity>,
    /// Warnings that a reader must know before any number, worst first: failed cells, invalid
    /// steps, debug build, damaged files.
    pub warnings: Vec<Warning>,
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
    /// Margin of the steps that no pattern in `margins` matches.
    pub margin: f64,
    /// Margins of single steps, by pattern of the step's name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub margins: BTreeMap<String, f64>,
    /// Name of the control, which is the base under a second name (A/A).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<String>,
    /// The budget, where the plan has one: the time that the run could take, and its interim
    /// analyses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    pub blocks_planned: u32,
    /// `alternate` where the variants took turns step by step, in servers that stayed up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub design: Option<String>,
    /// The machines of a fleet, each with the blocks that it measured.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub machines: BTreeMap<String, BTreeSet<u32>>,
    /// The calibration of each machine, as medians over its blocks.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub calibrations: BTreeMap<String, HostCalibration>,
    /// Where the time of the run went; `None` where no cell has begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeBreakdown>,
    /// Number of cells that completed; the next field has the number planned.
    pub cells_completed: usize,
    pub cells_planned: usize,
    /// Number of ended steps whose files have no checksums, in a run that has checksums.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchecked_steps: Option<usize>,
    /// The colours in tables of ratios.
    #[serde(skip)]
    pub colours: Colours,
    /// The order in which cells were planned, as `block variant workload`.
    pub order: Vec<String>,
}

/// Time limit of a run with a budget, and how the run went on after the plan's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Budget {
    pub seconds: f64,
    pub looks: u32,
    /// Number of blocks that were added to those in the plan.
    pub further_blocks: u32,
}

/// A run's time in seconds, by what it was spent on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct TimeBreakdown {
    pub total_seconds: f64,
    /// The common windows of the steps that are measured.
    pub windows_seconds: f64,
    /// Warm-up within steps, and steps that only fill caches.
    pub warm_up_seconds: f64,
    /// Steps that only load the data.
    pub load_seconds: f64,
    /// Waiting for servers to come to rest between steps.
    pub settle_seconds: f64,
    /// Connecting, the rest of the last operations, and content checks.
    pub checks_seconds: f64,
    /// Servers and their data: to initialise, copy, start, stop, remove and query them.
    pub servers_seconds: f64,
    pub rest_seconds: f64,
    /// Other time between cells: interim analyses and preparation.
    pub other_seconds: f64,
}

impl TimeBreakdown {
    /// All time that belongs to a cell.
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
    /// The version as the server reported it; empty where it never answered.
    pub version_text: String,
    /// What the server is, where it is not one of the known products:
    /// `PGlite, which speaks PostgreSQL's protocol`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign: Option<String>,
    /// What such a server did not do when it was asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Storage engine of the workload's tables. It is the server's default where tables name none.
    pub engine: Option<String>,
    /// Limit on the memory of the variant's server and the page cache of the server's files, as the
    /// kernel rounds it; `None` without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
    pub config: String,
    /// The variant's level per factor, in a plan with factors.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub factors: BTreeMap<String, String>,
    pub external: bool,
    /// How the variant's connections were encrypted; `None` where the plan did not ask for TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encryption: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct WorkloadFindings {
    /// The workload's name, with its set-up where there are several: `insert-benchmark@IO-bound`.
    pub name: String,
    pub version: u32,
    pub follows: String,
    pub options: Map<String, Value>,
    pub deviations: Vec<Deviation>,
    pub steps: Vec<StepFindings>,
}

/// A section of the report: some variants, set-ups and steps, compared with the section's own base.
#[derive(Debug, Clone, Serialize)]
pub struct SectionFindings {
    pub title: String,
    /// Text in Markdown; empty where the section has none.
    pub text: String,
    pub base: String,
    /// The run's workloads, without the seconds of single executions.
    #[serde(skip)]
    pub workloads: Vec<WorkloadFindings>,
}

impl WorkloadFindings {
    /// Steps that are compared: all but steps that only warm up.
    pub fn judged_steps(&self) -> impl Iterator<Item = &StepFindings> {
        self.steps.iter().filter(|step| !step.is_warm_up)
    }

    /// The largest number of blocks in any ratio to `base`, over all steps and variants; 0 where
    /// there is no ratio.
    pub fn most_ratio_blocks(&self, base: &str) -> usize {
        let variants = self.steps.iter().flat_map(|step| &step.variants);
        let ratios = variants
            .filter(|variant| variant.variant != base)
            .filter_map(|variant| variant.to_base.ratio.as_ref());
        ratios.map(|ratio| ratio.blocks.len()).max().unwrap_or(0)
    }
}
