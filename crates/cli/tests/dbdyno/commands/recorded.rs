//! A run that was never measured: ten steps of two servers in five blocks. The record's own writer
//! writes it, and its contents are always the same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dbdyno_record::{
    CellEvent, CellId, Clock, CounterHeader, FORMAT_VERSION, Headline, HostInfo, Interval, KindSpec,
    Manifest, OperationClass, Outcome, RunWriter, ServerInfo, StepEvent, StepSpec, StepWriter, ToolInfo,
    Unit, VariantInfo, WindowRule, WorkloadInfo,
};
use hdrhistogram::Histogram;
use serde_json::Map;

const AT: &str = "2026-01-01T00:00:00Z";
const SECONDS: u64 = 12;
const VARIANTS: [&str; 2] = ["mysql-5.7.22", "mysql-8.0.31"];
/// The step's name, the base's rate per second, and the new server's rate and p99 as percentages of
/// the base's.
const STEPS: [(&str, u64, u64, u64); 10] = [
    ("load", 180_000, 112, 100),
    ("point-select.c1", 14_000, 90, 111),
    ("point-select.c16", 88_000, 78, 134),
    ("point-select.c64", 96_000, 83, 120),
    ("read-only.c1", 520, 97, 103),
    ("read-only.c16", 3_300, 88, 115),
    ("read-only.c64", 4_100, 100, 100),
    ("read-write.c1", 310, 101, 100),
    ("read-write.c16", 2_050, 131, 70),
    ("read-write.c64", 2_900, 162, 55),
];

/// Writes the run into `parent`.
pub(crate) fn write(parent: &Path) -> PathBuf {
    let manifest = manifest();
    let writer = RunWriter::create(parent, &manifest).unwrap();
    for (at, id) in manifest.order.iter().enumerate() {
        let is_new = id.variant == VARIANTS[1];
        let mut cell = writer.cell(id).unwrap();
        let version_text = id.variant.trim_start_matches("mysql-").to_owned();
        let server = ServerInfo { version_text, ..ServerInfo::default() };
        cell.event(&CellEvent::Server { at: AT.to_owned(), server }).unwrap();
        for (number, (name, rate, ratio, tail)) in STEPS.into_iter().enumerate() {
            // Cells differ by a few thousandths.
            let noise = 1_000 + (7 * at as u64 + 5 * number as u64) % 11;
            let percent = |of: u64| if is_new { of } else { 100 };
            let per_second = rate * percent(ratio) * noise / 100_000;
            let p99_us = 4_000_000 / rate.min(4_000) * percent(tail) * (2_000 - noise) / 100_000;
            write_step(&mut cell.step(name).unwrap(), (name, per_second, p99_us, is_new));
        }
        let (outcome, connections) = (Outcome::Completed, Vec::new());
        cell.event(&CellEvent::Ended { at: AT.to_owned(), outcome, message: None, connections }).unwrap();
    }
    writer.dir().to_owned()
}

fn write_step(step: &mut StepWriter, (name, per_second, p99_us, is_new): (&str, u64, u64, bool)) {
    let spec = spec(name);
    // All connections are always at work.
    let cycle_sum_us = 1_000_000 * u64::from(spec.clients);
    step.event(&StepEvent::Started { at: AT.to_owned(), spec }).unwrap();
    for second in 0..SECONDS {
        let (from_us, to_us) = (second * 1_000_000, (second + 1) * 1_000_000);
        let interval = Interval {
            from_us,
            to_us,
            client: 1,
            kind: "query".to_owned(),
            cycle_sum_us,
            ..Interval::default()
        };
        step.interval(&Interval { due: per_second, done: per_second, rows: per_second, ..interval }).unwrap();
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000, 3).unwrap();
        histogram.record_n(p99_us / 4 + 20, per_second * 97 / 100).unwrap();
        histogram.record_n(p99_us, per_second - per_second * 97 / 100).unwrap();
        for clock in [Clock::Service, Clock::Response] {
            step.histogram(&clock.tag("query"), from_us, to_us, &histogram).unwrap();
        }
    }
    let to_us = SECONDS * 1_000_000;
    step.event(&StepEvent::Window { from_us: 0, to_us }).unwrap();
    let outcome = Outcome::Completed;
    step.event(&StepEvent::Ended { at: AT.to_owned(), at_us: to_us, outcome, message: None }).unwrap();
    let user = if is_new { 700_000 } else { 600_000 };
    let rising: [(&str, &[(&str, i64)]); 3] = [
        ("client", &[("cpu_us", 100_000), ("cpu_user_us", 40_000), ("cpu_kernel_us", 60_000)]),
        ("server", &[("cpu_us", 300_000 + user), ("cpu_user_us", user), ("cpu_kernel_us", 300_000)]),
        (
            "host",
            &[
                ("cpu_user_us", 40_000 + user),
                ("cpu_system_us", 360_000),
                ("cpu_idle_us", 1_600_000 - user),
                ("cpu_iowait_us", 0),
            ],
        ),
    ];
    for (source, named) in rising {
        let mut counters =
            step.counters(CounterHeader { source: source.to_owned(), about: Map::new() }).unwrap();
        for second in 0..=SECONDS.cast_signed() {
            let values = named.iter().map(|(name, a_second)| ((*name).to_owned(), a_second * second));
            counters.line(second * 1_000_000, &values.collect::<BTreeMap<_, _>>()).unwrap();
        }
        counters.sync().unwrap();
    }
    step.sync().unwrap();
}

fn spec(name: &str) -> StepSpec {
    let kind = |protocol: &str| KindSpec {
        kind: "query".to_owned(),
        class: OperationClass::Query,
        connections_per_client: 1,
        arrivals: "closed".to_owned(),
        protocol: protocol.to_owned(),
        rows_per_operation: 1,
        statements_per_operation: 1,
        user_bytes_per_operation: 0.0,
        statement: "SELECT c FROM sbtest1 WHERE id = ?".to_owned(),
    };
    let label = if name == "load" { "rows/s" } else { "queries/s" };
    StepSpec {
        groups: BTreeMap::new(),
        is_warm_up: false,
        name: name.to_owned(),
        meaning: String::new(),
        clients: name.split_once(".c").map_or(1, |(_, connections)| connections.parse().unwrap()),
        headline: Headline { kind: "query".to_owned(), unit: Unit::Operations, label: label.to_owned() },
        window: WindowRule::FirstEnded,
        target: None,
        kinds: vec![kind("prepared")],
        options: Map::new(),
    }
}

fn manifest() -> Manifest {
    let variant = |name: &str| VariantInfo {
        name: name.to_owned(),
        driver: "mysql".to_owned(),
        server: format!("MySQL {} ({name})", name.trim_start_matches("mysql-")),
        ..VariantInfo::default()
    };
    let id =
        |block, variant: &str| CellId { block, variant: variant.to_owned(), workload: "oltp".to_owned() };
    Manifest {
        format_version: FORMAT_VERSION,
        tool: ToolInfo { version: "0".to_owned(), commit: "none".to_owned(), build: "release".to_owned() },
        run_id: "20260101T000000Z-upgrade".to_owned(),
        started: AT.to_owned(),
        plan: dbdyno_model::Plan {
            name: "upgrade".to_owned(),
            seed: 1,
            blocks: 5,
            base: Some(VARIANTS[0].to_owned()),
            ..dbdyno_model::Plan::default()
        },
        client_calibration: None,
        host: HostInfo { cpus: 2, ..HostInfo::default() },
        variants: VARIANTS.map(variant).to_vec(),
        workloads: vec![WorkloadInfo {
            data_bytes: None,
            connections: 0,
            load_steps: 0,
            name: "oltp".to_owned(),
            version: 1,
            follows: "nothing".to_owned(),
            options: Map::new(),
            deviations: Vec::new(),
            steps: STEPS.iter().map(|(name, ..)| (*name).to_owned()).collect(),
        }],
        order: (1..=5).flat_map(|block| VARIANTS.map(|name| id(block, name))).collect(),
    }
}
