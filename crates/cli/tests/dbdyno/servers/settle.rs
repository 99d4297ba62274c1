//! Tests runs that settle by state. The record contains the settling, and the findings contain each
//! step's deferred work.

use dbdyno_analyse::Code;
use dbdyno_record::{CellEvent, Run, SETTLING, Settling};

use crate::servers::{MARIADB_10_11, MY_CNF, POSTGRES_15, POSTGRESQL_CONF, small_plan, variant};
use crate::support::{Desk, findings};

/// The plan of the other tests, but with settling by state. Other tests use the same device, so the
/// plan does not wait until the device is quiet.
fn plan(variants: &str, settle: &str) -> String {
    let settle = format!("settle = {{ device_mb_per_second = 100000.0, {settle} }}");
    small_plan(variants, "").replace("settle_wait = \"0s\"", &settle)
}

fn settlings(run: &Run, variant: &str) -> Vec<Settling> {
    let cells = run.cells.iter().filter(|cell| cell.id.variant == variant);
    let works = cells.flat_map(|cell| &cell.events).filter_map(|event| match event {
        CellEvent::Work { details, .. } => details.get(SETTLING),
        _ => None,
    });
    works.map(|value| serde_json::from_value(value.clone()).unwrap()).collect()
}

#[test]
#[ignore = "in cargo xtask test --all: servers of its own"]
fn servers_settle_before_the_first_query_and_every_step_reports_its_deferred_work() {
    let desk = Desk::new();
    desk.write("my.cnf", MY_CNF);
    desk.write("postgresql.conf", POSTGRESQL_CONF);
    let maria = variant("maria", MARIADB_10_11, "own_config = \"my.cnf\"");
    let postgres = variant("postgres", POSTGRES_15, "own_config = \"postgresql.conf\"");
    desk.write("p.toml", &plan(&format!("{maria}{postgres}"), "cap = \"10m\""));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let dir = desk.run_dir();
    let run = Run::open(&dir).unwrap();
    for (variant, level) in [("maria", "dirty_bytes"), ("postgres", "dead_rows")] {
        let settlings = settlings(&run, variant);
        let [settling] = settlings.as_slice() else { panic!("{variant}: {settlings:?}") };
        assert!(settling.quiet && settling.missed.is_empty(), "{variant}: {settling:?}");
        assert!(settling.samples.len() >= 2 && settling.took_us < settling.cap_us, "{variant}: {settling:?}");
        let last = &settling.samples.last().unwrap().levels;
        assert!(last[level] <= settling.bounds[level], "{variant}: {settling:?}");
        assert!(settling.before.contains_key(level), "{variant}: {settling:?}");
    }
    let findings = findings(&dir);
    let mut written = [0, 0];
    for step in &findings.workloads[0].steps {
        for (variant, written) in step.variants.iter().zip(&mut written) {
            let deferred_work = variant.runs[0]
                .deferred_work
                .as_ref()
                .unwrap_or_else(|| panic!("{} {}", step.name, variant.variant));
            // An index this small may be built without a write to the device.
            *written +=
                deferred_work.written_bytes.unwrap_or_else(|| panic!("{} {deferred_work:?}", step.name));
        }
    }
    assert!(written.iter().all(|bytes| *bytes > 0), "{written:?}");
    let deferred_work = |step: &str, variant: usize, level: &str| {
        let steps = &findings.workloads[0].steps;
        let run = &steps.iter().find(|found| found.name == step).unwrap().variants[variant].runs[0];
        run.deferred_work.as_ref().unwrap().levels.iter().find(|found| found.name == level).unwrap().more()
    };
    assert!(deferred_work("l.i0", 0, "dirty_bytes") > 0, "a load leaves dirty pages");
    assert!(deferred_work("l.i1", 1, "dead_rows") > 0, "deletes leave dead rows");
    let warnings = &findings.warnings;
    assert!(!warnings.iter().any(|warning| warning.code == Code::Unsettled), "{warnings:?}");
}

#[test]
#[ignore = "in cargo xtask test --all: servers of its own"]
fn a_server_that_does_not_settle_in_time_is_measured_anyway_and_the_report_says_so() {
    let desk = Desk::new();
    desk.write("my.cnf", MY_CNF);
    let maria = variant("maria", MARIADB_10_11, "own_config = \"my.cnf\"");
    // With a cap of 0 there is no pause and only one sample, which proves nothing.
    desk.write("p.toml", &plan(&maria, "cap = \"0s\""));
    let ended = desk.dbdyno(&["run", "p.toml"]);
    ended.expect_ok();
    assert!(ended.err.contains("warning: the server did not settle within 0 s"), "{}", ended.err);
    let warnings = findings(&desk.run_dir()).warnings;
    assert!(warnings.iter().any(|warning| warning.code == Code::Unsettled), "{warnings:?}");
}

#[test]
#[ignore = "in cargo xtask test --all: servers of its own"]
fn with_settle_none_no_workload_does_anything_between_its_steps_and_the_record_says_so() {
    let insert_benchmark = small_plan(&variant("maria", MARIADB_10_11, ""), "");
    let (head, _) = insert_benchmark.split_once("[workload").unwrap();
    let steps = "steps = [\"point-query\", \"update-index\"]\noperations = 50\nconnections = [1]";
    let microbenchmarks =
        format!("{head}[workload.microbenchmarks]\ntable_size = 500\nsettle_wait = \"0s\"\n{steps}\n");
    // Returns the names of the cleanup work, and whether the record says that there is none.
    let cleanups = |plan: String| {
        let desk = Desk::new();
        desk.write("p.toml", &plan);
        desk.dbdyno(&["run", "p.toml"]).expect_ok();
        let run = Run::open(&desk.run_dir()).unwrap();
        let deviations = &run.manifest.workloads[0].deviations;
        let works = run.cells[0].events.iter().filter_map(|event| match event {
            CellEvent::Work { name, .. } => Some(name.clone()),
            _ => None,
        });
        let cleanups: Vec<String> = works.filter(|name| name.contains("cleanup")).collect();
        (cleanups, deviations.iter().any(|deviation| deviation.here.contains("no cleanup")))
    };
    for plan in [insert_benchmark, microbenchmarks] {
        let without = plan.replace("settle_wait = \"0s\"", "settle = { by = \"none\" }");
        assert_eq!(cleanups(without), (Vec::new(), true));
        let (found, is_said) = cleanups(plan);
        assert!(!found.is_empty() && !is_said);
    }
}
