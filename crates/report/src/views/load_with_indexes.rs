//! Table of one rate over the load and the building of its indexes, because published load rates
//! include both. It has one column per variant.

use dbdyno_analyse::statistics::describe::median;
use dbdyno_analyse::{
    OperationClass, StepFindings, StepRun, VariantStep, interval_of_blocks, pairs, ratio_of_blocks,
};

use super::cells::{absent, rate_cell, ratio_cell};
use super::{BY_THRESHOLD, Scope, explained};
use crate::document::{Table, TableCell};

/// Each block with its rate.
type Rates = Vec<(u32, f64)>;

/// Makes the table for the first step that inserts and is followed by one that builds indexes.
/// There is none without such a step.
pub(super) fn tables(scope: Scope<'_>) -> Vec<Table> {
    let steps: Vec<&StepFindings> = scope.steps().collect();
    let Some([load, index]) = steps.windows(2).find(|pair| is_load_with_index(pair)) else {
        return Vec::new();
    };
    let title = format!("{} and {} as one rate", load.name, index.name);
    let note = "Rows per second over both steps, as published load rates count them; the ratio is the geometric mean over the blocks.";
    let heads = load.variants.iter().map(|variant| variant.variant.as_str());
    let mut table = Table::new(&title, note, ["figure"], heads);
    let all = || load.variants.iter().map(|variant| (variant, rates(load, index, &variant.variant)));
    table.push(std::iter::once(TableCell::from("rows/s")).chain(all().map(|(_, rates)| median_cell(&rates))));
    if load.variants.len() > 1 {
        let of_base = rates(load, index, &scope.run.base);
        let ratios = all().map(|(variant, rates)| to_base(scope, variant, &rates, &of_base));
        table.push(std::iter::once(TableCell::from(format!("÷ {}", scope.run.base))).chain(ratios));
    }
    vec![explained(table, &BY_THRESHOLD)]
}

fn is_load_with_index(pair: &[&StepFindings]) -> bool {
    let classes = pair.iter().map(|step| step.headline_class);
    classes.eq([OperationClass::Insert, OperationClass::Index])
        && pair.iter().all(|step| !step.less_is_better)
}

/// Returns the rates of blocks in which both steps are valid. Both steps' rates are in rows per
/// second, so that a row takes the sum of both times.
fn rates(load: &StepFindings, index: &StepFindings, variant: &str) -> Rates {
    let of_block = |(load, index): (&StepRun, &StepRun)| {
        let rate = 1.0 / (1.0 / load.rate + 1.0 / index.rate);
        (rate > 0.0).then_some((load.block, rate))
    };
    pairs(load.runs_of(variant), index.runs_of(variant)).filter_map(of_block).collect()
}

fn median_cell(rates: &Rates) -> TableCell {
    let rates: Vec<f64> = rates.iter().map(|(_, rate)| *rate).collect();
    median(&rates).map_or_else(none, rate_cell)
}

fn to_base(scope: Scope<'_>, variant: &VariantStep, rates: &Rates, of_base: &Rates) -> TableCell {
    let ratio = |(block, rate): &(u32, f64)| {
        let (_, base) = of_base.iter().find(|(other, _)| other == block)?;
        Some((*block, rate / base))
    };
    let Some(ratio) = ratio_of_blocks(rates.iter().filter_map(ratio).collect()) else { return none() };
    let interval = interval_of_blocks(&ratio.blocks).filter(|_| variant.variant != scope.run.base);
    TableCell { interval, ..ratio_cell(ratio.value, 2, false, scope.run.colours) }
}

fn none() -> TableCell {
    absent("no block in which both are valid")
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::{Findings, Validity};

    use super::*;
    use crate::fixture::{NAMES, of_steps, step};
    use crate::views::testing::{rows, scope};

    /// Makes a load and its index build, with the rates of both variants in two blocks.
    fn findings(load: [[f64; 2]; 2], index: [[f64; 2]; 2]) -> Findings {
        let of = |name, class, rates: [[f64; 2]; 2]| StepFindings {
            headline_class: class,
            ..step(name, &[(NAMES[0], &rates[0]), (NAMES[1], &rates[1])])
        };
        let steps = [of("l.i0", OperationClass::Insert, load), of("l.x", OperationClass::Index, index)];
        of_steps(steps.to_vec())
    }

    fn texts(findings: &Findings) -> String {
        tables(scope(findings)).iter().map(rows).collect()
    }

    #[test]
    fn a_row_takes_the_time_of_the_load_and_of_the_index() {
        let findings = findings([[1_000.0; 2], [3_000.0; 2]], [[1_000.0; 2], [1_000.0; 2]]);
        assert_eq!(texts(&findings), "rows/s | 500 | 750\n÷ rollback | 1.00 | 1.50");
        let tables = tables(scope(&findings));
        assert_eq!(tables[0].title, "l.i0 and l.x as one rate");
        let intervals: Vec<bool> = tables[0].rows[1].iter().map(|cell| cell.interval.is_some()).collect();
        assert_eq!(intervals, [false, false, true], "of the base there is none");
    }

    #[test]
    fn a_block_counts_where_both_steps_are_valid() {
        let mut findings = findings([[1_000.0; 2], [3_000.0, 1_000.0]], [[1_000.0; 2], [1_000.0; 2]]);
        findings.workloads[0].steps[1].variants[1].runs[0].validity = Validity::Interrupted;
        assert_eq!(texts(&findings), "rows/s | 500 | 500\n÷ rollback | 1.00 | 1.00");
        findings.workloads[0].steps[0].variants[1].runs[1].validity = Validity::Interrupted;
        assert_eq!(texts(&findings), "rows/s | 500 | n/a\n÷ rollback | 1.00 | n/a");
    }

    #[test]
    fn without_a_step_that_builds_indexes_there_is_none() {
        let mut findings = findings([[5.0; 2]; 2], [[5.0; 2]; 2]);
        findings.workloads[0].steps[1].headline_class = OperationClass::Insert;
        assert!(texts(&findings).is_empty());
    }
}
