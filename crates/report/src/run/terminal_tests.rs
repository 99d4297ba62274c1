//! Tests of the report for a terminal, and of what must be the same in all formats.

use dbdyno_analyse::Findings;

use crate::document::tests::tables;
use crate::document::{Block, markdown, terminal};
use crate::fixture;
use crate::run::{self, ReportPart, TerminalOptions, run_terminal};

fn render(findings: &Findings, options: TerminalOptions) -> String {
    run_terminal(findings, &options).expect("plain data")
}

#[test]
fn with_several_blocks_ratios_have_intervals_and_verdicts_below_each_other() {
    let options = TerminalOptions { part: ReportPart::Tables, ..TerminalOptions::PLAIN };
    let text = render(&fixture::with_blocks(3), options);
    let table = text
        .split("\nRelative throughput\n")
        .nth(1)
        .expect("there is one")
        .split("\n\n")
        .next()
        .expect("text");
    insta::assert_snapshot!(table, @r#"
    Rate divided by the rate of rollback in the same block; geometric mean of 3 blocks with its 95 %
    interval, paired by block. faster, slower: the difference is significant and the ratio is beyond the
    margin of 2 %. same: shown to be within the margin. False discovery rate 5 %, for differences and
    for equivalences.
    step    rollback                               <b>&"
    ────────────────────────────────────────────────────
    l.i0        1.00     1.02   0.969–1.074  undecided
    l.x         1.00     0.99   0.970–1.010  same
    l.i1        1.00     2.50   2.450–2.551  faster    +
    l.i2        1.00     9.87  9.673–10.071  faster    +
    qr100       1.00     1.04   0.988–1.095  undecided
    qp100       1.00     1.30   1.274–1.327  faster    +
    qr500       1.00     0.97   0.921–1.021  undecided
    qp500       1.00  invalid
    qr1000      1.00     0.80   0.784–0.816  slower    −
    qp1000      1.00   failed
    + faster · − slower
    "#);
}

#[test]
fn a_table_of_groups_has_one_row_per_group() {
    let options = TerminalOptions { part: ReportPart::Tables, ..TerminalOptions::PLAIN };
    let text = render(&fixture::with_groups(), options);
    let table = text.split("\nGroups of steps (2024)\n").nth(1).expect("there is one");
    insta::assert_snapshot!(table.split("\n\n").next().expect("text"), @r#"
    Ratios of <b>&" to rollback, over the steps of each group of the published reports. stddev has n - 1
    in its divisor. The geometric mean has its 95 % interval over the blocks.
                                                                                    lowest  highest
    group           steps  average  median   min   max  stddev      geometric mean  step    step
    ───────────────────────────────────────────────────────────────────────────────────────────────
    range, part 1  4 of 6     1.03    1.00  0.80  1.30    0.21  1.012  1.012–1.012  qr1000  qp100
    writes              4     3.60    1.76  0.99  9.87    4.24  2.234  2.234–2.234  l.x     l.i2
    "#);
}

#[test]
fn tests_before_and_after_the_writes_have_one_row_per_test_and_one_column_per_variant() {
    let options = TerminalOptions { part: ReportPart::Tables, ..TerminalOptions::PLAIN };
    let text = render(&fixture::with_aging(), options);
    let table = text.split("\nAfter ÷ before writes\n").nth(1).expect("there is one");
    insta::assert_snapshot!(table.split("\n\n").next().expect("text"), @r#"
    Rate of each test after the steps that write ÷ its rate before them (.pre) in the same block; the
    geometric mean over the blocks with its 95 % interval.
    test            rollback              <b>&"
    ───────────────────────────────────────────
    qr500  0.72  0.703–0.738   n/a
    qp500  1.00  0.975–1.025  1.00  0.975–1.025
    "#);
}

#[test]
fn a_sweep_has_one_row_per_number_of_connections() {
    let options = TerminalOptions { part: ReportPart::Tables, ..TerminalOptions::PLAIN };
    let text = render(&fixture::with_sweep(), options);
    let table = text.split("\nConnections: read-only\n").nth(1).expect("there is one");
    insta::assert_snapshot!(table.split("\n\n").next().expect("text"), @r#"
    transactions/s and response times by number of connections, all blocks together.
    connections  rollback  <b>&"  rollback    <b>&"  rollback   <b>&"  rollback   <b>&"  rollback
                     rate   rate   mean ms  mean ms    p50 ms  p50 ms    p95 ms  p95 ms    p99 ms
    ─────────────────────────────────────────────────────────────────────────────────────────────
    1               1,000  1,200     0.420    0.420     0.400   0.400     0.500   0.500     0.900
    2               2,000  2,400     0.840    0.840     0.800   0.800      1.00    1.00      1.80
    4               4,000  4,800      1.68     1.68      1.60    1.60      2.00    2.00      3.60
    1,024           2,000    n/a      1.68      n/a      1.60     n/a     2,000     n/a      3.60
    "#);
}

#[test]
fn nothing_but_configurations_is_wider_than_the_terminal() {
    for width in [80, 100, 140] {
        let text = render(&fixture::with_blocks(3), TerminalOptions { width, ..TerminalOptions::PLAIN });
        // Code, such as configurations and statements, stays as it was written.
        for line in text.lines().filter(|line| !line.starts_with("  ")) {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn without_colour_there_is_no_escape_sequence() {
    assert!(!render(&fixture::findings(), TerminalOptions::PLAIN).contains('\u{1b}'));
}

#[test]
fn many_variants_continue_below() {
    let names: Vec<String> = (0..12).map(|number| format!("variant-number-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let options = TerminalOptions { part: ReportPart::Tables, ..TerminalOptions::PLAIN };
    let text = render(&fixture::sized(&names, 1, 3), options);
    assert!(text.lines().all(|line| line.chars().count() <= 100));
    assert!(names.iter().all(|name| text.contains(name)));
}

/// The sections of a run's document, each from a heading to the next: `title`, `insert-benchmark`,
/// `l.i0`.
fn sections(findings: &Findings) -> Vec<(String, Vec<Block>)> {
    let mut all: Vec<(String, Vec<Block>)> = vec![("title".to_owned(), Vec::new())];
    for block in run::whole(findings, None, &[]) {
        if let Block::Heading(heading) = &block
            && heading.level == 2
        {
            all.push((heading.text.clone(), Vec::new()));
        }
        if let Some((_, blocks)) = all.last_mut() {
            blocks.push(block);
        }
    }
    all
}

fn section(name: &str) -> Vec<Block> {
    let found = sections(&fixture::findings()).into_iter().find(|(title, _)| title == name);
    found.unwrap_or_else(|| panic!("no section {name}")).1
}

/// One section of each kind. The step's section is that of a step with queries next to writes.
const GOLDEN: [(&str, &str); 9] = [
    ("title", "title"),
    ("summary", "insert-benchmark"),
    ("compared", "What was compared"),
    ("rates", "Rates and latency: insert-benchmark"),
    ("configuration", "Configuration differences"),
    ("failed-step", "qp1000"),
    ("how", "How insert-benchmark was run"),
    ("logs", "Logs of failed cells"),
    ("configurations", "Configurations"),
];

#[test]
fn each_section_for_a_terminal_and_as_markdown() {
    for (name, title) in GOLDEN {
        let mut blocks = section(title);
        if name == "failed-step" {
            blocks.retain(|block| !matches!(block, Block::Fold(..)));
        }
        insta::assert_snapshot!(format!("{name}-terminal"), terminal(&blocks, 100, false));
        insta::assert_snapshot!(format!("{name}-markdown"), markdown(&blocks));
    }
}

#[test]
fn each_topic_of_a_step() {
    for block in section("qr100") {
        if let Block::Fold(title, blocks) = block {
            let name = title.split(' ').next().unwrap_or_default().trim_matches(',');
            insta::assert_snapshot!(format!("topic-{name}"), terminal(&blocks, 100, false));
        }
    }
}

#[test]
fn the_rates_in_colour() {
    let options =
        TerminalOptions { width: 80, colour: true, part: ReportPart::Tables, ..TerminalOptions::PLAIN };
    let text = render(&fixture::findings(), options).replace('\u{1b}', "ESC");
    insta::assert_snapshot!("rates-in-colour", text);
}

#[test]
fn every_table_row_of_markdown_has_as_many_cells_as_its_head() {
    let text = (crate::find("md").unwrap().render)(&fixture::with_blocks(2));
    let mut columns = None;
    for line in text.lines() {
        if !line.starts_with('|') {
            columns = None;
            continue;
        }
        let cells = line.replace("\\|", "").matches('|').count();
        assert_eq!(*columns.get_or_insert(cells), cells, "{line}");
    }
}

#[test]
fn the_summary_fits_terminals_of_80_and_of_120_columns() {
    for width in [80, 120] {
        let options = TerminalOptions { width, part: ReportPart::Summary, ..TerminalOptions::PLAIN };
        insta::assert_snapshot!(
            format!("summary-{width}"),
            render(&fixture::with_blocks(3), options.clone())
        );
        let several = fixture::sized(&["rollback", "wal", "memory"], 3, 5);
        insta::assert_snapshot!(format!("summary-several-{width}"), render(&several, options));
    }
}

#[test]
fn figures_of_a_thousand_and_more_have_separators_in_every_table() {
    // Decimals have no separators, and names may have any digits.
    let is_bare = |word: &str| {
        let whole = word.split('.').next().unwrap_or_default();
        let is_figure = whole.trim_start_matches(['-', '−']).starts_with(|c: char| c.is_ascii_digit());
        is_figure && whole.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.len() > 3)
    };
    let all = [fixture::with_blocks(3), fixture::with_sweep(), fixture::with_groups(), fixture::with_aging()];
    for findings in all {
        let blocks = run::whole(&findings, None, &[]);
        let cells = tables(&blocks).into_iter().flat_map(|table| &table.rows).flatten();
        let bare: Vec<&str> =
            cells.map(|cell| cell.text.as_str()).filter(|text| text.split(' ').any(is_bare)).collect();
        assert!(bare.is_empty(), "{bare:?}");
    }
}
