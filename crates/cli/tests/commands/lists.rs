//! `dbdyno plan` and `dbdyno list`: what would run, what there is.

use crate::support::Desk;
use crate::{TWO_VARIANTS, plan};

#[test]
fn a_plan_is_explained_without_running_it() {
    let desk = Desk::new();
    desk.write("p.toml", &plan(TWO_VARIANTS, "read_write_time = \"10s\"\nclients = 2"));
    let ended = desk.dbdyno(&["plan", "p.toml", "--set", "blocks=2"]);
    ended.expect_ok();
    assert!(!desk.path("runs").exists(), "a plan was run or prepared");
    insta::assert_snapshot!(ended.out, @"");
}

#[test]
fn a_plan_with_its_defaults_reads_back_as_the_same_plan() {
    let desk = Desk::new();
    desk.write("p.toml", &plan(TWO_VARIANTS, ""));
    let resolved = desk.dbdyno(&["plan", "p.toml", "--resolved"]);
    resolved.expect_ok();
    desk.write("resolved.toml", &resolved.out);
    assert_eq!(desk.dbdyno(&["plan", "resolved.toml", "--resolved"]).out, resolved.out);
    assert_eq!(desk.dbdyno(&["plan", "resolved.toml"]).out, desk.dbdyno(&["plan", "p.toml"]).out);
}

#[test]
fn the_schema_is_one_json_document() {
    let ended = Desk::new().dbdyno(&["plan", "--schema"]);
    let schema: serde_json::Value = serde_json::from_str(&ended.expect_ok().out).unwrap();
    assert!(schema["properties"]["variant"].is_object(), "{schema}");
}

#[test]
fn workloads_are_listed() {
    insta::assert_snapshot!(Desk::new().dbdyno(&["list", "workloads"]).expect_ok().out, @"");
}

#[test]
fn drivers_are_listed() {
    insta::assert_snapshot!(Desk::new().dbdyno(&["list", "drivers"]).expect_ok().out, @"");
}

#[test]
fn every_column_of_the_reports_is_listed() {
    let text = Desk::new().dbdyno(&["list", "metrics"]).expect_ok().out.clone();
    let metrics = dbdyno_report::METRICS.iter().map(|column| (column.name, column.unit));
    let costs = dbdyno_report::COSTS.iter().map(|column| (column.name, column.unit));
    for (name, unit) in metrics.chain(costs) {
        let line = text.lines().find(|line| line.starts_with(&format!("{name} ")));
        let line = line.unwrap_or_else(|| panic!("no {name} in\n{text}"));
        assert!(line.contains(unit), "{line}");
    }
}

#[test]
fn a_folder_without_runs_says_so() {
    let desk = Desk::new();
    assert_eq!(desk.dbdyno(&["list", "runs"]).expect_ok().out, "no runs in runs\n");
}

#[test]
fn a_folder_without_servers_says_how_to_get_some() {
    let desk = Desk::new();
    let mut command = desk.command(&["list", "servers"]);
    let ended = desk.ended(command.env("DBDYNO_SERVERS", desk.path("none")));
    assert_eq!(
        desk.golden(&ended.expect_ok().out),
        "no servers in FOLDER/none; `cargo xtask servers` gets some\n"
    );
}
