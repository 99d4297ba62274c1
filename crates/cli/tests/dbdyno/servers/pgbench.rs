//! Compares Debian's pgbench with `dbdyno pgbench`: the values of expressions, the statements in
//! the server's log, the report, and the balances.

use std::collections::BTreeMap;
use std::process::Command;

use dbdyno_db::server::Server;

use crate::servers::postgres;
use crate::servers::scripts::{frame, shape};
use crate::servers::shared::{self, POSTGRES};
use crate::servers::sysbench::ExternalServer;
use crate::support::{Desk, Ended, faults, findings};

/// Expressions and their values, on which the unit tests rely.
const EXPRESSIONS: &str = include_str!("../../../../workloads/src/pgbench/expressions.txt");

/// A script with every command whose statements are the same in each run.
const COMMANDS: &str = "\
-- all commands
\\set n 3 * :x
SELECT :n AS one, 'a:b' AS two, :n::int AS three \\gset p_
\\if :p_one > 20
SELECT 'many', :p_one, :client_id;
\\elif :p_one = 21
SELECT 'never';
\\else
SELECT 'few'; SELECT 'fewer' \\; SELECT 'none';
\\endif
\\sleep 1 ms
SELECT 1 AS four \\; SELECT 2 AS five WHERE false \\aset
SELECT :four + 1, hash
  FROM (SELECT 1 AS hash) AS t -- ; no end
;
\\set p permute(:n, 100, 5)
SELECT :p, :unknown_is_kept_by_the_quotes IS NULL WHERE false
";

fn server(desk: &Desk) -> (ExternalServer, Vec<String>) {
    let theirs = ExternalServer::postgres(desk);
    let ExternalServer::Postgres(server) = &theirs else { panic!() };
    let place = place_of(server);
    (theirs, place)
}

/// The server's address as pgbench options.
pub(crate) fn place_of(server: &Server) -> Vec<String> {
    let folder = server.base.family.socket_in_address(server.socket()).display().to_string();
    vec!["-h".to_owned(), folder, "-U".to_owned(), server.options(None).user]
}

/// Runs Debian's pgbench. Returns its standard output and standard error.
fn original(place: &[String], words: &[&str]) -> (String, String) {
    let mut line = Command::new("pgbench");
    let output =
        line.args(place).args(words).output().expect("pgbench; install it with `cargo xtask test packages`");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{words:?}: {err}");
    (out, err)
}

pub(crate) fn ours(desk: &Desk, place: &[String], words: &[&str]) -> Ended {
    let place = place.iter().map(String::as_str);
    desk.dbdyno(&["pgbench"].into_iter().chain(place).chain(words.iter().copied()).collect::<Vec<_>>())
}

#[test]
#[ignore = "in cargo xtask test --all: the original pgbench"]
fn expressions_have_the_values_that_pgbench_gives_them() {
    let desk = Desk::new();
    let (_server, place) = server(&desk);
    let lines = EXPRESSIONS.lines().map(|line| line.split_once(" => ").unwrap());
    let script: String = lines.clone().map(|(text, _)| format!("\\set v debug({text})\n")).collect();
    let script = desk.write("all.sql", &script).display().to_string();
    let define = ["-Dx=7", "-Dt=true", "-Ddefault_seed=5432"];
    let (_, said) = original(&place, &[&["-n", "-t1", "-f", &script], &define[..], &["postgres"]].concat());
    let found: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("debug(")?.split_once(": "))
        .map(|found| found.1)
        .collect();
    let value = |found: &&str| found.split_once(' ').map_or("NULL", |(_, value)| value).to_owned();
    let expected: Vec<String> = lines.map(|(_, value)| value.to_owned()).collect();
    assert_eq!(found.iter().map(value).collect::<Vec<_>>(), expected);
}

/// The statements that `send` sends to the server, without those that set up the run.
fn sent(theirs: &ExternalServer, send: impl FnOnce()) -> Vec<String> {
    theirs.logged();
    send();
    let is_of_script =
        |sql: &String| !sql.contains("pg_") && !sql.contains("count(*)") || sql.contains("pgbench_");
    theirs.logged().into_iter().filter(is_of_script).collect()
}

#[test]
#[ignore = "in cargo xtask test --all: the original pgbench"]
fn pgbench_and_dbdyno_send_the_same_statements() {
    let desk = Desk::new();
    let (theirs, place) = server(&desk);
    let script = COMMANDS.replace(":unknown_is_kept_by_the_quotes", "null");
    let script = desk.write("commands.sql", &script).display().to_string();
    for mode in ["simple", "extended", "prepared"] {
        // Only the simple protocol accepts several statements in one text.
        let own = if mode == "simple" {
            script.clone()
        } else {
            let text = std::fs::read_to_string(&script).unwrap();
            let text = text
                .replace("SELECT 'fewer' \\; SELECT 'none'", "SELECT 'fewer'")
                .replace(" \\; SELECT 2 AS five WHERE false", "");
            let text = text
                .replace("SELECT :n AS one", "SELECT :n::int AS one")
                .replace("'many', :p_one, :client_id", "'many', :p_one::int, :client_id::int");
            let text = text
                .replace("SELECT :four", "SELECT :four::int")
                .replace("'a:b'", "'a'")
                .replace("SELECT :p,", "SELECT :p::int,");
            desk.write("one.sql", &text).display().to_string()
        };
        for x in ["-Dx=2", "-Dx=7"] {
            let words = ["-n", "-t3", "-M", mode, x, "-f", &own, "postgres"];
            let expected = sent(&theirs, || drop(original(&place, &words)));
            let found = sent(&theirs, || _ = ours(&desk, &place, &words).expect_ok());
            assert!(expected.len() >= 3 * 4, "{expected:?}");
            assert_eq!(found, expected, "{mode} {x}");
        }
    }
}

/// The number of statements of each shape.
fn counted(statements: Vec<String>) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    statements.iter().for_each(|sql| *counts.entry(shape(sql)).or_default() += 1);
    counts
}

#[test]
#[ignore = "in cargo xtask test --all: the original pgbench"]
fn the_builtin_scripts_send_what_those_of_pgbench_do_and_make_the_same_tables() {
    let desk = Desk::new();
    let (theirs, place) = server(&desk);
    let mut facts = Vec::new();
    for database in ["theirs", "ours"] {
        theirs.create(database);
        if database == "theirs" {
            original(&place, &["-iq", "--foreign-keys", "-s2", database]);
        } else {
            ours(&desk, &place, &["-iq", "--foreign-keys", "-s2", database]).expect_ok();
        }
        let ExternalServer::Postgres(server) = &theirs else { panic!() };
        let number = |sql: &str| postgres::number(&server.options(Some(database)), sql).unwrap();
        facts.push([
            "SELECT SUM(aid * 7 + bid * 11 + abalance + LENGTH(filler)) FROM pgbench_accounts",
            "SELECT SUM(tid * 7 + bid * 11 + tbalance) FROM pgbench_tellers",
            "SELECT SUM(bid * 7 + bbalance) FROM pgbench_branches",
            "SELECT COUNT(*) FROM pgbench_history",
            "SELECT COUNT(*) FROM pg_constraint WHERE conname LIKE 'pgbench%'",
            "SELECT SUM(hashtext(column_name || data_type || ordinal_position || is_nullable)) FROM information_schema.columns WHERE table_name LIKE 'pgbench%'",
            "SELECT COUNT(*) FROM pg_class WHERE reloptions::text LIKE '%fillfactor=100%'",
        ].map(number));
    }
    assert_eq!(facts[0], facts[1]);
    for (script, mode) in
        [("tpcb-like", "simple"), ("simple-update", "prepared"), ("select-only", "extended")]
    {
        let words = ["-b", script, "-t20", "-c2", "-M", mode, "ours"];
        let expected = counted(sent(&theirs, || drop(original(&place, &words))));
        let found = counted(sent(&theirs, || _ = ours(&desk, &place, &words).expect_ok()));
        let wanted = |counts: BTreeMap<String, u32>| {
            counts
                .into_iter()
                .filter(|(shape, _)| !shape.starts_with("SELECTCOUNT") && !shape.starts_with("SELECTO.N"))
                .collect::<Vec<_>>()
        };
        let (found, expected) = (wanted(found), wanted(expected));
        assert!(expected.iter().any(|(_, count)| *count == 40), "{expected:?}");
        let shaped = |all: Vec<(String, u32)>| {
            all.into_iter()
                .map(|(shape, count)| (shape.replace("TRUNCATETABLE", "TRUNCATE"), count))
                .collect::<Vec<_>>()
        };
        assert_eq!(shaped(found), shaped(expected), "{script}");
    }
}

#[test]
#[ignore = "in cargo xtask test --all: the original pgbench"]
fn partitions_and_unlogged_tables_are_those_of_pgbench() {
    let desk = Desk::new();
    let (theirs, place) = server(&desk);
    let ExternalServer::Postgres(server) = &theirs else { panic!() };
    for (number, words) in [
        &["--partitions=3"][..],
        &["--partitions=4", "--partition-method=hash", "-F", "80"],
        &["--unlogged-tables"],
    ]
    .iter()
    .enumerate()
    {
        let facts = ["theirs", "ours"].map(|whose| {
            let database = format!("{whose}{number}");
            theirs.create(&database);
            let words = [&["-iq"], *words, &[&database]].concat();
            if whose == "theirs" {
                original(&place, &words);
            } else {
                ours(&desk, &place, &words).expect_ok();
            }
            let number = |sql: &str| postgres::number(&server.options(Some(&database)), sql).unwrap();
            [
                "SELECT SUM(hashtext(relname::text || relkind::text || relpersistence::text || COALESCE(reloptions::text, '') || COALESCE(pg_get_expr(relpartbound, oid), '') || COALESCE(pg_get_partkeydef(oid), ''))) FROM pg_class WHERE relname LIKE 'pgbench%' AND (relkind IN ('r', 'i', 'I') OR relpersistence = 'p')",
                "SELECT COUNT(*) FROM pg_class WHERE relname LIKE 'pgbench%'",
                "SELECT COUNT(*) FROM pgbench_accounts",
            ]
            .map(number)
        });
        assert_eq!(facts[0], facts[1], "{words:?}");
    }
}

#[test]
#[ignore = "in cargo xtask test --all: the original pgbench"]
fn the_report_is_that_of_pgbench() {
    let desk = Desk::new();
    let (theirs, place) = server(&desk);
    theirs.create("bench");
    ours(&desk, &place, &["-i", "bench"]).expect_ok();
    theirs.create("parts");
    ours(&desk, &place, &["-i", "--partitions=3", "--partition-method=hash", "parts"]).expect_ok();
    for words in [
        &["-t20", "-c2", "-r", "bench"][..],
        &["-t100", "-r", "-b", "select-only@2", "-N", "bench"],
        &["-t5", "-C", "-S", "-M", "prepared", "bench"],
        &["-T1", "-R50", "-L1000", "-P1", "-S", "bench"],
        &["-t20", "-c2", "-r", "-S", "-b", "tpcb@0", "--failures-detailed", "--max-tries=3", "bench"],
        &["-T1", "-S", "-N", "-R50", "-L1000", "--failures-detailed", "--max-tries=0", "-n", "bench"],
        &["-T1", "-S", "--max-tries=0", "-n", "parts"],
    ] {
        let (expected, _) = original(&place, words);
        let found = ours(&desk, &place, words).expect_ok().out.clone();
        let framed = |text: &str| {
            let lines = frame(text).into_iter();
            lines.filter(|line| !line.starts_with("pgbench (")).collect::<Vec<_>>()
        };
        assert_eq!(framed(&found), framed(&expected), "{found}");
    }
}

#[test]
fn the_command_makes_its_tables_and_leaves_balances_that_agree_with_every_protocol() {
    let desk = Desk::new();
    let ([.., theirs], database) = (ExternalServer::shared(), &*shared::database());
    theirs.create(database);
    let place = place_of(&POSTGRES);
    ours(&desk, &place, &["-iq", "-s2", database]).expect_ok();
    for mode in ["simple", "extended", "prepared"] {
        let ended = ours(&desk, &place, &["-t20", "-c2", "-n", "-M", mode, database]);
        let line = "number of transactions actually processed: 40/40";
        assert!(ended.expect_ok().out.contains(line), "{mode}: {}", ended.out);
    }
    let number = |sql: &str| postgres::number(&POSTGRES.options(Some(database)), sql).unwrap();
    assert_eq!(number("SELECT COUNT(*) FROM pgbench_history"), 3 * 40);
    let sum = number("SELECT SUM(delta) FROM pgbench_history");
    for (column, table) in [("abalance", "accounts"), ("tbalance", "tellers"), ("bbalance", "branches")] {
        assert_eq!(number(&format!("SELECT SUM({column}) FROM pgbench_{table}")), sum, "{table}");
    }
}

/// A script that begins a transaction and does not end it.
const OPEN: &str = "begin;\nupdate pgbench_accounts set abalance = 1 where aid = 1;\n";

#[test]
fn a_script_that_ends_within_a_transaction_aborts_the_run_and_keeps_nothing() {
    let desk = Desk::new();
    let ([.., theirs], database) = (ExternalServer::shared(), &*shared::database());
    theirs.create(database);
    let place = place_of(&POSTGRES);
    ours(&desk, &place, &["-iq", database]).expect_ok();
    let script = desk.write("open.sql", OPEN).display().to_string();
    for more in [&["-M", "simple"][..], &["-M", "prepared"], &["-C"]] {
        let ended = ours(&desk, &place, &[&["-n", "-t5", "-f", &script], more, &[database]].concat());
        let says =
            ended.err.contains("open.sql: its end was reached without completing the last transaction");
        let has_report = ended.out.contains("number of transactions actually processed: 0/5\n");
        assert!(ended.code == Some(2) && says && has_report, "{more:?}: {ended:?}");
    }
    let sql = "SELECT COUNT(*) FROM pgbench_accounts WHERE abalance <> 0";
    assert_eq!(postgres::number(&POSTGRES.options(Some(database)), sql), Some(0));
}

#[test]
fn a_plan_with_a_script_that_ends_within_a_transaction_fails_on_every_product() {
    let desk = Desk::new();
    let variants = shared::on_all() + "[[variant]]\nname = \"sqlite\"\nserver = \"sqlite\"\n";
    desk.write("open.sql", OPEN);
    desk.write(
        "p.toml",
        &format!("name = \"test\"\n{variants}\n[workload.pgbench]\nfiles = [\"open.sql\"]\n{PLAN}"),
    );
    desk.dbdyno(&["run", "p.toml"]).expect_code(4);
    let found = findings(&desk.run_dir());
    assert_eq!(found.run.cells_completed, 0);
    let says = |fault: &String| fault.contains("without completing the last transaction");
    assert_eq!(faults(&found).iter().filter(|fault| says(fault)).count(), 4, "{:?}", faults(&found));
}

const PLAN: &str = "scale = 1\nconnections = [2]\ntransactions = 40\nsettle = { by = \"none\" }\n";

#[test]
fn plans_run_the_builtin_scripts_on_every_product_and_balances_agree() {
    let desk = Desk::new();
    let variants = shared::on_all() + "[[variant]]\nname = \"sqlite\"\nserver = \"sqlite\"\n";
    // MariaDB 11.8 refuses to change a row that another transaction has changed since the snapshot.
    let files = "files = [\"tpcb-like@2\", \"select-only\"]\nmax_tries = 100\n";
    desk.write("p.toml", &format!("name = \"test\"\n{variants}\n[workload.pgbench]\n{files}{PLAN}"));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let found = findings(&desk.run_dir());
    assert_eq!((faults(&found), found.run.cells_completed), (Vec::new(), 4));
    let names: Vec<&str> = found.workloads[0].steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["load", "tpcb-like+select-only.c2"]);
}

#[test]
fn a_balance_that_does_not_agree_makes_the_step_invalid() {
    let desk = Desk::new();
    let ([.., theirs], database) = (ExternalServer::shared(), &*shared::database());
    theirs.create(database);
    ours(&desk, &place_of(&POSTGRES), &["-i", database]).expect_ok();
    for sql in [
        "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.tbalance = OLD.tbalance; RETURN NEW; END'",
        "CREATE TRIGGER keep BEFORE UPDATE ON pgbench_tellers FOR EACH ROW EXECUTE FUNCTION keep()",
    ] {
        postgres::number(&POSTGRES.options(Some(database)), sql);
    }
    theirs.plan(&desk, database, &format!("pgbench]\nuse_existing = true\n{PLAN}"));
    let faults = faults(&findings(&desk.run_dir()));
    assert!(faults.iter().any(|fault| fault.contains("sum of tellers")), "{faults:?}");
    assert!(!faults.iter().any(|fault| fault.contains("sum of branches")), "{faults:?}");
}
