//! Table of effects in a factorial design, with one row per step and one column per effect.

use dbdyno_analyse::{Effect, StepFindings, unique};

use super::cells::{absent, joined, judged_cell};
use super::{Scope, explained, of_ratios};
use crate::document::{Table, TableCell};
use crate::words::{blocks_text, listed};

pub(super) fn tables(scope: Scope<'_>) -> Vec<Table> {
    let names = unique(scope.steps().flat_map(|step| &step.effects).map(|effect| effect.name.as_str()));
    if names.is_empty() {
        return Vec::new();
    }
    let of_step = |step: &StepFindings| {
        let find = |name: &&str| step.effects.iter().find(|effect| effect.name == *name);
        let cells = names
            .iter()
            .map(|name| find(name).map_or_else(none, |effect| cell(scope, effect, step.less_is_better)));
        Some(cells.collect())
    };
    let note = format!(
        "Rate at a level divided by the rate at the base's level ({}), over all combinations of the other \
         factors; for two factors (×), by what the ratio of the one changes when the other changes too.",
        scope.run.base
    );
    vec![explained(scope.by_step(("Effects", &note), &names, of_step), &of_ratios(scope))]
}

fn none() -> TableCell {
    absent("no block in which all of its variants are valid")
}

fn cell(scope: Scope<'_>, effect: &Effect, is_time: bool) -> TableCell {
    let cell = judged_cell(&effect.ratio, effect.verdict, None, is_time, scope.run);
    let stalled = (!effect.stalled.is_empty())
        .then(|| format!("without {}, in which a variant answered nothing", blocks_text(&effect.stalled)));
    let names: Vec<&str> = effect.missed.iter().map(String::as_str).collect();
    let missed = (!names.is_empty()).then(|| format!("{} did not keep the background rate", listed(&names)));
    TableCell { note: joined([Some(cell.note.clone()), stalled, missed]), ..cell }
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::{Ratio, Verdict};

    use super::*;
    use crate::fixture::{of_steps, pair};
    use crate::views::testing::scope;

    #[test]
    fn an_effect_says_which_variants_missed_their_writes() {
        let effect = Effect {
            name: "binlog: on against off".to_owned(),
            ratio: Ratio { value: 0.8, blocks: vec![(1, 0.8)], bound: None, inference: None },
            stalled: vec![2],
            missed: vec!["d".to_owned()],
            verdict: Some(Verdict::Undecided),
        };
        let with_effect = StepFindings { effects: vec![effect], ..pair("qr100", 1.0, 1) };
        let findings = of_steps(vec![pair("l.i0", 1.0, 1), with_effect]);
        let table = tables(scope(&findings)).remove(0);
        let note = "without block 2, in which a variant answered nothing; d did not keep the background rate";
        assert_eq!((table.rows[1][1].note.as_str(), table.rows[0][1].text.as_str()), (note, "n/a"));
    }
}
