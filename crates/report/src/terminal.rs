//! Findings for a terminal: the answer first, in a width that fits.

mod summary_table;

use dbdyno_analyse::parity::Parity;
use dbdyno_analyse::{Findings, StepFindings, WorkloadFindings};

use self::summary_table::{turned, upright};
use crate::evidence::{Grid, grids, problems};
use crate::facts::{
    FAILURES, answers, host_line, logs, option_text, run_line, target_line, title, variant_line,
};
use crate::parity::{TITLE, grid, lines, short_lines};
use crate::summary::{Section, sections};
use crate::text_table::{Paint, TextCell, TextTable, one_line, wrapped};
use crate::{Error, Format};

/// How the terminal's report is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalOptions {
    /// Columns of the terminal. Tables that are wider continue below with their labels repeated.
    pub width: usize,
    /// ANSI colours. The caller decides (terminal or not, `NO_COLOR`); signs stand next to them in any case.
    pub colour: bool,
    /// Also the evidence of each step and the conditions; without it only what was compared and the summary.
    pub evidence: bool,
}

impl TerminalOptions {
    /// 100 columns, no colour, everything: what a pipe gets.
    pub const PLAIN: Self = Self { width: 100, colour: false, evidence: true };
}

/// The terminal's report. Its summary has a row a step and a column a variant, because terminals are higher than wide.
#[derive(Debug, Clone, Copy)]
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
        let mut screen = Screen { text: String::new(), options: self.options };
        screen.head(findings);
        for workload in &findings.workloads {
            screen.summary(findings, workload);
        }
        if let Some(parity) = &findings.parity {
            screen.parity(parity);
        }
        if self.options.evidence {
            for workload in &findings.workloads {
                for step in &workload.steps {
                    screen.step(workload, step);
                }
                screen.conditions(workload);
            }
            screen.logs(findings);
            screen.configurations(findings);
            screen.part("Order of cells");
            for cell in &findings.run.order {
                screen.item(cell);
            }
        }
        Ok(screen.text)
    }
}

/// How the variants of a plan would be configured, for a terminal: remarks and the table of classes.
pub fn parity_terminal(parity: &Parity, options: TerminalOptions) -> String {
    let mut screen = Screen { text: String::new(), options: TerminalOptions { evidence: true, ..options } };
    screen.parity(parity);
    screen.text
}

struct Screen {
    text: String,
    options: TerminalOptions,
}

impl Screen {
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
        for warning in &findings.warnings {
            self.paragraph(Paint::Yellow, &format!("Warning: {warning}"), "  ");
        }
    }

    fn summary(&mut self, findings: &Findings, workload: &WorkloadFindings) {
        self.part(&workload.name);
        for line in answers(&findings.run, workload) {
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
        let lines = if self.options.evidence { lines(parity) } else { short_lines(parity) };
        if lines.is_empty() && !self.options.evidence {
            return;
        }
        self.part(TITLE);
        for line in &lines {
            self.item(line);
        }
        if self.options.evidence {
            self.grid(&grid(parity));
        }
    }

    fn step(&mut self, workload: &WorkloadFindings, step: &StepFindings) {
        self.part(&format!("{} · {} · {}", step.name, workload.name, step.rate_label));
        if let Some(line) = target_line(step) {
            self.paragraph(Paint::Dim, &line, "");
        }
        for problem in problems(step) {
            self.paragraph(Paint::Yellow, &format!("• {problem}"), "  ");
        }
        for grid in grids(step) {
            self.grid(&grid);
        }
        for (kind, statement) in &step.statements {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn render(findings: &Findings, options: TerminalOptions) -> String {
        Terminal { options }.render(findings).expect("plain data")
    }

    #[test]
    fn the_report_of_the_fixture() {
        insta::assert_snapshot!("terminal", render(&fixture::findings(), TerminalOptions::PLAIN));
    }

    #[test]
    fn the_summary_alone_in_colour() {
        let options = TerminalOptions { width: 80, colour: true, evidence: false };
        let text = render(&fixture::findings(), options).replace('\u{1b}', "ESC");
        insta::assert_snapshot!("terminal_summary_in_colour", text);
    }

    #[test]
    fn with_several_blocks_ratios_have_intervals_and_verdicts_below_each_other() {
        let options = TerminalOptions { evidence: false, ..TerminalOptions::PLAIN };
        let text = render(&fixture::with_blocks(3), options);
        let table =
            text.split("\nRelative\n").nth(1).expect("there is one").split("\n\n").next().expect("text");
        insta::assert_snapshot!(table, @r#"
        Rate divided by that of rollback.
        step    rollback                               <b>&"
        ────────────────────────────────────────────────────
        l.i0        1.00     1.02   0.969–1.074  undecided
        l.x         1.00     0.99   0.970–1.010  same
        l.i1        1.00     2.50   2.450–2.551  faster    +
        l.i2        1.00     9.87  9.673–10.071  faster    +
        qr100       1.00     1.04   0.988–1.095  undecided
        qp100       1.00     1.30   1.274–1.327  faster    +
        qr500       1.00     0.97   0.921–1.021  undecided
        qp500       1.00  invalid
        qr1000      1.00     0.80   0.784–0.816  slower    −
        qp1000      1.00   failed
        + more than 5 % above the base · − more than 5 % below the base
        "#);
    }

    #[test]
    fn a_table_of_groups_stands_upright() {
        let options = TerminalOptions { evidence: false, ..TerminalOptions::PLAIN };
        let text = render(&fixture::with_groups(), options);
        let table = text.split("\nGroups of steps (2024)\n").nth(1).expect("there is one");
        insta::assert_snapshot!(table.split("\n\n").next().expect("text"), @r"
        Relative rates.
        group          average     max       geometric mean
        ───────────────────────────────────────────────────
        writes          3.59 +  9.87 +  2.23  0.970–2.310 +
        range, part 1   1.17 +  1.30 +  1.16  0.970–2.310 +
        + more than 5 % above the base
        ");
    }

    #[test]
    fn tests_before_and_behind_the_writes_have_a_row_each_and_a_column_a_variant() {
        let options = TerminalOptions { evidence: false, ..TerminalOptions::PLAIN };
        let text = render(&fixture::with_aging(), options);
        let table = text.split("\nAfter ÷ before writes\n").nth(1).expect("there is one");
        insta::assert_snapshot!(table.split("\n\n").next().expect("text"), @r#"
        Rate after the steps that write ÷ rate before them.
        test              rollback                 <b>&"
        ────────────────────────────────────────────────
        qr500  0.72  0.710–0.730 −  invalid
        qp500  1.00  0.980–1.020       1.00  0.980–1.020
        − more than 5 % below the rate before the writes
        "#);
    }

    #[test]
    fn a_sweep_has_a_row_a_number_of_connections() {
        let options = TerminalOptions { evidence: false, ..TerminalOptions::PLAIN };
        let text = render(&fixture::with_sweep(), options);
        let table = text.split("\nConnections: read-only\n").nth(1).expect("there is one");
        insta::assert_snapshot!(table.split("\n\n").next().expect("text"), @r#"
        By number of connections.
        connections  rollback  rollback   <b>&"   <b>&"
                         rate    p95 ms    rate  p95 ms
        ───────────────────────────────────────────────
        1                1000      0.50    1200    0.50
        2                2000      1.00    2400    1.00
        4                4000      2.00    4800    2.00
        1024             2000   2000.00  failed  failed
        "#);
    }

    #[test]
    fn nothing_but_configurations_is_wider_than_the_terminal() {
        for width in [80, 100, 140] {
            let text = render(&fixture::with_blocks(3), TerminalOptions { width, ..TerminalOptions::PLAIN });
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn without_colour_there_is_no_escape_sequence() {
        assert!(!render(&fixture::findings(), TerminalOptions::PLAIN).contains('\u{1b}'));
    }

    #[test]
    fn many_variants_continue_below() {
        let names: Vec<String> = (0..12).map(|number| format!("variant-number-{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let options = TerminalOptions { evidence: false, ..TerminalOptions::PLAIN };
        let text = render(&fixture::sized(&names, 1, 3), options);
        assert!(text.lines().all(|line| line.chars().count() <= 100));
        assert!(names.iter().all(|name| text.contains(name)));
    }
}
