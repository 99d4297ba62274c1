//! A fake database that answers, stalls, fails, hangs and breaks on command, and functions that run
//! a step on it and read the step's record.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use crate::hosts::{HostCondition, on_hosts};
use dbdyno_loadgen::{
    ArrivalProcess, Arrivals, ConnectionTask, Connections, Done, Failure, Limit, Notes, Observer, Role,
    StatementDone, Step, StepEnd, TaskSpec, Threads, run,
};
use dbdyno_record::{
    CellId, ErrorClass, Headline, HostInfo, Interval, KindSpec, Manifest, OperationClass, Run, RunWriter,
    StepEvent, StepRecord, StepSpec, ToolInfo, Unit, WindowRule, WorkloadInfo,
};

/// A connection that fails to open with this code hangs instead.
pub(crate) const HANGS: &str = "hangs";

/// Number of times that a test may run when other load on the machine spoils its timing.
const ATTEMPTS: usize = 8;

/// Steps that spin take turns, because each one takes a CPU away from concurrent tests.
static SPINNING: Mutex<()> = Mutex::new(());

/// How load threads wait for answers. A test that runs with both checks only results that do not
/// depend on the way. It expects no times that need a spare CPU for the spinning thread.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wait {
    Sleeping,
    Spinning,
}

pub(crate) const WAITS: [Wait; 2] = [Wait::Sleeping, Wait::Spinning];

impl Wait {
    /// Returns settings for `count` threads. When spinning, only the first thread spins.
    pub(crate) fn threads(self, count: u32) -> Threads {
        let polled_ns = match self {
            Self::Sleeping => None,
            Self::Spinning => Some([AtomicU64::new(0)].into()),
        };
        Threads { count: Some(count), polled_ns, ..Threads::default() }
    }

    pub(crate) fn options(self) -> Options {
        Options { threads: self.threads(2), ..Options::default() }
    }
}

/// Returns the fake database's reaction to the operation with this number.
pub(crate) type Script = Arc<dyn Fn(u64) -> Act + Send + Sync>;

#[derive(Debug, Clone)]
pub(crate) enum Act {
    Answer(Duration),
    Fail(ErrorClass),
    /// Asks for a retry at every attempt.
    Busy,
    /// The connection is gone, and this many attempts to open it again fail.
    Break(u32),
    Hang,
    Panic,
}

struct Pretend {
    script: Script,
    open: Result<(), Failure>,
    /// Attempts to open the connection that are still to fail.
    refusals: u32,
    attempts: u32,
    /// How many more times an operation must be made ready again.
    not_ready: u32,
    opened: Opened,
    closing: Duration,
    closed: Arc<Mutex<Vec<Instant>>>,
}

/// The thread and time of each attempt to open a connection.
pub(crate) type Opened = Arc<Mutex<Vec<(ThreadId, Instant)>>>;

impl ConnectionTask for Pretend {
    async fn open(&mut self) -> Result<(), Failure> {
        self.opened.lock().expect("a list").push((std::thread::current().id(), Instant::now()));
        if self.open.as_ref().is_err_and(|failure| failure.code == HANGS) {
            std::future::pending::<()>().await;
        }
        if self.refusals > 0 {
            self.refusals -= 1;
            return Err(failure(ErrorClass::Lost));
        }
        self.open.clone()
    }

    async fn prepare(&mut self, number: u64, notes: &mut Notes) -> Result<(), Failure> {
        self.attempts = 0;
        if number == 0 {
            notes.lookup("min_id", Duration::from_micros(7), Some(3_000_000_000));
        }
        if self.not_ready > 0 {
            self.not_ready -= 1;
            return Err(failure(ErrorClass::Retry));
        }
        Ok(())
    }

    async fn perform(&mut self, number: u64) -> Result<Done, Failure> {
        self.attempts += 1;
        match (self.script)(number) {
            Act::Answer(after) => {
                tokio::time::sleep(after).await;
                Ok(Done { rows: 2, received_bytes: 10 })
            }
            Act::Fail(ErrorClass::Retry) if self.attempts > 2 => Ok(Done { rows: 2, received_bytes: 10 }),
            Act::Fail(class) => Err(failure(class)),
            Act::Busy => Err(failure(ErrorClass::Retry)),
            Act::Break(refusals) => {
                self.refusals = refusals;
                Err(failure(ErrorClass::Lost))
            }
            Act::Hang => std::future::pending().await,
            Act::Panic => panic!("the pretended database breaks"),
        }
    }

    /// Each attempt counts as one statement, whether it succeeds or fails.
    fn statements(&self) -> &[StatementDone] {
        &[StatementDone { index: 0, name: "ask", took: None, rows: 1 }]
    }

    async fn close(self) {
        self.closed.lock().expect("a list").push(Instant::now());
        tokio::time::sleep(self.closing).await;
    }
}

fn failure(class: ErrorClass) -> Failure {
    Failure { class, code: "42".into(), message: "the pretended answer is no".into() }
}

pub(crate) fn task(client: u32, kind: usize, arrivals: Arrivals, limit: Limit) -> TaskSpec {
    let role = if limit == Limit::UntilClientEnds { Role::Follows } else { Role::Decides };
    TaskSpec { client, kind, arrivals, limit, role, coupling: None }
}

pub(crate) fn spec(clients: u32, kinds: &[&str]) -> StepSpec {
    let kind = |kind: &&str| KindSpec {
        kind: (*kind).to_owned(),
        class: OperationClass::Other,
        connections_per_client: 1,
        arrivals: String::new(),
        protocol: "text".into(),
        rows_per_operation: 2,
        statements_per_operation: 1,
        user_bytes_per_operation: 0.0,
        statement: String::new(),
    };
    StepSpec {
        meaning: String::new(),
        name: "step".into(),
        clients,
        headline: Headline { kind: kinds[0].into(), unit: Unit::Operations, label: "operations/s".into() },
        window: WindowRule::FirstEnded,
        target: None,
        kinds: kinds.iter().map(kind).collect(),
        options: serde_json::Map::new(),
        groups: std::collections::BTreeMap::new(),
        is_warm_up: false,
    }
}

fn manifest() -> Manifest {
    Manifest {
        format_version: dbdyno_record::FORMAT_VERSION,
        tool: ToolInfo { version: "0".into(), commit: "unknown".into(), build: "debug".into() },
        run_id: "run".into(),
        started: "2026-01-01T00:00:00Z".into(),
        plan: dbdyno_model::Plan {
            name: "run".into(),
            seed: 1,
            blocks: 1,
            base: Some("a".into()),
            ..dbdyno_model::Plan::default()
        },
        client_calibration: None,
        host: HostInfo::default(),
        variants: Vec::new(),
        workloads: vec![WorkloadInfo {
            data_bytes: None,
            connections: 0,
            load_steps: 0,
            name: "w".into(),
            version: 1,
            follows: String::new(),
            options: serde_json::Map::new(),
            deviations: Vec::new(),
            steps: vec!["step".into()],
        }],
        order: vec![CellId { block: 1, variant: "a".into(), workload: "w".into() }],
    }
}

/// An observer that takes this long to sample the end of the window.
struct Looking {
    takes: Duration,
    since: Option<Instant>,
    barrier: Arc<OnceLock<Instant>>,
    window_ended: Arc<AtomicBool>,
}

impl Observer for Looking {
    fn barrier(&mut self, start: Instant) {
        self.barrier.set(start).expect("a step has one barrier");
    }

    fn window_ended(&mut self) {
        self.since = Some(Instant::now());
        self.window_ended.store(true, Ordering::Release);
    }

    fn has_sampled(&mut self) -> bool {
        self.since.is_some_and(|since| since.elapsed() >= self.takes)
    }
}

pub(crate) struct Options {
    pub(crate) cap: Option<Duration>,
    pub(crate) cancel: Arc<AtomicBool>,
    pub(crate) threads: Threads,
    pub(crate) connections: Connections,
    pub(crate) opened: Opened,
    /// When the clock started.
    pub(crate) barrier: Arc<OnceLock<Instant>>,
    /// Whether the observer was informed that the common window has ended.
    pub(crate) window_ended: Arc<AtomicBool>,
    /// How long a connection takes to close.
    pub(crate) closing: Duration,
    /// When connections were asked to close.
    pub(crate) closed: Arc<Mutex<Vec<Instant>>>,
    /// How long the observer takes to sample the end of the window.
    pub(crate) looking: Duration,
    /// How many times the first operation of each task must be made ready again.
    pub(crate) not_ready: u32,
    /// The simulated hosts that share the tasks. Without any, the step runs on this host alone.
    pub(crate) hosts: Vec<HostCondition>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cap: None,
            cancel: Arc::default(),
            threads: Threads { count: Some(2), ..Threads::default() },
            connections: Connections::default(),
            opened: Arc::default(),
            barrier: Arc::default(),
            window_ended: Arc::default(),
            closing: Duration::ZERO,
            closed: Arc::default(),
            looking: Duration::ZERO,
            not_ready: 0,
            hosts: Vec::new(),
        }
    }
}

pub(crate) fn run_step(
    spec: &StepSpec,
    tasks: Vec<(TaskSpec, Script)>,
    options: Options,
) -> (StepEnd, StepRecord) {
    let opened = tasks.into_iter().map(|(task, script)| (task, script, Ok(()))).collect();
    run_opened(spec, opened, options)
}

pub(crate) fn run_opened(
    spec: &StepSpec,
    tasks: Vec<(TaskSpec, Script, Result<(), Failure>)>,
    options: Options,
) -> (StepEnd, StepRecord) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let writer = RunWriter::create(folder.path(), &manifest()).expect("a run directory");
    let cell = writer.cell(&manifest().order[0]).expect("a cell");
    let mut step = cell.step("step").expect("a step");
    step.event(&StepEvent::Started { at: "2026-01-01T00:00:00Z".into(), spec: spec.clone() })
        .expect("an event");
    let (closing, not_ready) = (options.closing, options.not_ready);
    let _turn =
        options.threads.polled_ns.as_ref().map(|_| SPINNING.lock().unwrap_or_else(PoisonError::into_inner));
    let tasks = tasks
        .into_iter()
        .map(|(task, script, open)| {
            let (opened, closed) = (Arc::clone(&options.opened), Arc::clone(&options.closed));
            let build = move || Pretend {
                script,
                open,
                refusals: 0,
                attempts: 0,
                not_ready,
                opened,
                closing,
                closed,
            };
            (task, build)
        })
        .collect();
    let (barrier, window_ended) = (options.barrier, options.window_ended);
    let of_step = || Step {
        spec,
        threads: options.threads.clone(),
        connections: options.connections.clone(),
        warmup: Duration::ZERO,
        time_cap: options.cap,
        cancel: &options.cancel,
    };
    let looking = &mut Looking { takes: options.looking, since: None, barrier, window_ended };
    let end = match &options.hosts[..] {
        [] => run(of_step(), tasks, &mut step, looking).expect("the engine works"),
        hosts => on_hosts(hosts, &of_step, tasks, &mut step, looking),
    };
    step.sync().expect("a synced step");
    let mut read = Run::open(&folder.path().join("run")).expect("a readable run");
    let record = read.cells.remove(0).steps.remove(0);
    assert_eq!(record.damaged, None);
    assert_accounts_balance(&record);
    assert_cut_at_the_window(&record);
    (end, record)
}

/// Checks that due = done + failed + dropped + backlog + in flight, for each client and kind, at
/// every cut.
fn assert_accounts_balance(record: &StepRecord) {
    let mut totals = std::collections::HashMap::new();
    for interval in &record.intervals {
        let (due, ended) = totals.entry((interval.client, interval.kind.clone())).or_insert((0, 0));
        *due += interval.due;
        *ended += interval.done + interval.failed + interval.dropped;
        assert_eq!(*due, *ended + interval.backlog + interval.in_flight, "{interval:?}");
    }
}

/// Checks that no interval crosses the end of the common window.
fn assert_cut_at_the_window(record: &StepRecord) {
    if let Some((_, to)) = record.window() {
        let across = |interval: &&Interval| interval.from_us < to && interval.to_us > to;
        assert_eq!(record.intervals.iter().find(across), None, "the window ends at {to}");
    }
}

/// Repeats `attempt` until it succeeds, because other load on the machine can spoil its timing. A
/// fault of the engine would spoil every attempt. The error of an attempt says what was seen.
pub(crate) fn retry_if_disturbed(mut attempt: impl FnMut() -> Result<(), String>) {
    let mut spoilt = Vec::new();
    for _ in 0..ATTEMPTS {
        match attempt() {
            Ok(()) => return,
            Err(what) => spoilt.push(what),
        }
    }
    panic!("no attempt went well: {spoilt:#?}");
}

/// Returns the result of an attempt. It is an error with the text of `seen` unless `condition`
/// holds.
pub(crate) fn ok_if(condition: bool, seen: impl std::fmt::Debug) -> Result<(), String> {
    if condition { Ok(()) } else { Err(format!("{seen:?}")) }
}

pub(crate) fn answers(after: Duration) -> Script {
    Arc::new(move |_| Act::Answer(after))
}

pub(crate) fn sum(record: &StepRecord, kind: &str, field: fn(&Interval) -> u64) -> u64 {
    record.intervals.iter().filter(|interval| interval.kind == kind).map(field).sum()
}

pub(crate) fn percentile(record: &StepRecord, clock: &str, quantile: f64) -> u64 {
    let mut spans =
        record.histograms.iter().filter(|span| format!("{:?}", span.clock).to_lowercase() == clock);
    let mut merged = spans.next().expect("a histogram").histogram().expect("readable");
    spans.for_each(|span| merged.add(span.histogram().expect("readable")).expect("same bounds"));
    merged.value_at_quantile(quantile)
}

pub(crate) fn even(per_second: u64) -> Arrivals {
    let per = Duration::from_secs(1);
    Arrivals::Open(ArrivalProcess::Constant { operations: per_second, per, phase: Duration::ZERO })
}
