//! Writes a run directory, reads it back and checks the findings against the numbers that were
//! written.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use dbdyno_analyse::{Choices, Validity, analyse, analyse_with};
use dbdyno_record::{
    CellEvent, CellId, Clock, CounterHeader, Headline, HostInfo, Interval, KindSpec, Manifest,
    OperationClass, Outcome, Run, RunWriter, ServerInfo, StepEvent, StepSpec, ToolInfo, Unit, VariantInfo,
    WindowRule, WorkloadInfo,
};
use hdrhistogram::Histogram;
use serde_json::Map;

const AT: &str = "2024-05-15T12:00:00Z";
const SECOND_US: u64 = 1_000_000;

fn manifest() -> Manifest {
    let variant = |name: &str| VariantInfo {
        name: name.to_owned(),
        driver: "sqlite".to_owned(),
        server: "SQLite (embedded)".to_owned(),
        ..VariantInfo::default()
    };
    let cell = |block, name: &str| CellId { block, variant: name.to_owned(), workload: "ib".to_owned() };
    Manifest {
        format_version: dbdyno_record::FORMAT_VERSION,
        tool: ToolInfo { version: "0.1.0".to_owned(), commit: "abc".to_owned(), build: "release".to_owned() },
        run_id: "20240515T120000Z-pair".to_owned(),
        started: AT.to_owned(),
        plan: dbdyno_model::Plan {
            name: "pair".to_owned(),
            seed: 1,
            blocks: 2,
            base: Some("rollback".to_owned()),
            ..dbdyno_model::Plan::default()
        },
        client_calibration: None,
        host: HostInfo { cpus: 4, ..HostInfo::default() },
        variants: vec![variant("rollback"), variant("wal")],
        workloads: vec![WorkloadInfo {
            data_bytes: None,
            connections: 0,
            load_steps: 0,
            name: "ib".to_owned(),
            version: 1,
            follows: "the Insert Benchmark".to_owned(),
            options: Map::new(),
            deviations: Vec::new(),
            steps: vec!["l.i0".to_owned()],
        }],
        order: vec![cell(1, "rollback"), cell(1, "wal"), cell(2, "wal"), cell(2, "rollback")],
    }
}

fn spec() -> StepSpec {
    StepSpec {
        meaning: String::new(),
        name: "l.i0".to_owned(),
        clients: 1,
        headline: Headline { kind: "insert".to_owned(), unit: Unit::Rows, label: "inserts/s".to_owned() },
        window: WindowRule::FirstEnded,
        target: None,
        kinds: vec![KindSpec {
            kind: "insert".to_owned(),
            class: OperationClass::Insert,
            connections_per_client: 1,
            arrivals: "closed".to_owned(),
            protocol: "prepared".to_owned(),
            rows_per_operation: 100,
            statements_per_operation: 1,
            user_bytes_per_operation: 0.0,
            statement: "INSERT INTO pi1 VALUES (?)".to_owned(),
        }],
        options: Map::new(),
        groups: BTreeMap::new(),
        is_warm_up: false,
    }
}

/// Writes a cell whose step `l.i0` has 12 seconds at `rows_per_second` and 2 µs of client CPU per
/// row.
fn write_cell(run: &RunWriter, id: &CellId, rows_per_second: u64) -> Result<(), Box<dyn Error>> {
    let mut cell = run.cell(id)?;
    let server = ServerInfo { version_text: "3.50.0".to_owned(), ..ServerInfo::default() };
    cell.event(&CellEvent::Server { at: AT.to_owned(), server })?;
    let mut step = cell.step("l.i0")?;
    step.event(&StepEvent::Started { at: AT.to_owned(), spec: spec() })?;
    let header = CounterHeader { source: "client".to_owned(), about: Map::new() };
    let mut client = step.counters(header)?;
    let cpu = |second: u64| BTreeMap::from([("cpu_us".to_owned(), (second * rows_per_second * 2) as i64)]);
    client.line(0, &cpu(0))?;
    for second in 0..12 {
        let (from_us, to_us) = (second * SECOND_US, (second + 1) * SECOND_US);
        let done = rows_per_second / 100;
        let interval = Interval {
            from_us,
            to_us,
            client: 1,
            kind: "insert".to_owned(),
            due: done,
            done,
            rows: rows_per_second,
            service_sum_us: done * 700 + 300,
            service_max_us: 1_000 + second,
            cycle_sum_us: SECOND_US,
            ..Interval::default()
        };
        step.interval(&interval)?;
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000, 3)?;
        histogram.record_n(700 + second, done)?;
        step.histogram(&Clock::Service.tag("insert"), from_us, to_us, &histogram)?;
        client.line(to_us as i64, &cpu(second + 1))?;
    }
    step.event(&StepEvent::Window { from_us: 0, to_us: 12 * SECOND_US })?;
    let outcome = Outcome::Completed;
    step.event(&StepEvent::Ended { at: AT.to_owned(), at_us: 12 * SECOND_US, outcome, message: None })?;
    client.sync()?;
    step.sync()?;
    cell.event(&CellEvent::Ended { at: AT.to_owned(), outcome, message: None, connections: Vec::new() })?;
    Ok(())
}

/// Writes a run whose variants insert 10,000 and 12,000 rows per second in block 1, and 20,000 and
/// 30,000 in block 2.
fn write_run(parent: &Path) -> Result<Run, Box<dyn Error>> {
    let manifest = manifest();
    let writer = RunWriter::create(parent, &manifest)?;
    for (id, rows_per_second) in manifest.order.iter().zip([10_000, 12_000, 30_000, 20_000]) {
        write_cell(&writer, id, rows_per_second)?;
    }
    Ok(Run::open(writer.dir())?)
}

#[test]
fn a_recorded_run_gives_its_rates_ratios_percentiles_and_costs() {
    let folder = tempfile::tempdir().unwrap();
    let findings = analyse(&write_run(folder.path()).unwrap());
    let [base, wal] = findings.workloads[0].steps[0].variants.as_slice() else { panic!("two variants") };
    assert_eq!((base.rate, wal.rate, wal.rate_min), (Some(15_000.0), Some(21_000.0), Some(12_000.0)));
    let ratio = wal.to_base.ratio.as_ref().unwrap();
    assert_eq!(ratio.blocks, [(1, 1.2), (2, 1.5)]);
    assert!((ratio.value - (1.2_f64 * 1.5).sqrt()).abs() < 1e-12);
    let run = &wal.runs[0];
    assert_eq!((&run.validity, run.window_seconds, run.seconds.len()), (&Validity::Valid, 12.0, 12));
    // Each of 12 seconds has 120 statements, which take 700 µs in the first and 711 µs in the last.
    // The median is the 720th of these 1440 times, which is 705 µs.
    let service = &run.kinds[0].service;
    assert_eq!((service.count, service.p50_us, service.max_us), (1_440, 705, 711));
    assert_eq!((run.metrics.median_second_rate, run.metrics.maxop), (Some(12_000.0), Some(0.001_011)));
    assert_eq!((run.cost.client_cpu_us, run.cost.server_cpu_us), (Some(2.0), None));
    assert_eq!((findings.run.cells_completed, findings.variants[1].version_text.as_str()), (4, "3.50.0"));
}

#[test]
fn the_same_records_give_the_same_findings_in_any_folder() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let json = |run: &Run| serde_json::to_string(&analyse(run)).unwrap();
    let first = write_run(here.path()).unwrap();
    assert_eq!(json(&first), json(&first));
    assert_eq!(json(&first), json(&write_run(there.path()).unwrap()));
}

#[test]
fn another_base_inverts_the_ratios() {
    let folder = tempfile::tempdir().unwrap();
    let run = write_run(folder.path()).unwrap();
    let findings = analyse_with(&run, &Choices { base: Some("wal".to_owned()) }).unwrap();
    let ratio = findings.workloads[0].steps[0].variants[0].to_base.ratio.as_ref().unwrap();
    assert!((ratio.value - 1.0 / (1.2_f64 * 1.5).sqrt()).abs() < 1e-12);
}
