//! The collector takes the batches of load threads on this host or on other hosts, merges them by
//! time and kind, and writes them to the record. It warns once when connections have waited for
//! half a minute to be opened or answered, because a pooler, locks or a full server may let them
//! wait for ever.

use std::collections::{BTreeMap, HashSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use dbdyno_record::{Clock, ErrorClass, Interval, MOST_OUTAGE_EVENTS, StepEvent, StepWriter};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::arrivals::to_us;
use crate::batch::{Batch, counts, histogram, merge};
use crate::control::{Control, StopReason};
use crate::pauses::Pause;
use crate::schedule::ScheduleAccounting;
use crate::statements::Statements;
use crate::{Failure, Lookup, Role, TaskEnd, TaskSpec};

/// Receives a step's figures and warnings while it runs. It is called on the thread that called
/// [`crate::run`]. A cut is a moment at which all load threads hand over the counts since the cut
/// before.
pub trait Observer {
    /// The clock will start at `start`, shortly after this call.
    fn barrier(&mut self, _start: Instant) {}
    /// Gives the response times of operations of `kind` between two cuts, in microseconds. The call
    /// comes before [`Observer::second`] for the same cuts.
    fn times(&mut self, _kind: &str, _response: &Histogram<u64>) {}
    /// Gives the longest time between when an operation was due and when it was sent, in
    /// microseconds. The operations are those of the last call of [`Observer::times`].
    fn late(&mut self, _max_us: u64) {}
    /// Gives how many statements called `name` were answered between two cuts. `times` has their
    /// response times in microseconds, or is `None` if these statements are not timed one by one.
    /// The call comes before [`Observer::second`] for the same cuts.
    fn statements(&mut self, _name: &str, _done: u64, _times: Option<&Histogram<u64>>) {}
    /// Gives the intervals of all clients between two cuts, which are usually one second apart.
    fn second(&mut self, _intervals: &[Interval]) {}
    /// Gives a text that the user should know while the step runs. It is also recorded.
    fn warning(&mut self, _text: &str) {}
    /// The common window has just ended. Connections stay open until [`Observer::has_sampled`].
    fn window_ended(&mut self) {}
    /// Returns whether all samples that are due at the end of the common window have been taken.
    fn has_sampled(&mut self) -> bool {
        true
    }
}

/// The longest time that the collector sleeps before it checks the clock and whether the user wants
/// to stop. Any message from the load threads wakes it at once. A needless wake-up costs CPU time
/// that counts as the client's: 60 µs if the CPU was asleep.
const POLL: Duration = Duration::from_millis(250);
/// The same limit while connections are kept open only for the sample at the window's end.
const POLL_KEPT_OPEN: Duration = Duration::from_millis(2);

/// The kind under which login times are recorded.
const LOGIN: &str = "login";

/// The collecting side of one step. It runs on the thread that called the engine.
pub(crate) struct Collector<'a> {
    pub(crate) writer: &'a mut StepWriter,
    pub(crate) observer: &'a mut dyn Observer,
    pub(crate) control: &'a Control,
    pub(crate) kinds: &'a [String],
    pub(crate) load_threads: usize,
    /// How many load threads have ended.
    ended: usize,
    /// Batches that not all load threads have handed over yet, by the end and start of the time
    /// that they cover. Each entry has the number of threads that it comes from, and the sum of
    /// their batches. Batches are added up at once, because one blocked thread keeps the batches of
    /// all other threads waiting, and single batches would need much more memory than sums.
    pub(crate) pending: BTreeMap<(u64, u64), (usize, Batch)>,
    pub(crate) seen_errors: HashSet<(usize, ErrorClass, String)>,
    /// The accounting of shared schedules, by client and kind.
    pub(crate) schedules: BTreeMap<(u32, usize), ScheduleAccounting>,
    pub(crate) outage_events: u32,
    pub(crate) window_written: bool,
    /// The time from the start of the step to the start of the common window.
    pub(crate) warmup: Duration,
    /// The role and the end of each task on another host, by client and kind. This host learns only
    /// from messages when such a task has ended.
    elsewhere: BTreeMap<(u32, usize), (Role, u64)>,
    pub(crate) ends: Vec<TaskEnd>,
    /// The counts and times of statements within the common window.
    pub(crate) statements: Statements,
    waiting: Waiting,
    /// When the collector last learned that an operation had been answered or had failed.
    answered: Instant,
    /// The first error in writing the record. It stops the step.
    pub(crate) failure: Option<dbdyno_record::Error>,
}

/// How long a step may last.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Longest {
    /// The step may last for this duration, counted from this moment.
    Cap(Instant, Duration),
    /// The step may last until nothing has been answered for this long.
    Silence(Duration),
}

impl<'a> Collector<'a> {
    pub(crate) fn new(
        writer: &'a mut StepWriter,
        observer: &'a mut dyn Observer,
        control: &'a Control,
        kinds: &'a [String],
        load_threads: usize,
        schedules: BTreeMap<(u32, usize), ScheduleAccounting>,
    ) -> Self {
        Self {
            writer,
            observer,
            control,
            kinds,
            load_threads,
            pending: BTreeMap::new(),
            seen_errors: HashSet::new(),
            schedules,
            outage_events: 0,
            ended: 0,
            window_written: false,
            warmup: Duration::ZERO,
            elsewhere: BTreeMap::new(),
            ends: Vec::new(),
            statements: Statements::default(),
            waiting: Waiting::default(),
            answered: Instant::now(),
            failure: None,
        }
    }

    /// Notes that the tasks in `specs` are on other hosts.
    pub(crate) fn expect_elsewhere(&mut self, specs: &[TaskSpec]) {
        let task = |spec: &TaskSpec| ((spec.client, spec.kind), (spec.role, spec.bounds().until_ns));
        self.elsewhere = specs.iter().map(task).collect();
    }

    /// Waits until every load thread has its connections, and records how long each login took. The
    /// result is the longest time that one of the threads took.
    pub(crate) fn wait_until_ready(
        &mut self,
        messages: &mut dyn Inbox,
        cancelled: &dyn Fn() -> bool,
    ) -> Duration {
        let mut ready = HashSet::new();
        let mut longest = Duration::ZERO;
        let mut all_logins = histogram();
        while ready.len() + self.ended < self.load_threads {
            match messages.next(POLL) {
                // This thread could not begin. Without an end to the step, the other threads would
                // wait for its tasks.
                Ok(Message::WorkerEnded { ends }) => {
                    self.ended += 1;
                    self.ends.extend(ends);
                    self.control.abandon();
                }
                Ok(Message::Ready { load_thread, took, logins }) => {
                    // The histograms' ranges grow, so adding cannot fail.
                    let _ = all_logins.add(*logins);
                    ready.insert(load_thread);
                    longest = longest.max(took);
                }
                Ok(message) if !self.elsewhere.is_empty() => self.take(message),
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if cancelled() {
                self.control.stop(StopReason::Interrupted);
            }
            // The agent on another host reports connections there that are not open in time.
            let unopened = if self.elsewhere.is_empty() { self.control.unopened() } else { 0 };
            self.warn_of_waiting(WaitFor::Open, unopened);
        }
        self.waiting = Waiting::default();
        if !all_logins.is_empty() {
            self.check(|writer| writer.histogram(&Clock::Service.tag(LOGIN), 0, 0, &all_logins));
        }
        longest
    }

    /// Collects until all load threads have ended.
    pub(crate) fn collect(
        &mut self,
        messages: &mut dyn Inbox,
        longest: Longest,
        cancelled: &dyn Fn() -> bool,
    ) {
        let mut are_kept_open = true;
        self.answered = Instant::now();
        while self.ended < self.load_threads {
            let poll = if are_kept_open && self.control.end_ns().is_some() { POLL_KEPT_OPEN } else { POLL };
            match messages.next(poll) {
                Ok(Message::WorkerEnded { ends }) => {
                    self.ended += 1;
                    self.ends.extend(ends);
                }
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let is_cancelled = cancelled();
            if is_cancelled {
                self.control.stop(StopReason::Interrupted);
            }
            match longest {
                Longest::Cap(start, cap) if start.elapsed() > cap => {
                    self.control.stop(StopReason::TimeCap(cap));
                }
                Longest::Silence(silence) if self.answered.elapsed() > silence => {
                    self.control.stop(StopReason::Silence(silence));
                }
                _ => {}
            }
            self.write_window_once_ended();
            if are_kept_open && (is_cancelled || self.may_close()) {
                self.control.let_close();
                are_kept_open = false;
            }
        }
        for batch in self.remaining() {
            self.write(batch);
        }
        self.write_window_once_ended();
        self.write_statements();
    }

    pub(crate) fn paused(&mut self, pause: Pause) {
        let (to_us, paused_us) = (to_us(pause.to_ns), to_us(pause.lasted_ns));
        self.event(&StepEvent::Paused { to_us, paused_us });
    }

    fn warn_of_waiting(&mut self, what: WaitFor, waiting: usize) {
        if let Some(text) = self.waiting.look(what, waiting, self.control.tasks, Instant::now()) {
            self.observer.warning(&text);
            self.event(&StepEvent::Warning { text });
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Batch(batch) => self.take_batch(batch),
            Message::ConnectionEnded { at_ns, end } => {
                let event = StepEvent::ConnectionEnded {
                    at_us: to_us(at_ns),
                    client: end.client,
                    kind: self.kinds[end.kind].clone(),
                    operations: end.started,
                };
                self.event(&event);
                if let Some((role, until_ns)) = self.elsewhere.get(&(end.client, end.kind)) {
                    let (role, window_ns) = (*role, at_ns.min(*until_ns));
                    self.control.task_ended_elsewhere(end.client, role, (at_ns, window_ns), end.complete);
                }
            }
            Message::Paused(pause) => self.paused(pause),
            Message::Stopped(reason) => self.control.stop(reason),
            Message::HostLost(why) => {
                self.control.stop(StopReason::Failed(why));
                // The tasks on the lost host will not report that they have ended.
                self.control.abandon();
            }
            Message::Error { at_ns, client, kind, failure } => {
                self.answered = Instant::now();
                if self.seen_errors.insert((kind, failure.class, failure.code.clone())) {
                    self.event(&StepEvent::Error {
                        at_us: to_us(at_ns),
                        client,
                        kind: self.kinds[kind].clone(),
                        class: failure.class,
                        code: failure.code,
                        message: failure.message,
                    });
                }
            }
            Message::Lookup { at_ns, client, lookup } => self.event(&StepEvent::Lookup {
                at_us: to_us(at_ns),
                client,
                name: lookup.name.into_owned(),
                duration_us: to_us(u64::try_from(lookup.duration.as_nanos()).unwrap_or(u64::MAX)),
                value: lookup.value,
            }),
            Message::Lost { at_ns, client, kind, failure } => {
                let kind = self.kinds[kind].clone();
                let Failure { code, message, .. } = failure;
                let at_us = to_us(at_ns);
                self.outage_event(StepEvent::ConnectionLost { at_us, client, kind, code, message });
            }
            Message::Reconnected { at_ns, client, kind, down_ns, attempts } => {
                let kind = self.kinds[kind].clone();
                let (at_us, down_us) = (to_us(at_ns), to_us(down_ns));
                self.outage_event(StepEvent::Reconnected { at_us, client, kind, down_us, attempts });
            }
            Message::Ready { .. }
            | Message::WorkerEnded { .. }
            | Message::LoadThreads(_)
            | Message::BegunLate(_) => {}
        }
    }

    fn outage_event(&mut self, event: StepEvent) {
        self.outage_events += 1;
        if self.outage_events <= MOST_OUTAGE_EVENTS {
            self.event(&event);
        } else if self.outage_events == MOST_OUTAGE_EVENTS + 1 {
            let text = format!(
                "more than {MOST_OUTAGE_EVENTS} losses and returns of connections; the rest is only in the intervals"
            );
            self.event(&StepEvent::Warning { text });
        }
    }

    fn take_batch(&mut self, batch: Batch) {
        let key = (batch.to_ns, batch.from_ns);
        merge(&mut self.pending, key, (1, batch), |(from, sum), (more, batch)| {
            *from += more;
            sum.join(batch);
        });
        if self.pending[&key].0 == self.load_threads
            && let Some((_, batch)) = self.pending.remove(&key)
        {
            self.write(batch);
        }
    }

    /// Returns the pending batches, for whose cuts some load threads have handed over nothing.
    /// Other hosts learn of the step's end a little late, so one of them may have made a cut at a
    /// whole second after the end. Everything in that batch happened before the end, so the batch
    /// is cut off there and added to the others.
    fn remaining(&mut self) -> Vec<Batch> {
        let pending = std::mem::take(&mut self.pending).into_values().map(|(_, batch)| batch);
        let Some(end_ns) = self.control.end_ns().filter(|_| !self.elsewhere.is_empty()) else {
            return pending.collect();
        };
        let mut joined: BTreeMap<(u64, u64), Batch> = BTreeMap::new();
        for batch in pending.filter(|batch| batch.from_ns < end_ns).map(|batch| batch.ended(end_ns)) {
            merge(&mut joined, (batch.to_ns, batch.from_ns), batch, Batch::join);
        }
        joined.into_values().collect()
    }

    fn write_window_once_ended(&mut self) {
        if self.window_written {
            return;
        }
        if let Some(end_ns) = self.control.window_end_ns() {
            self.window_written = true;
            let to_us = to_us(end_ns);
            let from_us = self.window_from_us(to_us);
            self.event(&StepEvent::Window { from_us, to_us });
            self.observer.window_ended();
        }
    }

    /// Returns whether the connections may close. They may once the end of the window has been
    /// sampled, when there will be no window, or when the step is stopping.
    fn may_close(&mut self) -> bool {
        let has_no_window = self.control.end_ns().is_some() && self.control.window_end_ns().is_none();
        self.control.is_stopping() || has_no_window || (self.window_written && self.observer.has_sampled())
    }

    /// Returns where the common window begins. If the window ends during the warm-up, it is empty
    /// and begins at its own end.
    fn window_from_us(&self, end_us: u64) -> u64 {
        u64::try_from(self.warmup.as_micros()).unwrap_or(u64::MAX).min(end_us)
    }

    /// Writes the counts and times of statements within the common window. A step without a common
    /// window writes nothing.
    fn write_statements(&mut self) {
        let Some(to_us) = self.control.window_end_ns().map(to_us) else { return };
        let span = (self.window_from_us(to_us), to_us);
        let statements = std::mem::take(&mut self.statements);
        let kinds = self.kinds;
        self.check(|writer| statements.write(kinds, span, writer));
    }

    /// Writes the counts and times of all load threads between the same two cuts.
    fn write(&mut self, batch: Batch) {
        let (from_us, to_us) = (to_us(batch.from_ns), to_us(batch.to_ns));
        let is_after = self.control.window_end_ns().is_some_and(|end_ns| batch.from_ns >= end_ns);
        if !is_after && from_us >= self.window_from_us(u64::MAX) {
            self.statements.add(&batch.statements);
        }
        let mut intervals: BTreeMap<(u32, usize), Interval> = BTreeMap::new();
        for (kind, interval) in batch.intervals {
            merge(&mut intervals, (interval.client, kind), interval, |sum, more| *sum += &more);
        }
        let is_last = self.control.end_ns().is_some_and(|end_ns| end_ns <= batch.to_ns);
        for (key, interval) in &mut intervals {
            if let Some(schedule) = self.schedules.get_mut(key) {
                schedule.complete(interval, batch.to_ns, is_last);
            }
        }
        let intervals: Vec<Interval> = intervals.into_values().collect();
        for interval in &intervals {
            self.check(|writer| writer.interval(interval));
        }
        for (name, done, times) in batch.statements.counts() {
            self.observer.statements(name, done, times);
        }
        for (kind, times) in &batch.times {
            let kind = self.kinds[*kind].clone();
            self.observer.times(&kind, times.response());
            self.observer.late(times.late_max_us);
            let answered = [(Clock::Service, &times.service), (Clock::Response, times.response())];
            let answered = answered.into_iter().filter(|_| !times.service.is_empty());
            let lag = times.lag.iter().map(|lag| (Clock::Lag, lag));
            for (clock, histogram) in answered.chain(lag) {
                self.check(|writer| writer.histogram(&clock.tag(&kind), from_us, to_us, histogram));
            }
        }
        self.check(StepWriter::flush);
        if intervals.iter().any(|interval| interval.done + interval.failed > 0) {
            self.answered = Instant::now();
        }
        self.warn_of_waiting(WaitFor::FirstAnswer, batch.unanswered);
        self.observer.second(&intervals);
    }

    pub(crate) fn event(&mut self, event: &StepEvent) {
        self.check(|writer| writer.event(event));
    }

    /// Writes to the record with `write`. The first failure is kept and stops the step, because
    /// figures that cannot be recorded need not be measured.
    fn check(&mut self, write: impl FnOnce(&mut StepWriter) -> Result<(), dbdyno_record::Error>) {
        if self.failure.is_some() {
            return;
        }
        if let Err(error) = write(self.writer) {
            self.control.stop(StopReason::Failed(error.to_string()));
            self.failure = Some(error);
        }
    }
}

/// A message from a load thread to the collector.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    /// A load thread has tried to open all of its connections.
    Ready {
        load_thread: usize,
        took: Duration,
        /// How long each connection took to open, in microseconds.
        #[serde(with = "counts")]
        logins: Box<Histogram<u64>>,
    },
    Batch(Batch),
    ConnectionEnded {
        at_ns: u64,
        end: TaskEnd,
    },
    Error {
        at_ns: u64,
        client: u32,
        kind: usize,
        failure: Failure,
    },
    Lookup {
        at_ns: u64,
        client: u32,
        lookup: Lookup,
    },
    Lost {
        at_ns: u64,
        client: u32,
        kind: usize,
        failure: Failure,
    },
    Reconnected {
        at_ns: u64,
        client: u32,
        kind: usize,
        down_ns: u64,
        attempts: u32,
    },
    WorkerEnded {
        ends: Vec<TaskEnd>,
    },
    /// The client on another host did not run for a time.
    Paused(Pause),
    /// Another host has this many load threads.
    LoadThreads(usize),
    /// Another host's clock started this much too late.
    BegunLate(Duration),
    /// Another host stopped its part for this reason, and so the whole step stops.
    Stopped(StopReason),
    /// Another host cannot be reached any more or cannot continue. The text says why.
    HostLost(String),
}

/// A source of messages for the collector: load threads on this host, or other hosts.
pub(crate) trait Inbox {
    /// Waits at most `wait` for the next message.
    fn next(&mut self, wait: Duration) -> Result<Message, RecvTimeoutError>;
}

impl Inbox for Receiver<Message> {
    fn next(&mut self, wait: Duration) -> Result<Message, RecvTimeoutError> {
        self.recv_timeout(wait)
    }
}

/// How long connections wait before the collector warns. Whoever watches a run then learns about
/// them within a minute.
const WARN_AFTER: Duration = Duration::from_secs(30);

/// The event that some connections wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitFor {
    /// They wait to be open.
    Open,
    /// They wait for the answer to their first statement.
    FirstAnswer,
}

/// Remembers since when some connections have been waiting.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    since: Option<Instant>,
    was_warned: bool,
}

impl Waiting {
    /// Notes that `waiting` of `all` connections wait at `now`. The result is a warning if they
    /// have waited for [`WARN_AFTER`] and no warning was given before.
    pub(crate) fn look(&mut self, what: WaitFor, waiting: usize, all: usize, now: Instant) -> Option<String> {
        if waiting == 0 {
            self.since = None;
            return None;
        }
        let waited = now.saturating_duration_since(*self.since.get_or_insert(now));
        if self.was_warned || waited < WARN_AFTER {
            return None;
        }
        self.was_warned = true;
        Some(format!(
            "{waiting} of {all} connections {} {} s; a pooler or max_connections may hold them",
            match what {
                WaitFor::Open => "have not been opened for",
                WaitFor::FirstAnswer => "have had no answer to their first statement for",
            },
            waited.as_secs()
        ))
    }
}

/// Lists `numbers`, which must ascend, and joins consecutive numbers into ranges, as in `1, 4 to
/// 9`.
pub(crate) fn ranges(numbers: impl Iterator<Item = u32>) -> String {
    /// Highest number of ranges that are listed. More ranges would hide the rest of the message.
    const MOST: usize = 8;
    let mut all: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match all.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => all.push((number, number)),
        }
    }
    let text = |(first, last): &(u32, u32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first} to {last}"),
    };
    let texts: Vec<String> = all.iter().take(MOST).map(text).collect();
    texts.join(", ") + if all.len() > MOST { ", ..." } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_that_wait_for_half_a_minute_are_reported_once() {
        let (mut waiting, began) = (Waiting::default(), Instant::now());
        let warnings: Vec<(u64, String)> = (0..120)
            .filter_map(|second| {
                let now = began + Duration::from_secs(second);
                Some((second, waiting.look(WaitFor::FirstAnswer, 24, 32, now)?))
            })
            .collect();
        let text = "24 of 32 connections have had no answer to their first statement for 30 s; a pooler or max_connections \
                    may hold them";
        assert_eq!(warnings, [(30, text.to_owned())]);
    }

    #[test]
    fn waits_that_end_within_half_a_minute_are_not_reported() {
        let (mut waiting, began) = (Waiting::default(), Instant::now());
        let waits = |second: u64| usize::from(!second.is_multiple_of(20));
        let looks = (0..120).map(|second| (waits(second), began + Duration::from_secs(second)));
        assert!(looks.into_iter().all(|(waits, now)| waiting.look(WaitFor::Open, waits, 4, now).is_none()));
    }

    #[test]
    fn neighbours_are_joined() {
        assert_eq!(ranges([1, 4, 5, 6, 9, 10].into_iter()), "1, 4 to 6, 9, 10");
        assert_eq!(ranges((0..20).map(|number| 2 * number)), "0, 2, 4, 6, 8, 10, 12, 14, ...");
    }
}
