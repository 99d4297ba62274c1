//! Renders blocks as Markdown, with tables as in GitHub Flavored Markdown.

use super::text::one_line;
use super::{Block, Cell, Heading, Table, Tone, prose};

/// The document, which ends in a newline.
pub fn markdown(blocks: &[Block]) -> String {
    let mut parts = Vec::new();
    blocks.iter().for_each(|block| add(block, &mut parts));
    parts.join("\n\n") + "\n"
}

/// Adds a block's parts. A part is a paragraph, a heading, a list or a table, and blank lines are
/// between parts.
fn add(block: &Block, parts: &mut Vec<String>) {
    match block {
        Block::Heading(heading) => parts.push(self::heading(heading)),
        Block::Text(Tone::Strong, text) => parts.push(format!("**{}**", escaped(text))),
        Block::Text(_, text) => parts.push(escaped(text)),
        Block::List(_, items) => parts.push(list(items)),
        Block::Facts(facts) => {
            let items: Vec<String> = facts.iter().map(|(name, text)| format!("{name}: {text}")).collect();
            parts.push(list(&items));
        }
        Block::Table(table) => self::table(table, parts),
        Block::Prose(text) => parts.push(prose::markdown(text)),
        Block::Code(text) => parts.push(code_block(text)),
        Block::Fold(title, blocks) => {
            parts.push(format!("### {}", escaped(title)));
            blocks.iter().for_each(|block| add(block, parts));
        }
        Block::Warnings(_, texts) => {
            let lines: Vec<String> =
                texts.iter().map(|text| format!("> **Warning:** {}", escaped(text))).collect();
            parts.push(lines.join("\n>\n"));
        }
        Block::Chart(_) | Block::Key(_) | Block::Contents | Block::PrintedIfUnfolded | Block::Link(..) => {}
    }
}

fn heading(heading: &Heading) -> String {
    let signs = "#".repeat(usize::from(heading.level));
    match heading.aside.as_str() {
        "" => format!("{signs} {}", escaped(&heading.text)),
        aside => format!("{signs} {} ({})", escaped(&heading.text), escaped(aside)),
    }
}

fn list(items: &[String]) -> String {
    items.iter().map(|item| format!("- {}", escaped(item))).collect::<Vec<_>>().join("\n")
}

fn table(table: &Table, parts: &mut Vec<String>) {
    if !table.title.is_empty() {
        parts.push(format!("#### {}", escaped(&table.title)));
    }
    if !table.note.is_empty() {
        parts.push(escaped(&table.note));
    }
    let cells = |cells: &[String]| format!("| {} |", cells.join(" | "));
    let heads = table.columns.iter().map(|column| match column.unit.as_str() {
        "" => escaped(&column.name),
        unit => escaped(&format!("{} ({unit})", column.name)),
    });
    let rules = table
        .columns
        .iter()
        .enumerate()
        .map(|(at, column)| if at < table.labels || column.is_words { "---" } else { "---:" }.to_owned());
    let mut lines = vec![cells(&heads.collect::<Vec<_>>()), cells(&rules.collect::<Vec<_>>())];
    lines.extend(table.rows.iter().map(|row| cells(&row.iter().map(cell_text).collect::<Vec<_>>())));
    parts.push(lines.join("\n"));
    if !table.legend.is_empty() {
        parts.push(format!("Marks: {}.", table.legend_text()));
    }
}

/// The value, followed by interval, verdict and sign.
fn cell_text(cell: &Cell) -> String {
    let mut parts = vec![cell.text.clone(), cell.judgement(), cell.sign.to_owned()];
    parts.retain(|part| !part.is_empty());
    escaped(&parts.join(" "))
}

/// Text that Markdown shows unchanged, on one line and inside a table. Underscores within words
/// stay, because no dialect in use reads them as emphasis.
pub(crate) fn escaped(text: &str) -> String {
    let text = one_line(text);
    let characters: Vec<char> = text.chars().collect();
    let inside_word = |at: usize| {
        let letter =
            |at: Option<usize>| at.and_then(|at| characters.get(at)).is_some_and(|c| c.is_alphanumeric());
        letter(at.checked_sub(1)) && letter(at.checked_add(1))
    };
    let mut result = String::with_capacity(text.len());
    for (at, &character) in characters.iter().enumerate() {
        match character {
            '&' => result.push_str("&amp;"),
            '<' => result.push_str("&lt;"),
            '\\' | '|' | '*' | '`' | '[' | ']' | '~' => result.extend(['\\', character]),
            '_' if !inside_word(at) => result.push_str("\\_"),
            // These would begin a heading, a quotation or a list.
            '#' | '>' if at == 0 => result.extend(['\\', character]),
            '+' | '-' if at == 0 && characters.get(1) == Some(&' ') => result.extend(['\\', character]),
            other => result.push(other),
        }
    }
    result
}

/// A fenced block. Its fence is longer than any run of backticks in it.
fn code_block(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_markdown_would_read_as_markup_is_escaped() {
        assert_eq!(escaped("<b>&\""), "&lt;b>&amp;\"");
        assert_eq!(escaped("a|b\nc"), "a\\|b c");
        assert_eq!(escaped("# a"), "\\# a");
        assert_eq!(escaped("+ a + b"), "\\+ a + b");
        assert_eq!(escaped("-1.5"), "-1.5");
        assert_eq!(escaped("journal_mode _x_ *y*"), "journal_mode \\_x\\_ \\*y\\*");
    }

    #[test]
    fn a_code_block_cannot_be_closed_by_its_own_text() {
        assert_eq!(code_block("a ``` b"), "````\na ``` b\n````");
    }
}
