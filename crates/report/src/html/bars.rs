//! The relative rate of each step as bars, as SVG: from zero, with the base as a line at 1.

use std::fmt::Write;

use dbdyno_analyse::Table;

use super::scale::{Scale, tick_text};
use super::svg::{escaped, look, marker, shortened};

const WIDTH: f64 = 720.0;
/// Room for names of steps: at least, and for each letter.
const LEAST_LEFT: f64 = 92.0;
const LETTER: f64 = 7.4;
const RIGHT: f64 = 64.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 34.0;
const BAR: f64 = 10.0;
const GAP: f64 = 9.0;
const STEP_LETTERS: usize = 28;

/// Bars of every row but the base's, grouped by step. `variants` gives each row its look. `None` when nothing is compared.
pub(super) fn bars(table: &Table, base: &str, variants: &[String]) -> Option<String> {
    let rows: Vec<_> = table.rows.iter().filter(|row| row.label != base && !row.is_target).collect();
    let values = rows.iter().flat_map(|row| &row.cells).filter_map(|cell| cell.value);
    let greatest = values.max_by(f64::total_cmp)?;
    let scale = Scale::from_zero(greatest.max(1.0), 6);
    let left = left_of(&table.columns);
    let group = rows.len() as f64 * BAR + GAP;
    let height = TOP + table.columns.len() as f64 * group + BOTTOM;
    // Labels go last, so that neither a bar nor the line at 1 lies over them.
    let mut labels = String::new();
    let mut out = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">",
        escaped(&format!("Rate divided by that of {base}, by step"))
    );
    axes(&scale, left, base, height, &mut out);
    for (step, name) in table.columns.iter().enumerate() {
        let top = TOP + step as f64 * group + GAP / 2.0;
        let middle = top + (group - GAP) / 2.0 + 4.0;
        let name = escaped(&shortened(name, STEP_LETTERS));
        let _ = write!(out, "<text class=\"e\" x=\"{}\" y=\"{middle:.1}\">{name}</text>", left - 8.0);
        for (position, row) in rows.iter().enumerate() {
            let Some(cell) = row.cells.get(step) else { continue };
            let look_number =
                variants.iter().position(|variant| *variant == row.label).unwrap_or(position + 1);
            let top = top + position as f64 * BAR;
            let label_at = match cell.value {
                Some(value) => bar(look_number, left, x_of(value, &scale, left), top, &mut out),
                None => left + 5.0,
            };
            let (y, text) = (top + BAR / 2.0 + 3.5, escaped(&cell.text));
            let _ = write!(labels, "<text class=\"n\" x=\"{label_at:.1}\" y=\"{y:.1}\">{text}</text>");
        }
    }
    let one = x_of(1.0, &scale, left);
    let _ = write!(out, "<path class=\"one\" d=\"M{one:.1},{TOP}V{}\"/>{labels}</svg>", height - BOTTOM);
    Some(out)
}

/// Where bars begin: right of the longest name.
fn left_of(steps: &[String]) -> f64 {
    let letters = steps.iter().map(|name| name.chars().count()).max().unwrap_or(0).min(STEP_LETTERS);
    LEAST_LEFT.max(16.0 + LETTER * letters as f64)
}

fn x_of(value: f64, scale: &Scale, left: f64) -> f64 {
    left + scale.place(value, WIDTH - left - RIGHT)
}

fn axes(scale: &Scale, left: f64, base: &str, height: f64, out: &mut String) {
    let bottom = height - BOTTOM;
    for tick in &scale.ticks {
        let x = x_of(*tick, scale, left);
        let class = if *tick == 0.0 { "axis" } else { "grid" };
        let _ = write!(out, "<path class=\"{class}\" d=\"M{x:.1},{TOP}V{bottom}\"/>");
        let _ =
            write!(out, "<text class=\"c\" x=\"{x:.1}\" y=\"{}\">{}</text>", bottom + 15.0, tick_text(*tick));
    }
    let x = x_of(1.0, scale, left);
    let _ =
        write!(out, "<text class=\"c\" x=\"{x:.1}\" y=\"14\">{} = 1</text>", escaped(&shortened(base, 24)));
    let _ = write!(
        out,
        "<text class=\"e\" x=\"{}\" y=\"{}\">times the base's rate</text>",
        WIDTH - RIGHT,
        bottom + 29.0
    );
}

/// Draws a bar to `end`; returns where its label may begin.
fn bar(variant: usize, left: f64, end: f64, top: f64, out: &mut String) -> f64 {
    let (y, width, thickness) = (top + 1.0, end - left, BAR - 2.0);
    let class = look(variant);
    let _ = write!(
        out,
        "<rect class=\"b{class}\" x=\"{left}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{thickness}\"/>"
    );
    marker(variant, end, top + BAR / 2.0, out);
    end + 8.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

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
