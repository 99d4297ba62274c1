//! Tests of the warnings with which pages and the terminal begin: few blocks, many invalid runs,
//! caches that answer.

use dbdyno_analyse::{Code, Findings, Undecided, Validity, Verdict, Warning};

use crate::run::{self, PageOptions, published_html, run_html};
use crate::{document, fixture, views};

const ONE_BLOCK: &str = "One block: differences may be chance; use --blocks 5.";

/// The page up to its first table, chart or section.
fn beginning(page: &str) -> &str {
    let body = page.find("</h1>").expect("it has a title");
    let end = page[body..].find("<h2").map_or(page.len(), |end| body + end);
    &page[body..end]
}

fn pages(findings: &Findings) -> [String; 3] {
    [
        run_html(findings, PageOptions::default()),
        published_html(findings, PageOptions::default()),
        published_html(findings, PageOptions { details: Some("details.html"), ..PageOptions::default() }),
    ]
}

fn screen(findings: &Findings) -> String {
    document::terminal(&run::short(findings, ""), 200, false)
}

#[test]
fn one_block_is_named_with_any_number_of_variants_on_the_screen_and_at_the_top_of_pages() {
    for names in [&["rollback", "b"][..], &["rollback", "b", "c"], &["rollback", "b", "c", "d"]] {
        let findings = fixture::sized(names, 1, 3);
        assert!(screen(&findings).contains(ONE_BLOCK), "{names:?}: {}", screen(&findings));
        for page in pages(&findings) {
            assert!(beginning(&page).contains(ONE_BLOCK), "{names:?}: {}", beginning(&page));
        }
    }
    let several = fixture::sized(&["rollback", "b", "c"], 3, 3);
    assert!(!screen(&several).contains("One block"));
    assert!(pages(&several).iter().all(|page| !beginning(page).contains("One block")));
    let mut measured_once = fixture::sized(&["rollback", "b", "c"], 1, 3);
    measured_once.run.blocks_planned = 5;
    assert!(screen(&measured_once).contains("One block of 5 was measured: differences may be chance."));
    let alone = fixture::sized(&["rollback"], 1, 3);
    assert!(!screen(&alone).contains("One block"), "nothing is compared");
}

#[test]
fn a_page_of_which_more_than_a_tenth_is_invalid_begins_with_that() {
    let text = |findings: &Findings| {
        let all = findings.variants_of_steps().flat_map(|(_, _, variant)| &variant.runs).count();
        format!(" of {all} executions of steps (")
    };
    let mut findings = fixture::sized(&["rollback", "b", "c", "d"], 3, 3);
    assert!(!screen(&findings).contains(&text(&findings)));
    for step in findings.workloads[0].steps.iter_mut().take(3) {
        for run in step.variants.iter_mut().flat_map(|variant| &mut variant.runs) {
            run.validity = Validity::Invalid { reasons: vec![Warning::quoted("x")] };
        }
    }
    let text = text(&findings);
    assert!(screen(&findings).contains(&text), "{}", screen(&findings));
    for page in pages(&findings) {
        assert!(beginning(&page).contains(&text), "{}", beginning(&page));
    }
}

#[test]
fn caches_are_named_next_to_the_verdicts() {
    let mut findings = fixture::with_blocks(3);
    findings.warnings.push(Warning::new(Code::QueryCache).at("rollback").at("wal"));
    let scope = views::Scope::of(&findings, &findings.workloads[0]);
    let text = document::terminal(&views::summary::blocks(scope), 200, false);
    let (before, _) = text.split_once("─").expect("it has a table");
    assert!(before.contains("The query cache answers in rollback and wal"), "{text}");
}

#[test]
fn why_a_step_is_undecided_is_said_under_the_table() {
    let mut findings = fixture::with_blocks(3);
    let variant = findings.workloads[0].steps[0].variants.last_mut().unwrap();
    (variant.to_base.ratio, variant.to_base.verdict, variant.to_base.undecided) =
        (None, Some(Verdict::Undecided), Some(Undecided::BelowClock));
    let text = screen(&findings);
    assert!(text.contains("Undecided in l.i0: a time below 0.0001 s"), "{text}");
}
