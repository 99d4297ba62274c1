//! Opens and analyses run directories in which one file was changed at random. Whatever the file
//! says, this must end, must not panic, and must not allocate as much memory as some number in the
//! file demands.
//!
//! The test runs in a process of its own with at most 512 MB of address space. `DBDYNO_FUZZ_INPUTS`
//! sets the number of inputs. The same number always gives the same inputs.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use dbdyno_analyse::analyse;
use dbdyno_record::{
    CellEvent, CellId, Clock, CounterHeader, FORMAT_VERSION, Headline, HostInfo, Interval, KindSpec,
    Manifest, Outcome, Run, RunEvent, RunWriter, StepEvent, StepSpec, Target, ToolInfo, Unit, VariantInfo,
    WindowRule, WorkloadInfo,
};
use hdrhistogram::Histogram;
use serde_json::Map;

use crate::draw::{Draw, in_a_small_process};

const AT: &str = "2026-03-01T12:00:00Z";
/// Number of inputs that a debug build analyses in about a second.
const INPUTS: u64 = 50;
const MORE_INPUTS: u64 = 500;
const SECONDS: u64 = 12;

fn manifest() -> Manifest {
    let cell = |block, name: &str| CellId { block, variant: name.to_owned(), workload: "ib".to_owned() };
    let variant = |name: &str| VariantInfo {
        name: name.to_owned(),
        driver: "mysql".to_owned(),
        ..VariantInfo::default()
    };
    Manifest {
        format_version: FORMAT_VERSION,
        tool: ToolInfo { version: "0.1.0".to_owned(), commit: "abc".to_owned(), build: "release".to_owned() },
        run_id: "pair".to_owned(),
        started: AT.to_owned(),
        plan: dbdyno_model::Plan {
            name: "pair".to_owned(),
            seed: 1,
            blocks: 2,
            base: Some("a".to_owned()),
            ..dbdyno_model::Plan::default()
        },
        client_calibration: None,
        host: HostInfo { cpus: 4, server_cpus: Some("0-1".to_owned()), ..HostInfo::default() },
        variants: vec![variant("a"), variant("b")],
        workloads: vec![WorkloadInfo {
            data_bytes: None,
            connections: 0,
            load_steps: 0,
            name: "ib".to_owned(),
            version: 1,
            follows: "nothing".to_owned(),
            options: Map::new(),
            deviations: Vec::new(),
            steps: vec!["qr100".to_owned()],
        }],
        order: vec![cell(1, "a"), cell(1, "b"), cell(2, "b"), cell(2, "a")],
    }
}

fn spec() -> StepSpec {
    let kind = |kind: &str, arrivals: &str| KindSpec {
        kind: kind.to_owned(),
        class: serde_json::from_value(kind.into()).unwrap(),
        connections_per_client: 1,
        arrivals: arrivals.to_owned(),
        protocol: "prepared".to_owned(),
        rows_per_operation: 10,
        statements_per_operation: 1,
        user_bytes_per_operation: 100.0,
        statement: "SELECT 1".to_owned(),
    };
    StepSpec {
        meaning: String::new(),
        name: "qr100".to_owned(),
        clients: 1,
        headline: Headline {
            kind: "query".to_owned(),
            unit: Unit::Operations,
            label: "queries/s".to_owned(),
        },
        window: WindowRule::FirstEnded,
        target: Some(Target { kind: "insert".to_owned(), rows_per_second: 100.0, share: 0.95 }),
        kinds: vec![kind("query", "closed"), kind("insert", "constant 10/s")],
        options: Map::new(),
        groups: BTreeMap::from([("all".to_owned(), "reads".to_owned())]),
        is_warm_up: false,
    }
}

/// Writes one step with two kinds of operations and every kind of file.
fn write_step(run: &RunWriter, id: &CellId, done: u64) {
    let mut cell = run.cell(id).unwrap();
    cell.event(&CellEvent::Started { at: AT.to_owned() }).unwrap();
    let mut step = cell.step("qr100").unwrap();
    let task = |kind: &str, done| StepEvent::ConnectionEnded {
        at_us: 12_000_000,
        client: 1,
        kind: kind.to_owned(),
        operations: done,
    };
    step.event(&StepEvent::Started { at: AT.to_owned(), spec: spec() }).unwrap();
    step.event(&StepEvent::Barrier { at: AT.to_owned(), connections: 2, connect_us: 700 }).unwrap();
    let name = "min_id".to_owned();
    step.event(&StepEvent::Lookup { at_us: 5, client: 1, name, duration_us: 95, value: Some(1) }).unwrap();
    let (process, kind) = ("constant".to_owned(), "insert".to_owned());
    step.event(&StepEvent::Scheduled { kind, process, operations_per_second: 10.0, connections: 1 }).unwrap();
    for second in 0..SECONDS {
        let (from_us, to_us) = (second * 1_000_000, (second + 1) * 1_000_000);
        for (kind, done) in [("query", done), ("insert", 10)] {
            let kind_name = kind.to_owned();
            let times = Interval { service_sum_us: done * 700, service_max_us: 700, ..Interval::default() };
            let times = Interval { response_sum_us: done * 700, response_max_us: 700, ..times };
            let of = Interval {
                from_us,
                to_us,
                client: 1,
                kind: kind_name,
                due: done,
                done,
                rows: 10 * done,
                ..times
            };
            step.interval(&of).unwrap();
            let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000, 3).unwrap();
            histogram.record_n(700, done).unwrap();
            for clock in [Clock::Service, Clock::Response] {
                step.histogram(&clock.tag(kind), from_us, to_us, &histogram).unwrap();
            }
        }
    }
    step.event(&task("query", done * SECONDS)).unwrap();
    step.event(&task("insert", 10 * SECONDS)).unwrap();
    let to_us = SECONDS * 1_000_000;
    step.event(&StepEvent::Window { from_us: 0, to_us }).unwrap();
    let (at, outcome, message) = (AT.to_owned(), Outcome::Completed, None);
    step.event(&StepEvent::Ended { at, at_us: to_us, outcome, message }).unwrap();
    for (source, keys) in SOURCES {
        let mut counters =
            step.counters(CounterHeader { source: (*source).to_owned(), about: Map::new() }).unwrap();
        for second in 0..=SECONDS as i64 {
            let values = keys.iter().map(|key| ((*key).to_owned(), 1_000 * second)).collect();
            counters.line(1_000_000 * second, &values).unwrap();
        }
        counters.sync().unwrap();
    }
    step.sync().unwrap();
    let (at, connections) = (AT.to_owned(), Vec::new());
    cell.event(&CellEvent::Ended { at, outcome, message: None, connections }).unwrap();
}

const SOURCES: &[(&str, &[&str])] = &[
    ("host", &["cpu_user_us", "cpu_system_us", "cpu_idle_us", "cpu_iowait_us", "cpu_steal_us"]),
    ("server", &["cpu_us", "cpu_user_us", "cpu_kernel_us", "rss_bytes"]),
    ("client", &["cpu_us", "cpu_user_us", "cpu_kernel_us"]),
    ("switches", &["voluntary_switches", "involuntary_switches"]),
    ("load", &["load-0.cpu_us", "load-0.run_delay_us"]),
    ("disk", &["reads", "read_bytes", "writes", "written_bytes", "busy_us"]),
    ("sampler", &["cpu_us", "late_us", "samples"]),
    ("status", &["Questions", "Uptime", "Innodb_data_fsyncs"]),
    ("deferred_work", &["dirty_bytes"]),
    ("size", &["bytes"]),
];

/// Writes a run of two variants and two blocks. Returns its directory and the files to damage.
fn write(parent: &Path) -> (PathBuf, Vec<PathBuf>) {
    let manifest = manifest();
    let mut run = RunWriter::create(parent, &manifest).unwrap();
    let event = RunEvent::Started { at: AT.to_owned(), resumed: false, tool: ToolInfo::default() };
    run.event(&event).unwrap();
    for (id, done) in manifest.order.iter().zip([100, 120, 121, 99]) {
        write_step(&run, id, done);
    }
    run.event(&RunEvent::Ended { at: AT.to_owned(), outcome: Outcome::Completed }).unwrap();
    let step = run.dir().join("cells/1/a/ib/qr100");
    let mut files: Vec<PathBuf> = ["manifest.json", "events.jsonl", "cells/1/a/ib/events.jsonl"]
        .map(|file| run.dir().join(file))
        .to_vec();
    // Only one of the four steps is damaged. It loses its checksums, which would otherwise reveal
    // every change before the file is parsed.
    std::fs::remove_file(step.join("checksums.json")).unwrap();
    files.extend(["events.jsonl", "intervals.jsonl", "histograms.hlog"].map(|file| step.join(file)));
    files.extend(SOURCES.iter().map(|(source, _)| step.join(format!("counters/{source}.jsonl"))));
    (run.dir().to_path_buf(), files)
}

#[test]
fn a_run_whose_files_say_anything_is_analysed_to_its_end() {
    analyse_damaged("fuzz::a_run_whose_files_say_anything_is_analysed_to_its_end", INPUTS);
}

#[test]
#[ignore = "in cargo xtask test --all: more damaged runs"]
fn many_runs_whose_files_say_anything_are_analysed_to_their_ends() {
    analyse_damaged("fuzz::many_runs_whose_files_say_anything_are_analysed_to_their_ends", MORE_INPUTS);
}

/// Runs `test` with this number of damaged inputs.
fn analyse_damaged(test: &str, inputs: u64) {
    in_a_small_process(test, inputs, |inputs| {
        let parent = tempfile::tempdir().unwrap();
        let (dir, files) = write(parent.path());
        let mut draw = Draw::new();
        let mut opened = 0;
        for number in 0..inputs {
            let file = &files[draw.below(files.len())];
            let whole = std::fs::read(file).unwrap();
            let input = draw.mutated(&whole);
            std::fs::write(file, &input).unwrap();
            let read = catch_unwind(AssertUnwindSafe(|| {
                Run::open(&dir).map(|run| serde_json::to_string(&analyse(&run)).unwrap().len()).is_ok()
            }));
            let what = || format!("input {number}, {}: {}", file.display(), input.escape_ascii());
            opened += u64::from(read.unwrap_or_else(|_| panic!("{}", what())));
            std::fs::write(file, whole).unwrap();
        }
        // A run fails to open only if its manifest or its own events are damaged.
        assert!(opened > inputs / 2, "{opened} of {inputs}");
    });
}
