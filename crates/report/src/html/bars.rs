//! The relative rate of each step as bars, as SVG: from zero, with the base as a line at 1.

use std::fmt::Write;

use dbdyno_analyse::Table;

use super::scale::{Scale, tick_text};
use super::svg::{escaped, look, marker, shortened};

const WIDTH: f64 = 720.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = 64.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 34.0;
const BAR: f64 = 10.0;
const GAP: f64 = 9.0;
const STEP_LETTERS: usize = 14;

/// Bars of every row but the base's, grouped by step. `variants` gives each row its look. `None` when nothing is compared.
pub(super) fn bars(table: &Table, base: &str, variants: &[String]) -> Option<String> {
    let rows: Vec<_> = table.rows.iter().filter(|row| row.label != base && !row.is_target).collect();
    let values = rows.iter().flat_map(|row| &row.cells).filter_map(|cell| cell.value);
    let greatest = values.max_by(f64::total_cmp)?;
    let scale = Scale::from_zero(greatest.max(1.0), 6);
    let group = rows.len() as f64 * BAR + GAP;
    let height = TOP + table.columns.len() as f64 * group + BOTTOM;
    let mut out = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">",
        escaped(&format!("Rate divided by that of {base}, by step"))
    );
    axes(&scale, base, height, &mut out);
    for (step, name) in table.columns.iter().enumerate() {
        let top = TOP + step as f64 * group + GAP / 2.0;
        let middle = top + (group - GAP) / 2.0 + 4.0;
        let name = escaped(&shortened(name, STEP_LETTERS));
        let _ = write!(out, "<text class=\"e\" x=\"{}\" y=\"{middle:.1}\">{name}</text>", LEFT - 8.0);
        for (position, row) in rows.iter().enumerate() {
            let Some(cell) = row.cells.get(step) else { continue };
            let look_number =
                variants.iter().position(|variant| *variant == row.label).unwrap_or(position + 1);
            bar(look_number, cell.value, &cell.text, top + position as f64 * BAR, &scale, &mut out);
        }
    }
    // Last, so that it lies over the bars.
    let one = x_of(1.0, &scale);
    let _ = write!(out, "<path class=\"one\" d=\"M{one:.1},{TOP}V{}\"/></svg>", height - BOTTOM);
    Some(out)
}

fn x_of(value: f64, scale: &Scale) -> f64 {
    LEFT + scale.place(value, WIDTH - LEFT - RIGHT)
}

fn axes(scale: &Scale, base: &str, height: f64, out: &mut String) {
    let bottom = height - BOTTOM;
    for tick in &scale.ticks {
        let x = x_of(*tick, scale);
        let class = if *tick == 0.0 { "axis" } else { "grid" };
        let _ = write!(out, "<path class=\"{class}\" d=\"M{x:.1},{TOP}V{bottom}\"/>");
        let _ =
            write!(out, "<text class=\"c\" x=\"{x:.1}\" y=\"{}\">{}</text>", bottom + 15.0, tick_text(*tick));
    }
    let x = x_of(1.0, scale);
    let _ =
        write!(out, "<text class=\"c\" x=\"{x:.1}\" y=\"14\">{} = 1</text>", escaped(&shortened(base, 24)));
    let _ = write!(
        out,
        "<text class=\"e\" x=\"{}\" y=\"{}\">times the base's rate</text>",
        WIDTH - RIGHT,
        bottom + 29.0
    );
}

fn bar(variant: usize, value: Option<f64>, text: &str, top: f64, scale: &Scale, out: &mut String) {
    let middle = top + BAR / 2.0;
    let Some(value) = value else {
        let _ = write!(
            out,
            "<text class=\"n\" x=\"{}\" y=\"{:.1}\">{}</text>",
            LEFT + 5.0,
            middle + 3.5,
            escaped(text)
        );
        return;
    };
    let end = x_of(value, scale);
    let (y, thickness) = (top + 1.0, BAR - 2.0);
    let _ = write!(
        out,
        "<rect class=\"b{}\" x=\"{LEFT}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{thickness}\"/>",
        look(variant),
        end - LEFT
    );
    marker(variant, end, middle, out);
    let _ = write!(
        out,
        "<text class=\"n\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        end + 8.0,
        middle + 3.5,
        escaped(text)
    );
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
    fn a_run_of_one_variant_has_nothing_to_compare() {
        let findings = fixture::sized(&["rollback"], 1, 5);
        assert!(
            bars(&findings.workloads[0].summary.relative, "rollback", &["rollback".to_owned()]).is_none()
        );
    }
}
