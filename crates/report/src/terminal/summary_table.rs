//! Tables of the summary for a terminal: turned or upright, with intervals, verdicts and signs below each other.

use dbdyno_analyse::{Cell, Colour, TableRow};

use crate::number::interval_text;
use crate::summary::{Section, mark_in};
use crate::text_table::one_line;
use crate::text_table::{Paint, TextCell, TextTable};

/// A row a step, a column a variant.
pub(super) fn turned(section: &Section<'_>) -> TextTable {
    let table = section.table;
    let mut heads = vec![(section.heads[1].to_owned(), String::new())];
    heads.extend(table.rows.iter().map(|row| (one_line(&row.label), String::new())));
    let widths: Vec<Widths> =
        table.rows.iter().map(|row| Widths::of(row.cells.iter().map(|cell| (row, cell)))).collect();
    let rows = table.columns.iter().enumerate().map(|(step, name)| {
        let cells = table.rows.iter().zip(&widths);
        let cells = cells.map(|(row, widths)| {
            row.cells.get(step).map_or_else(TextCell::default, |cell| text_cell(row, cell, widths))
        });
        std::iter::once(TextCell::from(one_line(name))).chain(cells).collect()
    });
    TextTable { labels: 1, heads, rows: rows.collect() }
}

/// Rows and columns as they are.
pub(super) fn upright(section: &Section<'_>) -> TextTable {
    let table = section.table;
    let mut heads = vec![(section.heads[0].to_owned(), String::new())];
    heads.extend(table.columns.iter().map(|column| section.column_head(column)));
    let of_column =
        |column: usize| table.rows.iter().filter_map(move |row| Some((row, row.cells.get(column)?)));
    let widths: Vec<Widths> = (0..table.columns.len()).map(|column| Widths::of(of_column(column))).collect();
    let row = |row: &TableRow| {
        let cells = row.cells.iter().zip(&widths).map(|(cell, widths)| text_cell(row, cell, widths));
        std::iter::once(TextCell::from(one_line(&row.label))).chain(cells).collect()
    };
    TextTable { labels: 1, heads, rows: table.rows.iter().map(row).collect() }
}

/// Characters of what follows the values of a column, so that values stay below each other whatever they have.
struct Widths {
    interval: usize,
    word: usize,
    sign: usize,
}

impl Widths {
    fn of<'a>(cells: impl Iterator<Item = (&'a TableRow, &'a Cell)>) -> Self {
        cells.fold(Self { interval: 0, word: 0, sign: 0 }, |widths, (row, cell)| Self {
            interval: widths.interval.max(interval_of(cell).chars().count()),
            word: widths.word.max(word_of(cell).len()),
            sign: widths.sign.max(mark_in(row, cell).chars().count()),
        })
    }
}

fn interval_of(cell: &Cell) -> String {
    cell.interval.map_or_else(String::new, interval_text)
}

fn word_of(cell: &Cell) -> &'static str {
    cell.verdict.map_or("", |verdict| verdict.word())
}

/// Value, interval, verdict and sign.
fn text_cell(row: &TableRow, cell: &Cell, widths: &Widths) -> TextCell {
    let mut text = one_line(&cell.text);
    if widths.interval > 0 {
        text = format!("{text}  {:>width$}", interval_of(cell), width = widths.interval);
    }
    if widths.word > 0 {
        text = format!("{text}  {:<width$}", word_of(cell), width = widths.word);
    }
    if widths.sign > 0 {
        text = format!("{text} {:width$}", mark_in(row, cell), width = widths.sign);
    }
    let paint = match cell.colour {
        Colour::None => Paint::Plain,
        Colour::Red => Paint::Red,
        Colour::Green => Paint::Green,
        Colour::Grey => Paint::Dim,
        Colour::Blue => Paint::Cyan,
        Colour::Yellow => Paint::Yellow,
    };
    TextCell { text, paint }
}
