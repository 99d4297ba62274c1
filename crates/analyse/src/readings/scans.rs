//! Scans of whole tables, which may be long against the window that cuts them: what of them lies in
//! it.

use dbdyno_record::{Interval, OperationClass, StepSpec, WindowRule};

use crate::readings::span::{Span, Tally, tally, tally_by_client};

/// Scans that take longer come in too few a second for its count to be a rate.
const LONG_SCAN_US: f64 = 100_000.0;

/// Whether `kind` scans over and over until a time is over, which cuts the scans that are then on
/// their way.
pub(crate) fn are_cut(spec: &StepSpec, kind: &str) -> bool {
    spec.class_of(kind) == OperationClass::Scan && spec.window == WindowRule::FirstEnded
}

/// Scans and rows in `window`, parts of scans included, with everything else that [`tally`] counts.
///
/// A count of answers is a whole number: of scans of 37.8 s a window of 600 s holds 15 or 16, and
/// which of them a server gets may hang on a thousandth of its speed. A connection scans all the
/// time, so the number of its scans is its time ÷ their mean service time, the rate "by average
/// latency" of the published microbenchmarks since 2025. It differs from the count by less than one
/// scan, because no more is cut at either end. That is also a bound where scans are so short that
/// the client's time between them counts.
///
/// Each connection scans one table, and tables may differ in size. So each client is counted by its
/// own scans and their rows, and the clients are added up: a mean over all of them would be that of
/// those with the most answers. Of more than 64 connections some are one client in the record, of
/// which only the sums are known; they have the same table wherever the number of tables divides
/// that of clients.
pub(crate) fn scanned(spec: &StepSpec, intervals: &[Interval], kind: &str, window: Span) -> Tally {
    let all = tally(intervals, kind, window);
    let clients = clients(spec, intervals, kind, window);
    let parts: Vec<(f64, f64)> = clients.iter().map(|client| client.in_window(window)).collect();
    Tally {
        operations: parts.iter().map(|(scans, _)| scans).sum(),
        rows: parts.iter().map(|(_, rows)| rows).sum(),
        ..all
    }
}

/// Whether any client's scans are so long that single seconds say nothing.
pub(crate) fn are_long(spec: &StepSpec, intervals: &[Interval], window: Span) -> bool {
    let kind = spec.headline.kind.as_str();
    are_cut(spec, kind) && clients(spec, intervals, kind, window).iter().any(Client::scans_long)
}

/// What is known of one client's scans.
struct Client {
    connections: f64,
    /// What ended in the window.
    counted: Tally,
    /// The scans whose times and rows count: those that ended in the window, if there are at least
    /// as many as connections, else all since it began. The engine waits for scans that are under
    /// way when the window ends, so that is one for each connection at least, but for scans that
    /// failed.
    known: Tally,
}

impl Client {
    /// Scans and rows in the window. Of a client none of whose scans ever ended it is unknown how
    /// far they came: it has none.
    fn in_window(&self, window: Span) -> (f64, f64) {
        let Self { connections, counted, known } = self;
        let busy_us = connections * window.seconds() * 1e6 - counted.down_us;
        if known.service_sum_us <= 0.0 || busy_us <= 0.0 {
            return (counted.operations, counted.rows);
        }
        let scans = busy_us * known.operations / known.service_sum_us;
        let least = (counted.operations - connections).max(0.0);
        let scans = scans.clamp(least, counted.operations + connections);
        (scans, scans * known.rows / known.operations)
    }

    fn scans_long(&self) -> bool {
        let known = &self.known;
        known.operations == 0.0 || known.service_sum_us / known.operations > LONG_SCAN_US
    }
}

fn clients(spec: &StepSpec, intervals: &[Interval], kind: &str, window: Span) -> Vec<Client> {
    let kinds = spec.kinds.iter().filter(|described| described.kind == kind);
    let connections = f64::from(kinds.map(|kind| kind.connections_per_client).sum::<u32>());
    let since = tally_by_client(intervals, kind, Span { to_us: i64::MAX, ..window });
    let inside = tally_by_client(intervals, kind, window);
    let client = |(counted, since): (Tally, Tally)| {
        let known = if counted.operations >= connections { counted } else { since };
        Client { connections, counted, known }
    };
    inside.into_values().zip(since.into_values()).map(client).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::scan_step;
    use crate::readings::rates::{rate, throughput_percentile, work};

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
    fn of_short_scans_the_count_stands() {
        // 10 ms of service, and 10 ms of the client's own between two scans: 50 scans a second, not
        // 100.
        let mut step = scan_step(&[(20_000, ROWS)], (0, 20 * SECOND));
        for interval in &mut step.intervals {
            interval.service_sum_us /= 2;
        }
        let window = Span::new(0, 20 * SECOND);
        let scans = rate(&step.spec, &step.intervals, "scan", window) / ROWS as f64;
        assert!((50.0..=50.05).contains(&scans), "{scans}");
        assert!(!are_long(&step.spec, &step.intervals, window));
    }

    #[test]
    fn long_scans_have_no_figures_of_single_seconds() {
        let step = scan_step(&[(37_800_000, ROWS)], (0, 600 * SECOND));
        let window = Span::new(0, 600 * SECOND);
        assert!(are_long(&step.spec, &step.intervals, window));
        assert_eq!(throughput_percentile(&step.spec, &step.intervals, window, 50.0), None);
    }

    #[test]
    fn time_in_which_a_connection_was_lost_is_not_scanned_in() {
        let mut step = scan_step(&[(50 * SECOND, ROWS)], (0, 600 * SECOND));
        // Of the 12 scans one was lost, and the connection with it for 50 s.
        let last = step.intervals.iter_mut().rfind(|interval| interval.done == 1).unwrap();
        (last.done, last.rows, last.service_sum_us, last.down_us) = (0, 0, 0, 50 * SECOND);
        let scans = scanned(&step.spec, &step.intervals, "scan", Span::new(0, 600 * SECOND));
        assert!((scans.operations - 11.0).abs() < 1e-9, "{}", scans.operations);
    }

    #[test]
    fn tables_of_different_sizes_count_each_with_the_speed_of_its_own_connection() {
        let window = (0, 60 * SECOND);
        let of = |connections: &[(u64, u64)]| {
            let step = scan_step(connections, window);
            scanned(&step.spec, &step.intervals, "scan", Span::new(0, window.1)).rows / 1e6
        };
        // Of the large table no scan ends in the window, or one: 0.6 of 100 million rows, 1.5 times
        // 10 million.
        for (large, rows) in [((100 * SECOND, 100 * ROWS), 60.0), ((40 * SECOND, 10 * ROWS), 15.0)] {
            let found = of(&[large, (SECOND, ROWS)]);
            assert!((found - (rows + 60.0)).abs() < 1e-6, "{large:?}: {found} million rows");
        }
    }

    #[test]
    fn connections_that_are_recorded_as_one_client_share_their_mean() {
        // More than 64 connections are groups: two of 90 s in a window of 60 s, neither of which is
        // answered in it.
        let mut step = scan_step(&[(90 * SECOND, ROWS); 2], (0, 60 * SECOND));
        step.spec.clients = 1;
        step.spec.kinds[0].connections_per_client = 2;
        for interval in &mut step.intervals {
            interval.client = 1;
        }
        let scans = scanned(&step.spec, &step.intervals, "scan", Span::new(0, 60 * SECOND)).operations;
        assert!((scans - 2.0 * 60.0 / 90.0).abs() < 1e-9, "{scans}");
    }

    #[test]
    fn a_connection_that_never_had_an_answer_counts_nothing() {
        // The first scan of the second connection fails, and its step ends with it.
        let window = (0, 60 * SECOND);
        let mut step = scan_step(&[(40 * SECOND, ROWS), (90 * SECOND, 100 * ROWS)], window);
        for interval in step.intervals.iter_mut().filter(|interval| interval.client == 2) {
            (interval.failed, interval.done, interval.rows, interval.service_sum_us) =
                (interval.done, 0, 0, 0);
        }
        let found = scanned(&step.spec, &step.intervals, "scan", Span::new(0, window.1));
        assert!((found.operations - 1.5).abs() < 1e-9 && (found.rows - 1.5e6).abs() < 1e-3, "{found:?}");
    }

    #[test]
    fn long_scans_of_one_connection_are_not_hidden_by_many_short_ones_of_another() {
        let step = scan_step(&[(10_000, 1_000), (40 * SECOND, 10 * ROWS)], (0, 60 * SECOND));
        assert!(are_long(&step.spec, &step.intervals, Span::new(0, 60 * SECOND)));
    }
}
