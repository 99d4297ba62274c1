//! Runs the scripts from Debian's sysbench package with sysbench and with `dbdyno sysbench`, and
//! compares the servers' logs. The statements, their numbers and the tables must be the same.

use std::collections::BTreeMap;

use crate::servers::shared;
use crate::servers::sysbench::ExternalServer;
use crate::support::{Desk, figure};

/// Every script with events in Debian's package, with options that keep its work small.
const SCRIPTS: [(&str, &[&str]); 11] = [
    ("bulk_insert", &[]),
    ("oltp_delete", &["--tables=2"]),
    ("oltp_insert", &["--tables=2"]),
    ("oltp_point_select", &["--tables=2"]),
    ("oltp_read_only", &["--tables=2"]),
    ("oltp_read_write", &["--tables=2", "--skip-trx=on"]),
    ("oltp_update_index", &["--tables=2"]),
    ("oltp_update_non_index", &["--tables=2", "--db-ps-mode=disable"]),
    ("oltp_write_only", &["--tables=2"]),
    ("select_random_points", &["--random-points=5"]),
    ("select_random_ranges", &["--number-of-ranges=3"]),
];

/// The statement without its random parts, which are digits, texts and table numbers.
pub(crate) fn shape(sql: &str) -> String {
    let mut out = String::new();
    let mut quoted = false;
    for sign in sql.chars() {
        match sign {
            '\'' => quoted = !quoted,
            _ if quoted => continue,
            _ => {}
        }
        let sign = if sign.is_ascii_digit() { '#' } else { sign };
        if !(sign == '#' && out.ends_with('#') || sign.is_whitespace()) {
            out.push(sign);
        }
    }
    // PostgreSQL's log has `$1` and so on in place of values, and a number may have a sign.
    out.replace("$#", "#").replace("-#", "#").replace('\'', "").to_uppercase()
}

/// The number of logged statements of each shape. A list of rows is left out, whatever its length.
fn counted(statements: Vec<String>) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for sql in statements {
        let is_of_a_script = sql.contains("sbtest") || ["BEGIN", "COMMIT"].contains(&sql.trim());
        if is_of_a_script {
            let shape = shape(&sql);
            let head = shape.split_once("VALUES").map_or(shape.as_str(), |(head, _)| head).to_owned();
            *counts.entry(head).or_default() += 1;
        }
    }
    counts
}

/// The statements that one program sends for each script, and the contents of the tables that it
/// leaves.
fn all(
    theirs: &ExternalServer,
    desk: &Desk,
    database: &str,
    is_ours: bool,
) -> Vec<(String, BTreeMap<String, u32>)> {
    theirs.create(database);
    let run = |script: &str, options: &[&str], command: &str| {
        if is_ours {
            theirs.run_dbdyno(desk, database, script, options, command).expect_ok();
        } else {
            theirs.sysbench(database, script, options, command);
        }
    };
    let mut found = Vec::new();
    for (script, options) in SCRIPTS {
        let options = [options, &["--threads=1", "--events=40", "--time=0"]].concat();
        theirs.logged();
        run(script, &options, "prepare");
        found.push((format!("{script} prepare"), counted(theirs.logged())));
        found.push((format!("{script} tables"), theirs.facts(database)));
        theirs.logged();
        run(script, &options, "run");
        found.push((format!("{script} run"), counted(theirs.logged())));
        run(script, &options, "cleanup");
        assert_eq!(theirs.tables(database, "sbtest1"), 0, "{script}");
    }
    found
}

fn both_send_the_same(theirs: &ExternalServer, desk: &Desk) {
    let (sysbench, ours) = (all(theirs, desk, "first", false), all(theirs, desk, "second", true));
    for (sysbench, ours) in sysbench.iter().zip(&ours) {
        assert_eq!(sysbench, ours);
        assert!(!sysbench.1.is_empty(), "{}", sysbench.0);
    }
}

#[test]
#[ignore = "in cargo xtask test --all: the original sysbench"]
fn sysbench_and_dbdyno_send_mariadb_the_same_statements_of_every_script() {
    let desk = Desk::new();
    both_send_the_same(&ExternalServer::mariadb(&desk), &desk);
}

#[test]
#[ignore = "in cargo xtask test --all: the original sysbench"]
fn sysbench_and_dbdyno_send_postgresql_the_same_statements_of_every_script() {
    let desk = Desk::new();
    both_send_the_same(&ExternalServer::postgres(&desk), &desk);
}

/// The lines without figures and without the program's name.
pub(crate) fn frame(text: &str) -> Vec<String> {
    let lines =
        text.lines().filter(|line| !line.starts_with("sysbench") && !line.starts_with("Initializing random"));
    let frame = |line: &str| {
        let mut out = String::new();
        for sign in line.chars() {
            let sign = if sign.is_ascii_digit() || sign == '.' { '#' } else { sign };
            if !(out.ends_with(sign) && (sign == '#' || sign == ' ')) {
                out.push(sign);
            }
        }
        out.trim_end().to_owned()
    };
    lines.map(frame).filter(|line| !line.is_empty()).collect()
}

#[test]
#[ignore = "in cargo xtask test --all: the original sysbench"]
fn the_text_of_a_run_and_of_help_is_that_of_sysbench() {
    let desk = Desk::new();
    let theirs = ExternalServer::mariadb(&desk);
    theirs.create("sbtest");
    theirs.sysbench("sbtest", "oltp_read_write", &[], "prepare");
    for (options, command) in [(&["--threads=2", "--events=50"][..], "run"), (&[][..], "help")] {
        let sysbench = theirs.sysbench("sbtest", "oltp_read_write", options, command);
        let ours =
            theirs.run_dbdyno(&desk, "sbtest", "oltp_read_write", options, command).expect_ok().out.clone();
        assert_eq!(frame(&ours), frame(&sysbench), "{ours}");
    }
}

#[test]
fn a_run_ends_with_its_time_or_its_events_whichever_comes_first() {
    let desk = Desk::new();
    let ([theirs, ..], database) = (ExternalServer::shared(), shared::database());
    theirs.create(&database);
    theirs.run_dbdyno(&desk, &database, "oltp_point_select", &[], "prepare").expect_ok();
    let events = |options: &[&str]| -> u64 {
        let options = [options, &["--threads=2"]].concat();
        let ended = theirs.run_dbdyno(&desk, &database, "oltp_point_select", &options, "run");
        let line = ended.expect_ok().out.lines().find(|line| line.contains("total number of events:"));
        line.unwrap().split_whitespace().last().unwrap().parse().unwrap()
    };
    assert_eq!(events(&["--events=41", "--time=0"]), 41);
    assert_eq!(events(&["--events=41", "--time=600"]), 41);
    assert!((1..1_000_000_000).contains(&events(&["--events=1000000000", "--time=1"])));
    assert!(events(&["--time=1"]) > 0);
}

#[test]
fn an_event_that_ends_within_a_transaction_ends_the_run() {
    const EVENT: &str = "\
function thread_init() con = sysbench.sql.driver():connect() INIT end
function event() con:query('INSERT INTO kept VALUES (1)') END end
function prepare() sysbench.sql.driver():connect():query('CREATE TABLE kept (id INTEGER)') end
";
    let texts = |init: &str, end: &str| EVENT.replace("INIT", init).replace("END", end);
    let [off, begin, commit] =
        ["SET autocommit = 0", "BEGIN", "COMMIT"].map(|sql| format!("con:query('{sql}')"));
    for (number, theirs) in ExternalServer::shared().into_iter().enumerate() {
        let (desk, database) = (Desk::new(), shared::database());
        theirs.create(&database);
        let run = |text: &str, command: &str| {
            let script = desk.write("own.lua", text).display().to_string();
            theirs.run_dbdyno(&desk, &database, &script, &["--events=20", "--time=0"], command)
        };
        run(&texts("", ""), "prepare").expect_ok();
        run(&texts("", ""), "run").expect_ok();
        let is_mysql = number < 2;
        // PostgreSQL has no such setting.
        let open = if is_mysql { vec![texts(&off, ""), texts(&begin, "")] } else { vec![texts(&begin, "")] };
        for text in open {
            let ended = run(&text, "run");
            let says = ended.err.contains("event of script")
                && ended.err.contains("without completing the last transaction");
            assert!(ended.code == Some(1) && says, "{ended:?}");
        }
        if is_mysql {
            run(&texts(&off, &commit), "run").expect_ok();
        }
    }
}

#[test]
fn a_script_calls_a_procedure_that_answers_with_several_results_again_and_again() {
    const TEXT: &str = "\
function con() return sysbench.sql.driver():connect() end
function prepare() con():query('CREATE PROCEDURE two() BEGIN SELECT 1; SELECT 2 UNION SELECT 3; END') end
function thread_init() own = con() end
function event() own:query('CALL two()') assert(own:query_row('SELECT 5') == '5') own:query('CALL two()') end
";
    let [mariadb, mysql, _] = ExternalServer::shared();
    for theirs in [mariadb, mysql] {
        let (desk, database) = (Desk::new(), shared::database());
        theirs.create(&database);
        let script = desk.write("own.lua", TEXT).display().to_string();
        theirs.run_dbdyno(&desk, &database, &script, &[], "prepare").expect_ok();
        let ended = theirs.run_dbdyno(&desk, &database, &script, &["--events=20", "--time=0"], "run");
        let out = &ended.expect_ok().out;
        assert_eq!((figure(out, "transactions:"), figure(out, "queries:")), (20, 60), "{out}");
    }
}

#[test]
fn a_check_that_fails_before_a_step_ends_the_cell() {
    let desk = Desk::new();
    let [theirs, ..] = ExternalServer::shared();
    let text = "sysbench]\nscript = \"oltp_point_select\"\noptions = { table_size = 500 }\nevents = 60\n\
                settle = { by = \"none\" }\n\
                checks = [{ sql = \"SELECT COUNT(*) FROM sbtest1\", expect = \"501\", at = \"before\" }]\n";
    let ended = theirs.plan(&desk, &shared::database(), text);
    assert!(ended.code != Some(0) && ended.err.contains("SELECT COUNT(*) FROM sbtest1"), "{ended:?}");
    let found = crate::support::findings(&desk.run_dir());
    assert_eq!(found.run.cells_completed, 0, "{ended:?}");
}

#[test]
fn a_plan_runs_a_script_and_its_checks_on_every_server() {
    for theirs in ExternalServer::shared() {
        let desk = Desk::new();
        let text = "sysbench]\nscript = \"oltp_write_only\"\noptions = { table_size = 500, tables = 2 }\n\
                    connections = 2\nevents = 60\nsettle = { by = \"none\" }\n\
                    checks = [{ sql = \"SELECT COUNT(*) FROM sbtest2\", expect = \"500\" }]\n";
        theirs.plan(&desk, &shared::database(), text).expect_ok();
        let found = crate::support::findings(&desk.run_dir());
        assert_eq!(crate::support::faults(&found), Vec::<String>::new());
        let names: Vec<&str> = found.workloads[0].steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["prepare", "oltp_write_only.c2"]);
    }
}

/// The consistency conditions 3.3.2.1 to 3.3.2.4 of the TPC-C specification, in the form of
/// docs/guides/tpcc.toml.
const CONDITIONS: &str = r#"checks = [
    { sql = "SELECT COUNT(*) FROM warehouse1 w JOIN (SELECT d_w_id, SUM(d_ytd) AS s FROM district1 GROUP BY d_w_id) d ON d_w_id = w_id WHERE w_ytd <> s", expect = "0" },
    { sql = "SELECT COUNT(*) FROM district1 JOIN (SELECT o_w_id, o_d_id, MAX(o_id) AS m FROM orders1 GROUP BY o_w_id, o_d_id) o ON o_w_id = d_w_id AND o_d_id = d_id WHERE d_next_o_id - 1 <> m", expect = "0" },
    { sql = "SELECT COUNT(*) FROM (SELECT MAX(no_o_id) - MIN(no_o_id) + 1 - COUNT(*) AS d FROM new_orders1 GROUP BY no_w_id, no_d_id) n WHERE d <> 0", expect = "0" },
    { sql = "SELECT (SELECT SUM(o_ol_cnt) FROM orders1) - (SELECT COUNT(*) FROM order_line1)", expect = "0" },
]
"#;

#[test]
fn a_script_like_tpc_c_stays_consistent() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/dbdyno/scripts/orders.lua");
    for theirs in ExternalServer::shared() {
        let desk = Desk::new();
        let text = format!(
            "sysbench]\nscript = \"{script}\"\noptions = {{ scale = 2 }}\nconnections = 4\nevents = 300\n\
             settle = {{ by = \"none\" }}\n{CONDITIONS}"
        );
        theirs.plan(&desk, &shared::database(), &text).expect_ok();
        let found = crate::support::findings(&desk.run_dir());
        assert_eq!(crate::support::faults(&found), Vec::<String>::new());
        assert_eq!(found.run.cells_completed, 1);
    }
}
