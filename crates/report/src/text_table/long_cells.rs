//! Long texts in a table, a query plan or a setting, broken into several lines so that the table fits and nothing is cut.

use super::{GAP, TextCell, TextTable, columns_of, wrapped};

/// Narrower texts are left whole, and no column of longer ones is made narrower.
const NARROWEST: usize = 30;

impl TextTable {
    /// The table with its long figures broken at spaces, into rows that have nothing else, where it is wider than `width`.
    pub(crate) fn with_long_cells_broken(mut self, width: usize) -> Self {
        let widths: Vec<usize> = (0..self.heads.len()).map(|column| self.width_of(column)).collect();
        let of = |columns: &mut dyn Iterator<Item = usize>| {
            columns.map(|column| widths[column] + GAP).sum::<usize>()
        };
        if of(&mut (0..widths.len())) <= width + GAP {
            return self;
        }
        let is_long = |column: usize| column >= self.labels && widths[column] > NARROWEST;
        let long = (self.labels..widths.len()).filter(|column| is_long(*column)).count();
        if long == 0 {
            return self;
        }
        let others = of(&mut (0..widths.len()).filter(|column| !is_long(*column)));
        let labels = of(&mut (0..self.labels));
        // Beside each other if that leaves them readable, else each in a part of its own.
        let abreast = (width + GAP).saturating_sub(others) / long;
        let room = if abreast >= NARROWEST + GAP { abreast - GAP } else { width.saturating_sub(labels) };
        let room = room.max(NARROWEST);
        let columns: Vec<bool> = (0..widths.len()).map(is_long).collect();
        self.rows = self.rows.into_iter().flat_map(|row| broken(row, &columns, room)).collect();
        self
    }
}

/// One row as several: the first has the labels and the short cells.
fn broken(row: Vec<TextCell>, is_long: &[bool], room: usize) -> Vec<Vec<TextCell>> {
    let mut rows: Vec<Vec<TextCell>> = vec![vec![TextCell::default(); row.len()]];
    for (column, cell) in row.into_iter().enumerate() {
        if !is_long[column] || columns_of(&cell.text) <= room {
            rows[0][column] = cell;
            continue;
        }
        let lines = wrapped(&cell.text, room, "  ");
        // Of one width, so that they stand left below each other.
        let widest = lines.iter().map(|line| columns_of(line)).max().unwrap_or(0);
        for (number, line) in lines.into_iter().enumerate() {
            if number == rows.len() {
                rows.push(vec![TextCell::default(); is_long.len()]);
            }
            rows[number][column] = TextCell { text: format!("{line:widest$}"), paint: cell.paint };
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
        TextTable { labels: 1, heads: heads.to_vec(), rows: rows.iter().map(row).collect() }
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
    fn long_texts_stand_beside_each_other_where_there_is_room() {
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
