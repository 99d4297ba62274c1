//! The due times of a load thread's open loops, in order. Tasks of the same schedule on this thread
//! share one walk through its due times.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use crate::arrival_process::Cursor;
use crate::task::Bounds;
use crate::{Arrivals, Schedule};

/// Due times of one task, or of all tasks of one schedule on this thread. Each operation's due time is
/// asked for when the operation is taken, so that the numbers asked for only increase.
#[derive(Debug, Clone)]
pub(crate) struct DueTimes {
    next: Rc<RefCell<Cursor>>,
    arrived: Rc<RefCell<Cursor>>,
}

impl DueTimes {
    /// Returns the due time of operation `number` in nanoseconds from the barrier.
    pub(crate) fn due_ns(&self, number: u64) -> u64 {
        self.next.borrow_mut().due_ns(number)
    }

    /// Returns how many operations within `bounds` are due before `now_ns`.
    pub(crate) fn due_before(&self, bounds: Bounds, now_ns: u64) -> u64 {
        bounds.due_before(&mut self.arrived.borrow_mut(), now_ns)
    }
}

/// The due times of one thread's schedules.
#[derive(Debug, Default)]
pub(crate) struct ThreadDueTimes {
    shared: Vec<(Arc<Schedule>, DueTimes)>,
}

impl ThreadDueTimes {
    /// Returns the due times of a task of `arrivals`, or `None` when it has no schedule.
    pub(crate) fn of(&mut self, arrivals: &Arrivals) -> Option<DueTimes> {
        let cursor = Cursor::new(arrivals.process()?);
        let due_times =
            DueTimes { next: Rc::new(RefCell::new(cursor.clone())), arrived: Rc::new(RefCell::new(cursor)) };
        let Arrivals::Shared(schedule) = arrivals else { return Some(due_times) };
        if let Some((_, known)) = self.shared.iter().find(|(known, _)| Arc::ptr_eq(known, schedule)) {
            return Some(known.clone());
        }
        self.shared.push((Arc::clone(schedule), due_times.clone()));
        Some(due_times)
    }
}
