//! Plain text in columns: counted, cut, wrapped, and without control characters for a terminal.
//! [`TextTable`] lays out aligned tables that never exceed a width.
//!
//! Columns that do not fit go into a further part of the table, in which the labels are repeated. A
//! long text, such as a query plan or a setting, is broken into several lines, so that nothing is
//! cut. Colour is added after a table cell was padded, so that it never disturbs the alignment.

use super::Tone;

/// Returns the columns that a text takes, which is its number of characters. Names in double-width
/// scripts are therefore misaligned, but all numbers stay readable.
pub(crate) fn columns_of(text: &str) -> usize {
    text.chars().count()
}

/// Breaks a text at spaces into lines of at most `width` characters, with further lines indented.
pub(crate) fn wrapped(text: &str, width: usize, indent: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let has_word = !line.trim_start().is_empty();
        if has_word && columns_of(&line) + 1 + columns_of(word) > width {
            lines.push(std::mem::replace(&mut line, indent.to_owned()));
        } else if has_word {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// Shortens a text to at most `width` characters. A longer text ends in an ellipsis.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if columns_of(text) <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Puts a text on one line. A character that would break a line or control a terminal becomes a
/// space.
pub(crate) fn one_line(text: &str) -> String {
    text.split(|c: char| c.is_control() || c.is_whitespace())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Writes a text in the colour of its tone. It uses only the sixteen colours that a terminal's own
/// theme keeps readable.
pub(crate) fn painted(tone: Tone, text: &str) -> String {
    let code = match tone {
        Tone::Plain | Tone::Undecided => return text.to_owned(),
        Tone::Strong => "1",
        Tone::Muted | Tone::Missed => "2",
        Tone::Worse | Tone::Lowest => "31",
        Tone::Better | Tone::Highest => "32",
        Tone::Doubt | Tone::Below => "33",
        Tone::Above => "36",
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

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

/// A table. The first `labels` columns are repeated in each part.
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
    /// Returns the table's lines. Each has at most `width` characters wherever the labels and one
    /// column fit.
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

    /// Returns the width that the table takes in one part, in columns of the terminal.
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

    /// Returns the columns of each part: the labels, and as many of the others as fit, in their
    /// order.
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

    /// Returns the lines of a column's head. The unit is the last line where any column has a unit.
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

/// Longest text that is never broken. No column of longer texts becomes narrower than this.
const NARROWEST: usize = 30;
/// The same limit for labels, which are words.
const NARROWEST_LABEL: usize = 16;

impl TextTable {
    /// Where the table is wider than `width`, breaks its long texts at spaces into further rows
    /// that hold nothing else. Labels that would be cut are broken in any case.
    pub(crate) fn with_long_cells_broken(mut self, width: usize) -> Self {
        let widths: Vec<usize> = (0..self.heads.len()).map(|column| self.width_of(column)).collect();
        let mut rooms = self.rooms_of_labels(&widths, width);
        let labels: usize =
            (0..self.labels).map(|column| rooms[column].unwrap_or(widths[column]) + GAP).sum();
        let figures = self.labels..widths.len();
        let is_long = |column: &usize| widths[*column] > NARROWEST;
        let long = figures.clone().filter(is_long).count();
        let all: usize = labels + figures.clone().map(|column| widths[column] + GAP).sum::<usize>();
        if long > 0 && all > width + GAP {
            let short = figures.clone().filter(|column| !is_long(column)).map(|column| widths[column] + GAP);
            // Columns stand next to each other if that leaves them readable, otherwise each has its
            // own part.
            let abreast = (width + GAP).saturating_sub(labels + short.sum::<usize>()) / long;
            let room = if abreast >= NARROWEST + GAP { abreast - GAP } else { width.saturating_sub(labels) };
            for column in figures.filter(is_long) {
                rooms[column] = Some(room.max(NARROWEST));
            }
        }
        self.rows = self.rows.into_iter().flat_map(|row| broken(row, &rooms)).collect();
        self
    }

    /// Returns the width at which each label is broken. The widest label gives way to the widest
    /// short figure, and a label that would be cut is broken instead. It is `None` for a label that
    /// keeps its width.
    fn rooms_of_labels(&self, widths: &[usize], width: usize) -> Vec<Option<usize>> {
        let mut rooms = vec![None; widths.len()];
        let figure = widths[self.labels..].iter().filter(|width| **width <= NARROWEST).max().unwrap_or(&0);
        let over = (widths[..self.labels].iter().map(|width| width + GAP).sum::<usize>() + figure)
            .saturating_sub(width);
        if let Some(widest) = (0..self.labels).max_by_key(|column| widths[*column]) {
            rooms[widest] = (over > 0).then(|| widths[widest].saturating_sub(over).max(NARROWEST_LABEL));
        }
        for (column, room) in rooms.iter_mut().enumerate().take(self.labels) {
            let would_be_cut = self.rows.iter().any(|row| columns_of(&row[column].text) > LABEL_LIMIT);
            *room = room.or(would_be_cut.then_some(LABEL_LIMIT));
        }
        rooms
    }
}

/// Breaks one row into several. The first has the short texts.
fn broken(row: Vec<TextCell>, rooms: &[Option<usize>]) -> Vec<Vec<TextCell>> {
    let mut rows: Vec<Vec<TextCell>> = vec![vec![TextCell::default(); row.len()]];
    for (column, cell) in row.into_iter().enumerate() {
        let Some(room) = rooms[column].filter(|room| columns_of(&cell.text) > *room) else {
            rows[0][column] = cell;
            continue;
        };
        let lines = wrapped(&cell.text, room, "  ");
        // All lines have the same width, so that they are aligned at the left.
        let widest = lines.iter().map(|line| columns_of(line)).max().unwrap_or(0);
        for (number, line) in lines.into_iter().enumerate() {
            if number == rows.len() {
                rows.push(vec![TextCell::default(); rooms.len()]);
            }
            rows[number][column] = TextCell { text: format!("{line:widest$}"), tone: cell.tone };
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_keeps_every_word_and_the_width() {
        let lines = wrapped("one two three four five", 10, "  ");
        assert_eq!(lines, ["one two", "  three", "  four", "  five"]);
    }

    #[test]
    fn text_from_a_server_cannot_steer_the_terminal() {
        assert_eq!(one_line("a\u{1b}[31mb\r\n\tc"), "a [31mb c");
    }

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

    fn table_of(rows: &[[&str; 4]]) -> TextTable {
        let heads = ["variant", "base", "new", "factor"].map(|name| (name.to_owned(), String::new()));
        let row = |texts: &[&str; 4]| texts.map(|text| TextCell::from(text.to_owned())).to_vec();
        TextTable {
            labels: 1,
            heads: heads.to_vec(),
            words: vec![true, false, false, false],
            breaks_heads: false,
            rows: rows.iter().map(row).collect(),
        }
    }

    const ROWS: [[&str; 4]; 2] = [
        [
            "a",
            "Limit, then Index Only Scan using pi1_pdc on pi1",
            "Limit, then Sort, then Seq Scan on pi1",
            "",
        ],
        ["b", "1.0 %", "2.0 %", "0.990"],
    ];

    #[test]
    fn a_table_that_fits_is_left_as_it_is() {
        let lines = |table: TextTable| table.lines(120, false);
        assert_eq!(lines(table_of(&ROWS).with_long_cells_broken(120)), lines(table_of(&ROWS)));
    }

    #[test]
    fn long_texts_are_next_to_each_other_where_there_is_room() {
        let lines = table_of(&ROWS).with_long_cells_broken(90).lines(90, false);
        assert!(lines.iter().all(|line| columns_of(line) <= 90), "{lines:#?}");
        insta::assert_snapshot!(lines.join("\n"), @r"
        variant                               base                                 new  factor
        ──────────────────────────────────────────────────────────────────────────────────────
        a        Limit, then Index Only Scan using  Limit, then Sort, then Seq Scan on
                   pi1_pdc on pi1                     pi1
        b                                    1.0 %                               2.0 %   0.990
        ");
    }

    #[test]
    fn a_long_label_gives_way_to_the_figures_next_to_it() {
        let rows = [["column definitions of prepared statements, sent once", "a thread each", "no", ""]];
        let lines = table_of(&rows).with_long_cells_broken(50).lines(50, false);
        assert!(lines.iter().all(|line| columns_of(line) <= 50), "{lines:#?}");
        insta::assert_snapshot!(lines.join("\n"), @r"
        variant                                  base  new
        ──────────────────────────────────────────────────
        column definitions of prepared  a thread each   no
          statements, sent once

        variant                         factor
        ──────────────────────────────────────
        column definitions of prepared
          statements, sent once
        ");
        let lines = table_of(&rows).with_long_cells_broken(100).lines(100, false);
        assert!(lines.join(" ").contains("sent once"), "not cut: {lines:#?}");
    }

    #[test]
    fn in_a_narrow_terminal_each_long_column_has_its_own_part_and_all_its_words() {
        let lines = table_of(&ROWS).with_long_cells_broken(50).lines(50, false);
        assert!(lines.iter().all(|line| columns_of(line) <= 50), "{lines:#?}");
        insta::assert_snapshot!(lines.join("\n"), @r"
        variant                                       base
        ──────────────────────────────────────────────────
        a        Limit, then Index Only Scan using pi1_pdc
                   on pi1
        b                                            1.0 %

        variant                                     new
        ───────────────────────────────────────────────
        a        Limit, then Sort, then Seq Scan on pi1
        b                                         2.0 %

        variant  factor
        ───────────────
        a
        b         0.990
        ");
    }
}
