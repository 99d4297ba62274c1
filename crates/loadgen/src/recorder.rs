//! A worker's own book: counts and histograms since the last cut, cut at exact times whatever the thread was doing.

use std::collections::BTreeMap;
use std::time::Duration;

use dbdyno_record::{ErrorClass, ErrorCounts, Interval};

use crate::batch::{Batch, Times};
use crate::{LaneSpec, Limit};

const SECOND_NS: u64 = 1_000_000_000;
/// Counts of one lane since the last cut, and its state across cuts.
#[derive(Debug)]
struct LaneBook {
    spec: LaneSpec,
    /// Operations sent since the barrier.
    started: u64,
    /// Due operations up to the last cut.
    due_reported: u64,
    dropped_total: u64,
    in_flight: u64,
    ended: bool,
    current: Counts,
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
    errors: ErrorCounts,
}

/// How an operation ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ending {
    pub(crate) due_ns: u64,
    pub(crate) sent_ns: u64,
    pub(crate) ended_ns: u64,
    pub(crate) rows: u64,
    pub(crate) received_bytes: u64,
}

/// The book of one worker thread.
pub(crate) struct Recorder {
    lanes: Vec<LaneBook>,
    times: Vec<Times>,
    kinds: Vec<String>,
    cut_ns: u64,
    hand_over: Box<dyn FnMut(Batch)>,
}

impl Recorder {
    /// A book for `lanes`, whose batches go to `hand_over`.
    pub(crate) fn new(kinds: Vec<String>, lanes: Vec<LaneSpec>, hand_over: Box<dyn FnMut(Batch)>) -> Self {
        let lanes = lanes.into_iter().map(LaneBook::new).collect();
        let times = kinds.iter().map(|_| Times::new()).collect();
        Self { lanes, times, kinds, cut_ns: 0, hand_over }
    }

    /// Makes every cut that lies at or before `now_ns`. Must be called before anything that happened at `now_ns` is
    /// written down: the state at a cut is the state before the first event after it.
    pub(crate) fn advance(&mut self, now_ns: u64, window_end_ns: Option<u64>) {
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

    /// The last cut of a step, at its common end.
    pub(crate) fn finish(&mut self, end_ns: u64, window_end_ns: Option<u64>) {
        self.advance(end_ns, window_end_ns);
        if end_ns > self.cut_ns {
            self.cut(end_ns);
        }
    }

    pub(crate) fn started(&mut self, lane: usize) {
        let book = &mut self.lanes[lane];
        book.started += 1;
        book.in_flight += 1;
    }

    pub(crate) fn done(&mut self, lane: usize, ending: Ending) {
        let book = &mut self.lanes[lane];
        book.in_flight -= 1;
        let service_ns = ending.ended_ns.saturating_sub(ending.sent_ns);
        let response_ns = ending.ended_ns.saturating_sub(ending.due_ns);
        let counts = &mut book.current;
        counts.done += 1;
        counts.rows += ending.rows;
        counts.received_bytes += ending.received_bytes;
        counts.service_sum_ns += service_ns;
        counts.service_max_ns = counts.service_max_ns.max(service_ns);
        counts.response_sum_ns += response_ns;
        counts.response_max_ns = counts.response_max_ns.max(response_ns);
        self.times[book.spec.kind].record(to_us(service_ns), to_us(response_ns));
    }

    pub(crate) fn failed(&mut self, lane: usize) {
        let book = &mut self.lanes[lane];
        book.in_flight -= 1;
        book.current.failed += 1;
    }

    pub(crate) fn error(&mut self, lane: usize, class: ErrorClass) {
        let errors = &mut self.lanes[lane].current.errors;
        match class {
            ErrorClass::Retry => errors.retry += 1,
            ErrorClass::Refused => errors.refused += 1,
            ErrorClass::Lost => errors.lost += 1,
            ErrorClass::Fatal => errors.fatal += 1,
        }
    }

    /// The lane sends nothing more: what was due by `now_ns` and not sent is dropped.
    pub(crate) fn ended(&mut self, lane: usize, now_ns: u64) {
        let book = &mut self.lanes[lane];
        let never_sent = book.due_total(now_ns).saturating_sub(book.started);
        book.dropped_total = never_sent;
        book.current.dropped += never_sent;
        book.ended = true;
    }

    fn cut(&mut self, to_ns: u64) {
        let from_ns = self.cut_ns;
        self.cut_ns = to_ns;
        let kinds = &self.kinds;
        let intervals = self.lanes.iter_mut().map(|book| book.interval(kinds, from_ns, to_ns)).collect();
        let mut times = BTreeMap::new();
        for (kind, current) in self.times.iter_mut().enumerate() {
            if !current.service.is_empty() {
                times.insert(kind, std::mem::replace(current, Times::new()));
            }
        }
        (self.hand_over)(Batch { from_ns, to_ns, intervals, times });
    }
}

impl LaneBook {
    fn new(spec: LaneSpec) -> Self {
        Self {
            spec,
            started: 0,
            due_reported: 0,
            dropped_total: 0,
            in_flight: 0,
            ended: false,
            current: Counts::default(),
        }
    }

    /// Operations due before `at_ns`. Without a schedule an operation is due when it is sent.
    fn due_total(&self, at_ns: u64) -> u64 {
        if self.ended {
            return self.started + self.dropped_total;
        }
        let limit = match self.spec.limit {
            Limit::Operations(limit) => limit,
            Limit::UntilClientEnds => u64::MAX,
        };
        self.spec.pace.due_before(Duration::from_nanos(at_ns), limit).unwrap_or(self.started)
    }

    fn interval(&mut self, kinds: &[String], from_ns: u64, to_ns: u64) -> Interval {
        // An operation may be sent within the nanosecond in which it became due, which is not yet "before" the cut.
        let due_total = self.due_total(to_ns).max(self.started + self.dropped_total);
        let counts = std::mem::take(&mut self.current);
        let interval = Interval {
            from_us: to_us(from_ns),
            to_us: to_us(to_ns),
            client: self.spec.client,
            kind: kinds[self.spec.kind].clone(),
            due: due_total - self.due_reported,
            done: counts.done,
            failed: counts.failed,
            dropped: counts.dropped,
            backlog: due_total - self.started - self.dropped_total,
            in_flight: self.in_flight,
            rows: counts.rows,
            received_bytes: counts.received_bytes,
            service_sum_us: to_us(counts.service_sum_ns),
            service_max_us: to_us(counts.service_max_ns),
            response_sum_us: to_us(counts.response_sum_ns),
            response_max_us: to_us(counts.response_max_ns),
            errors: counts.errors,
        };
        self.due_reported = due_total;
        interval
    }
}

/// Nearest microsecond.
pub(crate) fn to_us(nanos: u64) -> u64 {
    (nanos + 500) / 1000
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::{Pace, Role};

    fn lane(pace: Pace, operations: u64) -> LaneSpec {
        LaneSpec {
            client: 1,
            kind: 0,
            pace,
            limit: Limit::Operations(operations),
            role: Role::Decides,
            coupling: None,
        }
    }

    fn recorder(spec: LaneSpec) -> (Recorder, Rc<RefCell<Vec<Batch>>>) {
        let batches = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&batches);
        let recorder = Recorder::new(
            vec!["query".into()],
            vec![spec],
            Box::new(move |batch| sink.borrow_mut().push(batch)),
        );
        (recorder, batches)
    }

    fn ending(due_ms: u64, sent_ms: u64, ended_ms: u64) -> Ending {
        let ns = |ms: u64| ms * 1_000_000;
        Ending {
            due_ns: ns(due_ms),
            sent_ns: ns(sent_ms),
            ended_ns: ns(ended_ms),
            rows: 10,
            received_bytes: 7,
        }
    }

    fn assert_accounts_balance(batches: &[Batch]) {
        let (mut due, mut ended) = (0, 0);
        for batch in batches {
            for interval in &batch.intervals {
                due += interval.due;
                ended += interval.done + interval.failed + interval.dropped;
                assert_eq!(due, ended + interval.backlog + interval.in_flight, "{interval:?}");
            }
        }
    }

    #[test]
    fn an_answer_belongs_to_the_second_in_which_it_was_complete() {
        let (mut recorder, batches) = recorder(lane(Pace::Closed, 10));
        recorder.advance(900_000_000, None);
        recorder.started(0);
        recorder.advance(3_200_000_000, None);
        recorder.done(0, ending(900, 900, 3200));
        recorder.ended(0, 3_500_000_000);
        recorder.finish(3_500_000_000, Some(3_400_000_000));
        let batches = batches.borrow();
        let done: Vec<_> =
            batches.iter().map(|batch| (batch.to_ns / 1_000_000, batch.intervals[0].done)).collect();
        assert_eq!(done, [(1000, 0), (2000, 0), (3000, 0), (3400, 1), (3500, 0)]);
        assert_eq!(batches[1].intervals[0].in_flight, 1);
        assert_accounts_balance(&batches);
    }

    #[test]
    fn a_late_schedule_shows_its_backlog_and_counts_response_from_the_due_time() {
        let pace = Pace::Constant { operations: 10, per: Duration::from_secs(1), phase: Duration::ZERO };
        let (mut recorder, batches) = recorder(lane(pace, 30));
        recorder.advance(0, None);
        recorder.started(0);
        recorder.advance(2_050_000_000, None);
        recorder.done(0, ending(0, 0, 2050));
        recorder.started(0);
        recorder.advance(2_060_000_000, None);
        recorder.done(0, ending(100, 2050, 2060));
        recorder.advance(3_000_000_000, None);
        let batches = batches.borrow();
        let first = &batches[0].intervals[0];
        assert_eq!((first.due, first.done, first.backlog, first.in_flight), (10, 0, 9, 1));
        let third = &batches[2].intervals[0];
        assert_eq!((third.due, third.done, third.backlog, third.in_flight), (10, 2, 28, 0));
        assert_eq!(third.service_max_us, 2_050_000);
        assert_eq!(third.response_sum_us, 2_050_000 + 1_960_000);
        assert_accounts_balance(&batches);
    }

    #[test]
    fn an_operation_of_more_than_an_hour_keeps_its_time() {
        let (mut recorder, batches) = recorder(lane(Pace::Closed, 10));
        let three_hours_ms = 3 * 3_600_000;
        recorder.started(0);
        recorder.done(0, ending(0, 0, three_hours_ms));
        recorder.finish(500_000_000, None);
        let batches = batches.borrow();
        let mut sum = Times::new();
        sum.add(&batches[0].times[&0]);
        for histogram in [&sum.service, &sum.response] {
            let expected = three_hours_ms * 1000;
            assert_eq!((histogram.len(), histogram.equivalent(histogram.max(), expected)), (1, true));
        }
    }

    #[test]
    fn what_a_stopped_lane_never_sent_is_dropped() {
        let pace = Pace::Constant { operations: 10, per: Duration::from_secs(1), phase: Duration::ZERO };
        let (mut recorder, batches) = recorder(lane(pace, 30));
        recorder.started(0);
        recorder.done(0, ending(0, 0, 1));
        recorder.advance(1_450_000_000, None);
        recorder.ended(0, 1_450_000_000);
        recorder.finish(1_500_000_000, None);
        let batches = batches.borrow();
        let last = &batches[1].intervals[0];
        assert_eq!((last.due, last.dropped, last.backlog), (5, 14, 0));
        assert_accounts_balance(&batches);
    }

    #[test]
    fn a_failed_operation_is_counted_once_and_leaves_no_time() {
        let (mut recorder, batches) = recorder(lane(Pace::Closed, 10));
        recorder.started(0);
        recorder.error(0, ErrorClass::Retry);
        recorder.error(0, ErrorClass::Refused);
        recorder.failed(0);
        recorder.finish(500_000_000, None);
        let batches = batches.borrow();
        let interval = &batches[0].intervals[0];
        assert_eq!((interval.due, interval.done, interval.failed), (1, 0, 1));
        assert_eq!((interval.errors.retry, interval.errors.refused), (1, 1));
        assert!(batches[0].times.is_empty());
        assert_accounts_balance(&batches);
    }
}
