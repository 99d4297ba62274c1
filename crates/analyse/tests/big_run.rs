//! A run as large as a published comparison: 42 steps of 5 variants in 5 blocks are analysed while somebody waits.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use dbdyno_analyse::{Verdict, analyse};
use dbdyno_record::{
    CellId, CellRecord, Clock, CounterHeader, Experiment, Headline, HostInfo, Interval, KindSpec, Manifest,
    Outcome, Run, RunWriter, StepEvent, StepRecord, StepSpec, ToolInfo, Unit, VariantInfo, WindowRule,
    WorkloadInfo,
};
use hdrhistogram::Histogram;
use serde_json::Map;

const AT: &str = "2024-05-15T12:00:00Z";
const STEPS: u32 = 42;
const VARIANTS: [&str; 5] = ["a", "b", "c", "d", "e"];
const BLOCKS: u32 = 5;
const SECONDS: u64 = 12;

/// What a build without optimisation and a machine that does other things may take. A release build takes below a second.
const PATIENCE: Duration = Duration::from_secs(30);

fn manifest() -> Manifest {
    let variant = |name: &&str| VariantInfo {
        name: (*name).to_owned(),
        driver: "mysql".to_owned(),
        server: "server".to_owned(),
        config: String::new(),
        external: true,
        ..VariantInfo::default()
    };
    let ids = (1..=BLOCKS).flat_map(|block| {
        VARIANTS.map(|name| CellId { block, variant: name.to_owned(), workload: "points".to_owned() })
    });
    Manifest {
        format_version: dbdyno_record::FORMAT_VERSION,
        tool: ToolInfo { version: "0.1.0".to_owned(), commit: "abc".to_owned(), build: "release".to_owned() },
        run_id: "20240515T120000Z-big".to_owned(),
        name: "big".to_owned(),
        started: AT.to_owned(),
        seed: 1,
        blocks: BLOCKS,
        base: VARIANTS[0].to_owned(),
        margin: 0.02,
        experiment: Experiment::default(),
        client_calibration: None,
        host: HostInfo { cpus: 4, ..HostInfo::default() },
        plan_toml: String::new(),
        variants: VARIANTS.iter().map(variant).collect(),
        workloads: vec![WorkloadInfo {
            name: "points".to_owned(),
            version: 1,
            follows: "nothing".to_owned(),
            options: Map::new(),
            deviations: Vec::new(),
            steps: (1..=STEPS).map(|step| format!("step{step}")).collect(),
        }],
        order: ids.collect(),
    }
}

fn spec() -> StepSpec {
    StepSpec {
        groups: BTreeMap::new(),
        is_warm_up: false,
        name: "step1".to_owned(),
        clients: 1,
        headline: Headline {
            kind: "query".to_owned(),
            unit: Unit::Operations,
            label: "queries/s".to_owned(),
        },
        window: WindowRule::FirstEnded,
        target: None,
        kinds: vec![KindSpec {
            kind: "query".to_owned(),
            connections_per_client: 16,
            pace: "closed".to_owned(),
            protocol: "prepared".to_owned(),
            rows_per_operation: 1,
            statements_per_operation: 1,
            user_bytes_per_operation: 0.0,
            statement: "SELECT c FROM t WHERE id = ?".to_owned(),
        }],
        options: Map::new(),
    }
}

/// Some seconds of queries with their histograms and a counter a second, through the writer and the reader.
fn recorded_step(folder: &Path, manifest: &Manifest) -> Result<StepRecord, Box<dyn Error>> {
    let run = RunWriter::create(folder, manifest)?;
    let cell = run.cell(&manifest.order[0])?;
    let mut step = cell.step("step1")?;
    step.event(&StepEvent::Started { at: AT.to_owned(), spec: spec() })?;
    let header = CounterHeader { source: "client".to_owned(), about: Map::new() };
    let mut client = step.counters(header)?;
    for second in 0..SECONDS {
        let (from_us, to_us) = (second * 1_000_000, (second + 1) * 1_000_000);
        let interval =
            Interval { from_us, to_us, client: 1, kind: "query".to_owned(), ..Interval::default() };
        step.interval(&Interval { due: 10_000, done: 10_000, rows: 10_000, ..interval })?;
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000, 3)?;
        for us in 0..100 {
            histogram.record_n(100 + us * (second + 1), 100)?;
        }
        for clock in [Clock::Service, Clock::Response] {
            step.histogram(&clock.tag("query"), from_us, to_us, &histogram)?;
        }
        let cpu = i64::try_from(second * 100_000)?;
        client.line(i64::try_from(from_us)?, &BTreeMap::from([("cpu_us".to_owned(), cpu)]))?;
    }
    let to_us = SECONDS * 1_000_000;
    step.event(&StepEvent::Window { from_us: 0, to_us })?;
    let outcome = Outcome::Completed;
    step.event(&StepEvent::Ended { at: AT.to_owned(), at_us: to_us, outcome, message: None })?;
    client.sync()?;
    step.sync()?;
    Ok(StepRecord::open(step.dir()))
}

#[test]
fn a_run_of_42_steps_5_variants_and_5_blocks_is_analysed_while_somebody_waits() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = manifest();
    let step = recorded_step(folder.path(), &manifest).unwrap();
    let named = |number: u32| {
        let mut step = step.clone();
        step.name = format!("step{number}");
        step.spec.name = step.name.clone();
        step
    };
    let cell = |id: &CellId| {
        let mut steps: Vec<StepRecord> = (1..=STEPS).map(named).collect();
        // The last variant is a tenth slower in every step; all scatter a little from block to block.
        let percent = if id.variant == "e" { 90 } else { 100 };
        for interval in steps.iter_mut().flat_map(|step| &mut step.intervals) {
            interval.done = interval.done * percent / 100 + u64::from(id.block % 3);
            interval.due = interval.done;
        }
        CellRecord { id: id.clone(), events: Vec::new(), steps }
    };
    let run = Run {
        dir: folder.path().to_owned(),
        cells: manifest.order.iter().map(cell).collect(),
        manifest,
        events: Vec::new(),
        warnings: Vec::new(),
    };
    let began = Instant::now();
    let findings = analyse(&run);
    let took = began.elapsed();
    let verdicts = |variant: usize, verdict: Verdict| {
        let steps = findings.workloads[0].steps.iter();
        steps.filter(|step| step.variants[variant].verdict == Some(verdict)).count()
    };
    assert_eq!((verdicts(1, Verdict::Same), verdicts(4, Verdict::Slower)), (42, 42));
    assert!(took < PATIENCE, "{took:?}");
}
