//! Turns a plan's Markdown into HTML, Markdown or plain text. HTML markup in it is shown as text
//! and never takes effect.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd, html::push_html};

const OPTIONS: Options = Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH);

/// The text as HTML: paragraphs, lists, tables, code, emphasis and links to the web. Its headings
/// are below those of the page.
pub(super) fn html(text: &str) -> String {
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
        // A page needs no network, so that only an image's description stays.
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => None,
        event => Some(event),
    });
    let mut page = String::new();
    push_html(&mut page, events);
    page
}

/// The text as it was written, except for markup, whose `<` is escaped.
pub(super) fn markdown(text: &str) -> String {
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

/// The text without markup, as one string per paragraph or item.
pub(super) fn plain(text: &str) -> Vec<String> {
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

    const TEXT: &str = "Why **8.0** is `slow`: <b>x</b> & <script>alert(1)</script>\n\n<div onclick=\"x\">y</div>\n\n\
                        # Big\n\n* one\n* [two](https://example.com/a)\n* [bad](javascript:alert(1)) ![cat](http://x/y.png)";

    #[test]
    fn markup_in_prose_is_shown_as_text() {
        insta::assert_snapshot!(html(TEXT), @r#"
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
        let text = markdown(TEXT);
        assert!(text.starts_with("Why **8.0** is `slow`: &lt;b>x&lt;/b> &"), "{text}");
        assert!(!text.contains("<script>") && !text.contains("<div"), "{text}");
        assert_eq!(plain("a **b**\nc\n\n* [d](https://e)\n* `f`"), ["a b c", "- d (https://e)", "- `f`"]);
    }
}
