//! Tables of the statements that were sent to the servers, and of their execution: operations,
//! statements, look-ups, plans.

use dbdyno_analyse::{ExecutedPlan, StatementResult, StepFindings, unique};

use super::{of_runs, runs};
use crate::document::Table;
use crate::number::{NOT_AVAILABLE, count, duration_us, duration_whole_us, fixed, rate, seconds_text};
use crate::words::table;

/// Makes the table with each kind of operation: counts, arrivals, and failures by class.
pub(in crate::views) fn operations(step: &StepFindings) -> Table {
    let mut kinds = runs(step).flat_map(|(_, run)| &run.kinds);
    let several = kinds.any(|kind| kind.statements_per_second > 1.5 * kind.operations_per_second);
    let table = table("operations").without(if several { &[] } else { &["statements"] });
    of_runs(step, table, |run| {
        let row = run.kinds.iter().map(|kind| {
            let mut row = vec![kind.kind.clone(), kind.arrivals.clone()];
            row.extend([u64::from(kind.connections), kind.operations, kind.rows].map(count));
            row.extend([kind.operations_per_second, kind.rows_per_second].map(|value| rate(Some(value))));
            let errors = &kind.errors;
            let counts = [kind.failed, kind.dropped, errors.retry, errors.refused, errors.lost, errors.fatal];
            row.extend(counts.map(count));
            row.extend(several.then(|| rate(Some(kind.statements_per_second))));
            row
        });
        row.collect::<Vec<_>>()
    })
}

/// Makes the table with the look-ups of ids and the INSERT of `l.x`, which belong to no operation.
/// It has no rows where nothing was sent outside the operations.
pub(in crate::views) fn lookups(step: &StepFindings) -> Table {
    of_runs(step, table("look-ups"), |run| {
        let row = run.lookups.iter().map(|found| {
            let what = match found.name.as_str() {
                "min_id" => "lowest id, min()",
                "max_id" => "highest id, max()",
                "insert" => "INSERT before the indexes",
                other => other,
            };
            vec![
                what.to_owned(),
                count(found.count),
                fixed(Some(found.seconds), 3),
                fixed(Some(1000.0 * found.mean_seconds), 3),
                fixed(Some(1000.0 * found.max_seconds), 3),
            ]
        });
        row.collect::<Vec<_>>()
    })
}

/// Makes the table with the statements within operations, by kind: how many there were, how many
/// found no row, and how long each took.
pub(in crate::views) fn statements(step: &StepFindings) -> Table {
    of_runs(step, table("statements"), |run| {
        run.kinds.iter().flat_map(|kind| &kind.statements).map(statement).collect::<Vec<_>>()
    })
}

fn statement(found: &StatementResult) -> Vec<String> {
    let mut row = vec![found.statement.clone(), count(found.count), rate(Some(found.per_second))];
    // A statement that begins or ends a transaction looks for nothing.
    if ["begin", "commit"].contains(&found.statement.as_str()) || found.count == 0 {
        row.extend(["", "", ""].map(|_| NOT_AVAILABLE.to_owned()));
    } else {
        let share = 100.0 * found.empty as f64 / found.count as f64;
        row.extend([count(found.rows), count(found.empty), fixed(Some(share), 1)]);
    }
    let service = &found.service;
    if service.count == 0 {
        row.resize(row.len() + 5, NOT_AVAILABLE.to_owned());
        return row;
    }
    row.push(duration_us(service.mean_us));
    let times = [Some(service.p50_us), service.known_p95_us(), service.known_p99_us(), Some(service.max_us)];
    row.extend(times.map(|time| time.map_or(NOT_AVAILABLE.to_owned(), duration_whole_us)));
    row
}

/// Makes the table with the operators of executed queries. They are from the first block in which
/// the queries were executed once more for their plans. It has no rows where that was not done.
pub(in crate::views) fn operators(step: &StepFindings) -> Table {
    let mut grid = table("operators");
    for variant in &step.variants {
        let first = variant.executed_plans.first().map(|plan| plan.block);
        for plan in variant.executed_plans.iter().filter(|plan| Some(plan.block) == first) {
            push_operators(&mut grid, &variant.variant, plan);
        }
    }
    grid
}

fn push_operators(grid: &mut Table, variant: &str, plan: &ExecutedPlan) {
    let all: f64 = plan.operators.iter().filter_map(|operator| operator.own_seconds).sum();
    for operator in &plan.operators {
        let own = operator.own_seconds;
        let share = own.filter(|_| all > 0.0).map(|own| 100.0 * own / all);
        grid.push([
            plan.statement.clone(),
            variant.to_owned(),
            format!("{}{}", "· ".repeat(operator.depth), operator.name),
            own.map_or_else(|| "n/a".to_owned(), seconds_text),
            fixed(share, 1),
            operator.rows.map_or_else(|| "n/a".to_owned(), |rows| fixed(Some(rows), 0)),
            fixed(Some(operator.loops), 0),
        ]);
    }
}

/// Makes the table with the statements' EXPLAIN. The variants of a statement are below each other.
pub(in crate::views) fn query_plans(step: &StepFindings) -> Table {
    let mut grid = table("query-plans");
    let all = || {
        let variants = step.variants.iter();
        variants.flat_map(|variant| variant.query_plans.iter().map(move |plans| (variant, plans)))
    };
    for statement in unique(all().map(|(_, plans)| plans.statement.as_str())) {
        for (variant, plans) in all().filter(|(_, plans)| plans.statement == statement) {
            for (text, blocks) in &plans.plans {
                let blocks: Vec<String> = blocks.iter().map(u32::to_string).collect();
                grid.push([statement, &variant.variant, &blocks.join(" "), text]);
            }
        }
    }
    grid
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::{Latency, Lookups, StatementPlans};

    use super::*;
    use crate::fixture::pair;
    use crate::views::testing::rows;

    #[test]
    fn each_kind_of_look_up_has_a_row_of_its_own() {
        let mut step = pair("qr100", 1.0, 1);
        step.variants.truncate(1);
        step.variants[0].runs[0].lookups = vec![
            Lookups::of("min_id", &[99_800_000, 1_000]),
            Lookups::of("max_id", &[150; 2000]),
            Lookups::of("insert", &[2_500]),
        ];
        insta::assert_snapshot!(rows(&lookups(&step)), @"
        rollback | lowest id, min() | 2 | 99.801 | 49,900.500 | 99,800.000
        rollback | highest id, max() | 2,000 | 0.300 | 0.150 | 0.150
        rollback | INSERT before the indexes | 1 | 0.003 | 2.500 | 2.500
        ");
        step.variants[0].runs[0].lookups.clear();
        assert_eq!(lookups(&step).rows.len(), 0, "no look-up, no table");
    }

    fn row(statement: &str, empty: u64) -> String {
        let service = Latency {
            count: 200,
            mean_us: 104.5,
            p50_us: 90,
            p95_us: 310,
            p99_us: 1_520,
            max_us: 2_310_000,
            ..Latency::default()
        };
        let statement = statement.to_owned();
        super::statement(&StatementResult {
            statement,
            count: 200,
            empty,
            rows: 200 - empty,
            per_second: 20.0,
            service,
        })
        .join(" | ")
    }

    #[test]
    fn misses_are_counted_and_begin_and_commit_have_none() {
        insta::assert_snapshot!(row("delete", 50), @"delete | 200 | 20.0 | 150 | 50 | 25.0 | 104.5 µs | 90 µs | 310 µs | 1.52 ms | 2.31 s");
        insta::assert_snapshot!(row("commit", 200), @"commit | 200 | 20.0 | NA | NA | NA | 104.5 µs | 90 µs | 310 µs | 1.52 ms | 2.31 s");
    }

    fn plans(plans: &[(&str, &[u32])]) -> Vec<StatementPlans> {
        vec![StatementPlans {
            statement: "range-pdc".to_owned(),
            sql: "SELECT price FROM pi1 WHERE price >= 250 ORDER BY price LIMIT 10".to_owned(),
            form: "postgres".to_owned(),
            plans: plans.iter().map(|(text, blocks)| ((*text).to_owned(), blocks.to_vec())).collect(),
            is_explained: true,
        }]
    }

    #[test]
    fn each_statement_has_the_plans_of_all_variants_below_each_other() {
        let mut step = pair("qr100", 1.0, 3);
        step.variants[0].query_plans =
            plans(&[("Limit, then Index Only Scan using pi1_pdc on pi1", &[1, 2, 3])]);
        step.variants[1].query_plans =
            plans(&[("Limit, then Sort, then Seq Scan on pi1", &[1, 3]), ("Seq Scan on pi1", &[2])]);
        insta::assert_snapshot!(rows(&query_plans(&step)), @r#"
        range-pdc | rollback | 1 2 3 | Limit, then Index Only Scan using pi1_pdc on pi1
        range-pdc | <b>&" | 1 3 | Limit, then Sort, then Seq Scan on pi1
        range-pdc | <b>&" | 2 | Seq Scan on pi1
        "#);
    }

    #[test]
    fn plans_that_differ_at_their_end_are_whole() {
        let mut step = pair("qr100", 1.0, 1);
        let plan = format!("Limit, then {}Seq Scan on pi1", "Sort, then ".repeat(40));
        step.variants[0].query_plans = plans(&[(&plan, &[1])]);
        assert_eq!(query_plans(&step).rows[0][3].text, plan);
    }
}
