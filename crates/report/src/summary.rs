//! The coloured tables at the top: which there are, and what their colours say in signs and words.

use dbdyno_analyse::{Cell, Colour, Summary, Table};

use crate::facts::one_line;

/// Which of the summary's tables; the same colour says different things in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableKind {
    Absolute,
    Relative,
    Sla,
}

/// The summary's tables in their order.
pub(crate) fn tables(summary: &Summary) -> Vec<(TableKind, &Table)> {
    let mut tables = vec![(TableKind::Absolute, &summary.absolute), (TableKind::Relative, &summary.relative)];
    tables.extend(summary.sla.as_ref().map(|table| (TableKind::Sla, table)));
    tables
}

/// The sign that stands beside a coloured value, so that the colour is never alone.
pub(crate) fn mark(colour: Colour) -> &'static str {
    match colour {
        Colour::None => "",
        Colour::Red => "▼",
        Colour::Green => "▲",
        Colour::Grey => "SLA",
        Colour::Blue => "+",
        Colour::Yellow => "−",
    }
}

/// Word of a colour, for style sheets.
pub(crate) fn colour_name(colour: Colour) -> &'static str {
    match colour {
        Colour::None => "",
        Colour::Red => "red",
        Colour::Green => "green",
        Colour::Grey => "grey",
        Colour::Blue => "blue",
        Colour::Yellow => "yellow",
    }
}

/// Colours that a table uses, each with what it says there.
pub(crate) fn legend(kind: TableKind, table: &Table) -> Vec<(Colour, &'static str)> {
    let used =
        |colour: &Colour| table.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.colour == *colour);
    [Colour::Green, Colour::Red, Colour::Grey, Colour::Blue, Colour::Yellow]
        .into_iter()
        .filter(used)
        .map(|colour| (colour, meaning(kind, colour)))
        .collect()
}

fn meaning(kind: TableKind, colour: Colour) -> &'static str {
    match (kind, colour) {
        (TableKind::Sla, Colour::Red) => "target missed",
        (TableKind::Sla, Colour::Grey) => "the target itself",
        (_, Colour::None) => "",
        (_, Colour::Red) => "within the lowest quarter of its step",
        (_, Colour::Green) => "within the highest quarter of its step",
        (_, Colour::Grey) => "the background rate was not kept",
        (_, Colour::Blue) => "more than 5 % above the base",
        (_, Colour::Yellow) => "more than 5 % below the base",
    }
}

/// Why cells have no value, one line a cell: `qr100, wal: failed: server went away`.
pub(crate) fn missing(table: &Table) -> Vec<String> {
    let mut lines = Vec::new();
    for row in &table.rows {
        for (cell, column) in row.cells.iter().zip(&table.columns) {
            if cell.value.is_none() && !cell.note.is_empty() {
                lines.push(one_line(&format!("{column}, {}: {}: {}", row.label, cell.text, cell.note)));
            }
        }
    }
    lines
}

/// The value with its sign behind it.
pub(crate) fn marked(cell: &Cell) -> String {
    match mark(cell.colour) {
        "" => cell.text.clone(),
        sign => format!("{} {sign}", cell.text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn every_colour_but_none_has_its_own_sign_and_a_meaning_in_every_table() {
        let colours = [Colour::Red, Colour::Green, Colour::Grey, Colour::Blue, Colour::Yellow];
        let mut signs: Vec<_> = colours.into_iter().map(mark).collect();
        signs.sort_unstable();
        signs.dedup();
        assert_eq!(signs.len(), colours.len());
        assert!(!signs.contains(&""));
        for kind in [TableKind::Absolute, TableKind::Relative, TableKind::Sla] {
            assert!(colours.into_iter().all(|colour| !meaning(kind, colour).is_empty()));
        }
    }

    #[test]
    fn a_legend_names_only_what_the_table_shows() {
        let findings = fixture::findings();
        let summary = &findings.workloads[0].summary;
        let colours: Vec<_> =
            legend(TableKind::Relative, &summary.relative).iter().map(|(c, _)| *c).collect();
        assert_eq!(colours, [Colour::Blue, Colour::Yellow]);
    }

    #[test]
    fn a_cell_without_a_value_says_why() {
        let findings = fixture::findings();
        let lines = missing(&findings.workloads[0].summary.absolute);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[1].starts_with("qp1000, <b>&\": failed: server went away"), "{lines:?}");
    }
}
