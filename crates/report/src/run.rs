//! Makes a run's report for a terminal and as HTML pages. [`whole`], [`published`] and [`short`]
//! decide which parts a document has, and in which order.

use dbdyno_analyse::parity::{Parity, size_text};
use dbdyno_analyse::{
    Findings, Severity, StepFindings, StepRun, Validity, VariantSummary, WorkloadFindings, numbered,
};

use crate::charts::Charts;
use crate::document::html::page;
use crate::document::{self, Block, Heading, Table, Tone};
use crate::facts::{
    self, FAILURES, blocks_text, facts_line, host_line, logs, option_text, run_line, target_line, time_line,
    title, variant_line,
};
use crate::views::details::{problems, rate};
use crate::views::summary::{self, one_block, reasons};
use crate::views::{self, Scope, Topic, ViewPart, machines};
use crate::warnings::{grouped_texts, texts};
use crate::{Error, parity, plan_words};

/// How the terminal's report is laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalOptions {
    /// Width of the terminal in columns. Wider tables continue below with their labels repeated.
    pub width: usize,
    /// Whether to use ANSI colours. The caller decides, by whether the output is a terminal and by
    /// `NO_COLOR`. Signs are shown in any case.
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
    Summary,
    Warnings,
    /// The tables of rates: absolute, relative, groups, sweeps, targets.
    Tables,
    /// One topic of the details, step by step.
    Details(Topic),
    /// The functions that make the difference.
    Why,
    /// Configuration differences, configurations, and how the workloads were run.
    Config,
    All,
}

impl ReportPart {
    /// Every part, with the word that selects it.
    pub const ALL: [(&'static str, Self); 11] = [
        ("summary", Self::Summary),
        ("warnings", Self::Warnings),
        ("tables", Self::Tables),
        ("latency", Self::Details(Topic::Latency)),
        ("cost", Self::Details(Topic::Cost)),
        ("io", Self::Details(Topic::Io)),
        ("sql", Self::Details(Topic::Sql)),
        ("statistics", Self::Details(Topic::Statistics)),
        ("why", Self::Why),
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
    let details = |topic| details(findings, topic, |step| steps.is_empty() || steps.contains(&step.name));
    let blocks = match part {
        ReportPart::Summary => short(findings, report),
        ReportPart::Warnings => warnings(findings),
        ReportPart::Tables => rate_tables(findings),
        ReportPart::Details(topic) => details(Some(*topic)),
        ReportPart::Why => views::why::blocks(findings.why.as_ref()),
        ReportPart::Config => config(findings),
        ReportPart::All if !steps.is_empty() => details(None),
        ReportPart::All => whole(findings, None, &[]),
    };
    Ok(document::terminal(&blocks, *width, *colour))
}

/// Writes how a plan's variants would be configured, for a terminal: remarks, and the settings that
/// differ.
pub fn parity_terminal(parity: &Parity, options: &TerminalOptions) -> String {
    document::terminal(&parity::blocks_of_plan(parity), options.width, options.colour)
}

/// What a page links to, and whether it is renewed.
#[derive(Debug, Clone, Copy, Default)]
pub struct PageOptions<'a> {
    /// The page of a live run asks its server for new figures every so many seconds. It is `None`
    /// for a page in a file.
    pub live_seconds: Option<u32>,
    /// Address of the full page, for a page in the style of published reports.
    pub details: Option<&'a str>,
    /// Files with which a reader can check the page: what each has, and its address.
    pub files: &'a [(String, String)],
}

/// Writes a page with the contents of published reports. It links to the full page, where there is
/// one.
pub fn published_html(findings: &Findings, options: PageOptions<'_>) -> String {
    let charts = Charts::new(findings);
    let blocks = published(findings, &charts, options);
    page(own_title(findings), &document::html(&blocks), &charts.page_data())
}

/// Writes a run's page: one file in which every number is readable without scripts.
pub fn run_html(findings: &Findings, options: PageOptions<'_>) -> String {
    let charts = Charts::new(findings);
    let blocks = whole(findings, Some(&charts), options.files);
    let mut data = charts.page_data();
    if let Some(seconds) = options.live_seconds {
        data["live"] = seconds.into();
    }
    page(&facts::title(findings), &document::html(&blocks), &data)
}

/// Returns the text below the summary of a page, which says how to read it.
fn how_to_read(findings: &Findings) -> String {
    let bar = if findings.run.blocks_planned > 1 {
        " Bar: 95 % interval, tick: 1 (on a narrow screen see the relative rates)."
    } else {
        ""
    };
    format!(
        "Ratio: new ÷ base in the same block; above 1 is faster (of times, below 1).{bar} Click a step for its details."
    )
}

/// Makes the whole report. `charts` draws its charts. Without `charts` there are none. `files` are
/// those that it links to.
pub(crate) fn whole(
    findings: &Findings,
    charts: Option<&Charts<'_>>,
    files: &[(String, String)],
) -> Vec<Block> {
    let mut blocks = vec![Block::heading(1, title(findings))];
    blocks.extend(doubts(findings));
    blocks.extend(plan_words::conclusion(findings));
    blocks.extend(charts.map(|charts| key(findings, charts)));
    blocks.push(Block::Text(Tone::Muted, host_line(&findings.run)));
    blocks.push(Block::Text(Tone::Muted, configuration_line(findings)));
    blocks.push(Block::Links(vec![("Contents".to_owned(), "#contents".to_owned())]));
    let invalid = warnings_of(findings, Severity::Invalid);
    let (at_once, folded) = match invalid_runs(findings, MANY_INVALID) {
        Some(_) => (invalid, None),
        None => (None, invalid),
    };
    blocks.extend(at_once);
    let workloads = || findings.workloads.iter().enumerate();
    for (number, workload) in workloads() {
        blocks.push(Block::section(&workload.name, format!("w{number}")));
        blocks.extend(linked(summary::blocks(Scope::of(findings, workload)), workload, number));
        blocks.extend(
            charts
                .filter(|_| number == 0 && findings.variants.len() > 1)
                .map(|_| Block::Text(Tone::Muted, how_to_read(findings))),
        );
    }
    blocks.extend(folded.map(|warnings| {
        let count = of_severity(findings, Severity::Invalid).len();
        Block::Fold(
            format!("{} on figures that are invalid or missing", numbered(count, "warning")),
            vec![warnings],
        )
    }));
    blocks.extend(links(files));
    blocks.push(Block::Contents);
    blocks.extend(plan_words::prose(findings));
    blocks.extend(plan_words::set_ups(&findings.run, &findings.workloads, "setups"));
    blocks.extend(plan_words::sections(findings, charts));
    blocks.extend(plan_words::published(findings));
    if findings.why.is_some() {
        blocks.push(Block::section("Why: functions that make the difference", "why"));
        blocks.extend(views::why::blocks(findings.why.as_ref()));
    }
    blocks.extend(compared(findings));
    for (number, workload) in workloads() {
        blocks.push(Block::section(
            format!("Rates and latency: {}", workload.name),
            format!("w{number}tables"),
        ));
        let id = format!("w{number}");
        let charts_of = |charts: &Charts<'_>| charts.of_workload(Scope::of(findings, workload), &id);
        blocks.extend(charts.into_iter().flat_map(charts_of));
        blocks.extend(linked(rates_of(findings, workload), workload, number));
        blocks.extend(efficiency(findings, workload, number));
    }
    blocks.push(Block::PrintedIfUnfolded);
    blocks.extend(findings.parity.iter().flat_map(parity::blocks));
    for (number, workload) in workloads() {
        for (at, step) in workload.steps.iter().enumerate() {
            blocks.extend(whole_step(findings, workload, step, &step_id(number, at), charts));
        }
        blocks.extend(conditions(workload, number));
    }
    blocks.extend(failures(findings));
    blocks.extend(configurations(findings));
    blocks.push(Block::section("Order of cells", "order"));
    let order = Block::List(Tone::Plain, findings.run.order.clone());
    blocks.push(Block::Fold("Block, variant and workload of each cell, as planned".to_owned(), vec![order]));
    blocks
}

/// Makes the contents of published reports, in their order: rates, ratios, targets and groups as
/// tables, ratios and sweeps as charts, hardware efficiency, and the machine. The page of details
/// has the rest, including warnings. Without that page the warnings are here.
pub(crate) fn published(findings: &Findings, charts: &Charts<'_>, options: PageOptions<'_>) -> Vec<Block> {
    let details = options.details;
    let mut blocks = vec![Block::heading(1, own_title(findings))];
    blocks.extend(doubts(findings));
    blocks.extend(plan_words::conclusion(findings));
    blocks.push(key(findings, charts));
    blocks.push(Block::Text(Tone::Muted, configuration_line(findings)));
    let few = invalid_runs(findings, 0.0).filter(|_| invalid_runs(findings, MANY_INVALID).is_none());
    blocks.extend(few.map(|text| Block::Text(Tone::Doubt, text)));
    let count =
        of_severity(findings, Severity::Invalid).len() + of_severity(findings, Severity::Caution).len();
    let warnings = if count > 0 { format!(", {}", numbered(count, "warning")) } else { String::new() };
    match details {
        Some(page) => {
            let text = format!("The summary with its details{warnings}");
            blocks.push(Block::Links(vec![(text, page.to_owned())]));
        }
        None => blocks.extend(warnings_of(findings, Severity::Invalid)),
    }
    blocks.extend(links(options.files));
    blocks.extend(plan_words::prose(findings));
    for (number, workload) in findings.workloads.iter().enumerate() {
        blocks.push(Block::section(&workload.name, format!("w{number}")));
        let scope = Scope::of(findings, workload);
        blocks.extend(views::published_style::rates(scope));
        for step in &workload.steps {
            let note = plan_words::note(findings, &step.name);
            blocks.extend(note.into_iter().flat_map(|note| [Block::heading(3, &step.name), note]));
        }
        blocks.extend(charts.of_workload(scope, &format!("w{number}")));
        blocks.push(Block::section(
            format!("Hardware efficiency: {}", workload.name),
            format!("w{number}efficiency"),
        ));
        blocks.extend(views::published_style::efficiency(scope).map(folded_if_long));
        blocks.extend(efficiency(findings, workload, number));
    }
    blocks.extend(plan_words::set_ups(&findings.run, &findings.workloads, "setups"));
    blocks.extend(plan_words::sections(findings, Some(charts)));
    blocks.extend(plan_words::published(findings));
    let is_shown = |block: &Block| details.is_none() || !matches!(block, Block::Warnings(..));
    blocks.extend(compared(findings).into_iter().filter(is_shown));
    blocks.extend(findings.parity.iter().flat_map(parity::telling_remarks));
    blocks
}

fn links(files: &[(String, String)]) -> Option<Block> {
    (!files.is_empty()).then(|| Block::Links(files.to_vec()))
}

/// A page begins with a warning when a larger share of executions than this failed or is invalid.
const MANY_INVALID: f64 = 0.1;

/// Returns warnings that a reader of a page must not miss: that many executions failed or are
/// invalid, and that every comparison has only one block.
fn doubts(findings: &Findings) -> Vec<Block> {
    let scopes = findings.workloads.iter().map(|workload| Scope::of(findings, workload));
    let sentences: Vec<Option<String>> = scopes.map(one_block).collect();
    let one_block = sentences.iter().all(Option::is_some).then(|| sentences.into_iter().flatten().next());
    let all = invalid_runs(findings, MANY_INVALID).into_iter().chain(one_block.flatten());
    all.map(|text| Block::Text(Tone::Doubt, text)).collect()
}

/// Returns a sentence where more than this share of the executions are bad, such as `31 of 132
/// executions of steps (23 %) are invalid or failed: no figure counts them.`
fn invalid_runs(findings: &Findings, more_than: f64) -> Option<String> {
    let runs = || findings.variants_of_steps().flat_map(|(_, _, variant)| &variant.runs);
    let is_bad = |run: &&StepRun| matches!(run.validity, Validity::Invalid { .. } | Validity::Failed { .. });
    let (bad, all) = (runs().filter(is_bad).count(), runs().count());
    let share = bad as f64 / all.max(1) as f64;
    (share > more_than).then(|| {
        format!(
            "{bad} of {all} executions of steps ({:.0} %) are invalid or failed: no figure counts them.",
            100.0 * share
        )
    })
}

/// Returns the plan's title, or its name where it has no title.
fn own_title(findings: &Findings) -> &str {
    findings.prose.title.as_ref().unwrap_or(&findings.run.name)
}

/// Makes the summary, and the warnings that must be read with it. `report` is the run directory for
/// the commands that show more. Where it is empty, only their options are shown.
pub(crate) fn short(findings: &Findings, report: &str) -> Vec<Block> {
    let run = &findings.run;
    let cells = match run.cells_completed == run.cells_planned {
        true => String::new(),
        false => format!(" · {} of {} cells completed", run.cells_completed, run.cells_planned),
    };
    let line = format!("{} · {}{cells} · {}", title(findings), blocks_text(run), run.run_id);
    let mut blocks = vec![Block::heading(1, line)];
    blocks.extend(invalid_runs(findings, MANY_INVALID).map(|text| Block::Text(Tone::Doubt, text)));
    blocks.push(variants(findings, version));
    for workload in &findings.workloads {
        blocks.extend(views::control(Scope::of(findings, workload)));
        if findings.workloads.len() > 1 {
            blocks.push(Block::heading(3, &workload.name));
        } else {
            blocks.push(Block::text(""));
        }
        blocks.extend(summary::blocks(Scope::of(findings, workload)));
    }
    blocks.extend(warnings_of(findings, Severity::Invalid));
    let warnings = match of_severity(findings, Severity::Caution).len() {
        0 => String::new(),
        count => numbered(count, "warning"),
    };
    let remarks = findings.parity.as_ref().map_or_else(String::new, parity::telling);
    let counts = [(warnings, "--warnings"), (remarks, "--section config")];
    let counts: Vec<(String, &str)> = counts.into_iter().filter(|(what, _)| !what.is_empty()).collect();
    if !counts.is_empty() {
        let (what, parts): (Vec<String>, Vec<&str>) = counts.into_iter().unzip();
        let command = if report.is_empty() { String::new() } else { format!("dbdyno report {report} ") };
        let text = format!("{}: {command}{}", what.join(", "), parts.join(" or "));
        blocks.push(Block::Text(Tone::Doubt, text));
    }
    blocks
}

pub(crate) fn warnings(findings: &Findings) -> Vec<Block> {
    let all = texts(&findings.warnings);
    vec![if all.is_empty() { Block::text("No warnings.") } else { Block::List(Tone::Plain, all) }]
}

fn rate_tables(findings: &Findings) -> Vec<Block> {
    let tables = |workload: &WorkloadFindings| {
        let head = Block::heading(2, &workload.name);
        std::iter::once(head).chain(rates_of(findings, workload)).collect::<Vec<_>>()
    };
    let by_workload = findings.workloads.iter().flat_map(tables);
    let set_ups = plan_words::set_ups(&findings.run, &findings.workloads, "");
    by_workload
        .chain(set_ups)
        .chain(plan_words::sections(findings, None))
        .chain(plan_words::published(findings))
        .collect()
}

/// Returns the details of the steps for which `is_asked` holds, on one topic or on all.
pub(crate) fn details(
    findings: &Findings,
    topic: Option<Topic>,
    is_asked: impl Fn(&StepFindings) -> bool,
) -> Vec<Block> {
    let mut blocks = Vec::new();
    for workload in &findings.workloads {
        let steps: Vec<&StepFindings> = workload.steps.iter().filter(|step| is_asked(step)).collect();
        if topic.is_none_or(|topic| topic == Topic::Latency) {
            let is_asked = |name: &str| steps.iter().any(|step| step.name == name);
            let table = views::latency::of_steps(Scope::of(findings, workload), is_asked);
            blocks.extend(table.map(Block::Table));
        }
        for step in steps {
            match topic {
                None => blocks.extend(whole_step(findings, workload, step, "", None)),
                Some(topic) => {
                    let found = of_topic(step, topic);
                    if !found.is_empty() {
                        blocks.extend(step_head(workload, step, ""));
                        blocks.extend(found);
                    }
                }
            }
        }
    }
    blocks
}

/// Returns configuration differences, how the workloads were run, and configurations.
pub(crate) fn config(findings: &Findings) -> Vec<Block> {
    let differences = findings.parity.iter().flat_map(parity::blocks);
    let workloads = findings.workloads.iter().enumerate();
    let conditions = workloads.flat_map(|(number, workload)| conditions(workload, number));
    differences.chain(conditions).chain(configurations(findings)).collect()
}

fn step_id(workload: usize, step: usize) -> String {
    format!("w{workload}s{step}")
}

/// Turns names of steps in the first column of tables into links to the steps' sections.
fn linked(mut blocks: Vec<Block>, workload: &WorkloadFindings, number: usize) -> Vec<Block> {
    let tables = blocks.iter_mut().filter_map(|block| match block {
        Block::Table(table) => Some(table),
        _ => None,
    });
    for label in tables.flat_map(|table: &mut Table| &mut table.rows).filter_map(|row| row.first_mut()) {
        let at = workload.steps.iter().position(|step| step.name == label.text);
        label.link = at.map(|at| step_id(number, at));
    }
    blocks
}

fn of_severity(findings: &Findings, severity: Severity) -> Vec<String> {
    grouped_texts(findings.warnings.iter().filter(|warning| warning.severity == severity))
}

fn warnings_of(findings: &Findings, severity: Severity) -> Option<Block> {
    let texts = of_severity(findings, severity);
    let title = if severity == Severity::Invalid { "Invalid or missing" } else { "" };
    (!texts.is_empty()).then_some(Block::Warnings(title, texts))
}

fn variants(findings: &Findings, line: impl Fn(&VariantSummary) -> String) -> Block {
    let fact = |variant: &VariantSummary| {
        let base = if variant.name == findings.run.base { " · base" } else { "" };
        (variant.name.clone(), format!("{}{base}", line(variant)))
    };
    Block::Facts(findings.variants.iter().map(fact).collect())
}

fn key(findings: &Findings, charts: &Charts<'_>) -> Block {
    charts.key(|variant| {
        let base = if variant.name == findings.run.base { " (base)" } else { "" };
        format!("{}{base}", version(variant))
    })
}

/// Says in one line how often each variant was measured, and how far the configurations differ.
fn configuration_line(findings: &Findings) -> String {
    let remarks = findings.parity.as_ref().map_or_else(String::new, parity::telling);
    let parts = [blocks_text(&findings.run), remarks];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

/// Folds a table that would fill several screens.
fn folded_if_long(table: Table) -> Block {
    const LONG: usize = 40;
    match table.rows.len() {
        0..=LONG => Block::Table(table),
        _ => Block::Fold(format!("{}, step by step", table.title), vec![Block::Table(table)]),
    }
}

fn compared(findings: &Findings) -> Vec<Block> {
    let mut blocks = vec![Block::section("What was compared", "compared")];
    blocks.push(variants(findings, |variant| variant_line(findings, variant)));
    blocks.push(Block::Text(Tone::Muted, host_line(&findings.run)));
    blocks.extend(facts_line(&findings.run).map(|line| Block::Text(Tone::Muted, line)));
    blocks.extend(machines(&findings.run).map(Block::Table));
    blocks.push(Block::Text(Tone::Muted, run_line(&findings.run)));
    blocks.extend(time_line(&findings.run).map(|line| Block::Text(Tone::Muted, line)));
    blocks.extend(warnings_of(findings, Severity::Caution));
    blocks
}

/// Returns the reasons for the largest differences, then the coloured tables of rates, then the
/// latency of all steps.
fn rates_of(findings: &Findings, workload: &WorkloadFindings) -> Vec<Block> {
    let scope = Scope::of(findings, workload);
    let reasons = reasons(scope);
    let mut blocks: Vec<Block> =
        (!reasons.is_empty()).then_some(Block::List(Tone::Plain, reasons)).into_iter().collect();
    blocks.extend(views::rates(scope));
    blocks.extend(views::part(scope, ViewPart::Latency));
    blocks
}

/// Makes the tables of hardware efficiency, one per metric, or `None` where nothing was measured.
fn efficiency(findings: &Findings, workload: &WorkloadFindings, number: usize) -> Option<Block> {
    let tables = views::part(Scope::of(findings, workload), ViewPart::Efficiency);
    let blocks = linked(tables, workload, number);
    (!blocks.is_empty()).then(|| Block::Fold("Hardware efficiency of all steps".to_owned(), blocks))
}

fn step_head(workload: &WorkloadFindings, step: &StepFindings, id: &str) -> Vec<Block> {
    let mut blocks = vec![Block::Heading(Heading {
        level: 2,
        text: step.name.clone(),
        aside: format!("{}, {}", workload.name, step.rate_label),
        id: id.to_owned(),
    })];
    blocks.extend(target_line(step).map(Block::text));
    let problems = problems(step);
    blocks.extend((!problems.is_empty()).then_some(Block::List(Tone::Doubt, problems)));
    blocks
}

/// Makes a step's section. The rate itself is open, and the rest of the details is folded.
fn whole_step(
    findings: &Findings,
    workload: &WorkloadFindings,
    step: &StepFindings,
    id: &str,
    charts: Option<&Charts<'_>>,
) -> Vec<Block> {
    let mut blocks = step_head(workload, step, id);
    blocks.extend(plan_words::note(findings, &step.name));
    blocks.extend(rate(step).map(Block::Table));
    let (by_second, mut of_other_kinds) = charts.map(|charts| charts.of_step(step, id)).unwrap_or_default();
    blocks.extend(by_second);
    for topic in Topic::ALL {
        let mut found: Vec<Block> =
            charts.into_iter().flat_map(|charts| charts.of_topic(step, topic, id)).collect();
        if topic == Topic::Latency {
            found.append(&mut of_other_kinds);
        }
        found.extend(of_topic(step, topic));
        if !found.is_empty() {
            blocks.push(Block::Fold(topic.title().to_owned(), found));
        }
    }
    blocks
}

fn of_topic(step: &StepFindings, topic: Topic) -> Vec<Block> {
    let statements = step.statements.iter().filter(|_| topic == Topic::Sql);
    let statements = statements.flat_map(|(kind, text)| [Block::heading(4, kind), Block::Code(text.clone())]);
    views::of_step(step, topic).into_iter().chain(statements).collect()
}

fn conditions(workload: &WorkloadFindings, number: usize) -> Vec<Block> {
    let mut blocks = vec![Block::section(format!("How {} was run", workload.name), format!("w{number}how"))];
    let (version, follows) = (workload.version, &workload.follows);
    blocks.push(Block::text(format!("Version {version} of the workload. It follows {follows}.")));
    let deviations = workload.deviations.iter().map(|deviation| {
        (deviation.topic.clone(), format!("{} (original: {})", deviation.here, deviation.original))
    });
    let deviations: Vec<(String, String)> = deviations.collect();
    if !deviations.is_empty() {
        blocks.push(Block::heading(3, "Where it differs from the original"));
        blocks.push(Block::Facts(deviations));
    }
    let options: Vec<(String, String)> =
        workload.options.iter().map(|(name, value)| (name.clone(), option_text(value))).collect();
    if !options.is_empty() {
        blocks.push(Block::Fold("Options".to_owned(), vec![Block::Facts(options)]));
    }
    blocks
}

fn failures(findings: &Findings) -> Vec<Block> {
    let logs: Vec<Block> =
        logs(findings).into_iter().map(|(cell, log)| Block::Fold(cell, vec![Block::Code(log)])).collect();
    let title = (!logs.is_empty()).then(|| Block::section(FAILURES, "logs"));
    title.into_iter().chain(logs).collect()
}

fn configurations(findings: &Findings) -> Vec<Block> {
    let configured = findings.variants.iter().filter(|variant| !variant.config.is_empty());
    let folds: Vec<Block> = configured
        .map(|variant| Block::Fold(variant.name.clone(), vec![Block::Code(variant.config.clone())]))
        .collect();
    let title = (!folds.is_empty()).then(|| Block::section("Configurations", "configurations"));
    title.into_iter().chain(folds).collect()
}

/// Names a variant's server and version, without details that rarely matter.
fn version(variant: &VariantSummary) -> String {
    let version = variant.version_text.as_str();
    // The server's origin in brackets is left out: `MySQL 5.7.22 (mysql-5.7.22)`.
    let server = variant.server.split(" (").next().unwrap_or_default();
    let says_version = server.split(' ').any(|word| version.starts_with(word));
    let mut parts: Vec<String> = variant.foreign.iter().cloned().collect();
    parts.extend((!says_version).then(|| version.to_owned()));
    // The engine is named without its version where that is the server's version too.
    parts
        .extend(variant.engine.as_ref().map(|engine| engine.trim_end_matches(version).trim_end().to_owned()));
    parts.extend(variant.memory_limit_bytes.map(|bytes| format!("memory limited to {}", size_text(bytes))));
    parts.extend(variant.encryption.as_ref().map(|encryption| format!("connections {encryption}")));
    parts.retain(|part| !part.is_empty() && !server.starts_with(part.as_str()));
    parts.insert(0, server.to_owned());
    parts.join(" · ")
}

#[cfg(test)]
mod colour_tests;
#[cfg(test)]
mod doubts_tests;
#[cfg(test)]
mod html_tests;
#[cfg(test)]
mod terminal_tests;
