//! Holds all findings of a run in one type, from which reports are made. Everything in it is
//! computed from the records. Failed cells have their error message in one line. In the records,
//! the lines of a server's log follow the message; the findings have them in a field of their own.

use std::collections::{BTreeMap, BTreeSet};

use dbdyno_model::{Colours, Report};
use dbdyno_record::{
    CellEvent, CellRecord, Deviation, HostCalibration, HostInfo, Outcome, Run, StepEvent, ToolInfo,
};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::comparison::PublishedComparison;
use crate::model::steps::{StepFindings, VariantStep};
use crate::model::warning::Warning;
use crate::parity::Parity;
use crate::why::Why;

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
    /// The functions that make the difference; `None` for a run without profile blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
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
    /// Requests that such a server did not support.
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
    pub fn max_ratio_blocks(&self, base: &str) -> usize {
        let variants = self.steps.iter().flat_map(|step| &step.variants);
        let ratios = variants
            .filter(|variant| variant.variant != base)
            .filter_map(|variant| variant.to_base.ratio.as_ref());
        ratios.map(|ratio| ratio.blocks.len()).max().unwrap_or(0)
    }
}

/// Text that separates a failure's own message from the lines of a log.
const LOG_SEPARATOR: &str = "; the end of its log";

/// A cell that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    pub block: u32,
    pub variant: String,
    pub workload: String,
    /// The error message in one line.
    pub message: String,
    /// The end of the server's log, as it was recorded; `None` where the failure came without one.
    pub log: Option<String>,
}

/// The cells that failed, in the order in which they ran.
pub(crate) fn failures(run: &Run) -> Vec<Failure> {
    let failed = run.cells.iter().filter(|cell| cell.outcome() == Some(Outcome::Failed));
    let failure = |cell: &CellRecord| {
        let message = end_message(cell);
        Failure {
            block: cell.id.block,
            variant: cell.id.variant.clone(),
            workload: cell.id.workload.clone(),
            message: failure_words(&message),
            log: log_part(&message).or_else(|| log_of_step(cell)),
        }
    };
    failed.map(failure).collect()
}

/// The end of the log that the failed step has in its message.
fn log_of_step(cell: &CellRecord) -> Option<String> {
    let events = cell.steps.iter().flat_map(|step| &step.events);
    let mut messages = events.filter_map(|event| match event {
        StepEvent::Ended { outcome: Outcome::Failed, message, .. } => message.as_deref(),
        _ => None,
    });
    messages.find_map(log_part)
}

/// The message's first line without a full stop. Where a log follows, the line goes on with the
/// log's decisive line and the log's path.
pub fn failure_words(message: &str) -> String {
    let line = message.trim_start().lines().next().unwrap_or_default();
    let line = line.trim_end().trim_end_matches(['.', ':']);
    let Some((said, path)) = line.split_once(LOG_SEPARATOR) else { return line.to_owned() };
    let why =
        log_part(message).as_deref().and_then(decisive).map_or_else(String::new, |why| format!(": {why}"));
    let path = if path.is_empty() { String::new() } else { format!("; its log is{path}") };
    format!("{said}{why}{path}")
}

/// How servers mark errors in their logs.
const ERROR_MARKS: [&str; 4] = ["[ERROR] ", "FATAL: ", "PANIC: ", "ERROR: "];

/// The first error in a log, without its time and its codes in brackets. The errors after it mostly
/// result from it.
fn decisive(log: &str) -> Option<String> {
    let after_mark =
        |line: &str| ERROR_MARKS.iter().find_map(|mark| Some(line.split_once(mark)?.1.trim().to_owned()));
    let mut line = log.lines().find_map(after_mark)?;
    while let Some((_, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        line = rest.to_owned();
    }
    Some(line.trim_end_matches('.').to_owned())
}

/// The lines after the first one, as they were logged; `None` for a message of one line.
fn log_part(message: &str) -> Option<String> {
    let (_, log) = message.trim().split_once('\n')?;
    Some(log.trim_end().to_owned()).filter(|log| !log.is_empty())
}

/// The recorded reason why a cell ended.
pub(crate) fn end_message(cell: &CellRecord) -> String {
    let message = cell.events.iter().rev().find_map(|event| match event {
        CellEvent::Ended { message, .. } => message.clone(),
        _ => None,
    });
    message.unwrap_or_else(|| "no reason was reported; see its events and the server's log".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, ended, failed_cell, load_step, run};

    const DIED: &str =
        "mysqld died at start (exit status: 1); the end of its log a.log:\n[ERROR] one\n\n[ERROR] two\n";

    #[test]
    fn a_failure_is_its_first_line_and_the_log_is_separate() {
        assert_eq!(failure_words(DIED), "mysqld died at start (exit status: 1): one; its log is a.log");
        assert_eq!(log_part(DIED).as_deref(), Some("[ERROR] one\n\n[ERROR] two"));
        assert_eq!(
            failure_words("the server ended with signal 9; the end of its log:\nx"),
            "the server ended with signal 9"
        );
        assert_eq!((failure_words("server died.").as_str(), log_part("server died.")), ("server died", None));
        assert_eq!(
            (failure_words("\nserver died.\n").as_str(), log_part("\nserver died.\n")),
            ("server died", None)
        );
        assert_eq!((failure_words("").as_str(), log_part("")), ("", None));
    }

    #[test]
    fn the_decisive_line_of_a_log_is_its_first_error() {
        let of = |log: &str| decisive(log).unwrap_or_default();
        let mysql = "2026-11-24T12:34:22Z 0 [Warning] [MY-010068] [Server] CA certificate ca.pem is self signed.\n\
                     2026-11-24T12:34:22Z 0 [ERROR] [MY-000067] [Server] unknown variable 'x=3'.\n\
                     2026-11-24T12:34:22Z 0 [ERROR] [MY-010119] [Server] Aborting";
        let postgres = "2026-11-24 12:34:22 UTC [1] FATAL:  invalid value for parameter \"wal_level\": \"x\"";
        assert_eq!(of(mysql), "unknown variable 'x=3'");
        assert_eq!(of(postgres), "invalid value for parameter \"wal_level\": \"x\"");
        assert_eq!(of("all is well"), "");
    }

    #[test]
    fn failed_cells_have_the_log_of_their_own_end_or_of_the_step_that_failed() {
        let gone = ended(load_step(1_000), Outcome::Failed, "gone; the end of its log:\nsignal 11");
        let cells = vec![
            cell(1, "a", Vec::new()),
            failed_cell(1, "b", Vec::new(), DIED),
            failed_cell(2, "a", vec![gone], "gone"),
            failed_cell(2, "b", Vec::new(), "no room"),
        ];
        let found = failures(&run(&["a", "b"], 2, cells));
        let logs: Vec<_> = found.iter().map(|one| (one.message.as_str(), one.log.as_deref())).collect();
        assert_eq!(
            logs,
            [
                (
                    "mysqld died at start (exit status: 1): one; its log is a.log",
                    Some("[ERROR] one\n\n[ERROR] two")
                ),
                ("gone", Some("signal 11")),
                ("no room", None)
            ]
        );
        assert_eq!((found[1].block, found[1].variant.as_str()), (2, "a"));
    }
}
