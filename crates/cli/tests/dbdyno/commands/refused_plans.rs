//! Tests that `dbdyno plan` reports whatever `dbdyno run` would refuse, and that both do so before
//! anything starts.

use crate::commands::{TWO_VARIANTS, plan};
use crate::support::Desk;

const MARIADB: &str = "echo 'mysqld  Ver 10.11.5-MariaDB for Linux on x86_64 (MariaDB Server)'";

/// Checks that `dbdyno plan` and `dbdyno run` refuse, in the same words, a variant on MariaDB whose
/// plan opens `connections`. Returns those words.
fn refused(desk: &Desk, variant: &str, connections: u32) -> String {
    desk.fake_server("server", MARIADB);
    let variant = format!("[[variant]]\nname = \"a\"\nbasedir = \"server\"\n{variant}\n");
    let workload =
        format!("[workload.oltp]\ntests = [\"point-select\"]\nconnections = {connections}\ntime = \"1s\"\n");
    desk.write("p.toml", &format!("name = \"p\"\n{variant}{workload}"));
    let said = ["plan", "run"].map(|command| desk.refusal(&desk.dbdyno(&[command, "p.toml"])));
    assert_eq!(said[0], said[1]);
    said[0].clone()
}

#[test]
fn too_many_connections_for_the_variants_config_are_refused_with_the_source_of_the_limit() {
    let desk = Desk::new();
    desk.write("my.cnf", "[mysqld]\nmax-connections = 50\n");
    insta::assert_snapshot!(refused(&desk, "config = { max_connections = 500 }", 600), @"exit 2: error: variant a: the plan opens 603 connections, and the server would take 500 (max_connections, by max_connections = 500 of its config); raise it, or plan fewer connections");
    insta::assert_snapshot!(refused(&desk, "own_config = \"my.cnf\"\nconfig = { max_connections = 500 }", 60), @"exit 2: error: variant a: the plan opens 63 connections, and the server would take 50 (max_connections in FOLDER/my.cnf); raise it, or plan fewer connections");
    insta::assert_snapshot!(refused(&desk, "", 200), @"exit 2: error: variant a: the plan opens 203 connections, and the server would take 151 (max_connections, its default); raise it, or plan fewer connections");
}

#[test]
fn an_option_that_is_not_for_the_server_is_refused_by_plan_too() {
    let desk = Desk::new();
    insta::assert_snapshot!(refused(&desk, "options.pragmas.cache_size = \"1\"", 1), @"exit 2: error: variant a: it has options.pragmas, which a MariaDB or MySQL server does not have; its options: engine, client_charset, column_definitions, deprecate_eof, session_track, server_public_key, allow_public_key_retrieval");
    insta::assert_snapshot!(refused(&desk, "options.sesion_track = true", 1), @"exit 2: error: variant a: it has options.sesion_track, which a MariaDB or MySQL server does not have (did you mean `session_track`?); its options: engine, client_charset, column_definitions, deprecate_eof, session_track, server_public_key, allow_public_key_retrieval");
    insta::assert_snapshot!(refused(&desk, "options.allow_public_key_retrieval = true", 1), @"exit 2: error: variant a: it has options.allow_public_key_retrieval, which is only for the address of a MariaDB or MySQL server");
}

#[test]
fn an_option_that_is_not_for_the_product_at_an_address_is_refused_before_it_is_connected_to() {
    let desk = Desk::new();
    for key in ["options.engine = \"innodb\"", "options.allow_public_key_retrieval = true"] {
        let variant = "[[variant]]\nname = \"a\"\naddress = \"postgres://u@nowhere.invalid/d\"\n";
        desk.write("p.toml", &plan(&format!("{variant}{key}\n"), ""));
        let name = key.split(' ').next().unwrap();
        for command in ["plan", "run"] {
            let said = desk.refusal(&desk.dbdyno(&[command, "p.toml"]));
            let wanted = format!("variant `a` has {name}, and a PostgreSQL server has no options");
            assert!(said.ends_with(&wanted), "{said}");
        }
    }
}

#[test]
fn an_engine_that_the_build_seems_to_lack_gives_a_warning() {
    let desk = Desk::new();
    desk.fake_server("server", MARIADB);
    let warnings = |engine: &str| {
        let variant =
            format!("[[variant]]\nname = \"a\"\nbasedir = \"server\"\noptions.engine = \"{engine}\"\n");
        desk.write("p.toml", &plan(&variant, ""));
        desk.dbdyno(&["plan", "p.toml"]).expect_ok().err.clone()
    };
    let doubt = "warning: variant a: engine tokudb is none of those that MariaDB 10.11.5 is built with, and ha_tokudb.so is not among \
                 its plugins: ";
    assert!(warnings("tokudb").contains(doubt), "{}", warnings("tokudb"));
    assert_eq!(warnings("Aria"), "");
    let answer = "[answer]\nproduct = \"MariaDB\"\nversion = \"10.11.5\"\nprogram = \"PROGRAM\"\nstart_ms = 1\n\
                  [answer.abilities]\nengines = [\"InnoDB\", \"MEMORY\"]\ndefault_engine = \"InnoDB\"\nthread_pool = \"none\"\nlogins = []\n\
                  default_login = \"\"\ntls = \"none\"\naio = []\njit = false\n[answer.settings]\nlog_bin = \"OFF\"\n";
    desk.fake_server("servers/mine", MARIADB);
    let program = std::fs::metadata(desk.path("servers/mine/bin/mysqld")).unwrap();
    use std::os::unix::fs::MetadataExt;
    let program = format!("{} bytes, changed {}.{:09}", program.len(), program.mtime(), program.mtime_nsec());
    let server_entry = format!("origin = \"added\"\nsource = \"x\"\n{answer}").replace("PROGRAM", &program);
    desk.write("servers/mine.toml", &server_entry);
    let on_mine = |engine: &str, command: &str| {
        let variant =
            format!("[[variant]]\nname = \"a\"\nserver = \"mine\"\noptions.engine = \"{engine}\"\n");
        desk.write("p.toml", &plan(&variant, ""));
        desk.ended(desk.command(&[command, "p.toml"]).env("DBDYNO_SERVERS", desk.path("servers")))
    };
    assert_eq!(on_mine("heap", "plan").expect_ok().err, "", "another word for MEMORY");
    for command in ["plan", "run"] {
        let ended = on_mine("aria", command);
        let said = "exit 2: error: variant a: MariaDB 10.11.5 has no engine aria; it has InnoDB, MEMORY";
        assert_eq!(desk.refusal(&ended), said);
    }
}

#[test]
fn a_margin_that_matches_no_step_gives_a_warning_in_plan_too() {
    let desk = Desk::new();
    desk.write("p.toml", &plan(TWO_VARIANTS, ""));
    let ended = desk.dbdyno(&["plan", "p.toml", "--set", "margins={ \"raed-*\" = 0.05 }"]);
    assert_eq!(ended.expect_ok().err, "warning: the margin of `raed-*` is for no step of this plan\n");
}

#[test]
fn a_detectable_difference_of_0_percent_is_refused() {
    let desk = Desk::new();
    let ended = desk.dbdyno(&["plan", "--detect", "0"]);
    assert!(ended.expect_code(2).err.contains("write a percentage above 0 and below 100"), "{}", ended.err);
}

#[test]
fn a_report_file_with_an_unknown_extension_is_refused() {
    let desk = Desk::new();
    desk.write("p.toml", &plan(TWO_VARIANTS, "read_write_time = \"1s\""));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let run = desk.run_dir();
    let run = run.to_str().unwrap();
    let refused = |arguments: &[&str]| desk.refusal(&desk.dbdyno(arguments));
    insta::assert_snapshot!(refused(&["report", run, "-o", "x.pdf"]), @"exit 2: error: no format has the ending .pdf; there are .txt, .md, .html, .csv, .json, .prom, .parquet, or use --format");
    insta::assert_snapshot!(refused(&["history", run, "-o", "x.csv"]), @"exit 2: error: no format has the ending .csv; there are .txt, .md, .html, .json, or use --format");
    assert!(!desk.path("x.pdf").exists());
    desk.dbdyno(&["report", run, "-o", "x.pdf", "--format", "md"]).expect_ok();
    desk.dbdyno(&["report", run, "-o", "x.txt"]).expect_ok();
    insta::assert_snapshot!(refused(&["history", run, "--plan", "nope"]), @r#"exit 2: error: no run is of a plan named "nope"; the plans of these runs: test"#);
    insta::assert_snapshot!(refused(&["history", run, "--plan", "test"]), @r#"exit 2: error: only one run is of the plan "test", and a history has two or more; the plans of these runs: test"#);
}

/// Checks that `dbdyno plan` and `dbdyno run` refuse `p.toml` in the same words. `plan` prints the
/// plan nevertheless.
fn both_refuse(desk: &Desk) -> String {
    let [plan, run] = ["plan", "run"].map(|command| desk.dbdyno(&[command, "p.toml"]));
    assert!(plan.out.contains("\norder of cells\n"), "{}", plan.out);
    assert_eq!((plan.code, &plan.err), (run.code, &run.err));
    assert_eq!(run.out, "");
    format!("exit {}: {}", run.code.unwrap_or(-1), desk.golden(run.err.trim_end()))
}

#[test]
fn a_plan_that_needs_more_than_the_machine_has_is_refused_by_plan_too() {
    let desk = Desk::new();
    let with = |host: &str, rows: &str| {
        let text = plan(TWO_VARIANTS, "").replace("load_rows = 2000", &format!("load_rows = {rows}"));
        let (head, tail) = text.split_once("[[variant]]").unwrap();
        desk.write("p.toml", &format!("{head}[host]\n{host}\n[[variant]]{tail}"));
        both_refuse(&desk)
    };
    let cpus = with("client_cpus = \"1023\"", "2000");
    assert!(
        cpus.starts_with("exit 3: error: host.client_cpus names CPU 1023, which this process may not use"),
        "{cpus}"
    );
    desk.write("file", "");
    insta::assert_snapshot!(with("data_dir = \"file/below\"", "2000"), @"exit 3: error: cannot make folder FOLDER/file/below: Not a directory (os error 20); name another one with --out or host.data_dir");
    let disk = with("", "100_000_000_000_000");
    assert!(
        disk.starts_with("exit 3: error: the plan needs about ") && disk.contains("plan fewer rows"),
        "{disk}"
    );
}

#[test]
fn a_login_that_lacks_its_files_is_refused_by_plan_without_connecting() {
    let desk = Desk::new();
    let address =
        "[[variant]]\nname = \"a\"\naddress = \"mysql://u@nowhere.invalid/d\"\noption_file = \"none.cnf\"\n";
    desk.write("p.toml", &plan(address, ""));
    insta::assert_snapshot!(both_refuse(&desk), @"exit 2: error: variant a: option file FOLDER/none.cnf: No such file or directory (os error 2)");
}
