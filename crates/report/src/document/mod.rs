//! The model of a document, and its renderers for terminal, Markdown and HTML.
//!
//! A report is a list of [`Block`]s. The code that builds it chooses what is said and in which
//! order. A renderer chooses how it looks, and adds no words about results. JSON and CSV are not
//! rendered from it, because they come from the findings.
//!
//! ```text
//! findings ──► blocks ──► terminal(blocks, width, colour)   tables fitted to the width
//!                    ├──► markdown(blocks)                   GitHub Flavored Markdown
//!                    └──► html(blocks)                       the body of a page
//! ```
//!
//! * Texts are plain, and each renderer escapes them. Text between two backquotes is code.
//! * A [`Table`] has typed table cells: a text, and what it stands for (tone, sign, interval,
//!   verdict, note, link). Colour is never the only sign: builders give a coloured table cell a
//!   sign or a word.
//! * A [`Chart`] is an id, a title and data. Only HTML draws it. Its figures are in the tables next
//!   to it, so that readers without scripts, on a terminal or of Markdown miss nothing.
//! * A [`Block::Fold`] is closed at first on a page and always open in other formats.
//! * Headings of level 2 with an id are the entries of [`Block::Contents`].

pub(crate) mod html;
pub(crate) mod markdown;
mod terminal;
pub(crate) mod text;

use dbdyno_analyse::metrics::Metric;
use dbdyno_analyse::statistics::Interval;
use dbdyno_analyse::{Bound, Verdict};
use serde::Deserialize;

pub use html::html;
pub use markdown::markdown;
pub use terminal::terminal;

#[derive(Debug, Clone)]
pub enum Block {
    Heading(Heading),
    Text(Tone, String),
    /// A list. Its tone is `Doubt` for problems.
    List(Tone, Vec<String>),
    Facts(Vec<(String, String)>),
    Table(Table),
    /// Markdown from the plan. HTML markup in it is shown as text.
    Prose(String),
    /// Text as it was written, such as a configuration.
    Code(String),
    /// A title, and blocks that a page shows when the reader opens it.
    Fold(String, Vec<Self>),
    /// Warnings. With a title they are open on a page; without one they are counted and folded.
    Warnings(&'static str, Vec<String>),
    Chart(Chart),
    /// The variants in the order of their colours in charts: name, description, and a small picture
    /// of the line. It is for pages only.
    Key(Vec<(String, String, String)>),
    /// Links to the headings of level 2; for pages only.
    Contents,
    /// From here on, a printed page shows only what is unfolded in its sections. It is for pages
    /// only.
    PrintedIfUnfolded,
    /// Texts that link to other pages, files or places, each with its address. They are for pages
    /// only.
    Links(Vec<(String, String)>),
}

impl Block {
    /// Makes a heading that no link leads to.
    pub fn heading(level: u8, text: impl Into<String>) -> Self {
        Self::Heading(Heading { level, text: text.into(), aside: String::new(), id: String::new() })
    }

    /// Makes a heading of level 2 that links lead to.
    pub fn section(text: impl Into<String>, id: impl Into<String>) -> Self {
        Self::Heading(Heading { level: 2, text: text.into(), aside: String::new(), id: id.into() })
    }

    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Tone::Plain, text.into())
    }
}

#[derive(Debug, Clone)]
pub struct Heading {
    /// The level. 1 is the document's title.
    pub level: u8,
    pub text: String,
    /// Smaller text after the heading; may be empty.
    pub aside: String,
    /// The id for links; empty where no link leads to it.
    pub id: String,
}

/// The meaning of a text or a value. Renderers have a colour or a weight for each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Tone {
    #[default]
    Plain,
    Strong,
    Muted,
    /// The value differs from the base for the better.
    Better,
    Worse,
    /// The value is invalid, or a problem.
    Doubt,
    /// The value is in the highest quarter of its step, or the ratio is coloured by threshold as
    /// faster.
    Highest,
    Lowest,
    /// The planned rate was missed, the value is a target itself, or the ratio is near 1 by
    /// threshold.
    Missed,
    /// The ratio shows a faster variant, by its verdict or by more than 5 %.
    Above,
    /// The ratio shows a slower variant, by its verdict or by more than 5 %.
    Below,
    /// The ratio is coloured by threshold, but the comparison is undecided. It has a meaning in
    /// legends only, because the table cell keeps the colour of its threshold.
    Undecided,
}

impl Tone {
    /// Returns the sign next to a coloured value, so that the colour is never alone.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Highest => "▲",
            Self::Lowest => "▼",
            Self::Missed => "SLA",
            Self::Above => "+",
            Self::Below => "−",
            Self::Undecided => "?",
            _ => "",
        }
    }

    /// Returns the tone for a value with this verdict. Only a decided verdict has a colour.
    pub fn of(verdict: Option<Verdict>) -> Self {
        match verdict {
            Some(Verdict::Faster) => Self::Better,
            Some(Verdict::Slower | Verdict::Missed | Verdict::Stalled) => Self::Worse,
            _ => Self::Plain,
        }
    }
}

/// A table: columns of labels, then columns of figures or words.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Table {
    /// The title; empty where a heading says it.
    pub title: String,
    /// A note that says what the figures are.
    pub note: String,
    /// Number of label columns. They say what a row is, and a terminal repeats them in each part of
    /// a table that is too wide.
    pub labels: usize,
    pub columns: Vec<Column>,
    #[serde(skip)]
    pub rows: Vec<Vec<TableCell>>,
    /// Meanings of the signs in table cells.
    #[serde(skip)]
    pub legend: Vec<(Tone, &'static str)>,
}

impl Table {
    pub fn new(
        title: &str,
        note: &str,
        labels: impl IntoIterator<Item = impl Into<Column>>,
        figures: impl IntoIterator<Item = impl Into<Column>>,
    ) -> Self {
        let mut columns: Vec<Column> = labels.into_iter().map(Into::into).collect();
        let labels = columns.len();
        columns.extend(figures.into_iter().map(Into::into));
        Self { title: title.to_owned(), note: note.to_owned(), labels, columns, ..Self::default() }
    }

    #[must_use]
    pub(crate) fn without(mut self, names: &[&str]) -> Self {
        let is_left_out = |column: &Column| names.contains(&column.name.as_str());
        self.labels -= self.columns[..self.labels].iter().filter(|column| is_left_out(column)).count();
        self.columns.retain(|column| !is_left_out(column));
        self
    }

    /// Returns the table with rows and columns exchanged. Each row's label becomes the name of a
    /// column, and `label` names the column of the new labels. The table has one column of labels.
    #[must_use]
    pub(crate) fn turned(self, label: &str) -> Self {
        let names = self.rows.iter().map(|row| row[0].text.as_str());
        let mut columns = vec![Column::new(label, "", "")];
        columns.extend(names.map(Column::from));
        let row = |(at, column): (usize, &Column)| {
            let cells = self.rows.iter().map(|row| row[at].clone());
            std::iter::once(TableCell::from(column.name.as_str())).chain(cells).collect()
        };
        let rows = self.columns.iter().enumerate().skip(1).map(row).collect();
        Self { labels: 1, columns, rows, ..self }
    }

    /// Whether the table has more than zeros and unknown values. Ratios of its own figures do not
    /// count, because those of zeros say nothing.
    pub(crate) fn has_values(&self) -> bool {
        let figures = self.rows.iter().flat_map(|row| row.iter().zip(&self.columns).skip(self.labels));
        let mut own = figures.filter(|(_, column)| !column.unit.starts_with('÷'));
        own.any(|(cell, _)| !is_zero_or_unknown(&cell.text))
    }

    /// Returns the cell that a row has in the column of this name.
    pub(crate) fn cell<'t>(&self, row: &'t [TableCell], column: &str) -> Option<&'t TableCell> {
        row.get(self.columns.iter().position(|known| known.name == column)?)
    }

    /// Returns the rows that begin with this label.
    pub(crate) fn rows_of(&self, label: &str) -> impl Iterator<Item = &[TableCell]> {
        self.rows.iter().filter(move |row| row[0].text == label).map(Vec::as_slice)
    }

    pub fn push<C: Into<TableCell>>(&mut self, row: impl IntoIterator<Item = C>) {
        self.rows.push(row.into_iter().map(Into::into).collect());
    }

    /// Writes signs and their meanings on one line. It is empty where the table has none.
    pub(crate) fn legend_text(&self) -> String {
        let entries = self.legend.iter().map(|(tone, meaning)| format!("{} {meaning}", tone.sign()));
        entries.collect::<Vec<_>>().join(" · ")
    }
}

/// Whether the text of a table cell is empty, a zero, or says that nothing is known.
fn is_zero_or_unknown(text: &str) -> bool {
    matches!(text.trim(), "" | "NA" | "n/a" | "–") || text.replace('%', "").trim().parse() == Ok(0.0)
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(from = "Vec<String>")]
pub struct Column {
    pub name: String,
    /// The unit; empty where the figures have their own unit or need none.
    pub unit: String,
    /// What the column means, in words; empty where the name says it.
    pub meaning: String,
    /// Where a table is too wide for a terminal, columns of a higher rank are left out first. From
    /// 3 on they are also left out on a telephone.
    pub rank: u8,
    /// Whether the column has words, which are aligned at their left.
    pub is_words: bool,
}

impl From<&str> for Column {
    fn from(name: &str) -> Self {
        Self::new(name, "", "")
    }
}

/// Makes a column from name, unit and meaning.
impl From<(&str, &str, &str)> for Column {
    fn from((name, unit, meaning): (&str, &str, &str)) -> Self {
        Self::new(name, unit, meaning)
    }
}

impl From<&Metric> for Column {
    fn from(metric: &Metric) -> Self {
        Self::new(metric.name, metric.unit, metric.meaning)
    }
}

/// Makes a column from name, unit, meaning, and `words` for a column of words. The last ones may be
/// left out.
impl From<Vec<String>> for Column {
    fn from(words: Vec<String>) -> Self {
        let mut words = words.into_iter();
        let mut next = || words.next().unwrap_or_default();
        Self { name: next(), unit: next(), meaning: next(), is_words: next() == "words", ..Self::default() }
    }
}

impl Column {
    pub fn new(name: &str, unit: &str, meaning: &str) -> Self {
        Self { name: name.to_owned(), unit: unit.to_owned(), meaning: meaning.to_owned(), ..Self::default() }
    }

    pub fn words(name: &str) -> Self {
        Self { is_words: true, ..Self::new(name, "", "") }
    }

    /// Makes a column that may be left out on a narrow terminal. [`Column::rank`] has the order.
    pub fn ranked(name: &str, unit: &str, rank: u8) -> Self {
        Self { rank, ..Self::new(name, unit, "") }
    }
}

/// A table cell: a value and what it stands for.
#[derive(Debug, Clone, Default)]
pub struct TableCell {
    pub text: String,
    /// The number that the text stands for, unrounded, for JSON and charts.
    pub value: Option<f64>,
    /// Says on which side of the value the true one lies, if a time limit ended a measurement, so
    /// that the value is only a bound.
    pub bound: Option<Bound>,
    /// The value's lowest and highest block.
    pub spread: Option<Interval>,
    pub tone: Tone,
    /// The sign next to the text.
    pub sign: &'static str,
    /// 95 % interval of a ratio.
    pub interval: Option<Interval>,
    pub verdict: Option<Verdict>,
    /// An interval around 1 that a page draws as a line with a dot. The text of this or of a
    /// neighbouring table cell has it too.
    pub drawn: Option<Interval>,
    /// Why the table cell has that colour or no value.
    pub note: String,
    /// Id of a heading that says more, or address of another page, which ends in `.html`.
    pub link: Option<String>,
}

impl From<String> for TableCell {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl From<&str> for TableCell {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl std::borrow::Borrow<str> for TableCell {
    fn borrow(&self) -> &str {
        &self.text
    }
}

impl TableCell {
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone, ..Self::default() }
    }

    /// Writes interval and verdict of a ratio over several blocks, `0.991–1.049 same`. It is empty
    /// where there is neither.
    fn judgement(&self) -> String {
        let interval = self.interval.map(crate::number::interval_text);
        let verdict = self.verdict.map(|verdict| verdict.word().to_owned());
        interval.into_iter().chain(verdict).collect::<Vec<_>>().join(" ")
    }
}

#[derive(Debug, Clone, Default)]
pub struct Chart {
    /// The id, which is unique in its document.
    pub id: String,
    pub title: String,
    /// Data for the page's script: the chart's kind, and exact values.
    pub data: serde_json::Value,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// All tables in a document, including those in folds.
    pub(crate) fn tables(blocks: &[Block]) -> Vec<&Table> {
        let mut found = Vec::new();
        for block in blocks {
            match block {
                Block::Table(table) => found.push(table),
                Block::Fold(_, inner) => found.extend(tables(inner)),
                _ => {}
            }
        }
        found
    }

    #[test]
    fn a_turned_table_has_a_column_for_each_row_and_keeps_its_cells() {
        let mut table = Table::new("Rates", "per second", ["step"], ["old", "new"]);
        table.push(["l.i0", "1", "2"]);
        table.push(["l.x", "3", "4"]);
        let turned = table.turned("DBMS");
        let names: Vec<&str> = turned.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(
            (names, turned.labels, turned.note.as_str()),
            (vec!["DBMS", "l.i0", "l.x"], 1, "per second")
        );
        assert_eq!([turned.rows[0].join(" "), turned.rows[1].join(" ")], ["old 1 3", "new 2 4"]);
    }

    #[test]
    fn zeros_and_unknown_values_say_nothing() {
        let of = |text: &str| {
            let mut table = Table::new("t", "", ["step"], ["a"]);
            table.push(["l.i0", text]);
            table.has_values()
        };
        assert!(!["", "0", "0.00", "0.0 %", "NA", "n/a", "–"].iter().any(|text| of(text)));
        assert!(["1", "0.01", "no", "failed", "inf"].iter().all(|text| of(text)));
        let mut reads =
            Table::new("r/o", "", ["step"], [("a", "1/op", ""), ("b", "1/op", ""), ("b", "÷ base", "")]);
        reads.push(["scan", "0.000", "0.000", "inf"]);
        assert!(!reads.has_values(), "a ratio of zeros");
        reads.push(["index", "0.001", "0.000", "0.00"]);
        assert!(reads.has_values());
    }
}
