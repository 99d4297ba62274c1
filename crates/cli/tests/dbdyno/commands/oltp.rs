//! Tests of the classic OLTP workload on SQLite, from the plan to the reports.

use dbdyno_analyse::Validity;
use dbdyno_record::{Run, StepEvent, StepRecord};

use crate::commands::TWO_VARIANTS;
use crate::support::{Desk, faults, findings};

const ALL: &str = "tests = [\"point-select\", \"read-only\", \"read-write\", \"write-only\", \"update-index\", \
    \"update-non-index\", \"insert\", \"delete\"]\n";

/// Names of the parts of a check after the load of two tables.
const LOADED: [&str; 12] = [
    "rows",
    "min(id)",
    "max(id)",
    "sum(id)",
    "sum(k)",
    "sampled rows as sent",
    "rows",
    "min(id)",
    "max(id)",
    "sum(id)",
    "sum(k)",
    "sampled rows as sent",
];

fn plan(variants: &str, options: &str) -> String {
    format!(
        "name = \"test\"\n{variants}\n[workload.oltp]\nsettle_wait = \"0s\"\ntables = 2\ntable_size = 1000\ntime = \"1s\"\n{options}\n"
    )
}

fn parts(step: &StepRecord) -> Vec<String> {
    let checks = step.checks();
    checks.iter().flat_map(|check| &check.parts).map(|part| part.name.clone()).collect()
}

#[test]
fn every_test_runs_at_every_concurrency_level_and_leaves_the_expected_rows() {
    let desk = Desk::new();
    let wal = TWO_VARIANTS.split_once("\n\n").unwrap().1;
    desk.write("p.toml", &plan(wal, &format!("{ALL}connections = [1, 3]\nevents = 600")));
    let ended = desk.dbdyno(&["run", "p.toml"]);
    ended.expect_ok();
    let dir = desk.run_dir();
    let findings = findings(&dir);
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 1), "{}", ended.err);
    let run = Run::open(&dir).unwrap();
    let steps = &run.cells[0].steps;
    assert_eq!(steps.len(), 2 + 8 * 2);
    for step in steps {
        let name = &step.spec.name;
        let expected: &[&str] = match name.split_once('.').map_or(name.as_str(), |(test, _)| test) {
            "load" => &LOADED,
            "index" | "point-select" | "read-only" => &[],
            "update-index" | "update-non-index" => &["rows", "sum(k)"],
            _ => &["rows"],
        };
        assert_eq!(parts(step), expected, "{name}");
        let done: u64 = step.intervals.iter().map(|interval| interval.done).sum();
        assert!(done > 0, "{name}");
    }
    for (format, wanted) in
        [("terminal", "read-write.c3"), ("md", "| update-non-index.c1"), ("html", "read-write.c3")]
    {
        let report = desk.dbdyno(&["report", dir.to_str().unwrap(), "--format", format]);
        report.expect_ok();
        assert!(report.out.contains(wanted), "{format}: {}", report.out);
    }
}

#[test]
fn rates_warm_up_text_and_skewed_draws_go_together() {
    let desk = Desk::new();
    let options = "tests = [\"read-write\"]\nconnections = [4]\narrivals = \"poisson\"\nrates = [50]\nwarmup = \"1s\"\n\
        protocol = \"text\"\ndistribution = \"zipfian\"\n";
    desk.write("p.toml", &plan(TWO_VARIANTS, options));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let dir = desk.run_dir();
    let findings = findings(&dir);
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 2));
    let run = Run::open(&dir).unwrap();
    for cell in &run.cells {
        let step = cell.steps.iter().find(|step| step.spec.name == "read-write.c4.r50").unwrap();
        assert_eq!(step.window(), Some((1_000_000, 2_000_000)));
        let asked = step.events.iter().find_map(|event| match event {
            StepEvent::Scheduled { operations_per_second, connections, .. } => {
                Some((*operations_per_second, *connections))
            }
            _ => None,
        });
        assert_eq!(asked, Some((50.0, 4)));
        assert_eq!(step.spec.kinds[0].protocol, "text");
    }
}

#[test]
fn two_workloads_of_one_plan_have_a_cell_each() {
    let desk = Desk::new();
    let wal = TWO_VARIANTS.split_once("\n\n").unwrap().1;
    let both = crate::commands::plan(wal, "read_write_time = \"1s\"")
        + "\n[workload.oltp]\nsettle_wait = \"0s\"\ntests = [\"update-index\"]\ntable_size = 100\ntime = \"1s\"\nsecondary = true\n";
    desk.write("p.toml", &both);
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let findings = findings(&desk.run_dir());
    let names: Vec<&str> = findings.workloads.iter().map(|workload| workload.name.as_str()).collect();
    assert_eq!((faults(&findings), names), (Vec::new(), vec!["insert-benchmark", "oltp"]));
}

#[test]
fn mistakes_in_the_options_are_named_where_they_are() {
    let refused = |options: &str| {
        let desk = Desk::new();
        desk.write("p.toml", &plan(TWO_VARIANTS, options));
        desk.refusal(&desk.dbdyno(&["plan", "p.toml"]))
    };
    insta::assert_snapshot!(refused("connections = []"), @"exit 2: error: p.toml:18:15: connections is empty: name at least one");
    insta::assert_snapshot!(refused("connections = [1, 16, 16]"), @"exit 2: error: p.toml:18:15: connections holds 16 twice");
    insta::assert_snapshot!(refused("rates = [100]"), @r#"exit 2: error: p.toml:18:9: rates are for arrivals = "constant" and arrivals = "poisson"; a closed loop has none"#);
    insta::assert_snapshot!(refused("arrivals = \"constant\""), @r#"exit 2: error: p.toml:13:1: arrivals = "constant" needs rates: name at least one number of operations per second, e.g. rates = [1000, 5000]"#);
    insta::assert_snapshot!(refused("arrivals = \"poisson\"\nrates = [10]\nthink_time = \"1s\""), @r#"exit 2: error: p.toml:20:14: think_time is for arrivals = "closed"; a rate does not wait for answers"#);
    insta::assert_snapshot!(refused("warmup = \"500ms\""), @"exit 2: error: p.toml:18:10: warmup is 500ms, but must be whole seconds");
    insta::assert_snapshot!(refused("tests = [\"point-select\", \"point-query\"]"), @"exit 2: error: p.toml:18:26: `point-query` is not a value of this key; it takes point-select, read-only, read-write, write-only, update-index, update-non-index, insert, delete");
    insta::assert_snapshot!(refused("pareto_h = 1.5"), @"exit 2: error: p.toml:18:12: pareto_h is 1.5, but must be above 0 and below 1");
}

#[test]
fn a_stream_of_rows_and_scrambled_draws_leave_the_same_tables() {
    let desk = Desk::new();
    let options = "tests = [\"read-write\"]\nload_method = \"stream\"\ndistribution = \"zipfian\"\n\
        zipfian_scrambled = true\nid = \"bigint\"\nindex_before_load = true\n";
    let wal = TWO_VARIANTS.split_once("\n\n").unwrap().1;
    desk.write("p.toml", &plan(wal, options));
    let ended = desk.dbdyno(&["run", "p.toml"]);
    ended.expect_ok();
    let dir = desk.run_dir();
    assert_eq!(
        (faults(&findings(&dir)), findings(&dir).run.cells_completed),
        (Vec::new(), 1),
        "{}",
        ended.err
    );
    let run = Run::open(&dir).unwrap();
    let steps = &run.cells[0].steps;
    assert_eq!(steps.iter().map(|step| step.name.as_str()).collect::<Vec<_>>(), ["load", "read-write.c1"]);
    assert_eq!(steps[0].spec.kinds[0].protocol, "prepared");
    assert_eq!(steps[0].spec.options["column_bytes"], 2 * 1000 * (8 + 8 + 119 + 59));
    assert_eq!(parts(&steps[0]), LOADED);
}

#[test]
fn a_sweep_of_connections_is_shown_in_every_report() {
    let desk = Desk::new();
    let options =
        "tests = [\"point-select\", \"read-only\"]\nconnections = [1, 2, 4]\nthink_time = \"1ms\"\n";
    desk.write("p.toml", &plan(TWO_VARIANTS, options));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let dir = desk.run_dir();
    let report = |format: &str| {
        let whole: &[&str] = if format == "terminal" { &["--all"] } else { &[] };
        let ended = desk.dbdyno(&[&["report", dir.to_str().unwrap(), "--format", format], whole].concat());
        ended.expect_ok().out.clone()
    };
    for format in ["terminal", "md", "html"] {
        let text = report(format);
        assert!(
            text.contains("Connections: read-only") && (text.contains("p99 wal") || text.contains("p99 ms")),
            "{format}: {text}"
        );
    }
    assert!(report("html").contains("point-select: queries/s and response time against connections"));
    let json: serde_json::Value = serde_json::from_str(&report("json")).unwrap();
    let views = json["workloads"][0]["views"].as_array().unwrap();
    let sweeps: Vec<_> = views.iter().filter(|view| view["view"] == "sweeps").collect();
    assert_eq!(sweeps.len(), 2, "{views:?}");
    assert_eq!(sweeps[1]["title"], "Connections: read-only");
    let findings = findings(&dir);
    assert_eq!(faults(&findings), Vec::<String>::new());
    let column = |unit: &str| {
        let mut columns = sweeps[1]["columns"].as_array().unwrap().iter();
        columns.position(|column| column["name"] == "wal" && column["unit"] == unit).unwrap()
    };
    let [rate, p50, p99] = ["rate", "p50 ms", "p99 ms"].map(column);
    for (row, connections) in sweeps[1]["rows"].as_array().unwrap().iter().zip([1, 2, 4]) {
        assert_eq!(row[0].as_f64(), Some(f64::from(connections)));
        let mut steps = findings.workloads[0].steps.iter();
        let step = steps.find(|step| step.name == format!("read-only.c{connections}")).unwrap();
        let found = step.variant("wal").unwrap();
        // On a busy machine the client may lack CPU time. The step is then invalid and has no
        // figures.
        match found.runs.iter().any(|run| run.validity == Validity::Valid) {
            true => {
                assert!(row[rate].as_f64().unwrap() > 0.0 && row[p99].as_f64() >= row[p50].as_f64(), "{row}")
            }
            false => assert!(row[rate].is_string(), "{row}"),
        }
    }
}
