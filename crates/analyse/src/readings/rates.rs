//! Rates over the common window: headline, background, and the seconds that kept the target.

use dbdyno_record::{Interval, OperationClass, StepSpec, Target, Unit, WindowRule};

use crate::readings::counted::{all_at_work, is_too_sparse};
use crate::readings::span::{Span, Tally, by_second, tally, tally_by_client};

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

/// Scans that take longer come in too few a second for its count to be a rate.
const LONG_SCAN_US: f64 = 100_000.0;

/// What `kind` did in the common window, each operation counted by the share of its cycle that lies
/// in it.
///
/// A count of answers is a whole number: of operations of 1.45 s and of 1.65 s a window of 5 s holds
/// three each, and a connection that is a tenth slower would have the same rate.
pub(crate) fn done(intervals: &[Interval], kind: &str, window: Span) -> Tally {
    let mut sum = tally(intervals, kind, window);
    if window.seconds() > 0.0 {
        for interval in intervals.iter().filter(|interval| interval.kind == kind) {
            sum.operations += interval.cut.operations;
            sum.rows += interval.cut.rows;
            sum.cycle_sum_us += interval.cut.cycle_us;
        }
    }
    sum
}

/// Units (rows or operations) that `kind` did in the window, for one second of the window.
pub(crate) fn rate(spec: &StepSpec, intervals: &[Interval], kind: &str, window: Span) -> f64 {
    let done = done(intervals, kind, window);
    per_second(amount(unit_of(spec, kind), (done.operations, done.rows)), window)
}

/// Units that `kind` did between two counter samples, so that a cost and the work it paid for cover
/// the same time.
///
/// Where answers are few, those that came between the samples are not the work that was done there:
/// the window's rate is taken instead, for the warm-up too.
pub(crate) fn work(spec: &StepSpec, intervals: &[Interval], kind: &str, window: Span, between: Span) -> f64 {
    if is_too_sparse(spec, intervals, window) || has_long_scans(spec, intervals, kind, window) {
        let at_work = Span { from_us: 0, ..window };
        return rate(spec, intervals, kind, window) * at_work.overlap(between).seconds();
    }
    let tally = tally(intervals, kind, between);
    amount(unit_of(spec, kind), (tally.operations, tally.rows))
}

/// Whether single seconds of the headline kind say something: not of one piece of work, and not of
/// long scans.
pub(crate) fn has_telling_seconds(spec: &StepSpec, intervals: &[Interval], window: Span) -> bool {
    !is_too_sparse(spec, intervals, window) && !has_long_scans(spec, intervals, &spec.headline.kind, window)
}

/// Whether `kind` scans tables over and over until a time is over, and any client's scans are so
/// long that a second's count of them says nothing.
fn has_long_scans(spec: &StepSpec, intervals: &[Interval], kind: &str, window: Span) -> bool {
    if spec.class_of(kind) != OperationClass::Scan || spec.window != WindowRule::FirstEnded {
        return false;
    }
    // The engine waits for the scans that are under way when the window ends.
    let clients = tally_by_client(intervals, kind, Span { to_us: i64::MAX, ..window });
    clients
        .values()
        .any(|scans| scans.service_sum_us > LONG_SCAN_US * scans.operations || scans.operations == 0.0)
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
    use crate::fixtures::{index_spec, interval, read_write_spec, read_write_step, scan_step};

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

    const SECOND: u64 = 1_000_000;
    const ROWS: u64 = 1_000_000;

    /// Rows a second that this many connections are said to scan in a window, each scan of so many
    /// microseconds.
    fn rows_per_second(connections: usize, scan_us: u64, window: (u64, u64)) -> f64 {
        let step = scan_step(&vec![(scan_us, ROWS); connections], window);
        rate(&step.spec, &step.intervals, "scan", Span::new(window.0, window.1))
    }

    #[test]
    fn servers_that_differ_by_a_hundredth_differ_so_on_both_sides_of_a_whole_number_of_scans() {
        // 600 s hold 15.9 scans of 37.8 s and 15.7 of 38.18 s: 15 answers each. Of 37.4 s they hold
        // 16.04: 16 answers.
        for (scan_us, slower_us) in
            [(37_400_000, 37_774_000), (37_800_000, 38_178_000), (299_000_000, 301_990_000)]
        {
            let window = (0, 600 * SECOND);
            for connections in [1, 4] {
                let ratio = rows_per_second(connections, slower_us, window)
                    / rows_per_second(connections, scan_us, window);
                assert!((ratio - 1.0 / 1.01).abs() < 1e-6, "{scan_us} µs, {connections}: {ratio}");
            }
        }
        let alone = rows_per_second(1, 37_400_000, (0, 600 * SECOND));
        assert!((alone - 1e6 / 37.4).abs() < 1e-3, "{alone}");
    }

    #[test]
    fn the_rate_of_scans_is_that_of_their_length_on_any_number_of_connections() {
        // Scans of 37.8 s, in most seconds of which nothing is answered; of 0.6 s and 90 ms; and of
        // 70 s, of which the window has no answer at all.
        for scan_us in [37_800_000, 600_000, 90_000, 70_000_000] {
            for connections in [1, 2, 4] {
                let truth = connections as f64 * 1e12 / scan_us as f64;
                let found = rows_per_second(connections, scan_us, (0, 60 * SECOND));
                assert!((found / truth - 1.0).abs() < 1e-6, "{scan_us} µs, {connections}: {found}");
            }
        }
    }

    #[test]
    fn a_scan_that_began_in_the_warm_up_counts_with_the_part_after_it() {
        let window = (60 * SECOND, 660 * SECOND);
        let found = rows_per_second(1, 50 * SECOND, window);
        assert!((found - 1e6 / 50.0).abs() < 1e-6, "{found}");
    }

    #[test]
    fn a_scan_longer_than_the_window_has_the_rate_of_the_answer_that_came_after_it() {
        assert!((rows_per_second(2, 90 * SECOND, (0, 60 * SECOND)) - 2e6 / 90.0).abs() < 1e-6);
    }

    #[test]
    fn cost_and_rows_between_two_samples_fit_together() {
        // A sample at 599.2 s instead of 600: the rows of 599.2 s, not those of the answers that
        // came in them.
        let window = (0, 600 * SECOND);
        let step = scan_step(&[(37_800_000, ROWS)], window);
        let between = Span { from_us: -1_000, to_us: 599_200_000 };
        let found = work(&step.spec, &step.intervals, "scan", Span::new(0, window.1), between);
        assert!((found - 599.2e6 / 37.8).abs() < 1.0, "{found}");
    }

    #[test]
    fn samples_that_hold_the_warm_up_hold_its_scans() {
        // Window of 10 s after a warm-up of 5 s, samples at the step's beginning and a little after
        // the window's end.
        let window = (5 * SECOND, 15 * SECOND);
        let step = scan_step(&[(3 * SECOND, ROWS)], window);
        let between = Span { from_us: -50_000, to_us: 15_040_000 };
        let found = work(&step.spec, &step.intervals, "scan", Span::new(window.0, window.1), between);
        assert!((found - 15.0e6 / 3.0).abs() < 1e-6, "{found}");
    }

    #[test]
    fn long_scans_have_no_figures_of_single_seconds() {
        let step = scan_step(&[(37_800_000, ROWS)], (0, 600 * SECOND));
        let window = Span::new(0, 600 * SECOND);
        assert!(has_long_scans(&step.spec, &step.intervals, "scan", window));
        assert_eq!(throughput_percentile(&step.spec, &step.intervals, window, 50.0), None);
    }

    #[test]
    fn tables_of_different_sizes_count_each_with_the_speed_of_its_own_connection() {
        let window = (0, 60 * SECOND);
        let of = |connections: &[(u64, u64)]| {
            let step = scan_step(connections, window);
            done(&step.intervals, "scan", Span::new(0, window.1)).rows / 1e6
        };
        // Of the large table no scan ends in the window, or one: 0.6 of 100 million rows, 1.5 times
        // 10 million.
        for (large, rows) in [((100 * SECOND, 100 * ROWS), 60.0), ((40 * SECOND, 10 * ROWS), 15.0)] {
            let found = of(&[large, (SECOND, ROWS)]);
            assert!((found - (rows + 60.0)).abs() < 1e-6, "{large:?}: {found} million rows");
        }
    }

    #[test]
    fn long_scans_of_one_connection_are_not_hidden_by_many_short_ones_of_another() {
        let step = scan_step(&[(10_000, 1_000), (40 * SECOND, 10 * ROWS)], (0, 60 * SECOND));
        assert!(has_long_scans(&step.spec, &step.intervals, "scan", Span::new(0, 60 * SECOND)));
    }
}
