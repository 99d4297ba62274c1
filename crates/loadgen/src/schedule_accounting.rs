//! Accounts for the operations of a shared schedule. Only all threads together know what was due and
//! not sent.

use std::collections::BTreeMap;
use std::sync::Arc;

use dbdyno_record::Interval;

use crate::arrival_process::Cursor;
use crate::task::Bounds;
use crate::{Arrivals, Error, Schedule, TaskSpec};

/// Client and kind.
type Key = (u32, usize);

/// What became due over all connections of one schedule. The threads only count what they sent.
#[derive(Debug)]
pub(crate) struct ScheduleAccounting {
    due: Cursor,
    bounds: Bounds,
    due_reported: u64,
    /// Operations that were sent or dropped.
    taken: u64,
}

pub(crate) fn accounting<'a>(
    tasks: impl Iterator<Item = &'a TaskSpec>,
) -> Result<BTreeMap<Key, ScheduleAccounting>, Error> {
    let mut schedule_of: BTreeMap<Key, (Option<&Arc<Schedule>>, Bounds)> = BTreeMap::new();
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
    /// Completes what the threads counted together between two cuts, the later one at `to_ns`. After
    /// the `last` cut nothing is sent any more, so what is then due is dropped.
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{ArrivalProcess, Limit, Role};

    fn schedule() -> Arc<Schedule> {
        let per = Duration::from_secs(1);
        Arc::new(Schedule::new(ArrivalProcess::Constant { operations: 10, per, phase: Duration::ZERO }))
    }

    fn task(client: u32, kind: usize, arrivals: Arrivals) -> TaskSpec {
        TaskSpec { client, kind, arrivals, limit: Limit::Operations(25), role: Role::Decides, coupling: None }
    }

    #[test]
    fn what_waits_is_backlog_and_at_the_end_dropped() {
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
