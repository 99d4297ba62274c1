//! Test fixtures: small steps and runs whose every figure can be worked out by hand.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dbdyno_model::{Plan, Variant};
use dbdyno_record::{
    CalibratedHost, CellEvent, CellId, CellRecord, ClientCalibration, ClientHost, ClientRate, Clock,
    CounterHeader, CounterLine, CounterSeries, Execution, Headline, HistogramSpan, HostCalibration, HostInfo,
    Interval, KindSpec, LimitedBy, Manifest, Outcome, Run, RunEvent, ServerInfo, StepEvent, StepRecord,
    StepSpec, Target, Throttled, ToolInfo, Unit, VariantInfo, WindowCut, WindowRule, WorkloadInfo,
};
use hdrhistogram::Histogram;
use serde_json::Map;

use crate::metrics::{Cost, Efficiency, MetricRow};
use crate::model::{Code, Difference, Figure, Findings, StepRun, Validity, Warning};
use crate::window::counters::Counters;
use crate::window::{Hosting, WindowSummary};

const AT: &str = "2024-05-15T12:00:00Z";

/// One counter file with one line per sample, and the line's values in the order of `keys`.
pub(crate) fn series(source: &str, keys: &[&str], samples: &[(i64, Vec<i64>)]) -> Counters {
    let header = CounterHeader { source: source.to_owned(), about: Map::new() };
    let line = |(at_us, values): &(i64, Vec<i64>)| CounterLine {
        at_us: *at_us,
        values: keys.iter().map(|key| (*key).to_owned()).zip(values.iter().copied()).collect(),
    };
    let lines: Vec<CounterLine> = samples.iter().map(line).collect();
    let series = CounterSeries::new(header, &lines);
    BTreeMap::from([(source.to_owned(), series)])
}

pub(crate) fn interval(from_us: u64, to_us: u64, client: u32, kind: &str, done: u64, rows: u64) -> Interval {
    // One connection is always at work.
    let (kind, cycle_sum_us) = (kind.to_owned(), to_us - from_us);
    Interval { from_us, to_us, client, kind, due: done, done, rows, cycle_sum_us, ..Interval::default() }
}

fn kind(kind: &str, arrivals: &str, rows_per_operation: u32) -> KindSpec {
    KindSpec {
        kind: kind.to_owned(),
        class: serde_json::from_value(kind.into()).unwrap_or_default(),
        connections_per_client: 1,
        arrivals: arrivals.to_owned(),
        protocol: "text".to_owned(),
        rows_per_operation,
        statements_per_operation: 1,
        user_bytes_per_operation: 0.0,
        statement: format!("{kind} ?"),
    }
}

/// `qr100` of two clients: queries in a closed loop, and 100 inserts and 100 deletes per second and
/// client.
pub(crate) fn read_write_spec() -> StepSpec {
    StepSpec {
        meaning: String::new(),
        name: "qr100".to_owned(),
        clients: 2,
        headline: Headline {
            kind: "query".to_owned(),
            unit: Unit::Operations,
            label: "queries/s".to_owned(),
        },
        window: WindowRule::FirstEnded,
        target: Some(Target { kind: "insert".to_owned(), rows_per_second: 200.0, share: 0.95 }),
        kinds: vec![
            kind("insert", "constant 2/s", 50),
            kind("delete", "constant 2/s", 50),
            kind("query", "closed", 10),
        ],
        options: Map::new(),
        groups: BTreeMap::new(),
        is_warm_up: false,
    }
}

/// `l.x` of one client, which is one index build.
pub(crate) fn index_spec() -> StepSpec {
    StepSpec {
        meaning: String::new(),
        name: "l.x".to_owned(),
        clients: 1,
        headline: Headline { kind: "index".to_owned(), unit: Unit::Rows, label: "indexed rows/s".to_owned() },
        window: WindowRule::LastEnded,
        target: None,
        kinds: vec![kind("index", "closed", 0)],
        options: Map::new(),
        groups: BTreeMap::new(),
        is_warm_up: false,
    }
}

/// `l.i0` of one client, which has inserts only.
pub(crate) fn load_spec() -> StepSpec {
    StepSpec {
        meaning: String::new(),
        name: "l.i0".to_owned(),
        clients: 1,
        headline: Headline { kind: "insert".to_owned(), unit: Unit::Rows, label: "inserts/s".to_owned() },
        window: WindowRule::FirstEnded,
        target: None,
        kinds: vec![kind("insert", "closed", 100)],
        options: Map::new(),
        groups: BTreeMap::new(),
        is_warm_up: false,
    }
}

/// Connections that scan a table repeatedly from the barrier to the window's end. Each is a client
/// of its own, given as the duration of one scan in microseconds and the number of rows in its
/// table. The intervals end where the load engine ends them. A scan that is under way when the
/// window ends is answered after it.
pub(crate) fn scan_step(connections: &[(u64, u64)], window: (u64, u64)) -> StepRecord {
    let mut spec = load_spec();
    spec.name = "scan".to_owned();
    spec.clients = u32::try_from(connections.len()).unwrap();
    spec.headline = Headline { kind: "scan".to_owned(), unit: Unit::Rows, label: "rows/s".to_owned() };
    spec.kinds = vec![kind("scan", "closed", 0)];
    let ends_us = |scan_us: u64| window.1.div_ceil(scan_us) * scan_us;
    let last_us = connections.iter().map(|(scan_us, _)| ends_us(*scan_us)).max().unwrap();
    let mut edges: Vec<u64> = (0..=last_us / 1_000_000).map(|second| second * 1_000_000).collect();
    edges.extend([window.1, last_us]);
    edges.sort_unstable();
    edges.dedup();
    let mut intervals = Vec::new();
    for edge in edges.windows(2) {
        for (client, (scan_us, rows)) in (1..).zip(connections) {
            // These answers came after the first edge, up to the second.
            let answers = |at_us: u64| at_us.min(ends_us(*scan_us)) / scan_us;
            let done = answers(edge[1]) - answers(edge[0]);
            let counted = interval(edge[0], edge[1], client, "scan", done, done * rows);
            let cycle_sum_us = done * scan_us;
            let cut =
                cut(cycle_sum_us, (answers(edge[0]) * scan_us, answers(edge[1]) * scan_us), edge[1], window);
            let cut = WindowCut {
                operations: cut / *scan_us as f64,
                rows: cut / *scan_us as f64 * *rows as f64,
                cycle_us: cut,
            };
            intervals.push(Interval { service_sum_us: cycle_sum_us, cycle_sum_us, cut, ..counted });
        }
    }
    completed(spec, intervals, window, BTreeMap::new())
}

/// The correction of the operations' cycle times for the window, in microseconds. The operations
/// followed each other from `from_us` to `to_us`, and ended in an interval that ends at `end_us`.
fn cut(cycle_sum_us: u64, (from_us, to_us): (u64, u64), end_us: u64, window: (u64, u64)) -> f64 {
    let inside_us = to_us.min(window.1).saturating_sub(from_us.max(window.0));
    let counted_us = if window.0 < end_us && end_us <= window.1 { cycle_sum_us } else { 0 };
    inside_us as f64 - counted_us as f64
}

/// A query with one execution per entry, given as its seconds and whether it was cut off.
pub(crate) fn query_seconds_step(name: &str, seconds: &[(f64, bool)]) -> StepRecord {
    let mut spec = index_spec();
    spec.name = name.to_owned();
    spec.headline = Headline { kind: "query".to_owned(), unit: Unit::Seconds, label: "seconds".to_owned() };
    spec.kinds = vec![kind("query", "closed", 1)];
    let window = (0, (1e6 * seconds.iter().map(|(seconds, _)| seconds).sum::<f64>()) as u64);
    let mut step = completed(spec, Vec::new(), window, BTreeMap::new());
    for ((seconds, cut_off), repetition) in seconds.iter().zip(1..) {
        step.events.insert(
            1,
            StepEvent::Execution(Execution {
                name: name.to_owned(),
                client: 1,
                repetition,
                duration_us: (1e6 * seconds) as u64,
                cut_off: *cut_off,
                rows: 1,
                answer: None,
            }),
        );
    }
    step
}

/// `qr100` over an odd window of 2.5 s, and 0.5 s more until the step's end.
pub(crate) fn read_write_step() -> StepRecord {
    let mut intervals = Vec::new();
    let edges = [(0, 1_000_000), (1_000_000, 2_000_000), (2_000_000, 2_500_000), (2_500_000, 3_000_000)];
    let queries = [[100, 110, 40, 50], [90, 100, 60, 0]];
    let writes = [2, 2, 1, 1];
    for (client, queries) in (1..).zip(queries) {
        for (((from_us, to_us), queries), writes) in edges.into_iter().zip(queries).zip(writes) {
            intervals.push(interval(from_us, to_us, client, "query", queries, queries * 10));
            intervals.push(interval(from_us, to_us, client, "insert", writes, writes * 50));
            intervals.push(interval(from_us, to_us, client, "delete", writes, writes * 50));
        }
    }
    completed(read_write_spec(), intervals, (0, 2_500_000), BTreeMap::new())
}

/// [`read_write_step`] with these counters.
pub(crate) fn with_counters(counters: &Counters) -> StepRecord {
    StepRecord { counters: counters.clone(), ..read_write_step() }
}

/// The step with another common window.
pub(crate) fn in_window(mut step: StepRecord, (from_us, to_us): (u64, u64)) -> StepRecord {
    step.events.retain(|event| !matches!(event, StepEvent::Window { .. }));
    step.events.push(StepEvent::Window { from_us, to_us });
    step
}

/// The summary of a step whose server runs on this host, which has four CPUs.
pub(crate) fn summary(step: &StepRecord) -> WindowSummary<'_> {
    WindowSummary::of(step, Hosting::Process, 4)
}

/// `l.i0` of one client at `rows_per_second` for two seconds.
pub(crate) fn load_step(rows_per_second: u64) -> StepRecord {
    let second = |n: u64| {
        interval(n * 1_000_000, (n + 1) * 1_000_000, 1, "insert", rows_per_second / 100, rows_per_second)
    };
    completed(load_spec(), vec![second(0), second(1)], (0, 2_000_000), BTreeMap::new())
}

/// `l.i0` as an open loop of 1,000 operations per second for two seconds. `reached` per second were
/// answered, with this p99 of response times. The rest was dropped, or lost with its connection.
pub(crate) fn open_loop(reached: u64, dropped: bool, p99_us: u64) -> StepRecord {
    let mut step = load_step(reached * 100);
    for interval in &mut step.intervals {
        let rest = 1_000 - interval.done;
        interval.due = 1_000;
        (interval.dropped, interval.failed) = if dropped { (rest, 0) } else { (0, rest) };
        interval.errors.lost = interval.failed;
    }
    let (kind, process) = ("insert".to_owned(), "poisson".to_owned());
    step.events.push(StepEvent::Scheduled { kind, process, operations_per_second: 1_000.0, connections: 1 });
    let mut times = Histogram::<u64>::new_with_bounds(1, 3_600_000_000, 3).unwrap();
    times.record_n(p99_us, 2 * reached).unwrap();
    step.histograms.push(HistogramSpan::new("insert", Clock::Response, 0, 2_000_000, &times).unwrap());
    step
}

/// `qr100` of one client for two seconds, with a background rate.
pub(crate) fn query_step(queries_per_second: u64, inserts_per_second: u64) -> StepRecord {
    let mut spec = read_write_spec();
    spec.clients = 1;
    let mut intervals = Vec::new();
    for (from_us, to_us) in [(0, 1_000_000), (1_000_000, 2_000_000)] {
        intervals.push(interval(from_us, to_us, 1, "query", queries_per_second, queries_per_second * 10));
        intervals.push(interval(from_us, to_us, 1, "insert", inserts_per_second / 50, inserts_per_second));
    }
    completed(spec, intervals, (0, 2_000_000), BTreeMap::new())
}

pub(crate) fn completed(
    spec: StepSpec,
    intervals: Vec<Interval>,
    (from_us, to_us): (u64, u64),
    counters: Counters,
) -> StepRecord {
    let events = vec![
        StepEvent::Started { at: AT.to_owned(), spec: spec.clone() },
        StepEvent::Window { from_us, to_us },
        StepEvent::Ended { at: AT.to_owned(), at_us: to_us, outcome: Outcome::Completed, message: None },
    ];
    StepRecord {
        name: spec.name.clone(),
        spec,
        events,
        intervals,
        histograms: Vec::new(),
        counters,
        has_checksums: true,
        stacks: Vec::new(),
        damaged: None,
    }
}

/// `step` with another outcome and message.
pub(crate) fn ended(mut step: StepRecord, outcome: Outcome, message: &str) -> StepRecord {
    step.events.pop();
    step.events.push(StepEvent::Ended {
        at: AT.to_owned(),
        at_us: 2_000_000,
        outcome,
        message: Some(message.to_owned()),
    });
    step
}

/// A client that reached one rate on MySQL's protocol, with this number of connections.
pub(crate) fn calibration(connections: u32, statements_per_second: f64) -> ClientCalibration {
    let rate = ClientRate {
        driver: "mysql".to_owned(),
        connections,
        statements_per_second,
        client_cpu_us: None,
        busiest_load_thread_share: None,
        server_share: None,
        limit: LimitedBy::Client,
    };
    ClientCalibration {
        at: AT.to_owned(),
        tool: ToolInfo { version: "0.1.0".to_owned(), commit: "abc".to_owned(), build: "release".to_owned() },
        host: CalibratedHost::default(),
        rates: vec![rate],
    }
}

/// A client host that used 1 s of CPU in 2 s.
pub(crate) fn client_host() -> ClientHost {
    ClientHost {
        host: "c1".to_owned(),
        connections: 4,
        cpus: 2,
        measured_us: 2_000_000,
        cpu_us: 1_000_000,
        busiest_cpu_us: 0,
        busiest_run_delay_us: 0,
        throttled: Throttled::default(),
        is_here: false,
        late_us: 0,
        lag_max_us: 0,
        clock_offset_us: -5_000,
        clock_error_us: 40,
        clock_drift_us: 3,
        clock_source: String::new(),
    }
}

/// The step with all connections of closed loops at work all the time.
fn at_work(mut step: StepRecord) -> StepRecord {
    if step.intervals.iter().all(|interval| interval.cut.is_empty()) {
        for kind in &step.spec.kinds {
            let connections = u64::from(kind.connections_per_client * step.spec.clients);
            let lines = step.intervals.iter().filter(|interval| interval.kind == kind.kind);
            let clients = lines.map(|interval| interval.client).collect::<std::collections::BTreeSet<_>>();
            for interval in step.intervals.iter_mut().filter(|interval| interval.kind == kind.kind) {
                interval.cycle_sum_us =
                    (interval.to_us - interval.from_us) * connections / clients.len() as u64;
            }
        }
    }
    step
}

pub(crate) fn cell(block: u32, variant: &str, steps: Vec<StepRecord>) -> CellRecord {
    let steps = steps.into_iter().map(at_work).collect();
    let server = ServerInfo { version_text: format!("{variant} 1.0"), ..ServerInfo::default() };
    CellRecord {
        id: cell_id(block, variant),
        events: vec![
            CellEvent::Started { at: AT.to_owned() },
            CellEvent::Server { at: AT.to_owned(), server },
            CellEvent::Ended {
                at: AT.to_owned(),
                outcome: Outcome::Completed,
                message: None,
                connections: Vec::new(),
            },
        ],
        steps,
    }
}

pub(crate) fn failed_cell(block: u32, variant: &str, steps: Vec<StepRecord>, message: &str) -> CellRecord {
    let mut cell = cell(block, variant, steps);
    cell.events.pop();
    let message = Some(message.to_owned());
    cell.events.push(CellEvent::Ended {
        at: AT.to_owned(),
        outcome: Outcome::Failed,
        message,
        connections: Vec::new(),
    });
    cell
}

pub(crate) fn cell_id(block: u32, variant: &str) -> CellId {
    CellId { block, variant: variant.to_owned(), workload: "insert-benchmark".to_owned() }
}

/// A MySQL server that dbdyno starts.
pub(crate) fn variant(name: &str) -> VariantInfo {
    VariantInfo {
        name: name.to_owned(),
        driver: "mysql".to_owned(),
        server: format!("{name}-server"),
        ..VariantInfo::default()
    }
}

/// A run of MySQL variants with these cells, whose steps are `l.i0` and `qr100`.
pub(crate) fn run(variants: &[&str], blocks: u32, cells: Vec<CellRecord>) -> Run {
    let order =
        (1..=blocks).flat_map(|block| variants.iter().map(move |name| cell_id(block, name))).collect();
    let manifest = Manifest {
        format_version: 1,
        tool: ToolInfo { version: "0.1.0".to_owned(), commit: "abc".to_owned(), build: "release".to_owned() },
        run_id: "20240515T120000Z-small".to_owned(),
        started: AT.to_owned(),
        plan: dbdyno_model::Plan {
            name: "small".to_owned(),
            seed: 7,
            blocks,
            base: Some(variants[0].to_owned()),
            ..dbdyno_model::Plan::default()
        },
        client_calibration: None,
        host: HostInfo {
            kernel: "6.1.0".to_owned(),
            cpus: 4,
            server_cpus: Some("0-1".to_owned()),
            client_cpus: Some("2-3".to_owned()),
            client_wait: None,
            client_wait_reason: None,
            ..HostInfo::default()
        },
        variants: variants.iter().map(|name| variant(name)).collect(),
        workloads: vec![WorkloadInfo {
            data_bytes: None,
            connections: 0,
            load_steps: 0,
            name: "insert-benchmark".to_owned(),
            version: 1,
            follows: "the Insert Benchmark".to_owned(),
            options: Map::new(),
            deviations: Vec::new(),
            steps: vec!["l.i0".to_owned(), "qr100".to_owned()],
        }],
        order,
    };
    Run {
        dir: PathBuf::from("run"),
        manifest,
        events: Vec::new(),
        cells,
        profiled_cells: Vec::new(),
        is_going_on: false,
        warnings: Vec::new(),
    }
}

/// The event for a block that a machine of a fleet has measured.
pub(crate) fn measured(block: u32, machine: &str, calibration: Option<HostCalibration>) -> RunEvent {
    let host = Box::new(HostInfo { calibration, ..HostInfo::default() });
    RunEvent::BlockMeasured { at: AT.to_owned(), block, machine: machine.to_owned(), host }
}

/// A valid execution of a step for which only the rate is known.
pub(crate) fn step_run(block: u32, rate: f64) -> StepRun {
    StepRun {
        cut_off: false,
        too_few: None,
        executions: Vec::new(),
        composite: None,
        block,
        validity: Validity::Valid,
        window_seconds: 1.0,
        rate,
        kinds: Vec::new(),
        metrics: MetricRow::default(),
        efficiency: Efficiency::default(),
        cost: Cost::default(),
        device: None,
        hardware: None,
        host_check: None,
        client_headroom: None,
        seconds_on_target: None,
        judged_background_rate: None,
        lookups: Vec::new(),
        seconds: Vec::new(),
        device_seconds: Vec::new(),
        server_events: Vec::new(),
        has_telling_seconds: true,
        tail_from_second: None,
        steadiness: None,
        deferred_work: None,
        group_memory: None,
        written_kib: None,
    }
}

/// A run of `a` and `b` in `l.i0`, with one pair of rates per block.
pub(crate) fn run_of_pairs(id: &str, blocks: &[(u64, u64)]) -> Run {
    let cells = blocks.iter().zip(1..).flat_map(|((a, b), block)| {
        [cell(block, "a", vec![load_step(*a)]), cell(block, "b", vec![load_step(*b)])]
    });
    let mut run = run(&["a", "b"], blocks.len() as u32, cells.collect());
    run.manifest.run_id = id.to_owned();
    run
}

/// The validity that a run of one block gives for this step of its only variant.
pub(crate) fn validity_of(step: StepRecord) -> Validity {
    let name = step.name.clone();
    let findings = crate::analyse(&run(&["a"], 1, vec![cell(1, "a", vec![step])]));
    let found = findings.workloads[0].steps.iter().find(|step| step.name == name).unwrap();
    found.variants[0].runs[0].validity.clone()
}

/// The warnings of a run as text: each with its code, places and figures.
pub(crate) fn texts(findings: &Findings) -> Vec<String> {
    findings.warnings.iter().map(shown).collect()
}

pub(crate) fn shown_all(warnings: &[Warning]) -> String {
    warnings.iter().map(shown).collect::<Vec<_>>().join("\n")
}

/// The codes of the reasons why a run of a step is invalid.
pub(crate) fn codes(run: &StepRun) -> Vec<Code> {
    match &run.validity {
        Validity::Invalid { reasons } => reasons.iter().map(|reason| reason.code).collect(),
        other => panic!("not invalid: {other:?}"),
    }
}

/// The differences as text, one per line, such as `StartedMemory of a none and 2 GiB`.
pub(crate) fn shown_differences(differences: &[Difference]) -> String {
    let shown = |Difference { aspect, variant, base, new }: &Difference| {
        let of = variant.as_ref().map_or_else(String::new, |variant| format!(" of {variant}"));
        let [base, new] = [base, new].map(|value| value.as_deref().unwrap_or("none"));
        format!("{aspect:?}{of} {base} and {new}")
    };
    differences.iter().map(shown).collect::<Vec<_>>().join("\n")
}

/// The warning as text, such as `target-missed [a qr100] rate: 150, target: 200`.
pub(crate) fn shown(warning: &Warning) -> String {
    let plain = |value: serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut text = plain(serde_json::json!(warning.code));
    if !warning.places.is_empty() {
        text.push_str(&format!(" [{}]", warning.places.join(", ")));
    }
    let figure = |(name, figure): (&&str, &Figure)| match figure {
        Figure::Reasons(reasons) => format!("{name}: ({})", shown_all(reasons).replace('\n', "; ")),
        Figure::Differences(all) => format!("{name}: {}", shown_differences(all).replace('\n', "; ")),
        Figure::Aspect(aspect) => format!("{name}: {aspect:?}"),
        Figure::Value(_, value) => format!("{name}: {}", value.as_deref().unwrap_or("none")),
        other => format!("{name}: {}", plain(serde_json::json!(other))),
    };
    let figures: Vec<String> = warning.figures.iter().map(figure).collect();
    if figures.is_empty() { text } else { format!("{text} {}", figures.join(", ")) }
}

/// The plan for a run with these fixtures, with `text` added.
pub(crate) fn plan(text: &str) -> Plan {
    let variants = if text.contains("[[variant]]") { "" } else { "variant = []\n" };
    let text = format!("name = 'small'\nseed = 7\nbase = 'a'\nworkload = {{}}\n{variants}{text}");
    toml::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Adds the control `a~control`, which is the base under its second name.
pub(crate) fn add_control(run: &mut Run) {
    run.manifest.plan.aa = true;
    run.manifest.plan.variants.push(Variant { name: "a~control".to_owned(), ..Variant::default() });
}
