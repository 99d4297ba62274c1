//! Findings as Markdown, for a pull request or a blog post.

use dbdyno_analyse::{Findings, Severity, StepFindings, VariantSummary, WorkloadFindings};

use crate::answer::answer;
use crate::evidence::{Grid, grids, latency_of_all, problems};
use crate::facts::{
    FAILURES, host_line, logs, option_text, reasons, run_line, target_line, title, variant_line,
};
use crate::parity::{TITLE, grid, lines};
use crate::summary::{Section, marked, sections};
use crate::text_table::one_line;
use crate::{Error, Format};

/// The Markdown report; tables as in GitHub Flavored Markdown.
#[derive(Debug, Clone, Copy)]
pub struct Markdown;

impl Format for Markdown {
    fn name(&self) -> &'static str {
        "md"
    }

    fn extension(&self) -> &'static str {
        "md"
    }

    fn render(&self, findings: &Findings) -> Result<String, Error> {
        let mut page = Page::default();
        page.block(&format!("# {}", escaped(&title(findings))));
        page.warnings(findings, Severity::Invalid);
        for workload in &findings.workloads {
            page.answer(findings, workload);
        }
        page.head(findings);
        page.warnings(findings, Severity::Caution);
        for workload in &findings.workloads {
            page.summary(findings, workload);
        }
        if let Some(parity) = &findings.parity {
            page.list(TITLE, &lines(parity));
            page.grid(&grid(parity));
        }
        for workload in &findings.workloads {
            for step in &workload.steps {
                page.step(workload, step);
            }
            page.conditions(workload);
        }
        page.logs(findings);
        page.configurations(&findings.variants);
        page.list("Order of cells", &findings.run.order);
        Ok(page.text)
    }
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// A paragraph or heading: a block of its own.
    fn block(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.line("");
        }
        self.line(text);
    }

    /// Nothing at all when there are no items.
    fn list(&mut self, heading: &str, items: &[String]) {
        if items.is_empty() {
            return;
        }
        self.block(&format!("## {heading}"));
        self.items(items);
    }

    fn items(&mut self, items: &[String]) {
        for (number, item) in items.iter().enumerate() {
            let line = format!("- {}", escaped(item));
            if number == 0 { self.block(&line) } else { self.line(&line) }
        }
    }

    fn table(&mut self, labels: usize, heads: &[String], rows: &[Vec<String>]) {
        self.block(&table(labels, heads, rows));
    }

    fn answer(&mut self, findings: &Findings, workload: &WorkloadFindings) {
        self.block(&format!("## {}", escaped(&workload.name)));
        let answer = answer(&findings.run, workload);
        for sentence in &answer.sentences {
            self.block(&format!("**{}**", escaped(sentence)));
        }
        for table in &answer.tables {
            let heads: Vec<String> = table
                .columns
                .iter()
                .map(|column| match column.unit.as_str() {
                    "" => escaped(&column.name),
                    unit => escaped(&format!("{} ({unit})", column.name)),
                })
                .collect();
            let rows: Vec<Vec<String>> =
                table.rows.iter().map(|row| row.iter().map(|cell| escaped(&cell.text)).collect()).collect();
            self.table(1, &heads, &rows);
        }
        if !answer.note.is_empty() {
            self.block(&escaped(&answer.note));
        }
    }

    fn warnings(&mut self, findings: &Findings, severity: Severity) {
        let of_severity = findings.warnings.iter().filter(|notice| notice.severity == severity);
        for (number, notice) in of_severity.enumerate() {
            let line = format!("> **Warning:** {}", escaped(&notice.text));
            if number == 0 {
                self.block(&line);
            } else {
                self.line(">");
                self.line(&line);
            }
        }
    }

    fn head(&mut self, findings: &Findings) {
        self.block("## What was compared");
        let variants = findings.variants.iter().map(|variant| {
            let base = if variant.name == findings.run.base { " (base)" } else { "" };
            format!("{}{base}: {}", variant.name, variant_line(findings, variant))
        });
        self.items(&variants.collect::<Vec<_>>());
        self.block(&escaped(&host_line(&findings.run)));
        self.block(&escaped(&run_line(&findings.run)));
    }

    fn summary(&mut self, findings: &Findings, workload: &WorkloadFindings) {
        self.items(&reasons(&findings.run, workload));
        for section in sections(&workload.summary) {
            self.summary_table(&section);
        }
        let steps: Vec<&StepFindings> = workload.judged_steps().collect();
        self.grid(&latency_of_all(&steps));
    }

    fn summary_table(&mut self, section: &Section<'_>) {
        let table = section.table;
        self.block(&format!("### {}", escaped(&table.title)));
        self.block(&escaped(&table.caption));
        let heads: Vec<String> = std::iter::once(section.heads[0])
            .chain(table.columns.iter().map(String::as_str))
            .map(escaped)
            .collect();
        let rows: Vec<Vec<String>> = table
            .rows
            .iter()
            .map(|row| {
                let cells = row.cells.iter().map(|cell| escaped(&marked(row, cell)));
                std::iter::once(escaped(&row.label)).chain(cells).collect()
            })
            .collect();
        self.table(1, &heads, &rows);
        let legend = section.legend_text();
        if !legend.is_empty() {
            self.block(&format!("Marks: {legend}."));
        }
        self.items(&section.missing);
    }

    fn step(&mut self, workload: &WorkloadFindings, step: &StepFindings) {
        self.block(&format!(
            "## {} ({}, {})",
            escaped(&step.name),
            escaped(&workload.name),
            escaped(&step.rate_label)
        ));
        if let Some(line) = target_line(step) {
            self.block(&escaped(&line));
        }
        self.items(&problems(step));
        for grid in grids(step) {
            self.grid(&grid);
        }
        for (number, (kind, statement)) in step.statements.iter().enumerate() {
            if number == 0 {
                self.block("### SQL");
            }
            self.block(&format!("{}:", escaped(kind)));
            self.block(&code_block(statement));
        }
    }

    fn grid(&mut self, grid: &Grid) {
        self.block(&format!("### {}", escaped(&grid.title)));
        self.block(&escaped(&grid.note));
        let heads: Vec<String> = grid
            .columns
            .iter()
            .map(|column| match column.unit.as_str() {
                "" => escaped(&column.name),
                unit => escaped(&format!("{} ({unit})", column.name)),
            })
            .collect();
        let rows: Vec<Vec<String>> =
            grid.rows.iter().map(|row| row.iter().map(|cell| escaped(cell)).collect()).collect();
        self.table(grid.labels, &heads, &rows);
    }

    fn conditions(&mut self, workload: &WorkloadFindings) {
        self.block(&format!("## How {} was run", escaped(&workload.name)));
        self.block(&escaped(&format!(
            "Version {} of the workload. It follows {}.",
            workload.version, workload.follows
        )));
        if !workload.deviations.is_empty() {
            self.block("### Where it differs from the original");
            let heads = ["topic", "original", "here"].map(str::to_owned);
            let rows: Vec<Vec<String>> = workload
                .deviations
                .iter()
                .map(|deviation| {
                    [&deviation.topic, &deviation.original, &deviation.here]
                        .map(|text| escaped(text))
                        .to_vec()
                })
                .collect();
            self.table(3, &heads, &rows);
        }
        if !workload.options.is_empty() {
            self.block("### Options");
            let rows: Vec<Vec<String>> = workload
                .options
                .iter()
                .map(|(name, value)| vec![escaped(name), escaped(&option_text(value))])
                .collect();
            self.table(2, &["option", "value"].map(str::to_owned), &rows);
        }
    }

    fn logs(&mut self, findings: &Findings) {
        for (number, (cell, log)) in logs(findings).iter().enumerate() {
            if number == 0 {
                self.block(&format!("## {FAILURES}"));
            }
            self.block(&escaped(cell));
            self.block(&code_block(log));
        }
    }

    fn configurations(&mut self, variants: &[VariantSummary]) {
        for (number, variant) in variants.iter().filter(|variant| !variant.config.is_empty()).enumerate() {
            if number == 0 {
                self.block("## Configurations");
            }
            self.block(&format!("### {}", escaped(&variant.name)));
            self.block(&code_block(&variant.config));
        }
    }
}

/// A table of escaped cells; columns after the first `labels` are right-aligned.
pub(crate) fn table(labels: usize, heads: &[String], rows: &[Vec<String>]) -> String {
    let cells = |cells: &[String]| format!("| {} |", cells.join(" | "));
    let rules = (0..heads.len()).map(|column| if column < labels { "---" } else { "---:" }.to_owned());
    let mut lines = vec![cells(heads), cells(&rules.collect::<Vec<_>>())];
    lines.extend(rows.iter().map(|row| cells(row)));
    lines.join("\n")
}

/// Text that Markdown shows as it is, on one line and inside a table. Underscores within words are left alone: no
/// dialect in use reads them as emphasis.
pub(crate) fn escaped(text: &str) -> String {
    let text = one_line(text);
    let characters: Vec<char> = text.chars().collect();
    let inside_word = |at: usize| {
        let letter =
            |at: Option<usize>| at.and_then(|at| characters.get(at)).is_some_and(|c| c.is_alphanumeric());
        letter(at.checked_sub(1)) && letter(at.checked_add(1))
    };
    let mut result = String::with_capacity(text.len());
    for (at, &character) in characters.iter().enumerate() {
        match character {
            '&' => result.push_str("&amp;"),
            '<' => result.push_str("&lt;"),
            '\\' | '|' | '*' | '`' | '[' | ']' | '~' => result.extend(['\\', character]),
            '_' if !inside_word(at) => result.push_str("\\_"),
            // What would begin a heading, a quotation or a list.
            '#' | '>' if at == 0 => result.extend(['\\', character]),
            '+' | '-' if at == 0 && characters.get(1) == Some(&' ') => result.extend(['\\', character]),
            other => result.push(other),
        }
    }
    result
}

/// A fenced block whose fence is longer than any run of backticks in it.
fn code_block(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn what_markdown_would_read_as_markup_is_escaped() {
        assert_eq!(escaped("<b>&\""), "&lt;b>&amp;\"");
        assert_eq!(escaped("a|b\nc"), "a\\|b c");
        assert_eq!(escaped("# a"), "\\# a");
        assert_eq!(escaped("+ a + b"), "\\+ a + b");
        assert_eq!(escaped("-1.5"), "-1.5");
        assert_eq!(escaped("journal_mode _x_ *y*"), "journal_mode \\_x\\_ \\*y\\*");
    }

    #[test]
    fn a_code_block_cannot_be_closed_by_its_own_text() {
        assert_eq!(code_block("a ``` b"), "````\na ``` b\n````");
    }

    #[test]
    fn every_table_row_has_as_many_cells_as_its_head() {
        let text = Markdown.render(&fixture::with_blocks(2)).expect("plain data");
        let mut columns = None;
        for line in text.lines() {
            if !line.starts_with('|') {
                columns = None;
                continue;
            }
            let cells = line.replace("\\|", "").matches('|').count();
            assert_eq!(*columns.get_or_insert(cells), cells, "{line}");
        }
    }

    #[test]
    fn a_ratio_of_behind_to_before_the_writes_has_its_interval_and_its_sign() {
        let text = Markdown.render(&fixture::with_aging()).expect("plain data");
        let table = text.split("### After ÷ before writes").nth(1).expect("there is one");
        assert!(table.contains("| qr500 | 0.72 0.710–0.730 − | invalid |"), "{table}");
        assert!(table.contains("− more than 5 % below the rate before the writes"));
    }

    #[test]
    fn the_report_of_the_fixture() {
        insta::assert_snapshot!("markdown", Markdown.render(&fixture::findings()).expect("plain data"));
    }
}
