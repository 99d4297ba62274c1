//! Renders blocks as Markdown, with tables as in GitHub Flavored Markdown. It also turns a plan's
//! Markdown into HTML, Markdown or plain text. HTML markup in a plan is shown as text and never
//! takes effect.

use pulldown_cmark::html::push_html;
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::text::one_line;
use super::{Block, Heading, Table, TableCell, Tone};

/// Renders the document, which ends in a newline.
pub fn markdown(blocks: &[Block]) -> String {
    let mut parts = Vec::new();
    blocks.iter().for_each(|block| add(block, &mut parts));
    parts.join("\n\n") + "\n"
}

/// Adds a block's parts. A part is a paragraph, a heading, a list or a table. Blank lines separate
/// parts.
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
        Block::Prose(text) => parts.push(prose_markdown(text)),
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
        Block::Chart(_) | Block::Key(_) | Block::Contents | Block::PrintedIfUnfolded | Block::Links(..) | Block::Graph(..) => {}
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

/// Writes a table cell: the value, followed by interval, verdict and sign.
fn cell_text(cell: &TableCell) -> String {
    let mut parts = vec![cell.text.clone(), cell.judgement(), cell.sign.to_owned()];
    parts.retain(|part| !part.is_empty());
    escaped(&parts.join(" "))
}

/// Escapes a text so that Markdown shows it unchanged, on one line and inside a table. Underscores
/// within words stay, because no common dialect reads them as emphasis.
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
            // At the beginning of a text, these characters begin a heading, a quotation or a list.
            '#' | '>' if at == 0 => result.extend(['\\', character]),
            '+' | '-' if at == 0 && characters.get(1) == Some(&' ') => result.extend(['\\', character]),
            other => result.push(other),
        }
    }
    result
}

/// Makes a fenced block. Its fence is longer than any run of backticks in the text.
fn code_block(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end())
}

const OPTIONS: Options = Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH);

/// Renders a plan's text as HTML: paragraphs, lists, tables, code, emphasis and links to the web.
/// Its headings are below those of the page.
pub(super) fn prose_html(text: &str) -> String {
    let mut open_links = Vec::new();
    let events = Parser::new_ext(text, OPTIONS).filter_map(move |event| match event {
        Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
        Event::Start(Tag::Heading { id, classes, attrs, .. }) => {
            Some(Event::Start(Tag::Heading { level: HeadingLevel::H4, id, classes, attrs }))
        }
        Event::End(TagEnd::Heading(_)) => Some(Event::End(TagEnd::Heading(HeadingLevel::H4))),
        Event::Start(Tag::Link { ref dest_url, .. }) => {
            let is_web = is_web(dest_url);
            open_links.push(is_web);
            is_web.then_some(event)
        }
        Event::End(TagEnd::Link) => open_links.pop().unwrap_or(false).then_some(event),
        // A page needs no network, so only the description of an image stays.
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => None,
        event => Some(event),
    });
    let mut page = String::new();
    push_html(&mut page, events);
    page
}

/// Returns a plan's text as it was written, except that the `<` of markup is escaped.
fn prose_markdown(text: &str) -> String {
    let mut result = text.trim().to_owned();
    let markup: Vec<_> = Parser::new_ext(text.trim(), OPTIONS)
        .into_offset_iter()
        .filter(|(event, _)| matches!(event, Event::Html(_) | Event::InlineHtml(_)))
        .map(|(_, range)| range)
        .collect();
    for range in markup.into_iter().rev() {
        let escaped = result[range.clone()].replace('<', "&lt;");
        result.replace_range(range, &escaped);
    }
    result
}

/// Returns a plan's text without markup, as one string per paragraph or item.
pub(super) fn prose_plain(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut links = Vec::new();
    for event in Parser::new_ext(text, OPTIONS) {
        let now = parts.len() - 1;
        match event {
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => parts[now].push_str(&text),
            Event::Code(text) => parts[now].push_str(&format!("`{text}`")),
            Event::SoftBreak | Event::HardBreak | Event::End(TagEnd::TableCell) => parts[now].push(' '),
            Event::Start(Tag::Item) => parts.push("- ".to_owned()),
            Event::Start(Tag::Link { dest_url, .. }) => links.push(dest_url),
            Event::End(TagEnd::Link) => {
                let address = links.pop().filter(|address| !parts[now].ends_with(&**address));
                parts[now].push_str(&address.map_or_else(String::new, |address| format!(" ({address})")));
            }
            Event::End(
                TagEnd::Paragraph
                | TagEnd::Heading(_)
                | TagEnd::TableRow
                | TagEnd::TableHead
                | TagEnd::CodeBlock
                | TagEnd::HtmlBlock,
            ) => parts.push(String::new()),
            _ => {}
        }
    }
    parts.into_iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// Whether an address is a web address, and not `javascript:` or similar.
fn is_web(address: &str) -> bool {
    ["https://", "http://", "mailto:", "#"].iter().any(|start| address.starts_with(start))
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

    const TEXT: &str = "Why **8.0** is `slow`: <b>x</b> & <script>alert(1)</script>\n\n<div onclick=\"x\">y</div>\n\n\
                        # Big\n\n* one\n* [two](https://example.com/a)\n* [bad](javascript:alert(1)) ![cat](http://x/y.png)";

    #[test]
    fn markup_in_prose_is_shown_as_text() {
        insta::assert_snapshot!(prose_html(TEXT), @r#"
        <p>Why <strong>8.0</strong> is <code>slow</code>: &lt;b&gt;x&lt;/b&gt; &amp; &lt;script&gt;alert(1)&lt;/script&gt;</p>
        &lt;div onclick="x"&gt;y&lt;/div&gt;
        <h4>Big</h4>
        <ul>
        <li>one</li>
        <li><a href="https://example.com/a">two</a></li>
        <li>bad cat</li>
        </ul>
        "#);
    }

    #[test]
    fn markdown_keeps_its_form_and_plain_text_loses_it() {
        let text = prose_markdown(TEXT);
        assert!(text.starts_with("Why **8.0** is `slow`: &lt;b>x&lt;/b> &"), "{text}");
        assert!(!text.contains("<script>") && !text.contains("<div"), "{text}");
        assert_eq!(
            prose_plain("a **b**\nc\n\n* [d](https://e)\n* `f`"),
            ["a b c", "- d (https://e)", "- `f`"]
        );
    }
}
