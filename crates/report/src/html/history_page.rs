//! What the template of a history is given: its series as text and charts, those with a change first.

use dbdyno_analyse::{History, Measure, Series};
use serde::Serialize;

use super::history_chart::history_chart;
use crate::evidence::{Column, Grid};
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
        // The newest change first, as in the answers; what never changed keeps its order behind.
        let mut order: Vec<&Series> = history.series.iter().collect();
        order.sort_by_key(|series| std::cmp::Reverse(series.changes.last().map(|change| change.at)));
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
    Grid { title: "Series".to_owned(), note: "One value a run.".to_owned(), labels: 2, columns, rows }
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
        labels: 3,
        columns,
        rows,
    }
}

fn view(history: &History, series: &Series, number: usize) -> SeriesView {
    let several = history.series.iter().any(|other| other.workload != series.workload);
    let workload = if several { format!("{} ", series.workload) } else { String::new() };
    let name = format!("{workload}{} · {}", series.step, series.variant);
    let what = match history.measure {
        Measure::Rate => series.rate_label.as_str(),
        Measure::Ratio => "ratio to the base of the same run",
    };
    let caption = format!("{name}: {what} by run. The axis does not begin at zero.");
    let runs: Vec<(String, String)> =
        history.runs.iter().map(|run| (run.run_id.clone(), run.started.chars().take(10).collect())).collect();
    let svg = history_chart(&caption, unit(history, series), series, &runs);
    SeriesView { id: format!("s{number}"), name, caption, has_change: !series.changes.is_empty(), svg }
}
