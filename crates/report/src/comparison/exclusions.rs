//! Lines that say what is in no comparison and why: one line per side and reason.

use dbdyno_analyse::{Comparison, Exclusion, ExclusionKind, unique};

use crate::document::text::one_line;
use crate::views::compared::step_name;
use crate::warnings::reasons_text;

/// Words such as `not run, because its cell failed: server went away`.
pub fn exclusion_text(one: &Exclusion) -> String {
    match reasons_text(&one.reasons).as_str() {
        "" => words(one.kind).to_owned(),
        reasons => format!("{}: {reasons}", words(one.kind)),
    }
}

fn words(kind: ExclusionKind) -> &'static str {
    match kind {
        ExclusionKind::Invalid => "invalid",
        ExclusionKind::Failed => "failed",
        ExclusionKind::CellFailed => "not run, because its cell failed",
        ExclusionKind::Interrupted => "interrupted",
        ExclusionKind::DidNotRun => "its cell did not run",
        ExclusionKind::ZeroRate => "rate of zero",
    }
}

/// The lines, such as
/// `qr100 to qp1000 of new my57: not run, because its cell failed in block 1: ...`. Steps that have
/// the same line share it.
pub(super) fn lines(comparison: &Comparison) -> Vec<String> {
    let mut all: Vec<(String, Vec<usize>)> = Vec::new();
    for (at, step) in comparison.steps.iter().enumerate() {
        let sides = [
            (format!("base {}", comparison.base.variant), &step.base_left_out),
            (format!("new {}", comparison.new.variant), &step.new_left_out),
        ];
        for (side, left_out) in sides {
            for text in by_kind(left_out) {
                let line = format!("{side}: {text}");
                match all.iter_mut().find(|(known, _)| *known == line) {
                    Some((_, steps)) => steps.push(at),
                    None => all.push((line, vec![at])),
                }
            }
        }
    }
    let line = |(line, steps): &(String, Vec<usize>)| {
        one_line(&format!("{} of {line}", steps_text(comparison, steps)))
    };
    all.iter().map(line).collect()
}

/// Neighbouring steps as `first to last`, others by name.
fn steps_text(comparison: &Comparison, steps: &[usize]) -> String {
    let name = |at: &usize| step_name(comparison, &comparison.steps[*at]);
    match steps {
        [first, .., last] if steps.len() > 2 && last - first + 1 == steps.len() => {
            format!("{} to {}", name(first), name(last))
        }
        _ => steps.iter().map(name).collect::<Vec<_>>().join(", "),
    }
}

/// Blocks of one kind together, with the first one's reason. The reasons of all blocks would push
/// the table out of sight.
fn by_kind(left_out: &[Exclusion]) -> Vec<String> {
    let text = |kind: ExclusionKind| {
        let blocks: Vec<&Exclusion> = left_out.iter().filter(|one| one.kind == kind).collect();
        let numbers: Vec<String> = blocks.iter().map(|one| one.block.to_string()).collect();
        let first = blocks.first().map_or(&[][..], |first| first.reasons.as_slice());
        let places = if numbers.len() == 1 { "block" } else { "blocks" };
        let because = match reasons_text(first) {
            reason if reason.is_empty() => reason,
            reason if blocks.iter().all(|one| one.reasons == first) => format!(": {reason}"),
            reason => format!("; block {}: {reason}", numbers[0]),
        };
        format!("{} in {places} {}{because}", words(kind), numbers.join(", "))
    };
    unique(left_out.iter().map(|one| one.kind)).into_iter().map(text).collect()
}
