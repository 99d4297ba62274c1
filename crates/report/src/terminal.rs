//! Findings for a terminal: the answer first, in a width that fits.

mod summary_table;

use dbdyno_analyse::parity::{Parity, size_text};
use dbdyno_analyse::{Findings, Severity, StepFindings, VariantSummary, Verdict, WorkloadFindings, numbered};

use self::summary_table::{turned, upright};
use crate::answer::{AnswerCell, AnswerTable, answer};
use crate::evidence::{Grid, Topic, grids, latency_of_all, problems};
use crate::facts::{
    FAILURES, blocks_text, host_line, logs, option_text, reasons, run_line, target_line, title, variant_line,
};
use crate::parity::{TITLE, grid, lines, short_lines};
use crate::summary::{Section, sections};
use crate::text_table::{Paint, TextCell, TextTable, cut, one_line, wrapped};
use crate::{Error, Format};

/// How the terminal's report is laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalOptions {
    /// Columns of the terminal. Tables that are wider continue below with their labels repeated.
    pub width: usize,
    /// ANSI colours. The caller decides (terminal or not, `NO_COLOR`); signs stand next to them in any case.
    pub colour: bool,
    pub part: Part,
    /// Only these steps, by name; every one where none is named.
    pub steps: Vec<String>,
    /// What to give `dbdyno report` to see more: the run directory. Empty where nothing is said of it.
    pub run: String,
}

/// Which part of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// What was compared, what makes figures invalid, and the answer, last.
    Answer,
    /// Every warning in full.
    Warnings,
    /// The tables of rates: absolute, relative, groups, sweeps, targets.
    Tables,
    /// One topic of the evidence, step by step.
    Evidence(Topic),
    /// Configuration differences, configurations, and how the workloads were run.
    Config,
    All,
}

impl Part {
    /// Every part with the word that selects it.
    pub const ALL: [(&'static str, Self); 10] = [
        ("answer", Self::Answer),
        ("warnings", Self::Warnings),
        ("tables", Self::Tables),
        ("latency", Self::Evidence(Topic::Latency)),
        ("cost", Self::Evidence(Topic::Cost)),
        ("io", Self::Evidence(Topic::Io)),
        ("sql", Self::Evidence(Topic::Sql)),
        ("statistics", Self::Evidence(Topic::Statistics)),
        ("config", Self::Config),
        ("all", Self::All),
    ];
}

impl TerminalOptions {
    /// 100 columns, no colour, everything: what a file gets.
    pub const PLAIN: Self =
        Self { width: 100, colour: false, part: Part::All, steps: Vec::new(), run: String::new() };
}

/// The terminal's report. Its summary has a row a step and a column a variant, because terminals are higher than wide.
#[derive(Debug, Clone)]
pub struct Terminal {
    pub options: TerminalOptions,
}

impl Format for Terminal {
    fn name(&self) -> &'static str {
        "terminal"
    }

    fn extension(&self) -> &'static str {
        "txt"
    }

    fn render(&self, findings: &Findings) -> Result<String, Error> {
        self.known_steps(findings)?;
        let mut screen = Screen { text: String::new(), options: &self.options };
        match self.options.part {
            Part::Answer => screen.short(findings),
            Part::Warnings => screen.warnings(findings),
            Part::Tables => screen.tables(findings),
            Part::Evidence(topic) => screen.evidence(findings, Some(topic)),
            Part::Config => screen.config(findings),
            Part::All if !self.options.steps.is_empty() => screen.evidence(findings, None),
            Part::All => screen.everything(findings),
        }
        Ok(screen.text)
    }
}

impl Terminal {
    fn known_steps(&self, findings: &Findings) -> Result<(), Error> {
        let steps = findings.workloads.iter().flat_map(|workload| &workload.steps);
        let known: Vec<&str> = steps.map(|step| step.name.as_str()).collect();
        match self.options.steps.iter().find(|asked| !known.contains(&asked.as_str())) {
            Some(asked) => Err(Error::UnknownStep { asked: asked.clone(), known: known.join(", ") }),
            None => Ok(()),
        }
    }
}

/// How the variants of a plan would be configured, for a terminal: remarks and the table of classes.
pub fn parity_terminal(parity: &Parity, options: &TerminalOptions) -> String {
    let mut screen = Screen { text: String::new(), options };
    screen.parity(parity);
    screen.text
}

struct Screen<'a> {
    text: String,
    options: &'a TerminalOptions,
}

impl Screen<'_> {
    /// The answer and what must be known with it, and no more.
    fn short(&mut self, findings: &Findings) {
        self.short_head(findings);
        self.doubts(findings);
        for workload in &findings.workloads {
            let sections = sections(&workload.summary);
            for section in sections.iter().filter(|section| section.is_control) {
                self.summary_table(section);
            }
        }
        self.answers(findings);
    }

    fn everything(&mut self, findings: &Findings) {
        self.head(findings);
        self.answers(findings);
        for workload in &findings.workloads {
            self.summary(findings, workload);
        }
        if let Some(parity) = &findings.parity {
            self.parity(parity);
        }
        self.evidence(findings, None);
        for workload in &findings.workloads {
            self.conditions(workload);
        }
        self.logs(findings);
        self.configurations(findings);
        self.part("Order of cells");
        for cell in &findings.run.order {
            self.item(cell);
        }
    }

    /// Title, run, and a line a variant.
    fn short_head(&mut self, findings: &Findings) {
        let run = &findings.run;
        let cells = match run.cells_completed == run.cells_planned {
            true => String::new(),
            false => format!(" · {} of {} cells completed", run.cells_completed, run.cells_planned),
        };
        let blocks = blocks_text(run);
        self.heading(&format!("{} · {blocks}{cells} · {}", title(findings), run.run_id));
        let name_width = findings.variants.iter().map(|variant| variant.name.chars().count()).max();
        for variant in &findings.variants {
            let base = if variant.name == run.base { "base" } else { "    " };
            let name = format!("{:width$}", one_line(&variant.name), width = name_width.unwrap_or(0).min(24));
            let line = format!("{base}  {name}  {}", one_line(&version(variant)));
            let line = cut(&line, self.options.width);
            self.line(line.trim_end());
        }
    }

    /// A line for each warning that makes figures invalid; the others are counted.
    fn doubts(&mut self, findings: &Findings) {
        let (invalid, others): (Vec<_>, Vec<_>) =
            findings.warnings.iter().partition(|notice| notice.severity == Severity::Invalid);
        let differences = findings.parity.as_ref().map_or(0, |parity| short_lines(parity).len());
        if !findings.warnings.is_empty() || differences > 0 {
            self.line("");
        }
        for notice in invalid {
            let line = cut(&one_line(&format!("! {notice}")), self.options.width);
            let line = self.painted(Paint::Red, &line);
            self.line(&line);
        }
        let more = |count: usize, what: &str, part: &str| {
            let run = &self.options.run;
            let shown = if run.is_empty() { part.to_owned() } else { format!("dbdyno report {run} {part}") };
            (count > 0).then(|| format!("{}: {shown}", numbered(count, what)))
        };
        let lines = [
            more(others.len(), "warning", "--warnings"),
            more(differences, "configuration difference", "--section config"),
        ];
        for line in lines.into_iter().flatten() {
            self.paragraph(Paint::Yellow, &line, "  ");
        }
    }

    fn answers(&mut self, findings: &Findings) {
        for workload in &findings.workloads {
            let answer = answer(&findings.run, workload);
            self.line("");
            for sentence in &answer.sentences {
                self.paragraph(Paint::Bold, sentence, "  ");
            }
            for (number, table) in answer.tables.iter().enumerate() {
                if number > 0 {
                    self.line("");
                }
                let table = self.fitted(table);
                self.table(&table);
            }
            if !answer.note.is_empty() {
                self.paragraph(Paint::Dim, &answer.note, "");
            }
        }
    }

    /// Without the columns that there is no room for.
    fn fitted(&self, answer: &AnswerTable) -> TextTable {
        let widest_rank = answer.columns.iter().map(|column| column.rank).max().unwrap_or(0);
        let upto = |rank: u8| {
            let kept: Vec<usize> =
                (0..answer.columns.len()).filter(|&column| answer.columns[column].rank <= rank).collect();
            let heads = kept.iter().map(|&column| &answer.columns[column]);
            let cell =
                |cell: &AnswerCell| TextCell { text: one_line(&cell.text), paint: paint(cell.verdict) };
            TextTable {
                labels: 1,
                heads: heads.map(|column| (one_line(&column.name), column.unit.clone())).collect(),
                rows: answer.rows.iter().map(|row| kept.iter().map(|&at| cell(&row[at])).collect()).collect(),
            }
        };
        let fits = |rank: &u8| upto(*rank).width() <= self.options.width;
        (0..=widest_rank).rev().find(fits).map_or_else(|| upto(0), upto)
    }

    fn warnings(&mut self, findings: &Findings) {
        if findings.warnings.is_empty() {
            self.line("No warnings.");
        }
        for notice in &findings.warnings {
            self.item(&notice.text);
        }
    }

    fn tables(&mut self, findings: &Findings) {
        for workload in &findings.workloads {
            self.summary(findings, workload);
        }
    }

    /// Of one topic, or of all.
    fn evidence(&mut self, findings: &Findings, topic: Option<Topic>) {
        for workload in &findings.workloads {
            let steps: Vec<&StepFindings> =
                workload.steps.iter().filter(|step| self.is_asked(step)).collect();
            if topic.is_none_or(|topic| topic == Topic::Latency) && !steps.is_empty() {
                self.grid(&latency_of_all(&steps));
            }
            for step in steps {
                self.step(workload, step, topic);
            }
        }
    }

    fn is_asked(&self, step: &StepFindings) -> bool {
        self.options.steps.is_empty() || self.options.steps.contains(&step.name)
    }

    fn config(&mut self, findings: &Findings) {
        if let Some(parity) = &findings.parity {
            self.parity(parity);
        }
        for workload in &findings.workloads {
            self.conditions(workload);
        }
        self.configurations(findings);
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn painted(&self, paint: Paint, text: &str) -> String {
        if self.options.colour { paint.apply(text) } else { text.to_owned() }
    }

    fn heading(&mut self, text: &str) {
        let heading = self.painted(Paint::Bold, &one_line(text));
        if !self.text.is_empty() {
            self.line("");
        }
        self.line(&heading);
    }

    /// Heading of a part, with a rule to the edge, so that parts are found while scrolling.
    fn part(&mut self, text: &str) {
        let text = one_line(text);
        let rule = "━".repeat(self.options.width.saturating_sub(text.chars().count() + 1));
        self.heading(format!("{text} {rule}").trim_end());
    }

    fn paragraph(&mut self, paint: Paint, text: &str, indent: &str) {
        for line in wrapped(&one_line(text), self.options.width, indent) {
            let line = self.painted(paint, &line);
            self.line(&line);
        }
    }

    fn item(&mut self, text: &str) {
        self.paragraph(Paint::Plain, &format!("• {text}"), "  ");
    }

    fn head(&mut self, findings: &Findings) {
        self.heading(&title(findings));
        let name_width =
            findings.variants.iter().map(|variant| variant.name.chars().count()).max().unwrap_or(0).min(24);
        for variant in &findings.variants {
            let base = if variant.name == findings.run.base { " · base" } else { "" };
            // Wrapped by hand: the padding after the name must survive.
            let name = format!("  {:name_width$}  ", one_line(&variant.name));
            let room = self.options.width.saturating_sub(name.chars().count()).max(20);
            let indent = " ".repeat(name.chars().count());
            let text = one_line(&format!("{}{base}", variant_line(findings, variant)));
            for (number, line) in wrapped(&text, room, "").iter().enumerate() {
                let start = if number == 0 { &name } else { &indent };
                self.line(&format!("{start}{line}"));
            }
        }
        self.paragraph(Paint::Dim, &host_line(&findings.run), "  ");
        self.paragraph(Paint::Dim, &run_line(&findings.run), "  ");
        if !findings.warnings.is_empty() {
            self.line("");
        }
        for notice in &findings.warnings {
            self.paragraph(Paint::Yellow, &format!("Warning: {notice}"), "  ");
        }
    }

    fn summary(&mut self, findings: &Findings, workload: &WorkloadFindings) {
        self.part(&workload.name);
        for line in reasons(&findings.run, workload) {
            self.item(&line);
        }
        for section in sections(&workload.summary) {
            self.summary_table(&section);
        }
    }

    fn summary_table(&mut self, section: &Section<'_>) {
        self.heading(&section.table.title);
        self.paragraph(Paint::Dim, &section.table.caption, "");
        self.table(&if section.turns { turned(section) } else { upright(section) });
        let legend = section.legend_text();
        if !legend.is_empty() {
            self.paragraph(Paint::Dim, &legend, "  ");
        }
        for line in &section.missing {
            self.item(line);
        }
    }

    fn table(&mut self, table: &TextTable) {
        for line in table.lines(self.options.width, self.options.colour) {
            self.line(&line);
        }
    }

    /// The findings first; the table is evidence.
    fn parity(&mut self, parity: &Parity) {
        self.part(TITLE);
        for line in &lines(parity) {
            self.item(line);
        }
        self.grid(&grid(parity));
    }

    /// Tables of one topic, or of all. A step that has none of the topic is left out.
    fn step(&mut self, workload: &WorkloadFindings, step: &StepFindings, topic: Option<Topic>) {
        let grids: Vec<Grid> =
            grids(step).into_iter().filter(|grid| topic.is_none_or(|t| t == grid.topic)).collect();
        let has_sql = topic.is_none_or(|topic| topic == Topic::Sql) && !step.statements.is_empty();
        if topic.is_some() && grids.is_empty() && !has_sql {
            return;
        }
        self.part(&format!("{} · {} · {}", step.name, workload.name, step.rate_label));
        if let Some(line) = target_line(step) {
            self.paragraph(Paint::Dim, &line, "");
        }
        for problem in problems(step) {
            self.paragraph(Paint::Yellow, &format!("• {problem}"), "  ");
        }
        for grid in &grids {
            self.grid(grid);
        }
        for (kind, statement) in step.statements.iter().filter(|_| has_sql) {
            self.line("");
            self.paragraph(Paint::Plain, &format!("{kind}: {statement}"), "  ");
        }
    }

    fn grid(&mut self, grid: &Grid) {
        self.heading(&grid.title);
        self.paragraph(Paint::Dim, &grid.note, "");
        let heads = grid.columns.iter().map(|column| (column.name.clone(), column.unit.clone())).collect();
        let rows = grid
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| TextCell::from(one_line(cell))).collect())
            .collect();
        let table = TextTable { labels: grid.labels, heads, rows };
        self.table(&table.with_long_cells_broken(self.options.width));
    }

    fn conditions(&mut self, workload: &WorkloadFindings) {
        self.part(&format!("How {} was run", workload.name));
        self.paragraph(
            Paint::Plain,
            &format!("Version {}. It follows {}.", workload.version, workload.follows),
            "",
        );
        for deviation in &workload.deviations {
            self.item(&format!("{}: {} (original: {})", deviation.topic, deviation.here, deviation.original));
        }
        self.heading("Options");
        for (name, value) in &workload.options {
            self.item(&format!("{name} = {}", option_text(value)));
        }
    }

    fn logs(&mut self, findings: &Findings) {
        for (number, (cell, log)) in logs(findings).iter().enumerate() {
            if number == 0 {
                self.part(FAILURES);
            }
            self.item(cell);
            for line in log.lines() {
                self.paragraph(Paint::Plain, &format!("› {line}"), "    ");
            }
        }
    }

    fn configurations(&mut self, findings: &Findings) {
        for variant in findings.variants.iter().filter(|variant| !variant.config.is_empty()) {
            self.part(&format!("Configuration of {}", variant.name));
            for line in variant.config.lines() {
                // As it was written: a configuration is copied more often than read.
                let line: String = line.chars().filter(|c| !c.is_control()).collect();
                self.line(&format!("  {line}"));
            }
        }
    }
}

/// Server and version, without what rarely matters.
fn version(variant: &VariantSummary) -> String {
    let version = variant.version_text.as_str();
    let mut parts = vec![variant.server.clone()];
    parts.extend((!variant.server.contains(version)).then(|| version.to_owned()));
    // An engine that has the server's version is named alone.
    parts
        .extend(variant.engine.as_ref().map(|engine| engine.trim_end_matches(version).trim_end().to_owned()));
    parts.extend(variant.memory_limit_bytes.map(|bytes| format!("memory limited to {}", size_text(bytes))));
    parts.extend(variant.encryption.as_ref().map(|encryption| format!("connections {encryption}")));
    parts.retain(|part| !part.is_empty() && !variant.server.starts_with(part.as_str()));
    parts.join(" · ")
}

/// Only what was decided has a colour.
fn paint(verdict: Option<Verdict>) -> Paint {
    match verdict {
        Some(Verdict::Faster) => Paint::Green,
        Some(Verdict::Slower | Verdict::Missed | Verdict::Stalled) => Paint::Red,
        Some(Verdict::Invalid) => Paint::Yellow,
        _ => Paint::Plain,
    }
}

#[cfg(test)]
mod tests;
