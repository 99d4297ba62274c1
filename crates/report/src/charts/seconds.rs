//! Charts of a step by second: rate, longest response time and the device. Notes say which runs are
//! not drawn. A long line has fewer points than it has seconds, but keeps its extremes.

use std::collections::BTreeMap;

use dbdyno_analyse::{DeviceSecond, SecondPoint, StepFindings, StepRun, Validity, VariantStep, numbered};
use serde_json::{Value, json};

use super::{Charts, chart, figure, rounded};
use crate::document::Chart;
use crate::views::details::{has_blocks, kinds};

/// Smallest number of whole seconds for a line.
const MIN_SECONDS: usize = 2;
const KIB_PER_MIB: f64 = 1024.0;

/// The charts of a step by second, or the reason why it has none.
#[derive(Debug, Default)]
pub(super) struct SecondCharts {
    /// Chart of the headline's kind.
    pub(super) headline: Option<Chart>,
    /// Charts of the other kinds, such as the background writers in a step that reads.
    pub(super) further: Vec<Chart>,
    /// Notes on runs that are not drawn, by variant.
    pub(super) notes: Vec<String>,
    /// The reason why there are no charts. It is empty where there are charts.
    pub(super) none: String,
}

/// Makes the charts. A line of the headline has at most as many points as `charts` says, and a line
/// of another kind or of the device has half of them.
///
/// There is no chart where most valid runs cannot be drawn. Of runs with a fixed amount of work
/// only slow ones last for seconds, so that a chart of those few would be a selection. All kinds
/// are drawn for the same runs.
pub(super) fn seconds(charts: &Charts<'_>, step: &StepFindings, id: &str) -> SecondCharts {
    if let Some(none) = why_none(step) {
        return SecondCharts { none, ..SecondCharts::default() };
    }
    let further = kinds(step).into_iter().filter(|kind| *kind != step.headline_kind);
    SecondCharts {
        headline: of_kind(charts, step, &step.headline_kind, id),
        further: further.filter_map(|kind| of_kind(charts, step, kind, id)).collect(),
        notes: step.variants.iter().filter_map(|variant| note(variant, step)).collect(),
        none: String::new(),
    }
}

/// A function that gives a figure for one second. `None` is a gap in the line.
type SecondFigure<T> = fn(&T) -> Option<f64>;

const DEVICE: [(&str, SecondFigure<DeviceSecond>); 3] = [
    ("device, MiB/s read and written", |second| {
        Some((second.read_kib_per_second + second.written_kib_per_second) / KIB_PER_MIB)
    }),
    ("device, ms per request", |second| second.await_ms),
    ("device, requests under way", |second| second.queue_depth),
];

/// Makes the panels for one kind, and under the headline's panels those of the device. It is `None`
/// where there is no line.
fn of_kind(charts: &Charts<'_>, step: &StepFindings, kind: &str, id: &str) -> Option<Chart> {
    let is_headline = kind == step.headline_kind;
    let points = if is_headline { charts.points } else { charts.points / 2 };
    let runs = || drawn_runs(charts, step).map(|(variant, run)| (charts.variant(&variant.variant), run));
    let lines =
        |of: &dyn Fn(&StepRun) -> Vec<LinePoint>, points: usize, decimals: Option<i32>| -> Vec<Value> {
            let line = |(variant, run): (usize, &StepRun)| {
                let kept = downsample(&of(run), points);
                kept.iter().any(|point| point.1.is_some()).then(|| line(variant, run.block, &kept, decimals))
            };
            runs().filter_map(line).collect()
        };
    let unit = match kind {
        _ if is_headline => step.rate_label.as_str(),
        "query" => "queries/s",
        _ => "rows/s",
    };
    let longest_ms = |point: &SecondPoint| Some(point.response_max_us? as f64 / 1e3);
    let mut panels = vec![
        (unit, lines(&|run| series(run, kind, |point| Some(point.rate)), points, None)),
        ("longest response time, ms", lines(&|run| series(run, kind, longest_ms), points, None)),
    ];
    for (name, value) in DEVICE.into_iter().filter(|_| is_headline) {
        let of = |run: &StepRun| -> Vec<LinePoint> {
            run.device_seconds.iter().map(|second| (second.second as f64, value(second))).collect()
        };
        panels.push((name, lines(&of, points / 2, Some(3))));
    }
    panels.retain(|(_, lines)| !lines.is_empty());
    let blocks = step.variants.iter().map(|variant| variant.runs.len()).max().unwrap_or(0);
    let blocks = if charts.has_all_blocks { blocks } else { 1 };
    let title = match is_headline {
        true => step.name.clone(),
        false => format!("{}, {kind}", step.name),
    };
    let each = match has_blocks(step) {
        true if charts.has_all_blocks => " One line per block.",
        true => " Each variant's line is its block with the median rate.",
        false => "",
    };
    let last = runs().flat_map(|(_, run)| run.seconds.iter().map(|point| point.second)).max()?;
    (!panels.is_empty()).then(|| {
        chart(
            format!("{title}, second by second: {}.{each}", names(&panels)),
            json!({
                "kind": "seconds",
                "group": id,
                "end": last,
                "blocks": blocks,
                "panels": panels.iter().map(|(name, lines)| json!({ "name": name, "lines": lines })).collect::<Vec<_>>(),
                "events": events(charts, step),
            }),
        )
    })
}

fn names(panels: &[(&str, Vec<Value>)]) -> String {
    let has_device = panels.len() > 2;
    let mut names: Vec<&str> = panels.iter().take(2).map(|(name, _)| *name).collect();
    names.extend(has_device.then_some("the device"));
    names.join("; ")
}

/// Returns the runs to draw. In a large run these are one block per variant, because lines of all
/// blocks would have too few points each.
fn drawn_runs<'a>(
    charts: &Charts<'_>,
    step: &'a StepFindings,
) -> impl Iterator<Item = (&'a VariantStep, &'a StepRun)> {
    let has_all_blocks = charts.has_all_blocks;
    step.variants.iter().flat_map(move |variant| {
        let drawn = variant.runs.iter().filter(|run| why_not(run, &step.headline_kind).is_none());
        let mut runs: Vec<&StepRun> = drawn.collect();
        if !has_all_blocks && !runs.is_empty() {
            runs.sort_by(|one, other| one.rate.total_cmp(&other.rate));
            runs = vec![runs[(runs.len() - 1) / 2]];
        }
        runs.into_iter().map(move |run| (variant, run))
    })
}

/// Makes the data of a line. Seconds that follow each other without a gap need no position of their
/// own.
fn line(variant: usize, block: u32, points: &[LinePoint], decimals: Option<i32>) -> Value {
    let text = |value: f64| decimals.map_or_else(|| figure(value), |decimals| rounded(value, decimals));
    let values: Vec<Option<Value>> = points.iter().map(|point| point.1.map(text)).collect();
    let first = points.first().map_or(0.0, |point| point.0);
    let is_dense = points.iter().zip(0_u32..).all(|(point, at)| point.0 == first + f64::from(at));
    if is_dense {
        json!({ "variant": variant, "block": block, "from": figure(first), "y": values })
    } else {
        let positions: Vec<Value> = points.iter().map(|point| figure(point.0)).collect();
        json!({ "variant": variant, "block": block, "x": positions, "y": values })
    }
}

fn series(run: &StepRun, kind: &str, value: SecondFigure<SecondPoint>) -> Vec<LinePoint> {
    let of_kind = run.seconds.iter().filter(|point| point.kind == kind);
    of_kind.map(|point| (point.second as f64, value(point))).collect()
}

/// Returns the events of the servers in the runs that are drawn.
fn events(charts: &Charts<'_>, step: &StepFindings) -> Vec<Value> {
    drawn_runs(charts, step)
        .flat_map(|(variant, run)| run.server_events.iter().map(move |event| (variant, run, event)))
        .map(|(variant, run, event)| {
            json!({
                "at": rounded(event.at_seconds, 2),
                "what": event.what,
                "variant": charts.variant(&variant.variant),
                "block": run.block,
            })
        })
        .collect()
}

/// Says why most valid runs, or all, cannot be drawn. It is `None` where most can.
fn why_none(step: &StepFindings) -> Option<String> {
    let valid: Vec<&StepRun> = step.variants.iter().flat_map(VariantStep::valid_runs).collect();
    if valid.is_empty() {
        return Some("No chart: no run of this step is valid.".to_owned());
    }
    let mut reasons: Vec<&str> = valid.iter().filter_map(|run| why_not(run, &step.headline_kind)).collect();
    let left_out = reasons.len();
    if left_out * 2 <= valid.len() {
        return None;
    }
    reasons.sort_unstable();
    reasons.dedup();
    let of = numbered(valid.len(), "valid run");
    Some(format!("No chart: {left_out} of {of} cannot be drawn by second ({}).", reasons.join("; ")))
}

/// Says why a run has no line. It is `None` for a run that has one.
fn why_not(run: &StepRun, headline_kind: &str) -> Option<&'static str> {
    match run.validity {
        Validity::Invalid { .. } => return Some("invalid"),
        Validity::Failed { .. } => return Some("failed"),
        Validity::Interrupted => return Some("interrupted"),
        Validity::Valid => {}
    }
    let seconds = run.seconds.iter().filter(|point| point.kind == headline_kind).count();
    if seconds < MIN_SECONDS {
        return Some("less than two whole seconds");
    }
    (!run.has_telling_seconds).then_some("too few answers per second")
}

/// Notes which of a variant's runs are not drawn, by reason, and whether the variant has no line at
/// all.
fn note(variant: &VariantStep, step: &StepFindings) -> Option<String> {
    let mut left_out: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for run in &variant.runs {
        if let Some(reason) = why_not(run, &step.headline_kind) {
            left_out.entry(reason).or_default().push(run.block.to_string());
        }
    }
    let of_reason = |(reason, blocks): (&&str, &Vec<String>)| match has_blocks(step) {
        true => format!("block {}: {reason}", blocks.join(", ")),
        false => (*reason).to_owned(),
    };
    let reasons = left_out.iter().map(of_reason).collect::<Vec<_>>().join("; ");
    let name = &variant.variant;
    let count: usize = left_out.values().map(Vec::len).sum();
    match (variant.runs.len(), count) {
        (0, _) => Some(format!("{name} has no line: it has no run of this step.")),
        (_, 0) => None,
        (runs, count) if runs == count => Some(format!("{name} has no line: {reasons}.")),
        _ => Some(format!("Not drawn: {name} {reasons}.")),
    }
}

/// Position along the axis, and value. `None` is a gap in the line.
type LinePoint = (f64, Option<f64>);

/// Returns at most `limit` points (at least 6). Time is cut into equal parts, and each part keeps
/// its lowest value, its highest value and a gap, in their order. An average would hide a stall of
/// one second, which is what a reader looks for.
fn downsample(points: &[LinePoint], limit: usize) -> Vec<LinePoint> {
    let limit = limit.max(6);
    if points.len() <= limit {
        return points.to_vec();
    }
    let parts = limit / if points.iter().all(|point| point.1.is_some()) { 2 } else { 3 };
    let mut kept = Vec::with_capacity(limit);
    for part in 0..parts {
        let slice = &points[part * points.len() / parts..(part + 1) * points.len() / parts];
        let known = || slice.iter().enumerate().filter_map(|(at, point)| Some((at, point.1?)));
        let mut stay = vec![
            known().min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at),
            known().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at),
            slice.iter().position(|point| point.1.is_none()),
        ];
        stay.sort_unstable();
        stay.dedup();
        kept.extend(stay.into_iter().flatten().map(|at| slice[at]));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_stall_and_a_single_peak_survive_in_their_order() {
        let mut points: Vec<LinePoint> = (0..10_000).map(|second| (f64::from(second), Some(100.0))).collect();
        points[4_321].1 = Some(0.0);
        points[8_888].1 = Some(500.0);
        let kept = downsample(&points, 600);
        assert!(kept.len() <= 600, "{}", kept.len());
        assert!(kept.contains(&(4_321.0, Some(0.0))));
        assert!(kept.contains(&(8_888.0, Some(500.0))));
        assert!(kept.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn a_short_line_is_left_alone() {
        let points = [(0.0, Some(1.0)), (1.0, None)];
        assert_eq!(downsample(&points, 600), points);
    }

    #[test]
    fn a_single_gap_survives() {
        let mut points: Vec<LinePoint> = (0..10_000).map(|second| (f64::from(second), Some(100.0))).collect();
        points[4_321].1 = None;
        let kept = downsample(&points, 600);
        assert!(kept.len() <= 600, "{}", kept.len());
        assert!(kept.contains(&(4_321.0, None)));
        assert!(kept.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
