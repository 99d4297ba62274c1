//! Splits the reads from the data directory's device into those that the kernel counts for the
//! server's processes, and those of others.
//!
//! Only reads are split. The kernel charges a read to the process that asks for it when the read
//! goes to the device. It charges a write through the page cache when the page becomes dirty. How
//! much of that write reaches the device, and when, is not known, so writes cannot be split.

use crate::window::WindowSummary;
use crate::window::counters::{CounterChange, KIB};

/// KiB that the server's processes read from storage, per unit of the headline. For an embedded
/// database it is dbdyno's own process. `None` where the kernel does not report reads.
pub(crate) fn server_read_kib(step: &WindowSummary<'_>) -> Option<f64> {
    step.per_headline_unit(of_server(step)?).map(|bytes| bytes / KIB)
}

/// The device's reads minus the server's, as a share of the device's. It can be below 0 where the
/// server read from other devices as well. It is `None` also where the device read nothing.
pub(crate) fn others_share(step: &WindowSummary<'_>) -> Option<f64> {
    let server = of_server(step)?;
    // A server with many processes may be sampled less often than the device.
    let device = step.change_over("disk", &["read_bytes"], server.between)?.per_second();
    (device > 0.0).then(|| (device - server.per_second()) / device)
}

fn of_server(step: &WindowSummary<'_>) -> Option<CounterChange> {
    step.change(step.hosting.source()?, &["read_bytes"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{series, with_counters};
    use crate::window::Hosting;
    use crate::window::counters::Counters;

    const MIB: i64 = 1 << 20;

    fn read(source: &str, samples: &[(i64, i64)]) -> Counters {
        let samples: Vec<_> = samples.iter().map(|(at_us, bytes)| (*at_us, vec![*bytes])).collect();
        series(source, &["read_bytes"], &samples)
    }

    fn figures(hosting: Hosting, counters: &Counters) -> (Option<f64>, Option<f64>) {
        let step = with_counters(counters);
        let summary = WindowSummary::of(&step, hosting, 4);
        (server_read_kib(&summary), others_share(&summary))
    }

    #[test]
    fn reads_are_charged_to_the_process_that_holds_the_database() {
        let mut counters = read("disk", &[(0, 0), (2_500_000, 20 * MIB)]);
        counters.extend(read("server", &[(0, 7), (2_500_000, 15 * MIB + 7)]));
        counters.extend(read("client", &[(0, 0), (2_500_000, 5 * MIB)]));
        // The step has 500 queries.
        assert_eq!(figures(Hosting::Process, &counters), (Some(30.72), Some(0.25)));
        assert_eq!(figures(Hosting::Embedded, &counters), (Some(10.24), Some(0.75)));
        assert_eq!(figures(Hosting::External, &counters), (None, None));
    }

    #[test]
    fn a_server_that_is_sampled_rarely_is_compared_over_the_time_between_its_samples() {
        // Reads began after a second, and the server's sample nearest to the window's end is from
        // that time.
        let mut counters = read("disk", &[(0, 0), (1_300_000, 0), (2_500_000, 20 * MIB)]);
        counters.extend(read("server", &[(0, 0), (1_300_000, 0), (3_900_000, 0)]));
        assert_eq!(figures(Hosting::Process, &counters), (Some(0.0), None));
        counters.extend(read("disk", &[(0, 0), (1_300_000, 8 * MIB), (2_500_000, 20 * MIB)]));
        counters.extend(read("server", &[(0, 0), (1_300_000, 6 * MIB), (3_900_000, 6 * MIB)]));
        assert_eq!(figures(Hosting::Process, &counters).1, Some(0.25));
    }

    #[test]
    fn without_the_servers_counters_or_without_reads_there_is_no_share() {
        let counters = read("disk", &[(0, 0), (2_500_000, MIB)]);
        assert_eq!(figures(Hosting::Process, &counters), (None, None));
        let mut idle = read("disk", &[(0, 9), (2_500_000, 9)]);
        idle.extend(read("server", &[(0, 3), (2_500_000, 3)]));
        assert_eq!(figures(Hosting::Process, &idle), (Some(0.0), None));
    }
}
