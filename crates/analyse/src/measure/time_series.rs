//! Computes a step's time series: what clients and device did second by second, how steady that
//! was, and what happened to the server. The figures describe one run; its seconds never count as
//! repetitions.

use dbdyno_record::{CounterSeries, StepEvent};

use crate::model::{DeviceSecond, SecondPoint, ServerEvent, ServerEventKind, Steadiness};
use crate::statistics::describe::median;
use crate::statistics::series::{WarmUp, longest_gap, modes, period, share_below_half_median, warm_up};
use crate::window::counters::{KIB, STATUS};
use crate::window::{KindSummary, Span, WindowSummary, amount};

const SECOND_US: f64 = 1e6;
const US_PER_MS: f64 = 1e3;
const DEVICE_KEYS: [&str; 7] =
    ["read_bytes", "written_bytes", "reads", "writes", "read_us", "write_us", "flush_us"];

/// Counters of checkpoints, by PostgreSQL version.
const CHECKPOINTS: [&str; 4] = [
    "pg_stat_bgwriter.checkpoints_timed",
    "pg_stat_bgwriter.checkpoints_req",
    "pg_stat_checkpointer.num_timed",
    "pg_stat_checkpointer.num_requested",
];
/// InnoDB's counters of the redo that a restart would apply: MariaDB's name, and MySQL's from
/// 8.0.30 on.
const CHECKPOINT_AGES: [&str; 2] = ["Innodb_checkpoint_age", "Innodb_redo_log_logical_size"];
/// A checkpoint makes the age fall by at least this share of its highest value from one sample to
/// the next. A smaller fall is gradual flushing.
const MIN_FALL_SHARE: f64 = 0.25;
const UPTIME: &str = "Uptime";

/// Rate and longest times in each whole second for all clients together, one kind of operation
/// after another. The kind whose rate is the step's headline comes first. Seconds are counted from
/// the window's first whole one.
pub(crate) fn seconds(step: &WindowSummary<'_>) -> Vec<SecondPoint> {
    let mut kinds: Vec<&KindSummary<'_>> = step.kinds.iter().collect();
    kinds.sort_by_key(|kind| kind.spec.kind != step.spec.headline.kind);
    let first = step.window.whole_seconds().start;
    let mut points = Vec::new();
    for kind in kinds {
        points.extend(kind.seconds.iter().map(|(second, sum)| SecondPoint {
            second: second - first,
            kind: kind.spec.kind.clone(),
            rate: amount(kind.unit, (sum.operations, sum.rows)),
            service_max_us: sum.service_max_us,
            response_max_us: sum.response_max_us,
        }));
    }
    points
}

/// The device's load between each two samples within the window.
pub(crate) fn device_seconds(step: &WindowSummary<'_>) -> Vec<DeviceSecond> {
    let Some(series) = step.counters.get("disk") else { return Vec::new() };
    // Every column begins with the first sample in the counter file, so the values at one position
    // are from the same sample in all columns.
    let columns = DEVICE_KEYS.map(|key| series.values(key).map(|(_, value)| value).collect::<Vec<_>>());
    let times = series.values("reads").map(|(at_us, _)| at_us);
    let samples: Vec<DeviceSample> = times
        .enumerate()
        .map(|(at, at_us)| (at_us, columns.each_ref().map(|column| column.get(at).copied())))
        .collect();
    samples.windows(2).filter_map(|pair| device_second(&pair[0], &pair[1], step.window)).collect()
}

type DeviceSample = (i64, [Option<i64>; 7]);

fn device_second(from: &DeviceSample, to: &DeviceSample, window: Span) -> Option<DeviceSecond> {
    let first = window.whole_seconds().start as f64;
    let middle = (from.0 + to.0) as f64 / 2.0 / SECOND_US;
    let seconds = (to.0 - from.0) as f64 / SECOND_US;
    let is_inside = window.from_us as f64 / SECOND_US <= middle && middle < window.to_us as f64 / SECOND_US;
    if !is_inside || seconds <= 0.0 || middle < first {
        return None;
    }
    // `key` is a position in `DEVICE_KEYS`.
    let increase = |key: usize| Some(to.1[key]?.checked_sub(from.1[key]?)?.max(0) as f64);
    let requests = increase(2)? + increase(3)?;
    let times = increase(4).zip(increase(5)).map(|(read, write)| read + write);
    let all_times = times.map(|times| times + increase(6).unwrap_or(0.0));
    Some(DeviceSecond {
        second: (middle - first) as u64,
        read_kib_per_second: increase(0)? / KIB / seconds,
        written_kib_per_second: increase(1)? / KIB / seconds,
        await_ms: times.filter(|_| requests > 0.0).map(|times| times / requests / US_PER_MS),
        queue_depth: all_times.map(|times| times / SECOND_US / seconds),
    })
}

/// The server's events in the order of time. Stalls are included only where the rates of single
/// seconds are meaningful.
pub(crate) fn server_events(step: &WindowSummary<'_>, seconds: &[SecondPoint]) -> Vec<ServerEvent> {
    let window = step.window;
    let first = window.whole_seconds().start as f64;
    let event = |what: ServerEventKind| move |at_us: i64| (at_us, what);
    let mut found: Vec<(i64, ServerEventKind)> = Vec::new();
    if let Some(status) = step.counters.get(STATUS) {
        let rises = CHECKPOINTS.iter().flat_map(|key| changes(status, key, |before, after| after > before));
        found.extend(rises.chain(age_falls(status)).map(event(ServerEventKind::Checkpoint)));
        let restarts = changes(status, UPTIME, |before, after| after < before);
        found.extend(restarts.into_iter().map(event(ServerEventKind::Restart)));
    }
    let lost = step.events.iter().filter_map(|event| match event {
        StepEvent::ConnectionLost { at_us, .. } => i64::try_from(*at_us).ok(),
        _ => None,
    });
    found.extend(lost.map(event(ServerEventKind::Lost)));
    found.retain(|(at_us, _)| (window.from_us..window.to_us).contains(at_us));
    let mut events: Vec<ServerEvent> = found
        .into_iter()
        .map(|(at_us, what)| ServerEvent { at_seconds: at_us as f64 / SECOND_US - first, what })
        .chain(stalls(seconds, &step.spec.headline.kind).into_iter().filter(|_| step.has_telling_seconds()))
        .collect();
    events.sort_by(|one, other| one.at_seconds.total_cmp(&other.at_seconds));
    // Many connections that are lost within one second are one event for a reader.
    events
        .dedup_by(|later, earlier| later.what == earlier.what && later.at_seconds - earlier.at_seconds < 1.0);
    events
}

/// Times of the samples for which `is_change` holds, given the counter's value in the sample before
/// and in the sample itself.
fn changes(series: &CounterSeries, key: &str, is_change: impl Fn(i64, i64) -> bool) -> Vec<i64> {
    let values: Vec<(i64, i64)> = series.values(key).collect();
    let pairs = values.windows(2).filter(|pair| is_change(pair[0].1, pair[1].1));
    pairs.map(|pair| pair[1].0).collect()
}

/// Times of the samples in which InnoDB's checkpoint age had fallen as it does in a checkpoint.
fn age_falls(series: &CounterSeries) -> Vec<i64> {
    let of = |key: &&str| {
        let highest = series.values(key).map(|(_, value)| value).max().unwrap_or(0) as f64;
        changes(series, key, |before, after| (before - after) as f64 > MIN_FALL_SHARE * highest.max(1.0))
    };
    CHECKPOINT_AGES.iter().find(|key| series.values(key).next().is_some()).map(of).unwrap_or_default()
}

/// The starts of stalls. A stall is one or more successive seconds in which no operation of `kind`
/// ended.
fn stalls(seconds: &[SecondPoint], kind: &str) -> Vec<ServerEvent> {
    let of_kind: Vec<&SecondPoint> = seconds.iter().filter(|point| point.kind == kind).collect();
    let begins = of_kind.windows(2).filter(|pair| pair[0].rate > 0.0 && pair[1].rate == 0.0);
    begins
        .map(|pair| ServerEvent { at_seconds: pair[1].second as f64, what: ServerEventKind::Stall })
        .collect()
}

/// Smallest number of whole seconds from which figures are computed. Fewer seconds show nothing.
const MIN_SECONDS: usize = 10;

/// Rates of `kind` in the whole seconds before `tail_from`. From that second on, not all clients
/// were at work.
pub(crate) fn rates_of(points: &[SecondPoint], kind: &str, tail_from: Option<u64>) -> Vec<f64> {
    let all_at_work = |second: u64| tail_from.is_none_or(|tail| second < tail);
    let wanted = points.iter().filter(|point| point.kind == kind && all_at_work(point.second));
    wanted.map(|point| point.rate).collect()
}

/// Computes the figures from one rate per second; `None` for fewer than ten seconds.
/// `without_connection` is the longest time in which every connection for the headline's kind of
/// operation was lost.
pub(crate) fn steadiness(rates: &[f64], without_connection: Span) -> Option<Steadiness> {
    if rates.len() < MIN_SECONDS {
        return None;
    }
    let worst_rate = rates.iter().copied().reduce(f64::min)?;
    let median = median(rates)?;
    let warm_up = warm_up(rates);
    let found = modes(rates);
    Some(Steadiness {
        seconds: rates.len(),
        median_rate: median,
        worst_rate,
        worst_share: (median > 0.0).then(|| worst_rate / median),
        longest_gap_seconds: longest_gap(rates).max(without_connection.seconds() as usize),
        share_below_half_median: share_below_half_median(rates)?,
        warm_up_seconds: match warm_up {
            Some(WarmUp::EndsAfter(seconds)) => Some(seconds),
            _ => None,
        },
        never_steady: warm_up == Some(WarmUp::NeverSteady),
        period_seconds: period(rates).map(|(lag, _)| lag),
        modes: found.map(|modes| [modes.low, modes.high]),
        low_mode_share: found.map(|modes| modes.low_share),
    })
}

#[cfg(test)]
mod tests {
    use dbdyno_record::WindowRule;

    use super::*;
    use crate::fixtures::{in_window, read_write_step, series, summary, with_counters};
    use crate::window::counters::Counters;

    fn seconds_of(counters: &Counters) -> Vec<DeviceSecond> {
        device_seconds(&summary(&with_counters(counters)))
    }

    #[test]
    fn each_pair_of_samples_in_the_window_is_a_second_of_the_device() {
        let samples = [
            (-1_000_000, vec![0; 6]),
            (0, vec![0, 0, 0, 0, 0, 0]),
            (1_000_000, vec![2_048, 4_096, 1, 3, 2_000, 6_000]),
            (2_000_000, vec![2_048, 4_096, 1, 3, 2_000, 6_000]),
            (4_000_000, vec![9_999, 9_999, 9, 9, 9_000, 9_000]),
        ];
        let found = seconds_of(&series("disk", &DEVICE_KEYS[..6], &samples));
        assert_eq!(found.iter().map(|second| second.second).collect::<Vec<_>>(), [0, 1]);
        assert_eq!((found[0].read_kib_per_second, found[0].written_kib_per_second), (2.0, 4.0));
        assert_eq!((found[0].await_ms, found[0].queue_depth), (Some(2.0), Some(0.008)));
        assert_eq!((found[1].await_ms, found[1].queue_depth), (None, Some(0.0)));
        assert!(seconds_of(&Counters::new()).is_empty());
    }

    fn events_of(keys: &[&str], samples: &[(i64, Vec<i64>)]) -> Vec<(f64, ServerEventKind)> {
        let step = with_counters(&series(STATUS, keys, samples));
        let found = server_events(&summary(&step), &[]);
        found.into_iter().map(|event| (event.at_seconds, event.what)).collect()
    }

    #[test]
    fn checkpoints_and_restarts_are_seen_in_the_servers_counters() {
        use ServerEventKind::{Checkpoint, Restart};
        let keys = ["Uptime", "pg_stat_checkpointer.num_timed"];
        let samples =
            [(0, vec![5, 1]), (1_000_000, vec![6, 2]), (2_000_000, vec![1, 2]), (3_000_000, vec![2, 9])];
        assert_eq!(events_of(&keys, &samples), [(1.0, Checkpoint), (2.0, Restart)]);
        let ages = [(0, vec![900]), (1_000_000, vec![890]), (2_000_000, vec![100])];
        assert_eq!(events_of(&["Innodb_checkpoint_age"], &ages), [(2.0, Checkpoint)]);
    }

    #[test]
    fn a_stall_begins_in_the_first_second_at_rate_zero_and_losses_within_a_second_are_one_event() {
        let mut step = read_write_step();
        let lost = |at_us| StepEvent::ConnectionLost {
            at_us,
            client: 1,
            kind: "query".to_owned(),
            code: "2013".to_owned(),
            message: "closed".to_owned(),
        };
        step.events.extend([lost(500_000), lost(600_000)]);
        let point = |(second, rate): (u64, f64)| SecondPoint {
            second,
            kind: step.spec.headline.kind.clone(),
            rate,
            service_max_us: None,
            response_max_us: None,
        };
        let seconds: Vec<_> = [(0, 5.0), (1, 0.0), (2, 0.0), (3, 4.0)].map(point).into();
        let found = server_events(&summary(&step), &seconds);
        let whats: Vec<_> = found.iter().map(|event| (event.at_seconds, event.what)).collect();
        assert_eq!(whats, [(0.5, ServerEventKind::Lost), (1.0, ServerEventKind::Stall)]);
        // In a step that ends by a count and has few answers, the rate of a single second means
        // nothing.
        step.spec.window = WindowRule::LastEnded;
        step.intervals.clear();
        assert_eq!(server_events(&summary(&step), &seconds).len(), 1, "single seconds say nothing");
    }

    #[test]
    fn seconds_are_counted_from_the_beginning_of_the_window_not_of_the_warm_up() {
        let step = in_window(read_write_step(), (1_000_000, 2_500_000));
        let points = seconds(&summary(&step));
        let queries: Vec<_> =
            points.iter().filter(|p| p.kind == "query").map(|p| (p.second, p.rate)).collect();
        assert_eq!(queries, [(0, 210.0)]);
    }

    #[test]
    fn seconds_list_the_headline_first_and_end_with_the_last_whole_second() {
        let step = read_write_step();
        let points = seconds(&summary(&step));
        let short: Vec<_> = points.iter().map(|p| (p.kind.as_str(), p.second, p.rate)).collect();
        assert_eq!(
            short,
            [
                ("query", 0, 190.0),
                ("query", 1, 210.0),
                ("insert", 0, 200.0),
                ("insert", 1, 200.0),
                ("delete", 0, 200.0),
                ("delete", 1, 200.0),
            ]
        );
    }

    #[test]
    fn a_stall_of_three_seconds_is_in_every_figure_that_it_concerns() {
        let mut rates = vec![100.0; 20];
        rates[7..10].fill(0.0);
        let found = steadiness(&rates, Span::new(0, 0)).unwrap();
        assert_eq!(found.median_rate, 100.0);
        assert_eq!((found.seconds, found.worst_rate, found.worst_share), (20, 0.0, Some(0.0)));
        assert_eq!((found.longest_gap_seconds, found.share_below_half_median), (3, 0.15));
        assert_eq!((found.warm_up_seconds, found.never_steady, found.modes), (None, false, None));
    }

    #[test]
    fn a_run_that_only_gets_faster_is_never_steady() {
        let rates: Vec<f64> = (0..100).map(|second| 1_000.0 + 5.0 * f64::from(second)).collect();
        let found = steadiness(&rates, Span::new(0, 0)).unwrap();
        assert_eq!((found.never_steady, found.warm_up_seconds), (true, None));
    }

    #[test]
    fn fewer_than_ten_seconds_have_no_figures() {
        assert!(steadiness(&[1.0; 9], Span::new(0, 0)).is_none());
    }

    #[test]
    fn an_outage_of_one_second_is_a_gap_although_every_second_is_busy() {
        let gap =
            |from_us, to_us| steadiness(&[100.0; 20], Span::new(from_us, to_us)).unwrap().longest_gap_seconds;
        assert_eq!((gap(7_500_000, 8_530_000), gap(7_500_000, 8_400_000)), (1, 0));
    }

    #[test]
    fn rates_are_of_one_kind_and_end_when_the_first_client_finishes() {
        let point = |(second, kind, rate): (u64, &str, f64)| SecondPoint {
            second,
            kind: kind.to_owned(),
            rate,
            service_max_us: None,
            response_max_us: None,
        };
        let points =
            [(3, "insert", 7.0), (4, "insert", 8.0), (5, "insert", 1.0), (3, "delete", 9.0)].map(point);
        assert_eq!(rates_of(&points, "insert", None), [7.0, 8.0, 1.0]);
        assert_eq!(rates_of(&points, "insert", Some(5)), [7.0, 8.0]);
    }
}
