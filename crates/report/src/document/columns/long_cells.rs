//! Breaks long texts in a table, such as a query plan or a setting, into several lines, so that the
//! table fits and nothing is cut.

use super::super::text::{columns_of, wrapped};
use super::{GAP, LABEL_LIMIT, TextCell, TextTable};

/// Shortest text that is broken. No column of longer texts becomes narrower than this.
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

    /// The width of each label when one of them gives way to the widest short figure; `None` where
    /// a label has the width that it needs.
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

/// One row as several. The first has the short texts.
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

    fn table(rows: &[[&str; 4]]) -> TextTable {
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
        assert_eq!(lines(table(&ROWS).with_long_cells_broken(120)), lines(table(&ROWS)));
    }

    #[test]
    fn long_texts_are_next_to_each_other_where_there_is_room() {
        let lines = table(&ROWS).with_long_cells_broken(90).lines(90, false);
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
        let lines = table(&rows).with_long_cells_broken(50).lines(50, false);
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
        let lines = table(&rows).with_long_cells_broken(100).lines(100, false);
        assert!(lines.join(" ").contains("sent once"), "not cut: {lines:#?}");
    }

    #[test]
    fn in_a_narrow_terminal_each_has_a_part_of_its_own_and_all_its_words() {
        let lines = table(&ROWS).with_long_cells_broken(50).lines(50, false);
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
