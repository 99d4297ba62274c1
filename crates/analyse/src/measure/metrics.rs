//! The original's 21 columns, from our counters. What each is and where it differs:
//! docs/reference/metrics.md.

use dbdyno_record::Unit;

use crate::measure::counters::{Change, at_end, greatest};
use crate::measure::measured::{Hosting, Measured};
use crate::measure::polling;
use crate::measure::rates::throughput_percentile;
use crate::measure::span::tally;
use crate::model::MetricRow;

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * 1024.0;
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

/// What a host's CPUs did other than nothing, waiting for IO, or work for another machine.
pub(crate) const HOST_BUSY: [&str; 5] =
    ["cpu_user_us", "cpu_nice_us", "cpu_system_us", "cpu_irq_us", "cpu_softirq_us"];

/// Figures are not rounded here; `None` where a source was not sampled or nothing was done to
/// divide by. Reads are charged to the headline, writes to inserts, as in the original.
pub(crate) fn metric_row(step: &Measured<'_>, tag: &str) -> MetricRow {
    let queries = step.spec.headline.unit == Unit::Operations;
    let disk = |key| step.change("disk", &[key]);
    let (reads, read_bytes) = (disk("reads"), disk("read_bytes"));
    let (writes, written_bytes) = (disk("writes"), disk("written_bytes"));
    let switches = step.change("host", &["context_switches"]);
    let busy = step.change("host", &HOST_BUSY).map(|busy| polling::without(step, busy));
    let cpu_us_per_second = 1e6 * f64::from(step.cpus);
    let per_second = |change: Option<Change>, unit: f64| Some(change?.per_second() / unit);
    let per_query = |change: Option<Change>, unit: f64| Some(step.per_headline_unit(change?)? / unit);
    let per_insert =
        |change: Option<Change>, unit: f64| Some(step.per_unit_of(step.insert_kind()?, change?)? / unit);
    let second = |percent| throughput_percentile(step.spec, step.intervals, step.window, percent);
    let greatest_gib = |source| Some(greatest(step.counters, source, "rss_bytes")? as f64 / GIB);
    let size_gib = |key| Some(at_end(step.counters, "size", key, step.window)? as f64 / GIB);
    MetricRow {
        ips: step.in_window(step.insert_kind().map_or(0.0, |kind| step.rate_of(kind))),
        qps: step.in_window(if queries { step.headline_rate() } else { 0.0 }),
        rps: per_second(reads, 1.0),
        rmbps: per_second(read_bytes, MIB),
        wps: per_second(writes, 1.0),
        wmbps: per_second(written_bytes, MIB),
        rpq: per_query(reads, 1.0),
        rkbpq: per_query(read_bytes, KIB),
        wpi: per_insert(writes, 1.0),
        wkbpi: per_insert(written_bytes, KIB),
        csps: per_second(switches, 1.0),
        cpups: busy.filter(|_| step.cpus > 0).map(|busy| 100.0 * busy.per_second() / cpu_us_per_second),
        cspq: per_query(switches, 1.0),
        cpupq: per_query(busy, 1.0),
        dbgb1: size_gib("database_bytes"),
        dbgb2: size_gib("data_dir_bytes"),
        rss: match step.hosting {
            Hosting::Process => greatest_gib("server"),
            Hosting::Embedded => greatest_gib("client"),
            Hosting::External | Hosting::Nothing => None,
        },
        maxop: step.in_window(greatest_service_time_seconds(step)),
        median_second_rate: second(50.0),
        slow_second_rate: second(99.0),
        tag: tag.to_owned(),
    }
}

fn greatest_service_time_seconds(step: &Measured<'_>) -> f64 {
    let sum = tally(step.intervals, &step.spec.headline.kind, step.window);
    sum.service_max_us as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{interval, load_spec, read_write_step, series};
    use crate::measure::counters::Counters;
    use crate::measure::span::Span;

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
