//! What a task waits for: the due time of its operation, the task that it is coupled to, and its own
//! end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Due, Next, Operation, RunningTask};
use crate::Limit;
use crate::arrival_process::to_ns;
use crate::control::Control;

/// A burst that took less than this is followed by a sleep to a full second (the original's rule).
const BURST_IS_LATE: Duration = Duration::from_millis(950);
const BURST_PERIOD: Duration = Duration::from_secs(1);
/// How a wait for a due time ended.
pub(crate) enum Waited {
    /// The operation is due at `due_ns`. This is `None` when it is due when it is sent.
    Due {
        due_ns: Option<u64>,
        was_early: bool,
    },
    Ended(Next),
}

impl RunningTask {
    /// Waits for the other task and for the due time.
    pub(crate) async fn wait_until_due(&mut self, operation: Operation, start: Instant) -> Waited {
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
        let due_ns = match operation.due {
            Due::Now => return Waited::Due { due_ns: None, was_early: false },
            Due::At(due_ns) => due_ns,
            Due::WithBurst(per_second) => self.burst_due(operation.number, per_second, &control),
        };
        let due = start + Duration::from_nanos(due_ns);
        let was_early = Instant::now() < due;
        match self.wait_until(due).await {
            Next::GoOn => Waited::Due { due_ns: Some(due_ns), was_early },
            next => Waited::Ended(next),
        }
    }

    /// Returns the due time of a burst's statement, which is when its burst began. After a burst that
    /// was on time, the next one begins one second after the start of that burst. After a late burst,
    /// the next one begins at once.
    fn burst_due(&mut self, number: u64, per_second: u64, control: &Control) -> u64 {
        let now_ns = control.now_ns();
        // The original's checkpoints lie after rounds 0, k, 2k, ...: the first burst is the single
        // round 0.
        if number > 0 && (number - 1).is_multiple_of(per_second.max(1)) {
            let took = Duration::from_nanos(now_ns.saturating_sub(self.burst_ns));
            self.burst_ns = if took < BURST_IS_LATE { self.burst_ns + to_ns(BURST_PERIOD) } else { now_ns };
        }
        self.burst_ns
    }

    /// Waits for the end of the schedule. A schedule of n operations ends when the next one would be
    /// due, not at its last answer. Otherwise the rate would be computed over one interval too few. A
    /// limit in time ends with that time.
    pub(crate) async fn wait_for_horizon(&self, start: Instant) -> Next {
        let horizon_ns = match (self.spec.limit, &self.due) {
            (Limit::Time(time), _) => to_ns(time),
            (Limit::Operations(limit), Some(due_times)) => due_times.due_ns(limit),
            (Limit::Either(limit, time), Some(due_times)) => due_times.due_ns(limit).min(to_ns(time)),
            _ => return Next::Complete,
        };
        match self.wait_until(start + Duration::from_nanos(horizon_ns)).await {
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

    /// Waits until the step is stopped. A task that follows its client waits only until that client has
    /// ended.
    pub(crate) async fn ended_from_outside(&self) -> Next {
        let control = &self.shared.control;
        let follows = self.spec.limit == Limit::UntilClientEnds;
        tokio::select! {
            biased;
            () = control.wait_for_stop() => Next::GiveUp,
            () = control.wait_for_client_end(self.spec.client), if follows => {
                // This also runs when the step was stopped during the wait. A follower whose client has
                // ended is complete all the same.
                if control.has_client_ended(self.spec.client) { Next::Complete } else { Next::GiveUp }
            }
        }
    }
}
