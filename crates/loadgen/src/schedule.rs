//! One arrival stream for many connections. Whichever connection is free takes the next operation, from
//! an atomic counter.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::{ArrivalProcess, HostShare};

/// The open-loop arrivals of one client, from which its connections take operations in the order of
/// their numbers.
///
/// There is no queue that could overflow and no tick that could be skipped. The next number is one
/// atomic word, and its due time follows from it. All tasks of a schedule have the same client, kind
/// and limit. The limit is the schedule's: `Operations(n)` means n operations of the schedule, not of
/// each task.
#[derive(Debug)]
pub struct Schedule {
    arrival_process: ArrivalProcess,
    /// The number that is taken next.
    next: AtomicU64,
    max_backlog: Option<u64>,
    /// An arrival that has waited longer is given up.
    max_wait_ns: Option<u64>,
    /// Which numbers this host gives out.
    part: HostShare,
}

/// What a task has taken from a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) number: u64,
    /// Operations before it that were given up, because too many were waiting, or for too long.
    pub(crate) dropped: u64,
}

impl Schedule {
    /// Returns a schedule in which every arrival waits until a connection is free.
    pub fn new(arrival_process: ArrivalProcess) -> Self {
        Self {
            arrival_process,
            next: AtomicU64::new(0),
            max_backlog: None,
            max_wait_ns: None,
            part: HostShare::WHOLE,
        }
    }

    /// Returns a schedule in which at most `most` arrivals wait. A connection that becomes free gives
    /// up the oldest ones beyond that, and they count as dropped.
    pub fn with_max_backlog(arrival_process: ArrivalProcess, most: u64) -> Self {
        Self { max_backlog: Some(most), ..Self::new(arrival_process) }
    }

    /// Returns the same schedule, but a connection that becomes free gives up arrivals that have waited
    /// for longer than `limit`.
    #[must_use]
    pub fn with_max_wait(self, limit: Duration) -> Self {
        Self { max_wait_ns: Some(crate::arrival_process::to_ns(limit)), ..self }
    }

    /// Returns one host's part of a schedule from which nothing was taken: its share of the numbers and
    /// of the backlog.
    pub(crate) fn of_part(&self, part: HostShare) -> Self {
        let max_backlog = self.max_backlog.map(|most| part.among(most));
        Self { max_backlog, max_wait_ns: self.max_wait_ns, part, ..Self::new(self.arrival_process) }
    }

    pub fn arrival_process(&self) -> ArrivalProcess {
        self.arrival_process
    }

    /// Takes the next operation. `due` counts the operations that were due a given number of
    /// nanoseconds ago. It is called only when waiting has a limit.
    pub(crate) fn take(&self, mut due: impl FnMut(u64) -> u64) -> Taken {
        if self.max_backlog.is_none() && self.max_wait_ns.is_none() {
            let number = self.part.of_all(self.next.fetch_add(1, Ordering::Relaxed));
            return Taken { number, dropped: 0 };
        }
        let mut due = |earlier_ns| self.part.among(due(earlier_ns));
        // The operation that is taken waits no more, so as many as may wait are left besides it.
        let many = self.max_backlog.map_or(0, |most| due(0).saturating_sub(most.saturating_add(1)));
        let first = self.max_wait_ns.map_or(0, &mut due).max(many);
        let mut before = self.next.load(Ordering::Relaxed);
        loop {
            let number = before.max(first);
            match self.next.compare_exchange_weak(before, number + 1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Taken { number: self.part.of_all(number), dropped: number - before },
                Err(current) => before = current,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;

    use super::*;

    fn arrival_process() -> ArrivalProcess {
        ArrivalProcess::Constant { operations: 1000, per: Duration::from_secs(1), phase: Duration::ZERO }
    }

    /// Returns the numbers that 8 threads take, and how many were dropped.
    fn taken_by_threads(schedule: Schedule, due: fn(u64) -> u64) -> (Vec<u64>, u64) {
        let schedule = Arc::new(schedule);
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let schedule = Arc::clone(&schedule);
                std::thread::spawn(move || (0..5000).map(|n| schedule.take(|_| due(n))).collect::<Vec<_>>())
            })
            .collect();
        let taken: Vec<Taken> =
            threads.into_iter().flat_map(|thread| thread.join().expect("a thread ends")).collect();
        (taken.iter().map(|taken| taken.number).collect(), taken.iter().map(|taken| taken.dropped).sum())
    }

    #[test]
    fn no_number_is_skipped_or_given_out_twice() {
        let (mut numbers, dropped) = taken_by_threads(Schedule::new(arrival_process()), |_| u64::MAX);
        numbers.sort_unstable();
        assert_eq!((numbers, dropped), ((0..40_000).collect(), 0));
    }

    #[test]
    fn what_is_dropped_and_what_is_taken_are_all_there_is() {
        let schedule = Schedule::with_max_backlog(arrival_process(), 5);
        let (numbers, dropped) = taken_by_threads(schedule, |n| n * 20);
        let different: HashSet<_> = numbers.iter().collect();
        assert_eq!(different.len(), numbers.len());
        let greatest = numbers.iter().max().expect("some were taken");
        assert_eq!(dropped + numbers.len() as u64, greatest + 1);
        assert!(dropped > 0);
    }

    #[test]
    fn the_oldest_beyond_the_greatest_backlog_are_given_up() {
        let schedule = Schedule::with_max_backlog(arrival_process(), 5);
        assert_eq!(schedule.take(|_| 6), Taken { number: 0, dropped: 0 });
        assert_eq!(schedule.take(|_| 100), Taken { number: 94, dropped: 93 });
        assert_eq!(schedule.take(|_| 100), Taken { number: 95, dropped: 0 });
    }

    #[test]
    fn what_has_waited_too_long_is_given_up() {
        let schedule = Schedule::new(arrival_process()).with_max_wait(Duration::from_millis(10));
        let due_at = |now_ms: u64| move |earlier_ns: u64| now_ms.saturating_sub(earlier_ns / 1_000_000);
        assert_eq!(schedule.take(due_at(5)), Taken { number: 0, dropped: 0 });
        assert_eq!(schedule.take(due_at(50)), Taken { number: 40, dropped: 39 });
        assert_eq!(schedule.take(due_at(50)), Taken { number: 41, dropped: 0 });
    }
}
