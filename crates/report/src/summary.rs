//! The coloured tables at the top: which there are, and what their colours say in signs and words.

use std::collections::HashSet;

use dbdyno_analyse::{Cell, Colour, Summary, Table, TableRow};

use crate::missing::missing;
use crate::number::interval_text;
use crate::text_table::one_line;

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

/// A table of the summary with what must be said below it.
pub(crate) struct Section<'a> {
    pub(crate) table: &'a Table,
    /// What its rows and its columns are.
    pub(crate) heads: [&'static str; 2],
    /// It has fewer rows than columns: in a terminal, which is higher than wide, columns become rows.
    pub(crate) turns: bool,
    /// Its columns are figures of variants.
    pub(crate) has_figures: bool,
    /// It is the base against itself.
    pub(crate) is_control: bool,
    /// Colours that the table uses, each with what it says there.
    pub(crate) legend: Vec<(Colour, &'static str)>,
    /// Why cells have no value, unless an earlier table said the same.
    pub(crate) missing: Vec<String>,
}

impl Section<'_> {
    /// A column's head on two lines. In a sweep each variant has several columns, and the figure is below its name.
    pub(crate) fn column_head(&self, column: &str) -> (String, String) {
        if !self.has_figures {
            return (one_line(column), String::new());
        }
        let figure = ["p50", "p95", "p99"].into_iter().find_map(|figure| {
            let variant = column.strip_prefix(figure)?.strip_prefix(' ')?;
            Some((one_line(variant), format!("{figure} ms")))
        });
        figure.unwrap_or_else(|| (one_line(column), "rate".to_owned()))
    }

    /// Signs and their meanings on one line; empty when the table shows none.
    pub(crate) fn legend_text(&self) -> String {
        let entries = self.legend.iter().map(|(colour, meaning)| format!("{} {meaning}", mark(*colour)));
        entries.collect::<Vec<_>>().join(" · ")
    }
}

/// The summary's tables in their order.
pub(crate) fn sections(summary: &Summary) -> Vec<Section<'_>> {
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
    let mut sections = Vec::new();
    for (kind, table) in tables {
        // The table of rates has said of each step why it has none.
        let is_of_rates = matches!(kind, TableKind::Sweep | TableKind::Aging);
        let missing = if is_of_rates { Vec::new() } else { missing(table, &mut said) };
        let (heads, turns) = match kind {
            TableKind::Groups => (["group", "figure"], false),
            TableKind::Sweep => (["connections", "figure"], false),
            TableKind::Aging => (["test", "variant"], false),
            _ => (["variant", "step"], true),
        };
        let (legend, has_figures) = (legend(kind, table), kind == TableKind::Sweep);
        let is_control = kind == TableKind::Control;
        sections.push(Section { table, heads, turns, has_figures, is_control, legend, missing });
    }
    sections
}

/// The sign next to a value. A target is no measurement: its label says what it is, so it has none.
pub(crate) fn mark_in(row: &TableRow, cell: &Cell) -> &'static str {
    match cell.colour {
        _ if row.is_target => "",
        Colour::Red if cell.misses_target => "▼ SLA",
        colour => mark(colour),
    }
}

/// The sign that is next to a coloured value, so that the colour is never alone.
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

fn legend(kind: TableKind, table: &Table) -> Vec<(Colour, &'static str)> {
    let measured = || table.rows.iter().filter(|row| !row.is_target).flat_map(|row| &row.cells);
    let used = |colour: &Colour| {
        measured().any(|cell| cell.colour == *colour || (*colour == Colour::Grey && cell.misses_target))
    };
    [Colour::Green, Colour::Red, Colour::Grey, Colour::Blue, Colour::Yellow]
        .into_iter()
        .filter(used)
        .map(|colour| (colour, meaning(kind, colour)))
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

/// Interval and verdict of a ratio over several blocks, `0.991–1.049 same`; empty where there are none.
pub(crate) fn judgement(cell: &Cell) -> String {
    let interval = cell.interval.map(interval_text);
    let parts: Vec<String> =
        interval.into_iter().chain(cell.verdict.map(|verdict| verdict.word().to_owned())).collect();
    parts.join(" ")
}

/// The value with interval, verdict and sign after it.
pub(crate) fn marked(row: &TableRow, cell: &Cell) -> String {
    let mut parts = vec![cell.text.clone(), judgement(cell), mark_in(row, cell).to_owned()];
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::statistics::Interval;

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
        assert_eq!(mark_in(row, &row.cells[4]), "▼ SLA");
        let said = |colour| meaning(TableKind::Absolute, colour);
        let both = format!("▼ {} · SLA {}", said(Colour::Red), said(Colour::Grey));
        assert_eq!(sections(&summary)[0].legend_text(), both);
    }

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
    fn the_same_reason_is_said_once() {
        let findings = fixture::findings();
        let sections = sections(&findings.workloads[0].summary);
        let counts: Vec<_> = sections.iter().map(|section| section.missing.len()).collect();
        assert_eq!(counts, [2, 0, 0]);
    }

    #[test]
    fn an_interval_that_says_nothing_is_short() {
        let text = |low, high| interval_text(Interval { low, high });
        assert_eq!(text(1e-12, 1_527_848_691_254.341), "<0.001–>1000");
        assert_eq!(text(1e-12, 2.5), "<0.001–2.500");
        assert_eq!(text(0.25, f64::INFINITY), "0.250–>1000");
        assert_eq!(text(0.0, 1.5), "<0.001–1.500");
        assert_eq!(text(0.000_21, 0.000_32), "0.000210–0.000320");
        assert_eq!(text(4_800.0, 5_200.0), "4800–5200");
        assert_eq!(text(0.991, 1.049), "0.991–1.049");
    }

    #[test]
    fn a_target_has_no_sign_and_is_not_in_the_legend() {
        let findings = fixture::findings();
        let sla = findings.workloads[0].summary.sla.as_ref().expect("has targets");
        let target = sla.rows.last().expect("the target row");
        assert_eq!(marked(target, &target.cells[0]), "400");
        assert!(legend(TableKind::Sla, sla).iter().all(|(colour, _)| *colour == Colour::Red));
    }
}
