//! Defines one connection's part in a step: the trait that a workload implements, and the results
//! that it reports to the engine. A [`Coupling`] limits how far one task of a client may run ahead
//! of another one, such as its inserts ahead of its deletes.

use std::borrow::Cow;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use dbdyno_record::ErrorClass;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::arrivals::Cursor;
use crate::control::wait;
use crate::{Arrivals, StatementDone};

/// A workload's work on one connection. A task need not be `Send`, because it is built on the load
/// thread that runs it.
pub trait ConnectionTask {
    /// Connects and prepares statements. This happens before the barrier, so it is not timed. It is
    /// called again after the connection was lost. The call then first drops what is left of the
    /// lost connection.
    fn open(&mut self) -> impl Future<Output = Result<(), Failure>>;

    /// Makes operation `number` ready: it draws parameters, builds the text and makes look-ups.
    /// None of this is part of the service time. In an open loop it runs ahead of the scheduled
    /// time.
    fn prepare(&mut self, _number: u64, _notes: &mut Notes) -> impl Future<Output = Result<(), Failure>> {
        async { Ok(()) }
    }

    /// Sends operation `number` and waits for its whole answer. A retry calls it again with the
    /// same number.
    fn perform(&mut self, number: u64) -> impl Future<Output = Result<Done, Failure>>;

    /// Tells when the operation of the last call of [`ConnectionTask::perform`] was due, sent and
    /// answered. It is called after each such call.
    fn timed(&mut self, _times: OperationTimes) {}

    /// Tells that operations of the task's schedule were late and will never be sent. The range's
    /// length is the number of skipped operations, and its end is the operation that the task takes
    /// from the schedule next. Where several hosts share the schedule, the length and the end are
    /// still exact, but the skipped operations may have numbers outside the range.
    fn skipped(&mut self, _numbers: Range<u64>) {}

    /// Returns the statements that were answered in the last call of [`ConnectionTask::perform`],
    /// also when that call failed. The slice is empty where the task does not distinguish
    /// statements.
    fn statements(&self) -> &[StatementDone] {
        &[]
    }

    /// Returns whether the task wants no more operations after the one that was answered last.
    fn has_ended(&self) -> bool {
        false
    }

    /// Closes the connection. This happens after the task's last operation, and no clock counts it.
    fn close(self) -> impl Future<Output = ()>;
}

/// The three moments of one call, in nanoseconds from the barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationTimes {
    /// The time when the operation was due, or when it was sent if that was earlier. In a closed
    /// loop it is always the time when the operation was sent.
    pub scheduled_ns: u64,
    /// The time when the operation was sent first, before any retry.
    pub sent_ns: u64,
    pub ended_ns: u64,
}

/// The result of an answered operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    /// Rows inserted, deleted, fetched or indexed.
    pub rows: u64,
    pub received_bytes: u64,
}

/// Why an operation or a connection failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub class: ErrorClass,
    pub code: String,
    pub message: String,
}

impl Failure {
    pub fn new(class: ErrorClass, code: &str, message: impl Into<String>) -> Self {
        Self { class, code: code.to_owned(), message: message.into() }
    }
}

/// A server query that belongs to the workload but to no operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lookup {
    pub name: Cow<'static, str>,
    pub duration: Duration,
    pub value: Option<i64>,
}

/// Notes from [`ConnectionTask::prepare`] that are recorded with the operation.
#[derive(Debug, Default)]
pub struct Notes {
    pub(crate) lookups: Vec<Lookup>,
}

impl Notes {
    pub fn lookup(&mut self, name: &'static str, duration: Duration, value: Option<i64>) {
        self.lookups.push(Lookup { name: Cow::Borrowed(name), duration, value });
    }
}

/// The description of a task for the engine.
#[derive(Debug, Clone)]
pub struct TaskSpec {
    /// Client number, from 1.
    pub client: u32,
    /// Which of the step's kinds of operations the task sends, as an index into their list.
    pub kind: usize,
    pub arrivals: Arrivals,
    pub limit: Limit,
    pub role: Role,
    /// Keeps this task within a bounded distance of another one.
    pub coupling: Option<(Arc<Coupling>, Side)>,
}

/// The condition under which a task is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The task ends after this many operations. Tasks of a shared schedule end when all of them
    /// together have done this many.
    Operations(u64),
    /// The task sends operations until this time after the barrier, and waits for the answers that
    /// are then on their way. If the end of this task also ends the common window (the time over
    /// which the step's rates are computed), the window ends at exactly this time.
    Time(Duration),
    /// The task ends after this many operations, but at this time after the barrier at the latest.
    Either(u64, Duration),
    /// The task goes on until a deciding task of the same client has ended.
    UntilClientEnds,
}

/// Where the operations of an open loop end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// All operation numbers are below this.
    operations: u64,
    /// All operations are due before this time.
    pub(crate) until_ns: u64,
}

impl TaskSpec {
    /// Returns a task that sends the step's first kind of operations. It decides how long the step
    /// lasts, and no other task holds it back.
    pub fn new(client: u32, arrivals: Arrivals, limit: Limit) -> Self {
        Self { client, kind: 0, arrivals, limit, role: Role::Decides, coupling: None }
    }

    /// Returns a connection that is a client of its own and sends this many operations, one after
    /// the other.
    pub fn in_turn(client: u32, operations: u64) -> Self {
        Self::new(client, Arrivals::Closed, Limit::Operations(operations))
    }

    pub(crate) fn bounds(&self) -> Bounds {
        let unbounded = Bounds { operations: u64::MAX, until_ns: u64::MAX };
        match self.limit {
            Limit::Operations(operations) => Bounds { operations, ..unbounded },
            Limit::Time(time) => Bounds { until_ns: crate::arrivals::to_ns(time), ..unbounded },
            Limit::Either(operations, time) => Bounds { operations, until_ns: crate::arrivals::to_ns(time) },
            Limit::UntilClientEnds => unbounded,
        }
    }
}

impl Bounds {
    /// Returns how many operations within the bounds are due before `at_ns`.
    pub(crate) fn due_before(&self, due: &mut Cursor, at_ns: u64) -> u64 {
        due.due_before(at_ns.min(self.until_ns), self.operations)
    }

    /// Returns whether operation `number`, due at `scheduled_ns`, lies within the bounds.
    pub(crate) fn hold(&self, number: u64, scheduled_ns: u64) -> bool {
        number < self.operations && scheduled_ns < self.until_ns
    }
}

/// Whether a task decides how long a step lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The end of this task ends those tasks of the same client that have
    /// [`Limit::UntilClientEnds`]. It may also end the common window.
    Decides,
    Follows,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEnd {
    pub client: u32,
    pub kind: usize,
    /// Operations that were sent, whether or not they were answered. Their numbers are
    /// `0..started`, except in shared schedules.
    pub started: u64,
    pub done: u64,
    pub rows: u64,
    /// Attempts that the server asked to try again.
    pub retries: u64,
    /// Numbers of the operations that failed, in order. If there are very many, only the first ones
    /// are kept.
    pub failed_numbers: Vec<u64>,
    /// Those failed operations whose outcome is unknown, because the connection was lost while they
    /// were on their way.
    pub unknown_numbers: Vec<u64>,
    /// How often the task lost its connection and opened it again.
    pub reconnects: u64,
    /// Whether all operations of its limit were sent, or its client's deciding task ended it.
    pub complete: bool,
    /// Whether the task waited for an answer when the step was stopped, and did not get it in the
    /// grace time that followed.
    pub unanswered: bool,
}

impl TaskEnd {
    /// Returns whether the task sent one operation that was never answered, not even with an error.
    pub(crate) fn is_unheard(&self) -> bool {
        self.done == 0 && self.retries == 0 && self.failed_numbers.is_empty() && self.started == 1
    }

    /// Returns how many operations failed beyond those in [`TaskEnd::failed_numbers`]. Their
    /// numbers are unknown. The figure holds only for a step that completed.
    pub fn unlisted(&self) -> u64 {
        (self.started - self.done).saturating_sub(self.failed_numbers.len() as u64)
    }
}

/// One of the two tasks of a [`Coupling`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

/// Keeps two tasks within `most` operations of each other: operation n may be sent once the other
/// task has been answered n − `most` + 1 times. In the original Insert Benchmark client a shared
/// generator feeds two queues of 8 statements, so that one stream leads the other by at most 9. The
/// same bound holds in dbdyno without queues.
#[derive(Debug)]
pub struct Coupling {
    most: u64,
    answered: [AtomicU64; 2],
    ended: [AtomicBool; 2],
    changed: Notify,
}

impl Coupling {
    /// The longest lead that the original Insert Benchmark client allows: 8 queued statements and 1
    /// executing.
    pub const ORIGINAL_LEAD: u64 = 9;

    /// Returns a coupling of two tasks that may lead each other by at most `most` operations.
    pub fn new(most: u64) -> Self {
        Self { most, answered: Default::default(), ended: Default::default(), changed: Notify::new() }
    }

    /// Waits until operation `number` of `side` may be sent.
    pub(crate) async fn wait(&self, side: Side, number: u64) {
        wait(&self.changed, || self.may_send(side, number)).await;
    }

    pub(crate) fn answered(&self, side: Side) {
        self.answered[side as usize].fetch_add(1, Ordering::AcqRel);
        self.changed.notify_waiters();
    }

    /// Notes that `side` will send nothing more, which frees the other one.
    pub(crate) fn end(&self, side: Side) {
        self.ended[side as usize].store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    /// Returns whether operation `number` of `side` may be sent now.
    pub(crate) fn may_send(&self, side: Side, number: u64) -> bool {
        let other = 1 - side as usize;
        self.ended[other].load(Ordering::Acquire)
            || number < self.answered[other].load(Ordering::Acquire) + self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_may_lead_by_exactly_the_bound() {
        let coupling = Coupling::new(9);
        assert!(coupling.may_send(Side::Left, 8));
        assert!(!coupling.may_send(Side::Left, 9));
        coupling.answered(Side::Right);
        assert!(coupling.may_send(Side::Left, 9));
        assert!(!coupling.may_send(Side::Left, 10));
    }

    #[test]
    fn the_end_of_one_connection_frees_the_other() {
        let coupling = Coupling::new(2);
        assert!(!coupling.may_send(Side::Right, 5));
        coupling.end(Side::Left);
        assert!(coupling.may_send(Side::Right, 5));
    }
}
