//! What the HTML template is given: findings as text, charts as SVG, links as ids.

use std::collections::HashSet;

use dbdyno_analyse::{
    Cell, Findings, Severity, StepFindings, TableRow, VariantSummary, Verdict, WorkloadFindings,
};
use serde::Serialize;

use super::bars::bars;
use super::second_charts::second_charts;
use super::svg::swatch;
use super::sweep_charts::sweep_charts;
use crate::answer::{AnswerTable, answer};
use crate::evidence::{Grid, Topic, grids, latency_of_all, problems};
use crate::facts::{
    FAILURES, host_line, logs, option_text, reasons, run_line, target_line, title, variant_line,
};
use crate::parity::{TITLE, grid, lines};
use crate::summary::{Section, colour_name, judgement, mark, mark_in, sections};

/// Steps that stand next to each other in a summary table; more of them, with their intervals, are wider than a screen.
const COLUMNS_ABREAST: usize = 6;
/// Points of a line at most: about one a pixel and a half.
const LINE_POINTS: usize = 600;
/// However many lines there are: a line of fewer points shows too little of where it rose and fell.
const LEAST_POINTS: usize = 18;
/// Points of all lines together, so that a big run's page stays below 5 MB.
const PAGE_POINTS: usize = 80_000;

#[derive(Serialize)]
pub(super) struct Page {
    title: String,
    run_line: String,
    host_line: String,
    /// Those that make figures invalid.
    invalid: Vec<String>,
    warnings: Vec<String>,
    variants: Vec<VariantView>,
    parity: Option<ParityView>,
    workloads: Vec<WorkloadView>,
    /// Empty when no failed cell has left a log.
    logs: Vec<[String; 2]>,
    logs_title: &'static str,
    order: Vec<String>,
}

#[derive(Serialize)]
struct VariantView {
    name: String,
    is_base: bool,
    line: String,
    config: String,
    /// SVG.
    swatch: String,
}

#[derive(Serialize)]
struct ParityView {
    title: &'static str,
    lines: Vec<String>,
    classes: Grid,
}

#[derive(Serialize)]
struct WorkloadView {
    id: String,
    name: String,
    version: u32,
    follows: String,
    sentences: Vec<String>,
    answer: Vec<AnswerView>,
    answer_note: String,
    reasons: Vec<String>,
    latency: Grid,
    summary: Vec<SummaryView>,
    /// SVG; `None` when nothing is compared.
    bars: Option<String>,
    /// Of tests on a ladder of connections.
    sweeps: Vec<ChartView>,
    steps: Vec<StepView>,
    deviations: Vec<[String; 3]>,
    options: Vec<[String; 2]>,
}

/// A table of the answer.
#[derive(Serialize)]
struct AnswerView {
    /// Name and unit.
    columns: Vec<[String; 2]>,
    /// The step's section, and its cells: text and class.
    rows: Vec<(Option<String>, Vec<[String; 2]>)>,
}

#[derive(Serialize)]
struct SummaryView {
    title: String,
    caption: String,
    /// What the rows are.
    head: &'static str,
    columns: Vec<HeadView>,
    rows: Vec<RowView>,
    /// Colour, sign, meaning.
    legend: Vec<[&'static str; 3]>,
    missing: Vec<String>,
}

/// Of a row or a column.
#[derive(Serialize)]
struct HeadView {
    name: String,
    /// The step's section; `None` for what is no step.
    target: Option<String>,
}

#[derive(Serialize)]
struct RowView {
    head: HeadView,
    cells: Vec<CellView>,
}

#[derive(Serialize)]
struct CellView {
    text: String,
    colour: &'static str,
    sign: &'static str,
    /// Interval and verdict; empty where there are none.
    judgement: String,
    note: String,
    /// What was asked for, not what was measured.
    is_target: bool,
}

#[derive(Serialize)]
struct StepView {
    id: String,
    name: String,
    rate_label: String,
    target_line: Option<String>,
    problems: Vec<String>,
    charts: Vec<ChartView>,
    /// Folded: those of kinds that are not the headline.
    further_charts: Vec<KindChartsView>,
    /// Runs that are not in the charts.
    chart_notes: Vec<String>,
    /// Why there are no charts; empty where there are.
    no_chart: String,
    /// The rate itself stays open, the rest of the evidence is folded.
    rate: Option<Grid>,
    /// By topic; topics without a table are left out.
    evidence: Vec<TopicView>,
    statements: Vec<[String; 2]>,
}

#[derive(Serialize)]
struct TopicView {
    title: &'static str,
    has_statements: bool,
    grids: Vec<Grid>,
}

#[derive(Serialize)]
struct KindChartsView {
    kind: String,
    charts: Vec<ChartView>,
}

#[derive(Serialize)]
struct ChartView {
    caption: String,
    /// SVG.
    svg: String,
}

fn chart_views(charts: Vec<(String, String)>) -> Vec<ChartView> {
    charts.into_iter().map(|(caption, svg)| ChartView { caption, svg }).collect()
}

impl Page {
    pub(super) fn new(findings: &Findings) -> Self {
        let points = points_a_line(findings);
        let warnings = |severity: Severity| {
            let of_severity = findings.warnings.iter().filter(|notice| notice.severity == severity);
            of_severity.map(|notice| notice.text.clone()).collect::<Vec<_>>()
        };
        let names: Vec<String> = findings.variants.iter().map(|variant| variant.name.clone()).collect();
        let workloads = findings.workloads.iter().enumerate();
        let mut workloads: Vec<WorkloadView> = workloads
            .map(|(number, workload)| workload_view(findings, workload, &names, number, points))
            .collect();
        explain_once(&mut workloads);
        Self {
            title: title(findings),
            run_line: run_line(&findings.run),
            host_line: host_line(&findings.run),
            invalid: warnings(Severity::Invalid),
            warnings: warnings(Severity::Caution),
            variants: variants(findings),
            parity: findings.parity.as_ref().map(|parity| ParityView {
                title: TITLE,
                lines: lines(parity),
                classes: grid(parity),
            }),
            workloads,
            logs: logs(findings).into_iter().map(|(cell, log)| [cell, log]).collect(),
            logs_title: FAILURES,
            order: findings.run.order.clone(),
        }
    }
}

/// The tables of each topic in a section of its own.
fn by_topic(grids: Vec<Grid>, has_statements: bool) -> Vec<TopicView> {
    let mut topics = [
        (Topic::Latency, "Latency"),
        (Topic::Cost, "CPU and cost"),
        (Topic::Io, "IO, device and memory"),
        (Topic::Sql, "SQL and query plans"),
        (Topic::Statistics, "Statistics"),
    ]
    .map(|(topic, title)| {
        let has_statements = topic == Topic::Sql && has_statements;
        (topic, TopicView { title, has_statements, grids: Vec::new() })
    });
    for grid in grids {
        if let Some((_, view)) = topics.iter_mut().find(|(topic, _)| *topic == grid.topic) {
            view.grids.push(grid);
        }
    }
    let is_shown = |view: &TopicView| !view.grids.is_empty() || view.has_statements;
    topics.into_iter().map(|(_, view)| view).filter(is_shown).collect()
}

/// A big run has the same tables some forty times: only the first of each says what its columns mean. The script says it again
/// in the others.
fn explain_once(workloads: &mut [WorkloadView]) {
    let mut said = HashSet::new();
    let steps = workloads.iter_mut().flat_map(|workload| &mut workload.steps);
    let grids = steps.flat_map(|step| {
        let of_topics = step.evidence.iter_mut().flat_map(|topic| &mut topic.grids);
        step.rate.iter_mut().chain(of_topics)
    });
    for grid in grids {
        for column in grid.columns.iter_mut().filter(|column| !column.meaning.is_empty()) {
            if !said.insert((grid.title.clone(), column.name.clone(), column.unit.clone())) {
                column.meaning.clear();
            }
        }
    }
}

fn variants(findings: &Findings) -> Vec<VariantView> {
    let view = |(number, variant): (usize, &VariantSummary)| VariantView {
        name: variant.name.clone(),
        is_base: variant.name == findings.run.base,
        line: variant_line(findings, variant),
        config: variant.config.clone(),
        swatch: swatch(number),
    };
    findings.variants.iter().enumerate().map(view).collect()
}

/// For each line of a headline, from how many lines there are: each kind of a run has two, its rate and its longest response time,
/// and those of kinds that are not the headline have half the points.
fn points_a_line(findings: &Findings) -> usize {
    let steps = findings.workloads.iter().flat_map(|workload| &workload.steps);
    let runs = steps.flat_map(|step| &step.variants).flat_map(|variant| &variant.runs);
    let lines: usize = runs.map(|run| run.kinds.len() + 1).sum();
    (PAGE_POINTS / lines.max(1)).clamp(LEAST_POINTS, LINE_POINTS)
}

fn workload_view(
    findings: &Findings,
    workload: &WorkloadFindings,
    names: &[String],
    number: usize,
    points: usize,
) -> WorkloadView {
    let step_id = |step: usize| format!("w{number}s{step}");
    let summary = sections(&workload.summary);
    let steps = workload.steps.iter().enumerate();
    let answer = answer(&findings.run, workload);
    WorkloadView {
        id: format!("w{number}"),
        name: workload.name.clone(),
        version: workload.version,
        follows: workload.follows.clone(),
        answer: answer.tables.iter().map(|table| answer_view(table, workload, &step_id)).collect(),
        sentences: answer.sentences,
        answer_note: answer.note,
        reasons: reasons(&findings.run, workload),
        latency: latency_of_all(&workload.judged_steps().collect::<Vec<_>>()),
        summary: summary.iter().map(|section| summary_view(section, workload, &step_id)).collect(),
        bars: bars(&workload.summary.relative, &findings.run.base, names),
        sweeps: chart_views(workload.sweeps.iter().flat_map(|sweep| sweep_charts(sweep, names)).collect()),
        steps: steps.map(|(at, step)| step_view(step, names, step_id(at), points)).collect(),
        deviations: workload
            .deviations
            .iter()
            .map(|deviation| [deviation.topic.clone(), deviation.original.clone(), deviation.here.clone()])
            .collect(),
        options: workload.options.iter().map(|(name, value)| [name.clone(), option_text(value)]).collect(),
    }
}

fn answer_view(
    table: &AnswerTable,
    workload: &WorkloadFindings,
    step_id: &dyn Fn(usize) -> String,
) -> AnswerView {
    let class = |verdict: Option<Verdict>| match verdict {
        Some(Verdict::Faster) => "better",
        Some(Verdict::Slower | Verdict::Missed | Verdict::Stalled) => "worse",
        Some(Verdict::Invalid) => "invalid",
        _ => "",
    };
    let rows = table.rows.iter().map(|row| {
        let name = row.first().map_or("", |cell| &cell.text);
        let target = workload.steps.iter().position(|step| step.name == name).map(step_id);
        (target, row.iter().map(|cell| [cell.text.clone(), class(cell.verdict).to_owned()]).collect())
    });
    let columns = table.columns.iter().map(|column| [column.name.clone(), column.unit.clone()]);
    AnswerView { columns: columns.collect(), rows: rows.collect() }
}

fn summary_view(
    section: &Section<'_>,
    workload: &WorkloadFindings,
    step_id: &dyn Fn(usize) -> String,
) -> SummaryView {
    let table = section.table;
    let step = |name: &String| HeadView {
        name: name.clone(),
        target: workload.steps.iter().position(|step| step.name == *name).map(step_id),
    };
    let label = |row: &TableRow| HeadView { name: row.label.clone(), target: None };
    // A page is higher than wide, as a terminal: many steps stand below each other.
    let (head, columns, rows): (_, Vec<HeadView>, Vec<RowView>) =
        if section.turns && table.columns.len() > COLUMNS_ABREAST {
            let of_step = |(at, name): (usize, &String)| RowView {
                head: step(name),
                cells: table.rows.iter().filter_map(|row| Some(cell_view(row, row.cells.get(at)?))).collect(),
            };
            let rows = table.columns.iter().enumerate().map(of_step);
            (section.heads[1], table.rows.iter().map(label).collect(), rows.collect())
        } else {
            let of_row = |row: &TableRow| RowView {
                head: label(row),
                cells: row.cells.iter().map(|cell| cell_view(row, cell)).collect(),
            };
            let rows = table.rows.iter().map(of_row);
            (section.heads[0], table.columns.iter().map(step).collect(), rows.collect())
        };
    SummaryView {
        title: table.title.clone(),
        caption: table.caption.clone(),
        head,
        columns,
        rows,
        legend: section
            .legend
            .iter()
            .map(|(colour, meaning)| [colour_name(*colour), mark(*colour), meaning])
            .collect(),
        missing: section.missing.clone(),
    }
}

fn cell_view(row: &TableRow, cell: &Cell) -> CellView {
    CellView {
        text: cell.text.clone(),
        colour: if cell.value.is_none() { "none" } else { colour_name(cell.colour) },
        sign: mark_in(row, cell),
        judgement: judgement(cell),
        note: cell.note.clone(),
        is_target: row.is_target,
    }
}

fn step_view(step: &StepFindings, names: &[String], id: String, points: usize) -> StepView {
    let mut evidence = grids(step);
    // `grids` begins with the rate by variant, unless the step never ran anywhere.
    let rate = (evidence.first().is_some_and(|grid| grid.title == "Rate")).then(|| evidence.remove(0));
    let by_second = second_charts(step, names, points);
    StepView {
        id,
        name: step.name.clone(),
        rate_label: step.rate_label.clone(),
        target_line: target_line(step),
        problems: problems(step),
        charts: chart_views(by_second.charts),
        further_charts: by_second
            .further
            .into_iter()
            .map(|(kind, charts)| KindChartsView { kind, charts: chart_views(charts) })
            .collect(),
        chart_notes: by_second.notes,
        no_chart: by_second.none,
        rate,
        evidence: by_topic(evidence, !step.statements.is_empty()),
        statements: step.statements.iter().map(|(kind, text)| [kind.clone(), text.clone()]).collect(),
    }
}
