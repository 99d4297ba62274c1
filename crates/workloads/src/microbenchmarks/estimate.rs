//! Forecasts the microbenchmarks. Exact: steps with a length. All else is guessed.

use std::time::Duration;

use dbdyno_plan::{Forecast, Size, StepEstimate, grouped, numbered};

use crate::microbenchmarks::options::{MicroLength, MicroRung, Microbenchmarks};
use crate::oltp::estimate::{OPERATION, ROW_READ, checks, table_bytes, table_steps, with_warm_up};

pub(crate) fn estimate(options: &Microbenchmarks, size: &Size) -> Forecast {
    let tables = options.tables_part();
    let mut steps = table_steps(&tables);
    let rungs = options.rungs();
    let settle = options.settling();
    let loaded_bytes = table_bytes(&tables, size, Duration::ZERO);
    let data_bytes = loaded_bytes.saturating_sub(size.log_bytes);
    let mut before: Option<&MicroRung> = None;
    for rung in &rungs {
        if options.settles_between(before, Some(rung)) {
            // By its name, the rest after the load can be left out of later blocks.
            let is_again = steps.iter().any(|step| step.name == "settle");
            let name = if is_again { "settle again" } else { "settle" };
            let before = format!("before {}", rung.name);
            steps.push(settle.forecast(name, &before, options.original_wait(), data_bytes));
        }
        steps.push(rung_estimate(options, rung));
        before = Some(rung);
    }
    let writing = rungs.iter().filter(|rung| rung.step.test.writes());
    steps.extend(checks(options.verify, writing.clone().count(), options.loaded_rows()));
    let written = writing.map(|rung| options.length(&rung.step).unwrap_or_default()).sum();
    Forecast { disk_bytes: table_bytes(&tables, size, written), loaded_bytes, steps }
}

fn rung_estimate(options: &Microbenchmarks, rung: &MicroRung) -> StepEstimate {
    let on = format!("on {}", numbered(rung.connections, "connection"));
    if let Some(length) = options.length(&rung.step) {
        let warm_up = options.warmup_of(&rung.step);
        let detail = format!("{} {on}", with_warm_up(warm_up, length));
        return StepEstimate::new(&rung.name, &detail, warm_up + length);
    }
    let of = |detail: &str| StepEstimate::new(&rung.name, detail, Duration::ZERO);
    match options.operations {
        // One scan of each table, whatever the plan's operations are.
        Some(operations) if rung.step.length != MicroLength::OneScan => {
            let detail = format!("{} operations {on}", grouped(operations));
            of(&detail).and(OPERATION, operations as f64, rung.connections)
        }
        // Each connection has a table of its own to scan.
        _ => {
            let rows = options.table_size as f64 * f64::from(rung.connections);
            of(&format!("each table once {on}")).and(ROW_READ, rows, rung.connections)
        }
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_plan::{Basis, estimate};

    use crate::plans::parse;

    #[test]
    fn steps_take_their_time_and_pauses_are_where_the_original_has_them() {
        let plan = parse(
            "name = \"p\"\n[[variant]]\nname = \"a\"\nserver = \"mariadb-10.11\"\n[workload.microbenchmarks]\n\
             table_size = 1_000_000\nsettle_wait = \"original\"\nsteps = [\"point-query*\", \"update-*\", \"scan\"]\n",
            "test.toml",
        )
        .unwrap_or_else(|error| panic!("{error}"));
        let estimate = estimate(&plan, &Basis::default());
        let line =
            |step: &super::StepEstimate| format!("{} | {} | {:.1?}\n", step.name, step.detail, step.duration);
        let table: String = estimate.cells[0].steps.iter().map(line).collect();
        insta::assert_snapshot!(table, @r"
        prepare | server and tables | 3.5s
        load | 1,000,000 rows | 1.3s
        index | 1 index on 1,000,000 rows | 1.1s
        point-query.warm | 5s warm-up and 10m on 1 connection | 605.0s
        settle | cleanup and pause before point-query.pre | 61.0s
        point-query.pre | 5s warm-up and 10m on 1 connection | 605.0s
        update-inlist | 5s warm-up and 15m on 1 connection | 905.0s
        update-index | 5s warm-up and 15m on 1 connection | 905.0s
        update-nonindex | 5s warm-up and 15m on 1 connection | 905.0s
        update-one | 5s warm-up and 15m on 1 connection | 905.0s
        update-zipf | 5s warm-up and 15m on 1 connection | 905.0s
        settle again | cleanup and pause before point-query | 61.0s
        point-query | 5s warm-up and 10m on 1 connection | 605.0s
        scan | each table once on 1 connection | 630.0ms
        verify | 6 checks of 1,000,000 rows | 3.6s
        ");
    }

    #[test]
    fn steps_that_end_with_their_operations_say_so_but_the_one_scan_of_each_table() {
        let detail = |sequence: &str| {
            let plan = parse(
                &format!(
                    "name = \"p\"\n[[variant]]\nname = \"a\"\nserver = \"mariadb-10.11\"\n[workload.microbenchmarks]\n\
                     table_size = 1000\ntables = 2\noperations = 200\nsteps = [\"scan\", \"delete\"]\nsequence = \"{sequence}\"\n"
                ),
                "test.toml",
            );
            let estimate = estimate(&plan.unwrap_or_else(|error| panic!("{error}")), &Basis::default());
            let steps =
                estimate.cells[0].steps.iter().filter(|step| ["scan", "delete"].contains(&&*step.name));
            steps.map(|step| format!("{}: {}", step.name, step.detail)).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(
            detail("42"),
            "scan: each table once on 2 connections; delete: 200 operations on 1 connection"
        );
        assert_eq!(
            detail("32"),
            "scan: 200 operations on 1 connection; delete: 200 operations on 1 connection"
        );
    }
}
