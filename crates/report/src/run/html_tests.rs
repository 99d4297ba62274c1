//! Tests of the page as a whole: well-formed, self-contained, complete, safe and small.

use crate::document::Block;
use crate::document::html::escaped;
use crate::document::tests::tables;
use crate::fixture;
use crate::history::history_html;
use crate::history::tests::history;
use crate::run::{PageOptions, run_html};
use crate::views::details::rate;
use crate::views::{Topic, of_step};

fn page() -> String {
    of(&fixture::findings())
}

/// The page without its script, which has texts of its own.
fn of(findings: &dbdyno_analyse::Findings) -> String {
    run_html(findings, PageOptions::default()).replace(include_str!("../../page/page.js"), "")
}

/// Elements that have no end tag.
const VOID: [&str; 3] = ["meta", "br", "hr"];
/// Elements whose end tags HTML does not need where the next one or the end of the table follows.
/// The tables of details leave them out.
const OPEN: [&str; 2] = ["td", "tr"];

/// Names of tags in order, with `/` before an end tag. SVG's self-closing tags and void ones are
/// left out. Style and script are skipped, because `<` has another meaning there.
fn tags(page: &str) -> Vec<String> {
    let mut tags = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let end = rest.find('>').expect("a tag is closed");
        let tag = &rest[..end];
        let name: String = tag.chars().take_while(|c| !c.is_whitespace() && *c != '>').collect();
        let name = name.trim_end_matches('/').to_owned();
        rest = &rest[end + 1..];
        if tag.starts_with('!')
            || tag.ends_with('/')
            || VOID.contains(&name.as_str())
            || OPEN.contains(&name.trim_start_matches('/'))
        {
            continue;
        }
        if ["style", "script"].contains(&name.as_str()) {
            rest = &rest[rest.find(&format!("</{name}>")).expect("closed")..];
        }
        tags.push(name);
    }
    tags
}

fn assert_closed(page: &str) {
    let mut open = Vec::new();
    for tag in tags(page) {
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop().as_deref(), Some(name), "within {open:?}"),
            None => open.push(tag),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn every_tag_is_closed_in_its_order() {
    for blocks in [1, 2] {
        assert_closed(&run_html(&fixture::with_blocks(blocks), PageOptions::default()));
    }
    assert_closed(&run_html(&fixture::with_groups(), PageOptions::default()));
    assert_closed(&run_html(&fixture::with_aging(), PageOptions::default()));
    assert_closed(&run_html(&fixture::with_sweep(), PageOptions::default()));
    assert_closed(&history_html(&history()));
}

#[test]
fn a_history_has_a_chart_for_each_series_those_with_a_change_first_and_its_runs() {
    let mut history = history();
    history.series.swap(0, 1);
    history.series[0].variant = "<b>dev".to_owned();
    let page = history_html(&history).replace(include_str!("../../page/page.js"), "");
    assert_eq!(page.matches("<figure class=\"chart\"").count(), 2);
    let position = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(position("id=\"s0\"><figcaption>qr100 · dev") < position("id=\"s1\"><figcaption>qp100"));
    assert!(position("qr100 is slower since run 20240104T000000Z-nightly") < position("<table"));
    assert!(position("Run 5 is not comparable to the first") < position("<table"));
    assert_eq!(page.matches("<td>2024-01-05T00:00:00Z<").count(), 1);
    assert!(page.contains("default-src 'none'") && !page.contains("http:") && !page.contains("<b>dev"));
}

#[test]
fn the_page_begins_with_its_document_type_and_ends_with_a_newline() {
    let page = page();
    assert!(page.trim_start().starts_with("<!DOCTYPE html>"), "{}", &page[..80]);
    assert!(page.ends_with("</html>\n"));
}

#[test]
fn nothing_is_fetched_from_anywhere() {
    let page = page();
    for forbidden in ["http://", "https://", "//cdn", " src=", "@import", "url(", "<link", "<img"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn names_from_outside_are_text_and_never_markup() {
    let page = page();
    assert!(!page.contains("<b>&"), "the second variant's name is escaped everywhere");
    assert!(page.contains("&lt;b&gt;&amp;&quot;"));
    assert!(page.contains("/* | &amp; &lt; */"), "so are statements");
}

#[test]
fn every_variant_step_and_number_of_the_findings_is_on_the_page() {
    let findings = fixture::findings();
    let page = page();
    for step in &findings.workloads[0].steps {
        let details = Topic::ALL.into_iter().flat_map(|topic| of_step(step, topic));
        let details: Vec<Block> = details.chain(rate(step).map(Block::Table)).collect();
        for table in tables(&details) {
            for cell in table.rows.iter().flatten() {
                let text = escaped(&cell.text);
                let is_there = ['<', '\n'].iter().any(|end| page.contains(&format!(">{text}{end}")));
                assert!(is_there, "{text} of {}", step.name);
            }
        }
    }
}

#[test]
fn every_link_leads_to_an_id_and_ids_are_unique() {
    let page = page();
    let mut ids: Vec<&str> = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    for target in page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(ids.contains(&target), "{target}");
    }
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

#[test]
fn every_table_has_a_caption_and_every_head_a_scope() {
    let page = page();
    assert_eq!(page.matches("<table").count(), page.matches("<caption>").count());
    assert_eq!(
        page.matches("<th ").count() + page.matches("<th>").count(),
        page.matches("<th scope=").count()
    );
}

#[test]
fn steps_are_rows_that_link_to_their_sections() {
    let page = page();
    let row = "<tr><th scope=\"row\"><a href=\"#w0s0\">l.i0</a></th><td";
    let rows = page.matches(row).count();
    assert!(
        rows > 5,
        "summary, rates, ratios, latency of two variants, and each metric of hardware efficiency: {rows}"
    );
    let missed = "<td class=\"grey\" title=\"background inserts 3,600/s, at least 3,800/s of 4,000/s needed\">5,600 <i>SLA</i>";
    assert!(page.contains(missed), "{missed}");
}

#[test]
fn the_log_of_a_failed_cell_is_folded_and_keeps_its_lines() {
    let page = page();
    let log = "<details><summary>block 1 &lt;b&gt;&amp;&quot; insert-benchmark: server went away; its log is logs/1.log</summary><noscript>\n\
               <pre tabindex=\"0\">[ERROR] unknown variable &#39;&lt;x&gt;=|1|&#39;\n[ERROR] Aborting ``` [31m</pre>\n</noscript></details>";
    assert_eq!(page.matches(log).count(), 1);
    assert!(page.contains("<a href=\"#logs\">Logs of failed cells</a>"));
    let mut findings = fixture::findings();
    findings.failures.clear();
    assert!(!run_html(&findings, PageOptions::default()).contains("Logs of failed cells"));
}

#[test]
fn labels_are_never_cut() {
    assert!(!include_str!("../document/page.css").contains("ellipsis"));
}

#[test]
fn each_long_step_has_a_chart_of_its_seconds_and_a_short_one_says_why_it_has_none() {
    let page = page();
    // Two steps have deletes next to inserts, and six have both next to queries.
    assert_eq!(page.matches("\"kind\":\"seconds\"").count(), 9 + 2 + 2 * 6);
    let of_kind = |kind: &str| page.matches(&format!(", {kind}, second by second")).count();
    assert_eq!([of_kind("delete"), of_kind("insert"), of_kind("query")], [8, 6, 0]);
    assert_eq!(page.matches("No chart:").count(), 1);
}

#[test]
fn data_of_charts_cannot_end_their_element() {
    let mut findings = fixture::findings();
    findings.workloads[0].steps[0].name = "</script><b>".to_owned();
    let page = of(&findings);
    assert!(page.contains("\"\\u003c/script>\\u003cb>\"") && !page.contains("</script><b>"));
}

#[test]
fn an_interval_is_drawn_in_its_cell() {
    let page = of(&fixture::with_blocks(3));
    let interval = page.split("1.274–1.327").nth(1).unwrap();
    let path = interval.split("<path d=\"M").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let ends: Vec<f64> = path.split(" 5H").map(|end| end.parse().unwrap()).collect();
    assert!(30.0 < ends[0] && ends[0] < ends[1] && ends[1] <= 58.0, "right of 1, which is at 30: {path}");
}

#[test]
fn a_column_is_explained_once() {
    assert_eq!(page().matches("title=\"Operations per second: statements").count(), 1);
}

#[test]
fn a_run_of_five_variants_five_blocks_and_42_steps_is_small() {
    let mut findings = fixture::sized(&["rollback", "b", "c", "d", "e"], 5, 1_800);
    let steps = findings.workloads[0].steps.clone();
    let long = steps.iter().filter(|step| step.name != "l.x");
    findings.workloads[0].steps = long.cycle().take(42).cloned().collect();
    // This is as many steps as the microbenchmarks have, and they do not look up ids.
    let variants = findings.workloads[0].steps.iter_mut().flat_map(|step| &mut step.variants);
    variants.flat_map(|variant| &mut variant.runs).for_each(|run| run.lookups.clear());
    let page = run_html(&findings, PageOptions::default());
    assert!(page.len() < 5_000_000, "{} bytes", page.len());
}
