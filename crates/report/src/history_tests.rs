//! Tests of a history of two series in every format.

use dbdyno_analyse::{Aspect, Code, Difference, HistoryRun, Warning};

use super::*;
use crate::history::{CHANGE, row};

pub(crate) fn history() -> History {
    let run = |n: usize| HistoryRun {
        run_id: format!("2024010{n}T000000Z-nightly"),
        started: format!("2024-01-0{n}T00:00:00Z"),
        versions: vec![("dev".to_owned(), if n < 4 { "12.0.1" } else { "12.0.2" }.to_owned())],
    };
    let series = |step: &str, values: [Option<f64>; 6], changes: Vec<Change>| Series {
        workload: "insert-benchmark".to_owned(),
        step: step.to_owned(),
        variant: "dev".to_owned(),
        follows: Followed::Rate,
        is_secondary: false,
        rate_label: "queries/s".to_owned(),
        margin: 0.02,
        values: values.to_vec(),
        newest: None,
        p: Some(0.004),
        adjusted_p: Some(if changes.is_empty() { 0.4 } else { 0.008 }),
        changes,
    };
    let change = Change {
        at: 3,
        run_id: run(4).run_id,
        before: 9_020.0,
        after: 8_210.0,
        ratio: 0.91,
        p: 0.004,
        adjusted_p: 0.008,
        verdict: Verdict::Slower,
    };
    let [base, new] = ["7", "8"].map(|seed| Some(seed.to_owned()));
    let unlike = Difference { aspect: Aspect::Seed, variant: None, base, new };
    History {
        name: "nightly".to_owned(),
        measure: Measure::Rate,
        margin: 0.02,
        runs: (1..=6).map(run).collect(),
        notes: vec![Warning::new(Code::UnlikeFirst).with("run", "5").with("difference", vec![unlike])],
        detectable: Detectable { series: 2, runs: 6, min_runs: 9, min_runs_of_all: 8, min_newest: None },
        series: vec![
            series("qr100", [9_010.0, 9_050.0, 9_000.0, 8_200.0, 8_230.0, 8_200.0].map(Some), vec![change]),
            series("qp100", [Some(12.1), None, Some(12.2), Some(12.0), Some(12.1), Some(12.15)], Vec::new()),
        ],
    }
}

#[test]
fn a_terminal_gets_the_table_and_the_changes_last() {
    insta::assert_snapshot!(history_terminal(&history(), &TerminalOptions::PLAIN), @r"
    dbdyno history: nightly, 6 runs
    ! Run 5 is not comparable to the first: seed 7 and 8.
    Runs 20240101T000000Z-nightly to 20240106T000000Z-nightly. Geometric mean of the blocks' rates, 0 if
      any block had rate zero, and of their p99. Changes are the largest shift of level, then the
      largest before and after it; each p is from a permutation test over the runs, adjusted over all
      series of rates, and over those of p99. Margin 2.0 %.

    step   variant  runs  first   last       unit  sparkline        change  adjusted p
    ──────────────────────────────────────────────────────────────────────────────────
    qr100  dev         6  9,010  8,200  queries/s     ███▁▁▁  slower 0.910       0.008
    qp100  dev         5   12.1   12.2  queries/s     ▅·█▁▅▆          none       0.400

    Changes
    • dev qr100 is slower since run 20240104T000000Z-nightly: 0.910 times the level before (9,020 to
      8,210, 12.0.1 to 12.0.2).
    ");
}

#[test]
fn markdown_begins_with_the_changes() {
    insta::assert_snapshot!(history_markdown(&history()), @"
    # dbdyno history: nightly, 6 runs

    > **Warning:** Run 5 is not comparable to the first: seed 7 and 8.

    - dev qr100 is slower since run 20240104T000000Z-nightly: 0.910 times the level before (9,020 to 8,210, 12.0.1 to 12.0.2).

    | step | variant | runs | first | last | unit | sparkline | change | adjusted p |
    | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
    | qr100 | dev | 6 | 9,010 | 8,200 | queries/s | ███▁▁▁ | slower 0.910 | 0.008 |
    | qp100 | dev | 5 | 12.1 | 12.2 | queries/s | ▅·█▁▅▆ | none | 0.400 |

    Runs 20240101T000000Z-nightly to 20240106T000000Z-nightly. Geometric mean of the blocks' rates, 0 if any block had rate zero, and of their p99. Changes are the largest shift of level, then the largest before and after it; each p is from a permutation test over the runs, adjusted over all series of rates, and over those of p99. Margin 2.0 %.
    ");
}

#[test]
fn a_program_gets_every_value() {
    let value: serde_json::Value = serde_json::from_str(&history_json(&history())).unwrap();
    assert_eq!((&value["schema"], &value["series"][0]["changes"][0]["ratio"]), (&1.into(), &0.91.into()));
    assert_eq!(value["series"][1]["values"][1], serde_json::Value::Null);
    assert_eq!(value["notes"][0], "Run 5 is not comparable to the first: seed 7 and 8.");
    let figures = &value["warnings"][0]["figures"];
    assert_eq!((&figures["run"], &figures["difference"]), (&"5".into(), &"seed 7 and 8".into()));
}

#[test]
fn a_row_has_all_changes_each_with_its_own_p_and_what_the_newest_run_lacks() {
    let mut history = history();
    let shown = |history: &History| row(history, &history.series[0])[CHANGE..].join(" | ");
    let again = Change {
        at: 5,
        ratio: 1.02,
        adjusted_p: 0.031,
        verdict: Verdict::Faster,
        ..history.series[0].changes[0].clone()
    };
    history.series[0].changes.push(again);
    assert_eq!(shown(&history), "slower 0.910, faster 1.020 | 0.008, 0.031");
    history.series[0].newest = Some(Lapse::NoValue);
    assert_eq!(shown(&history), "slower 0.910, faster 1.020, no value | 0.008, 0.031");
    history.series[0].changes.clear();
    history.series[0].newest = Some(Lapse::ZeroRate);
    assert_eq!(shown(&history), "none, has rate zero | 0.008");
    let said = "dev qr100 dropped to rate zero in the newest run 20240106T000000Z-nightly.";
    assert_eq!(summary(&history)[0], said);
}

#[test]
fn a_level_of_rate_zero_has_no_ratio_to_it() {
    let mut history = history();
    let change = &mut history.series[0].changes[0];
    (change.before, change.ratio, change.verdict) = (0.0, f64::INFINITY, Verdict::Faster);
    assert_eq!(row(&history, &history.series[0])[CHANGE], "faster");
    let said = "dev qr100 is faster since run 20240104T000000Z-nightly: rate zero before (0.00 to \
                8,210, 12.0.1 to 12.0.2).";
    assert_eq!(summary(&history), [said]);
}

#[test]
fn steps_with_a_margin_of_their_own_are_named() {
    let mut history = history();
    history.series[1].margin = 0.05;
    assert!(method(&history).ends_with(" Margin 2.0 % (qp100 5.0 %)."), "{}", method(&history));
}

#[test]
fn the_unit_is_that_of_what_is_shown() {
    let mut history = history();
    assert_eq!(row(&history, &history.series[0])[5], "queries/s");
    history.measure = Measure::Ratio;
    assert_eq!(row(&history, &history.series[0])[5], "ratio");
    history.series[0].follows = Followed::ResponseP99;
    assert_eq!(row(&history, &history.series[0])[5], "ratio of p99");
    history.runs.truncate(1);
    assert_eq!(title(&history), "dbdyno history: nightly, 1 run");
}

#[test]
fn no_change_is_a_sentence_too() {
    let mut history = history();
    history.series.remove(0);
    assert_eq!(summary(&history), ["No change of level can be found yet: there are too few runs."]);
    history.detectable.runs = 12;
    assert_eq!(summary(&history), ["No change of level beyond the margin was found in any series."]);
    history.series.clear();
    assert_eq!(summary(&history), ["No step of any run has a valid block: there is nothing to follow."]);
}

#[test]
fn how_many_runs_show_a_new_level_is_reported_where_any_can() {
    let mut history = history();
    history.detectable.min_newest = Some(3);
    let said = " A new level of one series alone among 2 can be found once 3 runs have it. Margin 2.0 %.";
    assert!(method(&history).ends_with(said), "{}", method(&history));
    history.detectable.series = 1;
    let said = " A new level of one series can be found once 3 runs have it. Margin 2.0 %.";
    assert!(method(&history).ends_with(said), "{}", method(&history));
}

#[test]
fn runs_of_a_day_or_two_have_their_times() {
    assert_eq!(
        moments(&["2026-11-21T23:58:00Z", "2026-11-22T00:03:00.125Z"]),
        ["11-21 23:58", "11-22 00:03"]
    );
    let nights = ["2026-11-20T01:00:00Z", "2026-11-21T01:00:00Z", "2026-11-22T01:00:00Z"];
    assert_eq!(moments(&nights), ["2026-11-20", "2026-11-21", "2026-11-22"]);
}
