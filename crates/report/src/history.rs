//! A history of runs as a document: tables of its series and of its runs, and a page with the
//! series' charts. A chart has one point per run, the levels between changes, and a mark at each
//! change.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use dbdyno_analyse::{
    Change, Detectable, Followed, History, Lapse, Measure, Series, Verdict, numbered, p_text,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::charts::{chart, figure};
use crate::document::html::page;
use crate::document::text::one_line;
use crate::document::{self, Block, Chart, Table, TableCell, Tone};
use crate::number::{NOT_AVAILABLE, margins_text, rate, ratio, seconds_text};
use crate::views::of_history;
use crate::warnings::{add_words, texts};
use crate::{TerminalOptions, json};

/// Writes the history for a terminal. Its summary comes last.
pub fn history_terminal(history: &History, options: &TerminalOptions) -> String {
    let mut blocks = head(history);
    blocks.push(Block::Text(Tone::Muted, method(history)));
    blocks.extend(of_history(history, "series"));
    blocks.push(Block::heading(3, "Changes"));
    blocks.push(Block::List(Tone::Plain, summary(history)));
    document::terminal(&blocks, options.width, options.colour)
}

pub fn history_markdown(history: &History) -> String {
    document::markdown(&whole(history))
}

/// Writes the history as one page: charts of all series with their levels and changes, and all
/// values as text.
pub fn history_html(history: &History) -> String {
    let mut blocks = whole(history);
    blocks.push(Block::section("Series by run", "series"));
    // Series that the newest run lacks come first and then those with the newest changes, as in the
    // summary. Series that never changed keep their order.
    let mut order: Vec<&Series> = history.series.iter().collect();
    let newest_change = |series: &Series| series.changes.last().map(|change| change.at);
    order.sort_by_key(|series| Reverse((series.newest.is_some(), newest_change(series))));
    blocks.extend(order.iter().enumerate().map(|(number, series)| series_chart(history, series, number)));
    blocks.push(Block::section("Runs", "runs"));
    blocks.extend(of_history(history, "runs"));
    page(&title(history), &document::html(&blocks), &serde_json::Value::Null)
}

/// Writes the history as one JSON object, with `schema` first. `warnings` has the history's notes
/// with their figures, one of which is the note's sentence. `notes` has only the sentences.
pub fn history_json(history: &History) -> String {
    #[derive(Serialize)]
    struct WithNotes<'a> {
        #[serde(flatten)]
        history: &'a History,
        notes: Vec<String>,
    }
    let mut with_words = history.clone();
    add_words(&mut with_words.notes);
    json::document(&WithNotes { history: &with_words, notes: texts(&history.notes) })
}

fn head(history: &History) -> Vec<Block> {
    let notes = Block::Warnings("Read this first", texts(&history.notes));
    let notes = (!history.notes.is_empty()).then_some(notes);
    std::iter::once(Block::heading(1, title(history))).chain(notes).collect()
}

/// Returns the whole history, with its summary first.
fn whole(history: &History) -> Vec<Block> {
    let mut blocks = head(history);
    blocks.push(Block::List(Tone::Plain, summary(history)));
    blocks.extend(of_history(history, "series"));
    blocks.push(Block::Text(Tone::Muted, method(history)));
    blocks
}

fn series_chart(history: &History, series: &Series, number: usize) -> Block {
    let several = history.series.iter().any(|other| other.workload != series.workload);
    let workload = if several { format!("{} ", series.workload) } else { String::new() };
    let what = match (history.measure, series.follows) {
        (Measure::Rate, Followed::Rate | Followed::Seconds) => series.rate_label.as_str(),
        (Measure::Rate, Followed::ResponseP99) => "99th percentile of response times in µs",
        (Measure::Ratio, Followed::Rate | Followed::Seconds) => "ratio to the base of the same run",
        (Measure::Ratio, Followed::ResponseP99) => {
            "ratio of the response times' p99 to that of the base of the same run"
        }
    };
    let (step, variant) = (&series.step, &series.variant);
    let title = format!("{workload}{step} · {variant}: {what} by run. The axis does not begin at zero.");
    let started: Vec<&str> = history.runs.iter().map(|run| run.started.as_str()).collect();
    let names = history.runs.iter().map(|run| run.run_id.clone());
    let runs: Vec<(String, String)> = names.zip(moments(&started)).collect();
    match history_chart(&title, unit(history, series), series, &runs) {
        Some(chart) => Block::Chart(Chart { id: format!("s{number}"), ..chart }),
        None => Block::Text(Tone::Muted, format!("{title} No chart: fewer than two runs have a value.")),
    }
}

/// Says when runs began, for the axis: days, or times too where all runs are within one or two
/// days. `started` are in RFC 3339 format.
fn moments(started: &[&str]) -> Vec<String> {
    let day = |started: &&str| started.chars().take(10).collect::<String>();
    let days: BTreeSet<String> = started.iter().map(day).collect();
    let moment = |started: &&str| match days.len() {
        ..=2 => started.chars().skip(5).take(11).collect::<String>().replace('T', " "),
        _ => day(started),
    };
    started.iter().map(moment).collect()
}

fn title(history: &History) -> String {
    one_line(&format!("dbdyno history: {}, {}", history.name, numbered(history.runs.len(), "run")))
}

/// Explains what the values are, and how changes are judged.
fn method(history: &History) -> String {
    let span = match history.runs.as_slice() {
        [first, .., last] => format!("Runs {} to {}. ", first.run_id, last.run_id),
        _ => String::new(),
    };
    let what = match history.measure {
        Measure::Rate => {
            "Geometric mean of the blocks' rates, 0 if any block had rate zero, and of their p99"
        }
        Measure::Ratio => "Ratios to the base of the same run, 0 if any block had rate zero",
    };
    let newest = match history.detectable {
        Detectable { series, min_newest: Some(runs), .. } => {
            let among = if series == 1 { String::new() } else { format!(" alone among {series}") };
            format!(" A new level of one series{among} can be found once {runs} runs have it.")
        }
        _ => String::new(),
    };
    let of_steps = history.series.iter().map(|series| (series.step.as_str(), series.margin));
    one_line(&format!(
        "{span}{what}. Changes are the largest shift of level, then the largest before and after \
         it; each p is from a permutation test over the runs, adjusted over all series of rates, and over those \
         of p99.{newest} Margin \
         {}.",
        margins_text(history.margin, of_steps)
    ))
}

/// Returns the summary: the series that the newest run lacks, then the changes, newest first. It is
/// one sentence when there is neither.
fn summary(history: &History) -> Vec<String> {
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
    if all.is_empty() && history.detectable.runs < history.detectable.min_runs_of_all {
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
        Lapse::ZeroRate => format!("{variant} {step} dropped to rate zero in the newest run {run}."),
        Lapse::NoValue => format!("{variant} {step} has no valid block in the newest run {run}."),
    })
}

fn sentence(history: &History, series: &Series, change: &Change) -> String {
    let (before, after) = (level(history, series, change.before), level(history, series, change.after));
    let how = match (change.before > 0.0, change.after > 0.0) {
        (true, true) => format!("{} times the level before", ratio(Some(change.ratio), 3)),
        (false, _) => "rate zero before".to_owned(),
        (_, false) => "rate zero now".to_owned(),
    };
    let of = if series.follows == Followed::ResponseP99 { " p99" } else { "" };
    format!(
        "{} {}{of} is {} since run {}: {how} ({before} to {after}{}).",
        series.variant,
        series.step,
        change.verdict.word(),
        change.run_id,
        version(history, series, change),
    )
}

/// Returns words such as `, 8.0.33 to 8.0.34`, where the server's version changed with the level.
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

/// Draws one series. It is `None` for fewer than two values. `runs` are names and dates of all
/// runs.
fn history_chart(title: &str, unit: &str, series: &Series, runs: &[(String, String)]) -> Option<Chart> {
    let known = series.values.iter().flatten().count();
    let values: Vec<Option<Value>> = series.values.iter().map(|value| value.map(figure)).collect();
    let change = |change: &Change| json!({ "at": change.at, "word": word(change) });
    (known > 1).then(|| {
        chart(
            title,
            json!({
                "kind": "history",
                "name": series.variant,
                "names": [series.variant],
                "unit": unit,
                "runs": runs,
                "values": values,
                "changes": series.changes.iter().map(change).collect::<Vec<_>>(),
                "levels": levels(series, runs.len()),
            }),
        )
    })
}

/// Returns first run, run after the last, and value for each stretch between two changes. The
/// result is empty where there is no change.
fn levels(series: &Series, runs: usize) -> Vec<(usize, usize, f64)> {
    let Some(first) = series.changes.first() else { return Vec::new() };
    let values = std::iter::once(first.before).chain(series.changes.iter().map(|change| change.after));
    let begins = std::iter::once(0).chain(series.changes.iter().map(|change| change.at));
    let ends = series.changes.iter().map(|change| change.at).chain([runs]);
    begins.zip(ends).zip(values).map(|((from, to), value)| (from, to, value)).collect()
}

fn word(change: &Change) -> String {
    let word = match change.verdict {
        Verdict::Faster => "▲ faster",
        Verdict::Slower => "▼ slower",
        _ => "within the margin",
    };
    // After a level with a rate of zero, there is no ratio.
    if change.before > 0.0 { format!("{word} ×{}", ratio(Some(change.ratio), 3)) } else { word.to_owned() }
}

/// Index of the column that is coloured.
pub(crate) const CHANGE: usize = 7;
/// Bars of a sparkline by height, from the series' lowest value to its highest.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Number of runs that a sparkline shows. They are the last ones.
const SPARKLINE_RUNS: usize = 40;

pub(crate) fn series_view(history: &History) -> Vec<Table> {
    let heads = ["runs", "first", "last", "unit", "sparkline", "change", "adjusted p"];
    let mut table = Table::new("", "", ["step", "variant"], heads);
    for series in &history.series {
        let tone = match series.changes.last().map(|change| change.verdict) {
            _ if series.is_worse_now() => Tone::Worse,
            Some(Verdict::Faster) => Tone::Better,
            _ => Tone::Plain,
        };
        table.push(row(history, series));
        if let Some(cell) = table.rows.last_mut().and_then(|row| row.get_mut(CHANGE)) {
            cell.tone = tone;
        }
    }
    vec![table]
}

pub(crate) fn runs_view(history: &History) -> Vec<Table> {
    let mut table = Table::new("", "", ["run", "started", "versions"], [""; 0]);
    for run in &history.runs {
        let versions: Vec<String> =
            run.versions.iter().map(|(variant, text)| format!("{variant}: {text}")).collect();
        table.push([run.run_id.clone(), run.started.clone(), versions.join("; ")].map(TableCell::from));
    }
    vec![table]
}

pub(crate) fn level(history: &History, series: &Series, value: f64) -> String {
    match history.measure {
        Measure::Rate if series.follows == Followed::Seconds => seconds_text(value),
        Measure::Rate => rate(Some(value)),
        Measure::Ratio => ratio(Some(value), 3),
    }
}

pub(crate) fn row(history: &History, series: &Series) -> Vec<String> {
    let several = history.series.iter().any(|other| other.workload != series.workload);
    let text = |value: Option<f64>| {
        value.map_or_else(|| NOT_AVAILABLE.to_owned(), |value| level(history, series, value))
    };
    vec![
        if several { format!("{} {}", series.workload, series.step) } else { series.step.clone() },
        series.variant.clone(),
        series.values.iter().flatten().count().to_string(),
        text(series.values.iter().flatten().next().copied()),
        text(series.values.iter().flatten().next_back().copied()),
        unit(history, series).to_owned(),
        sparkline(&series.values),
        changes_text(series),
        adjusted_p(series),
    ]
}

/// Returns all changes in their order, and whether the newest run lacks the series.
fn changes_text(series: &Series) -> String {
    let mut words: Vec<String> = series.changes.iter().map(change_text).collect();
    if words.is_empty() {
        words.push("none".to_owned());
    }
    words.extend(series.newest.map(|lapse| match lapse {
        Lapse::ZeroRate => "has rate zero".to_owned(),
        Lapse::NoValue => "no value".to_owned(),
    }));
    words.join(", ")
}

/// Returns words such as `slower 0.910`. After a level with a rate of zero there is no ratio.
fn change_text(change: &Change) -> String {
    match change.before > 0.0 {
        true => format!("{} {}", change.verdict.word(), ratio(Some(change.ratio), 3)),
        false => change.verdict.word().to_owned(),
    }
}

/// Returns the adjusted p of each change in the row, in the same order, or of the largest shift
/// where no change was found.
fn adjusted_p(series: &Series) -> String {
    if series.changes.is_empty() {
        return series.adjusted_p.map_or_else(|| NOT_AVAILABLE.to_owned(), p_text);
    }
    series.changes.iter().map(|change| p_text(change.adjusted_p)).collect::<Vec<_>>().join(", ")
}

/// Returns the unit of the series' values.
pub(crate) fn unit<'a>(history: &History, series: &'a Series) -> &'a str {
    match (history.measure, series.follows) {
        (Measure::Rate, _) => &series.rate_label,
        (Measure::Ratio, Followed::Rate | Followed::Seconds) => "ratio",
        (Measure::Ratio, Followed::ResponseP99) => "ratio of p99",
    }
}

/// Returns the series as a sparkline: one bar per run, and a dot where there is no value.
fn sparkline(values: &[Option<f64>]) -> String {
    let shown = &values[values.len().saturating_sub(SPARKLINE_RUNS)..];
    let known = || shown.iter().flatten().copied();
    let (Some(lowest), Some(highest)) = (known().reduce(f64::min), known().reduce(f64::max)) else {
        return String::new();
    };
    let bar = |value: f64| {
        let height = if highest > lowest { (value - lowest) / (highest - lowest) } else { 0.5 };
        BARS[(height * (BARS.len() - 1) as f64).round() as usize]
    };
    shown.iter().map(|value| value.map_or('·', bar)).collect()
}

#[cfg(test)]
#[path = "history_tests.rs"]
pub(crate) mod tests;
