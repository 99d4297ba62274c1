//! The queue of a thread's due work. The earliest entry comes first, and a kernel timer wakes the
//! thread.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

/// The kernel wakes a thread some tens of microseconds late. The timer is therefore set earlier by
/// this time, and the thread spins for the rest.
const SPIN: Duration = Duration::from_micros(80);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) due: Instant,
    /// Distinguishes this entry from others with the same slot. Entries with the same time keep
    /// their order.
    pub(crate) ticket: u64,
    pub(crate) slot: usize,
}

/// Whether a thread may sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Something is due now, or so soon that a sleep would end too late.
    Spin,
    /// The thread may sleep until something happens. The timer is set.
    Sleep,
}

/// Entries by time, and the timer.
#[derive(Debug)]
pub(crate) struct TimerQueue {
    entries: BinaryHeap<Reverse<Entry>>,
    next_ticket: u64,
    timer: TimerFd,
    /// When the timer fires.
    armed: Option<Instant>,
}

impl TimerQueue {
    pub(crate) fn new() -> nix::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        Ok(Self { entries: BinaryHeap::new(), next_ticket: 0, timer, armed: None })
    }

    /// Puts an entry on the timer queue and returns the ticket that identifies it.
    pub(crate) fn put(&mut self, due: Instant, slot: usize) -> u64 {
        self.next_ticket += 1;
        self.entries.push(Reverse(Entry { due, ticket: self.next_ticket, slot }));
        self.next_ticket
    }

    /// The earliest entry, if it is due at `now`.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<Entry> {
        let Reverse(earliest) = self.entries.peek()?;
        if earliest.due > now {
            return None;
        }
        self.entries.pop().map(|Reverse(entry)| entry)
    }

    /// Whether there is time to sleep. If there is, the timer is set.
    pub(crate) fn wait(&mut self) -> Wait {
        let Some(Reverse(earliest)) = self.entries.peek() else { return Wait::Sleep };
        let now = Instant::now();
        let wake = earliest.due - SPIN;
        if wake <= now {
            return Wait::Spin;
        }
        // A timer that fires too early costs less than setting it again each time.
        if self.armed.is_some_and(|armed| armed > now && armed <= wake) {
            return Wait::Sleep;
        }
        let left = Expiration::OneShot(TimeSpec::from_duration(wake - now));
        if self.timer.set(left, TimerSetTimeFlags::empty()).is_err() {
            // Without a timer the thread can only spin.
            return Wait::Spin;
        }
        self.armed = Some(wake);
        Wait::Sleep
    }
}

impl AsFd for TimerQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_nothing_before_its_time() {
        let mut timer_queue = TimerQueue::new().expect("a timer");
        assert_eq!(timer_queue.wait(), Wait::Sleep);
        let now = Instant::now();
        let late = now + Duration::from_secs(50);
        timer_queue.put(late, 1);
        assert_eq!(timer_queue.wait(), Wait::Sleep);
        timer_queue.put(now, 2);
        timer_queue.put(now, 3);
        assert_eq!(timer_queue.wait(), Wait::Spin);
        let slots: Vec<usize> =
            std::iter::from_fn(|| timer_queue.take_due(now)).map(|entry| entry.slot).collect();
        assert_eq!(slots, [2, 3]);
        assert_eq!(timer_queue.take_due(late).map(|entry| entry.slot), Some(1));
        assert_eq!(timer_queue.take_due(late), None);
    }
}
