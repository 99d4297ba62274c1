//! Keeps two tasks of one client together that must not run apart, such as its inserts and its deletes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Notify;

use crate::notified::wait;

/// One of the two tasks. Its number is its place in the pairs of [`Coupling`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

/// Keeps two tasks within `most` operations of each other: operation n may be sent once the other task
/// has been answered n − `most` + 1 times. In the original a shared generator feeds two queues of 8
/// statements, so that one stream leads the other by at most 9. Here the same bound holds without
/// queues.
#[derive(Debug)]
pub struct Coupling {
    most: u64,
    answered: [AtomicU64; 2],
    ended: [AtomicBool; 2],
    changed: Notify,
}

impl Coupling {
    /// The longest lead that the original allows: 8 queued statements and 1 executing.
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
