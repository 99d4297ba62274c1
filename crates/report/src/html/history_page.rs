//! What the template of a history is given: its series as text and charts, those with a change first.

use dbdyno_analyse::{Followed, History, Measure, Series};
use serde::Serialize;

use super::history_chart::history_chart;
use crate::evidence::{Column, Grid, Topic};
use crate::history::{HEADS, answers, method, row, title, unit};

#[derive(Serialize)]
pub(super) struct HistoryPage {
    title: String,
    method: String,
    notes: Vec<String>,
    answers: Vec<String>,
    series: Grid,
    charts: Vec<SeriesView>,
    runs: Grid,
}

#[derive(Serialize)]
struct SeriesView {
    id: String,
    name: String,
    caption: String,
    has_change: bool,
    /// SVG; `None` for fewer than two values.
    svg: Option<String>,
}

impl HistoryPage {
    pub(super) fn new(history: &History) -> Self {
        // What the newest run lacks and then the newest change first, as in the answers; what never changed keeps its order after.
        let mut order: Vec<&Series> = history.series.iter().collect();
        let newest_change = |series: &Series| series.changes.last().map(|change| change.at);
        order.sort_by_key(|series| std::cmp::Reverse((series.newest.is_some(), newest_change(series))));
        Self {
            title: title(history),
            method: method(history),
            notes: history.notes.clone(),
            answers: answers(history),
            series: series_grid(history),
            charts: order.iter().enumerate().map(|(number, series)| view(history, series, number)).collect(),
            runs: runs_grid(history),
        }
    }
}

fn series_grid(history: &History) -> Grid {
    let columns: Vec<Column> = HEADS.iter().map(|head| Column::new(head, "", "")).collect();
    let rows = history.series.iter().map(|series| row(history, series)).collect();
    Grid {
        title: "Series".to_owned(),
        note: "One value a run.".to_owned(),
        topic: Topic::Statistics,
        labels: 2,
        columns,
        rows,
    }
}

fn runs_grid(history: &History) -> Grid {
    let columns = ["run", "started", "versions"].map(|head| Column::new(head, "", "")).to_vec();
    let versions = |versions: &[(String, String)]| {
        versions.iter().map(|(variant, text)| format!("{variant}: {text}")).collect::<Vec<_>>().join("; ")
    };
    let rows = history
        .runs
        .iter()
        .map(|run| vec![run.run_id.clone(), run.started.clone(), versions(&run.versions)])
        .collect();
    Grid {
        title: "Runs".to_owned(),
        note: "In the order of the series.".to_owned(),
        topic: Topic::Statistics,
        labels: 3,
        columns,
        rows,
    }
}

fn view(history: &History, series: &Series, number: usize) -> SeriesView {
    let several = history.series.iter().any(|other| other.workload != series.workload);
    let workload = if several { format!("{} ", series.workload) } else { String::new() };
    let name = format!("{workload}{} · {}", series.step, series.variant);
    let what = match (history.measure, series.follows) {
        (Measure::Rate, Followed::Rate) => series.rate_label.as_str(),
        (Measure::Rate, Followed::ResponseP99) => "99th percentile of response times in µs",
        (Measure::Ratio, Followed::Rate) => "ratio to the base of the same run",
        (Measure::Ratio, Followed::ResponseP99) => {
            "ratio of the response times' p99 to that of the base of the same run"
        }
    };
    let caption = format!("{name}: {what} by run. The axis does not begin at zero.");
    let started: Vec<&str> = history.runs.iter().map(|run| run.started.as_str()).collect();
    let names = history.runs.iter().map(|run| run.run_id.clone());
    let runs: Vec<(String, String)> = names.zip(moments(&started)).collect();
    let svg = history_chart(&caption, unit(history, series), series, &runs);
    SeriesView {
        id: format!("s{number}"),
        name,
        caption,
        has_change: series.newest.is_some() || !series.changes.is_empty(),
        svg,
    }
}

/// When runs began, for the axis: days, or days and times where all are of one day or two. `started` are RFC 3339.
fn moments(started: &[&str]) -> Vec<String> {
    let day = |started: &&str| started.chars().take(10).collect::<String>();
    let days: std::collections::BTreeSet<String> = started.iter().map(day).collect();
    let moment = |started: &&str| match days.len() {
        ..=2 => started.chars().skip(5).take(11).collect::<String>().replace('T', " "),
        _ => day(started),
    };
    started.iter().map(moment).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_a_day_or_two_have_their_times() {
        assert_eq!(
            moments(&["2026-11-21T23:58:00Z", "2026-11-22T00:03:00.125Z"]),
            ["11-21 23:58", "11-22 00:03"]
        );
        let nights = ["2026-11-20T01:00:00Z", "2026-11-21T01:00:00Z", "2026-11-22T01:00:00Z"];
        assert_eq!(moments(&nights), ["2026-11-20", "2026-11-21", "2026-11-22"]);
    }
}
