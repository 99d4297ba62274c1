//! What is wrong with a plan, a flag, a name or the machine: one clear sentence, the right exit status, nothing begun.

use crate::support::Desk;
use crate::{TWO_VARIANTS, plan};

const ONE_VARIANT: &str = "[[variant]]\nname = \"a\"\nserver = \"sqlite\"";

/// What `dbdyno run` with these arguments says of the plan `text`; it must not have begun a run.
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
    insta::assert_snapshot!(said.split("; known keys").next().unwrap(), @"");
}

#[test]
fn an_unknown_key_of_an_override_is_shown_there() {
    let said = refused(&Desk::new(), &plan(ONE_VARIANT, ""), &["--set", "bloks=3"]);
    insta::assert_snapshot!(said, @"");
}

#[test]
fn an_override_without_a_value_is_a_usage_error() {
    let said = refused(&Desk::new(), &plan(ONE_VARIANT, ""), &["--set", "blocks"]);
    insta::assert_snapshot!(said, @"");
}

#[test]
fn a_wrong_unit_is_shown_with_line_and_column() {
    let said = refused(&Desk::new(), &plan(ONE_VARIANT, "read_write_time = \"1 parsec\""), &[]);
    insta::assert_snapshot!(said, @"");
}

#[test]
fn a_number_without_a_unit_is_no_duration() {
    let said = refused(&Desk::new(), &plan(ONE_VARIANT, "read_write_time = 30"), &[]);
    insta::assert_snapshot!(said, @"");
}

#[test]
fn a_plan_that_is_no_toml_is_shown_where_it_breaks() {
    let said = refused(&Desk::new(), "name = \"test\nblocks = 1\n", &[]);
    insta::assert_snapshot!(said, @"");
}

#[test]
fn a_plan_that_is_not_there_is_named() {
    let desk = Desk::new();
    insta::assert_snapshot!(desk.refusal(&desk.dbdyno(&["run", "missing.toml"])), @"");
    insta::assert_snapshot!(desk.refusal(&desk.dbdyno(&["plan", "missing.toml"])), @"");
}

#[test]
fn a_plan_without_variants_says_what_to_add() {
    let desk = Desk::new();
    insta::assert_snapshot!(refused(&desk, &plan("", ""), &[]), @"");
    insta::assert_snapshot!(refused(&desk, &plan("variant = []", ""), &[]), @"");
}

#[test]
fn a_base_directory_without_a_server_is_the_servers_fault() {
    let desk = Desk::new();
    desk.write("empty/readme", "nothing to run here");
    let text = plan(&ONE_VARIANT.replace("server = \"sqlite\"", "basedir = \"empty\""), "");
    insta::assert_snapshot!(refused(&desk, &text, &[]), @"");
}

#[test]
fn a_base_directory_whose_server_does_not_run_shows_why() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::new();
    let program =
        desk.write("broken/bin/mysqld", "#!/bin/sh\necho cannot open shared object file >&2\nexit 127\n");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let text = plan(&ONE_VARIANT.replace("server = \"sqlite\"", "basedir = \"broken\""), "");
    insta::assert_snapshot!(refused(&desk, &text, &[]), @"");
}

#[test]
fn an_unknown_server_lists_those_that_are_there() {
    let desk = Desk::new();
    desk.write("servers/mysql-8.0.31/bin/mysqld", "");
    desk.write("p.toml", &plan(&ONE_VARIANT.replace("sqlite", "mysql-8.0.99"), ""));
    let mut command = desk.command(&["run", "p.toml"]);
    let ended = desk.ended(command.env("DBDYNO_SERVERS", desk.path("servers")));
    insta::assert_snapshot!(desk.refusal(&ended), @"");
}

#[test]
fn an_option_file_that_is_not_there_is_named() {
    let desk = Desk::new();
    desk.write("p.toml", &plan(&format!("{ONE_VARIANT}\nmy_cnf = \"missing.cnf\""), ""));
    insta::assert_snapshot!(desk.refusal(&desk.dbdyno(&["run", "p.toml"])), @"");
}

#[test]
fn a_cpu_that_does_not_exist_is_the_machines_fault() {
    let host = "[host]\nserver_cpus = \"0\"\nclient_cpus = \"8000\"\n";
    let said = refused(&Desk::new(), &format!("{}{host}", plan(ONE_VARIANT, "")), &[]);
    let (head, tail) = said.split_once("it has ").unwrap();
    insta::assert_snapshot!(head, @"");
    assert!(tail.trim_end_matches(" CPUs)").parse::<u32>().is_ok_and(|cpus| cpus > 0), "{tail}");
}

#[test]
fn a_file_in_the_place_of_the_runs_is_named() {
    let desk = Desk::new();
    desk.write("file", "");
    let said = |out| refused(&desk, &plan(ONE_VARIANT, ""), &["--out", out]);
    insta::assert_snapshot!(said("file"), @"");
    insta::assert_snapshot!(said("file/below"), @"");
}

#[test]
fn too_little_disk_is_found_before_anything_starts() {
    let rows = "workload.insert-benchmark.load_rows=1_000_000_000_000";
    let desk = Desk::new();
    let said = refused(&desk, &plan(TWO_VARIANTS, ""), &["--set", rows]);
    let (head, rest) = said.split_once("which has ").unwrap();
    let (_, advice) = rest.split_once(" free").unwrap();
    insta::assert_snapshot!(format!("{head}which has FREE free{advice}"), @"");
}

#[test]
fn an_address_without_its_password_is_refused_before_it_is_asked() {
    let variant = "[[variant]]\nname = \"a\"\naddress = \"mysql://me@127.0.0.1:1/bench\"\npassword_env = \"DBDYNO_TEST_UNSET\"";
    insta::assert_snapshot!(refused(&Desk::new(), &plan(variant, ""), &[]), @"");
}

#[test]
fn an_address_with_a_password_in_it_is_refused_and_not_repeated() {
    let variant = "[[variant]]\nname = \"a\"\naddress = \"mysql://me:hunter2@127.0.0.1:1/bench\"";
    insta::assert_snapshot!(refused(&Desk::new(), &plan(variant, ""), &[]), @"");
}

#[test]
fn an_address_where_nobody_listens_is_the_servers_fault() {
    let variant = "[[variant]]\nname = \"a\"\naddress = \"mysql://me@127.0.0.1:1/bench\"";
    insta::assert_snapshot!(refused(&Desk::new(), &plan(variant, ""), &[]), @"");
}

#[test]
fn an_unknown_report_format_lists_those_there_are() {
    let desk = Desk::new();
    insta::assert_snapshot!(desk.refusal(&desk.dbdyno(&["report", "any", "--format", "pdf"])), @"");
}
