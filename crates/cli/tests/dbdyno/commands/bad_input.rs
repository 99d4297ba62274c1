//! Errors in a plan, a flag, a name or the machine. Each must give one clear sentence and the right
//! exit status, and must leave no run behind.

use crate::commands::{TWO_VARIANTS, plan};
use crate::support::Desk;

const ONE_VARIANT: &str = "[[variant]]\nname = \"a\"\nserver = \"sqlite\"";

/// Returns the error of `dbdyno run` with these arguments for the plan `text`. No run may have
/// begun.
fn refused(desk: &Desk, text: &str, arguments: &[&str]) -> String {
    desk.write("p.toml", text);
    let ended = desk.dbdyno(&[&["run", "p.toml"], arguments].concat());
    assert!(desk.run_dirs().is_empty(), "a run was begun");
    desk.refusal(&ended)
}

#[test]
fn an_unknown_key_names_the_one_that_was_meant() {
    let text = plan(ONE_VARIANT, "").replace("load_rows", "load_row");
    let said = refused(&Desk::new(), &text, &[]);
    insta::assert_snapshot!(said, @"exit 2: error: p.toml:6:1: unknown key `load_row` (did you mean `load_rows`?)");
}

#[test]
fn an_unknown_key_of_an_override_is_shown_there() {
    let said = refused(&Desk::new(), &plan(ONE_VARIANT, ""), &["--set", "bloks=3"]);
    insta::assert_snapshot!(said, @"exit 2: error: --set bloks: unknown key `bloks` (did you mean `blocks`?)");
}

#[test]
fn an_override_without_a_value_is_a_usage_error() {
    let said = refused(&Desk::new(), &plan(ONE_VARIANT, ""), &["--set", "blocks"]);
    insta::assert_snapshot!(said, @"
    exit 2: error: invalid value 'blocks' for '--set <KEY=VALUE>': write KEY=VALUE, for instance blocks=5

    For more information, try '--help'.
    ");
}

#[test]
fn a_wrong_unit_is_shown_with_line_and_column() {
    let said = refused(&Desk::new(), &plan(ONE_VARIANT, "read_write_time = \"1 parsec\""), &[]);
    insta::assert_snapshot!(said, @r#"exit 2: error: p.toml:10:19: "parsec" in "1 parsec" is not a unit of time: write a number and its unit (ms, s, m or h) in quotes, e.g. "30s""#);
}

#[test]
fn a_number_without_a_unit_is_not_a_duration() {
    let said = refused(&Desk::new(), &plan(ONE_VARIANT, "read_write_time = 30"), &[]);
    insta::assert_snapshot!(said, @r#"exit 2: error: p.toml:10:19: the duration 30 has no unit: write a number and its unit (ms, s, m or h) in quotes, e.g. "30s""#);
}

#[test]
fn a_plan_that_is_not_toml_is_shown_with_line_and_column() {
    let said = refused(&Desk::new(), "name = \"test\nblocks = 1\n", &[]);
    insta::assert_snapshot!(said, @r#"exit 2: error: p.toml:1:13: this is not TOML: invalid basic string, expected `"`"#);
}

#[test]
fn a_missing_plan_is_named() {
    let desk = Desk::new();
    insta::assert_snapshot!(desk.refusal(&desk.dbdyno(&["run", "missing.toml"])), @"exit 2: error: cannot read the plan missing.toml: No such file or directory (os error 2); give the path of a plan file (TOML); `dbdyno init` makes one, `dbdyno plans` lists those that ship");
    insta::assert_snapshot!(desk.refusal(&desk.dbdyno(&["plan", "missing.toml"])), @"exit 2: error: cannot read the plan missing.toml: No such file or directory (os error 2); give the path of a plan file (TOML); `dbdyno init` makes one, `dbdyno plans` lists those that ship");
}

#[test]
fn an_unknown_shipped_plan_names_the_one_that_was_meant() {
    let desk = Desk::new();
    insta::assert_snapshot!(desk.refusal(&desk.dbdyno(&["run", "@mariadb-vs-mysq"])), @r#"exit 2: error: no plan that ships is called "mariadb-vs-mysq"; did you mean mariadb-vs-mysql? `dbdyno plans` lists all"#);
}

#[test]
fn a_plan_without_variants_says_what_to_add() {
    let desk = Desk::new();
    insta::assert_snapshot!(refused(&desk, &plan("", ""), &[]), @"exit 2: error: p.toml:1:1: the key `variant` is missing: a plan compares [[variant]] tables, at least one");
    insta::assert_snapshot!(refused(&desk, &plan("variant = []", ""), &[]), @"exit 2: error: p.toml:2:11: the plan has no variant: add a [[variant]] with a name and a server");
}

#[test]
fn a_base_directory_without_a_server_is_the_servers_fault() {
    let desk = Desk::new();
    desk.write("empty/readme", "nothing to run here");
    let text = plan(&ONE_VARIANT.replace("server = \"sqlite\"", "basedir = \"empty\""), "");
    insta::assert_snapshot!(refused(&desk, &text, &[]), @"exit 4: error: variant a: FOLDER/empty contains no server that dbdyno supports: looked for bin/mysqld, bin/mariadbd, sbin/mysqld, sbin/mariadbd, usr/sbin/mysqld, usr/sbin/mariadbd, libexec/mysqld, libexec/mariadbd, bin/postgres with bin/initdb, usr/lib/postgresql/*/bin/postgres; give the folder that the server was unpacked or installed into");
}

#[test]
fn a_base_directory_whose_server_does_not_run_shows_why() {
    let desk = Desk::new();
    desk.fake_server("broken", "echo cannot open shared object file >&2\nexit 127");
    let text = plan(&ONE_VARIANT.replace("server = \"sqlite\"", "basedir = \"broken\""), "");
    insta::assert_snapshot!(refused(&desk, &text, &[]), @"exit 4: error: variant a: FOLDER/broken/bin/mysqld --version failed: exit status: 127: cannot open shared object file");
}

#[test]
fn an_unknown_server_lists_suggestions() {
    let desk = Desk::new();
    desk.write("servers/mysql-8.0.31/bin/mysqld", "");
    desk.write("p.toml", &plan(&ONE_VARIANT.replace("sqlite", "mysql-8.0.99"), ""));
    let mut command = desk.command(&["run", "p.toml"]);
    let ended = desk.ended(command.env("DBDYNO_SERVERS", desk.path("servers")));
    insta::assert_snapshot!(desk.refusal(&ended), @"exit 4: error: variant a: no server mysql-8.0.99 in FOLDER/servers; suggestions: mysql-8.0.12, mysql-8.0.15, mysql-8.0.22, mysql-8.0.31; `dbdyno servers list` shows all");
}

#[test]
fn a_missing_option_file_is_named() {
    let desk = Desk::new();
    desk.fake_server(
        "server",
        "echo 'mysqld  Ver 8.0.31 for Linux on x86_64 (MySQL Community Server - GPL)'",
    );
    let variant =
        ONE_VARIANT.replace("server = \"sqlite\"", "basedir = \"server\"\nown_config = \"missing.cnf\"");
    insta::assert_snapshot!(refused(&desk, &plan(&variant, ""), &[]), @"exit 2: error: variant a: own_config: option file FOLDER/missing.cnf: No such file or directory (os error 2)");
}

#[test]
fn a_cpu_that_does_not_exist_is_the_machines_fault() {
    let host = "[host]\nserver_cpus = \"0\"\nclient_cpus = \"8000\"\n";
    let said = refused(&Desk::new(), &format!("{}{host}", plan(ONE_VARIANT, "")), &[]);
    let (head, usable) = said.split_once("it may use ").unwrap();
    insta::assert_snapshot!(head, @"exit 3: error: host.client_cpus names CPU 8000, which this process may not use; ");
    let usable: dbdyno_model::CpuList = usable.trim().parse().unwrap();
    assert_eq!(usable.0.len(), std::thread::available_parallelism().unwrap().get());
}

#[test]
fn an_event_loop_that_may_not_open_its_files_is_the_machines_fault() {
    let desk = Desk::new();
    desk.write("p.toml", &plan(ONE_VARIANT, ""));
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "ulimit -n 5; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_dbdyno"), "plan", "p.toml"]);
    desk.prepare(&mut shell);
    insta::assert_snapshot!(desk.refusal(&desk.ended(&mut shell)), @"exit 3: error: cannot start an event loop: Too many open files (os error 24); let this process open more files (ulimit -n, now 5)");
}

#[test]
fn a_file_in_place_of_the_output_folder_is_named() {
    let desk = Desk::new();
    desk.write("file", "");
    let said = |out| refused(&desk, &plan(ONE_VARIANT, ""), &["--out", out]);
    insta::assert_snapshot!(said("file"), @"exit 3: error: cannot make folder file: File exists (os error 17); name another one with --out or host.data_dir");
    insta::assert_snapshot!(said("file/below"), @"exit 3: error: cannot make folder file/below: Not a directory (os error 20); name another one with --out or host.data_dir");
}

#[test]
fn too_little_disk_is_found_before_anything_starts() {
    let rows = "workload.insert-benchmark.load_rows=1_000_000_000_000";
    let desk = Desk::new();
    let said = refused(&desk, &plan(TWO_VARIANTS, ""), &["--set", rows]);
    let (head, rest) = said.split_once("which has ").unwrap();
    let (_, advice) = rest.split_once(" free").unwrap();
    insta::assert_snapshot!(format!("{head}which has FREE free{advice}"), @"exit 3: error: the plan needs about 195.0 TB in runs, which has FREE free; make room, name another folder with host.data_dir, or plan fewer rows");
}

#[test]
fn an_address_without_its_password_is_refused_before_connecting() {
    let variant = "[[variant]]\nname = \"a\"\naddress = \"mysql://me@127.0.0.1:1/bench\"\npassword_env = \"DBDYNO_TEST_UNSET\"";
    insta::assert_snapshot!(refused(&Desk::new(), &plan(variant, ""), &[]), @"exit 2: error: variant a: credentials: the environment variable DBDYNO_TEST_UNSET, which should hold the password, is not set");
}

#[test]
fn an_address_with_a_password_in_it_is_refused_and_not_repeated() {
    let variant = "[[variant]]\nname = \"a\"\naddress = \"mysql://me:hunter2@127.0.0.1:1/bench\"";
    insta::assert_snapshot!(refused(&Desk::new(), &plan(variant, ""), &[]), @r#"exit 2: error: p.toml:4:11: variant `a` has an address that holds a password: take it out and set password_env = "NAME" (an environment variable) or option_file = "PATH" (a MySQL option file, or a password file of PostgreSQL)"#);
}

#[test]
fn an_address_where_no_server_listens_is_the_servers_fault() {
    let variant = "[[variant]]\nname = \"a\"\naddress = \"mysql://me@127.0.0.1:1/bench\"";
    insta::assert_snapshot!(refused(&Desk::new(), &plan(variant, ""), &[]), @"exit 4: error: variant a: looking for database bench: connecting to 127.0.0.1:1 as me: Connection refused (os error 111); is the server running, and are host and port right? (io)");
}

#[test]
fn an_unknown_report_format_lists_the_known_ones() {
    let desk = Desk::new();
    insta::assert_snapshot!(desk.refusal(&desk.dbdyno(&["report", "any", "--format", "pdf"])), @"exit 2: error: no report format is called `pdf`; use one of: terminal, md, html, csv, json, openmetrics, parquet");
}
