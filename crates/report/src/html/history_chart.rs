//! A series over runs as SVG: one point a run, levels between changes, and where each change is.

use std::fmt::Write;

use dbdyno_analyse::{Change, Series, Verdict};

use super::scale::{Scale, tick_text};
use super::svg::escaped;
use crate::number::{fixed, ratio};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 30.0;
/// Dates below the axis.
const DATES: usize = 5;
/// What the axis leaves free above and below the values, as a part of their range.
const MARGIN: f64 = 0.12;

/// The upright axis: from a little below the least value to a little above the greatest. Changes of a few percent would not be
/// seen on one from zero.
#[derive(Debug, Clone)]
struct Axis {
    low: f64,
    high: f64,
    ticks: Vec<f64>,
}

impl Axis {
    fn of(values: &[f64]) -> Option<Self> {
        let least = values.iter().copied().reduce(f64::min)?;
        let greatest = values.iter().copied().reduce(f64::max)?;
        // A level line without any noise still needs a height; and noise of a thousandth is no mountain range.
        let range = (greatest - least).max(0.02 * greatest.abs()).max(f64::MIN_POSITIVE);
        let (low, high) = (least - MARGIN * range, greatest + MARGIN * range);
        let step = Scale::from_zero(high - low, 6).ticks.get(1).copied()?;
        let first = (low / step).ceil() as i64;
        let ticks = (first..).map(|tick| tick as f64 * step).take_while(|tick| *tick <= high).collect();
        Some(Self { low, high, ticks })
    }

    fn y(&self, value: f64) -> f64 {
        let share = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    }
}

/// The chart; `runs` are names and dates of all runs. `None` for fewer than two values.
pub(crate) fn history_chart(
    title: &str,
    unit: &str,
    series: &Series,
    runs: &[(String, String)],
) -> Option<String> {
    let values: Vec<f64> = series.values.iter().flatten().copied().collect();
    let axis = Axis::of(&values).filter(|_| values.len() > 1)?;
    let mut out = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        escaped(title)
    );
    axes(&axis, unit, runs, &mut out);
    levels(&axis, series, runs.len(), &mut out);
    points(&axis, series, runs, &mut out);
    out.push_str("</svg>");
    Some(out)
}

/// Middle of a run's place.
fn x(run: usize, runs: usize) -> f64 {
    LEFT + (run as f64 + 0.5) * (WIDTH - LEFT - RIGHT) / runs.max(1) as f64
}

// Writing to a String cannot fail, hence the ignored results below.
fn axes(axis: &Axis, unit: &str, runs: &[(String, String)], out: &mut String) {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    for tick in &axis.ticks {
        let y = axis.y(*tick);
        let (at, text) = (LEFT - 6.0, tick_text(*tick));
        let _ = write!(out, "<path class=\"grid\" d=\"M{LEFT},{y:.1}H{right}\"/>");
        let _ = write!(out, "<text class=\"e\" x=\"{at}\" y=\"{:.1}\">{text}</text>", y + 4.0);
    }
    let _ = write!(out, "<path class=\"axis\" d=\"M{LEFT},{bottom}H{right}\"/>");
    let shown = DATES.min(runs.len());
    for number in 0..shown {
        let run = if shown > 1 { number * (runs.len() - 1) / (shown - 1) } else { 0 };
        let (at, date) = (x(run, runs.len()), escaped(&runs[run].1));
        let _ = write!(out, "<path class=\"axis\" d=\"M{at:.1},{bottom}v4\"/>");
        let _ = write!(out, "<text class=\"c\" x=\"{at:.1}\" y=\"{}\">{date}</text>", bottom + 18.0);
    }
    let _ = write!(out, "<text x=\"4\" y=\"13\">{}</text>", escaped(unit));
}

/// The level of each stretch between two changes, and a mark where the level changes.
fn levels(axis: &Axis, series: &Series, runs: usize, out: &mut String) {
    let ends = series.changes.iter().map(|change| change.at).chain([runs]);
    let mut from = 0;
    for (number, end) in ends.enumerate() {
        let level = match (number, series.changes.as_slice()) {
            (_, []) => return,
            (0, [first, ..]) => first.before,
            (number, changes) => changes[number - 1].after,
        };
        let (left, right, y) = (edge(from, runs), edge(end, runs), axis.y(level));
        let _ = write!(out, "<path class=\"one\" d=\"M{left:.1},{y:.1}H{right:.1}\"/>");
        from = end;
    }
    for change in &series.changes {
        let at = edge(change.at, runs);
        let _ = write!(out, "<path class=\"change\" d=\"M{at:.1},{TOP}V{}\"/>", HEIGHT - BOTTOM);
        // At the right edge the text ends at its mark.
        let class = if at > WIDTH * 0.75 { "e n" } else { "n" };
        let text = escaped(&word(change));
        let _ = write!(out, "<text class=\"{class}\" x=\"{at:.1}\" y=\"{}\">{text}</text>", TOP - 8.0);
    }
}

/// Between run `run` and the one before it.
fn edge(run: usize, runs: usize) -> f64 {
    LEFT + run as f64 * (WIDTH - LEFT - RIGHT) / runs.max(1) as f64
}

fn word(change: &Change) -> String {
    let word = match change.verdict {
        Verdict::Faster => "▲ faster",
        Verdict::Slower => "▼ slower",
        _ => "within the margin",
    };
    // A level of standstills has no ratio to it.
    if change.before > 0.0 { format!("{word} ×{}", ratio(Some(change.ratio), 3)) } else { word.to_owned() }
}

/// A thin line from run to run, with a gap where a run has no value, and a point with its run's name.
fn points(axis: &Axis, series: &Series, runs: &[(String, String)], out: &mut String) {
    let mut path = String::new();
    let mut is_open = false;
    for (run, value) in series.values.iter().enumerate() {
        if let Some(value) = value {
            let (x, y) = (x(run, runs.len()), axis.y(*value));
            let _ = write!(path, "{}{x:.1},{y:.1}", if is_open { "L" } else { "M" });
        }
        is_open = value.is_some();
    }
    let _ = write!(out, "<path class=\"l s0\" d=\"{path}\"/>");
    for (run, value) in series.values.iter().enumerate() {
        let Some(value) = value else { continue };
        let (x, y) = (x(run, runs.len()), axis.y(*value));
        let name = runs.get(run).map_or("", |(name, _)| name);
        let text = escaped(&format!("{name}: {}", fixed(Some(*value), 3)));
        let _ = write!(
            out,
            "<circle class=\"m s0\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"><title>{text}</title></circle>"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::tests::history;

    fn svg(series: usize) -> String {
        let history = history();
        let runs: Vec<(String, String)> =
            history.runs.iter().map(|run| (run.run_id.clone(), run.started[..10].to_owned())).collect();
        history_chart("title", "queries/s", &history.series[series], &runs).expect("has values")
    }

    #[test]
    fn a_change_has_its_mark_between_two_runs_and_a_level_on_both_sides() {
        let svg = svg(0);
        assert_eq!(svg.matches("class=\"one\"").count(), 2);
        assert_eq!(svg.matches("class=\"change\"").count(), 1);
        assert!(svg.contains("▼ slower ×0.910"), "{svg}");
        // Six runs over 556: the change at the fourth lies at 64 + 3 × 92.67.
        assert!(svg.contains("M342.0,34V170"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 6);
    }

    #[test]
    fn a_run_without_a_value_is_a_gap() {
        let svg = svg(1);
        let path =
            svg.split("class=\"l s0\" d=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a path");
        assert_eq!((path.matches('M').count(), path.matches('L').count()), (2, 3), "{path}");
        assert!(!svg.contains("class=\"one\""));
    }

    #[test]
    fn the_axis_holds_all_values_and_is_never_flat() {
        let axis = Axis::of(&[8_200.0, 9_050.0]).expect("values");
        assert!(axis.low < 8_200.0 && axis.high > 9_050.0 && axis.ticks.len() >= 3, "{axis:?}");
        let flat = Axis::of(&[100.0, 100.0]).expect("values");
        assert!(flat.low < 99.9 && flat.high > 100.1 && !flat.ticks.is_empty(), "{flat:?}");
        assert!(Axis::of(&[]).is_none());
    }
}
