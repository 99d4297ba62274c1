//! Tests `dbdyno pgbench` on a server: text that looks like a variable, refused scripts, logs, and
//! the ways in which a run ends.

use std::path::Path;

use crate::servers::pgbench::{ours, place_of};
use crate::servers::postgres;
use crate::servers::shared::{self, POSTGRES};
use crate::servers::sysbench::ExternalServer;
use crate::support::{Desk, Ended};

/// A new, empty database.
struct Bench {
    desk: Desk,
    database: String,
    place: Vec<String>,
}

impl Bench {
    fn new() -> Self {
        let ([.., theirs], database) = (ExternalServer::shared(), shared::database().to_string());
        theirs.create(&database);
        Self { desk: Desk::new(), database, place: place_of(&POSTGRES) }
    }

    fn run(&self, script: &str, words: &[&str]) -> Ended {
        let script = self.desk.write("s.sql", script).display().to_string();
        self.words(&[&["-n", "-f", &script], words].concat())
    }

    fn words(&self, words: &[&str]) -> Ended {
        ours(&self.desk, &self.place, &[words, &[&self.database]].concat())
    }

    fn number(&self, sql: &str) -> Option<i64> {
        postgres::number(&POSTGRES.options(Some(&self.database)), sql)
    }
}

/// The lines of each file whose name begins with `prefix`.
fn logged(folder: &Path, prefix: &str) -> Vec<Vec<String>> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let own = files.filter(|file| file.file_name().to_string_lossy().starts_with(prefix));
    let mut paths: Vec<_> = own.map(|file| file.path()).collect();
    paths.sort();
    let lines = |path| std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect();
    paths.into_iter().map(lines).collect()
}

#[test]
fn digits_after_a_colon_are_text_with_every_protocol() {
    let bench = Bench::new();
    let script = "SELECT TIMESTAMP '2026-11-28 12:34:56' AS t, '12:34'::text AS c \\gset\n\
                  SELECT 1 / (EXTRACT(second FROM TIMESTAMP '2026-11-28 12:34:56') = 56 AND '12:34'::text = '12' || chr(58) || '34')::int;\n";
    for mode in ["simple", "extended", "prepared"] {
        let ended = bench.run(script, &["-t2", "-M", mode]);
        assert!(ended.expect_ok().out.contains("actually processed: 2/2"), "{mode}: {}", ended.out);
    }
    for (words, says) in [
        (&["-D", "1x=1"][..], "define has an invalid variable name: \"1x\""),
        (&["-t1"], "line 2: invalid variable name: \"1x\""),
    ] {
        let ended = bench.run("SELECT 1;\n\\set 1x 5\n", words);
        assert!(ended.expect_code(1).err.contains(says), "{}", ended.err);
    }
    // The name of a column must be valid as a variable's name.
    let ended = bench.run("SELECT 1 AS \"1a\" \\gset\n", &["-t1"]);
    assert!(ended.expect_code(2).err.contains("line 1: invalid variable name: \"1a\""), "{}", ended.err);
}

#[test]
fn a_copy_that_only_the_server_sees_ends_the_run() {
    let bench = Bench::new();
    bench.number("CREATE TABLE t (a int)");
    for (script, x) in
        [("SELECT 1;\nCOPY (SELECT 1) TO :x;\n", "x=STDOUT"), ("\nCOPY t FROM :x;\n", "x=STDIN")]
    {
        let ended = bench.run(script, &["-t2", "-D", x]);
        let says = "line 2: COPY is not supported in pgbench, aborting";
        assert!(ended.expect_code(2).err.contains(says), "{}", ended.err);
    }
}

#[test]
fn a_sleep_ends_with_the_step() {
    let ended = Bench::new().run("SELECT 1;\n\\sleep 100000 s\nSELECT 2;\n", &["-T1", "-c2"]);
    let out = &ended.expect_ok().out;
    assert!(out.contains("number of failed transactions: 0 "), "{out}");
}

/// The script fails when it runs for the fifth time.
const FIFTH: &str = "SELECT nextval('s') AS n \\gset\nSELECT 1 / (5 - :n);\n";

#[test]
fn an_aborted_run_reports_its_completed_transactions() {
    let bench = Bench::new();
    let begin = |bench: &Bench| bench.number("CREATE SEQUENCE s");
    begin(&bench);
    let ended = bench.run(FIFTH, &["-t10", "-l"]);
    ended.expect_code(2);
    assert!(ended.out.contains("number of transactions actually processed: 4/10\n"), "{}", ended.out);
    assert!(ended.out.contains("number of failed transactions: 0 (0.000%)\n"), "{}", ended.out);
    assert!(ended.out.contains("\ntps = "), "{}", ended.out);
    assert!(ended.err.contains("line 2: ") && ended.err.contains("division by zero"), "{}", ended.err);
    let last = "error: Run was aborted; the above results are incomplete.\n";
    assert!(ended.err.ends_with(last), "{}", ended.err);
    assert_eq!(logged(&bench.desk.path("."), "pgbench_log").concat().len(), 4);
    bench.number("ALTER SEQUENCE s RESTART");
    let ended = bench.run(FIFTH, &["-t10", "--exit-on-abort"]);
    assert!(ended.expect_code(2).out.is_empty(), "{}", ended.out);
}

#[test]
fn errors_before_the_run_have_status_1() {
    let bench = Bench::new();
    for words in [
        &["-Z"][..],
        &["-b", "nix"],
        &["-b", "s"],
        &["-t1", "-T1"],
        &["-S", "-t1"],
        &["-n", "-t1", "-h", "/nowhere", "-f", "s.sql"],
        &["-n", "-f", "missing.sql"],
        &["-n", "-S", "--sampling-rate=0.5"],
        &["-i", "--partition-method=hash"],
    ] {
        bench.desk.write("s.sql", "SELECT 1;");
        let ended = bench.words(words);
        assert!(ended.code == Some(1) && ended.out.is_empty(), "{words:?}: {ended:?}");
    }
}

/// In seven consecutive tries, two fail with a serialization failure and three with a deadlock.
const FAILS: &str = "\
SELECT nextval('s') % 7 AS n \\gset
\\if :n < 2
DO $$ BEGIN RAISE SQLSTATE '40001'; END $$;
\\elif :n < 5
DO $$ BEGIN RAISE SQLSTATE '40P01'; END $$;
\\endif
";

/// The lines of `text` without times, rates and folders.
fn without_times(text: &str) -> String {
    let timed = ["tps = ", "latency average", "latency stddev", "initial connection", "pgbench ("];
    let lines = text.lines().filter(|line| !timed.iter().any(|timed| line.contains(timed)));
    let latency = |line: &str| match line.strip_prefix("   ") {
        Some(rest) => format!("   ms  {}", rest.trim_start().split_once(' ').unwrap().1.trim_start()),
        None => line.rsplit_once(": /").map_or(line.to_owned(), |(head, _)| head.to_owned()),
    };
    lines.map(latency).collect::<Vec<_>>().join("\n")
}

#[test]
fn failures_and_retries_are_counted_by_script_and_command_and_logged() {
    let bench = Bench::new();
    bench.number("CREATE SEQUENCE s MINVALUE 0 START 0");
    let one = bench.desk.write("one.sql", "SELECT 1;\n").display().to_string() + "@0";
    let words = ["-t8", "-r", "--failures-detailed", "--max-tries=2", "-l", "--log-prefix=L", "-f", &one];
    let ended = bench.run(FAILS, &words);
    insta::assert_snapshot!(without_times(&ended.expect_ok().out), @r"
    transaction type: multiple scripts
    scaling factor: 1
    query mode: simple
    number of clients: 1
    number of threads: 1
    maximum number of tries: 2
    number of transactions per client: 8
    number of transactions actually processed: 4/8
    number of failed transactions: 4 (50.000%)
    number of serialization failures: 2 (25.000%)
    number of deadlock failures: 2 (25.000%)
    number of transactions retried: 6 (75.000%)
    total number of retries: 6
    SQL script 1
     - weight: 1 (targets 100.0% of total)
     - number of failed transactions: 4 (50.000%)
     - number of serialization failures: 2 (25.000%)
     - number of deadlock failures: 2 (25.000%)
     - number of transactions retried: 6 (75.000%)
     - total number of retries: 6
     - statement latencies in milliseconds, failures and retries:
       ms  0           0  SELECT nextval('s') % 7 AS n
       ms  0           0  \if :n < 2
       ms  2           2  DO $$ BEGIN RAISE SQLSTATE '40001'; END $$;
       ms  0           0  \elif :n < 5
       ms  2           4  DO $$ BEGIN RAISE SQLSTATE '40P01'; END $$;
       ms  0           0  \endif
    SQL script 2
     - weight: 0 (targets 0.0% of total)
     - number of failed transactions: 0 (NaN%)
     - number of serialization failures: 0 (NaN%)
     - number of deadlock failures: 0 (NaN%)
     - number of transactions retried: 0 (NaN%)
     - total number of retries: 0
     - statement latencies in milliseconds, failures and retries:
       ms  0           0  SELECT 1;
    ");
    let lines = logged(&bench.desk.path("."), "L.").concat();
    let without_time = |line: &String| {
        let words: Vec<&str> = line.split(' ').collect();
        let result = if words[2].parse::<u64>().is_ok() { "done" } else { words[2] };
        format!("{} {} {result} {} {}", words[0], words[1], words[3], words[6])
    };
    let lines: Vec<String> = lines.iter().map(without_time).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    0 1 serialization 0 1
    0 2 deadlock 0 1
    0 3 done 0 1
    0 4 done 0 0
    0 5 serialization 0 1
    0 6 deadlock 0 1
    0 7 done 0 1
    0 8 done 0 0
    ");
}

#[test]
fn logs_have_a_file_per_thread_and_intervals_count_all_transactions() {
    let bench = Bench::new();
    bench.run("SELECT 1;\n", &["-t50", "-c4", "-j2", "-l"]).expect_ok();
    let files = logged(&bench.desk.path("."), "pgbench_log.");
    let clients = |lines: &[String]| {
        let mut own: Vec<String> = lines.iter().map(|line| line[..1].to_owned()).collect();
        own.sort();
        own.dedup();
        (own.join(","), lines.len())
    };
    let found: Vec<_> = files.iter().map(|lines| clients(lines)).collect();
    assert_eq!(found, [("0,1".to_owned(), 100), ("2,3".to_owned(), 100)]);
    let ended = bench.run("SELECT 1;\n", &["-T3", "-l", "--aggregate-interval=1", "--log-prefix=a"]);
    let lines = logged(&bench.desk.path("."), "a.").concat();
    let columns = |line: &String| line.split(' ').map(|word| word.parse::<f64>().unwrap()).collect();
    let rows: Vec<Vec<f64>> = lines.iter().map(columns).collect();
    assert!(rows.len() >= 3 && rows.iter().all(|row| row.len() == 15), "{lines:?}");
    assert!(rows.windows(2).all(|pair| pair[1][0] == pair[0][0] + 1.0), "{lines:?}");
    let processed: f64 = {
        let line = ended.expect_ok().out.lines().find(|line| line.contains("actually processed")).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let counted: f64 = rows.iter().map(|row| row[1]).sum();
    // A transaction may end after the last interval.
    assert!(counted <= processed && counted > 0.0, "{counted} of {processed}");
}

#[test]
fn transactions_that_are_too_late_are_skipped_counted_by_script_and_logged() {
    let bench = Bench::new();
    let other = bench.desk.write("other.sql", "\\sleep 30 ms\nSELECT 2;\n").display().to_string();
    let words = ["-T1", "-R500", "-L5", "-l", "-f", &other];
    let ended = bench.run("\\sleep 30 ms\nSELECT 1;\n", &words);
    let out = &ended.expect_ok().out;
    let counts = |begin: &str| -> Vec<usize> {
        let own = out.lines().filter_map(|line| line.strip_prefix(begin));
        own.map(|rest| rest.split(' ').next().unwrap().parse().unwrap()).collect()
    };
    let all = counts("number of transactions skipped: ")[0];
    let each = counts(" - number of transactions skipped: ");
    assert!(all > 0 && each.len() == 2 && each.iter().sum::<usize>() == all, "{out}");
    let lines = logged(&bench.desk.path("."), "pgbench_log.").concat();
    let skipped = lines.iter().filter(|line| line.contains(" skipped ")).count();
    let numbers: Vec<usize> =
        lines.iter().map(|line| line.split(' ').nth(1).unwrap().parse().unwrap()).collect();
    assert_eq!((skipped, numbers), (all, (1..=lines.len()).collect()), "{out}");
}

#[test]
fn tries_end_with_the_time_of_the_transaction_or_of_the_run() {
    let bench = Bench::new();
    let always = "DO $$ BEGIN RAISE SQLSTATE '40001'; END $$;\n";
    let ended = bench.run(always, &["-t3", "-L20", "--max-tries=0", "--failures-detailed"]);
    let says =
        "processed: 0/3\nnumber of failed transactions: 3 (100.000%)\nnumber of serialization failures: 3";
    let out = &ended.expect_ok().out;
    assert!(out.contains(says) && !out.contains("maximum number of tries"), "{out}");
    let ended = bench.run(always, &["-T1", "--max-tries=0"]);
    assert!(ended.expect_ok().out.contains("processed: 0\nnumber of failed transactions: "), "{}", ended.out);
}

#[test]
fn verbose_errors_are_printed_and_the_builtin_scripts_listed() {
    let bench = Bench::new();
    bench.number("CREATE SEQUENCE s MINVALUE 0 START 0");
    let ended = bench.run(FAILS, &["-t2", "--verbose-errors", "--max-tries=2"]);
    let err = &ended.expect_ok().err;
    let errors: Vec<&str> = err.lines().filter(|line| line.starts_with("client 0 got an error")).collect();
    assert_eq!(errors.len(), 4, "{err}");
    assert!(errors[0].starts_with("client 0 got an error in command 2 (SQL) of script 0; "), "{err}");
    assert!(errors[3].starts_with("client 0 got an error in command 4 (SQL) of script 0; "), "{err}");
    let says = |what: &str| err.matches(what).count();
    assert_eq!(says("\nclient 0 repeats the transaction after the error (try 1/2)\n"), 2, "{err}");
    assert_eq!(says("\nclient 0 ends the failed transaction (try 2/2)\n"), 2, "{err}");
    let listed = bench.words(&["-b", "list"]);
    assert!(
        listed.expect_ok().err.contains("      tpcb-like: <builtin: TPC-B (sort of)>\n"),
        "{}",
        listed.err
    );
    let shown = bench.words(&["--show-script=se"]);
    assert!(shown.expect_ok().err.starts_with("-- select-only: <builtin: select only>\n"), "{}", shown.err);
}

#[test]
fn verbose_errors_of_many_clients_are_whole_lines() {
    let bench = Bench::new();
    let always = "DO $$ BEGIN RAISE SQLSTATE '40001'; END $$;\n";
    let ended = bench.run(always, &["-t5", "-c8", "-j4", "--verbose-errors", "--max-tries=2"]);
    let err = &ended.expect_ok().err;
    for client in 0..8 {
        let count = |line: &dyn Fn(&str) -> bool| err.lines().filter(|own| line(own)).count();
        let got = format!("client {client} got an error in command 0 (SQL) of script 0; ");
        let [repeats, ends] = [
            format!("client {client} repeats the transaction after the error (try 1/2)"),
            format!("client {client} ends the failed transaction (try 2/2)"),
        ];
        let counts = (
            count(&|line| line.starts_with(&got)),
            count(&|line| line == repeats),
            count(&|line| line == ends),
        );
        assert_eq!(counts, (10, 5, 5), "{err}");
    }
}

#[test]
fn a_transaction_of_any_isolation_level_begins_within_a_pipeline() {
    let bench = Bench::new();
    bench.number("CREATE TABLE t (a int)");
    let script = "\\startpipeline\nBEGIN ISOLATION LEVEL SERIALIZABLE;\nINSERT INTO t VALUES (1);\nSELECT 1;\nCOMMIT;\n\\endpipeline\n";
    for mode in ["extended", "prepared"] {
        let ended = bench.run(script, &["-t3", "-c2", "-M", mode]);
        assert!(ended.expect_ok().out.contains("actually processed: 6/6"), "{mode}: {}", ended.out);
    }
    assert_eq!(bench.number("SELECT COUNT(*) FROM t"), Some(12));
}

#[test]
fn an_error_within_a_pipeline_is_the_one_that_is_reported() {
    let bench = Bench::new();
    let script = "\\startpipeline\nSELECT 1;\nSELECT 1 / 0;\nSELECT no_such_column;\n\\endpipeline\n";
    for mode in ["extended", "prepared"] {
        // In prepared mode, a statement that cannot be prepared is refused before anything is sent.
        let script = if mode == "prepared" {
            script.replace("no_such_column", "1 / 0 + 1")
        } else {
            script.to_owned()
        };
        let ended = bench.run(&script, &["-t3", "-M", mode]);
        assert!(ended.expect_code(2).err.contains("division by zero"), "{mode}: {}", ended.err);
        assert!(ended.out.contains("actually processed: 0/3"), "{mode}: {}", ended.out);
    }
    bench.number("CREATE SEQUENCE s MINVALUE 0 START 0");
    let script = "\\startpipeline\nSELECT 1;\nDO $$ BEGIN IF nextval('s') % 3 = 0 THEN RAISE SQLSTATE '40001'; END IF; END $$;\nSELECT 2;\n\\endpipeline\n";
    let ended = bench.run(script, &["-t6", "-M", "extended", "--max-tries=2"]);
    let out = &ended.expect_ok().out;
    assert!(out.contains("actually processed: 6/6") && out.contains("number of retries: 3"), "{out}");
}

#[test]
fn an_if_inside_a_branch_that_does_not_run_does_not_run_either() {
    let bench = Bench::new();
    bench.number("CREATE TABLE ran (n int)");
    let insert = |n: u32| format!("INSERT INTO ran VALUES ({n});\n");
    let [one, two, three, four] = [1, 10, 100, 1000].map(insert);
    let within = format!("\\if 1\n{one}\\elif 1\n{two}\\else\n{three}\\endif\n");
    for (script, sum) in [
        (format!("\\if 0\n{within}\\endif\n{four}"), 1000),
        (format!("\\if 0\n{within}\\elif 1\n{four}\\endif\n"), 1000),
        (format!("\\if 0\n{within}\\else\n{four}\\endif\n"), 1000),
        (format!("\\if 1\n{four}\\else\n{within}\\endif\n"), 1000),
        (format!("\\if 1\n{within}\\endif\n{four}"), 1001),
    ] {
        bench.run(&script, &["-t1"]).expect_ok();
        assert_eq!(bench.number("SELECT SUM(n) FROM ran"), Some(sum), "{script}");
        bench.number("TRUNCATE ran");
    }
}

#[test]
fn accounts_are_partitioned_and_the_report_says_so() {
    let bench = Bench::new();
    bench.words(&["-iq", "--partitions=3", "--unlogged-tables"]).expect_ok();
    assert_eq!(bench.number("SELECT COUNT(DISTINCT tableoid) FROM pgbench_accounts"), Some(3));
    let unlogged = "SELECT COUNT(*) FROM pg_class WHERE relpersistence = 'u' AND relkind = 'r' AND relname LIKE 'pgbench%'";
    assert_eq!(bench.number(unlogged), Some(6));
    let ended = bench.words(&["-t5", "-n"]);
    let says = "scaling factor: 1\npartition method: range\npartitions: 3\nquery mode";
    assert!(ended.expect_ok().out.contains(says), "{}", ended.out);
}
