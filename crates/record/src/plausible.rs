//! Checks whether the figures in a step's files are possible, by their signs, order and size. An
//! impossible figure is damage. The check finds it before the figure is added up, determines how
//! much memory is reserved, or determines how long a loop runs.

use crate::interval::figures;
use crate::{HistogramSpan, Interval, StepEvent, StepSpec, WindowCut};

/// The highest number that is accepted. A higher one would be rounded where it is divided, and its
/// sum over many steps would exceed 64 bits. As microseconds it is 285 years.
const MOST: u64 = 1 << 53;
const SECOND_US: u64 = 1_000_000;

/// Checks the intervals of a step, line by line.
#[derive(Debug, Default)]
pub(crate) struct Intervals {
    /// The sum of all intervals so far.
    sum: Interval,
}

impl Intervals {
    pub(crate) fn take(&mut self, interval: Interval) -> Result<Interval, String> {
        let Interval { from_us, to_us, done, .. } = interval;
        let length_us = to_us
            .checked_sub(from_us)
            .ok_or_else(|| format!("it ends at {to_us} us, before it begins at {from_us} us"))?;
        if length_us > SECOND_US {
            return Err(format!("it is {length_us} us long, and none is longer than a second"));
        }
        if to_us > MOST || highest(&interval) > MOST {
            return Err(TOO_MUCH.to_owned());
        }
        let within = |cut: f64, of: u64| cut.abs() <= of as f64 + 1.0;
        let WindowCut { operations, rows, cycle_us } = interval.cut;
        if !within(operations, done)
            || !within(rows, interval.rows)
            || !within(cycle_us, interval.cycle_sum_us)
        {
            return Err(format!(
                "the window cannot cut {operations} operations of the {done} that ended in it"
            ));
        }
        self.sum += &interval;
        if highest(&self.sum) > MOST {
            return Err(TOO_MUCH.to_owned());
        }
        for (clock, sum_us, max_us) in [
            ("service", interval.service_sum_us, interval.service_max_us),
            ("response", interval.response_sum_us, interval.response_max_us),
        ] {
            // The sum and the maximum are rounded to whole µs separately.
            let most_us = u128::from(done) * u128::from(max_us + 1);
            if max_us > sum_us || u128::from(sum_us) > most_us {
                return Err(format!(
                    "{done} operations cannot have {clock} times of {sum_us} us together and of {max_us} us at most"
                ));
            }
        }
        Ok(interval)
    }
}

/// Returns the latest moment at which a window may end. It lies neither after the last interval, nor
/// after the total time of all intervals, so that seconds without a line are not counted.
pub(crate) fn end_us(intervals: &[Interval]) -> u64 {
    let covered_us: u64 = intervals.iter().map(|interval| interval.to_us - interval.from_us).sum();
    intervals.iter().map(|interval| interval.to_us).max().unwrap_or(0).min(covered_us)
}

const TOO_MUCH: &str = "a number in it is greater than any step's can be";

/// Returns the highest figure in an interval.
fn highest(interval: &Interval) -> u64 {
    let (sums, longest) = figures!(interval);
    sums.chain(longest).copied().max().unwrap_or(0)
}

/// Checks the events of a step, line by line.
#[derive(Debug, Default)]
pub(crate) struct Events {
    sum: u64,
    has_ended: bool,
}

impl Events {
    pub(crate) fn take(&mut self, event: StepEvent) -> Result<StepEvent, String> {
        if self.has_ended {
            return Err("it comes after the step's end".to_owned());
        }
        match &event {
            StepEvent::Started { spec, .. } => spec_fault(spec)?,
            StepEvent::Scheduled { operations_per_second: rate, .. } if *rate < 0.0 => {
                return Err(format!("{rate} operations per second cannot be asked for"));
            }
            StepEvent::Window { from_us, to_us } | StepEvent::Statement { from_us, to_us, .. }
                if to_us < from_us =>
            {
                return Err(format!("it ends at {to_us} us, before it begins at {from_us} us"));
            }
            _ => {}
        }
        for number in numbers(&event) {
            // Each number is at most `MOST` before it is added.
            self.sum += Some(number).filter(|number| *number <= MOST).ok_or(TOO_MUCH)?;
            if self.sum > MOST {
                return Err(TOO_MUCH.to_owned());
            }
        }
        self.has_ended = matches!(event, StepEvent::Ended { .. });
        Ok(event)
    }
}

/// Returns the times and counts of an event. Moments need not be added up, but they are bounded in the
/// same way.
fn numbers(event: &StepEvent) -> Vec<u64> {
    match event {
        StepEvent::Barrier { connect_us, .. } => vec![*connect_us],
        StepEvent::ConnectionEnded { operations, .. } => vec![*operations],
        StepEvent::Window { to_us, .. } => vec![*to_us],
        StepEvent::Lookup { duration_us, .. } => vec![*duration_us],
        StepEvent::Reconnected { down_us, .. } => vec![*down_us],
        StepEvent::Statement { to_us, done, empty, rows, .. } => vec![*to_us, *done, *empty, *rows],
        StepEvent::Check(check) => vec![check.duration_us],
        StepEvent::ClientHost(host) => vec![
            host.measured_us,
            host.cpu_us,
            host.busiest_cpu_us,
            host.busiest_run_delay_us,
            host.late_us,
            host.lag_max_us,
            host.clock_error_us,
        ],
        StepEvent::Ended { at_us, .. } => vec![*at_us],
        _ => Vec::new(),
    }
}

/// Checks the numbers in the description of a step.
fn spec_fault(spec: &StepSpec) -> Result<(), String> {
    for kind in &spec.kinds {
        let connections = kind.connections_per_client.checked_mul(spec.clients);
        if connections.is_none() || kind.user_bytes_per_operation < 0.0 {
            return Err(format!("kind {:?}: {TOO_MUCH}, or is below zero", kind.kind));
        }
    }
    match &spec.target {
        Some(target) if target.rows_per_second < 0.0 || target.share < 0.0 => {
            Err("its target is below zero".to_owned())
        }
        _ => Ok(()),
    }
}

/// Returns the index and fault of the first event that does not agree with the others, or with
/// intervals that end at `intervals_end_us`.
pub(crate) fn window_fault(events: &[StepEvent], intervals_end_us: u64) -> Option<(usize, String)> {
    let is_window = |event: &StepEvent| matches!(event, StepEvent::Window { .. });
    let place = events.iter().rposition(is_window)?;
    let StepEvent::Window { to_us, .. } = events[place] else { return None };
    let ended_us = events.iter().find_map(|event| match event {
        StepEvent::Ended { at_us, .. } => Some(*at_us),
        _ => None,
    });
    let (what, most_us) = match ended_us {
        Some(ended_us) if ended_us < to_us => ("the step", ended_us),
        _ => ("intervals.jsonl", intervals_end_us),
    };
    (to_us > most_us).then(|| (place, format!("the window ends at {to_us} us, and {what} at {most_us} us")))
}

pub(crate) fn histogram(span: HistogramSpan) -> Result<HistogramSpan, String> {
    if span.to_us > MOST { Err(TOO_MUCH.to_owned()) } else { Ok(span) }
}

/// Checks the time of a sample that follows one at `before_us`.
pub(crate) fn sample_at(at_us: i64, before_us: Option<i64>) -> Result<(), String> {
    match before_us {
        _ if at_us.unsigned_abs() > MOST => Err(TOO_MUCH.to_owned()),
        Some(before_us) if at_us < before_us => {
            Err(format!("a sample at {at_us} us follows one at {before_us} us"))
        }
        _ => Ok(()),
    }
}
