//! Tables of a fleet: its machines with the figures measured on each, and the ratios by machine,
//! with one row per step and variant and one column per machine.

use dbdyno_analyse::{
    ByMachine, FarthestMachine, Findings, RunSummary, StepFindings, VariantStep, numbered, p_text,
};

use super::Scope;
use super::cells::{absent, number, ratio_cell};
use crate::document::{Column, Table, TableCell};
use crate::number::{fixed, rate};
use crate::words::table;

pub(super) fn tables(findings: &Findings) -> Vec<Table> {
    machines(&findings.run).into_iter().collect()
}

/// Makes the table. It is `None` for a run without a fleet.
pub(crate) fn machines(run: &RunSummary) -> Option<Table> {
    if run.calibrations.is_empty() {
        return None;
    }
    let has_client = run.calibrations.values().any(|found| found.client_statements_per_second.is_some());
    let mut table = table("machines").without(if has_client { &[] } else { &["client"] });
    for (name, found) in &run.calibrations {
        let blocks = run.machines.get(name).map_or(0, |blocks| blocks.len());
        let cells = [
            name.clone(),
            blocks.to_string(),
            rate(Some(found.cpu_operations_per_second / 1e6)),
            fixed(found.fsync_us.map(|us| us / 1e3), 3),
            rate(found.client_statements_per_second),
        ];
        let shown = table.columns.len();
        table.push(cells.into_iter().take(shown));
    }
    Some(table)
}

/// Makes the table. There is none for a run on one machine.
pub(super) fn by_machine(scope: Scope<'_>) -> Vec<Table> {
    let of_step = |step| StepFindings::by_machine(step).map(move |(variant, found)| (step, variant, found));
    let all: Vec<(&StepFindings, &VariantStep, &ByMachine)> = scope.steps().flat_map(of_step).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let has_odd = all.iter().any(|(.., found)| odd(found).is_some());
    let machines = scope
        .run
        .machines
        .iter()
        .map(|(name, blocks)| Column::new(name, &numbered(blocks.len(), "block"), ""));
    let p = Column::new(
        "p",
        "adjusted",
        "Probability of differences this large if all machines had the same ratio.",
    );
    let heads = machines.chain([p]).chain(has_odd.then(|| Column::words("odd")));
    let labels = vec![Column::new("step", "", ""), Column::new("variant", "", "")];
    let mut table = Table::new("By machine", &by_machine_note(scope, has_odd), labels, heads);
    for (step, variant, found) in all {
        let label = [step.name.as_str(), variant.variant.as_str()].map(TableCell::from);
        let ratios = scope.run.machines.iter().map(|(name, of)| cell(scope, step, found, name, of.len()));
        let p = match found.q_interaction {
            Some(q) => number(q, p_text(q)),
            None => absent("needs two machines with at least two blocks each"),
        };
        let odd = has_odd.then(|| TableCell::from(odd(found).map_or("", |odd| odd.machine.as_str())));
        table.push(label.into_iter().chain(ratios).chain([p]).chain(odd));
    }
    vec![table]
}

fn odd(found: &ByMachine) -> Option<&FarthestMachine> {
    found.farthest.as_ref().filter(|farthest| farthest.is_odd())
}

/// Returns the table cell with the ratio on a machine that measured `blocks` blocks.
fn cell(scope: Scope<'_>, step: &StepFindings, found: &ByMachine, machine: &str, blocks: usize) -> TableCell {
    let Some(own) = found.machines.iter().find(|own| own.machine == machine) else {
        return absent("no block in which both are valid");
    };
    let note =
        if own.blocks < blocks { format!("of {}", numbered(own.blocks, "block")) } else { String::new() };
    // Only the ratio over all blocks has a verdict and the verdict's colour.
    TableCell { note, ..ratio_cell(own.ratio, 2, step.less_is_better, scope.run.colours) }
}

fn by_machine_note(scope: Scope<'_>, has_odd: bool) -> String {
    let odd = if has_odd {
        " odd: the machine that differs from all others by more than the blocks scatter."
    } else {
        ""
    };
    format!(
        "Ratio to {} in the same block, geometric mean over the blocks of each machine. p: F test of machine × variant over the \
         machines with two blocks or more, adjusted over all steps and variants; below 0.05 the ratio depends on the machine.{odd} \
         Intervals of ratios are over the blocks of all machines, so they include the variation from machine to machine.",
        scope.run.base
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use dbdyno_analyse::MachineRatio;
    use dbdyno_record::HostCalibration;

    use super::*;
    use crate::fixture::{of_steps, pair};
    use crate::views::testing::{heads, rows, scope};

    #[test]
    fn each_machine_has_a_row_with_what_is_known_of_it() {
        let mut run = of_steps(Vec::new()).run;
        assert!(machines(&run).is_none());
        run.machines.insert("n1".to_owned(), BTreeSet::from([1, 3]));
        run.calibrations.insert(
            "n1".to_owned(),
            HostCalibration {
                cpu_operations_per_second: 2_512_345_678.0,
                fsync_us: Some(412.0),
                client_statements_per_second: None,
            },
        );
        assert_eq!(rows(&machines(&run).expect("one machine")), "n1 | 2 | 2,512 | 0.412");
    }

    fn ratios(machines: &[(&str, f64, usize)], q: Option<f64>) -> ByMachine {
        let of = |(machine, ratio, blocks): &(&str, f64, usize)| MachineRatio {
            machine: (*machine).to_owned(),
            ratio: *ratio,
            blocks: *blocks,
        };
        let machines = machines.iter().map(of).collect();
        ByMachine { machines, p_interaction: q, q_interaction: q, farthest: None }
    }

    #[test]
    fn each_machine_has_a_column_and_the_odd_one_is_named() {
        // The third machine is odd in the first step, and has no ratio in the second.
        let mut steps = vec![pair("l.i0", 1.0, 5), pair("l.x", 1.0, 5)];
        let farthest =
            FarthestMachine { machine: "n3".to_owned(), ratio: 0.7, others: 1.02, p: 0.001, q: 0.01 };
        let found = ratios(&[("n1", 1.02, 2), ("n2", 1.03, 2), ("n3", 0.7, 1)], Some(0.0004));
        steps[0].variants[1].to_base.by_machine = Some(ByMachine { farthest: Some(farthest), ..found });
        steps[1].variants[1].to_base.by_machine = Some(ratios(&[("n1", 0.99, 1), ("n2", 0.98, 2)], None));
        let mut findings = of_steps(steps);
        for (name, blocks) in [("n1", vec![1, 4]), ("n2", vec![2, 5]), ("n3", vec![3])] {
            findings.run.machines.insert(name.to_owned(), blocks.into_iter().collect());
        }
        let tables = by_machine(scope(&findings));
        let [table] = &tables[..] else { panic!("{tables:?}") };
        let expected = ["step", "variant", "n1 2 blocks", "n2 2 blocks", "n3 1 block", "p adjusted", "odd"];
        assert_eq!(heads(table), expected);
        insta::assert_snapshot!(rows(table), @r#"
        l.i0 | <b>&" | 1.02 | 1.03 | 0.70 | below 0.001 | n3
        l.x | <b>&" | 0.99 | 0.98 | n/a | n/a |
        "#);
        assert_eq!(table.rows[1][2].note, "of 1 block");
    }

    #[test]
    fn a_run_on_one_machine_has_no_such_table() {
        assert!(by_machine(scope(&of_steps(vec![pair("l.i0", 1.0, 5)]))).is_empty());
    }
}
