//! Table of background rates against their targets.

use dbdyno_analyse::{StepFindings, VariantStep};

use super::cells::{fixed_cell, placeholder};
use super::{Scope, explained};
use crate::document::{Cell, Table, Tone};
use crate::words::{missed_blocks_text, missed_text};

/// The table; none for a workload without targets.
pub(super) fn tables(scope: Scope<'_>) -> Vec<Table> {
    let Some((_, share)) = scope.steps().find_map(|step| step.target) else { return Vec::new() };
    let note = format!(
        "Rows inserted per second by the background writers of each read-write step, all clients together; \
         the target is kept where each client reaches {:.0} % of its part.",
        100.0 * share
    );
    let heads: Vec<&str> = scope.variants().into_iter().chain(["target"]).collect();
    let row = |step: &StepFindings| {
        let target = Cell { tone: Tone::Missed, ..fixed_cell(step.target?.0, 0) };
        let cells = step.variants.iter().map(|variant| cell(scope, step, variant));
        Some(cells.chain([target]).collect())
    };
    let table = scope.by_step(("Background inserts", &note), &heads, row);
    vec![explained(table, &[(Tone::Lowest, "target missed")])]
}

fn cell(scope: Scope<'_>, step: &StepFindings, variant: &VariantStep) -> Cell {
    let Some(rate) = variant.background_rate else { return placeholder(scope, variant).into() };
    let tone = if step.misses(variant) { Tone::Lowest } else { Tone::Plain };
    let note = missed_text(step, variant).or_else(|| missed_blocks_text(step, variant));
    Cell { tone, sign: tone.sign(), note: note.unwrap_or_default(), ..fixed_cell(rate, 0) }
}
