//! A table of texts, for the terminal and for Markdown.

/// Header and rows, each as wide as the header.
pub(super) struct Grid {
    pub(super) header: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
}

/// Of a target, aloud.
pub(super) fn met(is_met: bool) -> &'static str {
    if is_met { "met" } else { "MISSED" }
}

impl Grid {
    /// Columns aligned by blanks.
    pub(super) fn text(&self) -> String {
        let header = self.header.iter().map(|cell| (*cell).to_owned()).collect();
        let rows: Vec<&Vec<String>> = std::iter::once(&header).chain(&self.rows).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.header.len()).map(width).collect();
        let line = |row: &&Vec<String>| {
            let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        rows.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
        let header: Vec<String> = self.header.iter().map(|cell| (*cell).to_owned()).collect();
        let rule = format!("|{}", "---|".repeat(self.header.len()));
        let rows = self.rows.iter().map(|row| line(row));
        [line(&header), rule].into_iter().chain(rows).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = vec![vec!["longer".to_owned(), "µs".to_owned()], vec!["x".to_owned(), "1".to_owned()]];
        let grid = Grid { header: vec!["what", "unit"], rows };
        insta::assert_snapshot!(grid.text(), @r"
        what    unit
        longer  µs
        x       1
        ");
        insta::assert_snapshot!(grid.markdown(), @r"
        | what | unit |
        |---|---|
        | longer | µs |
        | x | 1 |
        ");
    }
}
