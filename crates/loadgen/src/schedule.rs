//! Shares one stream of arrivals among many connections. Whichever connection is free takes the
//! number of the next operation from an atomic counter. Only the counts of all threads together
//! show which operations were due and not sent, so a shared schedule has its own accounting. A load
//! thread's tasks of the same schedule share one walk through its scheduled times.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dbdyno_record::Interval;

use crate::arrivals::Cursor;
use crate::task::Bounds;
use crate::{ArrivalProcess, Arrivals, Error, HostShare, TaskSpec};

/// The open-loop arrivals of one client, from which its connections take operations in the order of
/// their numbers.
///
/// There is no queue that could overflow and no tick that could be skipped. The next number is one
/// atomic word, and an operation's scheduled time follows from its number. All tasks of a schedule have
/// the same client, kind and limit. The limit is the schedule's: `Operations(n)` means n operations
/// of the schedule, not of each task.
#[derive(Debug)]
pub struct Schedule {
    arrival_process: ArrivalProcess,
    /// The number that is taken next.
    next: AtomicU64,
    max_backlog: Option<u64>,
    /// Arrivals that have waited longer are given up.
    max_wait_ns: Option<u64>,
    /// Which numbers this host gives out.
    part: HostShare,
}

/// An operation that a task has taken from a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) number: u64,
    /// Number of earlier operations that were given up, because too many were waiting or they had
    /// waited too long.
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
        Self { max_wait_ns: Some(crate::arrivals::to_ns(limit)), ..self }
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

    /// Takes the next operation. `due` returns how many operations were due a given number of
    /// nanoseconds ago. It is called only when the schedule limits its backlog or its waiting time.
    pub(crate) fn take(&self, mut due: impl FnMut(u64) -> u64) -> Taken {
        if self.max_backlog.is_none() && self.max_wait_ns.is_none() {
            let number = self.part.of_all(self.next.fetch_add(1, Ordering::Relaxed));
            return Taken { number, dropped: 0 };
        }
        let mut due = |earlier_ns| self.part.among(due(earlier_ns));
        // The operation that is taken does not wait any more, so `most` others may be left waiting.
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

/// The client and the kind of operation that an interval belongs to.
type IntervalKey = (u32, usize);

/// Counts the operations that became due in one schedule, over all of its connections. The threads
/// count only the operations that they sent.
#[derive(Debug)]
pub(crate) struct ScheduleAccounting {
    due: Cursor,
    bounds: Bounds,
    due_reported: u64,
    /// Operations that were sent or dropped.
    taken: u64,
}

/// Returns the accounting of each shared schedule. It fails when tasks of one client and kind have
/// different schedules or limits, or when several clients or kinds share a schedule.
pub(crate) fn accounting<'a>(
    tasks: impl Iterator<Item = &'a TaskSpec>,
) -> Result<BTreeMap<IntervalKey, ScheduleAccounting>, Error> {
    let mut schedule_of: BTreeMap<IntervalKey, (Option<&Arc<Schedule>>, Bounds)> = BTreeMap::new();
    for task in tasks {
        let schedule = match &task.arrivals {
            Arrivals::Shared(schedule) => Some(schedule),
            _ => None,
        };
        let (known, bounds) =
            *schedule_of.entry((task.client, task.kind)).or_insert((schedule, task.bounds()));
        let is_same = match (known, schedule) {
            (Some(known), Some(schedule)) => Arc::ptr_eq(known, schedule) && bounds == task.bounds(),
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            return Err(Error::MixedSchedules { client: task.client });
        }
    }
    let shared: Vec<_> = schedule_of
        .into_iter()
        .filter_map(|(key, (schedule, bounds))| Some((key, schedule?, bounds)))
        .collect();
    for (index, (key, schedule, _)) in shared.iter().enumerate() {
        if shared[..index].iter().any(|(_, other, _)| Arc::ptr_eq(schedule, other)) {
            return Err(Error::MixedSchedules { client: key.0 });
        }
    }
    let accounting = |schedule: &Schedule, bounds| ScheduleAccounting {
        due: Cursor::new(schedule.arrival_process()),
        bounds,
        due_reported: 0,
        taken: 0,
    };
    Ok(shared.into_iter().map(|(key, schedule, bounds)| (key, accounting(schedule, bounds))).collect())
}

impl ScheduleAccounting {
    /// Completes the joint counts of the threads between two cuts, the later of which is at
    /// `to_ns`. After the `last` cut nothing is sent any more, so the operations that are due at
    /// that cut are dropped.
    pub(crate) fn complete(&mut self, interval: &mut Interval, to_ns: u64, last: bool) {
        self.taken += interval.due;
        // An operation may be sent within the nanosecond in which it became due, which is not yet
        // "before" the cut.
        let due_total = self.bounds.due_before(&mut self.due, to_ns).max(self.taken).max(self.due_reported);
        let waiting = due_total - self.taken;
        if last {
            interval.dropped += waiting;
            self.taken += waiting;
        } else {
            interval.backlog = waiting;
        }
        interval.due = due_total - self.due_reported;
        self.due_reported = due_total;
    }
}

/// Scheduled times of one task, or of all tasks of one schedule on this thread. A scheduled time is looked up
/// when its operation is taken, so the numbers that are looked up only increase.
#[derive(Debug, Clone)]
pub(crate) struct ScheduledTimes {
    next: Rc<RefCell<Cursor>>,
    arrived: Rc<RefCell<Cursor>>,
}

impl ScheduledTimes {
    /// Returns the scheduled time of operation `number` in nanoseconds from the barrier.
    pub(crate) fn scheduled_ns(&self, number: u64) -> u64 {
        self.next.borrow_mut().scheduled_ns(number)
    }

    /// Returns how many operations within `bounds` are due before `now_ns`.
    pub(crate) fn due_before(&self, bounds: Bounds, now_ns: u64) -> u64 {
        bounds.due_before(&mut self.arrived.borrow_mut(), now_ns)
    }
}

/// The scheduled times of one thread's schedules.
#[derive(Debug, Default)]
pub(crate) struct ThreadSchedules {
    shared: Vec<(Arc<Schedule>, ScheduledTimes)>,
}

impl ThreadSchedules {
    /// Returns the scheduled times of a task with these arrivals, or `None` when the task has no
    /// schedule.
    pub(crate) fn of(&mut self, arrivals: &Arrivals) -> Option<ScheduledTimes> {
        let cursor = Cursor::new(arrivals.process()?);
        let scheduled_times = ScheduledTimes {
            next: Rc::new(RefCell::new(cursor.clone())),
            arrived: Rc::new(RefCell::new(cursor)),
        };
        let Arrivals::Shared(schedule) = arrivals else { return Some(scheduled_times) };
        if let Some((_, known)) = self.shared.iter().find(|(known, _)| Arc::ptr_eq(known, schedule)) {
            return Some(known.clone());
        }
        self.shared.push((Arc::clone(schedule), scheduled_times.clone()));
        Some(scheduled_times)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::{ArrivalProcess, Limit, Role};

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
    fn every_number_is_either_taken_or_dropped() {
        let schedule = Schedule::with_max_backlog(arrival_process(), 5);
        let (numbers, dropped) = taken_by_threads(schedule, |n| n * 20);
        let different: HashSet<_> = numbers.iter().collect();
        assert_eq!(different.len(), numbers.len());
        let highest = numbers.iter().max().expect("some were taken");
        assert_eq!(dropped + numbers.len() as u64, highest + 1);
        assert!(dropped > 0);
    }

    #[test]
    fn the_oldest_arrivals_beyond_the_highest_backlog_are_given_up() {
        let schedule = Schedule::with_max_backlog(arrival_process(), 5);
        assert_eq!(schedule.take(|_| 6), Taken { number: 0, dropped: 0 });
        assert_eq!(schedule.take(|_| 100), Taken { number: 94, dropped: 93 });
        assert_eq!(schedule.take(|_| 100), Taken { number: 95, dropped: 0 });
    }

    #[test]
    fn arrivals_that_have_waited_too_long_are_given_up() {
        let schedule = Schedule::new(arrival_process()).with_max_wait(Duration::from_millis(10));
        let due_at = |now_ms: u64| move |earlier_ns: u64| now_ms.saturating_sub(earlier_ns / 1_000_000);
        assert_eq!(schedule.take(due_at(5)), Taken { number: 0, dropped: 0 });
        assert_eq!(schedule.take(due_at(50)), Taken { number: 40, dropped: 39 });
        assert_eq!(schedule.take(due_at(50)), Taken { number: 41, dropped: 0 });
    }

    fn schedule() -> Arc<Schedule> {
        let per = Duration::from_secs(1);
        Arc::new(Schedule::new(ArrivalProcess::Constant { operations: 10, per, phase: Duration::ZERO }))
    }

    fn task(client: u32, kind: usize, arrivals: Arrivals) -> TaskSpec {
        TaskSpec { client, kind, arrivals, limit: Limit::Operations(25), role: Role::Decides, coupling: None }
    }

    #[test]
    fn waiting_arrivals_are_backlog_and_are_dropped_at_the_end() {
        let task = task(1, 0, Arrivals::Shared(schedule()));
        let mut schedules = accounting([&task].into_iter()).expect("one task mixes nothing");
        let schedule = schedules.get_mut(&(1, 0)).expect("an accounting of the schedule");
        let mut account = |second: u64, taken, last| {
            let mut interval = Interval { due: taken, done: taken, ..Interval::default() };
            schedule.complete(&mut interval, second * 1_000_000_000, last);
            (interval.due, interval.backlog, interval.dropped)
        };
        assert_eq!(account(1, 4, false), (10, 6, 0));
        assert_eq!(account(2, 16, false), (10, 0, 0));
        // The limit is 25 operations, so only 5 more become due.
        assert_eq!(account(3, 2, false), (5, 3, 0));
        assert_eq!(account(4, 1, true), (0, 0, 2));
    }

    #[test]
    fn connections_that_mix_schedules_are_refused() {
        let (one, two) = (Arrivals::Shared(schedule()), Arrivals::Shared(schedule()));
        let mixes = |tasks: [TaskSpec; 2]| accounting(tasks.iter()).is_err();
        assert!(!mixes([task(1, 0, one.clone()), task(1, 0, one.clone())]));
        assert!(!mixes([task(1, 0, one.clone()), task(2, 0, two.clone())]));
        assert!(mixes([task(1, 0, one.clone()), task(1, 0, two)]));
        assert!(mixes([task(1, 0, one.clone()), task(1, 0, Arrivals::Closed)]));
        assert!(mixes([task(1, 0, one.clone()), task(2, 0, one.clone())]));
        assert!(mixes([task(1, 0, one.clone()), task(1, 1, one.clone())]));
        let longer = TaskSpec { limit: Limit::Operations(26), ..task(1, 0, one.clone()) };
        assert!(mixes([task(1, 0, one), longer]));
    }
}
