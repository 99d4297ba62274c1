//! Tests of writer and reader together, and the small run that they write.

mod crash;
mod damage;
mod draw;
mod foreign;
mod format;
mod fuzz;
mod round_trip;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::*;

const AT: &str = "2026-03-01T12:00:00.000000Z";

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn cell_id(variant: &str) -> CellId {
    CellId { block: 1, variant: variant.into(), workload: "insert-benchmark".into() }
}

fn manifest() -> Manifest {
    let variant = |name: &str, config: &str| VariantInfo {
        name: name.into(),
        driver: "sqlite".into(),
        server: "SQLite (embedded)".into(),
        config: config.into(),
        embedded: true,
        ..VariantInfo::default()
    };
    Manifest {
        format_version: FORMAT_VERSION,
        tool: ToolInfo { version: "0.1.0".into(), commit: "1f2e3d4".into(), build: "release".into() },
        run_id: "20260301T120000Z-quickstart".into(),
        started: AT.into(),
        plan: dbdyno_model::Plan {
            name: "quickstart".into(),
            seed: 42,
            blocks: 1,
            base: Some("rollback".into()),
            ..dbdyno_model::Plan::default()
        },
        client_calibration: None,
        host: HostInfo {
            hostname: "lab1".into(),
            os: "Debian GNU/Linux 13".into(),
            kernel: "6.12.0".into(),
            cpu_model: "AMD EPYC 7543P".into(),
            cpus: 4,
            memory_bytes: 16_777_216_000,
            server_cpus: Some("0-1".into()),
            client_cpus: None,
            client_wait: None,
            client_wait_reason: None,
            facts: vec![("governor".into(), "performance".into())],
            data_filesystem: "ext4 on /srv".into(),
            data_device: "nvme0n1".into(),
            calibration: None,
        },
        variants: vec![variant("rollback", "journal_mode = DELETE"), variant("wal", "journal_mode = WAL")],
        workloads: vec![WorkloadInfo {
            data_bytes: None,
            connections: 3,
            load_steps: 0,
            name: "insert-benchmark".into(),
            version: 1,
            follows: "the Insert Benchmark, iibench.py".into(),
            options: map(json!({"clients": 1, "load_rows": 10_000})),
            deviations: vec![Deviation {
                topic: "arrivals".into(),
                original: "a burst each second".into(),
                here: "evenly spaced".into(),
            }],
            steps: vec!["l.i0".into(), "l.x".into(), "qr100".into()],
        }],
        order: vec![cell_id("wal"), cell_id("rollback")],
    }
}

fn spec(name: &str) -> StepSpec {
    StepSpec {
        meaning: String::new(),
        name: name.into(),
        clients: 1,
        headline: Headline { kind: "query".into(), unit: Unit::Operations, label: "queries/s".into() },
        window: WindowRule::FirstEnded,
        target: Some(Target { kind: "insert".into(), rows_per_second: 100.0, share: 0.95 }),
        kinds: vec![KindSpec {
            kind: "query".into(),
            class: OperationClass::Query,
            connections_per_client: 1,
            arrivals: "closed".into(),
            protocol: "prepared".into(),
            rows_per_operation: 10,
            statements_per_operation: 1,
            user_bytes_per_operation: 0.0,
            statement: "SELECT price FROM pi1 WHERE price >= ? ORDER BY price LIMIT 10".into(),
        }],
        options: map(json!({"query_seconds": 2})),
        groups: BTreeMap::new(),
        is_warm_up: false,
    }
}

/// Returns one event of each sort.
fn step_events(name: &str) -> Vec<StepEvent> {
    let part = |name: &str, expected, actual| CheckPart { name: name.into(), expected, actual };
    vec![
        StepEvent::Started { at: AT.into(), spec: spec(name) },
        StepEvent::Barrier { at: AT.into(), connections: 3, connect_us: 1_830 },
        StepEvent::Lookup { at_us: 12, client: 1, name: "min_id".into(), duration_us: 95, value: Some(-7) },
        StepEvent::Error {
            at_us: 900_001,
            client: 1,
            kind: "insert".into(),
            class: ErrorClass::Retry,
            code: "5".into(),
            message: "database is locked".into(),
        },
        StepEvent::Scheduled {
            kind: "query".into(),
            process: "poisson".into(),
            operations_per_second: 1_526.5,
            connections: 2,
        },
        StepEvent::ConnectionLost {
            at_us: 1_000_000,
            client: 1,
            kind: "query".into(),
            code: "2013".into(),
            message: "the connection was closed".into(),
        },
        StepEvent::Reconnected {
            at_us: 1_300_000,
            client: 1,
            kind: "query".into(),
            down_us: 300_000,
            attempts: 2,
        },
        StepEvent::ConnectionEnded { at_us: 2_000_000, client: 1, kind: "query".into(), operations: 3_051 },
        StepEvent::Window { from_us: 0, to_us: 2_000_000 },
        StepEvent::Paused { to_us: 1_950_000, paused_us: 40_000 },
        StepEvent::ClientHost(ClientHost {
            host: "10.0.0.11".into(),
            connections: 3,
            cpus: 8,
            measured_us: 2_000_113,
            cpu_us: 401_220,
            busiest_cpu_us: 391_004,
            busiest_run_delay_us: 2_210,
            throttled: Throttled { us: 1_200, periods: 20, throttled_periods: 1 },
            is_here: false,
            late_us: 0,
            lag_max_us: 180,
            clock_offset_us: -412,
            clock_error_us: 31,
            clock_drift_us: 2,
            clock_source: "chrony: 0.000012 seconds slow of NTP time".into(),
        }),
        StepEvent::Check(Check {
            table: "pi1".into(),
            parts: vec![
                part("rows", 10_200, 10_200),
                part("sum(customerid)", 18_446_744_073_709_551_616, 510_243_912),
            ],
            duration_us: 1_204,
        }),
        StepEvent::Warning { text: "the client used 85 % of its CPUs".into() },
        StepEvent::Invalid { reason: "table pi1: sum(customerid) differs".into() },
        StepEvent::Ended {
            at: AT.into(),
            at_us: 2_003_114,
            outcome: Outcome::Completed,
            message: Some("with one wrong sum".into()),
        },
    ]
}

fn interval(second: u64) -> Interval {
    Interval {
        from_us: second * 1_000_000,
        to_us: (second + 1) * 1_000_000,
        client: 1,
        kind: "query".into(),
        due: 1_526,
        done: 1_525,
        in_flight: 1,
        rows: 15_250,
        service_sum_us: 980_114,
        service_max_us: 2_207,
        response_sum_us: 980_114,
        response_max_us: 2_207,
        cycle_sum_us: 990_000,
        errors: ErrorCounts { retry: second, ..ErrorCounts::default() },
        ..Interval::default()
    }
}

fn histogram(values_us: &[u64]) -> Histogram<u64> {
    let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000, 3).unwrap();
    values_us.iter().for_each(|value| histogram.record(*value).unwrap());
    histogram
}

fn counter_header(source: &str) -> CounterHeader {
    CounterHeader { source: source.into(), about: map(json!({"pid": 4711})) }
}

fn values(pairs: &[(&str, i64)]) -> BTreeMap<String, i64> {
    pairs.iter().map(|(key, value)| (key.to_string(), *value)).collect()
}

fn run_events() -> Vec<RunEvent> {
    let cell = cell_id("wal");
    vec![
        RunEvent::Started {
            at: AT.into(),
            resumed: false,
            tool: ToolInfo { version: "0.1.0".into(), commit: "abc1234".into(), build: "release".into() },
        },
        RunEvent::CellStarted { at: AT.into(), cell: cell.clone(), elapsed_us: 7_000 },
        RunEvent::CellEnded {
            at: AT.into(),
            cell: cell.clone(),
            outcome: Outcome::Completed,
            message: None,
            elapsed_us: 600_000_000,
        },
        RunEvent::BlockMeasured {
            at: AT.into(),
            block: 1,
            machine: "node3".into(),
            host: Box::new(HostInfo {
                calibration: Some(HostCalibration {
                    cpu_operations_per_second: 2.5e9,
                    fsync_us: Some(412.0),
                    client_statements_per_second: Some(98_000.5),
                }),
                ..manifest().host
            }),
        },
        RunEvent::CellSetAside { at: AT.into(), cell, to: "aside/1/1/wal/insert-benchmark".into() },
        RunEvent::Rested { at: AT.into(), duration_us: 1_200_000_412, elapsed_us: 1_800_000_000 },
        RunEvent::Warning { at: AT.into(), text: "the governor is not `performance`".into() },
        RunEvent::Ended { at: AT.into(), outcome: Outcome::Interrupted },
    ]
}

fn cell_events() -> Vec<CellEvent> {
    let server = ServerInfo {
        product: "SQLite".into(),
        speaks: None,
        missing: BTreeMap::default(),
        version: "3.51.0".into(),
        version_text: "3.51.0 2026-01-01".into(),
        engine: None,
        tables_engine: None,
        cpus: None,
        memory_limit_bytes: None,
        pid: Some(4711),
        session: BTreeMap::new(),
        sources: BTreeMap::new(),
        settings: BTreeMap::from([("journal_mode".into(), "wal".into())]),
    };
    vec![
        CellEvent::Started { at: AT.into() },
        CellEvent::Server { at: AT.into(), server },
        CellEvent::Work {
            at: AT.into(),
            name: "checkpoint".into(),
            duration_us: 51_200,
            details: map(json!({"pages": 311})),
        },
        CellEvent::Warning { at: AT.into(), text: "no block device under tmpfs".into() },
        CellEvent::Invalid { at: AT.into(), reason: "another run has the database".into() },
        CellEvent::Ended {
            at: AT.into(),
            outcome: Outcome::Completed,
            message: None,
            connections: vec![
                ConnectionClass {
                    class: "query".into(),
                    connections: 4,
                    tls_version: Some("TLSv1.3".into()),
                    cipher: Some("TLS_AES_256_GCM_SHA384".into()),
                },
                ConnectionClass { class: "status".into(), connections: 1, tls_version: None, cipher: None },
            ],
        },
    ]
}

fn write_step(cell: &CellWriter, name: &str) -> Result<(), Error> {
    let mut step = cell.step(name)?;
    step_events(name).iter().try_for_each(|event| step.event(event))?;
    let mut counters = step.counters(counter_header("server"))?;
    counters.line(-250_000, &values(&[("cpu_user_us", 10), ("rss_bytes", 4_096)]))?;
    counters.line(750_113, &values(&[("cpu_user_us", 25), ("rss_bytes", 4_096)]))?;
    counters.line(1_750_090, &values(&[("cpu_user_us", 40), ("rss_bytes", 8_192)]))?;
    counters.sync()?;
    for second in 0..2 {
        let (from_us, to_us) = (second * 1_000_000 + 1, (second + 1) * 1_000_000 + 1);
        step.interval(&interval(second))?;
        step.histogram("query/service", from_us, to_us, &histogram(&[610, 640, 2_207]))?;
        step.histogram("query/response", from_us, to_us, &histogram(&[611, 641, 2_208 + second]))?;
        step.histogram("insert/service", from_us, to_us, &histogram(&[]))?;
        step.flush()?;
    }
    step.sync()
}

/// Returns a run of one complete cell with two steps. Its folder is removed when the first value of the
/// pair is dropped.
fn sample_run() -> (TempDir, PathBuf) {
    let parent = TempDir::new().unwrap();
    let mut run = RunWriter::create(parent.path(), &manifest()).unwrap();
    run_events().iter().for_each(|event| run.event(event).unwrap());
    let mut cell = run.cell(&cell_id("wal")).unwrap();
    write_step(&cell, "qr100").unwrap();
    write_step(&cell, "l.i0").unwrap();
    cell_events().iter().for_each(|event| cell.event(event).unwrap());
    let dir = run.dir().to_path_buf();
    (parent, dir)
}

/// Returns the folder of the step `qr100` of the sample run.
fn step_dir(run: &Path) -> PathBuf {
    run.join("cells/1/wal/insert-benchmark/qr100")
}
