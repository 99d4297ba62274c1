//! The relative rate of each step as bars, as SVG: from zero, with the base as a line at 1, the interval as a thin line over each bar,
//! and the verdict next to it.

use std::fmt::Write;

use dbdyno_analyse::{Cell, Table, Verdict};

use super::names::shortened;
use super::scale::{Scale, tick_text};
use super::svg::{COLOURS, colour, escaped, marker};

const WIDTH: f64 = 720.0;
/// Room for names of steps: at least, and for each letter.
const LEAST_LEFT: f64 = 92.0;
const LETTER: f64 = 7.4;
/// Room for a value after the longest bar, and for each letter of the verdict or name next to it.
const RIGHT: f64 = 64.0;
const LABEL_LETTER: f64 = 5.6;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 50.0;
const BAR: f64 = 11.0;
const GAP: f64 = 9.0;
const STEP_LETTERS: usize = 28;
const NAME_LETTERS: usize = 16;
/// A ratio that is not decided is drawn up to so many times the greatest that is, or the median: one wild value would press all others
/// together.
const FAR: f64 = 10.0;
/// The same for the ends of intervals, against the greatest value.
const FAR_END: f64 = 1.25;

/// Where values stand.
struct Plot {
    scale: Scale,
    left: f64,
    right: f64,
    bottom: f64,
}

impl Plot {
    fn x(&self, value: f64) -> f64 {
        self.left + self.scale.place(value, self.right - self.left)
    }

    fn holds(&self, value: f64) -> bool {
        value <= self.scale.end
    }
}

/// Bars of every row but the base's, grouped by step. `variants` gives each row its look. `None` when nothing is compared.
pub(super) fn bars(table: &Table, base: &str, variants: &[String]) -> Option<String> {
    let rows: Vec<_> = table.rows.iter().filter(|row| row.label != base && !row.is_target).collect();
    let cells: Vec<&Cell> = rows.iter().flat_map(|row| &row.cells).collect();
    let scale = Scale::from_zero(axis_end(&cells)?, 6);
    // Colours that stand for two variants need their names.
    let names = match variants.len() > COLOURS {
        true => shortened(rows.iter().map(|row| row.label.as_str()), NAME_LETTERS),
        false => vec![String::new(); rows.len()],
    };
    let group = rows.len() as f64 * BAR + GAP;
    let height = TOP + table.columns.len() as f64 * group + BOTTOM;
    let (left, right) = (left_of(&table.columns), WIDTH - right_of(&cells, &names));
    let plot = Plot { scale, left, right, bottom: height - BOTTOM };
    // Labels go last, so that neither a bar nor the line at 1 lies over them.
    let mut labels = String::new();
    let mut out = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">",
        escaped(&format!("Rate divided by that of {base}, by step"))
    );
    axes(&plot, base, &mut out);
    signs(&cells, plot.bottom, &mut out);
    let steps = shortened(table.columns.iter().map(String::as_str), STEP_LETTERS);
    for (step, name) in steps.iter().enumerate() {
        let top = TOP + step as f64 * group + GAP / 2.0;
        let middle = top + (group - GAP) / 2.0 + 4.0;
        let (x, name) = (left - 8.0, escaped(name));
        let _ = write!(out, "<text class=\"e\" x=\"{x}\" y=\"{middle:.1}\">{name}</text>");
        for (position, (row, name)) in rows.iter().zip(&names).enumerate() {
            let Some(cell) = row.cells.get(step) else { continue };
            let variant = variants.iter().position(|variant| *variant == row.label).unwrap_or(position + 1);
            let top = top + position as f64 * BAR;
            let x = bar(variant, cell, &plot, top, &mut out);
            let (y, text) = (top + BAR / 2.0 + 3.5, escaped(&label(name, cell)));
            let _ = write!(labels, "<text class=\"n\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>");
        }
    }
    let (one, bottom) = (plot.x(1.0), plot.bottom);
    let _ = write!(out, "<path class=\"one\" d=\"M{one:.1},{TOP}V{bottom}\"/>{labels}</svg>");
    Some(out)
}

/// Whether the ratio was decided; of a run of one block nothing is.
fn is_decided(cell: &Cell) -> bool {
    cell.verdict.is_some_and(|verdict| !matches!(verdict, Verdict::Undecided | Verdict::Invalid))
}

/// What the axis must hold; `None` without any value.
fn axis_end(cells: &[&Cell]) -> Option<f64> {
    let greatest = |wanted: &dyn Fn(&Cell) -> bool| {
        let values = cells.iter().filter(|cell| wanted(cell)).filter_map(|cell| cell.value);
        values.max_by(f64::total_cmp)
    };
    let mut all: Vec<f64> = cells.iter().filter_map(|cell| cell.value).collect();
    all.sort_by(f64::total_cmp);
    let median = *all.get(all.len() / 2)?;
    let decided = greatest(&|cell| is_decided(cell) || cell.interval.is_none()).unwrap_or(1.0).max(1.0);
    let near = |cell: &Cell| cell.value.is_some_and(|value| value <= FAR * decided.max(median));
    let shown = greatest(&near).unwrap_or(1.0).max(1.0);
    let ends = cells.iter().filter(|cell| near(cell)).filter_map(|cell| cell.interval);
    Some(ends.map(|interval| interval.high).filter(|high| *high <= FAR_END * shown).fold(shown, f64::max))
}

/// Where bars begin: right of the longest name.
fn left_of(steps: &[String]) -> f64 {
    let letters = steps.iter().map(|name| name.chars().count()).max().unwrap_or(0).min(STEP_LETTERS);
    LEAST_LEFT.max(16.0 + LETTER * letters as f64)
}

/// Room right of the axis.
fn right_of(cells: &[&Cell], names: &[String]) -> f64 {
    let verdicts = cells.iter().filter(|cell| cell.value.is_some()).filter_map(|cell| cell.verdict);
    let longest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0) as f64;
    let letters = longest(&mut verdicts.map(|verdict| verdict.word().len()))
        + longest(&mut names.iter().map(|name| name.chars().count()));
    RIGHT + LABEL_LETTER * letters
}

/// Value and verdict, after the variant's name where its colour does not say it.
fn label(name: &str, cell: &Cell) -> String {
    let verdict = cell.verdict.filter(|_| cell.value.is_some()).map_or("", Verdict::word);
    let parts = [name, cell.text.as_str(), verdict];
    parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(" ")
}

fn axes(plot: &Plot, base: &str, out: &mut String) {
    let bottom = plot.bottom;
    for tick in &plot.scale.ticks {
        let (x, text) = (plot.x(*tick), tick_text(*tick));
        let class = if *tick == 0.0 { "axis" } else { "grid" };
        let _ = write!(out, "<path class=\"{class}\" d=\"M{x:.1},{TOP}V{bottom}\"/>");
        let _ = write!(out, "<text class=\"c\" x=\"{x:.1}\" y=\"{}\">{text}</text>", bottom + 15.0);
    }
    let (x, base) = (plot.x(1.0), escaped(&shortened([base], 24).concat()));
    let _ = write!(out, "<text class=\"c\" x=\"{x:.1}\" y=\"14\">{base} = 1</text>");
    let (x, y) = (plot.right, bottom + 29.0);
    let _ = write!(out, "<text class=\"e\" x=\"{x:.1}\" y=\"{y}\">times the base's rate</text>");
}

/// What the signs say, within the picture: it is cut out of the page and shown alone.
fn signs(cells: &[&Cell], bottom: f64, out: &mut String) {
    let known = || cells.iter().filter(|cell| cell.value.is_some());
    let mut signs = Vec::new();
    if known().any(|cell| cell.interval.is_some()) {
        signs.push("line: 95 % interval");
    }
    if known().any(|cell| cell.interval.is_some() && !is_decided(cell)) {
        signs.push("pale: undecided");
    }
    if known().any(|cell| cell.interval.is_none()) {
        signs.push("pale without a line: one block, may be chance");
    }
    let y = bottom + 45.0;
    let _ = write!(out, "<text x=\"4\" y=\"{y}\">{}</text>", signs.join(" · "));
}

/// Draws a bar with its interval; returns where its label may begin. What is beyond the axis ends in an arrow.
fn bar(variant: usize, cell: &Cell, plot: &Plot, top: f64, out: &mut String) -> f64 {
    let Some(value) = cell.value else { return plot.left + 5.0 };
    let (left, end, middle) = (plot.left, plot.x(value), top + BAR / 2.0);
    let (class, pale) = (colour(variant), if is_decided(cell) { "" } else { " pale" });
    let (y, width, thickness) = (top + 1.0, end - left, BAR - 2.0);
    let _ = write!(
        out,
        "<rect class=\"b s{class}{pale}\" x=\"{left}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{thickness}\"/>"
    );
    let reach = cell.interval.map_or(end, |interval| {
        let (from, to) = (plot.x(interval.low), plot.x(interval.high));
        let first = if plot.holds(interval.low) { cap(from, middle) } else { String::new() };
        let last = if plot.holds(interval.high) { cap(to, middle) } else { arrow(to, middle) };
        let _ = write!(out, "<path class=\"w\" d=\"M{from:.1},{middle:.1}H{to:.1}{first}{last}\"/>");
        to
    });
    if plot.holds(value) {
        marker(variant, end, middle, out);
    } else {
        let _ = write!(out, "<path class=\"w\" d=\"{}\"/>", arrow(end, middle));
    }
    end.max(reach) + 8.0
}

fn cap(x: f64, middle: f64) -> String {
    format!("M{x:.1},{:.1}v5", middle - 2.5)
}

fn arrow(x: f64, middle: f64) -> String {
    format!("M{:.1},{:.1}l4,3.5l-4,3.5", x - 1.0, middle - 3.5)
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::statistics::Interval;

    use super::*;
    use crate::fixture;

    fn drawn(blocks: u32, change: impl Fn(&mut Cell)) -> String {
        let mut table = fixture::with_blocks(blocks).workloads[0].summary.relative.clone();
        change(&mut table.rows[1].cells[0]);
        bars(&table, "rollback", &fixture::NAMES.map(str::to_owned)).expect("two variants")
    }

    #[test]
    fn a_bar_has_its_interval_and_verdict_and_is_pale_while_undecided() {
        let svg = drawn(3, |_| ());
        assert_eq!(svg.matches("class=\"w\"").count(), 8, "an interval each: {svg}");
        assert!(svg.contains(">9.87 faster</text>") && svg.contains(">1.04 undecided</text>"), "{svg}");
        let undecided = svg.matches(" undecided</text>").count() - 1; // one is the explanation
        assert!(undecided > 0 && svg.matches(" pale\"").count() == undecided, "{svg}");
        assert!(svg.contains(">line: 95 % interval · pale: undecided</text>"), "{svg}");
    }

    #[test]
    fn one_block_decides_nothing() {
        let svg = drawn(1, |_| ());
        assert_eq!((svg.matches("<rect").count(), svg.matches(" pale\"").count()), (8, 8));
        assert!(svg.contains("one block, may be chance") && !svg.contains("interval"), "{svg}");
    }

    #[test]
    fn what_is_beyond_the_axis_ends_in_an_arrow() {
        let svg = drawn(3, |cell| {
            (cell.value, cell.text) = (Some(134.9), "134.90".to_owned());
            cell.interval = Some(Interval { low: 0.000_1, high: 1e7 });
            cell.verdict = Some(Verdict::Undecided);
        });
        assert!(svg.contains(">134.90 undecided</text>") && svg.contains(">9.87 faster</text>"), "{svg}");
        assert!(svg.matches("l4,3.5l-4,3.5").count() >= 2, "the bar and its interval: {svg}");
        let far = drawn(3, |cell| cell.value = Some(30.0));
        assert!(far.contains(">30</text>"), "a value that is not too far is on the axis: {far}");
    }

    #[test]
    fn without_a_decided_ratio_the_axis_is_as_long_as_most_bars() {
        let cell = |value: f64| Cell {
            value: Some(value),
            interval: Some(Interval { low: 0.1, high: 1e6 }),
            verdict: Some(Verdict::Undecided),
            ..fixture::with_blocks(2).workloads[0].summary.relative.rows[1].cells[0].clone()
        };
        let cells = [20.0, 30.0, 40.0, 5_000.0].map(cell);
        assert_eq!(axis_end(&cells.iter().collect::<Vec<_>>()), Some(40.0));
        assert_eq!(axis_end(&[]), None);
    }

    #[test]
    fn more_variants_than_colours_have_their_names_beside_their_bars() {
        let names = ["rollback", "b", "c", "d", "e", "f", "g", "h", "i"];
        let findings = fixture::sized(&names, 2, 5);
        let svg =
            bars(&findings.workloads[0].summary.relative, "rollback", &names.map(str::to_owned)).unwrap();
        assert!(svg.contains("\">i 1.") && !drawn(2, |_| ()).contains("\">&lt;b&gt;"), "{svg}");
    }

    #[test]
    fn every_step_has_a_bar_or_says_why_not() {
        let findings = fixture::findings();
        let names = fixture::NAMES.map(str::to_owned);
        let svg = bars(&findings.workloads[0].summary.relative, "rollback", &names).expect("two variants");
        assert_eq!(svg.matches("<rect").count(), 8);
        assert!(
            svg.contains(">failed</text>") && svg.contains(">invalid</text>") && svg.contains(">9.87</text>")
        );
        assert!(svg.contains("rollback = 1"));
    }

    #[test]
    fn bars_begin_right_of_the_longest_name() {
        let left = |name: &str| left_of(&[name.to_owned(), "l.x".to_owned()]);
        assert_eq!(left("qp1000"), LEAST_LEFT);
        assert!(left("update-non-index.c16.r5000") > 200.0);
        assert_eq!(left(&"x".repeat(90)), left(&"x".repeat(STEP_LETTERS)));
    }

    #[test]
    fn a_run_of_one_variant_has_nothing_to_compare() {
        let findings = fixture::sized(&["rollback"], 1, 5);
        assert!(
            bars(&findings.workloads[0].summary.relative, "rollback", &["rollback".to_owned()]).is_none()
        );
    }
}
