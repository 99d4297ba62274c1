//! Pieces of SVG that the charts share: escaping, and what distinguishes one variant from another.

use std::fmt::Write;

pub(super) use crate::document::html::escaped;

/// Colours. The eight variants after the first eight have the same colours again with other dashes and hollow markers, those after
/// them with other shapes: 64 looks differ.
pub(super) const COLOURS: usize = 8;
const DASHES: [&str; COLOURS] = ["", "7 3", "2 3", "9 3 2 3", "12 4", "4 2", "1 4", "6 2 1 2 1 2"];

/// Number of a variant's colour; `page.css` has each as `--s0` ... `--s7`.
pub(super) fn colour(variant: usize) -> usize {
    variant % COLOURS
}

/// Dash pattern of a variant's lines; empty for a solid one.
fn dash(variant: usize) -> &'static str {
    DASHES[(variant + variant / COLOURS) % COLOURS]
}

/// The variant's marker around a point: each colour has its own shape.
pub(super) fn marker(variant: usize, x: f64, y: f64, out: &mut String) {
    let r = 3.5;
    let round = variant / COLOURS;
    let class = format!("m{} s{}", if round % 2 == 1 { " h" } else { "" }, colour(variant));
    let polygon = |points: &[(f64, f64)]| {
        let places: Vec<String> =
            points.iter().map(|(dx, dy)| format!("{:.1},{:.1}", x + dx * r, y + dy * r)).collect();
        format!("<polygon class=\"{class}\" points=\"{}\"/>", places.join(" "))
    };
    let shape = match (variant + round / 2) % COLOURS {
        0 => format!("<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r}\"/>"),
        1 => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        2 => polygon(&[(0.0, -1.2), (1.1, 0.9), (-1.1, 0.9)]),
        3 => polygon(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
        4 => polygon(&[(0.0, 1.2), (1.1, -0.9), (-1.1, -0.9)]),
        5 => polygon(&[(-1.2, -0.5), (1.2, -0.5), (1.2, 0.5), (-1.2, 0.5)]),
        6 => polygon(&[(-0.5, -1.2), (0.5, -1.2), (0.5, 1.2), (-0.5, 1.2)]),
        _ => polygon(&[(-1.2, 0.0), (-0.6, -1.1), (0.6, -1.1), (1.2, 0.0), (0.6, 1.1), (-0.6, 1.1)]),
    };
    out.push_str(&shape);
}

/// A small picture of a variant's line and marker, for legends.
pub(super) fn swatch(variant: usize) -> String {
    let mut out = String::from(
        "<svg class=\"swatch\" viewBox=\"0 0 34 12\" width=\"34\" height=\"12\" aria-hidden=\"true\">",
    );
    line_start(variant, &mut out);
    out.push_str("M1,6L33,6\"/>");
    marker(variant, 17.0, 6.0, &mut out);
    out.push_str("</svg>");
    out
}

/// Opens a variant's path up to its data.
pub(super) fn line_start(variant: usize, out: &mut String) {
    let dash = dash(variant);
    let dashes = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
    // Writing to a String cannot fail.
    let _ = write!(out, "<path class=\"l s{}\"{dashes} d=\"", colour(variant));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marker and dashes.
    fn drawn(variant: usize) -> (String, &'static str) {
        let mut out = String::new();
        marker(variant, 0.0, 0.0, &mut out);
        (out, dash(variant))
    }

    #[test]
    fn sixteen_variants_have_markers_that_differ_without_their_colour_and_eight_their_dashes() {
        let shape = |variant| drawn(variant).0.replace(&format!(" s{}", colour(variant)), "");
        let shapes: Vec<String> = (0..2 * COLOURS).map(shape).collect();
        for variant in 1..2 * COLOURS {
            assert!(!shapes[..variant].contains(&shapes[variant]), "shape {variant}");
        }
        for variant in 1..COLOURS {
            assert!(!DASHES[..variant].contains(&DASHES[variant]), "dash {variant}");
        }
    }

    #[test]
    fn variants_of_one_colour_differ_in_their_dashes_and_markers() {
        for variant in COLOURS..8 * COLOURS {
            for other in (colour(variant)..variant).step_by(COLOURS) {
                assert_ne!(drawn(variant).1, drawn(other).1, "{variant}, {other}");
                assert_ne!(drawn(variant).0, drawn(other).0, "{variant}, {other}");
            }
        }
    }
}
