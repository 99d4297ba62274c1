//! The summary's table of a factorial design: a row an effect.

use crate::compare::verdicts::Rules;
use crate::compare::zero_rate::blocks_text;
use crate::model::{StepFindings, Table, TableRow};
use crate::tables::cells::absent;
use crate::tables::relative::judged_cell;
use crate::words::listed;

/// Rows are the effects of a factorial design; `None` without one.
pub(crate) fn effects(steps: &[StepFindings], rules: Rules<'_>) -> Option<Table> {
    let mut names: Vec<&str> = Vec::new();
    for effect in steps.iter().flat_map(|step| &step.effects) {
        if !names.contains(&effect.name.as_str()) {
            names.push(&effect.name);
        }
    }
    let cell = |step: &StepFindings, name: &str| {
        let effect = step.effects.iter().find(|effect| effect.name == name);
        effect.map_or_else(
            || absent("n/a", "no block in which all of its variants are valid".to_owned()),
            |effect| {
                let mut cell = judged_cell(&effect.ratio, effect.verdict, None, "the base's level");
                if !effect.stalled.is_empty() {
                    let blocks = blocks_text(&effect.stalled);
                    cell.note.push_str(&format!("; without {blocks}, in which a variant answered nothing"));
                }
                if !effect.missed.is_empty() {
                    let names: Vec<&str> = effect.missed.iter().map(String::as_str).collect();
                    cell.note.push_str(&format!("; {} did not keep the background rate", listed(&names)));
                }
                cell
            },
        )
    };
    let row = |name: &&str| TableRow {
        label: (*name).to_owned(),
        is_target: false,
        cells: steps.iter().map(|step| cell(step, name)).collect(),
    };
    let rows: Vec<TableRow> = names.iter().map(row).collect();
    (!rows.is_empty()).then(|| Table {
        title: "Effects".to_owned(),
        caption: format!(
            "Rate at a level divided by the rate at the base's level ({}), over all combinations of the other factors; for two \
             factors (×), by what the ratio of the one changes when the other changes too.",
            rules.base
        ),
        columns: steps.iter().map(|step| step.name.clone()).collect(),
        rows,
    })
}
