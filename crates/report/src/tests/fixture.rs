//! Findings for tests: two variants and ten steps. One step failed, one is invalid and one is too
//! slow, and a name needs escaping.

use dbdyno_analyse::{
    Bucket, Code, Cost, Findings, KindResult, Latency, Lookups, MetricRow, PercentileRatio, Ratio,
    RunSummary, Severity, StepComparison, StepFindings, StepRun, Validity, VariantStep, VariantSummary,
    Verdict, Warning, WorkloadFindings,
};
use dbdyno_record::{Deviation, ErrorCounts, HostInfo, OperationClass, ToolInfo};
use serde_json::json;

mod charged;
mod failures;
mod parity;
mod seconds;
mod steps;
mod verdicts;

pub(crate) use self::charged::with_groups;
use self::charged::{cost, device, efficiency, host_check, relative};
pub(crate) use self::parity::parity;
pub(crate) use self::steps::{of_steps, pair, step, with_aging, with_sweep};
use self::verdicts::{cost_breakdown, inference, steadiness, verdict};

pub(crate) const NAMES: [&str; 2] = ["rollback", "<b>&\""];
const STEPS: [&str; 10] =
    ["l.i0", "l.x", "l.i1", "l.i2", "qr100", "qp100", "qr500", "qp500", "qr1000", "qp1000"];
const RATES: [f64; 10] =
    [181_234.0, 950_000.0, 20_111.0, 3_001.5, 9_000.0, 9_400.0, 8_100.0, 8_500.0, 7_000.0, 7_100.0];
const RATIOS: [f64; 10] = [1.02, 0.99, 2.5, 9.87, 1.04, 1.30, 0.97, 1.10, 0.80, 1.0];
/// Indexes of the steps that went wrong for the second variant.
const SLOW: usize = 8;
pub(crate) const INVALID: usize = 7;
const FAILED: usize = 9;
const WRONG_ROWS: &str = "rows of table 1: 399950 instead of 400000";

/// Findings with one block and 30 seconds per step.
pub(crate) fn findings() -> Findings {
    with_blocks(1)
}

pub(crate) fn with_blocks(blocks: u32) -> Findings {
    sized(&NAMES, blocks, 30)
}

/// Findings with this many variants, blocks and seconds, to test the report of a large run.
pub(crate) fn sized(names: &[&str], blocks: u32, seconds: u64) -> Findings {
    let of_block = |block| names.iter().map(move |name| format!("{block} {name} insert-benchmark"));
    Findings {
        failures: failures::failures(names.last().unwrap_or(&"")),
        run: run_summary(blocks, names.len(), (1..=blocks).flat_map(of_block).collect()),
        variants: names.iter().map(|name| variant(name)).collect(),
        prose: dbdyno_model::Report::default(),
        sections: Vec::new(),
        published: None,
        why: None,
        parity: Some(parity(names)),
        workloads: vec![workload(names, blocks, seconds)],
        warnings: vec![
            Warning {
                severity: Severity::Invalid,
                ..Warning::new(Code::CellFailed)
                    .at("block 1 <b>&\" insert-benchmark")
                    .with("message", "server went away")
            },
            Warning::new(Code::SharedCpus).with("cpus", "1"),
        ],
    }
}

fn run_summary(blocks: u32, variants: usize, order: Vec<String>) -> RunSummary {
    let cells = order.len();
    RunSummary {
        run_id: "20240401T101112Z-quickstart".to_owned(),
        name: "quickstart".to_owned(),
        started: "2024-04-01T10:11:12Z".to_owned(),
        tool: ToolInfo { version: "0.1.0".into(), commit: "abc1234".into(), build: "debug".into() },
        host: HostInfo {
            hostname: "bench1".into(),
            os: "Debian GNU/Linux 12".into(),
            kernel: "Linux 6.1.0".into(),
            cpu_model: "AMD Ryzen 7 7735HS".into(),
            cpus: 16,
            memory_bytes: 32 << 30,
            server_cpus: Some("0-7".into()),
            client_cpus: None,
            client_wait: None,
            client_wait_reason: None,
            facts: vec![("SMT".into(), "off".into()), ("fsync".into(), "median 40 us, p99 90 us".into())],
            data_filesystem: "xfs".into(),
            data_device: "nvme0n1".into(),
            calibration: None,
        },
        seed: 42,
        base: NAMES[0].to_owned(),
        margin: 0.02,
        margins: std::collections::BTreeMap::new(),
        control: None,
        budget: None,
        design: None,
        machines: Default::default(),
        calibrations: Default::default(),
        time: None,
        blocks_planned: blocks,
        cells_completed: cells - usize::from(variants > 1),
        cells_planned: cells,
        unchecked_steps: None,
        colours: Default::default(),
        order,
    }
}

fn variant(name: &str) -> VariantSummary {
    VariantSummary {
        name: name.to_owned(),
        driver: "sqlite".into(),
        server: "SQLite (embedded)".into(),
        foreign: None,
        missing: Vec::new(),
        version_text: "3.50.2".into(),
        engine: Some("b-tree".into()),
        config: "journal_mode = delete\nsynchronous = full".into(),
        factors: Default::default(),
        external: false,
        encryption: None,
        memory_limit_bytes: None,
    }
}

fn workload(names: &[&str], blocks: u32, seconds: u64) -> WorkloadFindings {
    let options = json!({"clients": 4, "load_rows": 400_000, "arrivals": "even", "secondary_indexes": 3});
    WorkloadFindings {
        name: "insert-benchmark".into(),
        version: 1,
        follows: "the Insert Benchmark as of December 2023".into(),
        options: options.as_object().expect("an object").clone(),
        deviations: vec![Deviation {
            topic: "arrivals".into(),
            original: "one burst | a second".into(),
            here: "even".into(),
        }],
        steps: (0..STEPS.len()).map(|step| step_findings(step, names, blocks, seconds)).collect(),
    }
}

fn ratio(step: usize, variant: usize) -> f64 {
    if variant == 0 { 1.0 } else { RATIOS[step] + 0.03 * (variant as f64 - 1.0) }
}

/// Share of the target that the variant reached.
fn kept(step: usize, variant: usize) -> f64 {
    if (variant, step) == (1, SLOW) { 0.9 } else { 0.998 }
}

fn target(step: usize) -> f64 {
    [400.0, 2_000.0, 4_000.0][(step - 4) / 2]
}

fn step_findings(step: usize, names: &[&str], blocks: u32, seconds: u64) -> StepFindings {
    let load = step < 4;
    let label = if load { "inserts/s" } else { "queries/s" };
    StepFindings {
        name: STEPS[step].into(),
        meaning: if step == 0 { "load in key order".to_owned() } else { String::new() },
        headline_kind: if load { "insert" } else { "query" }.into(),
        headline_class: OperationClass::Other,
        less_is_better: false,
        rate_label: if step == 1 { "indexed rows/s" } else { label }.into(),
        connections: 4,
        margin: 0.02,
        statements: vec![("insert".into(), "INSERT INTO pi1 (a, b) VALUES (?, ?) /* | & < */".into())],
        groups: std::collections::BTreeMap::new(),
        is_warm_up: false,
        target: (!load).then(|| (target(step), 0.95)),
        variants: (0..names.len())
            .map(|variant| variant_step(step, variant, names, blocks, seconds))
            .collect(),
        effects: Vec::new(),
    }
}

fn variant_step(step: usize, variant: usize, names: &[&str], blocks: u32, seconds: u64) -> VariantStep {
    let rate = RATES[step] * ratio(step, variant);
    let usable = variant != 1 || ![INVALID, FAILED].contains(&step);
    VariantStep {
        variant: names[variant].to_owned(),
        rate: usable.then_some(rate),
        cut_off: false,
        rate_min: usable.then_some(rate * 0.99),
        rate_max: usable.then_some(rate * 1.01),
        latency: usable.then(|| latency(rate as u64 * 30, variant)),
        to_base: if usable {
            to_base(ratio(step, variant), variant, blocks)
        } else {
            StepComparison::default()
        },
        context: Default::default(),
        query_plans: Vec::new(),
        executed_plans: Vec::new(),
        drift: None,
        background_rate: (step >= 4 && usable).then(|| target(step) * kept(step, variant)),
        judged_background_rate: (step >= 4 && usable).then(|| target(step) * kept(step, variant) * 0.999),
        target_missed_blocks: Vec::new(),
        runs: (1..=blocks).map(|block| step_run(step, variant, rate, block, seconds)).collect(),
    }
}

/// Returns the comparison of a variant that has the ratio `value` to the base in each block.
/// Variant 0 is the base itself. Where the rate gains most, the 99th percentile is slower.
fn to_base(value: f64, variant: usize, blocks: u32) -> StepComparison {
    let is_decided = blocks > 1 && variant > 0;
    StepComparison {
        ratio: Some(Ratio {
            value,
            blocks: (1..=blocks).map(|block| (block, value)).collect(),
            bound: None,
            inference: is_decided.then(|| inference(value)),
        }),
        p99: (variant > 0).then(|| PercentileRatio {
            ratio: Ratio { value: 1.25, blocks: vec![(1, 1.25)], bound: None, inference: None },
            verdict: is_decided.then_some(if value > 9.0 { Verdict::Slower } else { Verdict::Undecided }),
        }),
        cost_breakdown: is_decided.then(|| cost_breakdown(value)),
        relative: (variant > 0).then(|| relative(value)),
        verdict: is_decided.then(|| verdict(value)),
        ..StepComparison::default()
    }
}

fn step_run(step: usize, variant: usize, rate: f64, block: u32, seconds: u64) -> StepRun {
    let validity = match (variant, step) {
        (1, INVALID) => Validity::Invalid { reasons: vec![Warning::quoted(WRONG_ROWS)] },
        (1, FAILED) => Validity::Failed { message: "server went away, \"lost connection\"".into() },
        _ => Validity::Valid,
    };
    let failed = matches!(validity, Validity::Failed { .. });
    let headline = if step < 4 { "insert" } else { "query" };
    let mut kinds = vec![kind_result(headline, rate, 4)];
    if step >= 2 {
        kinds.push(kind_result("delete", 400.0, 4));
    }
    if step >= 4 {
        kinds.push(kind_result("insert", 400.0, 4));
    }
    let seconds = if step == 1 { 1 } else { seconds };
    let names = kinds.iter().map(|kind| kind.kind.as_str());
    let points = seconds::points(names, rate, (variant, block), seconds);
    StepRun {
        cut_off: false,
        too_few: None,
        executions: Vec::new(),
        composite: None,
        block,
        validity,
        window_seconds: if failed { 0.0 } else { seconds as f64 + 0.25 },
        rate: if failed { 0.0 } else { rate },
        kinds: if failed { Vec::new() } else { kinds },
        metrics: if failed { MetricRow::default() } else { metrics(step, rate, variant) },
        efficiency: if failed { Default::default() } else { efficiency(rate) },
        cost: if failed { Cost::default() } else { cost(variant) },
        device: (!failed).then(device),
        hardware: None,
        host_check: (!failed).then(host_check),
        client_headroom: None,
        seconds_on_target: (step >= 4 && !failed).then_some(0.967),
        has_telling_seconds: step != 1,
        tail_from_second: None,
        judged_background_rate: (step >= 4 && !failed).then(|| target(step) * 0.997),
        lookups: vec![Lookups::of(if step == 1 { "insert" } else { "min_id" }, &[1_500; 8])],
        steadiness: (!failed && step != 1).then(|| steadiness(rate, seconds, variant)),
        device_seconds: seconds::device(seconds, variant),
        server_events: Vec::new(),
        deferred_work: None,
        group_memory: None,
        written_kib: (!failed).then(|| 185_384.96 / rate),
        seconds: if failed { Vec::new() } else { points },
    }
}

/// Latency, where the second variant's p99 is a quarter higher.
fn latency(count: u64, variant: usize) -> Latency {
    Latency {
        count,
        mean_us: 104.25,
        p50_us: 96,
        p90_us: 151,
        p95_us: 203,
        p99_us: if variant == 0 { 1_520 } else { 1_900 },
        p999_us: 15_230,
        max_us: 2_314_000,
        curve: vec![(50.0, 96), (99.0, if variant == 0 { 1_520 } else { 1_900 }), (100.0, 2_314_000)],
    }
}

fn kind_result(kind: &str, per_second: f64, connections: u32) -> KindResult {
    let rows = if kind == "query" { per_second * 10.0 } else { per_second };
    let operations = if kind == "query" { per_second } else { per_second / 50.0 };
    let latency = latency((operations * 30.0) as u64, 0);
    let bucket = |label: &str, count, percent| Bucket { label: label.into(), count, percent };
    KindResult {
        kind: kind.into(),
        connections,
        arrivals: if kind == "query" { "closed".into() } else { "constant 2/s".into() },
        operations: latency.count,
        rows: (rows * 30.0) as u64,
        failed: 0,
        dropped: 1,
        errors: ErrorCounts { retry: 3, ..ErrorCounts::default() },
        operations_per_second: operations,
        rows_per_second: rows,
        statements_per_second: operations,
        service: latency.clone(),
        response: Latency { mean_us: 133.0, p999_us: 48_000, ..latency },
        schedule: None,
        statements: Vec::new(),
        buckets: vec![
            bucket("256us", 95_000, 95.0),
            bucket("1ms", 4_999, 4.999),
            bucket("4ms", 0, 0.0),
            bucket("gt", 1, 0.000_1),
        ],
    }
}

fn metrics(step: usize, rate: f64, variant: usize) -> MetricRow {
    let load = step < 4;
    MetricRow {
        ips: Some(if load { rate } else { 399.6 }),
        qps: Some(if load { 0.0 } else { rate }),
        rps: Some(12.4),
        rmbps: Some(0.25),
        wps: Some(3_210.6),
        wmbps: Some(181.04),
        rpq: Some(12.4 / rate),
        rkbpq: Some(256.0 / rate),
        wpi: Some(0.0312),
        wkbpi: Some(1.801_2),
        csps: Some(45_120.0),
        cpups: Some(52.34),
        cspq: Some(45_120.0 / rate),
        cpupq: Some(231.0),
        dbgb1: Some(4.26),
        dbgb2: Some(5.01),
        rss: (variant == 1).then_some(6.54),
        maxop: Some(2.314),
        median_second_rate: (step != 1).then_some(rate * 1.01),
        slow_second_rate: (step != 1).then_some(rate * 0.35),
        tag: format!("v{variant}"),
    }
}
