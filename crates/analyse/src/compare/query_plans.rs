//! How servers executed a step's statements (query plans), and where that differs from the base.

use dbdyno_record::{QueryPlan, StepEvent, StepRecord};

use crate::model::{PlanDifference, StatementPlans};
use crate::parity::plan_nodes;

/// The plans in one variant's steps, which are given as (block, step). They are in the statements'
/// order.
pub(crate) fn plans_of<'a>(steps: impl Iterator<Item = (u32, &'a StepRecord)>) -> Vec<StatementPlans> {
    let mut found: Vec<StatementPlans> = Vec::new();
    for (block, step) in steps {
        let mut recorded: Vec<&QueryPlan> = Vec::new();
        for event in &step.events {
            if let StepEvent::QueryPlan(plan) = event
                && !plan.is_executed()
            {
                recorded.push(plan);
            }
        }
        for (at, plan) in recorded.iter().enumerate() {
            let earlier = recorded[..at].iter().filter(|other| other.statement == plan.statement).count();
            let several = recorded.iter().filter(|other| other.statement == plan.statement).count() > 1;
            let name =
                if several { format!("{} {}", plan.statement, earlier + 1) } else { plan.statement.clone() };
            add(&mut found, name, plan, block);
        }
    }
    found
}

fn add(found: &mut Vec<StatementPlans>, statement: String, plan: &QueryPlan, block: u32) {
    let at = found.iter().position(|known| known.statement == statement).unwrap_or_else(|| {
        let (sql, form) = (plan.sql.clone(), plan.form.clone());
        found.push(StatementPlans { statement, sql, form, plans: Vec::new(), is_explained: true });
        found.len() - 1
    });
    found[at].is_explained &= plan.error.is_none();
    let (plans, text) = (&mut found[at].plans, normal(plan));
    match plans.iter_mut().find(|(known, _)| *known == text) {
        Some((_, blocks)) => blocks.push(block),
        None => plans.push((text, vec![block])),
    }
}

/// Statements for which the two have no plan in common.
pub(crate) fn differences(base: &[StatementPlans], variant: &[StatementPlans]) -> Vec<PlanDifference> {
    let of = |new: &StatementPlans| {
        let old = base.iter().find(|old| old.statement == new.statement && old.form == new.form)?;
        let is_known =
            |plans: &[(String, Vec<u32>)], text: &str| plans.iter().any(|(known, _)| known == text);
        let differs = old.is_explained
            && new.is_explained
            && !new.plans.iter().any(|(text, _)| is_known(&old.plans, text));
        differs.then(|| PlanDifference {
            statement: new.statement.clone(),
            base: text(&old.plans),
            variant: text(&new.plans),
        })
    };
    variant.iter().filter_map(of).collect()
}

fn text(plans: &[(String, Vec<u32>)]) -> String {
    plans.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>().join(" or ")
}

/// A plan in few words, without what differs from run to run: costs, row estimates, values.
fn normal(plan: &QueryPlan) -> String {
    if let Some(error) = &plan.error {
        // Only the error code is kept, because the rest quotes the statement.
        return format!("not explained: error {}", error.split(':').next().unwrap_or_default());
    }
    plan_nodes(&plan.form, &plan.rows).join(", then ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::load_step;

    fn plan(form: &str, rows: &[&[&str]]) -> QueryPlan {
        let cell = |cell: &&str| (*cell != "NULL").then(|| (*cell).to_owned());
        QueryPlan {
            statement: "range".to_owned(),
            sql: "SELECT c FROM t WHERE id=5".to_owned(),
            form: form.to_owned(),
            rows: rows.iter().map(|row| row.iter().map(cell).collect()).collect(),
            error: None,
        }
    }

    fn mysql(access: &str, key: &str, rows: &str, extra: &str) -> QueryPlan {
        plan("mysql", &[&["1", "SIMPLE", "t", access, "PRIMARY,k_1", key, "4", "NULL", rows, extra]])
    }

    fn plans(by_block: &[QueryPlan]) -> Vec<StatementPlans> {
        let steps: Vec<StepRecord> = by_block
            .iter()
            .map(|plan| {
                let mut step = load_step(100);
                step.events.push(StepEvent::QueryPlan(plan.clone()));
                step
            })
            .collect();
        plans_of((1..).zip(&steps))
    }

    #[test]
    fn a_plan_of_a_product_is_its_nodes_and_one_of_no_product_its_cells() {
        let postgres = plan("postgres", &[&["Limit"], &["  ->  Seq Scan on t"]]);
        assert_eq!(normal(&postgres), "Limit, then Seq Scan on t");
        let unknown = plan("other", &[&["1", "NULL"], &["2", "t"]]);
        assert_eq!(normal(&unknown), "1 NULL, then 2 t");
        assert_eq!(normal(&plan("", &[&["1"]])), "1");
    }

    #[test]
    fn plans_that_differ_are_named_and_estimates_are_no_difference() {
        let base = plans(&[mysql("range", "k_1", "99", "Using where"), mysql("range", "k_1", "7", "")]);
        assert_eq!(base[0].plans, [("index k_1 range".to_owned(), vec![1, 2])]);
        let same = plans(&[mysql("ALL", "NULL", "9", ""), mysql("range", "k_1", "101", "")]);
        assert!(differences(&base, &same).is_empty(), "one of its two plans is the base's");
        let other = plans(&[mysql("ALL", "NULL", "9", "Using where")]);
        let expected = PlanDifference {
            statement: "range".to_owned(),
            base: "index k_1 range".to_owned(),
            variant: "full scan".to_owned(),
        };
        assert_eq!(differences(&base, &other), [expected]);
    }

    #[test]
    fn what_cannot_be_compared_is_not() {
        let base = plans(&[mysql("range", "k_1", "99", "")]);
        assert!(differences(&base, &plans(&[plan("sqlite", &[&["0", "0", "0", "SCAN t"]])])).is_empty());
        let refused = QueryPlan {
            rows: Vec::new(),
            error: Some("1064: EXPLAIN DELETE: you have an error".to_owned()),
            ..mysql("", "", "", "")
        };
        let refused = plans(&[refused]);
        assert_eq!(refused[0].plans[0].0, "not explained: error 1064");
        assert!(differences(&base, &refused).is_empty());
    }

    #[test]
    fn statements_of_the_same_name_are_numbered() {
        let mut step = load_step(100);
        for access in ["range", "ALL"] {
            step.events.push(StepEvent::QueryPlan(mysql(access, "NULL", "1", "")));
        }
        let found = plans_of(std::iter::once((1, &step)));
        let names: Vec<&str> = found.iter().map(|plans| plans.statement.as_str()).collect();
        assert_eq!(names, ["range 1", "range 2"]);
    }
}
