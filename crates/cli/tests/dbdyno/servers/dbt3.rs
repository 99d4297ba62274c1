//! Tests DBT3 on real servers: the same answers to all queries, limits, cold steps, different
//! plans, and refresh functions.

use std::path::Path;

use dbdyno_db::{Address, Options};
use dbdyno_record::{Interval, Outcome, Run, StepEvent};

use crate::servers::life::{DISK_FULL, with_a_disk_that_fills};
use crate::servers::postgres::number;
use crate::servers::shared;
use crate::servers::watch::{ask, postgres_socket_of, server_of, socket_of};
use crate::servers::{MARIADB_10_11, MYSQL_8_0, POSTGRES_16, variant};
use crate::support::{Desk, faults, findings, texts, wait_for};

const SQLITE: &str = "[[variant]]\nname = \"sqlite\"\nserver = \"sqlite\"\n";

fn plan(variants: &str, options: &str) -> String {
    format!(
        "name = \"test\"\n{variants}\n[workload.dbt3]\nscale_factor = 0.01\nsettle = {{ by = \"none\" }}\n{options}\n"
    )
}

/// A server that does not wait for its disk, because an index build would spend most of its time on
/// that. Durability does not matter, because data directories do not outlive a cell.
fn quick(desk: &Desk, name: &str, prefix: &str, more: &str) -> String {
    let text = match prefix {
        POSTGRES_16 => "shared_buffers = 64MB\nfsync = off\n",
        _ => {
            "[mysqld]\ninnodb_flush_method = nosync\ninnodb_doublewrite = 0\nsync_binlog = 0\n\
             innodb_flush_log_at_trx_commit = 0\n"
        }
    };
    desk.write(&format!("{name}.conf"), text);
    variant(name, prefix, &format!("own_config = \"{name}.conf\"\n{more}"))
}

/// One variant of each product.
fn every_product(desk: &Desk) -> String {
    quick(desk, "maria", MARIADB_10_11, "")
        + &quick(desk, "mysql", MYSQL_8_0, "")
        + &quick(desk, "pg", POSTGRES_16, "")
        + SQLITE
}

/// The names of a step's executions, and the number of those that were cut off.
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
fn every_product_gives_the_same_answers_to_queries() {
    let desk = Desk::new();
    desk.write("p.toml", &plan(&(shared::on_all() + SQLITE), ""));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let findings = findings(&desk.run_dir());
    // Wrong row counts and different answers are reported as faults.
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 4));
    assert!(findings.workloads[0].steps.iter().filter(|step| step.name.starts_with('q')).count() == 22);
}

#[test]
#[ignore = "in cargo xtask test --all: other versions, full disks"]
fn every_product_gives_the_same_answers_to_all_queries_and_refresh_functions_leave_as_many_rows() {
    let desk = Desk::new();
    let options = "parts = [\"queries\", \"power\", \"throughput\"]\n";
    let variants =
        every_product(&desk) + &quick(&desk, "myisam", MARIADB_10_11, "options.engine = \"myisam\"");
    desk.write("p.toml", &plan(&variants, options));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let findings = findings(&desk.run_dir());
    // Wrong row counts, wrong numbers of changed rows and different answers are reported as faults.
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 5));
    let steps = &findings.workloads[0].steps;
    assert_eq!(steps.len(), 3 + 22 + 2);
    for step in steps {
        // A short run may be invalid because the machine had no CPU for the client.
        let mut runs = step.variants.iter().flat_map(|variant| &variant.runs);
        assert!(step.less_is_better && runs.all(|run| run.rate > 0.0), "{}", step.name);
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
#[ignore = "in cargo xtask test --all: other versions, full disks"]
fn a_query_that_is_cut_off_counts_as_longer_and_leaves_the_server_usable() {
    let desk = Desk::new();
    // The query takes far longer than the limit, so that it is still running even if the client
    // wakes late.
    let text = plan(&every_product(&desk), "queries = [1, 15]\ntime_limit = \"1ms\"\n");
    desk.write("p.toml", &text.replace("scale_factor = 0.01", "scale_factor = 0.05"));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let findings = findings(&desk.run_dir());
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 4));
    let run = Run::open(&desk.run_dir()).unwrap();
    for cell in 0..4 {
        assert_eq!(executed(&run, cell, "q1"), (vec!["q1".to_owned()], 1));
    }
    let step = findings.workloads[0].steps.iter().find(|step| step.name == "q1").unwrap();
    assert!(step.variants.iter().all(|variant| variant.cut_off && variant.to_base.ratio.is_none()));
    let report = desk.dbdyno(&["report", desk.run_dir().to_str().unwrap(), "--format", "md"]);
    assert!(report.out.contains("| q1 | \\> ") && report.out.contains("both cut off"), "{}", report.out);
}

#[test]
#[ignore = "in cargo xtask test --all: other versions, full disks"]
fn a_cold_query_reads_from_storage_and_one_whose_caches_are_warm_does_not() {
    let desk = Desk::new();
    // A server that dbdyno starts would load all of its buffer pool again.
    desk.write(
        "all.cnf",
        "[mysqld]\ninnodb_buffer_pool_dump_pct = 100\ninnodb_flush_log_at_trx_commit = 0\nsync_binlog = 0\n",
    );
    let variants = variant("mysql", MYSQL_8_0, "own_config = \"all.cnf\"")
        + &variant("maria", MARIADB_10_11, "own_config = \"all.cnf\"")
        + &variant("pg", POSTGRES_16, "");
    desk.write("p.toml", &plan(&variants, "queries = [6, 1]\ncold = [\"q6\"]\nforeign_keys = true\n"));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let findings = findings(&desk.run_dir());
    assert_eq!(faults(&findings), [""; 0]);
    assert!(
        !findings.warnings.iter().any(|warning| warning.code == dbdyno_analyse::Code::NotCold),
        "{:?}",
        findings.warnings
    );
    // For a query that ends between two samples, the bytes read are unknown. No such query reads
    // all of its data from storage.
    let step = findings.workloads[0].steps.iter().find(|step| step.name == "q6").unwrap();
    for variant in &step.variants {
        let read_kib = variant.runs[0].cost.server_read_kib;
        assert!(read_kib.is_none_or(|kib| kib > 1_000.0), "{}: {read_kib:?} KiB", variant.variant);
    }
    assert!(step.variants.iter().any(|variant| variant.runs[0].cost.server_read_kib.is_some()));
}

/// Parameters are random, q15 has a common table expression, and each query is sent three times.
const VARIED: &str = "parameters = \"seed\"\nq15 = \"cte\"\nrepetitions = 3\nanalyze = true\n\
    join_orders = { q3 = [[\"lineitem\", \"orders\", \"customer\"]] }\n";

#[test]
#[ignore = "in cargo xtask test --all: other versions, full disks"]
fn operators_are_counted_in_executions_of_their_own_and_hints_give_the_same_answers() {
    let desk = Desk::new();
    let variants = quick(&desk, "maria", MARIADB_10_11, "") + &quick(&desk, "mysql", MYSQL_8_0, "") + SQLITE;
    let options = "queries = [3, 6, 15]\nindexes = { q6 = [\"i_l_shipdate\"] }\n";
    desk.write("p.toml", &plan(&variants, &format!("{VARIED}{options}")));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let findings = findings(&desk.run_dir());
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 3));
    let run = Run::open(&desk.run_dir()).unwrap();
    assert!((0..3).all(|cell| executed(&run, cell, "q3.order1") == (vec!["q3".to_owned(); 3], 0)));
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
#[ignore = "in cargo xtask test --all: other versions, full disks"]
fn a_planner_without_its_joins_has_another_plan_and_the_same_answers() {
    let desk = Desk::new();
    desk.write("with.conf", "fsync = off\n");
    desk.write("without.conf", "fsync = off\nenable_hashjoin = off\nenable_mergejoin = off\n");
    let variants = variant("with", POSTGRES_16, "own_config = \"with.conf\"")
        + &variant("without", POSTGRES_16, "own_config = \"without.conf\"");
    desk.write("p.toml", &plan(&variants, &format!("{VARIED}queries = [3, 15, 6]\n")));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let findings = findings(&desk.run_dir());
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 2));
    let executed = &findings.workloads[0].steps.last().unwrap().variants[1].executed_plans[0].operators;
    assert!(executed.iter().any(|operator| operator.name.contains("lineitem")), "{executed:?}");
    let differences = |name: &str| {
        let step = findings.workloads[0].steps.iter().find(|step| step.name == name).unwrap();
        step.variants[1].context.query_plans.len()
    };
    assert_eq!((differences("q3"), differences("q6")), (1, 0));
}

/// Waits until an execution of q1 has ended in the cell of `variant`, whichever cell runs first.
/// Returns the process id of that cell's server.
fn in_mid_query(dir: &Path, variant: &str) -> u32 {
    let q1 = dir.join(format!("cells/1/{variant}/dbt3/q1/intervals.jsonl"));
    let is_over = |line: &str| serde_json::from_str(line).is_ok_and(|interval: Interval| interval.done > 0);
    let text = || std::fs::read_to_string(&q1).unwrap_or_default();
    wait_for("an execution of q1", || text().lines().any(is_over).then_some(()));
    server_of(dir, variant).pid.unwrap()
}

#[test]
#[ignore = "in cargo xtask test --all: other versions, full disks"]
fn a_connection_that_is_lost_in_a_query_ends_its_cell_with_the_reason_and_the_rest_goes_on() {
    let desk = Desk::new();
    let variants = quick(&desk, "maria", MARIADB_10_11, "") + &quick(&desk, "pg", POSTGRES_16, "") + SQLITE;
    desk.write("p.toml", &plan(&variants, "queries = [6, 1]\nrepetitions = 100\n"));
    let running = desk.start(&mut desk.command(&["run", "p.toml"]));
    let dir = desk.run_dir();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let server = Options::new(Address::Socket(socket_of(in_mid_query(&dir, "maria"))), "root");
            let query =
                "SELECT id FROM information_schema.processlist WHERE info LIKE 'SELECT l_returnflag%'";
            let id = wait_for("a query", || ask(&server, &[query]).pop()?.pop()?);
            ask(&server, &[&format!("KILL {id}")]);
        });
        scope.spawn(|| {
            let server =
                Options::new(Address::Socket(postgres_socket_of(in_mid_query(&dir, "pg"))), "postgres");
            let end = "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity \
                       WHERE query LIKE 'SELECT l_returnflag%' AND backend_type = 'client backend'";
            wait_for("a query", || number(&server, end).filter(|&ended| ended > 0));
        });
    });
    let ended = running.wait();
    ended.expect_code(4);
    let run = Run::open(&dir).unwrap();
    for (variant, reason) in [("maria", "the server closed the connection"), ("pg", "terminating connection")]
    {
        let at = run.cells.iter().position(|cell| cell.id.variant == variant).unwrap();
        let begin = format!("error: block 1 {variant} dbt3 failed: step q1: SELECT l_returnflag");
        let error = ended.err.lines().find(|line| line.starts_with(&begin));
        assert!(error.is_some_and(|error| error.contains(reason)), "{}", ended.err);
        assert_eq!(executed(&run, at, "q6").0.len(), 100);
        let before = executed(&run, at, "q1").0.len();
        assert!((1..100).contains(&before), "{variant}: {before} executions");
    }
    let findings = findings(&dir);
    assert_eq!(findings.run.cells_completed, 1);
    let q6 = findings.workloads[0].steps.iter().find(|step| step.name == "q6").unwrap();
    assert!(q6.variants.iter().all(|variant| variant.runs.iter().any(|run| run.rate > 0.0)));
}

#[test]
#[ignore = "in cargo xtask test --all: a full disk"]
fn a_disk_that_is_full_in_a_load_fails_the_step_with_the_databases_words() {
    for prefix in [MARIADB_10_11, POSTGRES_16] {
        let desk = Desk::new();
        // The load is long enough to be still running when the disk is filled, even on a busy
        // machine.
        let text = plan(&variant("a", prefix, ""), "queries = [6]\n");
        let text = text.replace("scale_factor = 0.01", "scale_factor = 0.1");
        let said = with_a_disk_that_fills(&desk, &text, "runs/*/cells/1/a/dbt3/load/events.jsonl");
        assert!(said.contains("error: block 1 a dbt3 failed: step "), "{said}");
        assert!(DISK_FULL.iter().any(|reason| said.contains(reason)), "{said}");
    }
    let desk = Desk::new();
    let small = SQLITE.replace("name = \"sqlite\"", "name = \"small\"");
    let variants = format!("{small}options.pragmas = {{ max_page_count = \"1000\" }}\n{SQLITE}");
    desk.write("p.toml", &plan(&variants, "queries = [6]\nforeign_keys = true\n"));
    let ended = desk.dbdyno(&["run", "p.toml"]);
    ended.expect_code(4);
    let error =
        ended.err.lines().find(|line| line.starts_with("error: block 1 small dbt3 failed: step load: "));
    assert!(error.is_some_and(|error| error.contains("database or disk is full")), "{}", ended.err);
    let findings = findings(&desk.run_dir());
    assert_eq!(findings.run.cells_completed, 1);
    assert!(
        texts(&findings).iter().any(|text| text.contains("have no foreign keys")),
        "{:?}",
        texts(&findings)
    );
}

#[test]
#[ignore = "in cargo xtask test --all: a server with a limit of its own"]
fn queries_that_are_refused_fail_alone_and_those_after_them_run() {
    let desk = Desk::new();
    desk.write("capped.conf", "[mysqld]\nmax_execution_time = 20\n");
    let capped = variant("capped", MYSQL_8_0, "own_config = \"capped.conf\"\n");
    // The first and the last query each read more rows than any server can read in 20 ms.
    desk.write("p.toml", &plan(&capped, "verify = \"off\"\nqueries = [1, 6, 18]\n"));
    let failed = desk.dbdyno(&["run", "p.toml"]);
    failed.expect_code(4);
    assert!(failed.err.contains("steps failed, and the others ran; first step q1: "), "{}", failed.err);
    let run = Run::open(&desk.run_dir()).unwrap();
    let names: Vec<_> = run.cells[0].steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names[3..], ["q1", "q6", "q18"]);
    assert_eq!([3, 5].map(|at: usize| run.cells[0].steps[at].outcome()), [Some(Outcome::Failed); 2]);
    assert_eq!(run.cells[0].outcome(), Some(Outcome::Failed));
}
