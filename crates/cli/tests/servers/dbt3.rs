//! DBT3 on real servers: all queries with the same answers, limits, cold steps, other plans, refresh functions.

use dbdyno_record::{Run, StepEvent};

use crate::support::{Desk, faults, findings};
use crate::{MARIADB_10_11, MYSQL_8_0, POSTGRES_16, variant};

const SQLITE: &str = "[[variant]]\nname = \"sqlite\"\nserver = \"sqlite\"\n";

fn plan(variants: &str, options: &str) -> String {
    format!(
        "name = \"test\"\n{variants}\n[workload.dbt3]\nscale_factor = 0.01\nsettle = {{ by = \"none\" }}\n{options}\n"
    )
}

fn every_product() -> String {
    variant("maria", MARIADB_10_11, "")
        + &variant("myisam", MARIADB_10_11, "engine = \"myisam\"")
        + &variant("mysql", MYSQL_8_0, "")
        + &variant("pg", POSTGRES_16, "")
        + SQLITE
}

/// Names of the executions of a step, and those that were cut off.
fn executed(run: &Run, cell: usize, step: &str) -> (Vec<String>, usize) {
    let step = run.cells[cell].steps.iter().find(|found| found.name == step).unwrap();
    let all: Vec<_> = step
        .events
        .iter()
        .filter_map(|event| match event {
            StepEvent::Execution(execution) => Some(execution.clone()),
            _ => None,
        })
        .collect();
    let cut_off = all.iter().filter(|execution| execution.cut_off).count();
    (all.into_iter().map(|execution| execution.name).collect(), cut_off)
}

#[test]
fn every_product_gives_the_same_answers_to_all_queries_and_refresh_functions_leave_as_many_rows() {
    let desk = Desk::new();
    let options = "parts = [\"queries\", \"power\", \"throughput\"]\n";
    desk.write("p.toml", &plan(&every_product(), options));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let findings = findings(&desk.run_dir());
    // Wrong row counts, wrong numbers of changed rows and unlike answers are faults.
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 5));
    let steps = &findings.workloads[0].steps;
    assert_eq!(steps.len(), 3 + 22 + 2);
    for step in steps {
        assert!(
            step.less_is_better && step.variants.iter().all(|variant| variant.rate.is_some()),
            "{}",
            step.name
        );
    }
    let run = Run::open(&desk.run_dir()).unwrap();
    for cell in 0..5 {
        assert_eq!(executed(&run, cell, "power").0.len(), 24);
        assert_eq!(executed(&run, cell, "throughput").0.len(), 2 * 22 + 4);
        let power = run.cells[cell].steps.iter().find(|step| step.name == "power").unwrap();
        let tables: Vec<&str> = power.checks().iter().map(|check| check.table.as_str()).collect();
        assert!(
            tables.contains(&"rf1") && tables.contains(&"rf2") && tables.contains(&"lineitem"),
            "{tables:?}"
        );
    }
}

#[test]
fn random_parameters_a_common_table_expression_and_other_join_orders_give_the_same_answers_too() {
    let desk = Desk::new();
    let options = "parameters = \"seed\"\nq15 = \"cte\"\nqueries = [3, 5, 15, 21]\nrepetitions = 3\n\
        join_orders = { q3 = [[\"lineitem\", \"orders\", \"customer\"]] }\n";
    desk.write("p.toml", &plan(&every_product(), options));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let findings = findings(&desk.run_dir());
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 5));
    let run = Run::open(&desk.run_dir()).unwrap();
    for cell in 0..5 {
        assert_eq!(executed(&run, cell, "q3.order1"), (vec!["q3".to_owned(); 3], 0));
    }
}

#[test]
fn a_query_that_is_cut_off_counts_as_longer_and_leaves_the_server_usable() {
    let desk = Desk::new();
    let variants = every_product();
    desk.write("p.toml", &plan(&variants, "queries = [1, 15]\ntime_limit = \"1ms\"\n"));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let findings = findings(&desk.run_dir());
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 5));
    let run = Run::open(&desk.run_dir()).unwrap();
    for cell in 0..5 {
        assert_eq!(executed(&run, cell, "q1"), (vec!["q1".to_owned()], 1));
    }
    let step = findings.workloads[0].steps.iter().find(|step| step.name == "q1").unwrap();
    assert!(step.variants.iter().all(|variant| variant.cut_off && variant.ratio.is_none()));
    let report = desk.dbdyno(&["report", desk.run_dir().to_str().unwrap(), "--format", "md"]);
    assert!(report.out.contains("| q1 | \\> ") && report.out.contains("both cut off"), "{}", report.out);
}

#[test]
fn a_cold_query_reads_from_storage_and_one_whose_caches_are_warm_does_not() {
    let desk = Desk::new();
    // A server of one's own would load all of it again.
    desk.write("all.cnf", "[mysqld]\ninnodb_buffer_pool_dump_pct = 100\n");
    let variants = variant("mysql", MYSQL_8_0, "my_cnf = \"all.cnf\"")
        + &variant("maria", MARIADB_10_11, "my_cnf = \"all.cnf\"")
        + &variant("pg", POSTGRES_16, "");
    desk.write("p.toml", &plan(&variants, "queries = [6, 1]\ncold = [\"q6\"]\nforeign_keys = true\n"));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let findings = findings(&desk.run_dir());
    assert_eq!(faults(&findings), [""; 0]);
    assert!(
        !findings.warnings.iter().any(|notice| notice.code == dbdyno_analyse::Code::NotCold),
        "{:?}",
        findings.warnings
    );
    for name in ["q6", "q1"] {
        let step = findings.workloads[0].steps.iter().find(|step| step.name == name).unwrap();
        for variant in &step.variants {
            let read_kib = variant.runs[0].cost.server_read_kib.unwrap();
            assert!(name == "q1" || read_kib > 1_000.0, "{name} {}: {read_kib} KiB", variant.variant);
        }
    }
}

#[test]
fn operators_are_counted_in_an_execution_of_its_own_and_a_given_index_is_used() {
    let desk = Desk::new();
    let variants = variant("maria", MARIADB_10_11, "") + &variant("mysql", MYSQL_8_0, "") + SQLITE;
    let options = "queries = [3, 6]\nanalyze = true\nindexes = { q6 = [\"i_l_shipdate\"] }\n";
    desk.write("p.toml", &plan(&variants, options));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let findings = findings(&desk.run_dir());
    assert_eq!(faults(&findings), [""; 0]);
    let steps = &findings.workloads[0].steps;
    let q3 = steps.iter().find(|step| step.name == "q3").unwrap();
    for variant in &q3.variants[..2] {
        let operators = &variant.executed_plans[0].operators;
        let read = operators.iter().filter(|operator| operator.rows.is_some_and(|rows| rows > 0.0));
        assert!(read.count() >= 3, "{}: {operators:?}", variant.variant);
        assert!(operators.iter().any(|operator| operator.own_seconds.is_some_and(|own| own > 0.0)));
        assert_eq!(variant.query_plans.len(), 1, "{}", variant.variant);
    }
    assert!(q3.variants[2].executed_plans.is_empty());
    let hinted = steps.iter().find(|step| step.name == "q6.i_l_shipdate").unwrap();
    for variant in &hinted.variants {
        let text = &variant.query_plans[0].plans[0].0;
        assert!(text.contains("i_l_shipdate"), "{}: {text}", variant.variant);
    }
    let report = desk.dbdyno(&["report", desk.run_dir().to_str().unwrap(), "--format", "md"]);
    assert!(report.out.contains("Hints") && report.out.contains("Operators"), "{}", report.out);
}

#[test]
fn a_planner_without_its_joins_has_another_plan() {
    let desk = Desk::new();
    desk.write("with.conf", "shared_buffers = 64MB\n");
    desk.write("without.conf", "shared_buffers = 64MB\nenable_hashjoin = off\nenable_mergejoin = off\n");
    let variants = variant("with", POSTGRES_16, "postgresql_conf = \"with.conf\"")
        + &variant("without", POSTGRES_16, "postgresql_conf = \"without.conf\"");
    desk.write("p.toml", &plan(&variants, "queries = [3, 6]\nanalyze = true\n"));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let findings = findings(&desk.run_dir());
    assert_eq!(faults(&findings), [""; 0]);
    let executed = &findings.workloads[0].steps.last().unwrap().variants[1].executed_plans[0].operators;
    assert!(executed.iter().any(|operator| operator.name.contains("lineitem")), "{executed:?}");
    let differences = |name: &str| {
        let step = findings.workloads[0].steps.iter().find(|step| step.name == name).unwrap();
        step.variants[1].beside.query_plans.len()
    };
    assert_eq!((differences("q3"), differences("q6")), (1, 0));
}
