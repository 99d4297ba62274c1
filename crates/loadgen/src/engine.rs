//! Runs one step: it starts the load threads, waits for the connections, starts the clock and waits for
//! the end.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dbdyno_record::{Outcome, StepEvent, StepSpec, StepWriter};

use crate::arrivals::to_us;
use crate::collector::{Collector, Inbox, Longest, Message, Observer, ranges};
use crate::connect::Opening;
use crate::control::{Control, StopReason};
use crate::load_threads::{self, Job, assign};
use crate::pauses::Watching;
use crate::{Arrivals, ConnectionTask, Connections, Error, HostShare, TaskEnd, TaskSpec, Threads, schedule};

/// The clock starts this long after the last connection is open, so that samplers have time to take
/// their first sample.
const LEAD: Duration = Duration::from_millis(50);
/// The clock starts this much later for each connection, because a server may have one process for
/// each, and the sampler reads the files of all of them.
const LEAD_PER_CONNECTION: Duration = Duration::from_micros(200);

pub struct Step<'a> {
    pub spec: &'a StepSpec,
    pub threads: Threads,
    pub connections: Connections,
    /// Time from the barrier to the start of the common window. It is in whole seconds, because
    /// counters are cut at whole seconds.
    pub warmup: Duration,
    /// Longest time from the barrier. The step fails when it is exceeded. Without a cap, the step
    /// fails when nothing was answered for [`Connections::silence`].
    pub time_cap: Option<Duration>,
    /// Set by a signal handler. The step then ends soon, and the figures so far are kept.
    pub cancel: &'a AtomicBool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StepEnd {
    pub outcome: Outcome,
    /// Why the step did not complete.
    pub message: Option<String>,
    pub at_us: u64,
    pub tasks: Vec<TaskEnd>,
}

/// Runs a step on `tasks`, and writes its intervals, histograms and events. Each task is built by
/// its `F` on the thread that will run it. The caller writes the step's `Started` and `Ended`
/// events. Errors inside the step are reported in [`StepEnd`].
pub fn run<L, F>(
    step: Step<'_>,
    tasks: Vec<(TaskSpec, F)>,
    writer: &mut StepWriter,
    observer: &mut dyn Observer,
) -> Result<StepEnd, Error>
where
    L: ConnectionTask + 'static,
    F: FnOnce() -> L + Send + 'static,
{
    let specs: Vec<TaskSpec> = tasks.iter().map(|(spec, _)| spec.clone()).collect();
    let control = Arc::new(Control::new(step.spec.clients, &specs, step.spec.window));
    let schedules = schedule::accounting(specs.iter())?;
    let (sender, mut messages) = mpsc::channel();
    let threads = start(&step, tasks, HostShare::WHOLE, &control, &sender)?;
    let watching = Watching::start(Arc::clone(&control)).map_err(Error::Thread)?;
    drop(sender);
    let kinds = kinds(step.spec);
    let mut collector = Collector::new(writer, observer, &control, &kinds, threads.len(), schedules);
    conduct(&step, &specs, &mut collector, &mut messages, LEAD);
    watching.end().into_iter().for_each(|pause| collector.paused(pause));
    let (failure, ends) = (collector.failure.take(), std::mem::take(&mut collector.ends));
    join(threads)?;
    ended(&control, failure, ends)
}

pub(crate) fn kinds(spec: &StepSpec) -> Vec<String> {
    spec.kinds.iter().map(|kind| kind.kind.clone()).collect()
}

/// Starts the load threads for `tasks`, which are those of `part`.
pub(crate) fn start<L, F>(
    step: &Step<'_>,
    tasks: Vec<(TaskSpec, F)>,
    part: HostShare,
    control: &Arc<Control>,
    messages: &Sender<Message>,
) -> Result<Vec<JoinHandle<()>>, Error>
where
    L: ConnectionTask + 'static,
    F: FnOnce() -> L + Send + 'static,
{
    let opening = Opening { began: Instant::now(), connections: step.connections.clone() };
    // A thread with a blocking task cannot spin, because the task waits in the kernel or runs the
    // database itself.
    let polled_ns = step.threads.polled_ns.clone().filter(|_| !step.threads.blocking);
    let mut threads = Vec::new();
    for (index, (tasks, cpus)) in assign(tasks, part, &step.threads).into_iter().enumerate() {
        let job = Job {
            index,
            kinds: kinds(step.spec),
            tasks,
            cpus,
            polled_ns: polled_ns.clone(),
            added_work: step.threads.added_work,
            warmup: step.warmup,
            opening: opening.clone(),
            control: Arc::clone(control),
            messages: messages.clone(),
        };
        let thread =
            thread::Builder::new().name(format!("load-{index}")).spawn(move || load_threads::run(job));
        match thread {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                control.stop(StopReason::Failed(error.to_string()));
                return Err(Error::Thread(error));
            }
        }
    }
    Ok(threads)
}

/// Waits for the load threads, which have reported that they end.
pub(crate) fn join(threads: Vec<JoinHandle<()>>) -> Result<(), Error> {
    let mut threads = threads.into_iter();
    threads.try_for_each(|thread| thread.join().map_err(|panic| Error::Panicked(panic_text(&panic))))
}

/// Runs a step from waiting for connections to the end of the last load thread. The clock starts
/// `lead` after the last connection is open, and a little later for each of them.
pub(crate) fn conduct(
    step: &Step<'_>,
    specs: &[TaskSpec],
    collector: &mut Collector<'_>,
    messages: &mut dyn Inbox,
    lead: Duration,
) {
    collector.warmup = step.warmup;
    let cancelled = || step.cancel.load(Ordering::Relaxed);
    let connect = collector.wait_until_ready(messages, &cancelled);
    let connections = u32::try_from(specs.len()).unwrap_or(u32::MAX);
    let start = Instant::now() + lead + LEAD_PER_CONNECTION * connections;
    if !collector.control.is_stopping() {
        let connect_us = u64::try_from(connect.as_micros()).unwrap_or(u64::MAX);
        collector.event(&StepEvent::Barrier { at: now_utc(), connections, connect_us });
        for event in scheduled(specs, collector.kinds) {
            collector.event(&event);
        }
        collector.observer.barrier(start);
        collector.control.begin(start);
    }
    let longest = match step.time_cap {
        Some(cap) => Longest::Cap(start, cap),
        None => Longest::Silence(step.connections.silence),
    };
    collector.collect(messages, longest, &cancelled);
}

/// Returns how a step ended, or the error that kept its record from being written.
pub(crate) fn ended(
    control: &Control,
    failure: Option<dbdyno_record::Error>,
    tasks: Vec<TaskEnd>,
) -> Result<StepEnd, Error> {
    if let Some(failure) = failure {
        return Err(failure.into());
    }
    let (outcome, message) = outcome(control, &tasks);
    Ok(StepEnd { outcome, message, at_us: to_us(control.end_ns().unwrap_or(0)), tasks })
}

/// Returns how the step ended, and why it did not complete.
fn outcome(control: &Control, tasks: &[TaskEnd]) -> (Outcome, Option<String>) {
    match control.reason() {
        None => (Outcome::Completed, None),
        Some(StopReason::Interrupted) => (Outcome::Interrupted, Some("interrupted by the user".to_owned())),
        Some(StopReason::Failed(message)) => (Outcome::Failed, Some(message)),
        Some(StopReason::TimeCap(cap)) => {
            let advice = unanswered(tasks).unwrap_or_else(|| {
                "the server is too slow, or an event of a script does not end; raise time_cap or lower the rates".to_owned()
            });
            let message = format!("not done after its time cap of {} s: {advice}", cap.as_secs());
            (Outcome::Failed, Some(message))
        }
        Some(StopReason::Silence(silence)) => {
            let who = unanswered(tasks).unwrap_or_else(|| "see what the server does".to_owned());
            let message =
                format!("no operation was answered for {} s (silence_timeout): {who}", silence.as_secs());
            (Outcome::Failed, Some(message))
        }
    }
}

/// Returns which connections had no answer when the step was stopped. If some never had an answer,
/// these are named, and otherwise those that waited. The result is `None` if no connection waited.
fn unanswered(tasks: &[TaskEnd]) -> Option<String> {
    let silent: Vec<&TaskEnd> = tasks.iter().filter(|task| task.unanswered).collect();
    let never: Vec<&TaskEnd> = silent.iter().copied().filter(|task| task.is_unheard()).collect();
    let named = |some: &[&TaskEnd]| {
        let mut clients: Vec<u32> = some.iter().map(|task| task.client).collect();
        clients.sort_unstable();
        clients.dedup();
        format!("{} of {} connections (client {})", some.len(), tasks.len(), ranges(clients.into_iter()))
    };
    match (silent.is_empty(), never.is_empty()) {
        (true, _) => None,
        (false, true) => Some(format!("{} waited for an answer", named(&silent))),
        (false, false) => Some(format!(
            "{} had no answer to their first statement; a pooler, locks or max_connections may hold them",
            named(&never)
        )),
    }
}

/// Returns the arrival rates of the open loops, by kind and arrival process.
fn scheduled(tasks: &[TaskSpec], kinds: &[String]) -> Vec<StepEvent> {
    let mut asked: BTreeMap<(usize, &str), (f64, u32)> = BTreeMap::new();
    let mut seen = HashSet::new();
    for task in tasks {
        let Some(arrival_process) = task.arrivals.process() else { continue };
        let (per_second, connections) = asked.entry((task.kind, arrival_process.name())).or_default();
        // All tasks of a client and kind share one schedule, or each has its own.
        if !matches!(task.arrivals, Arrivals::Shared(_)) || seen.insert((task.client, task.kind)) {
            *per_second += arrival_process.rate_per_second();
        }
        *connections += 1;
    }
    asked
        .into_iter()
        .map(|((kind, process), (operations_per_second, connections))| StepEvent::Scheduled {
            kind: kinds[kind].clone(),
            process: process.to_owned(),
            operations_per_second,
            connections,
        })
        .collect()
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

fn now_utc() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
