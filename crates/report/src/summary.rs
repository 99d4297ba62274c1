//! The coloured tables of rates: which there are, and what their colours say in signs and words.

use std::collections::HashSet;

use dbdyno_analyse::{Cell as Shown, Colour, Summary, Table as Source, TableRow};

use crate::document::{Block, Cell, Column, Table, Tone};
use crate::missing::{Said, missing};

/// Which of the summary's tables; the same colour says different things in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TableKind {
    Absolute,
    Relative,
    Sla,
    Control,
    Groups,
    Sweep,
    Aging,
}

/// The summary's tables in their order, each with why cells have no value, unless an earlier table said the same.
pub(crate) fn tables(summary: &Summary) -> Vec<Block> {
    let mut tables = vec![(TableKind::Absolute, &summary.absolute)];
    // A single variant has no ratios but to itself.
    tables.extend((summary.relative.rows.len() > 1).then_some((TableKind::Relative, &summary.relative)));
    tables.extend(summary.effects.as_ref().map(|table| (TableKind::Relative, table)));
    tables.extend(summary.groups.iter().map(|table| (TableKind::Groups, table)));
    tables.extend(summary.sweeps.iter().map(|table| (TableKind::Sweep, table)));
    tables.extend(summary.aging.as_ref().map(|table| (TableKind::Aging, table)));
    tables.extend(summary.sla.as_ref().map(|table| (TableKind::Sla, table)));
    tables.extend(summary.control.as_ref().map(|table| (TableKind::Control, table)));
    let mut said = HashSet::new();
    tables.into_iter().flat_map(|(kind, table)| blocks(kind, table, &mut said)).collect()
}

/// The base against itself; nothing for a run without A/A.
pub(crate) fn control(summary: &Summary) -> Vec<Block> {
    let table = summary.control.as_ref();
    table.map_or_else(Vec::new, |table| blocks(TableKind::Control, table, &mut HashSet::new()))
}

fn blocks(kind: TableKind, source: &Source, said: &mut HashSet<Said>) -> Vec<Block> {
    let is_of_rates = matches!(kind, TableKind::Sweep | TableKind::Aging);
    let missing = if is_of_rates { Vec::new() } else { missing(source, said) };
    let mut table = match kind {
        TableKind::Groups => upright("group", source, |name| Column::new(name, "", "")),
        TableKind::Sweep => upright("connections", source, figure),
        TableKind::Aging => upright("test", source, |name| Column::new(name, "", "")),
        _ => turned(source),
    };
    table.legend = legend(kind, source);
    let list = (!missing.is_empty()).then_some(Block::List(Tone::Doubt, missing));
    std::iter::once(Block::Table(table)).chain(list).collect()
}

/// A row a step, a column a variant: pages and terminals are higher than wide.
fn turned(source: &Source) -> Table {
    let variants = source.rows.iter().map(|row| Column::new(&row.label, "", ""));
    let mut table = Table::new(&source.title, &source.caption, vec![Column::new("step", "", "")], variants);
    for (at, name) in source.columns.iter().enumerate() {
        let cells =
            source.rows.iter().map(|row| row.cells.get(at).map_or(Cell::default(), |cell| shown(row, cell)));
        table.push(std::iter::once(Cell::from(name.as_str())).chain(cells));
    }
    table
}

/// Rows and columns as they are.
fn upright(label: &str, source: &Source, head: fn(&str) -> Column) -> Table {
    let columns = source.columns.iter().map(|name| head(name));
    let mut table = Table::new(&source.title, &source.caption, vec![Column::new(label, "", "")], columns);
    for row in &source.rows {
        let cells = row.cells.iter().map(|cell| shown(row, cell));
        table.push(std::iter::once(Cell::from(row.label.as_str())).chain(cells));
    }
    table
}

/// In a sweep each variant has several columns, and the figure is below its name.
fn figure(column: &str) -> Column {
    let figure = ["p50", "p95", "p99"].into_iter().find_map(|figure| {
        let variant = column.strip_prefix(figure)?.strip_prefix(' ')?;
        Some(Column::new(variant, &format!("{figure} ms"), ""))
    });
    figure.unwrap_or_else(|| Column::new(column, "rate", ""))
}

/// A target is no measurement: its label says what it is, so it has no sign.
fn shown(row: &TableRow, cell: &Shown) -> Cell {
    let tone = tone(cell.colour);
    let sign = match cell.colour {
        _ if row.is_target => "",
        Colour::Red if cell.misses_target => "▼ SLA",
        _ => tone.sign(),
    };
    Cell {
        sign,
        interval: cell.interval,
        verdict: cell.verdict,
        note: cell.note.clone(),
        ..Cell::toned(&cell.text, tone)
    }
}

fn tone(colour: Colour) -> Tone {
    match colour {
        Colour::None => Tone::Plain,
        Colour::Red => Tone::Lowest,
        Colour::Green => Tone::Highest,
        Colour::Grey => Tone::Missed,
        Colour::Blue => Tone::Above,
        Colour::Yellow => Tone::Below,
    }
}

/// Colours that the table uses, each with what it says there.
fn legend(kind: TableKind, table: &Source) -> Vec<(Tone, &'static str)> {
    let measured = || table.rows.iter().filter(|row| !row.is_target).flat_map(|row| &row.cells);
    let used = |colour: &Colour| {
        measured().any(|cell| cell.colour == *colour || (*colour == Colour::Grey && cell.misses_target))
    };
    [Colour::Green, Colour::Red, Colour::Grey, Colour::Blue, Colour::Yellow]
        .into_iter()
        .filter(used)
        .map(|colour| (tone(colour), meaning(kind, colour)))
        .collect()
}

fn meaning(kind: TableKind, colour: Colour) -> &'static str {
    match (kind, colour) {
        (TableKind::Sla, Colour::Red) => "target missed",
        (TableKind::Relative, Colour::Red) => "answered nothing in a block in which the base answered",
        (TableKind::Aging, Colour::Blue) => "more than 5 % above the rate before the writes",
        (TableKind::Aging, Colour::Yellow) => "more than 5 % below the rate before the writes",

        (_, Colour::None) => "",
        (_, Colour::Red) => "within the lowest quarter of its step",
        (_, Colour::Green) => "within the highest quarter of its step",
        (_, Colour::Grey) => "the planned rate was missed",
        (_, Colour::Blue) => "more than 5 % above the base",
        (_, Colour::Yellow) => "more than 5 % below the base",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_rate_in_the_lowest_quarter_that_missed_its_target_says_both() {
        let mut summary = fixture::findings().workloads[0].summary.clone();
        for cell in summary.absolute.rows.iter_mut().flat_map(|row| &mut row.cells) {
            cell.colour = Colour::None;
        }
        let row = &mut summary.absolute.rows[1];
        (row.cells[4].colour, row.cells[4].misses_target) = (Colour::Red, true);
        let row = &summary.absolute.rows[1];
        assert_eq!(shown(row, &row.cells[4]).sign, "▼ SLA");
        let tones: Vec<Tone> =
            legend(TableKind::Absolute, &summary.absolute).iter().map(|(tone, _)| *tone).collect();
        assert_eq!(tones, [Tone::Lowest, Tone::Missed]);
    }

    #[test]
    fn every_colour_but_none_has_its_own_sign_and_a_meaning_in_every_table() {
        let colours = [Colour::Red, Colour::Green, Colour::Grey, Colour::Blue, Colour::Yellow];
        let signs: HashSet<_> = colours.into_iter().map(|colour| tone(colour).sign()).collect();
        assert_eq!(signs.len(), colours.len());
        assert!(!signs.contains(""));
        for kind in [TableKind::Absolute, TableKind::Relative, TableKind::Sla] {
            assert!(colours.into_iter().all(|colour| !meaning(kind, colour).is_empty()));
        }
    }

    #[test]
    fn a_target_has_no_sign_and_is_not_in_the_legend() {
        let findings = fixture::findings();
        let sla = findings.workloads[0].summary.sla.as_ref().expect("has targets");
        let target = sla.rows.last().expect("the target row");
        assert_eq!(shown(target, &target.cells[0]).sign, "");
        assert!(legend(TableKind::Sla, sla).iter().all(|(tone, _)| *tone == Tone::Lowest));
    }
}
