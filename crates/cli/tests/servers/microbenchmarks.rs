//! The microbenchmarks on real servers: statements that each of them takes, counted in the servers' own logs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dbdyno_record::Run;

use crate::support::{Desk, faults, findings};
use crate::{
    MARIADB_10_11, MARIADB_11_8, MYSQL_5_5, MYSQL_8_0, POSTGRES_9_6, POSTGRES_15, POSTGRES_18, variant,
};

fn plan(variants: &str, host: &str, options: &str) -> String {
    format!(
        "name = \"test\"\n{host}\n{variants}\n[workload.microbenchmarks]\ntable_size = 500\nsettle_wait = \"0s\"\n{options}\n"
    )
}

/// MyRocks comes to rest by pauses of its own, whatever the plan says: once is enough.
#[test]
fn all_steps_of_the_42_are_valid_on_every_product_and_on_myrocks() {
    let myrocks = variant("myrocks", MARIADB_11_8, "engine = \"rocksdb\"");
    all_steps_are_valid("42", &[&myrocks]);
}

#[test]
fn all_steps_of_the_32_are_valid_on_every_product() {
    all_steps_are_valid("32", &[]);
}

/// Runs of each product, and of `more` variants, side by side: they wait more than they work.
fn all_steps_are_valid(sequence: &str, more: &[&str]) {
    let products = [
        variant("maria", MARIADB_10_11, ""),
        variant("mysql-old", MYSQL_5_5, "") + &variant("mysql", MYSQL_8_0, ""),
        variant("pg-old", POSTGRES_9_6, "") + &variant("pg", POSTGRES_18, ""),
    ];
    std::thread::scope(|scope| {
        for variants in products.iter().map(String::as_str).chain(more.iter().copied()) {
            scope.spawn(move || all_steps_of(sequence, variants));
        }
    });
}

/// Few rows and several connections: deadlocks, and on PostgreSQL rows that two connections put back at once.
fn all_steps_of(sequence: &str, variants: &str) {
    let desk = Desk::new();
    let options = format!(
        "sequence = \"{sequence}\"\ntables = 2\noperations = 60\nwarm_scan_time = \"1s\"\nconnections = [4]\nverify = \"end\""
    );
    desk.write("p.toml", &plan(variants, "", &options));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let dir = desk.run_dir();
    let findings = findings(&dir);
    let cells = variants.matches("[[variant]]").count();
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), cells));
    let run = Run::open(&dir).unwrap();
    for step in run.cells.iter().flat_map(|cell| &cell.steps) {
        let failed: u64 = step.intervals.iter().map(|interval| interval.failed).sum();
        assert_eq!(failed, 0, "{}: retried operations end well", step.spec.name);
    }
}

/// Statements with everything that is drawn as `#`, and lists of any length as one of them.
fn shape(sql: &str) -> String {
    let mut out = String::new();
    for (index, part) in sql.split('\'').enumerate() {
        let is_text = index % 2 == 1;
        let mark =
            |character: char| if is_text || "?$0123456789".contains(character) { '#' } else { character };
        for character in part.chars().map(mark) {
            if !(character == '#' && out.ends_with('#')) {
                out.push(character);
            }
        }
    }
    while out.contains("#, #") {
        out = out.replace("#, #", "#");
    }
    out.trim().to_owned()
}

/// How often each shape must be in the log: from the steps' descriptions and the operations that they did.
fn expected(run: &Run) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for step in run.cells[0].steps.iter().filter(|step| !["load", "index"].contains(&step.name.as_str())) {
        let done: u64 = step.intervals.iter().map(|interval| interval.done).sum();
        for statement in step.spec.kinds[0].statement.split("; ") {
            let (times, sql) = match statement.split_once(" x ") {
                Some((times, sql)) => (times.parse().unwrap(), sql),
                None => (1, statement),
            };
            *counts.entry(shape(sql)).or_default() += times * done;
        }
    }
    counts
}

/// How often each of `shapes` is among the statements.
fn counted<'a>(
    shapes: &BTreeMap<String, u64>,
    statements: impl Iterator<Item = &'a str>,
) -> BTreeMap<String, u64> {
    let mut counts: BTreeMap<String, u64> = shapes.keys().map(|shape| (shape.clone(), 0)).collect();
    for sql in statements {
        if let Some(count) = counts.get_mut(&shape(sql)) {
            *count += 1;
        }
    }
    counts
}

/// One connection, so that nothing is sent twice: the log has exactly what was counted.
fn logged_run(server: &str, config: &str) -> (Desk, Run) {
    let desk = Desk::new();
    desk.write("maria.cnf", "[mysqld]\ngeneral_log = ON\ngeneral_log_file = general.log\n");
    desk.write("pg.conf", "log_statement = all\n");
    let options = "operations = 15\ntables = 2\nverify = \"off\"";
    desk.write("p.toml", &plan(&variant("a", server, config), "[host]\nkeep_data = true", options));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let run = Run::open(&desk.run_dir()).unwrap();
    (desk, run)
}

fn find(folder: &Path, wanted: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            if let Some(found) = find(&path, wanted) {
                return Some(found);
            }
        } else if wanted(&path) {
            return Some(path);
        }
    }
    None
}

#[test]
fn the_general_log_of_mariadb_holds_the_statements_that_were_specified_and_no_more_or_less() {
    let (desk, run) = logged_run(MARIADB_10_11, "my_cnf = \"maria.cnf\"");
    let log = find(&desk.run_dir(), &|path| path.ends_with("general.log")).unwrap();
    let text = String::from_utf8_lossy(&std::fs::read(log).unwrap()).into_owned();
    let sent = text.lines().filter_map(|line| {
        let (head, sql) = line.rsplit_once('\t')?;
        (head.ends_with("Execute") || head.ends_with("Query")).then_some(sql)
    });
    let expected = expected(&run);
    assert_eq!(counted(&expected, sent), expected);
    assert_eq!(expected.len(), 22, "{expected:?}");
}

#[test]
fn the_log_of_postgresql_holds_the_statements_that_were_specified_and_no_more_or_less() {
    let (desk, run) = logged_run(POSTGRES_15, "postgresql_conf = \"pg.conf\"");
    let log =
        find(&desk.run_dir().join("logs"), &|path| path.extension().is_some_and(|end| end == "log")).unwrap();
    let text = String::from_utf8_lossy(&std::fs::read(log).unwrap()).into_owned();
    let sent = text.lines().filter_map(|line| {
        let (_, rest) = line.split_once("LOG:  ")?;
        let (head, sql) = rest.split_once(": ")?;
        (head.starts_with("execute") || head == "statement").then_some(sql)
    });
    let expected = expected(&run);
    assert_eq!(counted(&expected, sent), expected);
}
