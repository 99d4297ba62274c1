//! The terminal's report.

use super::*;
use crate::fixture;

fn render(findings: &Findings, options: TerminalOptions) -> String {
    Terminal { options }.render(findings).expect("plain data")
}

#[test]
fn the_report_of_the_fixture() {
    insta::assert_snapshot!("terminal", render(&fixture::findings(), TerminalOptions::PLAIN));
}

#[test]
fn the_summary_alone_in_colour() {
    let options = TerminalOptions { width: 80, colour: true, part: Part::Tables, ..TerminalOptions::PLAIN };
    let text = render(&fixture::findings(), options).replace('\u{1b}', "ESC");
    insta::assert_snapshot!("terminal_summary_in_colour", text);
}

#[test]
fn with_several_blocks_ratios_have_intervals_and_verdicts_below_each_other() {
    let options = TerminalOptions { part: Part::Tables, ..TerminalOptions::PLAIN };
    let text = render(&fixture::with_blocks(3), options);
    let table = text.split("\nRelative\n").nth(1).expect("there is one").split("\n\n").next().expect("text");
    insta::assert_snapshot!(table, @r#"
    Rate divided by that of rollback.
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
    + more than 5 % above the base · − more than 5 % below the base
    "#);
}

#[test]
fn a_table_of_groups_stands_upright() {
    let options = TerminalOptions { part: Part::Tables, ..TerminalOptions::PLAIN };
    let text = render(&fixture::with_groups(), options);
    let table = text.split("\nGroups of steps (2024)\n").nth(1).expect("there is one");
    insta::assert_snapshot!(table.split("\n\n").next().expect("text"), @r"
    Relative rates.
    group          average     max       geometric mean
    ───────────────────────────────────────────────────
    writes          3.59 +  9.87 +  2.23  0.970–2.310 +
    range, part 1   1.17 +  1.30 +  1.16  0.970–2.310 +
    + more than 5 % above the base
    ");
}

#[test]
fn tests_before_and_behind_the_writes_have_a_row_each_and_a_column_a_variant() {
    let options = TerminalOptions { part: Part::Tables, ..TerminalOptions::PLAIN };
    let text = render(&fixture::with_aging(), options);
    let table = text.split("\nAfter ÷ before writes\n").nth(1).expect("there is one");
    insta::assert_snapshot!(table.split("\n\n").next().expect("text"), @r#"
    Rate after the steps that write ÷ rate before them.
    test              rollback                 <b>&"
    ────────────────────────────────────────────────
    qr500  0.72  0.710–0.730 −  invalid
    qp500  1.00  0.980–1.020       1.00  0.980–1.020
    − more than 5 % below the rate before the writes
    "#);
}

#[test]
fn a_sweep_has_a_row_a_number_of_connections() {
    let options = TerminalOptions { part: Part::Tables, ..TerminalOptions::PLAIN };
    let text = render(&fixture::with_sweep(), options);
    let table = text.split("\nConnections: read-only\n").nth(1).expect("there is one");
    insta::assert_snapshot!(table.split("\n\n").next().expect("text"), @r#"
    By number of connections.
    connections  rollback  rollback   <b>&"   <b>&"
                     rate    p95 ms    rate  p95 ms
    ───────────────────────────────────────────────
    1                1000      0.50    1200    0.50
    2                2000      1.00    2400    1.00
    4                4000      2.00    4800    2.00
    1024             2000   2000.00  failed  failed
    "#);
}

#[test]
fn nothing_but_configurations_is_wider_than_the_terminal() {
    for width in [80, 100, 140] {
        let text = render(&fixture::with_blocks(3), TerminalOptions { width, ..TerminalOptions::PLAIN });
        for line in text.lines() {
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
    let options = TerminalOptions { part: Part::Tables, ..TerminalOptions::PLAIN };
    let text = render(&fixture::sized(&names, 1, 3), options);
    assert!(text.lines().all(|line| line.chars().count() <= 100));
    assert!(names.iter().all(|name| text.contains(name)));
}
