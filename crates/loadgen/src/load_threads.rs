//! Distributes tasks over load threads and load threads over CPUs, and runs the threads. A load
//! thread runs its connections' tasks and their timer, and hands over their counters every second.
//! It gives up answers that may never come, once a stopped step has waited long enough for them.
//! Code that runs for long without yielding, such as a script, calls [`is_stopping_here`] from time
//! to time.
//!
//! A load thread may spin: it does not sleep while a step runs, but polls the kernel for answers
//! again and again, so that the server never has to wake it. The time of polls that found nothing
//! is counted separately from its work.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use tokio::runtime::{LocalOptions, LocalRuntime};

use crate::arrivals::to_ns;
use crate::collector::Message;
use crate::connect::{self, Opening};
use crate::control::{Control, StopReason};
use crate::recorder::Recorder;
use crate::running_task::RunningTask;
use crate::schedule::ThreadSchedules;
use crate::timer::Timer;
use crate::{ConnectionTask, HostShare, LostConnections, TaskEnd, TaskSpec};

/// Connections that one load thread carries before a second one is started. The more answers have
/// arrived when a thread wakes, the less often it sleeps: at 64 connections two threads use a third
/// more CPU per query than one.
const CONNECTIONS_PER_THREAD: usize = 64;

#[derive(Debug, Clone, Default)]
pub struct Threads {
    /// CPUs that the load threads may use, where `None` means all.
    pub cpus: Option<Vec<u32>>,
    /// How many threads there are. `None` means one for every 64 connections, but at most one per
    /// CPU. There are never more threads than units to distribute. A unit is a client with coupled
    /// tasks, or otherwise a single task.
    pub count: Option<u32>,
    /// Whether a task blocks its thread. Each task then gets a thread of its own.
    pub blocking: bool,
    /// Thread n never sleeps while the step runs, and counts in entry n the nanoseconds of polls
    /// that found nothing. With `None`, and for threads beyond the last entry, a thread sleeps
    /// until an answer wakes it. Threads of blocking tasks never spin.
    pub polled_ns: Option<Arc<[AtomicU64]>>,
    /// Time for which a task keeps its thread busy after each answer. It shows the effect of a
    /// slower client.
    pub added_work: Duration,
}

/// A task that a thread is to run. `number` is its index among all tasks of the step.
#[derive(Debug)]
pub(crate) struct Assigned<F> {
    pub(crate) number: usize,
    pub(crate) spec: TaskSpec,
    pub(crate) factory: F,
}

/// The tasks of one thread, and the CPUs that it may use.
type Assignment<F> = (Vec<Assigned<F>>, Option<Vec<u32>>);

/// Distributes the tasks of `part` over threads. Tasks of a client with coupled tasks share a
/// thread. All other tasks are dealt to the threads in turn. A blocking task gets a thread of its
/// own.
pub(crate) fn assign<F>(tasks: Vec<(TaskSpec, F)>, part: HostShare, threads: &Threads) -> Vec<Assignment<F>> {
    let number = |own: usize| usize::try_from(part.of_all(own as u64)).unwrap_or(usize::MAX);
    let tasks = tasks.into_iter().enumerate();
    let tasks = tasks.map(|(own, (spec, factory))| Assigned { number: number(own), spec, factory });
    if threads.blocking {
        return tasks.map(|task| (vec![task], threads.cpus.clone())).collect();
    }
    let tasks: Vec<Assigned<F>> = tasks.collect();
    let all = || thread::available_parallelism().map_or(1, usize::from);
    let available = threads.cpus.as_ref().map_or_else(all, Vec::len);
    let wanted = threads
        .count
        .map_or_else(|| tasks.len().div_ceil(CONNECTIONS_PER_THREAD).min(available), |count| count as usize);
    let coupled: BTreeSet<u32> =
        tasks.iter().filter(|task| task.spec.coupling.is_some()).map(|task| task.spec.client).collect();
    let mut parts: BTreeMap<(u32, Option<usize>), Vec<Assigned<F>>> = BTreeMap::new();
    for task in tasks {
        let alone = (!coupled.contains(&task.spec.client)).then_some(task.number);
        parts.entry((task.spec.client, alone)).or_default().push(task);
    }
    let count = wanted.clamp(1, parts.len().max(1));
    let mut jobs: Vec<Vec<Assigned<F>>> = (0..count).map(|_| Vec::new()).collect();
    for (index, part) in parts.into_values().enumerate() {
        jobs[index % count].extend(part);
    }
    let cpus_of = |index: usize| {
        // Each thread gets a CPU of its own if there are enough, so that the thread's data stay in
        // that CPU's caches.
        let cpus = threads.cpus.as_ref()?;
        if count <= cpus.len() { Some(vec![cpus[index]]) } else { Some(cpus.clone()) }
    };
    jobs.into_iter().enumerate().map(|(index, tasks)| (tasks, cpus_of(index))).collect()
}

/// How long answers that are on their way may still come after a step is stopped.
const GRACE: Duration = Duration::from_secs(5);

/// The same limit when the user has stopped the step and waits for its end.
const GRACE_OF_USER: Duration = Duration::from_millis(300);

/// The tasks and settings that a load thread is started with.
pub(crate) struct Job<F> {
    pub(crate) index: usize,
    pub(crate) kinds: Vec<String>,
    pub(crate) tasks: Vec<Assigned<F>>,
    /// CPUs that the thread may use, where `None` means all.
    pub(crate) cpus: Option<Vec<u32>>,
    /// If set, the thread spins, and counts here the nanoseconds of polls that found nothing. See
    /// [`crate::Threads`].
    pub(crate) polled_ns: Option<Arc<[AtomicU64]>>,
    pub(crate) added_work: Duration,
    /// Where the common window begins.
    pub(crate) warmup: Duration,
    pub(crate) opening: Opening,
    pub(crate) control: Arc<Control>,
    pub(crate) messages: Sender<Message>,
}

/// Ends the step for the other threads when this one panics, because no other thread would report
/// that its tasks have ended.
struct ReleaseOnPanic(Arc<Control>);

impl Drop for ReleaseOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop(StopReason::Failed("a load thread has panicked".to_owned()));
            self.0.abandon();
        }
    }
}

/// Runs a load thread.
pub(crate) fn run<L: ConnectionTask + 'static, F: FnOnce() -> L>(job: Job<F>) {
    let runtime = match runtime(job.cpus.as_deref()) {
        Ok(runtime) => runtime,
        Err(reason) => {
            job.control.stop(StopReason::Failed(reason));
            let _ = job.messages.send(Message::WorkerEnded { ends: Vec::new() });
            return;
        }
    };
    let control = Arc::clone(&job.control);
    watch_here(move || control.is_stopping());
    let messages = job.messages.clone();
    let _release = ReleaseOnPanic(Arc::clone(&job.control));
    let timer = {
        let _entered = runtime.enter();
        Timer::new()
    };
    let ends = match timer {
        Ok(timer) => runtime.block_on(work(job, timer)),
        Err(error) => {
            let advice = "raise the limit on open files (ulimit -n)";
            job.control.stop(StopReason::Failed(format!("cannot make a timer: {error}; {advice}")));
            Vec::new()
        }
    };
    // A closed channel means that the collector has failed, and the collector reports why itself.
    let _ = messages.send(Message::WorkerEnded { ends });
}

/// Pins this thread to `cpus`, and returns its event loop.
fn runtime(cpus: Option<&[u32]>) -> Result<LocalRuntime, String> {
    if let Some(cpus) = cpus {
        pin_to_cpus(cpus).map_err(|error| {
            let list: Vec<String> = cpus.iter().map(u32::to_string).collect();
            let advice = "see which CPUs this process may use (taskset -p, the control group's cpuset) and change client_cpus";
            format!("a load thread cannot run on the client's CPUs {}: {error}; {advice}", list.join(","))
        })?;
    }
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let built = builder.enable_all().build_local(LocalOptions::default());
    built.map_err(|error| format!("cannot start an event loop: {error}"))
}

/// Opens the connections of this thread's tasks and runs the tasks. It returns once all connections
/// are closed.
async fn work<L: ConnectionTask + 'static, F: FnOnce() -> L>(job: Job<F>, timer: Timer) -> Vec<TaskEnd> {
    let specs: Vec<TaskSpec> = job.tasks.iter().map(|task| task.spec.clone()).collect();
    let numbers: Vec<usize> = job.tasks.iter().map(|task| task.number).collect();
    let sender = job.messages.clone();
    let hand_over = Box::new(move |batch| {
        let _ = sender.send(Message::Batch(batch));
    });
    let shared = Rc::new(Shared {
        control: job.control,
        recorder: RefCell::new(Recorder::new(job.kinds, &specs, to_ns(job.warmup), hand_over)),
        timer,
        lost: job.opening.connections.lost,
        abandon: Abandon::default(),
        added_work: job.added_work,
        messages: job.messages,
    });
    let clock = tokio::task::spawn_local(run_timer(Rc::clone(&shared)));
    let abandoner = tokio::task::spawn_local(abandon_after_stop(Rc::clone(&shared)));

    let opening = Instant::now();
    let unopened = job.tasks.into_iter().map(|task| (task.number, (task.factory)()));
    let (tasks, logins) = connect::open_all(&shared, &job.opening, unopened).await;
    let logins = Box::new(logins);
    let _ = shared.messages.send(Message::Ready { load_thread: job.index, took: opening.elapsed(), logins });

    let mut scheduled_times = ThreadSchedules::default();
    let mut handles = Vec::new();
    for (index, ((task, spec), number)) in tasks.into_iter().zip(specs).zip(numbers).enumerate() {
        let Some(task) = task else { continue };
        let due = scheduled_times.of(&spec.arrivals);
        let running = RunningTask::new(Rc::clone(&shared), index, number, spec, due);
        handles.push(tokio::task::spawn_local(running.run(Box::new(task))));
    }
    let cutter = tokio::task::spawn_local(cut_each_second(Rc::clone(&shared)));
    let spinner = job
        .polled_ns
        .map(|polled_ns| tokio::task::spawn_local(spin(Rc::clone(&shared), polled_ns, job.index)));
    let mut ends = Vec::new();
    let mut closing = Vec::new();
    for handle in handles {
        match handle.await {
            Ok((end, close)) => {
                ends.push(*end);
                closing.push(close);
            }
            Err(error) => {
                shared.control.stop(StopReason::Failed(format!("a connection's task failed: {error}")));
                // This task will not report its end, and all others wait for the last one.
                shared.control.abandon();
            }
        }
    }
    if let Some(spinner) = spinner {
        spinner.abort();
    }
    let end_ns = shared.control.wait_for_end().await;
    clock.abort();
    cutter.abort();
    abandoner.abort();
    shared.recorder.borrow_mut().finish(end_ns, shared.control.window_cut_ns());
    for close in closing {
        if let Err(error) = close.await
            && let Ok(panic) = error.try_into_panic()
        {
            std::panic::resume_unwind(panic);
        }
    }
    ends
}

async fn run_timer(shared: Rc<Shared>) {
    if let Err(error) = shared.timer.run().await {
        shared.fail(format!("the timer of a load thread failed: {error}"));
    }
}

/// Gives up the answers that are still missing some time after the step was stopped.
async fn abandon_after_stop(shared: Rc<Shared>) {
    shared.control.wait_for_stop().await;
    let is_interrupted = matches!(shared.control.reason(), Some(StopReason::Interrupted));
    tokio::time::sleep(if is_interrupted { GRACE_OF_USER } else { GRACE }).await;
    shared.abandon.now();
}

/// Cuts the counters shortly after each whole second, so that an idle or waiting thread reports in
/// time too.
async fn cut_each_second(shared: Rc<Shared>) {
    let Some(start) = shared.control.wait_for_start().await else { return };
    // This does not use tokio's timers. While one of those is pending, every wait for an answer
    // also arms and cancels a timer in the kernel, which costs about a microsecond per operation.
    for second in 1_u32.. {
        let at = start + Duration::from_secs(1) * second + Duration::from_millis(1);
        if shared.timer.wait_until(at).await.is_err() {
            return;
        }
        shared.tick();
    }
}

fn pin_to_cpus(cpus: &[u32]) -> Result<(), Errno> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu as usize)?;
    }
    sched_setaffinity(Pid::from_raw(0), &set)
}

/// The state that the tasks of one load thread share.
pub(crate) struct Shared {
    pub(crate) control: Arc<Control>,
    pub(crate) recorder: RefCell<Recorder>,
    pub(crate) timer: Timer,
    pub(crate) lost: LostConnections,
    pub(crate) abandon: Abandon,
    pub(crate) added_work: Duration,
    pub(crate) messages: Sender<Message>,
}

impl Shared {
    /// Returns the time of the event that is about to be recorded. It makes all cuts before that
    /// time first.
    pub(crate) fn tick(&self) -> u64 {
        let now_ns = self.control.now_ns();
        self.recorder.borrow_mut().advance(now_ns, self.control.window_cut_ns());
        now_ns
    }

    pub(crate) fn fail(&self, message: String) {
        self.control.stop(StopReason::Failed(message));
    }
}

/// A round that found nothing and took longer than this was interrupted. For the rest of it the
/// thread was not on its CPU, or was at work for the kernel.
const LONGEST_ROUND: Duration = Duration::from_micros(20);
/// After this many rounds that found nothing, the thread offers its CPU to others that wait for it:
/// the sampler, the main thread, and the kernel's own threads. A thread that is always ready would
/// let them wait until its time slice ends.
const ROUNDS_PER_OFFER: u32 = 32;

/// Polls for answers from the start of the clock until it is aborted, and counts the time of polls
/// that found nothing. `polled_ns` holds one counter per load thread, and `index` is this thread's.
async fn spin(shared: Rc<Shared>, polled_ns: Arc<[AtomicU64]>, index: usize) {
    let Some(counter) = polled_ns.get(index) else { return };
    let Some(start) = shared.control.wait_for_start().await else { return };
    let _ = shared.timer.wait_until(start).await;
    let (mut sum, mut rounds) = (Duration::ZERO, 0_u32);
    let (mut begin, mut seen) = (Instant::now(), woken(&shared));
    loop {
        // A task that yields runs again only when no other task is ready. The runtime then polls
        // epoll without waiting, runs the tasks that have become ready, and returns to this task.
        // That is one round.
        tokio::task::yield_now().await;
        let (now, woken) = (Instant::now(), woken(&shared));
        if woken == seen {
            sum += now.duration_since(begin).min(LONGEST_ROUND);
            counter.store(u64::try_from(sum.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
            rounds += 1;
            if rounds.is_multiple_of(ROUNDS_PER_OFFER) {
                std::thread::yield_now();
            }
        }
        (begin, seen) = (now, woken);
    }
}

/// Returns the number of wake-ups of tasks and of the timer on this thread. It grows with all work
/// except spinning.
fn woken(shared: &Shared) -> u64 {
    shared.abandon.polls() + shared.timer.fired()
}

/// A flag by which the tasks of one thread give up the answers that they wait for. A task checks
/// the flag each time it is woken, which costs less than a `select!` over a notification.
#[derive(Debug, Default)]
pub(crate) struct Abandon {
    given_up: Cell<bool>,
    /// How often a task was woken.
    polls: Cell<u64>,
    waiting: RefCell<Vec<Waker>>,
}

impl Abandon {
    /// Gives up the work in every [`Abandon::unless`], both work that runs and work that begins
    /// later.
    pub(crate) fn now(&self) {
        self.given_up.set(true);
        for waker in self.waiting.take() {
            waker.wake();
        }
    }

    /// Returns how often tasks were woken up to now.
    pub(crate) fn polls(&self) -> u64 {
        self.polls.get()
    }

    /// Returns the outcome of `work`, or `None` when the work was given up first.
    pub(crate) async fn unless<F: Future>(&self, work: F) -> Option<F::Output> {
        let mut work = pin!(work);
        let mut registered: Option<Waker> = None;
        poll_fn(|context| {
            self.polls.set(self.polls.get() + 1);
            if self.given_up.get() {
                return Poll::Ready(None);
            }
            let Poll::Ready(outcome) = work.as_mut().poll(context) else {
                // A task keeps its waker, so this happens once.
                if !registered.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
                    registered = Some(context.waker().clone());
                    self.waiting.borrow_mut().push(context.waker().clone());
                }
                return Poll::Pending;
            };
            Poll::Ready(Some(outcome))
        })
        .await
    }
}

type IsStopping = Box<dyn Fn() -> bool>;

thread_local! {
    static IS_STOPPING: RefCell<Option<IsStopping>> = const { RefCell::new(None) };
}

/// Registers the function that says whether work on this thread should stop.
pub fn watch_here(is_stopping: impl Fn() -> bool + 'static) {
    IS_STOPPING.with(|own| *own.borrow_mut() = Some(Box::new(is_stopping)));
}

/// Returns whether work on this thread should stop. On a load thread, it should stop when the step
/// stops.
pub fn is_stopping_here() -> bool {
    IS_STOPPING.with(|own| own.borrow().as_ref().is_some_and(|is_stopping| is_stopping()))
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;
    use crate::{Arrivals, Coupling, Limit, Role, Side};

    fn task(client: u32, coupled: bool) -> (TaskSpec, ()) {
        let coupling = coupled.then(|| (Arc::new(Coupling::new(9)), Side::Left));
        let limit = Limit::Operations(1);
        (TaskSpec { client, kind: 0, arrivals: Arrivals::Closed, limit, role: Role::Decides, coupling }, ())
    }

    fn clients_by_thread(tasks: Vec<(TaskSpec, ())>, count: u32) -> Vec<Vec<u32>> {
        let threads = Threads { count: Some(count), ..Threads::default() };
        let jobs = assign(tasks, HostShare::WHOLE, &threads).into_iter();
        jobs.map(|(tasks, _)| tasks.iter().map(|task| task.spec.client).collect()).collect()
    }

    #[test]
    fn coupled_connections_stay_together_and_others_are_spread() {
        let pair = |client| [task(client, true), task(client, false)];
        let coupled = (1..=3).flat_map(pair).collect();
        assert_eq!(clients_by_thread(coupled, 2), [vec![1, 1, 3, 3], vec![2, 2]]);
        let one_client = (0..5).map(|_| task(1, false)).collect();
        assert_eq!(clients_by_thread(one_client, 2), [vec![1; 3], vec![1; 2]]);
        assert_eq!(clients_by_thread(vec![task(1, false)], 8), [[1]]);
    }

    #[test]
    fn there_is_a_thread_for_every_64_connections_and_at_most_one_per_cpu() {
        let threads = |tasks: usize, cpus: &[u32]| {
            let threads = Threads { cpus: Some(cpus.to_vec()), ..Threads::default() };
            assign((0..tasks).map(|_| task(1, false)).collect(), HostShare::WHOLE, &threads).len()
        };
        assert_eq!([threads(64, &[0, 1]), threads(65, &[0, 1]), threads(4096, &[0, 1])], [1, 2, 2]);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn work_that_ends_is_not_given_up() {
        assert_eq!(Abandon::default().unless(ready(7)).await, Some(7));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn waiting_work_ends_when_it_is_given_up() {
        let abandon = Abandon::default();
        let waits = abandon.unless(pending::<u32>());
        let gives_up = async {
            tokio::task::yield_now().await;
            abandon.now();
        };
        assert_eq!(tokio::join!(waits, gives_up).0, None);
        assert_eq!(abandon.unless(pending::<u32>()).await, None);
    }
}
