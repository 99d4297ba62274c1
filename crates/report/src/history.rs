//! A history of runs as a short table, for a terminal, a pull request or a program, and the words that its page shares.

use dbdyno_analyse::{Change, Followed, History, Lapse, Measure, Reach, Series, Verdict, numbered, p_text};
use serde::Serialize;

use crate::markdown::{escaped, table};
use crate::number::{NOT_AVAILABLE, margins_text, rate, ratio};
use crate::text_table::one_line;
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
pub fn history_terminal(history: &History, options: &TerminalOptions) -> String {
    let mut lines = vec![title(history)];
    for note in &history.notes {
        lines.extend(wrapped(&one_line(&format!("Note: {note}")), options.width, "  "));
    }
    lines.extend(wrapped(&method(history), options.width, "  "));
    lines.push(String::new());
    let rows = history.series.iter().map(|series| {
        let paint = match series.changes.last().map(|change| change.verdict) {
            _ if series.is_worse_now() => Paint::Yellow,
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
        Measure::Rate => "Geometric mean of the blocks' rates, 0 if any block had rate zero",
        Measure::Ratio => "Ratio to the base of the same run, 0 if any block had rate zero",
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
        "{span}{what}. Changes are the greatest shift of level, then the greatest before and after \
         it; the p of each is by permutation of the runs, adjusted over all series.{newest} Margin \
         {}.",
        margins_text(history.margin, of_steps)
    ))
}

/// What the newest run lacks, then the newest changes first; one sentence when there is neither.
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
    let mut lines: Vec<String> = history.series.iter().filter_map(|series| lapse(history, series)).collect();
    if all.is_empty() && history.reach.runs < history.reach.least_runs_of_all {
        lines.push("No change of level can be found yet: there are too few runs.".to_owned());
    } else if all.is_empty() {
        lines.push("No change of level beyond the margin was found in any series.".to_owned());
    }
    all.sort_by_key(|(_, change)| std::cmp::Reverse(change.at));
    lines.extend(all.iter().map(|(series, change)| sentence(history, series, change)));
    lines
}

fn lapse(history: &History, series: &Series) -> Option<String> {
    let run = history.runs.last().map_or("", |run| run.run_id.as_str());
    let (variant, step) = (&series.variant, &series.step);
    series.newest.map(|lapse| match lapse {
        Lapse::Standstill => format!("{variant} {step} dropped to rate zero in the newest run {run}."),
        Lapse::NoValue => format!("{variant} {step} has no valid block in the newest run {run}."),
    })
}

fn sentence(history: &History, series: &Series, change: &Change) -> String {
    let (before, after) = (level(history, change.before), level(history, change.after));
    let how = match (change.before > 0.0, change.after > 0.0) {
        (true, true) => format!("{} times the level before", ratio(Some(change.ratio), 3)),
        (false, _) => "rate zero before".to_owned(),
        (_, false) => "rate zero now".to_owned(),
    };
    format!(
        "{} {} is {} since run {}: {how} ({before} to {after}{}).",
        series.variant,
        series.step,
        change.verdict.word(),
        change.run_id,
        version(history, series, change),
    )
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
    vec![
        if several { format!("{} {}", series.workload, series.step) } else { series.step.clone() },
        series.variant.clone(),
        series.values.iter().flatten().count().to_string(),
        text(series.values.iter().flatten().next().copied()),
        text(series.values.iter().flatten().next_back().copied()),
        unit(history, series).to_owned(),
        course(&series.values),
        course_of_change(series),
        adjusted_p(series),
    ]
}

/// All changes in their order, and what the newest run lacks.
fn course_of_change(series: &Series) -> String {
    let mut words: Vec<String> = series.changes.iter().map(change_text).collect();
    if words.is_empty() {
        words.push("none".to_owned());
    }
    words.extend(series.newest.map(|lapse| match lapse {
        Lapse::Standstill => "has rate zero".to_owned(),
        Lapse::NoValue => "no value".to_owned(),
    }));
    words.join(", ")
}

/// `slower 0.910`; of a series that stalled before there is no ratio.
fn change_text(change: &Change) -> String {
    match change.before > 0.0 {
        true => format!("{} {}", change.verdict.word(), ratio(Some(change.ratio), 3)),
        false => change.verdict.word().to_owned(),
    }
}

/// Of each change that the row shows, in the same order; of the greatest shift where none was found.
fn adjusted_p(series: &Series) -> String {
    if series.changes.is_empty() {
        return series.adjusted_p.map_or_else(|| NOT_AVAILABLE.to_owned(), p_text);
    }
    series.changes.iter().map(|change| p_text(change.adjusted_p)).collect::<Vec<_>>().join(", ")
}

/// Of the series' values.
pub(crate) fn unit<'a>(history: &History, series: &'a Series) -> &'a str {
    match (history.measure, series.follows) {
        (Measure::Rate, _) => &series.rate_label,
        (Measure::Ratio, Followed::Rate) => "ratio",
        (Measure::Ratio, Followed::ResponseP99) => "ratio of p99",
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
#[path = "history_tests.rs"]
pub(crate) mod tests;
