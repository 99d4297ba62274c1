//! Tests of the time that `dbdyno plan`, `run` and `init` forecast for a plan.

use crate::commands::{TWO_VARIANTS, plan};
use crate::support::Desk;

/// Returns the seconds that `dbdyno plan` forecasts for `p.toml`.
fn forecast(desk: &Desk) -> f64 {
    let ended = desk.dbdyno(&["plan", "p.toml", "--json"]);
    let plan: serde_json::Value = serde_json::from_str(&ended.expect_ok().out).unwrap();
    plan["duration_seconds"].as_f64().unwrap()
}

#[test]
fn a_run_that_has_ended_feeds_the_next_forecast() {
    let desk = Desk::new();
    desk.write("p.toml", &plan(TWO_VARIANTS, "read_write_time = \"1s\""));
    let shipped = forecast(&desk);
    let ended = desk.dbdyno(&["run", "p.toml"]);
    assert!(ended.expect_ok().err.contains("the plan takes about "), "{}", ended.err);
    let report = desk.dbdyno(&["report", "latest", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&report.expect_ok().out).unwrap();
    let took = report["run"]["time"]["total_seconds"].as_f64().unwrap();
    let cells = took - report["run"]["time"]["other_seconds"].as_f64().unwrap();
    let learned = forecast(&desk);
    assert!((learned / cells - 1.0).abs() < 0.1, "{shipped} s, then {learned} s of {cells} s");
}

#[test]
fn a_line_with_little_time_loads_few_rows_and_says_so_before_it_begins() {
    let desk = Desk::new();
    let line = ["--server", "sqlite", "--workload", "insert-benchmark", "--time", "1s"];
    let ended = desk.dbdyno(&[&["plan", "--json"], &line[..]].concat());
    let plan: serde_json::Value = serde_json::from_str(&ended.expect_ok().out).unwrap();
    assert!(plan["duration_seconds"].as_f64().unwrap() < 30.0, "{plan}");
    assert!(ended.err.contains("for steps of 1s: load_rows = "), "{}", ended.err);
    let set = [
        "--set",
        "workload.insert-benchmark.load_rows=9000",
        "--set",
        "workload.insert-benchmark.write_rows=10",
    ];
    let ended = desk.dbdyno(&[&["plan", "--json"], &line[..], &set].concat());
    assert_eq!(ended.expect_ok().err, "");
}

#[test]
fn init_says_how_long_its_plan_takes() {
    let desk = Desk::new();
    let of = |file: &str, more: &[&str]| {
        let line = ["init", file, "--server", "sqlite", "--workload", "insert-benchmark"];
        desk.dbdyno(&[&line[..], more].concat()).expect_ok().err.clone()
    };
    let long = of("long.toml", &[]);
    assert!(long.contains(" h in all") && long.contains("for less: --time"), "{long}");
    let short = of("short.toml", &["--time", "1s", "--blocks", "1"]);
    assert!(short.contains(" s in all") && !short.contains("for less"), "{short}");
    let text = std::fs::read_to_string(desk.path("short.toml")).unwrap();
    assert!(text.contains("\nload_rows = ") && text.contains("\nwrite_rows = "), "{text}");
}
