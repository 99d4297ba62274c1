//! How the servers executed the statements of a step.

use dbdyno_analyse::{StatementPlans, StepFindings};

use crate::document::{Column, Table};

pub(super) fn grid(step: &StepFindings) -> Table {
    let note = "EXPLAIN output of each server after the step, without costs, estimates and values. \
                Plans of different products are not comparable.";
    let labels = vec![
        Column::new("statement", "", ""),
        Column::new("variant", "", ""),
        Column::new("blocks", "", "Blocks in which the plan was this one."),
    ];
    let mut grid = Table::new("Query plans", note, labels, [Column::new("plan", "", "")]);
    let mut statements: Vec<&str> = Vec::new();
    for plans in step.variants.iter().flat_map(|variant| &variant.query_plans) {
        if !statements.contains(&plans.statement.as_str()) {
            statements.push(&plans.statement);
        }
    }
    for statement in statements {
        for variant in &step.variants {
            let of_statement = variant.query_plans.iter().filter(|plans| plans.statement == statement);
            for plans in of_statement {
                push(&mut grid, &variant.variant, plans);
            }
        }
    }
    grid
}

fn push(grid: &mut Table, variant: &str, plans: &StatementPlans) {
    for (text, blocks) in &plans.plans {
        let blocks: Vec<String> = blocks.iter().map(u32::to_string).collect();
        grid.push([plans.statement.clone(), variant.to_owned(), blocks.join(" "), text.clone()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn each_statement_has_the_plans_of_all_variants_below_each_other() {
        let grid = grid(&fixture::with_other_plans().workloads[0].steps[4]);
        let rows: Vec<String> = grid.rows.iter().map(|row| row.join(" | ")).collect();
        insta::assert_snapshot!(rows.join("\n"), @r#"
        range-pdc | rollback | 1 2 3 | Limit, then Index Only Scan using pi1_pdc on pi1
        range-pdc | <b>&" | 1 3 | Limit, then Sort, then Seq Scan on pi1
        range-pdc | <b>&" | 2 | Seq Scan on pi1
        "#);
    }

    #[test]
    fn plans_that_differ_at_their_end_are_whole() {
        let mut step = fixture::with_other_plans().workloads[0].steps[4].clone();
        let plan = format!("Limit, then {}Seq Scan on pi1", "Sort, then ".repeat(40));
        step.variants[0].query_plans[0].plans[0].0.clone_from(&plan);
        assert_eq!(grid(&step).rows[0][3].text, plan);
    }
}
