//! Renders blocks as text for a terminal, in a width that fits.

use super::text::{TextCell, TextTable, columns_of, one_line, painted, wrapped};
use super::{Block, Table, TableCell, Tone, markdown};

/// Width for names next to their facts. A longer name moves the fact to the right.
const NAME: usize = 32;

/// Smallest width for a fact. With less, the fact is below its name.
const FACT: usize = 20;

/// A width that is enough for every line, where nothing is to be broken.
const WIDEST: usize = 10_000;

/// Renders the blocks as lines of at most `width` characters. Code stays as it was written.
pub fn terminal(blocks: &[Block], width: usize, colour: bool) -> String {
    let mut screen = Screen { text: String::new(), width: width.min(WIDEST), colour };
    blocks.iter().for_each(|block| screen.block(block));
    screen.text
}

struct Screen {
    text: String,
    width: usize,
    colour: bool,
}

impl Screen {
    fn block(&mut self, block: &Block) {
        match block {
            Block::Heading(heading) => {
                let text = match heading.aside.as_str() {
                    "" => one_line(&heading.text),
                    aside => one_line(&format!("{} · {aside}", heading.text)),
                };
                // The heading has a rule to the edge, so that parts are found while scrolling.
                let rule = self.width.saturating_sub(columns_of(&text) + 1);
                let rule =
                    if heading.level == 2 { format!(" {}", "━".repeat(rule)) } else { String::new() };
                self.heading(&format!("{text}{rule}"));
            }
            Block::Text(tone, text) => {
                self.paragraph(*tone, text, if *tone == Tone::Plain { "" } else { "  " });
            }
            Block::List(tone, items) => {
                for item in items {
                    self.paragraph(*tone, &format!("• {item}"), "  ");
                }
            }
            Block::Facts(facts) => self.facts(facts),
            Block::Table(table) => self.table(table),
            Block::Prose(text) => {
                for part in markdown::prose_plain(text) {
                    self.paragraph(Tone::Plain, &part, if part.starts_with("- ") { "  " } else { "" });
                }
            }
            Block::Code(text) => {
                for line in text.lines() {
                    let line: String = line.chars().filter(|c| !c.is_control()).collect();
                    self.line(&format!("  {line}"));
                }
            }
            Block::Fold(title, blocks) => {
                self.heading(title);
                blocks.iter().for_each(|block| self.block(block));
            }
            Block::Warnings(title, texts) => {
                let tone = if title.is_empty() { Tone::Doubt } else { Tone::Worse };
                texts.iter().for_each(|text| self.paragraph(tone, &format!("! {text}"), "  "));
            }
            Block::Chart(_)
            | Block::Key(_)
            | Block::Contents
            | Block::PrintedIfUnfolded
            | Block::Links(..)
            | Block::Graph(..) => {}
        }
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Adds an empty line, unless there is one.
    fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.line("");
        }
    }

    fn heading(&mut self, text: &str) {
        self.gap();
        self.paragraph(Tone::Strong, text, "  ");
    }

    fn paragraph(&mut self, tone: Tone, text: &str, indent: &str) {
        for line in wrapped(&one_line(text), self.width, indent) {
            let line = if self.colour { painted(tone, &line) } else { line };
            self.line(&line);
        }
    }

    fn facts(&mut self, facts: &[(String, String)]) {
        let names: Vec<String> = facts.iter().map(|(name, _)| one_line(name)).collect();
        let longest = names.iter().map(|name| columns_of(name)).max().unwrap_or(0).min(NAME);
        for (name, (_, text)) in names.iter().zip(facts) {
            let mut start = format!("  {name:longest$}  ");
            let mut indent = columns_of(&start);
            if indent + FACT > self.width {
                self.line(start.trim_end());
                indent = 4;
                start = " ".repeat(indent);
            }
            for line in wrapped(&one_line(text), self.width.saturating_sub(indent), "") {
                self.line(format!("{start}{line}").trim_end());
                start = " ".repeat(indent);
            }
        }
    }

    fn table(&mut self, table: &Table) {
        if !table.title.is_empty() {
            self.heading(&table.title);
        } else {
            self.gap();
        }
        if !table.note.is_empty() {
            self.paragraph(Tone::Muted, &table.note, "");
        }
        for line in fitted(table, self.width).lines(self.width, self.colour) {
            self.line(&line);
        }
        if !table.legend.is_empty() {
            self.paragraph(Tone::Muted, &table.legend_text(), "  ");
        }
    }
}

/// Lays out a table. Columns of the highest ranks are left out where they do not fit, and long
/// texts are broken.
fn fitted(table: &Table, width: usize) -> TextTable {
    let last = table.columns.iter().map(|column| column.rank).max().unwrap_or(0);
    let up_to = |rank: u8| {
        let kept: Vec<usize> =
            (0..table.columns.len()).filter(|&at| table.columns[at].rank <= rank).collect();
        text_table(table, &kept)
    };
    let fits = |rank: &u8| up_to(*rank).width() <= width;
    let fitted = (0..=last).rev().find(fits);
    let table = up_to(fitted.unwrap_or(0));
    TextTable { breaks_heads: fitted.is_none(), ..table }.with_long_cells_broken(width)
}

fn text_table(table: &Table, kept: &[usize]) -> TextTable {
    let of_column = |at: usize| {
        let widths = Widths::of(table.rows.iter().map(|row| &row[at]));
        table.rows.iter().map(move |row| text_cell(&row[at], &widths)).collect::<Vec<_>>()
    };
    let mut columns: Vec<_> = kept.iter().map(|at| of_column(*at).into_iter()).collect();
    TextTable {
        labels: table.labels,
        heads: kept
            .iter()
            .map(|&at| &table.columns[at])
            .map(|column| (one_line(&column.name), column.unit.clone()))
            .collect(),
        breaks_heads: false,
        words: kept.iter().map(|&at| at < table.labels || table.columns[at].is_words).collect(),
        rows: table.rows.iter().map(|_| columns.iter_mut().filter_map(Iterator::next).collect()).collect(),
    }
}

/// Widths of the parts after a column's values. Padding to these widths keeps the values aligned.
#[derive(Default)]
struct Widths {
    interval: usize,
    word: usize,
    sign: usize,
}

impl Widths {
    fn of<'a>(cells: impl Iterator<Item = &'a TableCell>) -> Self {
        cells.fold(Self::default(), |widths, cell| Self {
            interval: widths.interval.max(columns_of(&interval_of(cell))),
            word: widths.word.max(columns_of(word_of(cell))),
            sign: widths.sign.max(columns_of(cell.sign)),
        })
    }
}

fn interval_of(cell: &TableCell) -> String {
    cell.interval.map_or_else(String::new, crate::number::interval_text)
}

fn word_of(cell: &TableCell) -> &'static str {
    cell.verdict.map_or("", |verdict| verdict.word())
}

/// Writes a table cell: value, interval, verdict and sign.
fn text_cell(cell: &TableCell, widths: &Widths) -> TextCell {
    let mut text = one_line(&cell.text);
    if widths.interval > 0 {
        text = format!("{text}  {:>width$}", interval_of(cell), width = widths.interval);
    }
    if widths.word > 0 {
        text = format!("{text}  {:<width$}", word_of(cell), width = widths.word);
    }
    if widths.sign > 0 {
        text = format!("{text} {:width$}", cell.sign, width = widths.sign);
    }
    TextCell { text, tone: cell.tone }
}
