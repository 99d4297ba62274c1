//! A history of runs as a short table, for a terminal, a pull request or a program, and the words that its page shares.

use dbdyno_analyse::{Change, History, Measure, Reach, Series, Verdict, numbered, p_text};
use serde::Serialize;

use crate::facts::one_line;
use crate::markdown::{escaped, table};
use crate::number::{NOT_AVAILABLE, margins_text, rate, ratio};
use crate::text_table::{Paint, TextCell, TextTable, wrapped};
use crate::{Error, SCHEMA, TerminalOptions};

pub(crate) const HEADS: [&str; 9] =
    ["step", "variant", "runs", "first", "last", "unit", "course", "change", "adjusted p"];
/// The column that is painted.
const CHANGE: usize = 7;
/// Heights of the course's bars, from the least value of the series to its greatest.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Runs that the course shows: the last ones.
const COURSE_RUNS: usize = 40;

/// The history for a terminal.
pub fn history_terminal(history: &History, options: TerminalOptions) -> String {
    let mut lines = vec![title(history)];
    for note in &history.notes {
        lines.extend(wrapped(&one_line(&format!("Note: {note}")), options.width, "  "));
    }
    lines.extend(wrapped(&method(history), options.width, "  "));
    lines.push(String::new());
    let rows = history.series.iter().map(|series| {
        let paint = match series.changes.last().map(|change| change.verdict) {
            Some(Verdict::Slower) => Paint::Yellow,
            Some(Verdict::Faster) => Paint::Cyan,
            _ => Paint::Plain,
        };
        let cell = |(at, text): (usize, String)| TextCell {
            text: one_line(&text),
            paint: if at == CHANGE { paint } else { Paint::Plain },
        };
        row(history, series).into_iter().enumerate().map(cell).collect()
    });
    let heads = HEADS.map(|head| (head.to_owned(), String::new())).to_vec();
    lines.extend(TextTable { labels: 2, heads, rows: rows.collect() }.lines(options.width, options.colour));
    lines.push(String::new());
    lines.extend(answers(history).iter().flat_map(|line| wrapped(&one_line(line), options.width, "  ")));
    lines.join("\n") + "\n"
}

/// The history as Markdown.
pub fn history_markdown(history: &History) -> String {
    let mut blocks = vec![format!("### {}", escaped(&title(history)))];
    blocks.push(
        answers(history).iter().map(|line| format!("- {}", escaped(line))).collect::<Vec<_>>().join("\n"),
    );
    blocks.extend(history.notes.iter().map(|note| format!("> {}", escaped(note))));
    let rows: Vec<Vec<String>> = history
        .series
        .iter()
        .map(|series| row(history, series).iter().map(|text| escaped(text)).collect())
        .collect();
    blocks.push(table(2, &HEADS.map(str::to_owned), &rows));
    blocks.push(escaped(&method(history)));
    blocks.join("\n\n") + "\n"
}

/// The history as one JSON object, `schema` first.
///
/// # Errors
/// [`Error::Json`] when it cannot be written as JSON.
pub fn history_json(history: &History) -> Result<String, Error> {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: u32,
        #[serde(flatten)]
        history: &'a History,
    }
    let failed = |source| Error::Json { run_id: history.name.clone(), source };
    let text = serde_json::to_string_pretty(&Document { schema: SCHEMA, history }).map_err(failed)?;
    Ok(text + "\n")
}

pub(crate) fn title(history: &History) -> String {
    one_line(&format!("dbdyno history: {}, {}", history.name, numbered(history.runs.len(), "run")))
}

/// What the values are, and how changes are judged.
pub(crate) fn method(history: &History) -> String {
    let span = match history.runs.as_slice() {
        [first, .., last] => format!("Runs {} to {}. ", first.run_id, last.run_id),
        _ => String::new(),
    };
    let what = match history.measure {
        Measure::Rate => "Geometric mean of the blocks' rates",
        Measure::Ratio => "Ratio to the base of the same run",
    };
    let newest = match history.reach {
        Reach { series, least_newest: Some(runs), .. } => {
            let among = if series == 1 { String::new() } else { format!(" alone among {series}") };
            format!(" A new level of one series{among} can be found once {runs} runs have it.")
        }
        _ => String::new(),
    };
    let of_steps = history.series.iter().map(|series| (series.step.as_str(), series.margin));
    one_line(&format!(
        "{span}{what}. A change is the greatest shift of level; its p is by permutation of the runs, adjusted over all series.{newest} \
         Margin {}.",
        margins_text(history.margin, of_steps)
    ))
}

/// The newest changes first; one sentence when there are none.
pub(crate) fn answers(history: &History) -> Vec<String> {
    let mut all: Vec<(&Series, &Change)> = history
        .series
        .iter()
        .flat_map(|series| series.changes.iter().map(move |change| (series, change)))
        .filter(|(_, change)| change.verdict != Verdict::Same)
        .collect();
    if history.series.is_empty() {
        return vec!["No step of any run has a valid block: there is nothing to follow.".to_owned()];
    }
    if all.is_empty() && history.reach.runs < history.reach.least_runs_of_all {
        return vec!["No change of level can be found yet: there are too few runs.".to_owned()];
    }
    if all.is_empty() {
        return vec!["No change of level beyond the margin was found in any series.".to_owned()];
    }
    all.sort_by_key(|(_, change)| std::cmp::Reverse(change.at));
    let sentence = |(series, change): &(&Series, &Change)| {
        format!(
            "{} {} is {} since run {}: {} times the level before ({} to {}{}).",
            series.variant,
            series.step,
            change.verdict.word(),
            change.run_id,
            ratio(Some(change.ratio), 3),
            level(history, change.before),
            level(history, change.after),
            version(history, series, change),
        )
    };
    all.iter().map(sentence).collect()
}

/// `, 8.0.33 to 8.0.34` where the server's version changed with the level.
fn version(history: &History, series: &Series, change: &Change) -> String {
    let of = |run: usize| -> Option<&str> {
        let versions = history.runs.get(run)?.versions.iter();
        versions.filter(|(name, _)| *name == series.variant).map(|(_, text)| text.as_str()).next()
    };
    match (change.at.checked_sub(1).and_then(of), of(change.at)) {
        (Some(before), Some(after)) if before != after => format!(", {before} to {after}"),
        _ => String::new(),
    }
}

fn level(history: &History, value: f64) -> String {
    match history.measure {
        Measure::Rate => rate(Some(value)),
        Measure::Ratio => ratio(Some(value), 3),
    }
}

pub(crate) fn row(history: &History, series: &Series) -> Vec<String> {
    let several = history.series.iter().any(|other| other.workload != series.workload);
    let text =
        |value: Option<f64>| value.map_or_else(|| NOT_AVAILABLE.to_owned(), |value| level(history, value));
    let change = series.changes.last().map_or_else(
        || "none".to_owned(),
        |change| format!("{} {}", change.verdict.word(), ratio(Some(change.ratio), 3)),
    );
    vec![
        if several { format!("{} {}", series.workload, series.step) } else { series.step.clone() },
        series.variant.clone(),
        series.values.iter().flatten().count().to_string(),
        text(series.values.iter().flatten().next().copied()),
        text(series.values.iter().flatten().next_back().copied()),
        unit(history, series).to_owned(),
        course(&series.values),
        change,
        series.adjusted_p.map_or_else(|| NOT_AVAILABLE.to_owned(), p_text),
    ]
}

/// Of the series' values.
pub(crate) fn unit<'a>(history: &History, series: &'a Series) -> &'a str {
    match history.measure {
        Measure::Rate => &series.rate_label,
        Measure::Ratio => "ratio",
    }
}

/// The series in small: a bar a run, a gap where there is no value.
fn course(values: &[Option<f64>]) -> String {
    let shown = &values[values.len().saturating_sub(COURSE_RUNS)..];
    let known = || shown.iter().flatten().copied();
    let (Some(least), Some(greatest)) = (known().reduce(f64::min), known().reduce(f64::max)) else {
        return String::new();
    };
    let bar = |value: f64| {
        let height = if greatest > least { (value - least) / (greatest - least) } else { 0.5 };
        BARS[(height * (BARS.len() - 1) as f64).round() as usize]
    };
    shown.iter().map(|value| value.map_or('·', bar)).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use dbdyno_analyse::HistoryRun;

    use super::*;

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
            rate_label: "queries/s".to_owned(),
            margin: 0.02,
            values: values.to_vec(),
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
            verdict: Verdict::Slower,
        };
        History {
            name: "nightly".to_owned(),
            measure: Measure::Rate,
            margin: 0.02,
            runs: (1..=6).map(run).collect(),
            notes: vec!["Run 5 is not like the first: seed 7 and 8.".to_owned()],
            reach: Reach { series: 2, runs: 6, least_runs: 9, least_runs_of_all: 8, least_newest: None },
            series: vec![
                series(
                    "qr100",
                    [9_010.0, 9_050.0, 9_000.0, 8_200.0, 8_230.0, 8_200.0].map(Some),
                    vec![change],
                ),
                series(
                    "qp100",
                    [Some(12.1), None, Some(12.2), Some(12.0), Some(12.1), Some(12.15)],
                    Vec::new(),
                ),
            ],
        }
    }

    #[test]
    fn a_terminal_gets_the_table_and_the_changes_last() {
        insta::assert_snapshot!(history_terminal(&history(), TerminalOptions::PLAIN), @r"
        dbdyno history: nightly, 6 runs
        Note: Run 5 is not like the first: seed 7 and 8.
        Runs 20240101T000000Z-nightly to 20240106T000000Z-nightly. Geometric mean of the blocks' rates. A
          change is the greatest shift of level; its p is by permutation of the runs, adjusted over all
          series. Margin 2.0 %.

        step   variant  runs  first  last       unit  course        change  adjusted p
        ──────────────────────────────────────────────────────────────────────────────
        qr100  dev         6   9010  8200  queries/s  ███▁▁▁  slower 0.910       0.008
        qp100  dev         5   12.1  12.2  queries/s  ▅·█▁▅▆          none       0.400

        dev qr100 is slower since run 20240104T000000Z-nightly: 0.910 times the level before (9020 to 8210,
          12.0.1 to 12.0.2).
        ");
    }

    #[test]
    fn markdown_begins_with_the_changes() {
        insta::assert_snapshot!(history_markdown(&history()), @r"
        ### dbdyno history: nightly, 6 runs

        - dev qr100 is slower since run 20240104T000000Z-nightly: 0.910 times the level before (9020 to 8210, 12.0.1 to 12.0.2).

        > Run 5 is not like the first: seed 7 and 8.

        | step | variant | runs | first | last | unit | course | change | adjusted p |
        | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
        | qr100 | dev | 6 | 9010 | 8200 | queries/s | ███▁▁▁ | slower 0.910 | 0.008 |
        | qp100 | dev | 5 | 12.1 | 12.2 | queries/s | ▅·█▁▅▆ | none | 0.400 |

        Runs 20240101T000000Z-nightly to 20240106T000000Z-nightly. Geometric mean of the blocks' rates. A change is the greatest shift of level; its p is by permutation of the runs, adjusted over all series. Margin 2.0 %.
        ");
    }

    #[test]
    fn a_program_gets_every_value() {
        let value: serde_json::Value = serde_json::from_str(&history_json(&history()).unwrap()).unwrap();
        assert_eq!((&value["schema"], &value["series"][0]["changes"][0]["ratio"]), (&1.into(), &0.91.into()));
        assert_eq!(value["series"][1]["values"][1], serde_json::Value::Null);
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
        history.runs.truncate(1);
        assert_eq!(title(&history), "dbdyno history: nightly, 1 run");
    }

    #[test]
    fn no_change_is_a_sentence_too() {
        let mut history = history();
        history.series.remove(0);
        assert_eq!(answers(&history), ["No change of level can be found yet: there are too few runs."]);
        history.reach.runs = 12;
        assert_eq!(answers(&history), ["No change of level beyond the margin was found in any series."]);
        history.series.clear();
        assert_eq!(answers(&history), ["No step of any run has a valid block: there is nothing to follow."]);
    }

    #[test]
    fn how_many_runs_show_a_new_level_is_told_where_any_can() {
        let mut history = history();
        history.reach.least_newest = Some(3);
        let said = " A new level of one series alone among 2 can be found once 3 runs have it. Margin 2.0 %.";
        assert!(method(&history).ends_with(said), "{}", method(&history));
        history.reach.series = 1;
        let said = " A new level of one series can be found once 3 runs have it. Margin 2.0 %.";
        assert!(method(&history).ends_with(said), "{}", method(&history));
    }
}
