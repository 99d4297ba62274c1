//! Lines that say why rates and ratios are missing. Each reason is there once, with all places that
//! it holds for.

use dbdyno_analyse::Warning;

use super::Scope;
use super::cells::{Placeholder, placeholder};
use crate::document::text::one_line;
use crate::warnings::{brief, reasons_text};

/// Places that share a reason.
struct Reason {
    /// The placeholder of the first place.
    placeholder: Placeholder,
    differ: bool,
    /// Each variant with the numbers of its steps.
    places: Vec<(String, Vec<usize>)>,
}

/// Returns one line per reason: `qr100, wal: failed: server went away`. Neighbouring steps are one
/// place, `l.i0 to qr100, wal: ...`. A variant without any value is named alone.
pub(super) fn lines(scope: Scope<'_>) -> Vec<String> {
    let mut reasons: Vec<Reason> = Vec::new();
    for variant in scope.variants() {
        for (at, step) in scope.steps().enumerate() {
            let Some(placeholder) = step.variant(variant).and_then(|found| match found.rate {
                None => Some(placeholder(scope, found)),
                Some(rate)
                    if found.to_base.ratio.is_none() && found.to_base.zero_rates.is_empty() && rate > 0.0 =>
                {
                    Some(Placeholder::new(
                        "n/a",
                        &format!("no block in which {} is valid too", scope.run.base),
                    ))
                }
                Some(_) => None,
            }) else {
                continue;
            };
            let is_alike = |known: &Reason| {
                known.placeholder.text == placeholder.text
                    && Warning::are_alike(&known.placeholder.why, &placeholder.why)
            };
            let known = reasons.iter().position(is_alike).unwrap_or_else(|| {
                reasons.push(Reason { placeholder: placeholder.clone(), differ: false, places: Vec::new() });
                reasons.len() - 1
            });
            let reason = &mut reasons[known];
            reason.differ |= reason.placeholder.why != placeholder.why;
            match reason.places.last_mut() {
                Some((last, steps)) if last == variant => steps.push(at),
                _ => reason.places.push((variant.to_owned(), vec![at])),
            }
        }
    }
    let steps: Vec<&str> = scope.steps().map(|step| step.name.as_str()).collect();
    reasons.iter().map(|reason| reason.line(&steps)).collect()
}

impl Reason {
    fn line(&self, steps: &[&str]) -> String {
        let of_variant = |(variant, places): &(String, Vec<usize>)| {
            if places.len() == steps.len() && steps.len() > 1 {
                return variant.clone();
            }
            format!("{}, {variant}", named(steps, places))
        };
        let places: Vec<String> = self.places.iter().map(of_variant).collect();
        // The warnings and the step's own section have the full reason.
        let Placeholder { text, why } = &self.placeholder;
        let why =
            if *text == "invalid" { why.first().map_or_else(String::new, brief) } else { reasons_text(why) };
        let others = if self.differ { " (the first of these; all are listed by step)" } else { "" };
        one_line(&format!("{}: {text}: {why}{others}", places.join("; ")))
    }
}

/// Names neighbouring steps as `first to last`, and others by name. Of more than three, the first
/// two are named and the rest counted.
fn named(steps: &[&str], places: &[usize]) -> String {
    const NAMED: usize = 3;
    let names: Vec<&str> = places.iter().map(|place| steps[*place]).collect();
    match names.as_slice() {
        [first, .., last] if places[places.len() - 1] - places[0] + 1 == places.len() => {
            format!("{first} to {last}")
        }
        [first, second, rest @ ..] if rest.len() + 2 > NAMED => {
            format!("{first}, {second} and {} more", rest.len())
        }
        names => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::Validity;

    use super::*;
    use crate::fixture::{of_steps, pair};
    use crate::views::small;

    fn invalid(reason: &str) -> Validity {
        Validity::Invalid { reasons: vec![Warning::quoted(reason)] }
    }

    /// Returns the lines where the variants' runs of these steps are not valid, each for its
    /// reason.
    fn said(places: &[(usize, usize, Validity)]) -> Vec<String> {
        let names = ["l.i0", "l.x", "l.i1", "l.i2", "qr100", "qp100", "qr500"];
        let mut steps = names.map(|name| pair(name, 1.0, 1)).to_vec();
        for (step, variant, validity) in places {
            let found = &mut steps[*step].variants[*variant];
            (found.rate, found.to_base.ratio) = (None, None);
            found.runs[0].validity = validity.clone();
        }
        lines(small::scope(&of_steps(steps)))
    }

    #[test]
    fn a_step_without_a_value_says_why() {
        let failed = Validity::Failed { message: "server went away".to_owned() };
        let lines = ["qp100, <b>&\": invalid: rows of table 1", "qr500, <b>&\": failed: server went away"];
        assert_eq!(said(&[(5, 1, invalid("rows of table 1")), (6, 1, failed)]), lines);
    }

    #[test]
    fn neighbours_share_a_name_and_a_whole_variant_has_its_own() {
        let places = (1..4).map(|step| (step, 0, invalid("x")));
        let places: Vec<_> = places.chain((0..7).map(|step| (step, 1, invalid("y")))).collect();
        assert_eq!(said(&places), ["l.x to l.i2, rollback: invalid: x", "<b>&\": invalid: y"]);
    }

    #[test]
    fn reasons_that_differ_in_figures_are_one_line_over_all_variants() {
        let places = [
            (0, 0, "busy in 91 %"),
            (2, 0, "busy in 92 %"),
            (4, 0, "busy in 93.5 %"),
            (6, 1, "busy in 9 %"),
            (1, 1, "lost"),
        ];
        assert_eq!(
            said(&places.map(|(step, variant, reason)| (step, variant, invalid(reason)))),
            [
                "l.i0, l.i1, qr100, rollback; qr500, <b>&\": invalid: busy in 91 % (the first of these; all are \
                 listed by step)",
                "l.x, <b>&\": invalid: lost"
            ]
        );
    }
}
