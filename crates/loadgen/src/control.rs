//! Holds the few atomics that load threads share while the clock runs. They say when the step
//! starts, whether it was stopped, and when the common window and the step ended.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use dbdyno_record::WindowRule;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::{Role, TaskSpec};

/// Why a step was stopped before its tasks were done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopReason {
    /// The user asked for it.
    Interrupted,
    /// A task cannot go on.
    Failed(String),
    /// The step reached its time cap.
    TimeCap(Duration),
    /// No connection had an answer for this long, in a step without a time cap.
    Silence(Duration),
}

/// A command to the controls of the same step on other hosts. `T` is how a time is given, because
/// an instant is valid only on its own host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepCommand<T> {
    /// The clock starts at this time.
    Begin(T),
    Stop(StopReason),
    /// All tasks of all hosts have ended, the last one at `end_ns`. `window_end_ns` is when the common
    /// window ended, if there was one.
    End {
        window_end_ns: Option<u64>,
        end_ns: u64,
    },
    /// Connections may be closed.
    Close,
}

impl<T> StepCommand<T> {
    /// Returns the same command with its time translated, for example to another host's clock.
    pub fn at<U>(self, translated: impl FnOnce(T) -> U) -> StepCommand<U> {
        match self {
            Self::Begin(at) => StepCommand::Begin(translated(at)),
            Self::Stop(reason) => StepCommand::Stop(reason),
            Self::End { window_end_ns, end_ns } => StepCommand::End { window_end_ns, end_ns },
            Self::Close => StepCommand::Close,
        }
    }
}

/// Takes commands to other hosts.
pub type Follower = Box<dyn Fn(StepCommand<Instant>) + Send + Sync>;

/// The state of a step that all load threads on this host share.
pub(crate) struct Control {
    start: OnceLock<Instant>,
    started: Notify,
    stopping: AtomicBool,
    reason: Mutex<Option<StopReason>>,
    stopped: Notify,
    window_rule: WindowRule,
    /// End of the common window in nanoseconds from the barrier, or `u64::MAX` while the window is
    /// open.
    window_end_ns: AtomicU64,
    /// When the common window will end, if the tasks' limits determine it beforehand, and otherwise
    /// `u64::MAX`.
    planned_end_ns: u64,
    /// Whether a deciding task of each client has ended. The index is the client's number minus 1.
    client_ended: Vec<AtomicBool>,
    client_changed: Notify,
    /// Number of tasks that this control covers: all tasks of the step, or those of one host's
    /// part.
    pub(crate) tasks: usize,
    opened: AtomicUsize,
    tasks_left: AtomicUsize,
    deciders_left: AtomicUsize,
    /// 1 if this is one host's part of the step, otherwise 0. The 1 stands for the tasks on other
    /// hosts, so that this host's tasks are never the last ones.
    elsewhere: usize,
    end_ns: AtomicU64,
    /// When the last task ended among those that other hosts have reported as ended.
    last_elsewhere_ns: AtomicU64,
    ended: Notify,
    closing: AtomicBool,
    may_close: Notify,
    follower: Option<Follower>,
}

impl Control {
    pub(crate) fn new(clients: u32, tasks: &[TaskSpec], window_rule: WindowRule) -> Self {
        let deciders = || tasks.iter().filter(|task| task.role == Role::Decides);
        let ends = deciders().map(|task| task.bounds().until_ns);
        let planned = match window_rule {
            WindowRule::FirstEnded => ends.min(),
            WindowRule::LastEnded => ends.max(),
        };
        Self {
            start: OnceLock::new(),
            started: Notify::new(),
            stopping: AtomicBool::new(false),
            reason: Mutex::new(None),
            stopped: Notify::new(),
            window_rule,
            window_end_ns: AtomicU64::new(u64::MAX),
            planned_end_ns: planned.unwrap_or(u64::MAX),
            client_ended: (0..clients).map(|_| AtomicBool::new(false)).collect(),
            client_changed: Notify::new(),
            tasks: tasks.len(),
            opened: AtomicUsize::new(0),
            tasks_left: AtomicUsize::new(tasks.len()),
            deciders_left: AtomicUsize::new(deciders().count()),
            elsewhere: 0,
            end_ns: AtomicU64::new(u64::MAX),
            last_elsewhere_ns: AtomicU64::new(0),
            ended: Notify::new(),
            closing: AtomicBool::new(false),
            may_close: Notify::new(),
            follower: None,
        }
    }

    /// Returns the same control, which also sends its commands to other hosts.
    pub(crate) fn followed_by(self, follower: Follower) -> Self {
        Self { follower: Some(follower), ..self }
    }

    /// Returns the control of one host's part of the step. On that host the step ends only with
    /// [`StepCommand::End`], or when it is abandoned.
    pub(crate) fn of_part(self) -> Self {
        self.tasks_left.fetch_add(1, Ordering::AcqRel);
        self.deciders_left.fetch_add(1, Ordering::AcqRel);
        Self { elsewhere: 1, ..self }
    }

    /// Sends a command to the hosts that follow this control.
    fn forward(&self, command: StepCommand<Instant>) {
        if let Some(follower) = &self.follower {
            follower(command);
        }
    }

    /// Carries out a command from the control of the whole step.
    pub(crate) fn apply(&self, command: StepCommand<Instant>) {
        match command {
            StepCommand::Begin(at) => self.begin(at),
            StepCommand::Stop(reason) => self.stop(reason),
            StepCommand::End { window_end_ns, end_ns } => {
                if let Some(window_end_ns) = window_end_ns {
                    self.end_window(window_end_ns);
                }
                self.end_at(end_ns);
            }
            StepCommand::Close => self.let_close(),
        }
    }

    pub(crate) fn task_opened(&self) {
        self.opened.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many tasks have no open connection yet.
    pub(crate) fn unopened(&self) -> usize {
        self.tasks.saturating_sub(self.opened.load(Ordering::Relaxed))
    }

    /// Returns when the common window will end, if that is known beforehand.
    pub(crate) fn planned_end(&self) -> Option<Duration> {
        Some(self.planned_end_ns).filter(|&end| end != u64::MAX).map(Duration::from_nanos)
    }

    /// Lifts the barrier: the clock starts at `at`, which may be in the future.
    pub(crate) fn begin(&self, at: Instant) {
        if self.start.set(at).is_ok() {
            self.started.notify_waiters();
            self.forward(StepCommand::Begin(at));
        }
    }

    /// Waits for the barrier. The result is `None` when the step was stopped before it.
    pub(crate) async fn wait_for_start(&self) -> Option<Instant> {
        loop {
            let started = self.started.notified();
            let stopped = self.stopped.notified();
            tokio::pin!(started, stopped);
            started.as_mut().enable();
            stopped.as_mut().enable();
            if let Some(start) = self.start.get() {
                return Some(*start);
            }
            if self.is_stopping() {
                return None;
            }
            tokio::select! { () = &mut started => {}, () = &mut stopped => {} }
        }
    }

    /// Returns the nanoseconds since the barrier, or 0 before it.
    pub(crate) fn now_ns(&self) -> u64 {
        self.start.get().map_or(0, |start| since(*start))
    }

    /// Ends the step early. Once all tasks have ended this does nothing, because the time that
    /// connections take to close is no part of the step.
    pub(crate) fn stop(&self, reason: StopReason) {
        if self.end_ns().is_some() {
            return;
        }
        let mut known = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = known.is_none();
        known.get_or_insert_with(|| reason.clone());
        drop(known);
        self.stopping.store(true, Ordering::Release);
        self.stopped.notify_waiters();
        self.client_changed.notify_waiters();
        if is_first {
            self.forward(StepCommand::Stop(reason));
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    pub(crate) fn reason(&self) -> Option<StopReason> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) async fn wait_for_stop(&self) {
        wait(&self.stopped, || self.is_stopping()).await;
    }

    pub(crate) fn has_client_ended(&self, client: u32) -> bool {
        self.client_ended.get(client as usize - 1).is_some_and(|ended| ended.load(Ordering::Acquire))
    }

    /// Waits until a deciding task of `client` has ended or the step is stopped.
    pub(crate) async fn wait_for_client_end(&self, client: u32) {
        wait(&self.client_changed, || self.has_client_ended(client) || self.is_stopping()).await;
    }

    /// Notes that a task finished its work or gave up at `at_ns`. The result is whether the
    /// connection must stay open until the end of the common window has been sampled. It must if
    /// the window has ended, or if this was the last of this host's tasks that decide when the
    /// window ends.
    pub(crate) fn connection_ended(&self, client: u32, role: Role, at_ns: u64, complete: bool) -> bool {
        let mut is_last = false;
        if role == Role::Decides {
            if let Some(ended) = self.client_ended.get(client as usize - 1) {
                ended.store(true, Ordering::Release);
            }
            self.client_changed.notify_waiters();
            let left = self.deciders_left.fetch_sub(1, Ordering::AcqRel) - 1;
            is_last = left == self.elsewhere;
            let ends_window = match self.window_rule {
                WindowRule::FirstEnded => complete,
                WindowRule::LastEnded => left == 0 && complete,
            };
            if ends_window {
                self.end_window(at_ns);
            }
        }
        if self.tasks_left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.end_now();
        }
        is_last || self.window_end_ns().is_some()
    }

    /// Notes that a task of another host has reported its end at `at_ns`. If the window ends with this
    /// task, it ends at `window_ns`.
    pub(crate) fn task_ended_elsewhere(
        &self,
        client: u32,
        role: Role,
        (at_ns, window_ns): (u64, u64),
        complete: bool,
    ) {
        self.last_elsewhere_ns.fetch_max(at_ns, Ordering::AcqRel);
        self.connection_ended(client, role, window_ns, complete);
    }

    /// Ends the step now, because a task is gone without a report. Waiting for all tasks would never
    /// end.
    pub(crate) fn abandon(&self) {
        self.end_now();
    }

    /// Ends the step now. Only the first end counts, because the counters have been cut at it.
    fn end_now(&self) {
        let elsewhere_ns = self.last_elsewhere_ns.load(Ordering::Acquire);
        self.end_at(if elsewhere_ns > 0 { elsewhere_ns } else { self.now_ns() });
    }

    /// Ends the step at `end_ns`, unless it has an end already.
    fn end_at(&self, end_ns: u64) {
        let set = self.end_ns.compare_exchange(u64::MAX, end_ns, Ordering::AcqRel, Ordering::Acquire);
        self.ended.notify_waiters();
        if set.is_ok() {
            self.forward(StepCommand::End { window_end_ns: self.window_end_ns(), end_ns });
        }
    }

    /// Ends the common window at `at_ns`.
    fn end_window(&self, at_ns: u64) {
        // Only the first thread that gets here counts. The time of another thread may be a little
        // earlier, because some time passes between reading the clock and this line. But counters
        // may have been cut at the first time by now, and the counters of all threads need the same
        // cuts.
        let _ = self.window_end_ns.compare_exchange(u64::MAX, at_ns, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Returns the end of the common window, once it is known.
    pub(crate) fn window_end_ns(&self) -> Option<u64> {
        Some(self.window_end_ns.load(Ordering::Acquire)).filter(|&end| end != u64::MAX)
    }

    /// Returns where counters are cut in addition to whole seconds. This is the end of the common
    /// window, if it has ended or if the tasks' limits determine its end beforehand.
    pub(crate) fn window_cut_ns(&self) -> Option<u64> {
        let end_ns = self.window_end_ns.load(Ordering::Acquire).min(self.planned_end_ns);
        Some(end_ns).filter(|&end| end != u64::MAX)
    }

    /// Returns the end of the last task, once all have ended.
    pub(crate) fn end_ns(&self) -> Option<u64> {
        Some(self.end_ns.load(Ordering::Acquire)).filter(|&end| end != u64::MAX)
    }

    /// Lets connections close, on this host and on the hosts that follow this control.
    pub(crate) fn let_close(&self) {
        self.closing.store(true, Ordering::Release);
        self.may_close.notify_waiters();
        self.forward(StepCommand::Close);
    }

    /// Waits until connections may be closed, but not longer than `limit`, because the observer may
    /// hang.
    pub(crate) async fn wait_to_close(&self, limit: Duration) {
        let allowed = wait(&self.may_close, || self.closing.load(Ordering::Acquire));
        let _ = tokio::time::timeout(limit, allowed).await;
    }

    /// Waits until every task of every thread has ended.
    pub(crate) async fn wait_for_end(&self) -> u64 {
        wait(&self.ended, || self.end_ns().is_some()).await;
        self.end_ns().unwrap_or(0)
    }
}

/// Returns the nanoseconds since `start`, or 0 before it.
pub(crate) fn since(start: Instant) -> u64 {
    u64::try_from(Instant::now().saturating_duration_since(start).as_nanos()).unwrap_or(u64::MAX)
}

/// Waits on `notify` until `condition` holds. It registers before each check, so that no change is
/// missed.
pub(crate) async fn wait(notify: &Notify, condition: impl Fn() -> bool) {
    loop {
        let changed = notify.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        if condition() {
            return;
        }
        changed.await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_has_ended_is_not_moved() {
        let control = Control::new(1, &[], WindowRule::FirstEnded);
        control.end_window(105);
        control.end_window(100);
        assert_eq!((control.window_end_ns(), control.window_cut_ns()), (Some(105), Some(105)));
    }

    #[tokio::test]
    async fn no_connection_waits_to_close_longer_than_the_limit_or_after_it_was_allowed() {
        let control = Control::new(1, &[], WindowRule::FirstEnded);
        let began = Instant::now();
        control.wait_to_close(Duration::from_millis(50)).await;
        assert!(began.elapsed() >= Duration::from_millis(50), "{:?}", began.elapsed());
        control.let_close();
        let began = Instant::now();
        control.wait_to_close(Duration::from_secs(60)).await;
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    }
}
