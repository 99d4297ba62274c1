//! Tests of the microbenchmarks on SQLite, from the plan to the reports.

use dbdyno_record::{CellEvent, Run, StepEvent};

use crate::commands::TWO_VARIANTS;
use crate::support::{Desk, faults, findings};

fn wal() -> &'static str {
    TWO_VARIANTS.split_once("\n\n").unwrap().1
}

fn plan(variants: &str, options: &str) -> String {
    format!(
        "name = \"test\"\n{variants}\n[workload.microbenchmarks]\ntable_size = 1000\nsettle_wait = \"0s\"\n{options}\n"
    )
}

/// Returns the names of the work between steps, in order.
fn works(run: &Run) -> Vec<String> {
    let events = &run.cells[0].events;
    let name = |event: &CellEvent| match event {
        CellEvent::Work { name, .. } => Some(name.clone()),
        _ => None,
    };
    events.iter().filter_map(name).collect()
}

#[test]
fn all_42_steps_run_on_sqlite_at_tiny_size() {
    let desk = Desk::new();
    desk.write("p.toml", &plan(wal(), "tables = 2\noperations = 20\nconnections = [2]"));
    let ended = desk.dbdyno(&["run", "p.toml"]);
    ended.expect_ok();
    let dir = desk.run_dir();
    let findings = findings(&dir);
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 1), "{}", ended.err);
    let run = Run::open(&dir).unwrap();
    let steps = &run.cells[0].steps;
    assert_eq!(steps.len(), 2 + 1 + 42);
    for step in steps {
        let (name, done) = (&step.name, step.intervals.iter().map(|interval| interval.done).sum::<u64>());
        let expected = match name.as_str() {
            "load" | "index" | "scan" => 2,
            _ => 20,
        };
        assert_eq!(done, expected, "{name}");
        let writes = step.spec.groups.get("2024").is_some_and(|group| group == "writes");
        assert_eq!(!step.checks().is_empty(), writes || name == "load", "{name}");
    }
    assert_eq!(works(&run).iter().filter(|name| *name == "cleanup").count(), 2, "after load and writes");
    let judged = findings.workloads[0].judged_steps().count();
    assert_eq!(judged, 2 + 42, "what only fills caches is in no table");
    let report = desk.dbdyno(&["report", dir.to_str().unwrap(), "--format", "md"]);
    report.expect_ok();
    for wanted in ["point-query.pre", "random-points_range=1000", "| non-index-update |", "rows/s"] {
        assert!(report.out.contains(wanted), "{wanted}: {}", report.out);
    }
}

#[test]
#[ignore = "in cargo xtask test --all: a whole sequence, twice"]
fn the_newer_sequence_runs_on_a_sweep_of_connections() {
    let desk = Desk::new();
    let options =
        "sequence = \"32\"\noperations = 8\nconnections = \"1..4\"\nsteps = [\"!*.warm*\"]\nverify = \"end\"";
    desk.write("p.toml", &plan(wal(), options));
    let ended = desk.dbdyno(&["run", "p.toml"]);
    ended.expect_ok();
    let findings = findings(&desk.run_dir());
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 1), "{}", ended.err);
    let names: Vec<&str> = findings.workloads[0].steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names.len(), 2 + 34 * 3, "{names:?}");
    assert_eq!(names[2..5], ["point-query.pre.c1", "point-query.pre.c2", "point-query.pre.c4"]);
}

#[test]
fn deletes_count_hits_and_misses_and_may_be_refilled() {
    for refill in [false, true] {
        let desk = Desk::new();
        let options = format!(
            "steps = [\"delete\", \"insert\"]\noperations = 1500\nconnections = [1, 3]\ndelete_refill = {refill}"
        );
        desk.write("p.toml", &plan(wal(), &options));
        desk.dbdyno(&["run", "p.toml"]).expect_ok();
        let dir = desk.run_dir();
        assert_eq!(faults(&findings(&dir)), [""; 0], "refill {refill}");
        let run = Run::open(&dir).unwrap();
        let hits: Vec<u64> = run.cells[0]
            .steps
            .iter()
            .filter(|step| step.name.starts_with("delete"))
            .map(|step| {
                let found = step.events.iter().find_map(|event| match event {
                    StepEvent::Statement { done, empty, rows, .. } => Some((*done, *empty, *rows)),
                    _ => None,
                });
                let (done, empty, rows) = found.unwrap();
                assert_eq!((done, empty + rows), (1500, 1500), "{}", step.name);
                rows
            })
            .collect();
        // 1500 random deletes among 1000 ids leave (1 - 1/1000)^1500 = 22 % of the rows.
        assert!(hits[0].abs_diff(777) < 60, "{hits:?}");
        assert!(if refill { hits[1].abs_diff(777) < 60 } else { hits[1] < 250 }, "{hits:?}");
        assert_eq!(works(&run).iter().filter(|name| *name == "refill").count(), if refill { 2 } else { 0 });
    }
}

#[test]
fn mistakes_in_the_options_are_named_where_they_are() {
    let refused = |options: &str| {
        let desk = Desk::new();
        desk.write("p.toml", &plan(TWO_VARIANTS, options));
        desk.refusal(&desk.dbdyno(&["plan", "p.toml"]))
    };
    insta::assert_snapshot!(refused("steps = [\"scam*\"]"), @"exit 2: error: p.toml:16:9: `scam*` fits no step of this sequence; steps: point-query.warm point-query.pre random-points.pre_range=10 random-points.pre_range=100 random-points.pre_range=1000 read-only.pre_range=10 read-only.pre_range=100 read-only.pre_range=10000 points-covered-pk.pre points-notcovered-pk.pre points-covered-si.pre points-notcovered-si.pre range-covered-pk.pre range-notcovered-pk.pre range-covered-si.pre range-notcovered-si.pre update-inlist update-index update-nonindex update-one update-zipf write-only read-write_range=10 read-write_range=100 read-only_range=10 read-only_range=100 read-only_range=10000 point-query random-points_range=10 random-points_range=100 random-points_range=1000 hot-points points-covered-pk points-notcovered-pk points-covered-si points-notcovered-si range-covered-pk range-notcovered-pk range-covered-si range-notcovered-si scan delete insert");
    insta::assert_snapshot!(refused("steps = [\"scan\", \"!scan\"]"), @r#"exit 2: error: p.toml:16:9: steps choose none: name at least one, e.g. ["point-query*", "!*.warm"]"#);
    insta::assert_snapshot!(refused("connections = \"4..1\""), @r#"exit 2: error: p.toml:16:15: "4..1" is not a number of connections, a list such as [1, 16, 64], or a range such as "1..4096", which doubles"#);
    insta::assert_snapshot!(refused("connections = [1, 1]"), @"exit 2: error: p.toml:16:15: connections holds 1 twice");
    insta::assert_snapshot!(refused("sequence = \"41\""), @"exit 2: error: p.toml:16:12: `41` is not a value of this key (did you mean `42`?); it takes 42, 32");
    insta::assert_snapshot!(refused("operations = 0"), @"exit 2: error: p.toml:16:14: operations is 0, but must be at least 1");
    insta::assert_snapshot!(refused("update_inlist_ids = 0"), @"exit 2: error: p.toml:16:21: update_inlist_ids is 0, but must be 1 to 10000");
    let desk = Desk::new();
    desk.write("p.toml", &plan(TWO_VARIANTS, "").replace("= 1000", "= 100"));
    insta::assert_snapshot!(desk.refusal(&desk.dbdyno(&["plan", "p.toml"])), @r#"exit 2: error: p.toml:14:14: table_size is 100, but hot-points needs 200 rows: make tables larger, or leave the step out with steps = ["!hot-points"]"#);
}
