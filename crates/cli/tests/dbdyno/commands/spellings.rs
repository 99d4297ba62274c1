//! Tests names and flags that users of other tools or other commands write. They are accepted, or
//! the error suggests the name that is meant.

use serde_json::Value;

use crate::commands::{TWO_VARIANTS, short_plan};
use crate::support::Desk;

#[test]
fn json_and_output_are_accepted_under_either_name() {
    let desk = Desk::new();
    desk.write("p.toml", &short_plan(TWO_VARIANTS));
    desk.dbdyno(&["run", "p.toml", "--output", "runs"]).expect_ok();
    let dir = desk.run_dir().display().to_string();
    let json = |args: &[&str]| -> Value {
        let ended = desk.dbdyno(args);
        ended.expect_ok();
        serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{args:?}: {error}"))
    };
    assert_eq!(json(&["report", &dir, "--json"]), json(&["report", "latest", "--format", "json"]));
    assert_eq!(json(&["plan", "p.toml", "--format", "json"]), json(&["plan", "p.toml", "--json"]));
    assert_eq!(
        json(&["list", "runs", "--format=json", "--output", "runs"]),
        json(&["list", "runs", "--json"])
    );
    let base = format!("{dir}:rollback");
    assert_eq!(
        json(&["compare", &base, ":wal", "--json"]),
        json(&["compare", "latest:rollback", ":wal", "--format", "json"])
    );
    desk.dbdyno(&["report", "latest", "--out", "report.md"]).expect_ok();
    assert!(std::fs::read_to_string(desk.path("report.md")).unwrap().starts_with("# "));
}

#[test]
fn names_from_other_tools_are_answered_with_dbdynos_own() {
    let desk = Desk::new();
    let said = |args: &[&str]| {
        let ended = desk.dbdyno(&[&["run", "--server", "sqlite", "--workload"], args].concat());
        desk.refusal(&ended)
    };
    let meant = [
        (&["oltp", "--set", "workload.oltp.threads=4"][..], "(did you mean `connections`?)"),
        (&["insert-benchmark", "--connections", "4"], "(did you mean `clients`?)"),
        (&["oltp", "--test", "oltp_read_write"], "(did you mean `read-write`?)"),
    ];
    for (args, expected) in meant {
        let said = said(args);
        assert!(said.starts_with("exit 2: ") && said.contains(expected), "{said}");
    }
    let unknown = desk.dbdyno(&["run", "--server", "postgres-16", "--workload", "oltp"]);
    assert!(desk.refusal(&unknown).contains("suggestions: pg-16."), "{}", unknown.err);
    for (workload, test) in [("oltp", "update-nonindex"), ("microbenchmarks", "update-non-index")] {
        let rows = format!("workload.{workload}.table_size=1000");
        let line = ["plan", "--server", "sqlite", "--workload", workload, "--test", test, "--set", &rows];
        let ended = desk.dbdyno(&line);
        ended.expect_ok();
        let is_step = |line: &str| line.trim_start().starts_with("update-non");
        assert_eq!(ended.out.lines().filter(|line| is_step(line)).count(), 1, "{}", ended.out);
    }
}

#[test]
fn a_plan_whose_servers_are_not_installed_is_shown_and_has_its_own_status() {
    let desk = Desk::new();
    let mut command = desk.command(&[
        "plan",
        "--server",
        "mysql-5.7.22",
        "--server",
        "nonesuch",
        "--workload",
        "oltp",
        "--time",
        "30s",
        "--set",
        "workload.oltp.warmup=5s",
    ]);
    let ended = desk.ended(command.env("DBDYNO_SERVERS", desk.path("servers")));
    assert!(ended.out.contains("\norder of cells\n"), "{}", ended.out);
    let said = desk.golden(&ended.err);
    let said = said.split_once("; suggestions: ").map_or(said.as_str(), |(said, _)| said);
    insta::assert_snapshot!(said, @r"
    error: variant mysql-5.7.22: no server mysql-5.7.22 in FOLDER/servers; `dbdyno servers get mysql-5.7.22` gets it, as does `dbdyno run --get`
    variant nonesuch: no server nonesuch in FOLDER/servers; `dbdyno servers list` shows all
    ");
    assert_eq!(ended.code, Some(4));
    // Both variants have the same schedule, and the plan says what its times consist of.
    assert_eq!(
        ended.out.matches("oltp on mysql-5.7.22, nonesuch, once each: about").count(),
        1,
        "{}",
        ended.out
    );
    assert!(ended.out.contains(" warm-up and 30s on 1 connection"), "{}", ended.out);
}
