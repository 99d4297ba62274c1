//! The formats that are rendered from a run's document: terminal, Markdown, HTML.

use dbdyno_analyse::Findings;
use dbdyno_analyse::parity::Parity;

use crate::document;
use crate::html::charts::Charts;
use crate::html::page;
use crate::views::Topic;
use crate::{Error, facts, parity, run};

/// How the terminal's report is laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalOptions {
    /// Width of the terminal in columns. Wider tables continue below with their labels repeated.
    pub width: usize,
    /// Whether to use ANSI colours. The caller decides (terminal or not, `NO_COLOR`). Signs are
    /// shown in any case.
    pub colour: bool,
    pub part: ReportPart,
    /// Names of the steps to show; all steps where none is named.
    pub steps: Vec<String>,
    /// The argument with which `dbdyno report` shows more: the run directory. Empty where the
    /// report does not mention it.
    pub run: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportPart {
    /// What was compared, what makes figures invalid, and the summary, which comes last.
    Answer,
    Warnings,
    /// The tables of rates: absolute, relative, groups, sweeps, targets.
    Tables,
    /// One topic of the details, step by step.
    Details(Topic),
    /// Configuration differences, configurations, and how the workloads were run.
    Config,
    All,
}

impl ReportPart {
    /// Every part, with the word that selects it.
    pub const ALL: [(&'static str, Self); 10] = [
        ("answer", Self::Answer),
        ("warnings", Self::Warnings),
        ("tables", Self::Tables),
        ("latency", Self::Details(Topic::Latency)),
        ("cost", Self::Details(Topic::Cost)),
        ("io", Self::Details(Topic::Io)),
        ("sql", Self::Details(Topic::Sql)),
        ("statistics", Self::Details(Topic::Statistics)),
        ("config", Self::Config),
        ("all", Self::All),
    ];
}

impl TerminalOptions {
    /// The options for a file: 100 columns, no colour, all parts.
    pub const PLAIN: Self =
        Self { width: 100, colour: false, part: ReportPart::All, steps: Vec::new(), run: String::new() };
}

pub fn run_terminal(findings: &Findings, options: &TerminalOptions) -> Result<String, Error> {
    let TerminalOptions { width, colour, part, steps, run: report } = options;
    let known = findings.workloads.iter().flat_map(|workload| &workload.steps);
    let known: Vec<&str> = known.map(|step| step.name.as_str()).collect();
    if let Some(asked) = steps.iter().find(|asked| !known.contains(&asked.as_str())) {
        return Err(Error::UnknownStep { asked: asked.clone(), known: known.join(", ") });
    }
    let details =
        |topic| run::details(findings, topic, |step| steps.is_empty() || steps.contains(&step.name));
    let blocks = match part {
        ReportPart::Answer => run::short(findings, report),
        ReportPart::Warnings => run::warnings(findings),
        ReportPart::Tables => run::rate_tables(findings),
        ReportPart::Details(topic) => details(Some(*topic)),
        ReportPart::Config => run::config(findings),
        ReportPart::All if !steps.is_empty() => details(None),
        ReportPart::All => run::whole(findings, None),
    };
    Ok(document::terminal(&blocks, *width, *colour))
}

/// How a plan's variants would be configured, for a terminal: remarks, and the settings that
/// differ.
pub fn parity_terminal(parity: &Parity, options: &TerminalOptions) -> String {
    document::terminal(&parity::blocks_of_plan(parity), options.width, options.colour)
}

/// What published reports show, as a page. It links to the full page at the address `details`,
/// where there is one.
pub fn published_html(findings: &Findings, details: Option<&str>) -> String {
    let charts = Charts::new(findings);
    let blocks = run::published(findings, &charts, details);
    page(run::own_title(findings), &document::html(&blocks), &charts.page_data())
}

/// A run's page: one file in which every number is readable without scripts. `live_seconds` is how
/// often it asks a server for new figures; `None` for a file.
pub fn run_html(findings: &Findings, live_seconds: Option<u32>) -> String {
    let charts = Charts::new(findings);
    let blocks = run::whole(findings, Some(&charts));
    let mut data = charts.page_data();
    if let Some(seconds) = live_seconds {
        data["live"] = seconds.into();
    }
    page(&facts::title(findings), &document::html(&blocks), &data)
}

#[cfg(test)]
mod doubts_tests;
#[cfg(test)]
mod html_tests;
#[cfg(test)]
mod terminal_tests;
