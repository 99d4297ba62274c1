//! One load thread: it runs its connections' tasks and their timer, and hands over their counters every
//! second.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use tokio::runtime::{LocalOptions, LocalRuntime};

use crate::abandon::Abandon;
use crate::arrival_process::to_ns;
use crate::control::{Control, StopReason};
use crate::due_times::ThreadDueTimes;
use crate::message::Message;
use crate::opening::{self, Opening};
use crate::recorder::Recorder;
use crate::running_task::RunningTask;
use crate::shared::Shared;
use crate::spin;
use crate::threads::Assigned;
use crate::timer::Timer;
use crate::watched::watch_here;
use crate::{ConnectionTask, TaskEnd, TaskSpec};

/// How long answers that are on their way may still come after a step is stopped.
const GRACE: Duration = Duration::from_secs(5);

/// The same time when the user has stopped the step and is waiting.
const GRACE_OF_USER: Duration = Duration::from_millis(300);

/// What a load thread is given.
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

/// Ends the step for the other threads when this one panics, because no other thread would report that
/// its tasks have ended.
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

/// Returns the event loop of this thread, which runs on `cpus` from now on.
fn runtime(cpus: Option<&[u32]>) -> Result<LocalRuntime, String> {
    if let Some(cpus) = cpus {
        pin(cpus).map_err(|error| {
            let list: Vec<String> = cpus.iter().map(u32::to_string).collect();
            let advice = "see which CPUs this process may use (taskset -p, the control group's cpuset) and change client_cpus";
            format!("a load thread cannot run on the client's CPUs {}: {error}; {advice}", list.join(","))
        })?;
    }
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let built = builder.enable_all().build_local(LocalOptions::default());
    built.map_err(|error| format!("cannot start an event loop: {error}"))
}

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
    let patience = tokio::task::spawn_local(abandon_after_stop(Rc::clone(&shared)));

    let opening = Instant::now();
    let unopened = job.tasks.into_iter().map(|task| (task.number, (task.factory)()));
    let (tasks, logins) = opening::open_all(&shared, &job.opening, unopened).await;
    let logins = Box::new(logins);
    let _ = shared.messages.send(Message::Ready { worker: job.index, took: opening.elapsed(), logins });

    let mut due_times = ThreadDueTimes::default();
    let mut handles = Vec::new();
    for (index, ((task, spec), number)) in tasks.into_iter().zip(specs).zip(numbers).enumerate() {
        let Some(task) = task else { continue };
        let due = due_times.of(&spec.arrivals);
        let running = RunningTask::new(Rc::clone(&shared), index, number, spec, due);
        handles.push(tokio::task::spawn_local(running.run(Box::new(task))));
    }
    let cutter = tokio::task::spawn_local(cut_each_second(Rc::clone(&shared)));
    let spinner = job
        .polled_ns
        .map(|polled_ns| tokio::task::spawn_local(spin::spin(Rc::clone(&shared), polled_ns, job.index)));
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
    patience.abort();
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

/// Leaves answers some time after a stop, then gives them up.
async fn abandon_after_stop(shared: Rc<Shared>) {
    shared.control.wait_for_stop().await;
    let is_wish = matches!(shared.control.reason(), Some(StopReason::Interrupted));
    tokio::time::sleep(if is_wish { GRACE_OF_USER } else { GRACE }).await;
    shared.abandon.now();
}

/// Cuts the counters shortly after each whole second, so that an idle or waiting thread reports in time
/// too.
async fn cut_each_second(shared: Rc<Shared>) {
    let Some(start) = shared.control.wait_for_start().await else { return };
    // This does not use tokio's timers. While one of those is pending, every wait for an answer also
    // arms and cancels a timer in the kernel, which costs about a microsecond per operation.
    for second in 1_u32.. {
        let at = start + Duration::from_secs(1) * second + Duration::from_millis(1);
        if shared.timer.wait_until(at).await.is_err() {
            return;
        }
        shared.tick();
    }
}

fn pin(cpus: &[u32]) -> Result<(), Errno> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu as usize)?;
    }
    sched_setaffinity(Pid::from_raw(0), &set)
}
