//! Why cells of the summary's tables have no value: each reason once, with all the places that it holds for.

use std::collections::HashSet;

use dbdyno_analyse::{Table, TableRow, first_clause, reason_class};

use crate::document::text::one_line;

/// A reason that was reported: label of the row, name of the column, text and class of the reason.
pub(crate) type Said = (String, String, String, String);

/// Cells that share a reason.
struct Reason<'a> {
    text: &'a str,
    /// What reasons have in common that differ in their figures only.
    class: String,
    /// Of the first cell.
    note: &'a str,
    differ: bool,
    /// Places of columns of each row.
    rows: Vec<(&'a TableRow, Vec<usize>)>,
}

/// One line a reason: `qr100, wal: failed: server went away`. Neighbouring columns are reported as one, `l.i0 to qr100, wal: ...`, and a
/// row that has no value at all by its label alone. What is in `said` is left out, what is reported is put there.
pub(crate) fn missing(table: &Table, said: &mut HashSet<Said>) -> Vec<String> {
    let mut reasons: Vec<Reason<'_>> = Vec::new();
    for row in &table.rows {
        for (place, (cell, column)) in row.cells.iter().zip(&table.columns).enumerate() {
            if cell.value.is_some() || cell.note.is_empty() {
                continue;
            }
            let class = reason_class(&cell.note);
            if !said.insert((row.label.clone(), column.clone(), cell.text.clone(), class.clone())) {
                continue;
            }
            let at = reasons.iter().position(|known| known.text == cell.text && known.class == class);
            let at = at.unwrap_or_else(|| {
                let (text, note) = (&cell.text, &cell.note);
                reasons.push(Reason { text, class, note, differ: false, rows: Vec::new() });
                reasons.len() - 1
            });
            let reason = &mut reasons[at];
            reason.differ |= reason.note != cell.note;
            match reason.rows.last_mut() {
                Some((last, places)) if std::ptr::eq(*last, row) => places.push(place),
                _ => reason.rows.push((row, vec![place])),
            }
        }
    }
    reasons.iter().map(|reason| reason.line(&table.columns)).collect()
}

impl Reason<'_> {
    fn line(&self, columns: &[String]) -> String {
        let of_row = |(row, places): &(&TableRow, Vec<usize>)| {
            if places.len() == columns.len() && columns.len() > 1 {
                return row.label.clone();
            }
            format!("{}, {}", named(columns, places), row.label)
        };
        let places: Vec<String> = self.rows.iter().map(of_row).collect();
        // The warnings and the step's own page have all of it.
        let note = if self.text == "invalid" { first_clause(self.note) } else { self.note };
        let others = if self.differ { " (the first of these; all are listed by step)" } else { "" };
        one_line(&format!("{}: {}: {note}{others}", places.join("; "), self.text))
    }
}

/// Neighbours as `first to last`, others by name, many by number.
fn named(columns: &[String], places: &[usize]) -> String {
    const NAMED: usize = 3;
    let names: Vec<&str> = places.iter().map(|place| columns[*place].as_str()).collect();
    match names.as_slice() {
        [first, .., last] if places[places.len() - 1] - places[0] + 1 == places.len() => {
            format!("{first} to {last}")
        }
        [first, second, rest @ ..] if rest.len() + 2 > NAMED => {
            format!("{first}, {second} and {} more", rest.len())
        }
        names => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::{Cell, Colour};

    use super::*;
    use crate::fixture;

    /// A row of these notes; an empty one is of a cell with a value.
    fn row(label: &str, notes: &[&str]) -> TableRow {
        let cell = |note: &&str| Cell {
            value: note.is_empty().then_some(1.0),
            text: if note.is_empty() { "1" } else { "invalid" }.to_owned(),
            colour: Colour::None,
            interval: None,
            verdict: None,
            misses_target: false,
            note: (*note).to_owned(),
        };
        TableRow { label: label.to_owned(), is_target: false, cells: notes.iter().map(cell).collect() }
    }

    fn lines(columns: &[&str], rows: Vec<TableRow>) -> Vec<String> {
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        let table = Table { title: String::new(), caption: String::new(), columns, rows };
        missing(&table, &mut HashSet::new())
    }

    #[test]
    fn a_cell_without_a_value_says_why() {
        let findings = fixture::findings();
        let lines = missing(&findings.workloads[0].summary.absolute, &mut HashSet::new());
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[1].starts_with("qp1000, <b>&\": failed: server went away"), "{lines:?}");
    }

    #[test]
    fn neighbours_share_a_name_and_a_whole_row_has_its_own() {
        let rows = vec![row("a", &["", "x", "x", "x"]), row("b", &["y", "y", "y", "y"])];
        assert_eq!(lines(&["s1", "s2", "s3", "s4"], rows), ["s2 to s4, a: invalid: x", "b: invalid: y"]);
    }

    #[test]
    fn reasons_that_differ_in_figures_are_one_line_over_all_rows() {
        let rows = vec![
            row("a", &["busy in 91 %", "", "busy in 92 %", "", "busy in 93.5 %", "busy in 94 %"]),
            row("b", &["", "lost", "", "", "", "busy in 99 %"]),
        ];
        assert_eq!(
            lines(&["s1", "s2", "s3", "s4", "s5", "s6"], rows),
            [
                "s1, s3 and 2 more, a; s6, b: invalid: busy in 91 % (the first of these; all are \
                 listed by step)",
                "s2, b: invalid: lost"
            ]
        );
    }

    #[test]
    fn of_an_invalid_step_the_first_clause_is_enough() {
        let rows = vec![row("a", &["the client was busy (in 91 % of it); give it CPUs", ""])];
        assert_eq!(lines(&["s1", "s2"], rows), ["s1, a: invalid: the client was busy"]);
    }

    #[test]
    fn what_was_told_of_an_earlier_table_is_not_told_again() {
        let table = fixture::findings().workloads[0].summary.absolute.clone();
        let mut said = HashSet::new();
        assert_eq!((missing(&table, &mut said).len(), missing(&table, &mut said).len()), (2, 0));
    }
}
