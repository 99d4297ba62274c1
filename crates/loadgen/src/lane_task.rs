//! One lane between barrier and end: waits until an operation is due, sends it, writes down how it ended.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dbdyno_record::ErrorClass;

use crate::collector::Message;
use crate::control::{Control, StopReason};
use crate::recorder::Ending;
use crate::timer::Timer;
use crate::worker::Shared;
use crate::{Failure, Lane, LaneEnd, LaneSpec, Limit, Notes, Pace};

/// Due time of an operation that is due when it is sent.
const WHEN_SENT: u64 = u64::MAX;
/// How often one operation is sent again before it counts as failed.
const MOST_RETRIES: u32 = 1000;
/// After this many refusals in a row a lane is not going to succeed any more.
const MOST_REFUSALS: u32 = 100;
/// A burst that took less than this is followed by a sleep to a full second (the original's rule).
const BURST_IS_LATE: Duration = Duration::from_millis(950);
const BURST_PERIOD: Duration = Duration::from_secs(1);
/// Only the first failed numbers are kept: a step with more is beyond checking.
const MOST_FAILED_NUMBERS: usize = 10_000;

/// One lane between barrier and end.
pub(crate) struct LaneTask {
    shared: Rc<Shared>,
    index: usize,
    spec: LaneSpec,
    notes: Notes,
    started: u64,
    done: u64,
    rows: u64,
    retries: u64,
    failed_numbers: Vec<u64>,
    refusals: u32,
    /// Since when the current burst runs; only for [`Pace::Burst`].
    burst_ns: u64,
}

/// Whether a lane goes on.
enum Next {
    GoOn,
    GiveUp,
}

impl LaneTask {
    pub(crate) fn new(shared: Rc<Shared>, index: usize, spec: LaneSpec) -> Self {
        Self {
            shared,
            index,
            spec,
            notes: Notes::default(),
            started: 0,
            done: 0,
            rows: 0,
            retries: 0,
            failed_numbers: Vec::new(),
            refusals: 0,
            burst_ns: 0,
        }
    }

    pub(crate) async fn run<L: Lane>(mut self, mut lane: L) -> (LaneEnd, L) {
        let control = Arc::clone(&self.shared.control);
        let timer = Timer::new();
        let mut complete = false;
        match (timer, control.wait_for_start().await) {
            (Ok(timer), Some(start)) => {
                let _ = timer.wait_until(start).await;
                // Of an answer that is given up, the operation stays counted as in flight.
                let shared = Rc::clone(&self.shared);
                complete =
                    shared.abandon.unless(self.operate(&mut lane, &timer, start)).await.unwrap_or(false);
            }
            (Err(error), _) => control.stop(StopReason::Failed(format!(
                "cannot make a timer: {error}; raise the limit on open files (ulimit -n)"
            ))),
            (Ok(_), None) => {}
        }
        if let Some((coupling, side)) = &self.spec.coupling {
            coupling.end(*side);
        }
        let now_ns = self.shared.tick();
        self.shared.recorder.borrow_mut().ended(self.index, now_ns);
        control.lane_ended(self.spec.client, self.spec.role, now_ns, complete);
        let end = LaneEnd {
            client: self.spec.client,
            kind: self.spec.kind,
            started: self.started,
            done: self.done,
            rows: self.rows,
            retries: self.retries,
            failed_numbers: self.failed_numbers,
            complete,
        };
        let _ = self.shared.messages.send(Message::LaneEnded { at_ns: now_ns, end: end.clone() });
        (end, lane)
    }

    /// Sends operations until the lane's limit; `true` when it got there.
    async fn operate<L: Lane>(&mut self, lane: &mut L, timer: &Timer, start: Instant) -> bool {
        let control = Arc::clone(&self.shared.control);
        for number in 0.. {
            if control.is_stopping() {
                return false;
            }
            match self.spec.limit {
                Limit::Operations(limit) if number >= limit => break,
                Limit::UntilClientEnds if control.has_client_ended(self.spec.client) => break,
                _ => {}
            }
            if let Err(failure) = lane.prepare(number, &mut self.notes).await {
                self.report_error(self.shared.tick(), &failure);
                self.give_up(&failure);
                return false;
            }
            self.report_lookups();
            let Some(due_ns) = self.wait_until_due(number, timer, start).await else {
                // Stopped while waiting: a follower whose client has ended is complete all the same.
                return control.has_client_ended(self.spec.client)
                    && self.spec.limit == Limit::UntilClientEnds;
            };
            if matches!(self.send(lane, number, due_ns).await, Next::GiveUp) {
                return false;
            }
        }
        self.wait_for_horizon(timer, start).await
    }

    /// Waits for the other lane and for the due time, which it returns; `None` when the step or the lane's client ended meanwhile.
    async fn wait_until_due(&mut self, number: u64, timer: &Timer, start: Instant) -> Option<u64> {
        let control = Arc::clone(&self.shared.control);
        if let Some((coupling, side)) = &self.spec.coupling
            && !coupling.may_send(*side, number)
        {
            tokio::select! {
                biased;
                () = coupling.wait(*side, number) => {}
                () = control.wait_for_stop() => return None,
            }
        }
        let due = match self.spec.pace {
            Pace::Closed => return Some(WHEN_SENT),
            Pace::Constant { .. } => self.spec.pace.due(number).unwrap_or_default(),
            Pace::Burst { per_second } => self.burst_due(number, per_second, &control),
        };
        if !self.wait_until(timer, start + due).await {
            return None;
        }
        Some(u64::try_from(due.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Due time of a burst's statement: when its burst began. After a burst that was on time the next one begins a
    /// second after it, after a late one at once.
    fn burst_due(&mut self, number: u64, per_second: u64, control: &Control) -> Duration {
        let now_ns = control.now_ns();
        // The original's checkpoints lie behind rounds 0, k, 2k, ...: the first burst is the single round 0.
        if number > 0 && (number - 1).is_multiple_of(per_second.max(1)) {
            let took = Duration::from_nanos(now_ns.saturating_sub(self.burst_ns));
            let period = u64::try_from(BURST_PERIOD.as_nanos()).unwrap_or(u64::MAX);
            self.burst_ns = if took < BURST_IS_LATE { self.burst_ns + period } else { now_ns };
        }
        Duration::from_nanos(self.burst_ns)
    }

    /// A schedule of n operations ends when the next one would be due, not at its last answer: otherwise a rate would
    /// be taken over one interval too few.
    async fn wait_for_horizon(&self, timer: &Timer, start: Instant) -> bool {
        let Limit::Operations(limit) = self.spec.limit else { return true };
        let Some(horizon) = self.spec.pace.horizon(limit) else { return true };
        self.wait_until(timer, start + horizon).await
    }

    async fn wait_until(&self, timer: &Timer, until: Instant) -> bool {
        let control = &self.shared.control;
        if until <= Instant::now() {
            return !control.is_stopping();
        }
        let follows = self.spec.limit == Limit::UntilClientEnds;
        tokio::select! {
            biased;
            waited = timer.wait_until(until) => waited.is_ok(),
            () = control.wait_for_stop() => false,
            () = control.wait_for_client_end(self.spec.client), if follows => false,
        }
    }

    /// Sends one operation, again if the server says so, and writes down how it ended.
    async fn send<L: Lane>(&mut self, lane: &mut L, number: u64, due_ns: u64) -> Next {
        let sent_ns = self.shared.tick();
        self.shared.recorder.borrow_mut().started(self.index);
        self.started += 1;
        let due_ns = due_ns.min(sent_ns);
        for _ in 0..MOST_RETRIES {
            let answer = lane.perform(number).await;
            let ended_ns = self.shared.tick();
            match answer {
                Ok(done) => {
                    let ending = Ending {
                        due_ns,
                        sent_ns,
                        ended_ns,
                        rows: done.rows,
                        received_bytes: done.received_bytes,
                    };
                    self.shared.recorder.borrow_mut().done(self.index, ending);
                    self.done += 1;
                    self.rows += done.rows;
                    self.refusals = 0;
                    self.tell_other_lane();
                    return Next::GoOn;
                }
                Err(failure) => {
                    self.report_error(ended_ns, &failure);
                    self.retries += u64::from(failure.class == ErrorClass::Retry);
                    match failure.class {
                        ErrorClass::Retry if !self.shared.control.is_stopping() => {}
                        ErrorClass::Retry | ErrorClass::Refused => return self.refused(number, &failure),
                        ErrorClass::Lost | ErrorClass::Fatal => {
                            self.write_failed(number);
                            self.give_up(&failure);
                            return Next::GiveUp;
                        }
                    }
                }
            }
        }
        let failure = Failure {
            class: ErrorClass::Fatal,
            code: String::new(),
            message: format!(
                "operation {number} was refused {MOST_RETRIES} times with a request to try again"
            ),
        };
        self.write_failed(number);
        self.give_up(&failure);
        Next::GiveUp
    }

    fn refused(&mut self, number: u64, failure: &Failure) -> Next {
        self.write_failed(number);
        self.tell_other_lane();
        self.refusals += 1;
        if self.refusals < MOST_REFUSALS {
            return Next::GoOn;
        }
        self.give_up(failure);
        Next::GiveUp
    }

    fn write_failed(&mut self, number: u64) {
        self.shared.recorder.borrow_mut().failed(self.index);
        if self.failed_numbers.len() < MOST_FAILED_NUMBERS {
            self.failed_numbers.push(number);
        }
    }

    fn tell_other_lane(&self) {
        if let Some((coupling, side)) = &self.spec.coupling {
            coupling.answered(*side);
        }
    }

    fn give_up(&self, failure: &Failure) {
        self.shared.control.stop(StopReason::Failed(describe(failure)));
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

    fn report_lookups(&mut self) {
        if self.notes.lookups.is_empty() {
            return;
        }
        let at_ns = self.shared.control.now_ns();
        for lookup in self.notes.lookups.drain(..) {
            let _ = self.shared.messages.send(Message::Lookup { at_ns, client: self.spec.client, lookup });
        }
    }
}

pub(crate) fn describe(failure: &Failure) -> String {
    if failure.code.is_empty() {
        failure.message.clone()
    } else {
        format!("{} ({})", failure.message, failure.code)
    }
}
