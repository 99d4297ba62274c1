//! Rates over the common window: headline, background, and the seconds that kept the target.

use dbdyno_record::{Interval, OperationClass, StepSpec, Target, Unit};

use crate::readings::counted::{all_at_work, is_too_sparse};
use crate::readings::scans;
use crate::readings::span::{Span, Tally, by_second, tally};

/// Throughput percentiles of fewer seconds than this say nothing, and are not given.
const MIN_SECONDS: usize = 10;

/// Whether the figures of `kind` count rows (writers) or operations (queries).
pub(crate) fn unit_of(spec: &StepSpec, kind: &str) -> Unit {
    if kind == spec.headline.kind {
        return spec.headline.unit;
    }
    if spec.class_of(kind) == OperationClass::Query { Unit::Operations } else { Unit::Rows }
}

/// Which of the two counts a figure in `unit` is of.
pub(crate) fn amount(unit: Unit, (operations, rows): (f64, f64)) -> f64 {
    match unit {
        Unit::Operations | Unit::Seconds | Unit::Elapsed => operations,
        Unit::Rows => rows,
    }
}

/// Per second; 0 for a window of no length.
pub(crate) fn per_second(amount: f64, window: Span) -> f64 {
    if window.seconds() > 0.0 { amount / window.seconds() } else { 0.0 }
}

/// What `kind` did in the window, with the parts that lie in it of scans that the window cuts.
pub(crate) fn done(spec: &StepSpec, intervals: &[Interval], kind: &str, window: Span) -> Tally {
    if scans::are_cut(spec, kind) {
        return scans::scanned(spec, intervals, kind, window);
    }
    tally(intervals, kind, window)
}

/// Units (rows or operations) that `kind` did in the window, for one second of the window.
pub(crate) fn rate(spec: &StepSpec, intervals: &[Interval], kind: &str, window: Span) -> f64 {
    let done = done(spec, intervals, kind, window);
    per_second(amount(unit_of(spec, kind), (done.operations, done.rows)), window)
}

/// Units that `kind` did between two counter samples, so that a cost and the work it paid for cover
/// the same time.
///
/// A step that is one piece of work answers once, at the end: its units are spread evenly over the
/// window instead. Long scans count with the parts that lie between the samples, in the warm-up
/// too.
pub(crate) fn work(spec: &StepSpec, intervals: &[Interval], kind: &str, window: Span, between: Span) -> f64 {
    let tally = if scans::are_cut(spec, kind) {
        let end_us = intervals.iter().map(|interval| interval.to_us).max().unwrap_or(0);
        scans::scanned(spec, intervals, kind, Span::new(0, end_us).overlap(between))
    } else if is_too_sparse(spec, intervals, window) {
        return rate(spec, intervals, kind, window) * window.overlap(between).seconds();
    } else {
        tally(intervals, kind, between)
    };
    amount(unit_of(spec, kind), (tally.operations, tally.rows))
}

/// Whether single seconds of the headline kind say something: not of one piece of work, and not of
/// long scans.
pub(crate) fn has_telling_seconds(spec: &StepSpec, intervals: &[Interval], window: Span) -> bool {
    !is_too_sparse(spec, intervals, window) && !scans::are_long(spec, intervals, window)
}

/// The original's p50 and p99: throughput of client 1 in each whole second, sorted from high to
/// low, at rank `round(percent / 100 * n)`, counted from 1. A high percentile is a *slow* second.
///
/// Of a step that ends by a count, the seconds in which all clients were at work. `None` for fewer
/// than 10 of these seconds, for a step that is one piece of work, and for long scans.
pub(crate) fn throughput_percentile(
    spec: &StepSpec,
    intervals: &[Interval],
    window: Span,
    percent: f64,
) -> Option<f64> {
    if !has_telling_seconds(spec, intervals, window) {
        return None;
    }
    let kind = spec.headline.kind.as_str();
    let rates = by_second(intervals, kind, Some(1), all_at_work(spec, intervals, window))
        .iter()
        .map(|(_, sum)| amount(spec.headline.unit, (sum.operations, sum.rows)))
        .collect();
    at_rank(rates, percent)
}

fn at_rank(mut rates: Vec<f64>, percent: f64) -> Option<f64> {
    if rates.len() < MIN_SECONDS {
        return None;
    }
    rates.sort_by(|a, b| b.total_cmp(a));
    let rank = (percent / 100.0 * rates.len() as f64).round() as usize;
    rates.get(rank.clamp(1, rates.len()) - 1).copied()
}

/// The least whole number of rows per second that counts as having kept the target:
/// `round(share * target)`.
pub fn least_accepted(target_rows_per_second: f64, share: f64) -> f64 {
    (share * target_rows_per_second).round()
}

/// The original's service level rule, on rounded figures: a target of 1000 at 95 % is kept by 949.5
/// and missed by 949.4.
pub fn keeps_target(rows_per_second: f64, target_rows_per_second: f64, share: f64) -> bool {
    rows_per_second.round() >= least_accepted(target_rows_per_second, share)
}

/// Share of the window's whole seconds in which the background rate was kept; `None` when there is
/// no whole second.
///
/// An even pace of few large statements is quantised: 2 statements a second of 50 rows give 50, 100
/// or 150 rows in a second, by where its borders fall. A second is therefore kept if one more
/// statement of each client would reach `share * target`.
pub(crate) fn seconds_on_target(
    spec: &StepSpec,
    target: &Target,
    intervals: &[Interval],
    window: Span,
) -> Option<f64> {
    let rows_per_operation =
        spec.kinds.iter().find(|kind| kind.kind == target.kind).map_or(0, |kind| kind.rows_per_operation);
    let tolerance = f64::from(rows_per_operation) * f64::from(spec.clients);
    let seconds = by_second(intervals, &target.kind, None, window);
    if seconds.is_empty() {
        return None;
    }
    let least = target.share * target.rows_per_second;
    let kept = seconds.iter().filter(|(_, sum)| sum.rows + tolerance >= least).count();
    Some(kept as f64 / seconds.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{index_spec, interval, read_write_spec, read_write_step};

    #[test]
    fn the_headline_rate_is_what_was_done_in_the_window_for_a_second_of_it() {
        // Window 2.5 s. Queries: client 1 does 100 + 110 + 40, client 2 90 + 100 + 60 = 500 in all.
        let step = read_write_step();
        let window = Span::new(0, 2_500_000);
        assert_eq!(rate(&step.spec, &step.intervals, "query", window), 500.0 / 2.5);
        // Inserts: 2 clients x (2 + 2 + 1) statements x 50 rows = 500 rows.
        assert_eq!(rate(&step.spec, &step.intervals, "insert", window), 500.0 / 2.5);
    }

    #[test]
    fn a_window_of_no_length_has_rate_zero() {
        let step = read_write_step();
        assert_eq!(rate(&step.spec, &step.intervals, "query", Span::new(0, 0)), 0.0);
    }

    #[test]
    fn work_between_samples_covers_the_samples_time_not_the_windows() {
        // Sample at 2.25 s: half of the last half second, 50 of 100 queries: 190 + 210 + 50.
        let step = read_write_step();
        let between = Span { from_us: -1_000, to_us: 2_250_000 };
        let done = work(&step.spec, &step.intervals, "query", Span::new(0, 2_500_000), between);
        assert_eq!(done, 450.0);
    }

    #[test]
    fn one_piece_of_work_is_spread_over_its_window() {
        // 1000 rows indexed by the one answer at 4 s; a sample at 3 s has seen three quarters of
        // the work.
        let intervals =
            [interval(0, 1_000_000, 1, "index", 0, 0), interval(3_000_000, 4_000_000, 1, "index", 1, 1000)];
        let window = Span::new(0, 4_000_000);
        let between = Span { from_us: -5_000, to_us: 3_000_000 };
        assert_eq!(work(&index_spec(), &intervals, "index", window, between), 750.0);
    }

    #[test]
    fn percentiles_of_throughput_run_from_fast_to_slow() {
        let rates = |n: u32| (1..=n).map(f64::from).collect::<Vec<_>>();
        // n = 10: rank round(5) = 5th from the top of 10..1 is 6; rank round(9.9) = 10th is 1.
        assert_eq!(at_rank(rates(10), 50.0), Some(6.0));
        assert_eq!(at_rank(rates(10), 99.0), Some(1.0));
        // n = 150: rank round(148.5) = 149th from the top of 150..1 is 2.
        assert_eq!(at_rank(rates(150), 99.0), Some(2.0));
        assert_eq!(at_rank(rates(9), 50.0), None);
    }

    #[test]
    fn throughput_percentiles_look_at_client_one_only() {
        let mut intervals = Vec::new();
        for second in 0..10 {
            let from_us = second * 1_000_000;
            intervals.push(interval(from_us, from_us + 1_000_000, 1, "query", second + 1, 0));
            intervals.push(interval(from_us, from_us + 1_000_000, 2, "query", 1_000, 0));
        }
        let window = Span::new(0, 10_700_000);
        let spec = read_write_spec();
        assert_eq!(throughput_percentile(&spec, &intervals, window, 50.0), Some(6.0));
        assert_eq!(throughput_percentile(&spec, &intervals, window, 99.0), Some(1.0));
        assert_eq!(throughput_percentile(&index_spec(), &intervals, window, 50.0), None);
    }

    #[test]
    fn a_step_that_ends_by_a_count_has_the_percentiles_of_one_that_ends_by_time() {
        let mut intervals = Vec::new();
        for second in 0..13 {
            let (from_us, to_us) = (second * 1_000_000, (second + 1) * 1_000_000);
            // Client 1 has its last answer in second 10, client 2 goes on alone.
            let done = if second < 10 { 20 + second } else { u64::from(second == 10) };
            intervals.push(interval(from_us, to_us, 1, "query", done, 0));
            intervals.push(interval(from_us, to_us, 2, "query", 15, 0));
        }
        let window = Span::new(0, 13_000_000);
        let mut spec = read_write_spec();
        spec.window = dbdyno_record::WindowRule::LastEnded;
        assert_eq!(throughput_percentile(&spec, &intervals, window, 99.0), Some(20.0));
        let total = (20..30).sum::<u64>() + 1 + 13 * 15;
        assert_eq!(rate(&spec, &intervals, "query", window), total as f64 / 13.0, "the tail is in the rate");
        assert_eq!(
            work(&spec, &intervals, "query", window, Span::new(0, 1_000_000)),
            35.0,
            "counted, not spread"
        );
        let sparse = throughput_percentile(&spec, &intervals, Span::new(0, 130_000_000), 50.0);
        assert_eq!(sparse, None);
    }

    #[test]
    fn the_target_is_judged_on_rounded_figures() {
        assert!(keeps_target(949.5, 1000.0, 0.95));
        assert!(!keeps_target(949.4, 1000.0, 0.95));
        // round(0.95 * 250) = round(237.5) = 238
        assert!(!keeps_target(237.4, 250.0, 0.95));
        assert!(keeps_target(237.6, 250.0, 0.95));
    }

    #[test]
    fn a_second_short_of_one_statement_for_each_client_still_keeps_the_target() {
        // Target 200 rows/s of 2 clients, share 0.95: least 190; tolerance 2 x 50 = 100 rows.
        let mut spec = read_write_spec();
        spec.target.as_mut().unwrap().rows_per_second = 200.0;
        let target = spec.target.clone().unwrap();
        let second =
            |n: u64, rows| interval(n * 1_000_000, (n + 1) * 1_000_000, 1, "insert", rows / 50, rows);
        let intervals = [second(0, 200), second(1, 100), second(2, 50), second(3, 300)];
        let kept = seconds_on_target(&spec, &target, &intervals, Span::new(0, 4_500_000));
        assert_eq!(kept, Some(0.75));
        assert_eq!(seconds_on_target(&spec, &target, &intervals, Span::new(0, 900_000)), None);
    }
}
