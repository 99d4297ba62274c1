//! Counts the operations of one load thread between two cuts, and records their times in
//! histograms. Cuts are at exact times, even when the thread is busy at such a time.

use std::collections::BTreeMap;

use dbdyno_record::{ErrorClass, ErrorCounts, Interval, WindowCut};

use crate::arrivals::{Cursor, to_us};
use crate::batch::{Batch, Times};
use crate::statements::Statements;
use crate::task::Bounds;
use crate::{StatementDone, TaskSpec};

const SECOND_NS: u64 = 1_000_000_000;

/// The counters of all tasks of one client and kind on this thread.
#[derive(Debug, Default)]
struct CounterSet {
    client: u32,
    kind: usize,
    /// Operations sent or dropped since the barrier.
    taken: u64,
    /// Operations that were due up to the last cut.
    due_reported: u64,
    in_flight: u64,
    /// Connections that are lost now.
    down: u64,
    current: Counts,
}

/// The state of one task. Its counters are in its [`CounterSet`].
#[derive(Debug)]
struct TaskState {
    counter_set: usize,
    /// Operations sent since the barrier.
    started: u64,
    /// Whether one of the task's operations was answered or ended with an error.
    is_answered: bool,
    /// The task's own open loop, or `None` for closed loops and shared schedules.
    due: Option<(Cursor, Bounds)>,
    ended: bool,
    /// When the connection was lost, or the last cut if that was later.
    down_since_ns: Option<u64>,
}

#[derive(Debug, Default)]
struct Counts {
    done: u64,
    failed: u64,
    dropped: u64,
    rows: u64,
    received_bytes: u64,
    service_sum_ns: u64,
    service_max_ns: u64,
    response_sum_ns: u64,
    response_max_ns: u64,
    cycle_sum_ns: u64,
    cut: WindowCut,
    down_ns: u64,
    errors: ErrorCounts,
}

/// The times and results of an operation that was answered without an error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ending {
    /// When the operation's cycle began, see [`Interval::cycle_sum_us`].
    pub(crate) began_ns: u64,
    pub(crate) scheduled_ns: u64,
    pub(crate) sent_ns: u64,
    pub(crate) ended_ns: u64,
    pub(crate) rows: u64,
    pub(crate) received_bytes: u64,
}

pub(crate) struct Recorder {
    counter_sets: Vec<CounterSet>,
    tasks: Vec<TaskState>,
    /// Times by kind index.
    times: Vec<Times>,
    statements: Statements,
    kinds: Vec<String>,
    cut_ns: u64,
    /// Where the common window begins, and where it ends once that is known.
    window_ns: (u64, u64),
    hand_over: Box<dyn FnMut(Batch)>,
}

impl Recorder {
    /// Returns a recorder for `tasks` that gives its batches to `hand_over`. The common window begins
    /// at `window_from_ns`, a whole second.
    pub(crate) fn new(
        kinds: Vec<String>,
        tasks: &[TaskSpec],
        window_from_ns: u64,
        hand_over: Box<dyn FnMut(Batch)>,
    ) -> Self {
        let mut counter_sets = Vec::new();
        let mut counter_set_of = BTreeMap::new();
        let states = tasks.iter().map(|spec| {
            let counter_set = *counter_set_of.entry((spec.client, spec.kind)).or_insert_with(|| {
                counter_sets.push(CounterSet::new(spec));
                counter_sets.len() - 1
            });
            TaskState::new(counter_set, spec)
        });
        let tasks = states.collect();
        let times = kinds.iter().map(|_| Times::new()).collect();
        let (statements, window_ns) = (Statements::default(), (window_from_ns, u64::MAX));
        Self { counter_sets, tasks, times, statements, kinds, cut_ns: 0, window_ns, hand_over }
    }

    /// Makes every cut that is due at or before `now_ns`. It must be called before anything that
    /// happened at `now_ns` is recorded, because the state at a cut is the state before the first
    /// event after it. When a window ends with a count, other threads learn of its end only when
    /// the last task's thread has reported it. The events that they have recorded by then stay
    /// before the cut, and a second that they have handed over stays whole.
    pub(crate) fn advance(&mut self, now_ns: u64, window_end_ns: Option<u64>) {
        self.window_ns.1 = window_end_ns.unwrap_or(u64::MAX);
        loop {
            let second = (self.cut_ns / SECOND_NS + 1) * SECOND_NS;
            let next = match window_end_ns {
                Some(end) if end > self.cut_ns && end < second => end,
                _ => second,
            };
            if next > now_ns {
                return;
            }
            self.cut(next);
        }
    }

    /// Makes all cuts up to the end of the step, and one at the end itself.
    pub(crate) fn finish(&mut self, end_ns: u64, window_end_ns: Option<u64>) {
        self.advance(end_ns, window_end_ns);
        if end_ns > self.cut_ns {
            self.cut(end_ns);
        }
    }

    /// Counts an operation as sent.
    pub(crate) fn started(&mut self, task: usize) {
        let state = &mut self.tasks[task];
        state.started += 1;
        let counter_set = &mut self.counter_sets[state.counter_set];
        counter_set.taken += 1;
        counter_set.in_flight += 1;
    }

    /// Counts an operation that was answered without an error, and records its times.
    pub(crate) fn done(&mut self, task: usize, ending: Ending) {
        let cut = self.cut_of(ending.began_ns, ending.ended_ns);
        let state = &mut self.tasks[task];
        state.is_answered = true;
        let counter_set = &mut self.counter_sets[state.counter_set];
        counter_set.in_flight -= 1;
        let service_ns = ending.ended_ns.saturating_sub(ending.sent_ns);
        let response_ns = ending.ended_ns.saturating_sub(ending.scheduled_ns);
        let counts = &mut counter_set.current;
        counts.done += 1;
        counts.rows += ending.rows;
        counts.received_bytes += ending.received_bytes;
        counts.service_sum_ns += service_ns;
        counts.service_max_ns = counts.service_max_ns.max(service_ns);
        counts.response_sum_ns += response_ns;
        counts.response_max_ns = counts.response_max_ns.max(response_ns);
        counts.cycle_sum_ns += ending.ended_ns.saturating_sub(ending.began_ns);
        if let Some((share, cycle_ns)) = cut {
            let rows = share * ending.rows as f64;
            counts.cut += WindowCut { operations: share, rows, cycle_us: cycle_ns / 1e3 };
        }
        self.times[counter_set.kind].record(to_us(service_ns), to_us(response_ns));
    }

    /// Returns a correction for an operation whose cycle crosses an edge of the window, so that the
    /// operation counts by the share of its cycle inside the window. The result has the share of
    /// the operation and the nanoseconds to add to the interval in which the operation ends. It is
    /// `None` for a cycle that lies wholly inside or outside the window.
    #[inline]
    fn cut_of(&self, began_ns: u64, ended_ns: u64) -> Option<(f64, f64)> {
        let (from_ns, to_ns) = self.window_ns;
        let crosses = |edge_ns| began_ns < edge_ns && edge_ns < ended_ns;
        if !crosses(from_ns) && !crosses(to_ns) {
            return None;
        }
        let cycle_ns = (ended_ns - began_ns) as f64;
        let inside_ns = ended_ns.min(to_ns).saturating_sub(began_ns.max(from_ns)) as f64;
        let is_counted_inside = (from_ns..to_ns).contains(&self.cut_ns);
        let counted_ns = if is_counted_inside { cycle_ns } else { 0.0 };
        Some(((inside_ns - counted_ns) / cycle_ns, inside_ns - counted_ns))
    }

    /// Counts the statements that were answered in one attempt of an operation, even if the attempt
    /// failed.
    pub(crate) fn statements(&mut self, task: usize, statements: &[StatementDone]) {
        let kind = self.counter_sets[self.tasks[task].counter_set].kind;
        self.statements.count(kind, statements);
    }

    /// Counts an operation whose cycle began at `began_ns` and that failed at `ended_ns`.
    pub(crate) fn failed(&mut self, task: usize, began_ns: u64, ended_ns: u64) {
        let cut = self.cut_of(began_ns, ended_ns);
        let counter_set = &mut self.counter_sets[self.tasks[task].counter_set];
        counter_set.in_flight -= 1;
        counter_set.current.failed += 1;
        counter_set.current.cycle_sum_ns += ended_ns.saturating_sub(began_ns);
        counter_set.current.cut.cycle_us += cut.map_or(0.0, |(_, cycle_ns)| cycle_ns / 1e3);
    }

    /// Counts operations of a shared schedule that became due and will never be sent.
    pub(crate) fn dropped(&mut self, task: usize, operations: u64) {
        let counter_set = &mut self.counter_sets[self.tasks[task].counter_set];
        counter_set.taken += operations;
        counter_set.current.dropped += operations;
    }

    /// Records that an operation for which the task was waiting was sent `lag_ns` after it was due.
    pub(crate) fn lag(&mut self, task: usize, lag_ns: u64) {
        let kind = self.counter_sets[self.tasks[task].counter_set].kind;
        self.times[kind].record_lag(to_us(lag_ns));
    }

    /// Counts an error by its class. An operation that is sent again may have many errors.
    pub(crate) fn error(&mut self, task: usize, class: ErrorClass) {
        let state = &mut self.tasks[task];
        state.is_answered = true;
        let errors = &mut self.counter_sets[state.counter_set].current.errors;
        match class {
            ErrorClass::Retry => errors.retry += 1,
            ErrorClass::Refused => errors.refused += 1,
            ErrorClass::Lost => errors.lost += 1,
            ErrorClass::Fatal => errors.fatal += 1,
        }
    }

    /// Notes that the task's connection was lost.
    pub(crate) fn down(&mut self, task: usize, now_ns: u64) {
        let state = &mut self.tasks[task];
        state.down_since_ns = Some(now_ns);
        self.counter_sets[state.counter_set].down += 1;
    }

    /// Notes that the task's connection is open again, or that the task has given up.
    pub(crate) fn up(&mut self, task: usize, now_ns: u64) {
        let state = &mut self.tasks[task];
        if let Some(since_ns) = state.down_since_ns.take() {
            let counter_set = &mut self.counter_sets[state.counter_set];
            counter_set.down -= 1;
            counter_set.current.down_ns += now_ns.saturating_sub(since_ns);
        }
    }

    /// Notes that the task sends nothing more. Operations that were due by `now_ns` and not sent
    /// are dropped.
    pub(crate) fn ended(&mut self, task: usize, now_ns: u64) {
        let state = &mut self.tasks[task];
        let never_sent = state.waiting(now_ns);
        state.ended = true;
        self.dropped(task, never_sent);
    }

    /// Hands over everything that was counted since the last cut.
    fn cut(&mut self, to_ns: u64) {
        let from_ns = self.cut_ns;
        self.cut_ns = to_ns;
        let mut waiting = vec![0; self.counter_sets.len()];
        let mut unanswered = 0;
        for state in &mut self.tasks {
            waiting[state.counter_set] += state.waiting(to_ns);
            unanswered += usize::from(state.started > 0 && !state.is_answered && !state.ended);
            if let Some(since_ns) = &mut state.down_since_ns {
                self.counter_sets[state.counter_set].current.down_ns += to_ns.saturating_sub(*since_ns);
                *since_ns = to_ns;
            }
        }
        let kinds = &self.kinds;
        let interval = |(counter_set, waiting): (&mut CounterSet, u64)| {
            let interval = counter_set.interval(&kinds[counter_set.kind], from_ns, to_ns, waiting);
            (counter_set.kind, interval)
        };
        let intervals = self.counter_sets.iter_mut().zip(waiting).map(interval).collect();
        let mut times = BTreeMap::new();
        for (kind, current) in self.times.iter_mut().enumerate() {
            if !current.is_empty() {
                times.insert(kind, std::mem::replace(current, Times::new()));
            }
        }
        let statements = std::mem::take(&mut self.statements);
        (self.hand_over)(Batch { from_ns, to_ns, intervals, times, statements, unanswered });
    }
}

impl TaskState {
    fn new(counter_set: usize, spec: &TaskSpec) -> Self {
        let due = spec
            .arrivals
            .arrival_process()
            .map(|arrival_process| (Cursor::new(arrival_process), spec.bounds()));
        Self { counter_set, started: 0, is_answered: false, due, ended: false, down_since_ns: None }
    }

    /// Returns how many operations of the task's own open loop are due before `at_ns` and were not
    /// sent. An operation may be sent within the nanosecond in which it became due, which is not yet
    /// "before".
    fn waiting(&mut self, at_ns: u64) -> u64 {
        match &mut self.due {
            Some((due, bounds)) if !self.ended => bounds.due_before(due, at_ns).saturating_sub(self.started),
            _ => 0,
        }
    }
}

impl CounterSet {
    fn new(spec: &TaskSpec) -> Self {
        Self { client: spec.client, kind: spec.kind, ..Self::default() }
    }

    /// Returns the interval that ends now, with `waiting` operations due and not sent. Without a
    /// schedule an operation is due when it is sent.
    fn interval(&mut self, kind: &str, from_ns: u64, to_ns: u64, waiting: u64) -> Interval {
        let due_total = self.taken + waiting;
        let counts = std::mem::take(&mut self.current);
        let interval = Interval {
            from_us: to_us(from_ns),
            to_us: to_us(to_ns),
            client: self.client,
            kind: kind.to_owned(),
            due: due_total - self.due_reported,
            done: counts.done,
            failed: counts.failed,
            dropped: counts.dropped,
            backlog: waiting,
            in_flight: self.in_flight,
            rows: counts.rows,
            received_bytes: counts.received_bytes,
            service_sum_us: to_us(counts.service_sum_ns),
            service_max_us: to_us(counts.service_max_ns),
            response_sum_us: to_us(counts.response_sum_ns),
            response_max_us: to_us(counts.response_max_ns),
            cycle_sum_us: to_us(counts.cycle_sum_ns),
            cut: rounded(counts.cut),
            down: self.down,
            down_us: to_us(counts.down_ns),
            errors: counts.errors,
        };
        self.due_reported = due_total;
        interval
    }
}

/// Rounds to a millionth of an operation and of a row, and to whole microseconds.
fn rounded(cut: WindowCut) -> WindowCut {
    let millionths = |value: f64| (value * 1e6).round() / 1e6;
    let WindowCut { operations, rows, cycle_us } = cut;
    WindowCut { operations: millionths(operations), rows: millionths(rows), cycle_us: cycle_us.round() }
}
