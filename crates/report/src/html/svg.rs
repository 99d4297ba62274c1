//! Pieces of SVG that the charts share: escaping, and what tells one variant from another.

use std::fmt::Write;

/// Looks that differ; further variants begin again, and direct labels still tell them apart.
const LOOKS: usize = 8;
const DASHES: [&str; LOOKS] = ["", "7 3", "2 3", "9 3 2 3", "12 4", "4 2", "1 4", "6 2 1 2 1 2"];

/// Number of a variant's look; `page.css` gives each its colour as `--s0` ... `--s7`.
pub(super) fn look(variant: usize) -> usize {
    variant % LOOKS
}

/// Dash pattern of a variant's lines; empty for a solid one.
pub(super) fn dash(variant: usize) -> &'static str {
    DASHES[look(variant)]
}

/// Text as element content or attribute value.
pub(super) fn escaped(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => result.push_str("&amp;"),
            '<' => result.push_str("&lt;"),
            '>' => result.push_str("&gt;"),
            '"' => result.push_str("&quot;"),
            '\'' => result.push_str("&#39;"),
            other => result.push(other),
        }
    }
    result
}

/// A name cut to so many characters.
pub(super) fn shortened(name: &str, limit: usize) -> String {
    if name.chars().count() <= limit {
        name.to_owned()
    } else {
        name.chars().take(limit - 1).chain(['…']).collect()
    }
}

/// The variant's marker around a point: each look has its own shape.
pub(super) fn marker(variant: usize, x: f64, y: f64, out: &mut String) {
    let r = 3.5;
    let class = format!("m s{}", look(variant));
    let polygon = |points: &[(f64, f64)]| {
        let places: Vec<String> =
            points.iter().map(|(dx, dy)| format!("{:.1},{:.1}", x + dx * r, y + dy * r)).collect();
        format!("<polygon class=\"{class}\" points=\"{}\"/>", places.join(" "))
    };
    let shape = match look(variant) {
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
    let _ = write!(out, "<path class=\"l s{}\"{dashes} d=\"", look(variant));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_element_or_attribute() {
        assert_eq!(escaped("<b>&\"'"), "&lt;b&gt;&amp;&quot;&#39;");
    }

    #[test]
    fn neighbouring_looks_differ_in_shape_and_dashes_not_only_in_colour() {
        let drawn: Vec<String> = (0..LOOKS)
            .map(|variant| {
                let mut out = String::new();
                marker(variant, 0.0, 0.0, &mut out);
                out.replace(&format!(" s{variant}"), "")
            })
            .collect();
        for variant in 1..LOOKS {
            assert!(!drawn[..variant].contains(&drawn[variant]), "shape {variant}");
            assert!(!DASHES[..variant].contains(&DASHES[variant]), "dash {variant}");
        }
    }
}
