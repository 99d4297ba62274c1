//! Collects the query plans by which servers executed a step's statements, and finds where they
//! differ from the base's. Queries that were executed once more to measure them have operators,
//! each with its rows and its own time, without the operators below it.

use dbdyno_record::{QueryPlan, StepEvent, StepRecord};
use serde_json::Value;

use crate::model::{ExecutedPlan, Operator, PlanDifference, StatementPlans};
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
pub(crate) fn plan_differences(base: &[StatementPlans], variant: &[StatementPlans]) -> Vec<PlanDifference> {
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

/// A plan as short text, without the parts that differ from run to run: costs, row estimates and
/// values.
fn normal(plan: &QueryPlan) -> String {
    if let Some(error) = &plan.error {
        // Only the error code is kept, because the rest quotes the statement.
        return format!("not explained: error {}", error.split(':').next().unwrap_or_default());
    }
    plan_nodes(&plan.form, &plan.rows).join(", then ")
}

/// The executed plans in one variant's steps, which are given as (block, step).
pub(crate) fn executed_plans<'a>(steps: impl Iterator<Item = (u32, &'a StepRecord)>) -> Vec<ExecutedPlan> {
    let mut found = Vec::new();
    for (block, step) in steps {
        for event in &step.events {
            if let StepEvent::QueryPlan(plan) = event
                && plan.is_executed()
            {
                let operators = operators(plan);
                found.push(ExecutedPlan { statement: plan.statement.clone(), block, operators });
            }
        }
    }
    found
}

fn operators(plan: &QueryPlan) -> Vec<Operator> {
    let lines: Vec<&str> =
        plan.rows.iter().filter_map(|row| row.first()?.as_deref()).flat_map(str::lines).collect();
    let mut found = Vec::new();
    if plan.form == QueryPlan::EXECUTED_TREE {
        found.extend(lines.into_iter().filter_map(of_line));
        own_times(&mut found);
    } else if let Ok(json) = serde_json::from_str(&lines.concat()) {
        walk("", &json, 0, &mut found);
        own_times(&mut found);
    }
    // A depth read from the plan is a number of characters or of JSON levels. The next lines turn
    // it into a level among the operators.
    let mut above: Vec<usize> = Vec::new();
    for operator in &mut found {
        above.retain(|depth| *depth < operator.depth);
        above.push(operator.depth);
        operator.depth = above.len() - 1;
    }
    found
}

/// Subtracts from each operator's time those of the operators below it.
fn own_times(all: &mut [Operator]) {
    for at in 0..all.len() {
        let depth = all[at].depth;
        let below = all[at + 1..].iter().take_while(|below| below.depth > depth);
        let mut level = usize::MAX;
        let mut sum = 0.0;
        for operator in below {
            level = level.min(operator.depth);
            if operator.depth == level {
                sum += operator.total_seconds.unwrap_or(0.0);
            }
        }
        let own = all[at].total_seconds.map(|total| (total - sum).max(0.0));
        all[at].own_seconds = all[at].own_seconds.or(own);
    }
}

/// Reads one line of MySQL's or PostgreSQL's tree:
/// `  ->  Seq Scan on t  (cost=0.0..1.0 rows=9 width=4) (actual time=0.1..2.5 rows=6 loops=2)`.
fn of_line(line: &str) -> Option<Operator> {
    let text = line.trim_start();
    let (name, depth) = match text.strip_prefix("->") {
        Some(name) => (name.trim_start(), line.len() - text.len() + 1),
        None => (text, line.len() - text.len()),
    };
    let (_, actual) = line.split_once("(actual ").or_else(|| line.split_once("(never "))?;
    let figure = |key: &str| -> Option<f64> {
        let (_, rest) = actual.split_once(key)?;
        rest.split([' ', ')']).next()?.parse().ok()
    };
    let loops = figure("loops=").unwrap_or(0.0);
    let last_ms = actual
        .split_once("time=")
        .and_then(|(_, times)| times.split_once("..")?.1.split([' ', ')']).next()?.parse::<f64>().ok());
    let end = ["  (cost=", " (cost=", " (actual ", " (never "].iter().filter_map(|end| name.find(end)).min();
    Some(Operator {
        depth,
        name: name[..end.unwrap_or(name.len())].trim().to_owned(),
        rows: figure("rows=").map(|rows| rows * loops),
        loops,
        total_seconds: last_ms.map(|ms| ms * loops / 1e3),
        own_seconds: None,
    })
}

/// Reads MariaDB's JSON, in which what was executed has `r_loops`.
fn walk(key: &str, value: &Value, depth: usize, found: &mut Vec<Operator>) {
    match value {
        Value::Array(all) => all.iter().for_each(|value| walk(key, value, depth, found)),
        Value::Object(map) => {
            let number = |key: &str| map.get(key).and_then(Value::as_f64);
            let mut below = depth;
            if let Some(loops) = number("r_loops") {
                let text = |key: &str| map.get(key).and_then(Value::as_str);
                let what = key.replace('_', " ");
                let words = [Some(what.as_str()), text("table_name"), text("access_type"), text("key")];
                let of_table =
                    number("r_table_time_ms").map(|ms| ms + number("r_other_time_ms").unwrap_or(0.0));
                let rows = number("r_rows").map(|rows| rows * loops).or(number("r_output_rows"));
                found.push(Operator {
                    depth,
                    name: words.into_iter().flatten().collect::<Vec<_>>().join(" "),
                    rows,
                    loops,
                    total_seconds: of_table.or(number("r_total_time_ms")).map(|ms| ms / 1e3),
                    own_seconds: of_table.map(|ms| ms / 1e3),
                });
                below += 1;
            }
            map.iter().for_each(|(key, value)| walk(key, value, below, found));
        }
        _ => {}
    }
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
    fn a_plan_of_a_known_product_becomes_its_nodes_and_any_other_its_cells() {
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
        assert!(plan_differences(&base, &same).is_empty(), "one of its two plans is the base's");
        let other = plans(&[mysql("ALL", "NULL", "9", "Using where")]);
        let expected = PlanDifference {
            statement: "range".to_owned(),
            base: "index k_1 range".to_owned(),
            variant: "full scan".to_owned(),
        };
        assert_eq!(plan_differences(&base, &other), [expected]);
    }

    #[test]
    fn plans_that_cannot_be_compared_are_not() {
        let base = plans(&[mysql("range", "k_1", "99", "")]);
        assert!(plan_differences(&base, &plans(&[plan("sqlite", &[&["0", "0", "0", "SCAN t"]])])).is_empty());
        let refused = QueryPlan {
            rows: Vec::new(),
            error: Some("1064: EXPLAIN DELETE: you have an error".to_owned()),
            ..mysql("", "", "", "")
        };
        let refused = plans(&[refused]);
        assert_eq!(refused[0].plans[0].0, "not explained: error 1064");
        assert!(plan_differences(&base, &refused).is_empty());
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

    fn shown(form: &str, text: &str) -> String {
        let plan = QueryPlan {
            statement: "q3".to_owned(),
            sql: String::new(),
            form: form.to_owned(),
            rows: vec![vec![Some(text.to_owned())]],
            error: None,
        };
        let line = |operator: &Operator| {
            let Operator { depth, name, rows, loops, own_seconds, .. } = operator;
            let figures = format!("{rows:?} rows, {loops} loops, {:.4?} s", own_seconds.unwrap_or(-1.0));
            format!("{}{name}: {figures}", "  ".repeat(*depth))
        };
        operators(&plan).iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn trees_of_postgres_and_mysql_have_rows_of_all_loops_and_times_of_their_own() {
        let postgres = "Limit  (cost=1.0..2.0 rows=1 width=4) (actual time=9.500..10.000 rows=1 loops=1)\n  \
             ->  Nested Loop  (cost=0.0..1.0 rows=1 width=4) (actual time=0.1..9.000 rows=4 loops=1)\n        \
             ->  Seq Scan on a  (cost=0.0..1.0 rows=1 width=4) (actual time=0.1..2.000 rows=2 loops=1)\n              \
             Filter: (x > 1)\n        \
             ->  Index Scan using i on b  (cost=0.0..1.0 rows=1 width=4) (actual time=0.1..3.000 rows=2 loops=2)\n        \
             ->  Seq Scan on c  (cost=0.0..1.0 rows=1 width=4) (never executed)\n\
             Execution Time: 10.1 ms";
        insta::assert_snapshot!(shown("executed-tree", postgres), @r"
        Limit: Some(1.0) rows, 1 loops, 0.0010 s
          Nested Loop: Some(4.0) rows, 1 loops, 0.0010 s
            Seq Scan on a: Some(2.0) rows, 1 loops, 0.0020 s
            Index Scan using i on b: Some(4.0) rows, 2 loops, 0.0060 s
            Seq Scan on c: None rows, 0 loops, -1.0000 s
        ");
        let mysql = "-> Aggregate: sum(t.a)  (cost=1 rows=1) (actual time=2..2.5 rows=1 loops=1)\n    \
             -> Filter: (t.a < 3)  (cost=1 rows=3) (actual time=0.5..2 rows=3 loops=1)\n        \
             -> Table scan on t  (cost=1 rows=9) (actual time=0.5..1.5 rows=9 loops=1)\n";
        insta::assert_snapshot!(shown("executed-tree", mysql), @r"
        Aggregate: sum(t.a): Some(1.0) rows, 1 loops, 0.0005 s
          Filter: (t.a < 3): Some(3.0) rows, 1 loops, 0.0005 s
            Table scan on t: Some(9.0) rows, 1 loops, 0.0015 s
        ");
    }

    #[test]
    fn json_of_mariadb_has_its_tables_in_their_order() {
        let json = r#"{"query_block": {"select_id": 1, "r_loops": 1, "r_total_time_ms": 10.0, "nested_loop": [
            {"table": {"table_name": "orders", "access_type": "range", "key": "i_o_orderdate", "r_loops": 1, "r_rows": 5,
             "r_table_time_ms": 2.0, "r_other_time_ms": 1.0}},
            {"table": {"table_name": "lineitem", "access_type": "ref", "r_loops": 5, "r_rows": 4,
             "r_table_time_ms": 4.0, "r_other_time_ms": 2.0}}]}}"#;
        insta::assert_snapshot!(shown("executed-json", json), @r"
        query block: None rows, 1 loops, 0.0010 s
          table orders range i_o_orderdate: Some(5.0) rows, 1 loops, 0.0030 s
          table lineitem ref: Some(20.0) rows, 5 loops, 0.0060 s
        ");
    }
}
