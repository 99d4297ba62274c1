//! Tests of the fixture's comparisons in each of their formats.

use dbdyno_analyse::statistics::describe::group;
use dbdyno_analyse::{Code, ComparedSide, Exclusion, ExclusionKind, StepComparison, Warning};

use super::*;
use crate::fixture;

/// The new variant's excluded blocks. Its last block failed in the last step, and its second cell
/// failed.
fn left_out_of(step: &str) -> Vec<Exclusion> {
    let quoted = |text: &str| vec![Warning::quoted(text)];
    let cell = Exclusion { block: 2, kind: ExclusionKind::CellFailed, reasons: quoted("server <went> away") };
    let rows = |block| Exclusion {
        block,
        kind: ExclusionKind::Invalid,
        reasons: quoted(&format!("rows of table {block}: 399950 instead of 400000")),
    };
    match step {
        "qp500" => vec![rows(1), rows(3)],
        "qp1000" => vec![Exclusion { block: 1, kind: ExclusionKind::DidNotRun, reasons: Vec::new() }, cell],
        "qr1000" => vec![cell],
        _ => Vec::new(),
    }
}

pub(super) fn comparison() -> Comparison {
    let findings = fixture::with_blocks(3);
    let workload = &findings.workloads[0];
    let side = |variant: usize| ComparedSide {
        run_id: findings.run.run_id.clone(),
        variant: findings.variants[variant].name.clone(),
        version_text: findings.variants[variant].version_text.clone(),
    };
    let step = |step: &dbdyno_analyse::StepFindings| {
        let (base, new) = (&step.variants[0], &step.variants[1]);
        ComparedStep {
            workload: workload.name.clone(),
            step: step.name.clone(),
            rate_label: step.rate_label.clone(),
            less_is_better: false,
            margin: 0.02,
            target_missed: false,
            is_fixed_rate: false,
            schedule_missed: false,
            base_left_out: Vec::new(),
            new_left_out: left_out_of(step.name.as_str()),
            base_rate: base.rate,
            new_rate: new.rate,
            base_p99_us: base.latency.as_ref().and_then(dbdyno_analyse::Latency::known_p99_us),
            new_p99_us: new.latency.as_ref().and_then(dbdyno_analyse::Latency::known_p99_us),
            base_blocks: 3,
            new_blocks: 3,
            to_base: StepComparison {
                verdict: new.to_base.verdict.or(Some(Verdict::Invalid)),
                ..new.to_base.clone()
            },
        }
    };
    let steps: Vec<ComparedStep> = workload.steps.iter().skip(4).map(step).collect();
    let notes = vec![Warning::new(Code::DebugBuildCompared)];
    let ratios = group(&steps.iter().filter_map(|step| step.to_base.value()).collect::<Vec<_>>());
    Comparison { base: side(0), new: side(1), paired: true, margin: 0.02, notes, ratios, steps, why: Vec::new() }
}

#[test]
fn a_terminal_gets_the_table_and_the_count_last() {
    insta::assert_snapshot!(comparison_terminal(&comparison(), &TerminalOptions::PLAIN), @r#"
    dbdyno compare: <b>&" against rollback
    ! Measured with a debug build of dbdyno: its numbers are not worth comparing.
    Base rollback (3.50.2, run 20240401T101112Z-quickstart); new <b>&" (3.50.2, run
    20240401T101112Z-quickstart). 3 blocks, paired by block; margin 2.0 %; p adjusted over all
    comparisons of the plan.

    Base and new in queries/s: median rate of the blocks. Ratio: new ÷ base of each block, geometric
    mean over the blocks. It may differ from the quotient of the two medians.
    step     base     new  ratio         95 %    verdict  adjusted p             p99        p99 ratio
                                     interval                         base → new, ms
    ─────────────────────────────────────────────────────────────────────────────────────────────────
    qr100   9,000   9,360  1.040  0.988–1.095  undecided       0.123     1.52 → 1.90  1.250 undecided
    qp100   9,400  12,220  1.300  1.274–1.327     faster       0.012     1.52 → 1.90  1.250 undecided
    qr500   8,100   7,857  0.970  0.921–1.021  undecided       0.123     1.52 → 1.90  1.250 undecided
    qp500   8,500      NA     NA           NA    invalid          NA        1.52 → –                –
    qr1000  7,000   5,600  0.800  0.784–0.816     slower       0.012     1.52 → 1.90  1.250 undecided
    qp1000  7,100      NA     NA           NA    invalid          NA        1.52 → –                –
    Left out:
    • qp500 of new <b>&": invalid in blocks 1, 3; block 1: rows of table 1: 399950 instead of 400000
    • qr1000, qp1000 of new <b>&": not run, because its cell failed in block 2: server <went> away
    • qp1000 of new <b>&": its cell did not run in block 1

    Steps: 1 slower, 1 faster, 0 same, 2 undecided, 2 invalid. p99: 0 slower, 0 faster, 0 same, 4
      undecided.
    Ratios of 4 steps: geometric mean 1.012, average 1.027, median 1.005, 0.800 to 1.300, standard
    deviation 0.208.
    "#);
}

#[test]
fn eighty_columns_have_both_rates_and_the_interval() {
    let mut comparison = comparison();
    comparison.steps.iter_mut().for_each(|step| step.step = "point-select.c1".to_owned());
    let text = comparison_terminal(&comparison, &TerminalOptions { width: 80, ..TerminalOptions::PLAIN });
    let head = text.lines().find(|line| line.starts_with("step")).unwrap_or_default();
    let names: Vec<&str> = head.split_whitespace().collect();
    assert_eq!(names, ["step", "base", "new", "ratio", "95", "%", "verdict", "p99"], "{text}");
}

#[test]
fn rates_of_different_units_have_a_column_with_the_unit() {
    let mut comparison = comparison();
    comparison.steps[0].rate_label = "inserts/s".to_owned();
    let text = comparison_terminal(&comparison, &TerminalOptions { width: 80, ..TerminalOptions::PLAIN });
    assert!(text.contains("inserts/s") && text.contains("queries/s"), "{text}");
}

#[test]
fn steps_that_missed_their_target_are_counted_where_there_are_some() {
    let mut comparison = comparison();
    comparison.steps[1].to_base.verdict = Some(Verdict::Missed);
    assert_eq!(
        summary(&comparison),
        "Steps: 1 slower, 0 faster, 0 same, 1 missed, 2 undecided, 2 invalid. p99: 0 slower, 0 faster, 0 same, 4 undecided."
    );
}

#[test]
fn a_pull_request_gets_the_count_first() {
    insta::assert_snapshot!(comparison_markdown(&comparison()), @r#"
    ### dbdyno compare: &lt;b>&amp;" against rollback

    **Steps: 1 slower, 1 faster, 0 same, 2 undecided, 2 invalid. p99: 0 slower, 0 faster, 0 same, 4 undecided.**

    > **Warning:** Measured with a debug build of dbdyno: its numbers are not worth comparing.

    Base and new in queries/s: median rate of the blocks. Ratio: new ÷ base of each block, geometric mean over the blocks. It may differ from the quotient of the two medians.

    | step | base | new | ratio | 95 % (interval) | verdict | adjusted p | p99 (base → new, ms) | p99 ratio |
    | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
    | qr100 | 9,000 | 9,360 | 1.040 | 0.988–1.095 | undecided | 0.123 | 1.52 → 1.90 | 1.250 undecided |
    | qp100 | 9,400 | 12,220 | 1.300 | 1.274–1.327 | faster | 0.012 | 1.52 → 1.90 | 1.250 undecided |
    | qr500 | 8,100 | 7,857 | 0.970 | 0.921–1.021 | undecided | 0.123 | 1.52 → 1.90 | 1.250 undecided |
    | qp500 | 8,500 | NA | NA | NA | invalid | NA | 1.52 → – | – |
    | qr1000 | 7,000 | 5,600 | 0.800 | 0.784–0.816 | slower | 0.012 | 1.52 → 1.90 | 1.250 undecided |
    | qp1000 | 7,100 | NA | NA | NA | invalid | NA | 1.52 → – | – |

    Left out:

    - qp500 of new &lt;b>&amp;": invalid in blocks 1, 3; block 1: rows of table 1: 399950 instead of 400000
    - qr1000, qp1000 of new &lt;b>&amp;": not run, because its cell failed in block 2: server &lt;went> away
    - qp1000 of new &lt;b>&amp;": its cell did not run in block 1

    Ratios of 4 steps: geometric mean 1.012, average 1.027, median 1.005, 0.800 to 1.300, standard deviation 0.208.

    Base rollback (3.50.2, run 20240401T101112Z-quickstart); new &lt;b>&amp;" (3.50.2, run 20240401T101112Z-quickstart). 3 blocks, paired by block; margin 2.0 %; p adjusted over all comparisons of the plan.
    "#);
}

#[test]
fn the_note_explains_rates_and_ratios_for_each_way_to_compare() {
    let mut comparison = comparison();
    comparison.paired = false;
    assert!(table(&comparison, &[]).note.contains("geometric mean of new's blocks"));
    for step in &mut comparison.steps {
        (step.base_blocks, step.new_blocks) = (1, 1);
    }
    assert!(table(&comparison, &[]).note.contains(": rate of the one block."));
}

#[test]
fn steps_with_a_margin_of_their_own_are_named() {
    let mut comparison = comparison();
    comparison.steps[1].margin = 0.05;
    assert!(method(&comparison).contains("; margin 2.0 % (qp100 5.0 %); "));
}

#[test]
fn a_program_gets_everything_unrounded() {
    let text = comparison_json(&comparison());
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(text.starts_with("{\n  \"schema\": 1,\n  \"base\""), "{text}");
    assert_eq!(value["steps"][0]["verdict"], "undecided");
    assert_eq!(value["steps"][0]["ratio"]["inference"]["q_difference"], 0.123);
    let (invalid, left_out) = (&value["steps"][3], &value["steps"][3]["new_left_out"][0]);
    assert_eq!(
        (&invalid["new_rate"], invalid["base_left_out"].as_array().map(Vec::len)),
        (&().into(), Some(0))
    );
    assert_eq!((&left_out["kind"], &left_out["block"]), (&"invalid".into(), &1.into()));
    assert_eq!(left_out["reasons"][0]["figures"]["text"], "rows of table 1: 399950 instead of 400000");
}

#[test]
fn a_variant_that_never_started_has_no_version_in_the_method() {
    let mut comparison = comparison();
    comparison.new.version_text.clear();
    assert!(method(&comparison).contains("new <b>&\" (run 2024"), "{}", method(&comparison));
}

#[test]
fn neighbouring_steps_that_are_left_out_for_the_same_reason_share_a_line() {
    let mut comparison = comparison();
    for step in &mut comparison.steps {
        step.new_left_out = left_out_of("qr1000");
    }
    let line =
        "qr100 to qp1000 of new <b>&\": not run, because its cell failed in block 2: server <went> away";
    assert_eq!(lines(&comparison), [line]);
}

#[test]
fn the_ratio_of_one_step_is_no_group() {
    let ratios = group(&[1.5]).unwrap();
    assert_eq!(group_line(&ratios), None);
}

#[test]
fn ci_gets_one_test_case_per_step_and_comments_have_a_limit() {
    let slower = |step: &ComparedStep| step.to_base.verdict == Some(Verdict::Slower);
    insta::assert_snapshot!(comparison_junit(&comparison(), slower), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuite name="dbdyno compare: &lt;b&gt;&amp;&quot; against rollback" tests="6" failures="1">
      <testcase classname="insert-benchmark" name="qr100"><skipped message="undecided: 9,000 → 9,360 queries/s, ratio 1.040 (0.988–1.095), p99 1.52 → 1.90 ms"/></testcase>
      <testcase classname="insert-benchmark" name="qp100"><system-out>faster: 9,400 → 12,220 queries/s, ratio 1.300 (1.274–1.327), p99 1.52 → 1.90 ms</system-out></testcase>
      <testcase classname="insert-benchmark" name="qr500"><skipped message="undecided: 8,100 → 7,857 queries/s, ratio 0.970 (0.921–1.021), p99 1.52 → 1.90 ms"/></testcase>
      <testcase classname="insert-benchmark" name="qp500"><skipped message="invalid: 8,500 → NA queries/s, ratio NA (NA), p99 1.52 → – ms"/></testcase>
      <testcase classname="insert-benchmark" name="qr1000"><failure message="slower: 7,000 → 5,600 queries/s, ratio 0.800 (0.784–0.816), p99 1.52 → 1.90 ms"/></testcase>
      <testcase classname="insert-benchmark" name="qp1000"><skipped message="invalid: 7,100 → NA queries/s, ratio NA (NA), p99 1.52 → – ms"/></testcase>
    </testsuite>
    "#);
    let mut long = comparison();
    let step = long.steps[0].clone();
    long.steps = (0..2_000).map(|n| ComparedStep { step: format!("step-{n}"), ..step.clone() }).collect();
    let text = comparison_markdown(&long);
    assert!(
        text.chars().count() <= COMMENT_MAX && text.contains(" of 2,000 steps are not shown."),
        "{}",
        text.len()
    );
    for step in &mut long.steps {
        step.to_base.verdict = Some(Verdict::Same);
    }
    let text = comparison_markdown(&long);
    assert!(fits(&text) && text.contains("2,000 of 2,000 steps are not shown."), "{}", text.len());
    long.new.version_text = "x".repeat(70_000);
    let text = comparison_markdown(&long);
    assert!(fits(&text) && text.ends_with("The rest is not shown.\n"), "{}", text.len());
}

#[test]
fn seconds_are_never_shown_as_zero() {
    let mut comparison = comparison();
    for step in &mut comparison.steps {
        step.less_is_better = true;
        (step.base_rate, step.new_rate) = (Some(0.000_03), Some(0.000_3));
    }
    let text = comparison_terminal(&comparison, &TerminalOptions { width: 200, ..TerminalOptions::PLAIN });
    assert!(text.contains("< 0.0001") && text.contains("0.0003") && !text.contains(" 0.00 "), "{text}");
}
