//! Tables of a history of runs: one row per series with its changes of level, and one row per run.

use dbdyno_analyse::{Change, Followed, History, Lapse, Measure, Series, Verdict, p_text};

use crate::document::{Cell, Table, Tone};
use crate::number::{NOT_AVAILABLE, rate, ratio, seconds_text};

/// Index of the column that is coloured.
pub(crate) const CHANGE: usize = 7;
/// Bars of a sparkline by height, from the series' lowest value to its highest.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Number of runs that a sparkline shows: the last ones.
const SPARKLINE_RUNS: usize = 40;

pub(super) fn series(history: &History) -> Vec<Table> {
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

pub(super) fn runs(history: &History) -> Vec<Table> {
    let mut table = Table::new("", "", ["run", "started", "versions"], [""; 0]);
    for run in &history.runs {
        let versions: Vec<String> =
            run.versions.iter().map(|(variant, text)| format!("{variant}: {text}")).collect();
        table.push([run.run_id.clone(), run.started.clone(), versions.join("; ")].map(Cell::from));
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

/// Returns all changes in their order, and what the newest run lacks.
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
    let (Some(least), Some(greatest)) = (known().reduce(f64::min), known().reduce(f64::max)) else {
        return String::new();
    };
    let bar = |value: f64| {
        let height = if greatest > least { (value - least) / (greatest - least) } else { 0.5 };
        BARS[(height * (BARS.len() - 1) as f64).round() as usize]
    };
    shown.iter().map(|value| value.map_or('·', bar)).collect()
}
