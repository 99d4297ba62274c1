//! Compares the logs of MariaDB and PostgreSQL with the statements that each test must send: their
//! order, number, lists, ranges, tables and values. No other statement may use the tables.

use std::path::Path;

use crate::servers::sent::{Sent, Session, StatementForm, find, fit, of_mariadb, of_postgres};
use crate::servers::shapes::{self, Operation, Product, Table, Value};
use crate::servers::{MARIADB_10_11, POSTGRES_15, variant};
use crate::support::Desk;

const TABLES: u32 = 2;

/// The beginnings of statements that use the tables but do not belong to a step. The conductor
/// makes and analyses the tables and queries dead rows and query plans. A load queries the
/// character set that it must use.
const BETWEEN_STEPS: [&str; 10] = [
    "DROP TABLE IF EXISTS sbtest",
    "CREATE TABLE sbtest",
    "ANALYZE TABLE `sbtest",
    "VACUUM (VERBOSE, ANALYZE) ",
    "VACUUM (VERBOSE, ANALYZE, INDEX_CLEANUP ON) ",
    "SELECT sum(n_dead_tup)::bigint FROM pg_stat_user_tables WHERE relname IN ('sbtest",
    "EXPLAIN FORMAT=TRADITIONAL ",
    "EXPLAIN (COSTS OFF) ",
    "SELECT DISTINCT character_set_name FROM information_schema.columns ",
    "SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES ",
];

/// A step that must be in a log.
struct Step {
    name: String,
    operation: Operation,
    /// The number of operations on each of its connections.
    operations: Vec<u64>,
}

/// Runs the workload on this product and returns the logged sessions. One connection loads, so that
/// the order of its statements is known.
fn logged(product: Product, workload: &str) -> Vec<Session> {
    let desk = Desk::new();
    desk.write("maria.cnf", "[mysqld]\ngeneral_log = ON\ngeneral_log_file = general.log\n");
    desk.write("pg.conf", "log_statement = all\n");
    let variant = match product {
        Product::Mariadb => variant("a", MARIADB_10_11, "own_config = \"maria.cnf\""),
        Product::Postgres => variant("a", POSTGRES_15, "own_config = \"pg.conf\""),
    };
    let text = format!(
        "name = \"test\"\n[host]\nkeep_data = true\n{variant}\n[workload.{workload}\ntables = {TABLES}\n\
         load_connections = 1\nsettle_wait = \"0s\"\nverify = \"off\"\n"
    );
    desk.write("p.toml", &text);
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let read = |path: &Path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    let dir = desk.run_dir();
    let sessions = match product {
        Product::Mariadb => of_mariadb(&read(&find(&dir, &|path| path.ends_with("general.log")).unwrap())),
        Product::Postgres => {
            let is_log = |path: &Path| path.extension().is_some_and(|end| end == "log");
            of_postgres(&read(&find(&dir.join("logs"), &is_log).unwrap()))
        }
    };
    sessions.into_iter().filter(belongs_to_the_workload).collect()
}

/// Whether the session sends a statement that belongs to a step.
fn belongs_to_the_workload(session: &Session) -> bool {
    session.sent.iter().any(|sent| is_of_a_step(&sent.sql))
}

fn is_of_a_step(sql: &str) -> bool {
    sql.contains("sbtest") && !BETWEEN_STEPS.iter().any(|begin| sql.starts_with(begin))
}

/// The values of `k`, `c` and `pad` in the loaded rows, by statement, and the sessions that follow
/// the load and the index build.
fn loaded(sessions: &[Session]) -> (Vec<Vec<[String; 3]>>, &[Session]) {
    let load: Vec<&str> = sessions[0].done().map(|sent| sent.sql.as_str()).collect();
    let rows = load.iter().filter(|sql| is_of_a_step(sql)).map(|sql| {
        let (head, rows) = sql.split_once(" VALUES").unwrap_or_else(|| panic!("not of the load: {sql}"));
        assert!(fit("INSERT INTO sbtestN(k, c, pad)", head).is_some(), "{head}");
        let row = |row: &str| <[String; 3]>::try_from(fit("?, ?, ?", row).unwrap().values).unwrap();
        rows.trim_start_matches('(').trim_end_matches(')').split("),(").map(row).collect()
    });
    let rows = rows.collect();
    let index = sessions[1].done().map(|sent| sent.sql.as_str()).filter(|sql| sql.contains("sbtest"));
    let index: Vec<&str> = index.collect();
    assert_eq!(index, ["CREATE INDEX k_1 ON sbtest1(k)", "CREATE INDEX k_2 ON sbtest2(k)"]);
    (rows, &sessions[2..])
}

/// Compares the sessions with the steps, in order. Each connection is one session, whose statements
/// must be its operations, one by one.
#[track_caller]
fn compare(sessions: &[Session], steps: &[Step], size: i64, product: Product) {
    let mut sessions = sessions.iter();
    for step in steps {
        let mut tables = Vec::new();
        let mut of_step: Vec<&Session> = sessions.by_ref().take(step.operations.len()).collect();
        assert_eq!(of_step.len(), step.operations.len(), "{} has too few sessions", step.name);
        // The connections of a step send at the same time, so the log does not tell their order.
        // They differ in the number of their operations and in their table.
        let first = |session: &Session| counted(session).next().map(|sent| sent.sql.clone());
        of_step.sort_by_key(|session| (std::cmp::Reverse(counted(session).count()), first(session)));
        for ((connection, operations), session) in (0..).zip(&step.operations).zip(of_step) {
            let about = format!("{}, session {}", step.name, session.id);
            // PostgreSQL's log does not report that a statement is prepared.
            let preparations = if product == Product::Mariadb { preparations(&step.operation) } else { 0 };
            assert_eq!(prepared(session), preparations, "{about}: statements prepared");
            let sent: Vec<&Sent> = counted(session).collect();
            let length = step.operation.statements.len();
            assert_eq!(sent.len() as u64, length as u64 * operations, "{about}: {:?}", sent.first());
            for operation in sent.chunks(length) {
                assert_eq!(split(operation), step.operation.split, "{about}");
                tables.push(compare_operation(operation, &step.operation, (connection, size), &about));
            }
        }
        check_tables(&step.operation, &tables, &step.name);
    }
    let more: Vec<&Session> = sessions.collect();
    assert!(more.is_empty(), "outside all steps: {more:?}");
}

/// The statements of operations: those that use the tables, and those that begin and end
/// transactions.
fn counted(session: &Session) -> impl Iterator<Item = &Sent> {
    let is_around = |sql: &str| ["BEGIN", "COMMIT", "ROLLBACK"].iter().any(|word| sql.starts_with(word));
    session.done().filter(move |sent| sent.sql.contains("sbtest") || is_around(&sent.sql))
}

fn prepared(session: &Session) -> usize {
    session.sent.iter().filter(|sent| sent.form == StatementForm::Prepared).count()
}

/// The expected number of prepared statements: one for each shape and table, and one each for BEGIN
/// and COMMIT.
fn preparations(operation: &Operation) -> usize {
    let mut shapes: Vec<(&str, bool)> =
        operation.statements.iter().map(|of| (of.sql.as_str(), of.table == Table::None)).collect();
    shapes.sort_unstable();
    shapes.dedup();
    let count = |(_, is_bracket): &(&str, bool)| if *is_bracket { 1 } else { TABLES as usize };
    if operation.is_prepared { shapes.iter().map(count).sum() } else { 0 }
}

/// The numbers of statements that read, that write, and that do neither, as the original counts
/// them.
fn split(operation: &[&Sent]) -> [usize; 3] {
    let mut split = [0; 3];
    for sent in operation {
        let of = match sent.sql.split(' ').next().unwrap() {
            "SELECT" => 0,
            "UPDATE" | "DELETE" | "INSERT" => 1,
            _ => 2,
        };
        split[of] += 1;
    }
    split
}

/// Compares an operation's statements with the expected ones. Returns the tables that its
/// statements drew.
fn compare_operation(
    sent: &[&Sent],
    expected: &Operation,
    (connection, size): (u32, i64),
    about: &str,
) -> Vec<u32> {
    let (mut drawn, mut table, mut deleted) = (Vec::new(), 0, String::new());
    for (sent, expected_of) in sent.iter().zip(&expected.statements) {
        let form = if expected.is_prepared { StatementForm::Executed } else { StatementForm::Text };
        assert_eq!(sent.form, form, "{about}: {}", sent.sql);
        let found = fit(&expected_of.sql, &sent.sql);
        let found = found.unwrap_or_else(|| panic!("{about}: {} is not {}", sent.sql, expected_of.sql));
        match expected_of.table {
            Table::None => {}
            Table::Same => assert_eq!(found.table, table, "{about}: {}", sent.sql),
            Table::Own => assert_eq!(found.table, 1 + connection % TABLES, "{about}: {}", sent.sql),
            Table::Drawn => drawn.push(found.table),
        }
        if expected_of.table != Table::None {
            table = found.table;
            assert!((1..=TABLES).contains(&table), "{about}: {}", sent.sql);
        }
        assert_eq!(found.values.len(), expected_of.values.len(), "{about}: {}", sent.sql);
        let mut before = 0;
        for (found, expected) in found.values.iter().zip(&expected_of.values) {
            let is_right = is_value(found, *expected, (size, before, &deleted));
            assert!(is_right, "{about}: {found} is not {expected:?} in {}", sent.sql);
            before = found.parse().unwrap_or(0);
        }
        if sent.sql.starts_with("DELETE") {
            deleted.clone_from(&found.values[0]);
        }
    }
    drawn
}

fn is_value(found: &str, expected: Value, (size, before, deleted): (i64, i64, &str)) -> bool {
    let is_text = |groups: usize| {
        let parts: Vec<&str> = found.split('-').collect();
        parts.len() == groups && parts.iter().all(|part| part.len() == 11 && part.parse::<u64>().is_ok())
    };
    let number = found.parse::<i64>().ok();
    match expected {
        Value::Drawn => number.is_some_and(|number| (1..=size).contains(&number)),
        Value::Plus(more) => number == Some(before + more),
        Value::Middle(more) => number == Some(size / 2 + more),
        Value::Exactly(exactly) => number == Some(exactly),
        Value::Deleted => found == deleted,
        Value::C => is_text(10) && found.len() == 119,
        Value::Pad => is_text(5) && found.len() == 59,
    }
}

/// Checks that every table is drawn, and that the statements of an operation that draw a table do
/// not always draw the same one.
fn check_tables(operation: &Operation, drawn: &[Vec<u32>], name: &str) {
    let places = operation.statements.iter().filter(|of| of.table == Table::Drawn).count();
    for table in (1..=TABLES).filter(|_| places > 0) {
        assert!(drawn.iter().flatten().any(|of| *of == table), "{name} never asks table {table}: {drawn:?}");
    }
    let differ = |of: &Vec<u32>| of.iter().any(|table| *table != of[0]);
    assert!(places < 2 || drawn.iter().any(differ), "{name}: always one table: {drawn:?}");
}

/// The share of the point selects' ids that are in the middle hundredth of the table.
fn middle_share(sessions: &[Session], size: i64) -> f64 {
    let points = sessions.iter().flat_map(Session::done);
    let ids: Vec<i64> = points
        .filter_map(|sent| fit("SELECT c FROM sbtestN WHERE id=?", &sent.sql)?.values[0].parse().ok())
        .collect();
    let (low, high) = (size / 2 - size / 200, size / 2 + size / 200);
    assert!(ids.len() > 1000, "{} ids", ids.len());
    ids.iter().filter(|id| (low..=high).contains(*id)).count() as f64 / ids.len() as f64
}

fn sequence(names: &[&str], product: Product, operations: u64) -> Vec<Step> {
    let step = |line: &&str| {
        let (name, each_table) = match line.strip_suffix(" *") {
            Some(name) => (name, true),
            None => (*line, false),
        };
        let operations = match (name, each_table) {
            // Each connection reads its table once.
            ("scan", true) => vec![1; TABLES as usize],
            (_, true) => vec![operations.div_ceil(2), operations / 2],
            (_, false) => vec![operations],
        };
        Step { name: name.to_owned(), operation: shapes::of_microbenchmark(name, product), operations }
    };
    names.iter().map(step).collect()
}

fn microbenchmarks(product: Product, which: &str, names: &[&str]) {
    let workload = format!("microbenchmarks]\nsequence = \"{which}\"\ntable_size = 500\noperations = 15");
    let sessions = logged(product, &workload);
    let (rows, tests) = loaded(&sessions);
    assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), [500, 500]);
    compare(tests, &sequence(names, product, 15), 500, product);
}

fn oltp(product: Product, options: &str, of: fn(&str, Product) -> Operation) -> f64 {
    let tests = shapes::OLTP.map(|test| format!("\"{test}\"")).join(", ");
    let workload = format!("oltp]\ntests = [{tests}]\ntable_size = 10_000\nevents = 150\n{options}");
    let sessions = logged(product, &workload);
    let (rows, tests) = loaded(&sessions);
    assert_eq!(rows.iter().flatten().count(), 20_000);
    let step =
        |name: &&str| Step { name: (*name).to_owned(), operation: of(name, product), operations: vec![150] };
    let steps: Vec<Step> = shapes::OLTP.iter().map(step).collect();
    compare(tests, &steps, 10_000, product);
    middle_share(tests, 10_000)
}

#[test]
#[ignore = "in cargo xtask test --all: logs of another version"]
fn the_42_send_to_mariadb_what_is_specified_and_nothing_else() {
    microbenchmarks(Product::Mariadb, "42", &shapes::THE_42);
}

#[test]
#[ignore = "in cargo xtask test --all: logs of another version"]
fn the_42_send_to_postgresql_what_is_specified_and_nothing_else() {
    microbenchmarks(Product::Postgres, "42", &shapes::THE_42);
}

#[test]
#[ignore = "in cargo xtask test --all: logs of another version"]
fn the_32_send_to_mariadb_what_is_specified_and_nothing_else() {
    microbenchmarks(Product::Mariadb, "32", &shapes::THE_32);
}

#[test]
#[ignore = "in cargo xtask test --all: logs of another version"]
fn the_32_send_to_postgresql_what_is_specified_and_nothing_else() {
    microbenchmarks(Product::Postgres, "32", &shapes::THE_32);
}

#[test]
#[ignore = "in cargo xtask test --all: logs of another version"]
fn the_classic_tests_send_what_is_specified_and_draw_uniformly() {
    for product in [Product::Mariadb, Product::Postgres] {
        let share = oltp(product, "", shapes::of_oltp);
        assert!((0.005..0.02).contains(&share), "{product:?}: {share}");
    }
}

#[test]
#[ignore = "in cargo xtask test --all: logs of another version"]
fn the_classic_tests_of_version_0_5_send_what_is_specified_and_draw_three_quarters_from_the_middle() {
    for product in [Product::Mariadb, Product::Postgres] {
        let share = oltp(product, "profile = \"sysbench-0.5\"", shapes::of_oltp_0_5);
        assert!((0.74..0.78).contains(&share), "{product:?}: {share}");
    }
}

/// Checks the load's statements of at most 512 KiB, its texts of 119 and 59 characters, and that
/// 100,000 random values have a share of 1 - 1/e distinct ones.
#[test]
#[ignore = "in cargo xtask test --all: logs of another version"]
fn acceptance_check_2_the_load() {
    let load = |size: u32| {
        let workload = format!(
            "oltp]\ntests = [\"point-select\"]\nevents = 1\ntable_size = {size}\nprotocol = \"text\""
        );
        let sessions = logged(Product::Mariadb, &workload);
        let bytes: Vec<usize> = sessions[0].done().map(|sent| sent.sql.len()).collect();
        assert!(bytes.iter().all(|bytes| *bytes <= 512 << 10), "{bytes:?}");
        loaded(&sessions).0
    };
    let small = load(10_000);
    assert_eq!(small.len(), 4 * TABLES as usize, "4 statements for each table of 10,000 rows");
    for [_, c, pad] in small.iter().flatten() {
        assert_eq!((c.len(), pad.len()), (119, 59));
    }
    let large: Vec<Vec<[String; 3]>> = load(100_000);
    let table: Vec<&String> = large.iter().flatten().take(100_000).map(|[k, ..]| k).collect();
    let distinct = table.iter().collect::<std::collections::HashSet<_>>().len();
    assert!(distinct.abs_diff(63_212) < 600, "{distinct} distinct k");
    assert!(table.iter().all(|k| (1..=100_000).contains(&k.parse::<u32>().unwrap())));
}
