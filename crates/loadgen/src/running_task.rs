//! Runs one connection's task between the barrier and its end. It waits until an operation is due
//! and until the coupled task, if there is one, is far enough. Then it sends the operation and
//! records how it ended.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dbdyno_record::ErrorClass;
use tokio::task::JoinHandle;

use crate::arrivals::to_ns;
use crate::collector::Message;
use crate::control::Control;
use crate::load_threads::Shared;
use crate::recorder::Ending;
use crate::schedule::ScheduledTimes;
use crate::task::Bounds;
use crate::{
    Arrivals, ConnectionTask, Failure, Limit, LostConnections, Notes, OperationTimes, TaskEnd, TaskSpec,
};

/// An operation counts as failed, and its step fails, when the server has asked this many times for
/// a retry.
pub const MOST_RETRIES: u32 = 1000;
/// The task gives up after this many refusals in a row, because it is unlikely to succeed any more.
const MOST_REFUSALS: u32 = 100;
/// The longest time for which a connection is kept open at the end of a window. It is as long as a
/// sampler may take for a sample.
const KEPT_OPEN_MAX: Duration = Duration::from_secs(15);
/// Only this many failed numbers are kept. [`TaskEnd::unlisted`] reports the rest.
const MOST_FAILED_NUMBERS: usize = 10_000;

pub(crate) struct RunningTask {
    pub(crate) shared: Rc<Shared>,
    /// Index among the tasks of this thread.
    pub(crate) index: usize,
    /// Number among all tasks of the step.
    pub(crate) number: usize,
    pub(crate) spec: TaskSpec,
    bounds: Bounds,
    /// Scheduled times of an open loop.
    pub(crate) due: Option<ScheduledTimes>,
    notes: Notes,
    end: TaskEnd,
    refusals: u32,
    /// When the current burst began. Only [`Arrivals::Burst`] uses it.
    pub(crate) burst_ns: u64,
    /// Numbers that were given up when the last operation was taken from the schedule.
    skipped: Range<u64>,
    /// When the last operation ended.
    last_ns: u64,
    /// When the cycle of the operation that is on its way began.
    began_ns: u64,
}

/// An operation that is about to be made ready.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operation {
    pub(crate) number: u64,
    pub(crate) due: Due,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Due {
    /// The operation is due when it is sent.
    Now,
    /// The operation is due this many nanoseconds after the barrier.
    At(u64),
    /// The operation is due when its burst begins. A burst has this many operations.
    WithBurst(u64),
}

/// Whether a task goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    GoOn,
    /// The step has failed or was stopped.
    GiveUp,
    /// Nothing is left to do, because the task's time is over or its client has ended.
    Complete,
}

impl RunningTask {
    pub(crate) fn new(
        shared: Rc<Shared>,
        index: usize,
        number: usize,
        spec: TaskSpec,
        due: Option<ScheduledTimes>,
    ) -> Self {
        let end = TaskEnd { client: spec.client, kind: spec.kind, ..TaskEnd::default() };
        let (bounds, notes) = (spec.bounds(), Notes::default());
        let (burst_ns, last_ns, began_ns, refusals) = (0, 0, 0, 0);
        let skipped = 0..0;
        Self {
            shared,
            index,
            number,
            spec,
            bounds,
            due,
            notes,
            end,
            refusals,
            burst_ns,
            skipped,
            last_ns,
            began_ns,
        }
    }

    /// Runs the whole life of the task after the barrier, except that its connection is closed in
    /// another tokio task, because closing is no part of the step's time. The result is boxed,
    /// because tokio copies the space for a task's result each time it polls the task.
    pub(crate) async fn run<L: ConnectionTask + 'static>(
        mut self,
        mut task: Box<L>,
    ) -> (Box<TaskEnd>, JoinHandle<()>) {
        let control = Arc::clone(&self.shared.control);
        if let Some(start) = control.wait_for_start().await {
            let shared = Rc::clone(&self.shared);
            let _ = shared.timer.wait_until(start).await;
            // When an answer is given up, its operation stays counted as in flight.
            let next = shared.abandon.unless(self.operate(task.as_mut(), start)).await;
            self.end.complete = next == Some(Next::Complete);
            self.end.unanswered = next.is_none();
        }
        if let Some((coupling, side)) = &self.spec.coupling {
            coupling.end(*side);
        }
        let now_ns = self.shared.tick();
        {
            let mut recorder = self.shared.recorder.borrow_mut();
            recorder.up(self.index, now_ns);
            recorder.ended(self.index, now_ns);
        }
        let at_ns = self.ended_at(now_ns);
        // The window of a step that is limited in time ends with that time, not with the answer
        // that was on its way.
        let window_ns = at_ns.min(self.bounds.until_ns);
        let stays_open =
            control.connection_ended(self.spec.client, self.spec.role, window_ns, self.end.complete);
        let end = self.end;
        let _ = self.shared.messages.send(Message::ConnectionEnded { at_ns, end: end.clone() });
        (Box::new(end), tokio::task::spawn_local(close(control, task, stays_open)))
    }

    /// Returns when the task ended. A closed loop that has sent all operations of its limit ended
    /// with its last answer, even if its thread reports this late. Any other task ends at `now_ns`.
    fn ended_at(&self, now_ns: u64) -> u64 {
        let by_count = matches!(self.spec.limit, Limit::Operations(_) | Limit::Either(..));
        if by_count && self.spec.arrivals.is_closed() && self.end.complete && self.last_ns > 0 {
            self.last_ns
        } else {
            now_ns
        }
    }

    /// Sends operations until the task's limit.
    async fn operate<L: ConnectionTask>(&mut self, task: &mut L, start: Instant) -> Next {
        let control = Arc::clone(&self.shared.control);
        for count in 0.. {
            if control.is_stopping() {
                return Next::GiveUp;
            }
            if self.spec.limit == Limit::UntilClientEnds && control.has_client_ended(self.spec.client) {
                break;
            }
            let next = self.next_operation(count);
            if !self.skipped.is_empty() {
                task.skipped(std::mem::take(&mut self.skipped));
            }
            let Some(operation) = next else { break };
            let prepared = self.make_ready(task, operation.number).await;
            if prepared != Next::GoOn {
                return prepared;
            }
            let waited = match (operation.due, &self.spec.coupling) {
                // The hot path has nothing to wait for.
                (Due::Now, None) => Waited::Due { scheduled_ns: None, was_early: false },
                _ => self.wait_until_due(operation, start).await,
            };
            let next = match waited {
                Waited::Due { scheduled_ns, was_early } => {
                    self.send(task, operation.number, scheduled_ns, was_early).await
                }
                Waited::Ended(next) => next,
            };
            if next != Next::GoOn {
                return next;
            }
            if task.has_ended() {
                break;
            }
        }
        self.wait_for_schedule_end(start).await
    }

    /// Returns the operation that follows `count` others of this task, or `None` at the task's
    /// limit.
    #[inline]
    fn next_operation(&mut self, count: u64) -> Option<Operation> {
        let number = match (&self.spec.arrivals, &self.due) {
            (Arrivals::Shared(schedule), Some(scheduled_times)) => {
                let due_before = |earlier_ns: u64| {
                    scheduled_times
                        .due_before(self.bounds, self.shared.control.now_ns().saturating_sub(earlier_ns))
                };
                let taken = schedule.take(due_before);
                if taken.dropped > 0 {
                    self.shared.tick();
                    self.shared.recorder.borrow_mut().dropped(self.index, taken.dropped);
                    self.skipped = taken.number.saturating_sub(taken.dropped)..taken.number;
                }
                taken.number
            }
            _ => count,
        };
        // The number is checked first, because the scheduled time of an operation beyond the limit must
        // not be looked up.
        if !self.bounds.hold(number, self.last_ns) {
            return None;
        }
        let due = match (&self.due, &self.spec.arrivals) {
            (Some(scheduled_times), _) => Due::At(scheduled_times.scheduled_ns(number)),
            // A cycle that began in time is finished, like an operation that was sent in time.
            (None, Arrivals::Thinking(think)) => {
                return Some(Operation {
                    number,
                    due: Due::At(self.last_ns.saturating_add(to_ns(think.before(number)))),
                });
            }
            (None, Arrivals::Burst { per_second }) => Due::WithBurst(*per_second),
            (None, _) => Due::Now,
        };
        let is_in_time = !matches!(due, Due::At(scheduled_ns) if !self.bounds.hold(number, scheduled_ns));
        is_in_time.then_some(Operation { number, due })
    }

    /// Prepares an operation. It tries again if the server asks for a retry. If the connection is
    /// lost and may be opened again, it tries again over a new connection.
    async fn make_ready<L: ConnectionTask>(&mut self, task: &mut L, number: u64) -> Next {
        let mut retries = 0;
        loop {
            let Err(failure) = task.prepare(number, &mut self.notes).await else {
                if !self.notes.lookups.is_empty() {
                    self.report_lookups();
                }
                return Next::GoOn;
            };
            let now_ns = self.shared.tick();
            self.report_error(now_ns, &failure);
            let next = match (self.shared.lost, failure.class) {
                (LostConnections::Reconnect(how), ErrorClass::Lost) => {
                    let next = self.reconnect(task, &how, failure, now_ns).await;
                    self.last_ns = self.shared.control.now_ns();
                    next
                }
                (_, ErrorClass::Retry) => {
                    retries += 1;
                    self.end.retries += 1;
                    self.try_again(number, retries, &failure)
                }
                _ => self.give_up(&failure),
            };
            if next != Next::GoOn {
                return next;
            }
        }
    }

    /// Sends one operation, sends it again if the server asks for a retry, and records how it
    /// ended.
    async fn send<L: ConnectionTask>(
        &mut self,
        task: &mut L,
        number: u64,
        scheduled_ns: Option<u64>,
        was_early: bool,
    ) -> Next {
        let sent_ns = self.shared.tick();
        self.began_ns = if self.spec.arrivals.is_closed() { self.last_ns } else { sent_ns };
        self.write_sent(sent_ns, scheduled_ns.filter(|_| was_early));
        let scheduled_ns = scheduled_ns.map_or(sent_ns, |scheduled_ns| scheduled_ns.min(sent_ns));
        let mut tries = 0;
        loop {
            tries += 1;
            let answer = task.perform(number).await;
            let ended_ns = self.shared.tick();
            self.last_ns = ended_ns;
            task.timed(OperationTimes { scheduled_ns, sent_ns, ended_ns });
            let failure = match answer {
                Ok(done) => {
                    let ending = Ending {
                        began_ns: self.began_ns,
                        scheduled_ns,
                        sent_ns,
                        ended_ns,
                        rows: done.rows,
                        received_bytes: done.received_bytes,
                    };
                    let mut recorder = self.shared.recorder.borrow_mut();
                    recorder.done(self.index, ending);
                    recorder.statements(self.index, task.statements());
                    drop(recorder);
                    self.end.done += 1;
                    self.end.rows += done.rows;
                    self.refusals = 0;
                    self.notify_coupled_task();
                    self.do_added_work();
                    return Next::GoOn;
                }
                Err(failure) => failure,
            };
            self.report_error(ended_ns, &failure);
            // The server has answered these statements, even if the operation failed.
            self.shared.recorder.borrow_mut().statements(self.index, task.statements());
            self.end.retries += u64::from(failure.class == ErrorClass::Retry);
            match failure.class {
                ErrorClass::Retry if !self.shared.control.is_stopping() => {
                    if tries == MOST_RETRIES {
                        self.write_failed(number);
                        return self.fail_after_retries(number, &failure);
                    }
                }
                ErrorClass::Retry | ErrorClass::Refused => return self.refused(number, &failure),
                ErrorClass::Lost => return self.lost(task, number, failure, ended_ns).await,
                ErrorClass::Fatal => {
                    self.write_failed(number);
                    return self.give_up(&failure);
                }
            }
        }
    }

    /// Returns whether an operation that cannot be made ready is tried once more. It has failed
    /// `retries` times.
    fn try_again(&self, number: u64, retries: u32, failure: &Failure) -> Next {
        match retries {
            _ if self.shared.control.is_stopping() => Next::GiveUp,
            MOST_RETRIES.. => self.fail_after_retries(number, failure),
            _ => Next::GoOn,
        }
    }

    /// Fails the step after the last retry, which ended with `failure`.
    fn fail_after_retries(&self, number: u64, failure: &Failure) -> Next {
        self.shared.fail(format!(
            "operation {number} was refused {MOST_RETRIES} times with a request to try again, the last time with: {}; use fewer connections, \
             or look for locks that others hold",
            describe(failure)
        ));
        Next::GiveUp
    }

    /// Counts operation `number` as failed, because the connection was lost while it was on its way
    /// and its outcome is unknown. The connection is opened again if the plan allows that.
    async fn lost<L: ConnectionTask>(
        &mut self,
        task: &mut L,
        number: u64,
        failure: Failure,
        now_ns: u64,
    ) -> Next {
        self.write_failed(number);
        if self.end.unknown_numbers.len() < MOST_FAILED_NUMBERS {
            self.end.unknown_numbers.push(number);
        }
        let LostConnections::Reconnect(how) = self.shared.lost else { return self.give_up(&failure) };
        self.notify_coupled_task();
        let next = self.reconnect(task, &how, failure, now_ns).await;
        self.last_ns = self.shared.control.now_ns();
        next
    }

    /// Counts an operation as sent. `waited_ns` is its scheduled time if the task was waiting for that
    /// time.
    #[inline]
    fn write_sent(&mut self, sent_ns: u64, waited_ns: Option<u64>) {
        self.end.started += 1;
        let mut recorder = self.shared.recorder.borrow_mut();
        recorder.started(self.index);
        if let Some(scheduled_ns) = waited_ns {
            recorder.lag(self.index, sent_ns.saturating_sub(scheduled_ns));
        }
    }

    /// Counts a refused operation, and gives up after too many in a row.
    fn refused(&mut self, number: u64, failure: &Failure) -> Next {
        self.write_failed(number);
        self.notify_coupled_task();
        self.refusals += 1;
        if self.refusals < MOST_REFUSALS {
            return Next::GoOn;
        }
        self.give_up(failure)
    }

    /// Counts an operation as failed, and keeps its number.
    fn write_failed(&mut self, number: u64) {
        self.shared.recorder.borrow_mut().failed(self.index, self.began_ns, self.last_ns);
        if self.end.failed_numbers.len() < MOST_FAILED_NUMBERS {
            self.end.failed_numbers.push(number);
        }
    }

    /// Keeps the thread busy for the time in [`crate::Threads::added_work`], by which the client
    /// headroom is measured.
    fn do_added_work(&self) {
        let added = self.shared.added_work;
        if !added.is_zero() {
            let begin = Instant::now();
            while begin.elapsed() < added {
                std::hint::spin_loop();
            }
        }
    }

    /// Lets the coupled task go on, because this task's operation has ended.
    fn notify_coupled_task(&self) {
        if let Some((coupling, side)) = &self.spec.coupling {
            coupling.answered(*side);
        }
    }

    /// Fails the whole step because of `failure`.
    fn give_up(&self, failure: &Failure) -> Next {
        self.shared.fail(describe(failure));
        Next::GiveUp
    }

    fn report_error(&self, at_ns: u64, failure: &Failure) {
        self.shared.recorder.borrow_mut().error(self.index, failure.class);
        let _ = self.shared.messages.send(Message::Error {
            at_ns,
            client: self.spec.client,
            kind: self.spec.kind,
            failure: failure.clone(),
        });
    }

    pub(crate) fn count_reconnect(&mut self) {
        self.end.reconnects += 1;
    }

    fn report_lookups(&mut self) {
        let at_ns = self.shared.control.now_ns();
        for lookup in self.notes.lookups.drain(..) {
            let _ = self.shared.messages.send(Message::Lookup { at_ns, client: self.spec.client, lookup });
        }
    }
}

/// Closes the connection of a task that has ended. It does so at once, so that other connections
/// get its place in a pooler and its locks. The connection stays open only if the end of the window
/// must be sampled first. A server that runs one process for each connection loses the process, and
/// its counters, when the connection is closed.
async fn close<L: ConnectionTask>(control: Arc<Control>, task: Box<L>, stays_open: bool) {
    if stays_open {
        control.wait_to_close(KEPT_OPEN_MAX).await;
    }
    task.close().await;
}

pub(crate) fn describe(failure: &Failure) -> String {
    if failure.code.is_empty() {
        failure.message.clone()
    } else {
        format!("{} ({})", failure.message, failure.code)
    }
}

/// A burst that took less than this is followed by a sleep until a full second has passed. This is
/// the rule of the original Insert Benchmark client.
const BURST_IS_LATE: Duration = Duration::from_millis(950);
const BURST_PERIOD: Duration = Duration::from_secs(1);

/// How a wait for a scheduled time ended.
pub(crate) enum Waited {
    /// The operation is due at `scheduled_ns`. This is `None` when it is due when it is sent.
    Due {
        scheduled_ns: Option<u64>,
        was_early: bool,
    },
    Ended(Next),
}

impl RunningTask {
    /// Waits for the other task and for the scheduled time.
    async fn wait_until_due(&mut self, operation: Operation, start: Instant) -> Waited {
        let control = Arc::clone(&self.shared.control);
        if let Some((coupling, side)) = &self.spec.coupling
            && !coupling.may_send(*side, operation.number)
        {
            tokio::select! {
                biased;
                () = coupling.wait(*side, operation.number) => {}
                () = control.wait_for_stop() => return Waited::Ended(Next::GiveUp),
            }
        }
        let scheduled_ns = match operation.due {
            Due::Now => return Waited::Due { scheduled_ns: None, was_early: false },
            Due::At(scheduled_ns) => scheduled_ns,
            Due::WithBurst(per_second) => self.burst_due(operation.number, per_second, &control),
        };
        let due = start + Duration::from_nanos(scheduled_ns);
        let was_early = Instant::now() < due;
        match self.wait_until(due).await {
            Next::GoOn => Waited::Due { scheduled_ns: Some(scheduled_ns), was_early },
            next => Waited::Ended(next),
        }
    }

    /// Returns the scheduled time of a burst's statement, which is when its burst began. After a burst
    /// that was on time, the next one begins one second after the start of that burst. After a late
    /// burst, the next one begins at once.
    fn burst_due(&mut self, number: u64, per_second: u64, control: &Control) -> u64 {
        let now_ns = control.now_ns();
        // The checkpoints of the original Insert Benchmark client are after rounds 0, k, 2k and so
        // on, so the first burst is round 0 alone.
        if number > 0 && (number - 1).is_multiple_of(per_second.max(1)) {
            let took = Duration::from_nanos(now_ns.saturating_sub(self.burst_ns));
            self.burst_ns = if took < BURST_IS_LATE { self.burst_ns + to_ns(BURST_PERIOD) } else { now_ns };
        }
        self.burst_ns
    }

    /// Waits for the end of the schedule. A schedule of n operations ends when the next one would
    /// be due, not at its last answer. Otherwise the rate would be computed over one interval too
    /// few. A schedule with a time limit ends at that time.
    async fn wait_for_schedule_end(&self, start: Instant) -> Next {
        let schedule_end_ns = match (self.spec.limit, &self.due) {
            (Limit::Time(time), _) => to_ns(time),
            (Limit::Operations(limit), Some(scheduled_times)) => scheduled_times.scheduled_ns(limit),
            (Limit::Either(limit, time), Some(scheduled_times)) => {
                scheduled_times.scheduled_ns(limit).min(to_ns(time))
            }
            _ => return Next::Complete,
        };
        match self.wait_until(start + Duration::from_nanos(schedule_end_ns)).await {
            Next::GoOn => Next::Complete,
            next => next,
        }
    }

    /// Waits until `until`, or until the task has nothing to wait for any more.
    pub(crate) async fn wait_until(&self, until: Instant) -> Next {
        let control = &self.shared.control;
        if until <= Instant::now() {
            return if control.is_stopping() { Next::GiveUp } else { Next::GoOn };
        }
        tokio::select! {
            biased;
            waited = self.shared.timer.wait_until(until) => match waited {
                Ok(()) => Next::GoOn,
                Err(_) => Next::GiveUp,
            },
            next = self.ended_from_outside() => next,
        }
    }

    /// Waits until the step is stopped. A task that follows its client waits only until that client
    /// has ended.
    pub(crate) async fn ended_from_outside(&self) -> Next {
        let control = &self.shared.control;
        let follows = self.spec.limit == Limit::UntilClientEnds;
        tokio::select! {
            biased;
            () = control.wait_for_stop() => Next::GiveUp,
            () = control.wait_for_client_end(self.spec.client), if follows => {
                // This also runs when the step was stopped during the wait. A follower whose client
                // has ended is complete even then.
                if control.has_client_ended(self.spec.client) { Next::Complete } else { Next::GiveUp }
            }
        }
    }
}
