//! How servers executed the statements of a step, and where that differs from the base.

use dbdyno_record::{QueryPlan, StepEvent, StepRecord};

use crate::model::{PlanDifference, StatementPlans};

/// The plans of the steps of one variant, as (block, step), in the statements' order.
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

/// Statements of which the two have no plan in common.
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

/// A plan in few words, without what differs from run to run: costs, estimates of rows, values.
fn normal(plan: &QueryPlan) -> String {
    if let Some(error) = &plan.error {
        // The code; the rest quotes the statement.
        return format!("not explained: error {}", error.split(':').next().unwrap_or_default());
    }
    let lines: Vec<String> = match plan.form.as_str() {
        "mysql" => plan.rows.iter().map(|row| mysql_row(row, plan.rows.len() > 1)).collect(),
        "sqlite" => plan.rows.iter().filter_map(|row| sqlite_row(row)).collect(),
        "postgres" => plan.rows.iter().filter_map(|row| postgres_row(row)).collect(),
        _ => plan.rows.iter().map(|row| joined(row)).collect(),
    };
    lines.join(", then ")
}

fn joined(row: &[Option<String>]) -> String {
    row.iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect::<Vec<_>>().join(" ")
}

/// Places of table, access type, key and remarks among the columns of EXPLAIN: MySQL 5.7 added
/// `partitions` and `filtered`.
fn mysql_places(columns: usize) -> Option<[usize; 4]> {
    match columns {
        10 => Some([2, 3, 5, 9]),
        12 => Some([2, 4, 6, 11]),
        _ => None,
    }
}

/// `index k_1 range, covering`; of a join, where the order of tables is a part of the plan, with
/// the table: `orders: ...`.
fn mysql_row(row: &[Option<String>], is_join: bool) -> String {
    let Some(places) = mysql_places(row.len()) else { return joined(row) };
    let [table, access, key, extra] = places.map(|place| row[place].as_deref().unwrap_or_default());
    let index = match key {
        "" => String::new(),
        "PRIMARY" => "primary key ".to_owned(),
        key => format!("index {key} "),
    };
    let how = match access {
        "ALL" => "full scan".to_owned(),
        "index" => format!("{index}full scan"),
        "range" | "index_merge" => format!("{index}{}", access.replace('_', " ")),
        "const" | "system" | "eq_ref" => format!("{index}one row"),
        "ref" | "ref_or_null" => format!("{index}lookup"),
        "" if table.is_empty() => "no table".to_owned(),
        other => format!("{index}{other}"),
    };
    let remarks =
        MYSQL_REMARKS.iter().filter(|(words, _)| extra.split(';').any(|part| part.trim().starts_with(words)));
    // `Using index condition` begins with the same words.
    let covering = extra.split(';').any(|part| part.trim() == "Using index").then(|| "covering".to_owned());
    let words = std::iter::once(how)
        .chain(covering)
        .chain(remarks.map(|(_, short)| (*short).to_owned()))
        .collect::<Vec<_>>()
        .join(", ");
    if is_join && !table.is_empty() { format!("{table}: {words}") } else { words }
}

/// Remarks that are work of their own. `Using where` says only that rows are filtered, and versions
/// differ in when they say it.
const MYSQL_REMARKS: [(&str, &str); 11] = [
    ("Using index condition", "index condition"),
    ("Using index for group-by", "loose scan"),
    ("Using MRR", "multi-range read"),
    ("Rowid-ordered scan", "multi-range read"),
    ("Using rowid filter", "rowid filter"),
    ("Using temporary", "temporary table"),
    ("Using filesort", "sort"),
    ("Using join buffer", "join buffer"),
    ("Using union", "union of indexes"),
    ("Using intersect", "intersection of indexes"),
    ("Using sort_union", "union of indexes"),
];

/// The last column of EXPLAIN QUERY PLAN; before 3.36 it says `TABLE` before a table's name, and
/// once gave estimates.
fn sqlite_row(row: &[Option<String>]) -> Option<String> {
    let detail = row.last()?.as_deref()?.replace(" TABLE ", " ");
    Some(detail.split(" (~").next().unwrap_or_default().to_owned())
}

/// Nodes of the plan; conditions, which hold the values, are left out.
fn postgres_row(row: &[Option<String>]) -> Option<String> {
    let line = row.first()?.as_deref()?;
    match line.trim_start().strip_prefix("->") {
        Some(node) => Some(node.trim().to_owned()),
        // The first node is without an arrow, and without an indent.
        None => (!line.starts_with(' ')).then(|| line.trim().to_owned()),
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

    #[test]
    fn mysql_plans_of_both_shapes_say_the_same() {
        let old = mysql("range", "k_1", "99", "Using where; Using index");
        let row: &[&str] = &[
            "1",
            "SIMPLE",
            "t",
            "NULL",
            "range",
            "k_1",
            "k_1",
            "4",
            "NULL",
            "101",
            "100.00",
            "Using where; Using index",
        ];
        assert_eq!(normal(&old), "index k_1 range, covering");
        assert_eq!(normal(&plan("mysql", &[row])), normal(&old));
        assert_eq!(normal(&mysql("ALL", "NULL", "9", "Using where; Using filesort")), "full scan, sort");
        assert_eq!(normal(&mysql("const", "PRIMARY", "1", "NULL")), "primary key one row");
        assert_eq!(
            normal(&mysql("ref", "k_1", "1", "Using index condition")),
            "index k_1 lookup, index condition"
        );
    }

    #[test]
    fn postgres_plans_are_their_nodes() {
        let found = plan(
            "postgres",
            &[
                &["Limit"],
                &["  ->  Index Only Scan using pi1_pdc on pi1"],
                &["        Index Cond: (price >= 250)"],
            ],
        );
        assert_eq!(normal(&found), "Limit, then Index Only Scan using pi1_pdc on pi1");
    }

    #[test]
    fn sqlite_plans_of_all_versions_say_the_same() {
        let new = plan("sqlite", &[&["3", "0", "0", "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)"]]);
        let old = plan(
            "sqlite",
            &[&["0", "0", "0", "SEARCH TABLE t USING INTEGER PRIMARY KEY (rowid=?) (~1 rows)"]],
        );
        assert_eq!(normal(&new), "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)");
        assert_eq!(normal(&new), normal(&old));
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
