//! A line chart as SVG, over the seconds of a step or over what else an axis says: thin lines, axes with units, each line
//! labelled at its end.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::downsample::{Point, downsample};
use super::names::shortened;
use super::scale::{Scale, tick_text};
use super::svg::{colour, escaped, line_start, marker};

/// One line: a variant in one block, or in all.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// Position of the variant in the report; decides the look.
    pub(super) variant: usize,
    pub(super) name: String,
    /// 0 for all together; then each point has a marker, and each gap a cross below.
    pub(super) block: u32,
    pub(super) points: Vec<Point>,
}

impl Line {
    fn known(&self) -> impl Iterator<Item = (f64, f64)> {
        self.points.iter().filter_map(|(at, value)| Some((*at, (*value)?)))
    }
}

/// An axis from 0 to `end`, with a text at some places.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    /// What it shows, with its unit.
    pub(super) name: String,
    pub(super) end: f64,
    pub(super) ticks: Vec<(f64, String)>,
}

impl Axis {
    /// Values as they are, from zero.
    pub(super) fn from_zero(name: &str, greatest: f64, count: u32) -> Self {
        let Scale { end, ticks } = Scale::from_zero(greatest, count);
        Self { name: name.to_owned(), end, ticks: ticks.into_iter().map(|at| (at, tick_text(at))).collect() }
    }

    /// Ends with the data: an empty rest would look like a stall.
    fn cut_at(mut self, end: f64) -> Self {
        self.end = end;
        self.ticks.retain(|(at, _)| *at <= end);
        self
    }

    fn place(&self, value: f64, length: f64) -> f64 {
        (value / self.end).clamp(0.0, 1.0) * length
    }
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 230.0;
const LEFT: f64 = 52.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 36.0;
/// Room for labels at the ends of lines.
const RIGHT: f64 = 116.0;
const LABEL_LETTERS: usize = 16;
const LABEL_HEIGHT: f64 = 13.0;
const CROSS_HEIGHT: f64 = 10.0;
/// Markers on the lines of one variant, at least one on each.
const MARKERS: usize = 6;

/// The chart over seconds. `title` is its accessible name, `unit` names the upright axis. `None` when no line has a value, or
/// none has two seconds.
pub(super) fn chart(title: &str, unit: &str, lines: &[Line], points_a_line: usize) -> Option<String> {
    let seconds = lines.iter().flat_map(|line| &line.points).map(|point| point.0);
    let last_second = seconds.max_by(f64::total_cmp).filter(|second| *second > 0.0)?;
    let greatest = lines.iter().flat_map(Line::known).map(|point| point.1).max_by(f64::total_cmp)?;
    let mut across = Axis::from_zero("second of the window", last_second, 6).cut_at(last_second);
    across.ticks.retain(|(second, _)| second.fract() == 0.0);
    chart_on(title, (&across, &Axis::from_zero(unit, greatest, 4)), lines, points_a_line)
}

/// A chart on these axes, the one across and the upright one. `None` when no line has a value.
pub(super) fn chart_on(
    title: &str,
    (across, up): (&Axis, &Axis),
    lines: &[Line],
    points_a_line: usize,
) -> Option<String> {
    lines.iter().flat_map(Line::known).next()?;
    // Many thin lines of one look are easier to read than thick ones that merge.
    let class = if lines.iter().any(|line| line.block > 1) { "chart many" } else { "chart" };
    let mut out = format!(
        "<svg class=\"{class}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        escaped(title)
    );
    axes(across, up, &mut out);
    for line in lines {
        let blocks = lines.iter().filter(|other| other.variant == line.variant).count();
        let markers = if line.block > 0 { (MARKERS / blocks).max(1) } else { line.points.len() };
        let detail = Detail { points: points_a_line, markers };
        draw(line, across, up, detail, &mut out);
    }
    crosses(lines, across, &mut out);
    labels(lines, up, &mut out);
    out.push_str("</svg>");
    Some(out)
}

fn plot_width() -> f64 {
    WIDTH - LEFT - RIGHT
}

fn plot_height() -> f64 {
    HEIGHT - TOP - BOTTOM
}

fn y_of(value: f64, up: &Axis) -> f64 {
    TOP + plot_height() - up.place(value, plot_height())
}

// Writing to a String cannot fail, hence the ignored results below.
fn axes(across: &Axis, up: &Axis, out: &mut String) {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    for (value, text) in &up.ticks {
        let y = y_of(*value, up);
        let class = if *value == 0.0 { "axis" } else { "grid" };
        let _ = write!(out, "<path class=\"{class}\" d=\"M{LEFT},{y:.1}H{right}\"/>");
        let _ = write!(out, "<text class=\"e\" x=\"{}\" y=\"{:.1}\">{text}</text>", LEFT - 6.0, y + 4.0);
    }
    for (value, text) in &across.ticks {
        let x = LEFT + across.place(*value, plot_width());
        let _ = write!(out, "<path class=\"axis\" d=\"M{x:.1},{bottom}v4\"/>");
        let _ = write!(out, "<text class=\"c\" x=\"{x:.1}\" y=\"{}\">{text}</text>", bottom + 17.0);
    }
    let _ = write!(out, "<text x=\"4\" y=\"13\">{}</text>", escaped(&up.name));
    let (y, name) = (bottom + 32.0, escaped(&across.name));
    let _ = write!(out, "<text class=\"e\" x=\"{right}\" y=\"{y}\">{name}</text>");
}

/// How much of one line is drawn.
#[derive(Clone, Copy)]
struct Detail {
    points: usize,
    /// One is in the middle, more are spread from end to end.
    markers: usize,
}

fn draw(line: &Line, across: &Axis, up: &Axis, detail: Detail, out: &mut String) {
    let kept = downsample(&line.points, detail.points);
    let Some(last) = kept.iter().filter(|point| point.1.is_some()).count().checked_sub(1) else { return };
    let block = if line.block > 0 { format!(", block {}", line.block) } else { String::new() };
    let _ = write!(out, "<g><title>{}{block}</title>", escaped(&line.name));
    line_start(line.variant, out);
    // A point between two gaps has no line, so it gets a marker.
    let gaps = detail.markers.saturating_sub(1);
    let spread = (0..detail.markers).map(|number| (number * last).checked_div(gaps).unwrap_or(last / 2));
    let mut marked: BTreeSet<usize> = spread.collect();
    let mut points = Vec::new();
    for stretch in kept.split(|point| point.1.is_none()) {
        for (number, (at, value)) in stretch.iter().enumerate() {
            let (x, y) = (LEFT + across.place(*at, plot_width()), y_of(value.unwrap_or(0.0), up));
            if stretch.len() > 1 {
                let _ = write!(out, "{}{x:.0},{y:.1}", if number == 0 { "M" } else { "L" });
            } else {
                marked.insert(points.len());
            }
            points.push((x, y));
        }
    }
    out.push_str("\"/>");
    for at in marked {
        marker(line.variant, points[at].0, points[at].1, out);
    }
    out.push_str("</g>");
}

/// A cross above the axis for each gap in a line of all blocks together; those of several variants stand above each other.
fn crosses(lines: &[Line], across: &Axis, out: &mut String) {
    let lines: Vec<&Line> = lines.iter().filter(|line| line.block == 0).collect();
    for (number, line) in lines.iter().enumerate() {
        for (at, _) in line.points.iter().filter(|point| point.1.is_none()) {
            let above = lines[..number].iter().flat_map(|other| &other.points);
            let below = above.filter(|(other, value)| other == at && value.is_none()).count();
            let x = LEFT + across.place(*at, plot_width());
            let y = HEIGHT - BOTTOM - CROSS_HEIGHT * (below as f64 + 0.5);
            let (colour, name) = (colour(line.variant), escaped(&line.name));
            let _ = write!(
                out,
                "<path class=\"x s{colour}\" d=\"M{:.1},{:.1}l6,6m0,-6l-6,6\"><title>{name}</title></path>",
                x - 3.0,
                y - 3.0
            );
        }
    }
}

/// One label a variant next to the end of its last block's line, moved apart where they would cover each other. More
/// variants than fit are left to the legend.
fn labels(lines: &[Line], up: &Axis, out: &mut String) {
    let mut ends: Vec<(f64, &Line)> = Vec::new();
    for line in lines {
        let Some((_, value)) = line.known().last() else { continue };
        ends.retain(|(_, other)| other.variant != line.variant);
        ends.push((y_of(value, up), line));
    }
    if ends.len() as f64 * LABEL_HEIGHT > plot_height() {
        return;
    }
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut lowest = TOP;
    for end in &mut ends {
        end.0 = end.0.max(lowest);
        lowest = end.0 + LABEL_HEIGHT;
    }
    let mut highest = HEIGHT - BOTTOM;
    for end in ends.iter_mut().rev() {
        end.0 = end.0.min(highest);
        highest = end.0 - LABEL_HEIGHT;
    }
    let names = shortened(ends.iter().map(|(_, line)| line.name.as_str()), LABEL_LETTERS);
    for ((y, line), name) in ends.iter().zip(names) {
        let (x, y, colour, name) = (WIDTH - RIGHT + 8.0, y + 4.0, colour(line.variant), escaped(&name));
        let _ = write!(out, "<text class=\"t s{colour}\" x=\"{x}\" y=\"{y:.1}\">{name}</text>");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(variant: usize, values: &[f64]) -> Line {
        with_gaps(variant, &values.iter().copied().map(Some).collect::<Vec<_>>())
    }

    fn with_gaps(variant: usize, values: &[Option<f64>]) -> Line {
        let points = values.iter().enumerate().map(|(second, value)| (second as f64, *value)).collect();
        Line { variant, name: format!("<v{variant}>"), block: 1, points }
    }

    #[test]
    fn a_line_ends_before_a_gap_and_begins_again_behind_it() {
        let values = [Some(1.0), Some(2.0), None, None, Some(4.0), Some(3.0)];
        let svg = chart("time", "ms", &[with_gaps(0, &values)], 600).expect("four values");
        let path = svg.split("class=\"l s0\" d=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        assert_eq!((path.matches('M').count(), path.matches('L').count()), (2, 2), "{path}");
        assert!(!svg.contains("class=\"x "), "a second without an answer is no refused value: {svg}");
    }

    #[test]
    fn a_value_between_two_gaps_has_a_marker() {
        let values = [Some(1.0), Some(1.0), None, Some(4.0), None, Some(2.0), Some(2.0)];
        let svg = chart("time", "ms", &[with_gaps(0, &values)], 600).expect("five values");
        let x = LEFT + plot_width() / 2.0;
        assert!(svg.contains(&format!("cx=\"{x:.1}\"")), "{svg}");
    }

    #[test]
    fn a_missing_value_of_all_blocks_together_is_marked_and_those_of_two_variants_do_not_cover_each_other() {
        let of_all = |variant| Line { block: 0, ..with_gaps(variant, &[Some(1.0), None, Some(3.0)]) };
        let svg = chart("rate", "1/s", &[of_all(0), of_all(1)], 600).expect("values");
        let crosses: Vec<&str> =
            svg.split("class=\"x ").skip(1).filter_map(|rest| rest.split("l6,6").next()).collect();
        let [first, second] = crosses.as_slice() else { panic!("two crosses: {svg}") };
        assert_ne!(first.split(',').next_back(), second.split(',').next_back());
        assert_eq!(svg.matches("<circle").count(), 2, "a marker for each value, also for a lone one");
    }

    #[test]
    fn a_chart_has_a_line_a_label_and_markers_for_each_variant() {
        let lines = [line(0, &[1.0, 5.0, 4.0, 2.0, 3.0, 3.0, 3.0]), line(1, &[3.0, 4.0])];
        let svg = chart("rate", "queries/s", &lines, 600).expect("two lines");
        assert_eq!(svg.matches("class=\"l s").count(), 2);
        assert_eq!(svg.matches("<circle").count(), MARKERS);
        assert!(svg.contains("queries/s") && svg.contains("second of the window"));
        assert!(svg.contains(">&lt;v1&gt;</text>"));
    }

    #[test]
    fn the_lines_of_many_blocks_have_a_marker_each_in_their_middle() {
        let lines = [1, 2, 3, 4, 5].map(|block| Line { block, ..line(0, &[1.0, 2.0, 3.0]) });
        let svg = chart("rate", "1/s", &lines, 600).expect("five lines");
        let x = LEFT + plot_width() / 2.0;
        assert_eq!((svg.matches("<circle").count(), svg.matches(&format!("cx=\"{x:.1}\"")).count()), (5, 5));
    }

    #[test]
    fn the_upright_axis_begins_at_zero() {
        let svg = chart("rate", "1/s", &[line(0, &[1000.0, 1001.0])], 600).expect("two points");
        assert!(svg.contains(">0</text>"));
    }

    #[test]
    fn one_second_is_not_a_line() {
        assert!(chart("rate", "1/s", &[line(0, &[1.0])], 600).is_none());
        assert!(chart("rate", "1/s", &[], 600).is_none());
    }

    #[test]
    fn labels_at_the_same_height_are_moved_apart() {
        let lines: Vec<Line> = (0..5).map(|variant| line(variant, &[5.0, 5.0])).collect();
        let svg = chart("rate", "1/s", &lines, 600).expect("two points");
        let mut heights: Vec<f64> = svg
            .split("<text class=\"t s")
            .skip(1)
            .map(|text| {
                text.split("y=\"")
                    .nth(1)
                    .and_then(|rest| rest.split('"').next())
                    .expect("a y")
                    .parse()
                    .expect("a number")
            })
            .collect();
        heights.sort_by(f64::total_cmp);
        assert!(heights.windows(2).all(|pair| pair[1] - pair[0] >= LABEL_HEIGHT - 0.2), "{heights:?}");
    }
}
