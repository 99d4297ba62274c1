//! Runs one step: threads, barrier, clock, end.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use dbdyno_record::{Interval, Outcome, StepEvent, StepSpec, StepWriter};

use crate::collector::Collector;
use crate::control::{Control, StopReason};
use crate::recorder::to_us;
use crate::worker::{self, Job};
use crate::{Error, Lane, LaneEnd, LaneSpec};

/// The clock starts this long after the last connection is open: time for samplers to take their first sample.
const LEAD: Duration = Duration::from_millis(50);
/// Connections that one load thread carries before a second one is started.
const CONNECTIONS_PER_THREAD: usize = 16;

/// One step to run. `F` builds a lane on the thread that will run it.
pub struct Step<'a, F> {
    pub spec: &'a StepSpec,
    pub lanes: Vec<(LaneSpec, F)>,
    pub threads: Threads,
    /// Longest time from the barrier; the step fails when it is exceeded.
    pub time_cap: Option<Duration>,
    /// Set by a signal handler: the step ends soon, what was measured is kept.
    pub cancel: &'a AtomicBool,
}

/// Load threads of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Threads {
    /// CPUs they may use; `None` = all.
    pub cpus: Option<Vec<u32>>,
    /// How many; `None` = one for every 16 connections, at most one a CPU.
    pub count: Option<u32>,
    /// A lane blocks its thread, so each gets one of its own.
    pub blocking: bool,
}

/// Is told what happens while a step runs; called on the thread that called [`run`].
pub trait Observer {
    /// The clock will start at `start`, which lies a little ahead.
    fn barrier(&mut self, _start: Instant) {}
    /// What all clients did between two cuts (usually one second).
    fn second(&mut self, _intervals: &[Interval]) {}
    /// The common window has just ended.
    fn window_ended(&mut self) {}
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq)]
pub struct StepEnd {
    pub outcome: Outcome,
    /// Why it did not complete.
    pub message: Option<String>,
    pub at_us: u64,
    pub lanes: Vec<LaneEnd>,
}

/// Runs a step and writes intervals, histograms and events of it. The caller writes the step's `Started` and `Ended`.
///
/// # Errors
/// When a thread cannot be started or the record cannot be written; what goes wrong inside the step is in [`StepEnd`].
pub fn run<L, F>(
    step: Step<'_, F>,
    writer: &mut StepWriter,
    observer: &mut dyn Observer,
) -> Result<StepEnd, Error>
where
    L: Lane + 'static,
    F: FnOnce() -> L + Send + 'static,
{
    let kinds: Vec<String> = step.spec.kinds.iter().map(|kind| kind.kind.clone()).collect();
    let roles: Vec<_> = step.lanes.iter().map(|(spec, _)| spec.role).collect();
    let connections = u32::try_from(roles.len()).unwrap_or(u32::MAX);
    let control = Arc::new(Control::new(step.spec.clients, &roles, step.spec.window));
    let (sender, messages) = mpsc::channel();
    let mut threads = Vec::new();
    for (index, (lanes, cpus)) in assign(step.lanes, &step.threads).into_iter().enumerate() {
        let job = Job {
            index,
            kinds: kinds.clone(),
            lanes,
            cpus,
            control: Arc::clone(&control),
            messages: sender.clone(),
        };
        let thread = thread::Builder::new().name(format!("load-{index}")).spawn(move || worker::run(job));
        match thread {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                control.stop(StopReason::Failed(error.to_string()));
                return Err(Error::Thread(error));
            }
        }
    }
    drop(sender);

    let mut collector = Collector {
        writer,
        observer,
        control: &control,
        kinds: &kinds,
        workers: threads.len(),
        pending: BTreeMap::new(),
        seen_errors: HashSet::new(),
        window_written: false,
        ends: Vec::new(),
        failure: None,
    };
    let cancelled = || step.cancel.load(Ordering::Relaxed);
    let connect = collector.wait_until_ready(&messages, &cancelled);
    let start = Instant::now() + LEAD;
    if !control.is_stopping() {
        collector.event(&StepEvent::Barrier { at: now_utc(), connections, connect_us: micros(connect) });
        collector.observer.barrier(start);
        control.begin(start);
    }
    collector.collect(&messages, step.time_cap.map(|cap| (start, cap)), &cancelled);
    let (failure, ends) = (collector.failure.take(), std::mem::take(&mut collector.ends));
    for thread in threads {
        thread.join().map_err(|panic| Error::Panicked(panic_text(&panic)))?;
    }
    if let Some(failure) = failure {
        return Err(failure.into());
    }
    let (outcome, message) = outcome(&control);
    Ok(StepEnd { outcome, message, at_us: to_us(control.end_ns().unwrap_or(0)), lanes: ends })
}

fn outcome(control: &Control) -> (Outcome, Option<String>) {
    match control.reason() {
        None => (Outcome::Completed, None),
        Some(StopReason::Interrupted) => (Outcome::Interrupted, Some("interrupted by the user".to_owned())),
        Some(StopReason::Failed(message)) => (Outcome::Failed, Some(message)),
        Some(StopReason::TimeCap(cap)) => (
            Outcome::Failed,
            Some(format!(
                "not done after its time cap of {} s; the server was too slow or stopped answering; raise time_cap or lower the rates",
                cap.as_secs()
            )),
        ),
    }
}

/// The lanes of one thread, and the CPUs it may use.
type Assignment<F> = (Vec<(LaneSpec, F)>, Option<Vec<u32>>);

/// Lanes of one client share a thread, clients go round the threads; a blocking lane gets a thread of its own.
fn assign<F>(lanes: Vec<(LaneSpec, F)>, threads: &Threads) -> Vec<Assignment<F>> {
    if threads.blocking {
        return lanes.into_iter().map(|lane| (vec![lane], threads.cpus.clone())).collect();
    }
    let available = threads
        .cpus
        .as_ref()
        .map_or_else(|| thread::available_parallelism().map_or(1, usize::from), Vec::len);
    let wanted = threads
        .count
        .map_or_else(|| lanes.len().div_ceil(CONNECTIONS_PER_THREAD).min(available), |count| count as usize);
    let clients = lanes.iter().map(|(spec, _)| spec.client).max().unwrap_or(1) as usize;
    let count = wanted.clamp(1, clients.max(1));
    let mut jobs: Vec<Vec<(LaneSpec, F)>> = (0..count).map(|_| Vec::new()).collect();
    for lane in lanes {
        jobs[(lane.0.client as usize - 1) % count].push(lane);
    }
    let cpus_of = |index: usize| {
        // One CPU a thread while there are enough, so that a thread keeps its caches.
        let cpus = threads.cpus.as_ref()?;
        if count <= cpus.len() { Some(vec![cpus[index]]) } else { Some(cpus.clone()) }
    };
    jobs.into_iter().enumerate().map(|(index, lanes)| (lanes, cpus_of(index))).collect()
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

fn now_utc() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
