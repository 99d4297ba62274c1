//! Writes sysbench's text output, line by line as version 1.0.20 prints it, so that programs that
//! read it keep working.

use std::collections::BTreeMap;
use std::fmt::Write;

use dbdyno_workloads::sysbench::Stat;

use crate::load::ResponseTimes;

#[derive(Debug, Clone, Default)]
pub(super) struct SysbenchCounts {
    pub(super) events: u64,
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) other: u64,
    /// Failed attempts after which an event began again.
    pub(super) errors: u64,
    pub(super) reconnects: u64,
    /// Reconnects for which an event began again.
    pub(super) reopened: u64,
    /// Times from when an event was due to its end.
    pub(super) times: ResponseTimes,
    /// Length of the queue at the end of the last interval.
    pub(super) queue_length: u64,
    pub(super) concurrency: u64,
}

impl SysbenchCounts {
    pub(super) fn queries(&self) -> u64 {
        self.reads + self.writes + self.other
    }

    /// Returns the number of errors that made an event begin again, without lost connections.
    fn ignored_errors(&self) -> u64 {
        self.errors.saturating_sub(self.reopened)
    }

    pub(super) fn percentile_ms(&self, percentile: u64) -> f64 {
        if percentile == 0 || self.times.0.is_empty() {
            return 0.0;
        }
        self.times.0.value_at_percentile(percentile as f64) as f64 / 1000.0
    }

    fn sum_ms(&self) -> f64 {
        self.times.0.mean() * self.times.0.len() as f64 / 1000.0
    }

    pub(super) fn stat(&self, threads: u32, percentile: u64, interval: f64, total: f64) -> Stat {
        let lowest = if self.times.0.is_empty() { 0 } else { self.times.0.min() };
        Stat {
            threads_running: threads,
            time_interval: interval,
            time_total: total,
            events: self.events,
            reads: self.reads,
            writes: self.writes,
            other: self.other,
            errors: self.ignored_errors(),
            reconnects: self.reconnects,
            latency_pct: self.percentile_ms(percentile) / 1e3,
            latency_min: lowest as f64 / 1e6,
            latency_max: self.times.0.max() as f64 / 1e6,
            latency_avg: self.times.0.mean() / 1e6,
            latency_sum: self.sum_ms() / 1e3,
            queue_length: self.queue_length,
            concurrency: self.concurrency,
        }
    }
}

pub(super) fn interval(
    counts: &SysbenchCounts,
    threads: u32,
    percentile: u64,
    seconds: f64,
    total: f64,
    asks: bool,
) -> String {
    let rate = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    let late = counts.percentile_ms(percentile);
    if !asks {
        return format!(
            "[ {total:.0}s ] thds: {threads} eps: {:.2} lat (ms,{percentile}%): {late:.2}",
            rate(counts.events)
        );
    }
    format!(
        "[ {total:.0}s ] thds: {threads} tps: {:.2} qps: {:.2} (r/w/o: {:.2}/{:.2}/{:.2}) lat (ms,{percentile}%): {late:.2} err/s: {:.2} \
         reconn/s: {:.2}",
        rate(counts.events),
        rate(counts.queries()),
        rate(counts.reads),
        rate(counts.writes),
        rate(counts.other),
        rate(counts.ignored_errors()),
        rate(counts.reconnects)
    )
}

/// Writes the line that follows an interval's line when a target rate was given.
pub(super) fn queue(counts: &SysbenchCounts, total: f64) -> String {
    format!("[ {total:.0}s ] queue length: {}, concurrency: {}", counts.queue_length, counts.concurrency)
}

/// Writes the report at the end. `threads` holds the events and seconds of each thread.
pub(super) fn cumulative(
    counts: &SysbenchCounts,
    percentile: u64,
    seconds: f64,
    threads: &[(f64, f64)],
    asks: bool,
) -> String {
    let mut out = String::new();
    let rate = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    // Writing to a String cannot fail.
    let mut line = |text: String| {
        let _ = writeln!(out, "{text}");
    };
    if asks {
        line("SQL statistics:\n    queries performed:".to_owned());
        for (name, count) in [
            ("read", counts.reads),
            ("write", counts.writes),
            ("other", counts.other),
            ("total", counts.queries()),
        ] {
            line(format!("        {:<32} {count}", format!("{name}:")));
        }
        for (name, count) in [
            ("transactions", counts.events),
            ("queries", counts.queries()),
            ("ignored errors", counts.ignored_errors()),
            ("reconnects", counts.reconnects),
        ] {
            line(format!("    {:<36} {count:<6} ({:.2} per sec.)", format!("{name}:"), rate(count)));
        }
        line(String::new());
    }
    line("General statistics:".to_owned());
    line(format!("    total time:                          {seconds:.4}s"));
    line(format!("    total number of events:              {}\n", counts.events));
    line("Latency (ms):".to_owned());
    let lowest = if counts.times.0.is_empty() { 0 } else { counts.times.0.min() };
    let late = format!("{percentile}th percentile");
    for (name, ms) in [
        ("min", lowest as f64 / 1e3),
        ("avg", counts.times.0.mean() / 1e3),
        ("max", counts.times.0.max() as f64 / 1e3),
        (late.as_str(), counts.percentile_ms(percentile)),
        ("sum", counts.sum_ms()),
    ] {
        match (percentile, name) {
            (0, name) if name == late => line("         percentile stats:               disabled".to_owned()),
            _ => line(format!("         {:<23} {ms:>20.2}", format!("{name}:"))),
        }
    }
    line("\nThreads fairness:".to_owned());
    let (events, spread) = mean_and_spread(threads.iter().map(|thread| thread.0));
    line(format!("    events (avg/stddev):           {events:.4}/{spread:.2}"));
    let (took, spread) = mean_and_spread(threads.iter().map(|thread| thread.1));
    line(format!("    execution time (avg/stddev):   {took:.4}/{spread:.2}"));
    out
}

/// Returns mean and standard deviation over all values, as sysbench computes them.
fn mean_and_spread(values: impl ExactSizeIterator<Item = f64> + Clone) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.clone().sum::<f64>() / count;
    let variance = values.map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

pub(super) fn histogram(counts: &SysbenchCounts) -> String {
    const BUCKETS: usize = 1024;
    let (lowest, highest) = (0.001_f64, 100_000.0_f64);
    let step = (highest / lowest).ln() / (BUCKETS - 1) as f64;
    // sysbench's own buckets end at `highest`. dbdyno's continue beyond it in the same steps.
    let mut buckets = BTreeMap::<usize, u64>::new();
    for value in counts.times.0.iter_recorded() {
        let ms = value.value_iterated_to() as f64 / 1e3;
        let bucket = ((ms.max(lowest) / lowest).ln() / step + 0.5) as usize;
        *buckets.entry(bucket).or_default() += value.count_at_value();
    }
    let most = buckets.values().copied().max().unwrap_or(1) as f64;
    let mut out = String::from(
        "Latency histogram (values are in milliseconds)\n       value  ------------- distribution ------------- count\n",
    );
    for (bucket, count) in buckets {
        let stars = "*".repeat((count as f64 / most * 40.0 + 0.5) as usize);
        let _ = writeln!(out, "{:>12.3} |{stars:<40} {count}", lowest * (bucket as f64 * step).exp());
    }
    out
}

pub(super) fn option(name: &str, kind: &str, description: &str, default: Option<&str>) -> String {
    let value = match kind {
        "BOOL" => "[=on|off]",
        "INT" | "DOUBLE" => "=N",
        "SIZE" => "=SIZE",
        "LIST" => "=[LIST,...]",
        "FILE" => "=FILENAME",
        _ => "=STRING",
    };
    let default = default.map_or_else(String::new, |default| format!(" [{default}]"));
    format!("  --{:<27} {description}{default}", format!("{name}{value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> SysbenchCounts {
        let mut counts =
            SysbenchCounts { events: 10, reads: 140, writes: 40, other: 20, ..SysbenchCounts::default() };
        [1000, 1000, 2000, 10_000].into_iter().for_each(|us| counts.times.0.record(us).unwrap());
        counts
    }

    #[test]
    fn the_last_report_is_that_of_version_1_0_20() {
        insta::assert_snapshot!(cumulative(&counts(), 95, 0.1, &[(6.0, 0.1), (4.0, 0.1)], true), @r"
        SQL statistics:
            queries performed:
                read:                            140
                write:                           40
                other:                           20
                total:                           200
            transactions:                        10     (100.00 per sec.)
            queries:                             200    (2000.00 per sec.)
            ignored errors:                      0      (0.00 per sec.)
            reconnects:                          0      (0.00 per sec.)

        General statistics:
            total time:                          0.1000s
            total number of events:              10

        Latency (ms):
                 min:                                    1.00
                 avg:                                    3.50
                 max:                                   10.01
                 95th percentile:                       10.01
                 sum:                                   14.00

        Threads fairness:
            events (avg/stddev):           5.0000/1.00
            execution time (avg/stddev):   0.1000/0.00
        ");
    }

    #[test]
    fn lines_in_between_have_statements_where_there_are_any() {
        assert_eq!(
            interval(&counts(), 2, 95, 1.0, 3.0, true),
            "[ 3s ] thds: 2 tps: 10.00 qps: 200.00 (r/w/o: 140.00/40.00/20.00) lat (ms,95%): 10.01 err/s: 0.00 reconn/s: 0.00"
        );
        assert_eq!(
            interval(&counts(), 2, 95, 1.0, 3.0, false),
            "[ 3s ] thds: 2 eps: 10.00 lat (ms,95%): 10.01"
        );
    }

    #[test]
    fn a_script_with_a_database_has_totals_even_without_an_answer() {
        let text = cumulative(&SysbenchCounts::default(), 95, 1.0, &[(0.0, 0.0)], true);
        for name in ["transactions:", "queries:"] {
            let line = text.lines().map(str::trim).find(|line| line.starts_with(name)).unwrap();
            assert!(line.ends_with(" 0      (0.00 per sec.)"), "{line}");
        }
    }

    fn of_ms(all: &[f64]) -> SysbenchCounts {
        let mut counts = SysbenchCounts::default();
        all.iter().for_each(|ms| counts.times.0.record((ms * 1e3) as u64).unwrap());
        counts
    }

    /// Returns the lowest and highest time and the percentile that the report prints.
    fn printed(counts: &SysbenchCounts, percentile: u64) -> [f64; 3] {
        let text = cumulative(counts, percentile, 1.0, &[(1.0, 1.0)], false);
        ["min:", "max:", "percentile:"].map(|name| {
            let line = text.lines().find(|line| line.contains(name)).unwrap();
            line.rsplit(' ').next().unwrap().parse().unwrap()
        })
    }

    #[test]
    fn a_percentile_lies_between_the_lowest_and_the_highest_time() {
        for ms in [0.0, 0.001, 0.37, 1.0, 17.43, 241.47, 99_999.99, 250_000.0] {
            for percentile in [1, 50, 95, 99, 100] {
                for counts in [of_ms(&[ms]), of_ms(&[ms, ms * 1.01, ms * 7.3])] {
                    let [lowest, highest, found] = printed(&counts, percentile);
                    let is_between = lowest <= found && found <= highest;
                    assert!(is_between, "{ms} ms: {lowest} {found} {highest} at {percentile} %");
                }
            }
        }
    }

    #[test]
    fn times_of_minutes_are_printed_as_they_are() {
        let counts = of_ms(&[250_000.0, 270_000.0]);
        let [lowest, highest, found] = printed(&counts, 95);
        // Times are exact to 0.1 %.
        let is = |found: f64, ms: f64| (found / ms - 1.0).abs() <= 0.001;
        assert!(is(lowest, 250_000.0) && is(highest, 270_000.0) && is(found, 270_000.0), "{found}");
        let lines = histogram(&counts);
        let buckets: Vec<f64> =
            lines.lines().filter_map(|line| line.split_once('|')?.0.trim().parse().ok()).collect();
        // A bucket is 1.8 % wide.
        let is = |found: f64, ms: f64| (found / ms - 1.0).abs() <= 0.01;
        assert!(buckets.len() == 2 && is(buckets[0], 250_000.0) && is(buckets[1], 270_000.0), "{lines}");
    }

    #[test]
    fn events_that_take_no_time_are_in_the_histogram() {
        let lines = histogram(&of_ms(&[0.0, 0.0, 0.0]));
        assert!(lines.ends_with("       0.001 |**************************************** 3\n"), "{lines}");
    }

    #[test]
    fn the_histogram_has_a_line_for_each_bucket_that_holds_an_event() {
        insta::assert_snapshot!(histogram(&counts()), @r"
        Latency histogram (values are in milliseconds)
               value  ------------- distribution ------------- count
               1.007 |**************************************** 2
               1.996 |********************                     1
              10.090 |********************                     1
        ");
    }
}
