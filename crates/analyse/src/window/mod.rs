//! Sums up a step's common window: its operations, counters and CPU times. [`WindowSummary`] reads
//! the records once, and all figures of the step are formulas over its values.

pub(crate) mod counters;
pub(crate) mod cpu;
mod kind;

use std::collections::BTreeMap;

use dbdyno_record::{OperationClass, StepEvent, StepRecord, StepSpec, Unit, VariantInfo, WindowRule};

use self::counters::{Counters, change};
pub(crate) use self::kind::{KindSummary, amount};
use crate::model::TooFewOperations;
use counters::CounterChange;
pub(crate) use counters::{SECOND_US, Span, covered_us};

/// A step with fewer operations than this is one piece of work, or a few: an index build, or one
/// scan per connection.
const MIN_OPERATIONS: f64 = 10.0;
/// With fewer answers per second on average, a whole second has too few answers for a rate.
const MIN_PER_SECOND: f64 = 10.0;

/// A window with fewer operations than this decides nothing. The rate of n operations of random
/// length has a standard error of up to 1 / √n, which is 22 % for 20. With fewer, the distribution
/// is so skewed that confidence intervals over a few blocks are wrong.
const MIN_FOR_VERDICT: f64 = 20.0;

/// Where the database works. It decides whose CPU and memory count as the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hosting {
    /// The database is a server process on this host, sampled by its process id.
    Process,
    /// The database works inside dbdyno, so the client's figures are those of client and database
    /// together.
    Embedded,
    /// Others run the server, and its process cannot be sampled. Its CPU, memory and disk are
    /// unknown.
    External,
    /// There is no database: dbdyno measures itself.
    Nothing,
}

impl Hosting {
    /// The hosting of a variant in one step. A server that others run counts as a process like any
    /// other where it was sampled.
    pub(crate) fn in_step(variant: &VariantInfo, counters: &Counters) -> Self {
        match Self::of(variant) {
            Self::External if counters.contains_key("server") => Self::Process,
            hosting => hosting,
        }
    }

    pub(crate) fn of(variant: &VariantInfo) -> Self {
        match variant.driver.as_str() {
            "null" => Self::Nothing,
            _ if variant.embedded => Self::Embedded,
            _ if variant.external => Self::External,
            _ => Self::Process,
        }
    }

    /// The source that samples the process in which the database works.
    pub(crate) fn source(self) -> Option<&'static str> {
        match self {
            Self::Process => Some("server"),
            Self::Embedded => Some("client"),
            Self::External | Self::Nothing => None,
        }
    }
}

/// The values of one step over its common window.
pub(crate) struct WindowSummary<'a> {
    pub(crate) spec: &'a StepSpec,
    pub(crate) events: &'a [StepEvent],
    pub(crate) counters: &'a Counters,
    /// The common window. Its length is zero for a step without one.
    pub(crate) window: Span,
    pub(crate) hosting: Hosting,
    /// Number of the host's CPUs.
    pub(crate) cpus: u32,
    /// The kinds of operations in the order of the specification.
    pub(crate) kinds: Vec<KindSummary<'a>>,
    /// The step is one piece of work, or a few, so that commits per second mean nothing for it.
    pub(crate) is_one_piece: bool,
    /// The step has so few answers that the rate of a single second means nothing. The answers
    /// between two counter samples need not cover the same work as the counters either.
    pub(crate) is_too_sparse: bool,
    /// The whole second in which the first client had done its share; `None` where all clients were
    /// at work in all the window's whole seconds.
    pub(crate) tail_from: Option<u64>,
}

impl<'a> WindowSummary<'a> {
    pub(crate) fn of(step: &'a StepRecord, hosting: Hosting, cpus: u32) -> Self {
        let window = step.window().map_or(Span::new(0, 0), |(from_us, to_us)| Span::new(from_us, to_us));
        let kinds: Vec<KindSummary<'_>> =
            step.spec.kinds.iter().map(|spec| KindSummary::of(step, spec, window)).collect();
        let headline = kinds.iter().find(|kind| kind.spec.kind == step.spec.headline.kind);
        // A window that ends with the first connection has all clients at work until then. A window
        // that ends by a count may be short, and has a tail.
        let ends_by_a_count = step.spec.window == WindowRule::LastEnded;
        let operations = headline.map_or(0.0, |kind| kind.answered.operations);
        let enough = (MIN_PER_SECOND * window.seconds()).max(MIN_OPERATIONS);
        Self {
            spec: &step.spec,
            events: &step.events,
            counters: &step.counters,
            window,
            hosting,
            cpus,
            is_one_piece: ends_by_a_count && operations < MIN_OPERATIONS,
            is_too_sparse: ends_by_a_count && operations < enough,
            tail_from: headline.filter(|_| ends_by_a_count).and_then(|kind| tail_from(kind, window)),
            kinds,
        }
    }

    pub(crate) fn kind(&self, name: &str) -> Option<&KindSummary<'a>> {
        self.kinds.iter().find(|kind| kind.spec.kind == name)
    }

    /// The kind that the step's figure counts. Every record that dbdyno writes describes it;
    /// without it a step has no rate.
    pub(crate) fn headline(&self) -> Option<&KindSummary<'a>> {
        self.kind(&self.spec.headline.kind)
    }

    pub(crate) fn headline_rate(&self) -> f64 {
        self.headline().map_or(0.0, KindSummary::rate)
    }

    /// The kind whose rows are inserts. It is the headline kind where that counts rows that are
    /// inserted or indexed, and otherwise the background inserts, if any. A scan's rows are
    /// neither.
    pub(crate) fn insert_kind(&self) -> Option<&KindSummary<'a>> {
        let headline = self.headline()?;
        if headline.unit == Unit::Rows && headline.spec.class != OperationClass::Scan {
            return Some(headline);
        }
        self.kinds.iter().find(|kind| kind.spec.class == OperationClass::Insert)
    }

    /// Returns `figure`, or `None` for a step without a common window, because its figures are
    /// unknown and not 0.
    pub(crate) fn in_window(&self, figure: f64) -> Option<f64> {
        (self.window.seconds() > 0.0).then_some(figure)
    }

    /// Whether single seconds of the headline kind have meaningful rates. They have none where
    /// answers are sparse or scans are long.
    pub(crate) fn has_telling_seconds(&self) -> bool {
        !self.is_too_sparse && !self.headline().is_some_and(|kind| kind.has_long_scans)
    }

    /// The part of the window in which all clients were at work.
    pub(crate) fn all_at_work(&self) -> Span {
        match self.tail_from {
            Some(second) => self.window.overlap(Span::new(0, second * SECOND_US)),
            None => self.window,
        }
    }

    /// Returns how many operations a timed window has and how many a verdict needs, where it has
    /// too few. It is `None` for steps that end by a count, because their figure is the time,
    /// however few operations they have. It is also `None` where nothing was answered, because
    /// there is no rate then.
    pub(crate) fn too_few(&self) -> Option<TooFewOperations> {
        let kind = self.headline()?;
        let is_rate = matches!(kind.unit, Unit::Operations | Unit::Rows);
        if !is_rate || self.spec.window != WindowRule::FirstEnded || self.window.seconds() <= 0.0 {
            return None;
        }
        let needed = MIN_FOR_VERDICT.max(f64::from(kind.connections));
        let operations = kind.done.operations;
        let enough_seconds = self.window.seconds() * needed / operations;
        (operations > 0.0 && operations < needed).then_some(TooFewOperations {
            operations,
            needed,
            enough_seconds,
        })
    }

    pub(crate) fn change(&self, source: &str, keys: &[&str]) -> Option<CounterChange> {
        self.change_over(source, keys, self.window)
    }

    /// The increase in a sum of counters between the samples nearest to the ends of `span`.
    pub(crate) fn change_over(&self, source: &str, keys: &[&str], span: Span) -> Option<CounterChange> {
        change(self.counters, source, keys, span)
    }

    /// The increase in a sum of counters, per second between its samples.
    pub(crate) fn per_second(&self, source: &str, keys: &[&str]) -> Option<f64> {
        Some(self.change(source, keys)?.per_second())
    }

    /// The increase in a sum of counters, per unit of the headline done between its samples.
    pub(crate) fn per_unit(&self, source: &str, keys: &[&str]) -> Option<f64> {
        self.per_headline_unit(self.change(source, keys)?)
    }

    /// A counter's increase per unit of the headline done between the same two samples.
    pub(crate) fn per_headline_unit(&self, change: CounterChange) -> Option<f64> {
        self.per_unit_of(self.headline()?, change)
    }

    /// A counter's increase per unit of `kind` done between the same two samples, so that a cost
    /// and the work it paid for cover the same time; `None` when no work was done.
    pub(crate) fn per_unit_of(&self, kind: &KindSummary<'_>, change: CounterChange) -> Option<f64> {
        let work = self.work(kind, change.between);
        (work > 0.0).then(|| change.value / work)
    }

    /// Units that `kind` did between two counter samples.
    ///
    /// Where answers are few, the work between the samples differs from the answers that came
    /// between them. The work is then computed from the window's rate, also for time in the
    /// warm-up.
    fn work(&self, kind: &KindSummary<'_>, between: Span) -> f64 {
        if self.is_too_sparse || kind.has_long_scans {
            let at_work = Span { from_us: 0, ..self.window };
            return kind.rate() * at_work.overlap(between).seconds();
        }
        kind.amount(&kind.intervals.sum(between))
    }
}

/// The second in which the first client was done. Each connection has its share of the operations,
/// or of the rows to load. A slow connection continues alone after the others, and seconds with one
/// busy connection out of many are not stalls of the server. A client that is stuck counts as busy,
/// because its last answer is yet to come. Of more than 64 connections, the record counts some as
/// one client, which ends with the last of them.
fn tail_from(headline: &KindSummary<'_>, window: Span) -> Option<u64> {
    let mut last_answers: BTreeMap<u32, u64> = BTreeMap::new();
    for interval in &headline.intervals.0 {
        if interval.done + interval.failed + interval.dropped > 0 {
            let last = last_answers.entry(interval.client).or_default();
            *last = (*last).max(interval.from_us / SECOND_US);
        }
    }
    last_answers.into_values().min().filter(|second| window.whole_seconds().contains(second))
}

#[cfg(test)]
mod tests {
    use dbdyno_record::Interval;

    use super::*;
    use crate::fixtures::{
        completed, in_window, index_spec, interval, load_spec, read_write_step, scan_step, summary,
    };

    /// A step of these intervals over a window from its barrier.
    fn step(spec: StepSpec, intervals: &[Interval], to_us: u64) -> StepRecord {
        completed(spec, intervals.to_vec(), (0, to_us), Counters::new())
    }

    fn rate(step: &StepRecord, kind: &str) -> f64 {
        summary(step).kind(kind).unwrap().rate()
    }

    fn work(step: &StepRecord, kind: &str, between: Span) -> f64 {
        let summary = summary(step);
        summary.work(summary.kind(kind).unwrap(), between)
    }

    #[test]
    fn the_headline_rate_is_the_work_in_the_window_per_second() {
        // The window is 2.5 s. Client 1 does 100 + 110 + 40 queries and client 2 does 90 + 100 +
        // 60: 500 in all.
        let step = read_write_step();
        assert_eq!(rate(&step, "query"), 500.0 / 2.5);
        // Inserts are 2 clients x (2 + 2 + 1) statements x 50 rows = 500 rows.
        assert_eq!(rate(&step, "insert"), 500.0 / 2.5);
    }

    #[test]
    fn a_window_of_no_length_has_rate_zero() {
        assert_eq!(rate(&in_window(read_write_step(), (0, 0)), "query"), 0.0);
    }

    #[test]
    fn work_between_samples_covers_the_samples_time_not_the_windows() {
        // The sample at 2.25 s has half of the last half second, or 50 of 100 queries: 190 + 210 +
        // 50.
        let step = read_write_step();
        let between = Span { from_us: -1_000, to_us: 2_250_000 };
        assert_eq!(work(&step, "query", between), 450.0);
    }

    #[test]
    fn one_piece_of_work_is_spread_over_its_window() {
        // The one answer at 4 s indexes 1000 rows. A sample at 3 s has seen three quarters of the
        // work.
        let intervals =
            [interval(0, 1_000_000, 1, "index", 0, 0), interval(3_000_000, 4_000_000, 1, "index", 1, 1000)];
        let between = Span { from_us: -5_000, to_us: 3_000_000 };
        assert_eq!(work(&step(index_spec(), &intervals, 4_000_000), "index", between), 750.0);
    }

    const SECOND: u64 = 1_000_000;
    const ROWS: u64 = 1_000_000;

    /// Rows per second that this number of connections appears to scan in a window, where each scan
    /// takes `scan_us` microseconds.
    fn rows_per_second(connections: usize, scan_us: u64, window: (u64, u64)) -> f64 {
        rate(&scan_step(&vec![(scan_us, ROWS); connections], window), "scan")
    }

    #[test]
    fn a_difference_of_one_percent_shows_on_both_sides_of_a_whole_number_of_scans() {
        // 600 s hold 15.9 scans of 37.8 s and 15.7 of 38.18 s, which are 15 answers each. They hold
        // 16.04 scans of 37.4 s, which are 16 answers.
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
    fn the_scan_rate_follows_from_the_scan_time_on_any_number_of_connections() {
        // The scans take 37.8 s, so that most seconds have no answer; then 0.6 s and 90 ms; and 70
        // s, so that the window has no answer at all.
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
        // The sample is at 599.2 s instead of 600 s. It counts the rows of 599.2 s, not the rows of
        // the answers that had arrived by then.
        let window = (0, 600 * SECOND);
        let step = scan_step(&[(37_800_000, ROWS)], window);
        let between = Span { from_us: -1_000, to_us: 599_200_000 };
        let found = work(&step, "scan", between);
        assert!((found - 599.2e6 / 37.8).abs() < 1.0, "{found}");
    }

    #[test]
    fn samples_that_include_the_warm_up_include_its_scans() {
        // The window is 10 s after a warm-up of 5 s. The samples are at the step's beginning and a
        // little after the window's end.
        let window = (5 * SECOND, 15 * SECOND);
        let step = scan_step(&[(3 * SECOND, ROWS)], window);
        let between = Span { from_us: -50_000, to_us: 15_040_000 };
        let found = work(&step, "scan", between);
        assert!((found - 15.0e6 / 3.0).abs() < 1e-6, "{found}");
    }

    #[test]
    fn long_scans_have_no_figures_of_single_seconds() {
        let step = scan_step(&[(37_800_000, ROWS)], (0, 600 * SECOND));
        let summary = summary(&step);
        assert!(summary.kinds[0].has_long_scans && !summary.has_telling_seconds());
    }

    #[test]
    fn tables_of_different_sizes_count_each_with_the_speed_of_its_own_connection() {
        let window = (0, 60 * SECOND);
        let of = |connections: &[(u64, u64)]| {
            let step = scan_step(connections, window);
            summary(&step).kinds[0].done.rows / 1e6
        };
        // No scan of the large table ends in the window, or one does: 0.6 of 100 million rows, or
        // 1.5 times 10 million.
        for (large, rows) in [((100 * SECOND, 100 * ROWS), 60.0), ((40 * SECOND, 10 * ROWS), 15.0)] {
            let found = of(&[large, (SECOND, ROWS)]);
            assert!((found - (rows + 60.0)).abs() < 1e-6, "{large:?}: {found} million rows");
        }
    }

    #[test]
    fn long_scans_of_one_connection_are_not_hidden_by_many_short_ones_of_another() {
        let step = scan_step(&[(10_000, 1_000), (40 * SECOND, 10 * ROWS)], (0, 60 * SECOND));
        assert!(summary(&step).kinds[0].has_long_scans);
    }

    /// A step of updates that ends by a count. The numbers are each client's operations per second.
    fn counted(clients: &[&[u64]], to_us: u64) -> StepRecord {
        let mut spec = load_spec();
        spec.window = WindowRule::LastEnded;
        let of_client = |(client, seconds): (u32, &&[u64])| -> Vec<Interval> {
            let of_second = |(second, done): (u64, &u64)| {
                interval(second * SECOND_US, (second + 1) * SECOND_US, client, "insert", *done, 0)
            };
            (0..).zip(seconds.iter()).map(of_second).collect()
        };
        let intervals: Vec<Interval> = (1..).zip(clients).flat_map(of_client).collect();
        step(spec, &intervals, to_us)
    }

    #[test]
    fn seconds_in_which_a_client_had_done_its_share_are_the_tail() {
        // Client 1 ended somewhere in second 2. In second 4 of the window neither client was at
        // work, because the step waited for something else before it ended.
        let mut step = counted(&[&[20, 20, 20, 0, 0], &[15, 15, 15, 15, 0]], 5_000_000);
        let found = summary(&step);
        assert_eq!((found.tail_from, found.all_at_work()), (Some(2), Span::new(0, 2_000_000)));
        step.spec = load_spec();
        let found = summary(&step);
        assert_eq!(found.all_at_work(), found.window, "the first client ends the window");
    }

    #[test]
    fn clients_that_end_in_the_same_last_second_leave_no_tail() {
        let step = counted(&[&[20, 20, 7], &[20, 20, 3]], 2_700_000);
        let found = summary(&step);
        assert_eq!((found.tail_from, found.all_at_work()), (None, found.window));
    }

    #[test]
    fn a_stall_of_all_clients_before_their_last_answers_is_no_tail() {
        let step = counted(&[&[20, 0, 0, 0, 1], &[20, 0, 0, 0, 1]], 4_100_000);
        assert_eq!(summary(&step).tail_from, None);
    }

    #[test]
    fn a_window_with_fewer_than_twenty_operations_or_one_per_connection_is_too_short() {
        let found = |connections: usize, scan_us: u64| {
            summary(&scan_step(&vec![(scan_us, 1); connections], (0, 10_000_000))).too_few()
        };
        assert_eq!(found(1, 500_000), None);
        let few = found(1, 1_000_000).unwrap();
        assert_eq!((few.operations, few.needed, few.enough_seconds), (10.0, 20.0, 20.0));
        let many_connections = found(64, 15_000_000).unwrap();
        assert!((many_connections.operations - 64.0 / 1.5).abs() < 1e-6, "{many_connections:?}");
        assert_eq!(many_connections.needed, 64.0);
        assert_eq!(summary(&counted(&[&[1, 0, 0]], 3_000_000)).too_few(), None, "it ends by a count");
    }

    #[test]
    fn few_operations_are_one_piece_of_work_and_ten_per_second_give_each_second_a_rate() {
        let of = |clients: &[&[u64]], to_us| {
            let step = counted(clients, to_us);
            let found = summary(&step);
            (found.is_one_piece, found.is_too_sparse)
        };
        assert_eq!(of(&[&[9]], 1_000_000), (true, true));
        assert_eq!(of(&[&[0, 0, 0, 12]], 4_000_000), (false, true));
        assert_eq!(of(&[&[9, 8, 9, 8], &[9, 8, 9, 8]], 4_000_000), (false, false));
        assert!(summary(&step(index_spec(), &[], 4_000_000)).is_one_piece);
        let load = step(load_spec(), &[], 4_000_000);
        let found = summary(&load);
        assert!(!found.is_one_piece && !found.is_too_sparse);
    }
}
