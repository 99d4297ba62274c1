//! Computes the load on the data directory's device in a step, in iostat's figures: for reads, for
//! writes, for flushes, and for all together.

use super::group;
use crate::window::WindowSummary;
use crate::window::counters::{CounterChange, KIB};

const SOURCE: &str = "disk";
const US_PER_MS: f64 = 1e3;
const US_PER_SECOND: f64 = 1e6;

/// If this many requests have no counted time at all, they were not timed. Times are counted in
/// whole milliseconds, and the kernel counts none for some stacked devices.
const UNTIMED_FROM: f64 = 1000.0;

// An entry has the field, iostat's name, the unit, the number of decimals, which direction is
// better, the value and its meaning.
group! {
    /// Averages over the common window, for all programs that used the device. A figure is `None`
    /// where the kernel does not count it, and where there was no request to average over.
    #[derive(Copy)]
    DeviceLoad: |step: WindowSummary<'_>| {
        reads_per_second: "r/s", "1/s", 1, Neither, step.per_second(SOURCE, &["reads"]),
            "Reads that were completed.";
        read_kib_per_second: "rKB/s", "KiB/s", 1, Neither,
            Some(step.per_second(SOURCE, &["read_bytes"])? / KIB), "Read.";
        read_size_kib: "rareq-sz", "KiB", 1, Neither, mean(step, "read_bytes", "reads", KIB),
            "Mean size of a read.";
        read_await_ms: "r_await", "ms", 2, Less, await_ms(step, "read_us", "reads"),
            "Mean time of a read, in the queue and at the device.";
        writes_per_second: "w/s", "1/s", 1, Neither, step.per_second(SOURCE, &["writes"]),
            "Writes that were completed.";
        written_kib_per_second: "wKB/s", "KiB/s", 1, Neither,
            Some(step.per_second(SOURCE, &["written_bytes"])? / KIB), "Written.";
        write_size_kib: "wareq-sz", "KiB", 1, Neither, mean(step, "written_bytes", "writes", KIB),
            "Mean size of a write.";
        write_await_ms: "w_await", "ms", 2, Less, await_ms(step, "write_us", "writes"),
            "Mean time of a write, in the queue and at the device.";
        flushes_per_second: "f/s", "1/s", 1, Neither, step.per_second(SOURCE, &["flushes"]),
            "Flushes of the device's cache, as fsync requests them; for a partition, those of its whole disk.";
        flush_await_ms: "f_await", "ms", 2, Less, await_ms(step, "flush_us", "flushes"),
            "Mean time of a flush.";
        queue_depth: "aqu-sz", "requests", 2, Neither, over_elapsed_time(step, time_of_requests(step)?),
            "Requests under way, on average over time: in the queue and at the device.";
        busy_share: "util", "% of time", 1, Neither, over_elapsed_time(step, change(step, "busy_us")?),
            factor = 100.0,
            "Time in which at least one request was under way. A device that handles many requests at once may do more even at 100 %.";
    }
}

/// Computes the figures; `None` where the device was not sampled.
pub(crate) fn device(step: &WindowSummary<'_>) -> Option<DeviceLoad> {
    requests(step).map(|_| DeviceLoad::of(step))
}

fn change(step: &WindowSummary<'_>, key: &str) -> Option<CounterChange> {
    step.change(SOURCE, &[key])
}

fn requests(step: &WindowSummary<'_>) -> Option<CounterChange> {
    step.change(SOURCE, &["reads", "writes"])
}

/// Mean per request; `None` without a request.
fn mean(step: &WindowSummary<'_>, sum: &str, count: &str, unit: f64) -> Option<f64> {
    let (sum, count) = (change(step, sum)?, change(step, count)?);
    (count.value > 0.0).then(|| sum.value / count.value / unit)
}

fn await_ms(step: &WindowSummary<'_>, us: &str, count: &str) -> Option<f64> {
    timed(change(step, us)?, change(step, count)?)?;
    mean(step, us, count, US_PER_MS)
}

/// Divides a time in µs by the elapsed time. For times of requests, which may overlap, the result
/// is a mean number of requests, and for the device's busy time it is a share.
fn over_elapsed_time(step: &WindowSummary<'_>, us: CounterChange) -> Option<f64> {
    Some(timed(us, requests(step)?)?.per_second() / US_PER_SECOND)
}

/// The time, unless it is 0 for so many requests that it cannot have been counted.
fn timed(us: CounterChange, requests: CounterChange) -> Option<CounterChange> {
    (us.value > 0.0 || requests.value < UNTIMED_FROM).then_some(us)
}

/// Time that all requests took, added up. Divided by elapsed time, it is the mean number of
/// requests under way (Little's law). iostat reads the same sum from one figure of the kernel.
/// The sum includes discards and flushes where the kernel counts them for the device itself. For a
/// partition, the kernel counts flushes only for the whole disk.
fn time_of_requests(step: &WindowSummary<'_>) -> Option<CounterChange> {
    let series = step.counters.get(SOURCE)?;
    let about = &series.header.about;
    let has_own_flushes = about.get("flushes_of").is_some_and(|disk| Some(disk) == about.get("device"));
    let counts = |key: &&str| match *key {
        "discard_us" => series.keys().any(|known| known == *key),
        "flush_us" => has_own_flushes && series.keys().any(|known| known == *key),
        _ => true,
    };
    let keys: Vec<&str> =
        ["read_us", "write_us", "discard_us", "flush_us"].into_iter().filter(counts).collect();
    step.change(SOURCE, &keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{series, summary, with_counters};
    use crate::window::counters::Counters;

    const OLD_KERNEL: [&str; 7] =
        ["reads", "read_bytes", "read_us", "writes", "written_bytes", "write_us", "busy_us"];

    fn load(counters: &Counters) -> Option<DeviceLoad> {
        device(&summary(&with_counters(counters)))
    }

    /// Counters that go from 0 to these values in 2.5 s.
    fn counted(keys: &[&str], values: &[i64]) -> Counters {
        series(SOURCE, keys, &[(0, vec![0; values.len()]), (2_500_000, values.to_vec())])
    }

    /// 1000 reads of 16 KiB take 0.2 ms each, and 500 writes of 32 KiB take 1 ms each. The device
    /// is busy for half a second.
    const VALUES: [i64; 7] = [1_000, 16_000 << 10, 200_000, 500, 16_000 << 10, 500_000, 500_000];

    #[test]
    fn the_figures_are_those_of_iostat() {
        let found = load(&counted(&OLD_KERNEL, &VALUES)).unwrap();
        assert_eq!((found.reads_per_second, found.writes_per_second), (Some(400.0), Some(200.0)));
        assert_eq!((found.read_kib_per_second, found.written_kib_per_second), (Some(6_400.0), Some(6_400.0)));
        assert_eq!((found.read_size_kib, found.write_size_kib), (Some(16.0), Some(32.0)));
        assert_eq!((found.read_await_ms, found.write_await_ms), (Some(0.2), Some(1.0)));
        assert_eq!(found.queue_depth, Some(0.28), "0.7 s of requests in 2.5 s");
        assert_eq!(found.busy_share, Some(0.2));
        assert_eq!((found.flushes_per_second, found.flush_await_ms), (None, None), "before Linux 5.5");
    }

    #[test]
    fn the_queue_depth_of_a_whole_disk_includes_its_flushes_and_that_of_a_partition_does_not() {
        let keys = [&OLD_KERNEL[..], &["discards", "discard_us", "flushes", "flush_us"]].concat();
        let values = [&VALUES[..], &[10, 50_000, 100, 250_000]].concat();
        let mut counters = counted(&keys, &values);
        let about = &mut counters.get_mut(SOURCE).unwrap().header.about;
        about
            .extend([("device", "sda1"), ("flushes_of", "sda")].map(|(key, of)| (key.to_owned(), of.into())));
        let found = load(&counters).unwrap();
        assert_eq!((found.flushes_per_second, found.flush_await_ms), (Some(40.0), Some(2.5)));
        assert_eq!(found.queue_depth, Some(0.3), "reads, writes and discards");
        counters.get_mut(SOURCE).unwrap().header.about.insert("device".to_owned(), "sda".into());
        assert_eq!(load(&counters).unwrap().queue_depth, Some(0.4));
    }

    #[test]
    fn a_device_without_requests_has_no_averages_of_them() {
        let found = load(&counted(&OLD_KERNEL, &[0; 7])).unwrap();
        assert_eq!((found.reads_per_second, found.read_kib_per_second), (Some(0.0), Some(0.0)));
        assert_eq!((found.read_size_kib, found.read_await_ms, found.write_await_ms), (None, None, None));
        assert_eq!((found.queue_depth, found.busy_share), (Some(0.0), Some(0.0)));
    }

    #[test]
    fn a_kernel_that_counts_no_times_gives_none_and_a_few_quick_requests_still_have_times() {
        let found = load(&counted(&OLD_KERNEL, &[2_000, 1 << 20, 0, 1, 4_096, 0, 0])).unwrap();
        assert_eq!((found.read_await_ms, found.queue_depth, found.busy_share), (None, None, None));
        assert_eq!((found.write_await_ms, found.reads_per_second), (Some(0.0), Some(800.0)));
        let quick = load(&counted(&OLD_KERNEL, &[2, 8_192, 0, 1, 4_096, 0, 0])).unwrap();
        assert_eq!((quick.read_await_ms, quick.busy_share), (Some(0.0), Some(0.0)));
    }

    #[test]
    fn a_device_that_was_not_sampled_has_no_figures() {
        assert_eq!(load(&Counters::new()), None);
    }
}
