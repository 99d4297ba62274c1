//! Renders blocks as the body of an HTML page, and wraps the body into the page. Style, script and
//! charts are in one file that needs no network. Every text is escaped here.

use std::collections::HashSet;
use std::fmt::Write;

use dbdyno_analyse::statistics::Interval;

use super::{Block, Chart, Heading, Table, TableCell, Tone, markdown};

/// Texts in table cells that are longer than this are broken into lines.
const LONG: usize = 40;
/// Columns of this rank and above are left out on a telephone.
const WIDE: u8 = 3;

/// Renders the document within one `main` element. Each section goes from one heading of level 2 to
/// the next.
pub fn html(blocks: &[Block]) -> String {
    let mut page = Page { out: String::from("<main>\n"), contents: contents(blocks), ..Page::default() };
    page.blocks(blocks);
    page.end_section();
    page.out + "</main>\n"
}

/// Makes the page with this title and body. `data` is the page's data for its script. A
/// content security policy forbids anything from outside.
pub(crate) fn page(title: &str, body: &str, data: &serde_json::Value) -> String {
    [
        include_str!("head.html"),
        "<title>",
        &escaped(title),
        "</title>\n<style>\n",
        include_str!("page.css"),
        "</style>\n</head>\n<body>\n",
        body,
        &data_block("page-data", data),
        "<script>\n",
        include_str!("../../page/page.js"),
        "</script>\n</body>\n</html>\n",
    ]
    .concat()
}

#[derive(Default)]
struct Page {
    out: String,
    /// The links of the contents. They are made first, because they come before the linked
    /// sections.
    contents: String,
    is_in_section: bool,
    is_printed_if_unfolded: bool,
    is_in_fold: bool,
    /// Level of the last heading.
    level: u8,
    /// Meanings of columns that an earlier table with the same title has already given. The script
    /// adds them to further tables.
    said: HashSet<[String; 3]>,
    /// Notes and legends of tables that the page already has. They are not repeated.
    notes: HashSet<String>,
}

impl Page {
    fn blocks(&mut self, blocks: &[Block]) {
        let mut rest = blocks;
        while let Some(block) = rest.first() {
            let charts = rest.iter().take_while(|block| matches!(block, Block::Chart(_))).count();
            if charts > 1 {
                self.out.push_str("<div class=\"charts\">\n");
                rest[..charts].iter().for_each(|block| self.block(block));
                self.out.push_str("</div>\n");
            } else {
                self.block(block);
            }
            rest = &rest[charts.max(1)..];
        }
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Heading(heading) => self.heading(heading),
            Block::Text(tone, text) => {
                self.line(&format!("<p{}>{}</p>", attribute("class", class(*tone)), coded(text)));
            }
            Block::List(tone, items) => {
                let class = if *tone == Tone::Doubt { "problems" } else { "answers" };
                self.list(class, items);
            }
            Block::Facts(facts) => {
                self.out.push_str("<dl class=\"variants\">\n");
                for (name, text) in facts {
                    self.line(&format!("<div><dt>{}</dt><dd>{}</dd></div>", escaped(name), coded(text)));
                }
                self.out.push_str("</dl>\n");
            }
            Block::Table(table) => self.table(table),
            Block::Prose(text) => {
                self.line(&format!("<div class=\"prose\">\n{}</div>", markdown::prose_html(text)))
            }
            Block::Code(text) => self.line(&format!("<pre tabindex=\"0\">{}</pre>", escaped(text))),
            Block::Fold(title, blocks) => self.fold(title, blocks),
            Block::Warnings(title, texts) => self.warnings(title, texts),
            Block::Chart(chart) => self.chart(chart),
            Block::Key(variants) => {
                let item = |(name, what, line): &(String, String, String)| {
                    format!("<li>{line} <strong>{}</strong> {}</li>", escaped(name), escaped(what))
                };
                let items: String = variants.iter().map(item).collect();
                self.line(&format!("<ul class=\"lines\">{items}</ul>"));
            }
            Block::Links(links) => {
                let link = |(text, address): &(String, String)| {
                    format!("<a href=\"{}\">{}</a>", escaped(address), escaped(text))
                };
                let links: Vec<String> = links.iter().map(link).collect();
                self.line(&format!("<p>{}</p>", links.join(" · ")));
            }
            Block::Graph(title, svg) => {
                let document = format!("<!DOCTYPE html><style>body {{ margin: 0 }}</style>{svg}");
                self.line(&format!(
                    "<iframe class=\"graph\" title=\"{}\" srcdoc=\"{}\"></iframe>",
                    escaped(title),
                    escaped(&document)
                ));
            }
            Block::Contents => {
                let contents = std::mem::take(&mut self.contents);
                self.level = 2;
                self.line(&format!(
                    "<nav id=\"contents\" aria-label=\"Contents\">\n<h2>Contents</h2>\n{contents}</nav>"
                ));
            }
            Block::PrintedIfUnfolded => self.is_printed_if_unfolded = true,
        }
    }

    fn line(&mut self, line: &str) {
        self.out.push_str(line);
        self.out.push('\n');
    }

    fn end_section(&mut self) {
        if std::mem::take(&mut self.is_in_section) {
            self.out.push_str("</section>\n");
        }
    }

    fn heading(&mut self, heading: &Heading) {
        if heading.level == 2 {
            self.end_section();
            let more = if self.is_printed_if_unfolded { " class=\"more\"" } else { "" };
            self.line(&format!("<section{more}>"));
            self.is_in_section = true;
        }
        // No level is left out on the way down, because screen readers follow the levels.
        let level = heading.level.min(self.level + 1);
        self.level = level;
        let id = attribute("id", &heading.id);
        let aside = match heading.aside.as_str() {
            "" => String::new(),
            aside => format!(" <small>{}</small>", escaped(aside)),
        };
        self.line(&format!("<h{level}{id}>{}{aside}</h{level}>", escaped(&heading.text)));
    }

    /// Renders a part that is folded at first. With scripts, the content of a `noscript` is a text
    /// until the reader opens it, so that a large page opens at once.
    fn fold(&mut self, title: &str, blocks: &[Block]) {
        // A `noscript` within another would end it.
        let is_first = !std::mem::replace(&mut self.is_in_fold, true);
        let (begin, end) = if is_first { ("<noscript>", "</noscript>") } else { ("", "") };
        self.line(&format!("<details><summary>{}</summary>{begin}", escaped(title)));
        self.blocks(blocks);
        self.line(&format!("{end}</details>"));
        self.is_in_fold = !is_first;
    }

    fn list(&mut self, class: &str, items: &[String]) {
        let items: String = items.iter().map(|item| format!("<li>{}</li>", coded(item))).collect();
        self.line(&format!("<ul class=\"{class}\">{items}</ul>"));
    }

    fn warnings(&mut self, title: &str, texts: &[String]) {
        if title.is_empty() {
            let count = dbdyno_analyse::numbered(texts.len(), "warning");
            self.line(&format!("<details class=\"warnings\"><summary>{count}</summary>"));
            self.list("answers", texts);
            self.out.push_str("</details>\n");
        } else {
            self.line(&format!("<div class=\"warnings\" role=\"note\"><h2>{}</h2>", escaped(title)));
            self.list("answers", texts);
            self.out.push_str("</div>\n");
        }
    }

    fn chart(&mut self, chart: &Chart) {
        let (id, title) = (attribute("id", &chart.id), escaped(&chart.title));
        let data = data_block("", &chart.data);
        self.line(&format!("<figure class=\"chart\"{id}><figcaption>{title}</figcaption>{data}</figure>"));
    }

    fn table(&mut self, table: &Table) {
        let title = if table.title.is_empty() { "Summary" } else { &table.title };
        if !(table.title.is_empty() && table.note.is_empty()) {
            let bold =
                if table.title.is_empty() { String::new() } else { format!("<b>{}</b> ", escaped(title)) };
            let is_new = table.note.is_empty() || self.notes.insert(table.note.clone());
            let note = if is_new { coded(&table.note) } else { String::new() };
            if !(bold.is_empty() && note.is_empty()) {
                self.line(&format!("<p class=\"note\">{}</p>", format!("{bold}{note}").trim_end()));
            }
        }
        let mut kind = format!("sortable l{}", table.labels);
        if table.rows.iter().flatten().any(|cell| !cell.sign.is_empty()) {
            kind.push_str(" summary");
        }
        self.line(&format!(
            "<div class=\"scroll\" tabindex=\"0\">\n<table class=\"{kind}\">\n<caption>{}</caption>",
            escaped(title)
        ));
        self.out.push_str("<thead><tr>");
        for column in &table.columns {
            let said = [&table.title, &column.name, &column.unit].map(String::clone);
            let meaning =
                if column.meaning.is_empty() || !self.said.insert(said) { "" } else { &column.meaning };
            let kind = match (column.is_words, column.rank) {
                (true, WIDE..) => "word wide",
                (true, _) => "word",
                (false, WIDE..) => "wide",
                (false, _) => "",
            };
            let unit = match column.unit.as_str() {
                "" => String::new(),
                unit => format!("<small>{}</small>", escaped(unit)),
            };
            let (kind, title) = (attribute("class", kind), attribute("title", meaning));
            let _ = write!(self.out, "<th scope=\"col\"{kind}{title}>{}{unit}</th>", escaped(&column.name));
        }
        self.out.push_str("</tr></thead>\n<tbody>\n");
        let reach = reach(table);
        for row in &table.rows {
            self.row(table, row, reach);
        }
        self.out.push_str("</tbody>\n</table>\n</div>\n");
        if !table.legend.is_empty() && self.notes.insert(table.legend_text()) {
            let entries: String = table
                .legend
                .iter()
                .map(|(tone, meaning)| {
                    let (class, sign) = (class(*tone), tone.sign());
                    let sign = format!("<span class=\"{class}\">{sign}</span>");
                    format!("<span class=\"key\">{sign} {}</span> ", escaped(meaning))
                })
                .collect();
            self.line(&format!("<p class=\"legend\">{}</p>", entries.trim_end()));
        }
    }

    /// Table cells and rows have no end tags, as HTML allows. A large run has 200,000 of them, and
    /// each end tag is 5 bytes.
    fn row(&mut self, table: &Table, row: &[TableCell], reach: f64) {
        self.out.push_str("<tr>");
        for (at, cell) in row.iter().enumerate() {
            let text = match &cell.link {
                Some(page) if page.ends_with(".html") => {
                    format!("<a href=\"{}\">{}</a>", escaped(page), escaped(&cell.text))
                }
                Some(id) => format!("<a href=\"#{}\">{}</a>", escaped(id), escaped(&cell.text)),
                None => escaped(&cell.text),
            };
            if at == 0 {
                let _ = write!(self.out, "<th scope=\"row\">{text}</th>");
                continue;
            }
            let kind = match () {
                () if cell.tone != Tone::Plain => class(cell.tone),
                () if table.columns[at].is_words => "word",
                () if cell.text.chars().count() > LONG => "long",
                () if is_phrase(&cell.text) => "wrap",
                () => "",
            };
            let kind = match table.columns[at].rank {
                WIDE.. => attribute("class", format!("{kind} wide").trim_start()),
                _ => attribute("class", kind),
            };
            let _ = write!(self.out, "<td{kind}{}>{text}", attribute("title", &cell.note));
            if !cell.sign.is_empty() {
                let _ = write!(self.out, " <i>{}</i>", cell.sign);
            }
            if let Some(interval) = cell.drawn.or(cell.interval) {
                self.out.push_str(&drawn(interval, reach));
            }
            let judgement = cell.judgement();
            if !judgement.is_empty() {
                let _ = write!(self.out, "<small>{judgement}</small>");
            }
        }
        self.out.push('\n');
    }
}

/// Whether a text may be broken into lines where a table is wide. Pairs of values, such as
/// `40.5 → 7.88`, stay on one line.
fn is_phrase(text: &str) -> bool {
    text.chars().count() > 16 && text.contains(' ') && !text.contains('→')
}

/// Returns how far from 1 a table's intervals reach, as a logarithm. An interval that is far wider
/// than most ends at the edge, so that it does not compress the others.
fn reach(table: &Table) -> f64 {
    let intervals = table.rows.iter().flatten().filter_map(|cell| cell.drawn.or(cell.interval));
    let mut ends: Vec<f64> =
        intervals.map(|interval| interval.low.ln().abs().max(interval.high.ln().abs())).collect();
    ends.sort_by(f64::total_cmp);
    let usual = ends.get(ends.len() / 2).copied().unwrap_or(0.0);
    ends.last().copied().unwrap_or(0.0).min(3.0 * usual).max(0.02)
}

/// Draws an interval as a line from end to end, with a dot at its middle, which is the ratio, and a
/// mark at 1. An end that is further away has the tip of an arrow.
fn drawn(interval: Interval, reach: f64) -> String {
    let x = |log: f64| 30.0 + 28.0 * (log / reach).clamp(-1.0, 1.0);
    let (low, high) = (interval.low.ln(), interval.high.ln());
    let (from, to, dot) = (x(low), x(high), x((low + high) / 2.0));
    let left = if low < -reach { "M5 2L2 5L5 8" } else { "" };
    let right = if high > reach { "M55 2L58 5L55 8" } else { "" };
    format!(
        "<svg class=\"iv\" viewBox=\"0 0 60 10\" aria-hidden=\"true\"><path class=\"one\" d=\"M30 0V10\"/>\
         <path d=\"M{from:.1} 5H{to:.1}{left}{right}\"/><circle cx=\"{dot:.1}\" cy=\"5\" r=\"2.4\"/></svg>"
    )
}

/// Embeds data for the page's script, escaped so that they cannot end their element.
pub(crate) fn data_block(id: &str, data: &serde_json::Value) -> String {
    let text = data.to_string().replace('<', "\\u003c");
    format!("<script type=\"application/json\"{}>{text}</script>", attribute("id", id))
}

/// Writes an attribute. The result is empty where the value is.
fn attribute(name: &str, value: &str) -> String {
    if value.is_empty() { String::new() } else { format!(" {name}=\"{}\"", escaped(value)) }
}

/// Returns the class for a tone. `page.css` has the classes.
fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain | Tone::Undecided => "",
        Tone::Strong => "strong",
        Tone::Muted => "facts",
        Tone::Better => "better",
        Tone::Worse => "worse",
        Tone::Doubt => "invalid",
        Tone::Highest => "green",
        Tone::Lowest => "red",
        Tone::Missed => "grey",
        Tone::Above => "blue",
        Tone::Below => "yellow",
    }
}

/// Makes links to all headings of level 2 that have an id. A new paragraph begins where the aside
/// changes, so that the steps of a workload are together.
fn contents(blocks: &[Block]) -> String {
    let headings = blocks.iter().filter_map(|block| match block {
        Block::Heading(heading) if heading.level == 2 && !heading.id.is_empty() => Some(heading),
        _ => None,
    });
    let mut text = String::new();
    let mut was_step = None;
    for heading in headings {
        let is_step = !heading.aside.is_empty();
        match was_step {
            Some(was) if was == is_step => text.push(' '),
            Some(_) => text.push_str("</p>\n<p>"),
            None => text.push_str("<p>"),
        }
        was_step = Some(is_step);
        let _ = write!(text, "<a href=\"#{}\">{}</a>", escaped(&heading.id), escaped(&heading.text));
    }
    if was_step.is_some() { text + "</p>\n" } else { text }
}

/// Escapes a text for use as element content or attribute value.
pub(crate) fn escaped(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => result.push_str("&amp;"),
            '<' => result.push_str("&lt;"),
            '>' => result.push_str("&gt;"),
            '"' => result.push_str("&quot;"),
            '\'' => result.push_str("&#39;"),
            other => result.push(other),
        }
    }
    result
}

/// Escapes a text for use as element content. Text between two backquotes becomes code, and a
/// backquote without a second one stays.
fn coded(text: &str) -> String {
    let parts: Vec<String> = text.split('`').map(escaped).collect();
    let last = parts.len() - 1;
    let part = |(number, part): (usize, &String)| match number % 2 {
        0 => part.clone(),
        _ if number == last => format!("`{part}"),
        _ => format!("<code>{part}</code>"),
    };
    parts.iter().enumerate().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Column;

    #[test]
    fn text_cannot_leave_its_element_or_attribute() {
        assert_eq!(escaped("<b>&\"'"), "&lt;b&gt;&amp;&quot;&#39;");
    }

    #[test]
    fn what_is_between_backquotes_is_code_and_still_text() {
        assert_eq!(coded("see `a<b>` and `c`."), "see <code>a&lt;b&gt;</code> and <code>c</code>.");
        assert_eq!(coded("it's 5 ` <"), "it&#39;s 5 ` &lt;");
    }

    #[test]
    fn a_coloured_cell_has_its_sign_and_its_reason_and_a_column_is_explained_once() {
        let mut table =
            Table::new("Rates", "", vec![Column::new("step", "", "")], [Column::new("a", "1/s", "why")]);
        let value =
            TableCell { sign: "+", note: "above <b>".to_owned(), ..TableCell::toned("9.87", Tone::Above) };
        table.push([TableCell { link: Some("w0s0".to_owned()), ..TableCell::from("l.i0") }, value]);
        let text = html(&[Block::Table(table.clone()), Block::Table(table)]);
        let expected = "<tr><th scope=\"row\"><a href=\"#w0s0\">l.i0</a></th>\
                        <td class=\"blue\" title=\"above &lt;b&gt;\">9.87 <i>+</i>\n";
        assert_eq!((text.matches(expected).count(), text.matches("title=\"why\"").count()), (2, 1), "{text}");
    }
}
