//! Computes the 21 columns of the original benchmark's result row from our counters.
//! docs/reference/metrics.md says what each column is and where it differs from the original's.

use dbdyno_record::Unit;

use super::group;
use crate::window::counters::{KIB, at_end, highest};
use crate::window::cpu::host_busy;
use crate::window::{KindSummary, WindowSummary, amount};

const MIB: f64 = 1024.0 * 1024.0;
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

/// Smallest number of seconds from which throughput percentiles are computed. Percentiles of fewer
/// seconds show nothing.
const MIN_SECONDS: usize = 10;

group! {
    /// The original's 21 columns under their names; `None` prints as `NA`. Names with `q` mean "per
    /// insert" in `l.*` steps, as in the original.
    MetricRow: |step: WindowSummary<'_>| {
        ips: "ips", "rows/s", 0, More,
            step.in_window(step.insert_kind().map_or(0.0, KindSummary::rate)),
            "Inserts per second; in l.x indexed rows per second.";
        qps: "qps", "1/s", 0, More, step.in_window(query_rate(step)), "Queries per second.";
        rps: "rps", "1/s", 0, Neither, step.per_second("disk", &["reads"]),
            "Reads per second of the block device.";
        rmbps: "rmbps", "MiB/s", 1, Neither, Some(step.per_second("disk", &["read_bytes"])? / MIB),
            is_published = true,
            "MiB read per second from the block device.";
        wps: "wps", "1/s", 0, Neither, step.per_second("disk", &["writes"]),
            "Writes per second of the block device.";
        wmbps: "wmbps", "MiB/s", 1, Neither, Some(step.per_second("disk", &["written_bytes"])? / MIB),
            "MiB written per second to the block device.";
        rpq: "rpq", "1/op", 3, Less, step.per_unit("disk", &["reads"]),
            "Device reads per query (per insert in l.* steps).";
        rkbpq: "rkbpq", "KiB/op", 3, Less, Some(step.per_unit("disk", &["read_bytes"])? / KIB),
            "KiB read per query (per insert in l.* steps).";
        wpi: "wpi", "1/row", 3, Less, per_insert(step, "writes"),
            "Device writes per insert, in query steps too.";
        wkbpi: "wkbpi", "KiB/row", 3, Less, Some(per_insert(step, "written_bytes")? / KIB),
            "KiB written per insert, in query steps too.";
        csps: "csps", "1/s", 0, Neither, step.per_second("host", &["context_switches"]),
            "Context switches per second of the whole host.";
        cpups: "cpups", "%", 1, Neither, busy_percent(step),
            "User and kernel CPU of the whole host, in percent of all cores.";
        cspq: "cspq", "1/op", 3, Less, step.per_unit("host", &["context_switches"]),
            "Context switches of the host per query (per insert in l.* steps).";
        cpupq: "cpupq", "µs/op", 0, Less, step.per_headline_unit(host_busy(step)?),
            "CPU of the whole host, client included, per query (per insert in l.* steps).";
        dbgb1: "dbgb1", "GiB", 3, Less, size_gib(step, "database_bytes"),
            "Size of the database's tables and indexes.";
        dbgb2: "dbgb2", "GiB", 3, Less, size_gib(step, "data_dir_bytes"),
            "Size of the whole data directory with its logs.";
        rss: "rss", "GiB", 3, Less, memory_gib(step), "Highest resident memory of the server process.";
        maxop: "maxop", "s", 3, Less, step.in_window(longest_service_time_seconds(step)),
            "Longest service time of an insert (l.*) or a query (q*).";
        median_second_rate: "p50", "1/s", 0, More, second_rate(step, 50.0),
            "Rate of client 1 in its median second: it was at least this fast in half of the \
             seconds. Not a response time.";
        slow_second_rate: "p99", "1/s", 0, More, second_rate(step, 99.0),
            "Rate of client 1 in a slow second: it was at least this fast in 99 % of them. Not a \
             response time.";
    }
    tag: String
}

/// Computes the row without rounding. A figure is `None` where its source was not sampled, or
/// nothing was done to divide by. Reads are charged to the headline and writes to inserts, as in
/// the original.
pub(crate) fn metric_row(step: &WindowSummary<'_>, tag: &str) -> MetricRow {
    MetricRow { tag: tag.to_owned(), ..MetricRow::of(step) }
}

fn query_rate(step: &WindowSummary<'_>) -> f64 {
    if step.spec.headline.unit == Unit::Operations { step.headline_rate() } else { 0.0 }
}

fn per_insert(step: &WindowSummary<'_>, key: &str) -> Option<f64> {
    step.per_unit_of(step.insert_kind()?, step.change("disk", &[key])?)
}

fn busy_percent(step: &WindowSummary<'_>) -> Option<f64> {
    let busy = host_busy(step).filter(|_| step.cpus > 0)?;
    Some(100.0 * busy.per_second() / (1e6 * f64::from(step.cpus)))
}

fn size_gib(step: &WindowSummary<'_>, key: &str) -> Option<f64> {
    Some(at_end(step.counters, "size", key, step.window)? as f64 / GIB)
}

fn memory_gib(step: &WindowSummary<'_>) -> Option<f64> {
    Some(highest(step.counters, step.hosting.source()?, "rss_bytes")? as f64 / GIB)
}

fn longest_service_time_seconds(step: &WindowSummary<'_>) -> f64 {
    step.headline().map_or(0.0, |kind| kind.answered.service_max_us as f64 / 1e6)
}

/// The original's p50 and p99. Throughput of client 1 in each whole second is sorted from high to
/// low; the figure is at rank `round(percent / 100 * n)`, counted from 1. A high percentile is a
/// *slow* second.
///
/// A step that ends by a count has only the seconds in which all clients were at work. `None` for
/// fewer than 10 of these seconds, for a step that is one piece of work, and for long scans.
fn second_rate(step: &WindowSummary<'_>, percent: f64) -> Option<f64> {
    let kind = step.headline().filter(|_| step.has_telling_seconds())?;
    let seconds = kind.intervals.by_second(Some(1), step.all_at_work());
    at_rank(seconds.iter().map(|(_, sum)| amount(kind.unit, (sum.operations, sum.rows))).collect(), percent)
}

fn at_rank(mut rates: Vec<f64>, percent: f64) -> Option<f64> {
    if rates.len() < MIN_SECONDS {
        return None;
    }
    rates.sort_by(|a, b| b.total_cmp(a));
    let rank = (percent / 100.0 * rates.len() as f64).round() as usize;
    rates.get(rank.clamp(1, rates.len()) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{
        completed, in_window, index_spec, interval, load_spec, read_write_spec, series, summary,
        with_counters,
    };
    use crate::window::counters::{CounterChange, Counters, HOST_BUSY};
    use crate::window::{Hosting, Span};

    /// The samples are at 0 and 2.5 s, the window of `read_write_step`. 500 queries and 500
    /// inserted rows lie between them.
    fn counters() -> Counters {
        let two = |values: Vec<i64>| [(0, vec![0; values.len()]), (2_500_000, values)];
        let mut all = series(
            "disk",
            &["reads", "read_bytes", "writes", "written_bytes"],
            &two(vec![1_000, 5_242_880, 250, 2_621_440]),
        );
        let mut host = HOST_BUSY.to_vec();
        host.push("context_switches");
        all.extend(series("host", &host, &two(vec![3_000_000, 0, 900_000, 50_000, 50_000, 20_000])));
        all.extend(series("size", &["database_bytes", "data_dir_bytes"], &two(vec![1 << 30, 3 << 29])));
        all.extend(series("server", &["rss_bytes"], &two(vec![1 << 29])));
        all.extend(series("client", &["rss_bytes"], &two(vec![1 << 28])));
        all
    }

    fn row(hosting: Hosting, counters: &Counters) -> MetricRow {
        let mut step = with_counters(counters);
        step.intervals.last_mut().unwrap().service_max_us = 9_000_000;
        metric_row(&WindowSummary::of(&step, hosting, 4), "a")
    }

    #[test]
    fn every_column_follows_its_formula() {
        let row = row(Hosting::Process, &counters());
        assert_eq!((row.ips, row.qps), (Some(200.0), Some(200.0))); // 500 / 2.5 s, both
        assert_eq!((row.rps, row.wps), (Some(400.0), Some(100.0))); // 1000 / 2.5, 250 / 2.5
        assert_eq!((row.rmbps, row.wmbps), (Some(2.0), Some(1.0))); // 5 MiB / 2.5, 2.5 MiB / 2.5
        assert_eq!((row.rpq, row.wpi), (Some(2.0), Some(0.5))); // 1000 / 500 queries, 250 / 500 rows
        assert_eq!((row.rkbpq, row.wkbpi), (Some(10.24), Some(5.12))); // 5120 KiB / 500, 2560 KiB / 500
        assert_eq!((row.csps, row.cspq), (Some(8_000.0), Some(40.0))); // 20000 / 2.5, 20000 / 500
        assert_eq!((row.cpups, row.cpupq), (Some(40.0), Some(8_000.0))); // 4 s of 10 CPU s, 4e6 us / 500
        assert_eq!((row.dbgb1, row.dbgb2, row.rss), (Some(1.0), Some(1.5), Some(0.5)));
        // The window's last interval ends at 2.5 s, so the 9 s after it do not count. Two
        // seconds have no percentiles.
        assert_eq!((row.maxop, row.median_second_rate, row.slow_second_rate), (Some(0.0), None, None));
        assert_eq!(row.tag, "a");
    }

    #[test]
    fn the_originals_identities_hold() {
        let row = row(Hosting::Process, &counters());
        let rate = row.qps.unwrap();
        assert_eq!(row.cpupq.unwrap().round(), (row.cpups.unwrap() * 4.0 * 1e4 / rate).round());
        assert!((row.cspq.unwrap() - row.csps.unwrap() / rate).abs() < 1e-9);
        assert!((row.wkbpi.unwrap() - row.wmbps.unwrap() * 1024.0 / row.ips.unwrap()).abs() < 1e-9);
    }

    #[test]
    fn what_was_not_sampled_is_not_available() {
        let row = row(Hosting::Process, &Counters::new());
        assert_eq!(
            (row.rps, row.rpq, row.cpups, row.cpupq, row.dbgb1, row.rss),
            (None, None, None, None, None, None)
        );
        assert_eq!(row.qps, Some(200.0));
    }

    #[test]
    fn memory_is_the_process_that_holds_the_database() {
        assert_eq!(row(Hosting::Embedded, &counters()).rss, Some(0.25));
        assert_eq!(row(Hosting::External, &counters()).rss, None);
    }

    #[test]
    fn a_load_step_has_no_queries_and_its_longest_insert() {
        let mut intervals = vec![interval(0, 1_000_000, 1, "insert", 10, 1_000)];
        intervals[0].service_max_us = 250_000;
        let step = completed(load_spec(), intervals, (0, 1_000_000), Counters::new());
        let row = metric_row(&summary(&step), "a");
        assert_eq!((row.ips, row.qps, row.maxop), (Some(1_000.0), Some(0.0), Some(0.25)));
    }

    #[test]
    fn percentiles_of_throughput_run_from_fast_to_slow() {
        let rates = |n: u32| (1..=n).map(f64::from).collect::<Vec<_>>();
        // For n = 10, rank round(5) = 5th from the top of 10..1 is 6, and rank round(9.9) = 10th is
        // 1.
        assert_eq!(at_rank(rates(10), 50.0), Some(6.0));
        assert_eq!(at_rank(rates(10), 99.0), Some(1.0));
        // For n = 150, rank round(148.5) = 149th from the top of 150..1 is 2.
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
        let percentile = |spec, percent| {
            let step = completed(spec, intervals.clone(), (0, 10_700_000), Counters::new());
            second_rate(&summary(&step), percent)
        };
        assert_eq!(percentile(read_write_spec(), 50.0), Some(6.0));
        assert_eq!(percentile(read_write_spec(), 99.0), Some(1.0));
        assert_eq!(percentile(index_spec(), 50.0), None);
    }

    #[test]
    fn a_step_that_ends_by_a_count_has_the_percentiles_of_one_that_ends_by_time() {
        let mut intervals = Vec::new();
        for second in 0..13 {
            let (from_us, to_us) = (second * 1_000_000, (second + 1) * 1_000_000);
            // Client 1 has its last answer in second 10, and client 2 goes on alone.
            let done = if second < 10 { 20 + second } else { u64::from(second == 10) };
            intervals.push(interval(from_us, to_us, 1, "query", done, 0));
            intervals.push(interval(from_us, to_us, 2, "query", 15, 0));
        }
        let mut spec = read_write_spec();
        spec.window = dbdyno_record::WindowRule::LastEnded;
        let step = completed(spec, intervals, (0, 13_000_000), Counters::new());
        let found = summary(&step);
        assert_eq!(second_rate(&found, 99.0), Some(20.0));
        let total = (20..30).sum::<u64>() + 1 + 13 * 15;
        assert_eq!(found.headline_rate(), total as f64 / 13.0, "the tail is in the rate");
        let first_second = CounterChange { value: 70.0, between: Span::new(0, 1_000_000) };
        assert_eq!(found.per_headline_unit(first_second), Some(2.0), "35 were counted, and not spread");
        let sparse = in_window(step.clone(), (0, 130_000_000));
        assert_eq!(second_rate(&summary(&sparse), 50.0), None);
    }
}
