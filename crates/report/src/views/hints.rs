//! Table of queries with hints: the best hint compared with the optimiser's own choice.

use dbdyno_analyse::{Bound, MIN_SECONDS, StepFindings, VariantStep};
use dbdyno_model::Colours;

use super::Scope;
use super::cells::{bounded, headline_cell, ratio_cell, seconds_cell};
use crate::document::{Table, TableCell};
use crate::words::table;

/// Makes the table. There is none where no query has hints.
pub(super) fn tables(scope: Scope<'_>) -> Vec<Table> {
    let mut table = table("hints");
    for step in scope.steps().filter(|step| step.less_is_better) {
        let prefix = format!("{}.", step.name);
        let hinted: Vec<&StepFindings> =
            scope.steps().filter(|other| other.name.starts_with(&prefix)).collect();
        if !hinted.is_empty() {
            step.variants.iter().for_each(|own| table.push(row(step, own, &hinted, scope.run.colours)));
        }
    }
    if table.rows.is_empty() { Vec::new() } else { vec![table] }
}

fn row(step: &StepFindings, own: &VariantStep, hinted: &[&StepFindings], colours: Colours) -> Vec<TableCell> {
    let mut ended: Vec<(&str, f64)> = Vec::new();
    for other in hinted {
        let found = other.variant(&own.variant).filter(|found| !found.cut_off).and_then(|found| found.rate);
        ended.extend(found.map(|seconds| (other.name.as_str(), seconds)));
    }
    let best = ended.into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let none = || TableCell::from("n/a");
    let chosen = own.rate.map_or_else(none, |rate| headline_cell(step, rate, own.cut_off));
    let (name, seconds) = best.map_or(("none ended", none()), |(name, s)| (name, seconds_cell(s)));
    let ratio = match (best, own.rate) {
        (Some((_, best)), Some(rate)) if best.min(rate) >= MIN_SECONDS => {
            let (ratio, bound) = (best / rate, own.cut_off.then_some(Bound::LessThan));
            bounded(ratio_cell(ratio, 2, true, colours), ratio, bound)
        }
        _ => none(),
    };
    vec![
        TableCell::from(step.name.as_str()),
        TableCell::from(own.variant.as_str()),
        chosen,
        TableCell::from(name),
        seconds,
        ratio,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{NAMES, of_steps, step};
    use crate::views::testing::{rows, scope};

    #[test]
    fn the_best_of_several_hints_is_compared_with_the_choice_of_the_optimiser() {
        let of = |(name, seconds): (&str, f64)| StepFindings {
            less_is_better: true,
            ..step(name, &[(NAMES[0], &[seconds]), (NAMES[1], &[seconds])])
        };
        let mut steps = [("q3", 4.0), ("q3.order1", 3.0), ("q3.order2", 2.0)].map(of).to_vec();
        steps[2].variants[1].cut_off = true;
        steps[0].variants[1].cut_off = true;
        insta::assert_snapshot!(rows(&tables(scope(&of_steps(steps)))[0]), @r#"
        q3 | rollback | 4.00 | q3.order2 | 2.00 | 0.50
        q3 | <b>&" | > 4.00 | q3.order1 | 3.00 | < 0.75
        "#);
    }
}
