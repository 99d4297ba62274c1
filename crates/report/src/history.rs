//! A history of runs as a document: a table of its series, and a page with their charts.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use dbdyno_analyse::{Change, Detectable, Followed, History, Lapse, Measure, Series, Verdict, numbered};
use serde::Serialize;

use crate::document::text::one_line;
use crate::document::{self, Block, Chart, Tone};
use crate::html::charts::history_chart;
use crate::html::page;
use crate::number::{margins_text, ratio};
use crate::views::history::{level, unit};
use crate::views::of_history;
use crate::warnings::{add_words, texts};
use crate::{TerminalOptions, json};

/// Writes the history for a terminal. Its summary comes last.
pub fn history_terminal(history: &History, options: &TerminalOptions) -> String {
    let mut blocks = head(history);
    blocks.push(Block::Text(Tone::Muted, method(history)));
    blocks.extend(of_history(history, "series"));
    blocks.push(Block::heading(3, "Changes"));
    blocks.push(Block::List(Tone::Plain, answers(history)));
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
    // What the newest run lacks comes first and then the newest changes, as in the summary. Series
    // that never changed keep their order.
    let mut order: Vec<&Series> = history.series.iter().collect();
    let newest_change = |series: &Series| series.changes.last().map(|change| change.at);
    order.sort_by_key(|series| Reverse((series.newest.is_some(), newest_change(series))));
    blocks.extend(order.iter().enumerate().map(|(number, series)| chart(history, series, number)));
    blocks.push(Block::section("Runs", "runs"));
    blocks.extend(of_history(history, "runs"));
    page(&title(history), &document::html(&blocks), &serde_json::Value::Null)
}

/// Writes the history as one JSON object, with `schema` first. `notes` are the sentences for its
/// `warnings`, which have them among their figures too.
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
    blocks.push(Block::List(Tone::Plain, answers(history)));
    blocks.extend(of_history(history, "series"));
    blocks.push(Block::Text(Tone::Muted, method(history)));
    blocks
}

fn chart(history: &History, series: &Series, number: usize) -> Block {
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

/// Says when runs began, for the axis: days, or days and times where all are within one day or two.
/// `started` are in RFC 3339 format.
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
        Detectable { series, least_newest: Some(runs), .. } => {
            let among = if series == 1 { String::new() } else { format!(" alone among {series}") };
            format!(" A new level of one series{among} can be found once {runs} runs have it.")
        }
        _ => String::new(),
    };
    let of_steps = history.series.iter().map(|series| (series.step.as_str(), series.margin));
    one_line(&format!(
        "{span}{what}. Changes are the largest shift of level, then the largest before and after \
         it; the p of each is by permutation of the runs, adjusted over all series of rates, and over those \
         of p99.{newest} Margin \
         {}.",
        margins_text(history.margin, of_steps)
    ))
}

/// Returns the summary: what the newest run lacks, then the changes, newest first. It is one
/// sentence when there is neither.
fn answers(history: &History) -> Vec<String> {
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
    if all.is_empty() && history.detectable.runs < history.detectable.least_runs_of_all {
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

#[cfg(test)]
#[path = "history_tests.rs"]
pub(crate) mod tests;
