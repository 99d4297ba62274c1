//! Warnings about the share of a step's time or device that others took: the step with the highest
//! share, and how many steps there are.

use crate::model::runs::worst;
use crate::model::{Code, StepRun, Warning, WorkloadFindings};

/// Smallest rate of others' reads that is reported, in MiB per second. A lower one does not hold up
/// any device.
const READS_FROM_MIB_PER_SECOND: f64 = 1.0;

/// The warning's code, the share from which a step is reported, and the function that reads it.
type Share = (Code, f64, fn(&StepRun) -> Option<f64>);

const SHARES: [Share; 4] = [
    // This is the share of the device's reads that the server did not cause.
    (Code::OtherReads, 0.10, |run| {
        let share = run.cost.others_read_share?;
        let is_noticed = share * run.metrics.rmbps? >= READS_FROM_MIB_PER_SECOND;
        Some(if is_noticed { share } else { 0.0 })
    }),
    // This is the share of all CPUs' time that a hypervisor gave to others. The limit is half of
    // the margin within which rates count as the same by default.
    (Code::Steal, 0.01, |run| run.cost.host_steal_share),
    // This is the share of the window for which load threads waited for a CPU. Answers waited with
    // them, and the server seems slower than it is.
    (Code::ClientWait, 0.02, |run| run.cost.load_thread_wait_share),
    // This is the share of the CPU time that server or client could have had and that others took.
    (Code::ForeignCpu, 0.02, |run| run.cost.foreign_cpu_share),
];

pub(crate) fn warnings(workloads: &[WorkloadFindings]) -> Vec<Warning> {
    let warning = |(code, from, share): Share| Some(worst(workloads, from, share)?.warning(code, from));
    SHARES.into_iter().filter_map(warning).collect()
}

#[cfg(test)]
mod tests {
    use crate::analyse;
    use crate::fixtures::{cell, query_step, run, series, texts};
    use crate::window::counters::Counters;

    const MIB: i64 = 1 << 20;

    /// Counters of a source that read `mib` MiB in 2 s.
    fn read(source: &str, mib: i64) -> Counters {
        series(source, &["read_bytes"], &[(0, vec![0]), (2_000_000, vec![mib * MIB])])
    }

    /// A step of 2 s on a host with 4 CPUs, of whose time `stolen_us` was stolen.
    fn stolen(stolen_us: i64) -> Option<String> {
        let mut step = query_step(500, 200);
        step.counters.extend(series(
            "host",
            &["cpu_steal_us"],
            &[(0, vec![0]), (2_000_000, vec![stolen_us])],
        ));
        let warnings = texts(&analyse(&run(&["a"], 1, vec![cell(1, "a", vec![step])])));
        warnings.into_iter().find(|warning| warning.contains("steal"))
    }

    #[test]
    fn time_that_others_took_is_reported_from_one_percent_on() {
        let all_us = 4 * 2_000_000;
        assert_eq!(stolen(all_us / 125), None);
        let text = stolen(all_us / 20).unwrap();
        insta::assert_snapshot!(text, @"steal [block 1 a qr100] all: 1, limit: 0.01, runs: 1, share: 0.05");
    }

    /// A step of 2 s whose only load thread waited for `waited_us`.
    fn waited(waited_us: i64) -> Option<String> {
        let mut step = query_step(500, 200);
        let keys = ["load-0.cpu_us", "load-0.run_delay_us"];
        step.counters.extend(series(
            "load",
            &keys,
            &[(0, vec![0, 0]), (2_000_000, vec![400_000, waited_us])],
        ));
        let mut run = run(&["a"], 1, vec![cell(1, "a", vec![step])]);
        run.manifest.variants[0].driver = "mysql".to_owned();
        texts(&analyse(&run)).into_iter().find(|warning| warning.starts_with("client-wait"))
    }

    #[test]
    fn a_client_that_waited_for_a_cpu_is_reported_from_two_percent_on() {
        assert_eq!(waited(2_000_000 / 60), None);
        let text = waited(2_000_000 / 20).unwrap();
        insta::assert_snapshot!(text, @"client-wait [block 1 a qr100] all: 1, limit: 0.02, runs: 1, share: 0.05");
    }

    /// A step of 2 s in which the device and the server read this many MiB.
    fn read_by_others(device_mib: i64, server_mib: i64) -> Option<String> {
        let mut step = query_step(500, 200);
        step.counters.extend(read("disk", device_mib));
        step.counters.extend(read("server", server_mib));
        let mut run = run(&["a"], 1, vec![cell(1, "a", vec![step])]);
        run.manifest.variants[0].driver = "mysql".to_owned();
        texts(&analyse(&run)).into_iter().find(|warning| warning.starts_with("other-reads"))
    }

    #[test]
    fn others_are_reported_from_ten_percent_and_a_mebibyte_a_second_on() {
        insta::assert_snapshot!(read_by_others(100, 60).unwrap(), @"other-reads [block 1 a qr100] all: 1, limit: 0.1, runs: 1, share: 0.4");
        assert_eq!(read_by_others(100, 92), None, "8 %");
        assert_eq!(read_by_others(3, 2), None, "half a MiB a second");
        assert_eq!(read_by_others(100, 140), None, "the server read from another device too");
    }
}
