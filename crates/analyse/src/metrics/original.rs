//! The original's metric row: its 21 columns, from our counters. What each is and where it differs:
//! docs/reference/metrics.md.

use dbdyno_record::Unit;

use super::group;
use crate::readings::counters::{KIB, at_end, greatest};
use crate::readings::measured::Measured;
use crate::readings::polling::host_busy;
use crate::readings::rates::throughput_percentile;
use crate::readings::span::tally;

const MIB: f64 = 1024.0 * 1024.0;
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

group! {
    /// The original's 21 columns under their names; `None` prints as `NA`. Names with `q` mean "per
    /// insert" in `l.*` steps, as in the original.
    MetricRow: |step: Measured<'_>| {
        ips: "ips", "rows/s", 0, More,
            step.in_window(step.insert_kind().map_or(0.0, |kind| step.rate_of(kind))),
            "Inserts per second; in l.x indexed rows per second.";
        qps: "qps", "1/s", 0, More, step.in_window(query_rate(step)), "Queries per second.";
        rps: "rps", "1/s", 0, Neither, step.per_second("disk", &["reads"]),
            "Reads per second of the block device.";
        rmbps: "rmbps", "MiB/s", 1, Neither, Some(step.per_second("disk", &["read_bytes"])? / MIB),
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
        rss: "rss", "GiB", 3, Less, memory_gib(step), "Greatest resident memory of the server process.";
        maxop: "maxop", "s", 3, Less, step.in_window(greatest_service_time_seconds(step)),
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

/// Figures are not rounded here; `None` where a source was not sampled or nothing was done to
/// divide by. Reads are charged to the headline, writes to inserts, as in the original.
pub(crate) fn metric_row(step: &Measured<'_>, tag: &str) -> MetricRow {
    MetricRow { tag: tag.to_owned(), ..MetricRow::of(step) }
}

fn query_rate(step: &Measured<'_>) -> f64 {
    if step.spec.headline.unit == Unit::Operations { step.headline_rate() } else { 0.0 }
}

fn per_insert(step: &Measured<'_>, key: &str) -> Option<f64> {
    step.per_unit_of(step.insert_kind()?, step.change("disk", &[key])?)
}

fn busy_percent(step: &Measured<'_>) -> Option<f64> {
    let busy = host_busy(step).filter(|_| step.cpus > 0)?;
    Some(100.0 * busy.per_second() / (1e6 * f64::from(step.cpus)))
}

fn size_gib(step: &Measured<'_>, key: &str) -> Option<f64> {
    Some(at_end(step.counters, "size", key, step.window)? as f64 / GIB)
}

fn memory_gib(step: &Measured<'_>) -> Option<f64> {
    Some(greatest(step.counters, step.hosting.source()?, "rss_bytes")? as f64 / GIB)
}

fn greatest_service_time_seconds(step: &Measured<'_>) -> f64 {
    let sum = tally(step.intervals, &step.spec.headline.kind, step.window);
    sum.service_max_us as f64 / 1e6
}

fn second_rate(step: &Measured<'_>, percent: f64) -> Option<f64> {
    throughput_percentile(step.spec, step.intervals, step.window, percent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{interval, load_spec, read_write_step, series};
    use crate::readings::counters::{Counters, HOST_BUSY};
    use crate::readings::measured::Hosting;
    use crate::readings::span::Span;

    /// Samples at 0 and 2.5 s, the window of `read_write_step`: 500 queries and 500 inserted rows
    /// between them.
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
        let mut step = read_write_step();
        step.intervals.last_mut().unwrap().service_max_us = 9_000_000;
        let measured = Measured {
            spec: &step.spec,
            intervals: &step.intervals,
            counters,
            window: Span::new(0, 2_500_000),
            hosting,
            cpus: 4,
        };
        metric_row(&measured, "a")
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
        // The window's last interval ends at 2.5 s: the 9 s after it is not its affair. Two
        // seconds: no percentiles.
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
        let counters = Counters::new();
        let spec = load_spec();
        let window = Span::new(0, 1_000_000);
        let measured = Measured {
            spec: &spec,
            intervals: &intervals,
            counters: &counters,
            window,
            hosting: Hosting::Process,
            cpus: 4,
        };
        let row = metric_row(&measured, "a");
        assert_eq!((row.ips, row.qps, row.maxop), (Some(1_000.0), Some(0.0), Some(0.25)));
    }
}
