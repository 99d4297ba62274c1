//! Lays out aligned tables in plain text that never exceed a width. What does not fit goes into a
//! further part, with its labels repeated.
//!
//! Colour is added after a table cell was padded, so that it never disturbs the alignment.

mod long_cells;

use super::Tone;
use super::text::{columns_of, cut, painted, wrapped};

#[derive(Debug, Clone, Default)]
pub(crate) struct TextCell {
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

impl From<String> for TextCell {
    fn from(text: String) -> Self {
        Self { text, tone: Tone::Plain }
    }
}

/// A table. Columns below `labels` are repeated in each part.
#[derive(Debug, Clone, Default)]
pub(crate) struct TextTable {
    pub(crate) labels: usize,
    /// Name and unit of each column. Units make a second line when any column has one.
    pub(crate) heads: Vec<(String, String)>,
    /// Whether each column has words, which are aligned at their left.
    pub(crate) words: Vec<bool>,
    /// Whether heads are broken at spaces, so that a column is hardly wider than its figures.
    pub(crate) breaks_heads: bool,
    pub(crate) rows: Vec<Vec<TextCell>>,
}

/// Number of characters at which heads are broken.
const HEAD: usize = 10;
const GAP: usize = 2;
/// Labels longer than this end in an ellipsis, because names are the user's and may have any
/// length.
const LABEL_LIMIT: usize = 40;

impl TextTable {
    /// The table's lines, each at most `width` characters wherever labels and one column fit.
    pub(crate) fn lines(&self, width: usize, colour: bool) -> Vec<String> {
        let widths: Vec<usize> = (0..self.heads.len()).map(|column| self.width_of(column)).collect();
        let mut lines = Vec::new();
        for (number, part) in self.parts(&widths, width).iter().enumerate() {
            if number > 0 {
                lines.push(String::new());
            }
            self.part_lines(part, &widths, colour, &mut lines);
        }
        lines
    }

    /// Width that the table takes in one part, in columns of the terminal.
    pub(crate) fn width(&self) -> usize {
        let columns = (0..self.heads.len()).map(|column| self.width_of(column) + GAP);
        columns.sum::<usize>().saturating_sub(GAP)
    }

    fn part_lines(&self, part: &[usize], widths: &[usize], colour: bool, lines: &mut Vec<String>) {
        let heads: Vec<Vec<String>> = part.iter().map(|&column| self.head(column)).collect();
        let height = heads.iter().map(Vec::len).max().unwrap_or(0);
        for at in 0..height {
            // The last line of each head is at the bottom.
            let of = |head: &Vec<String>| (at + head.len()).checked_sub(height).map(|at| head[at].clone());
            let texts = heads.iter().map(|head| of(head).unwrap_or_default());
            let line =
                self.line(part, widths, texts.map(|text| TextCell { text, tone: Tone::Muted }), colour);
            lines.extend(Some(line).filter(|line| !line.is_empty()));
        }
        let total = part.iter().map(|&column| widths[column]).sum::<usize>() + GAP * (part.len() - 1);
        let rule = "─".repeat(total);
        lines.push(if colour { painted(Tone::Muted, &rule) } else { rule });
        for row in &self.rows {
            let line = self.line(part, widths, part.iter().map(|&column| row[column].clone()), colour);
            // The further lines of a long table cell are empty in the other parts.
            lines.extend(Some(line).filter(|line| !line.is_empty()));
        }
    }

    fn line(
        &self,
        part: &[usize],
        widths: &[usize],
        cells: impl Iterator<Item = TextCell>,
        colour: bool,
    ) -> String {
        let mut line = String::new();
        for (position, (cell, &column)) in cells.zip(part).enumerate() {
            if position > 0 {
                line.push_str(&" ".repeat(GAP));
            }
            let text = self.shortened(column, &cell.text);
            let padding = " ".repeat(widths[column].saturating_sub(columns_of(&text)));
            let text = if colour && !text.is_empty() { painted(cell.tone, &text) } else { text };
            if self.words[column] {
                line.push_str(&text);
                line.push_str(&padding);
            } else {
                line.push_str(&padding);
                line.push_str(&text);
            }
        }
        line.truncate(line.trim_end().len());
        line
    }

    /// Columns of each part: the labels, and as many of the others as fit, in their order.
    fn parts(&self, widths: &[usize], width: usize) -> Vec<Vec<usize>> {
        let labels: Vec<usize> = (0..self.labels).collect();
        let label_width: usize = labels.iter().map(|&column| widths[column] + GAP).sum();
        let mut parts = vec![labels.clone()];
        let mut used = label_width;
        for (column, column_width) in widths.iter().enumerate().skip(self.labels) {
            let part_is_empty = parts.last().is_some_and(|part| part.len() == labels.len());
            if used + column_width > width && !part_is_empty {
                parts.push(labels.clone());
                used = label_width;
            }
            used += column_width + GAP;
            if let Some(part) = parts.last_mut() {
                part.push(column);
            }
        }
        parts
    }

    fn width_of(&self, column: usize) -> usize {
        let heads = self.head(column);
        let heads = heads.iter().map(|text| columns_of(&self.shortened(column, text)));
        heads.max().unwrap_or(0).max(self.width_of_cells(column))
    }

    fn width_of_cells(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| columns_of(&self.shortened(column, &row[column].text)));
        cells.max().unwrap_or(0)
    }

    /// The lines of a column's head. The unit is the last one where any column has a unit.
    fn head(&self, column: usize) -> Vec<String> {
        let (name, unit) = &self.heads[column];
        let mut lines = match self.breaks_heads {
            true => wrapped(name, HEAD.max(self.width_of_cells(column)), ""),
            false => vec![name.clone()],
        };
        if self.heads.iter().any(|(_, unit)| !unit.is_empty()) {
            lines.push(unit.clone());
        }
        lines
    }

    fn shortened(&self, column: usize, text: &str) -> String {
        if column >= self.labels { text.to_owned() } else { cut(text, LABEL_LIMIT) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TextTable {
        let head = |name: &str, unit: &str| (name.to_owned(), unit.to_owned());
        let row = |texts: [&str; 4]| texts.map(|text| TextCell::from(text.to_owned())).to_vec();
        TextTable {
            labels: 1,
            words: vec![true, false, false, false],
            breaks_heads: false,
            heads: vec![head("variant", ""), head("ips", "rows/s"), head("rss", "GiB"), head("tag", "")],
            rows: vec![row(["a", "120000", "0.5", "t"]), row(["longer", "7", "12.0", "uv"])],
        }
    }

    #[test]
    fn labels_are_on_the_left_and_figures_on_the_right() {
        insta::assert_snapshot!(table().lines(80, false).join("\n"), @r"
        variant     ips   rss  tag
                 rows/s   GiB
        ──────────────────────────
        a        120000   0.5    t
        longer        7  12.0   uv
        ");
    }

    #[test]
    fn what_does_not_fit_goes_into_a_second_part_with_the_labels_repeated() {
        let lines = table().lines(22, false);
        assert!(lines.iter().all(|line| columns_of(line) <= 22), "{lines:#?}");
        insta::assert_snapshot!(lines.join("\n"), @r"
        variant     ips   rss
                 rows/s   GiB
        ─────────────────────
        a        120000   0.5
        longer        7  12.0

        variant  tag
        ────────────
        a          t
        longer    uv
        ");
    }

    #[test]
    fn heads_are_broken_where_columns_would_be_wider_than_their_cells() {
        let mut table = TextTable { breaks_heads: true, ..table() };
        table.heads[1].0 = "as the only one of 10".to_owned();
        insta::assert_snapshot!(table.lines(80, false).join("\n"), @r"
                   as the
                 only one
        variant     of 10   rss  tag
                   rows/s   GiB
        ────────────────────────────
        a          120000   0.5    t
        longer          7  12.0   uv
        ");
    }

    #[test]
    fn colour_does_not_move_anything() {
        let mut painted = table();
        painted.rows[0][1].tone = Tone::Better;
        let coloured = painted.lines(80, true).join("\n");
        assert!(coloured.contains("\u{1b}[32m120000\u{1b}[0m"));
        let mut plain = coloured;
        for code in ["1", "2", "31", "32", "33", "36", "0"] {
            plain = plain.replace(&format!("\u{1b}[{code}m"), "");
        }
        assert_eq!(plain, table().lines(80, false).join("\n"));
    }

    #[test]
    fn a_long_label_is_cut() {
        let mut table = table();
        table.rows[0][0].text = "x".repeat(200);
        assert!(table.lines(80, false).iter().all(|line| columns_of(line) <= 80));
    }
}
