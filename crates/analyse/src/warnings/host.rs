//! Warns when the host disturbed a measurement. Other programs, or a hypervisor, may have taken CPU
//! time from a step, and other programs may have read from its device. Load threads may have waited
//! for a CPU. The CPU times of all processes may not add up to the host's. During a cell or before
//! it, the machine's time of day may have been set, or the machine may have slept.
//!
//! dbdyno measures with a monotonic clock, so its figures stay right when the time of day is set.
//! Times in records, in logs and in the server itself do not, and a machine that slept has cold
//! caches. A kernel that follows a time server adjusts both clocks in the same way. A change in the
//! difference between the two clocks therefore means that one of them stepped: the time of day was
//! set, or the monotonic clock stood still while the machine slept.

use std::collections::BTreeSet;

use dbdyno_record::{CellId, Run, RunEvent};

use crate::metrics::HostCheck;
use crate::model::steps::{judged_runs, worst};
use crate::model::{Code, StepRun, Warning, WorkloadFindings};

/// Lowest reported rate at which other programs read, in MiB per second. A lower rate does not hold
/// up any device.
const MIN_READS_MIB_PER_SECOND: f64 = 1.0;

/// The warning's code, the share from which a step is reported, and the function that returns the
/// share of a step's run.
type ShareCheck = (Code, f64, fn(&StepRun) -> Option<f64>);

const SHARE_CHECKS: [ShareCheck; 4] = [
    // This is the share of the device's reads that the server did not cause.
    (Code::OtherReads, 0.10, |run| {
        let share = run.cost.others_read_share?;
        let is_noticed = share * run.metrics.rmbps? >= MIN_READS_MIB_PER_SECOND;
        Some(if is_noticed { share } else { 0.0 })
    }),
    // This is the share of all CPUs' time that a hypervisor gave to other machines. The limit is
    // half of the default margin, within which two rates count as the same.
    (Code::Steal, 0.01, |run| run.cost.host_steal_share),
    // This is the share of the window for which load threads waited for a CPU. The answers waited
    // too, so the server seems slower than it is.
    (Code::ClientWait, 0.02, |run| run.cost.load_thread_wait_share),
    // Other programs took this share of the CPU time that server and client could have had.
    (Code::ForeignCpu, 0.02, |run| run.cost.foreign_cpu_share),
];

/// Warns of each share that is too high, with the worst step.
pub(crate) fn share_warnings(workloads: &[WorkloadFindings]) -> Vec<Warning> {
    let warning = |(code, from, share): ShareCheck| Some(worst(workloads, from, share)?.warning(code, from));
    SHARE_CHECKS.into_iter().filter_map(warning).collect()
}

/// Warns of steps in which the CPU times do not add up, with the worst step and the number of
/// steps.
pub(crate) fn host_check_warning(workloads: &[WorkloadFindings]) -> Option<Warning> {
    let broken: Vec<(HostCheck, String)> = judged_runs(workloads)
        .filter_map(|found| Some((found.run.host_check.filter(|check| !check.holds())?, found.place())))
        .collect();
    let share = |check: &HostCheck| check.unexplained_share.abs();
    let (worst, place) = broken.iter().max_by(|a, b| share(&a.0).total_cmp(&share(&b.0)))?;
    let code = if worst.unexplained_share > 0.0 { Code::HostCpuUnseen } else { Code::HostCpuUncounted };
    Some(Warning::new(code).at(place).with("share", share(worst)).with("runs", broken.len()))
}

/// Smallest reported step of a clock, in seconds. A clock that follows a time server is not stepped
/// for errors below 128 ms, and both clocks are read within a millisecond.
const MIN_STEP_SECONDS: f64 = 0.1;

/// The time of day and the run's own clock, in seconds.
type Clocks = (f64, f64);

/// Warns of clock steps, with the largest one and the number of cells in which a clock stepped.
pub(crate) fn clock_step_warning(run: &Run) -> Option<Warning> {
    let mut before: Option<Clocks> = None;
    let mut steps: Vec<(f64, &CellId)> = Vec::new();
    for event in &run.events {
        let (at, cell, elapsed_us) = match event {
            RunEvent::CellStarted { at, cell, elapsed_us } => (at, cell, elapsed_us),
            RunEvent::CellEnded { at, cell, elapsed_us, .. } => (at, cell, elapsed_us),
            // The run's clock stands still while the run is stopped, and the next block of a fleet
            // may come from another machine, which has its own clocks.
            RunEvent::Started { .. } | RunEvent::BlockMeasured { .. } => {
                before = None;
                continue;
            }
            _ => continue,
        };
        let now = clocks(at, *elapsed_us);
        let step = before.zip(now).map(|(from, to)| (to.0 - from.0) - (to.1 - from.1));
        steps.extend(step.filter(|step| step.abs() > MIN_STEP_SECONDS).map(|step| (step, cell)));
        before = now;
    }
    let (seconds, cell) = steps.iter().max_by(|one, other| one.0.abs().total_cmp(&other.0.abs()))?;
    let code = if *seconds > 0.0 { Code::ClockSetOn } else { Code::ClockSetBack };
    let warning = Warning::new(code).at(cell.to_string()).with("seconds", seconds.abs());
    let cells = steps.iter().map(|(_, cell)| cell.to_string()).collect::<BTreeSet<_>>().len();
    Some(warning.with_some("cells", Some(cells).filter(|cells| *cells > 1)))
}

fn clocks(at: &str, elapsed_us: u64) -> Option<Clocks> {
    let at: jiff::Timestamp = at.parse().ok()?;
    Some((at.as_millisecond() as f64 / 1e3, elapsed_us as f64 / 1e6))
}

#[cfg(test)]
mod tests {
    use dbdyno_record::Outcome;
    use insta::assert_snapshot;

    use super::*;
    use crate::analyse;
    use crate::fixtures::{cell, cell_id, query_step, run, series, shown, texts};
    use crate::window::counters::{Counters, HOST_BUSY};

    const MIB: i64 = 1 << 20;

    /// Makes the counters of a source that read `mib` MiB in 2 s.
    fn read_bytes(source: &str, mib: i64) -> Counters {
        series(source, &["read_bytes"], &[(0, vec![0]), (2_000_000, vec![mib * MIB])])
    }

    /// Returns the warning for a step of 2 s on a host with 4 CPUs, where the hypervisor stole
    /// `stolen_us` of CPU time.
    fn steal_warning(stolen_us: i64) -> Option<String> {
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
    fn stolen_cpu_time_is_reported_from_one_percent_on() {
        let all_us = 4 * 2_000_000;
        assert_eq!(steal_warning(all_us / 125), None);
        let text = steal_warning(all_us / 20).unwrap();
        insta::assert_snapshot!(text, @"steal [block 1 a qr100] all: 1, limit: 0.01, runs: 1, share: 0.05");
    }

    /// Returns the warning for a step of 2 s whose only load thread waited for a CPU for
    /// `waited_us`.
    fn client_wait_warning(waited_us: i64) -> Option<String> {
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
        assert_eq!(client_wait_warning(2_000_000 / 60), None);
        let text = client_wait_warning(2_000_000 / 20).unwrap();
        insta::assert_snapshot!(text, @"client-wait [block 1 a qr100] all: 1, limit: 0.02, runs: 1, share: 0.05");
    }

    /// Returns the warning for a step of 2 s in which the device and the server read this many MiB.
    fn other_reads_warning(device_mib: i64, server_mib: i64) -> Option<String> {
        let mut step = query_step(500, 200);
        step.counters.extend(read_bytes("disk", device_mib));
        step.counters.extend(read_bytes("server", server_mib));
        let mut run = run(&["a"], 1, vec![cell(1, "a", vec![step])]);
        run.manifest.variants[0].driver = "mysql".to_owned();
        texts(&analyse(&run)).into_iter().find(|warning| warning.starts_with("other-reads"))
    }

    #[test]
    fn reads_by_others_are_reported_from_ten_percent_and_one_mebibyte_per_second_on() {
        insta::assert_snapshot!(other_reads_warning(100, 60).unwrap(), @"other-reads [block 1 a qr100] all: 1, limit: 0.1, runs: 1, share: 0.4");
        assert_eq!(other_reads_warning(100, 92), None, "8 %");
        assert_eq!(other_reads_warning(3, 2), None, "half a MiB a second");
        assert_eq!(other_reads_warning(100, 140), None, "the server read from another device too");
    }

    /// Returns the warning for a step of 2 s, from the CPU time that the host counted and that of
    /// all processes.
    fn host_cpu_warning(host_us: i64, processes_us: i64) -> Option<String> {
        let mut step = query_step(500, 200);
        let mut count = |source, keys: &[&str], values: Vec<i64>| {
            let samples = [(0, vec![0; values.len()]), (2_000_000, values)];
            step.counters.extend(series(source, keys, &samples));
        };
        count("server", &["cpu_us"], vec![1_000_000]);
        count("client", &["cpu_us"], vec![500_000]);
        count("host", &HOST_BUSY, vec![host_us, 0, 0, 0, 0]);
        count("processes", &["cpu_us", "kernel_threads_cpu_us"], vec![processes_us, 0]);
        let warnings = texts(&analyse(&run(&["a"], 1, vec![cell(1, "a", vec![step])])));
        warnings.into_iter().find(|line| line.starts_with("host-cpu"))
    }

    #[test]
    fn cpu_time_that_only_the_host_or_only_the_processes_counted_is_reported() {
        assert_snapshot!(host_cpu_warning(4_000_000, 2_000_000).unwrap(), @"host-cpu-unseen [block 1 a qr100] runs: 1, share: 0.5");
        assert_snapshot!(host_cpu_warning(2_000_000, 3_200_000).unwrap(), @"host-cpu-uncounted [block 1 a qr100] runs: 1, share: 0.6");
        assert_eq!(host_cpu_warning(2_000_000, 2_000_000), None);
    }

    /// Makes the events of a cell of ten minutes. `off_ms` is the error of the time of day at its
    /// start and at its end.
    fn cell_events(block: u32, off_ms: [i64; 2]) -> [RunEvent; 2] {
        let start: jiff::Timestamp = "2026-11-22T03:00:00Z".parse().unwrap();
        let cell = cell_id(block, "a");
        let elapsed_ms = [0, 600_000].map(|ms| ms + 600_000 * i64::from(block));
        let [began, ended] = [0, 1]
            .map(|at| (start + jiff::SignedDuration::from_millis(elapsed_ms[at] + off_ms[at])).to_string());
        let [begun_us, ended_us] = elapsed_ms.map(|ms| u64::try_from(ms * 1000).unwrap());
        let (outcome, message) = (Outcome::Completed, None);
        [
            RunEvent::CellStarted { at: began, cell: cell.clone(), elapsed_us: begun_us },
            RunEvent::CellEnded { at: ended, cell, outcome, message, elapsed_us: ended_us },
        ]
    }

    fn warning_of_events(events: Vec<RunEvent>) -> Option<String> {
        let mut run = run(&["a"], 1, Vec::new());
        run.events = events;
        clock_step_warning(&run).as_ref().map(shown)
    }

    /// Returns the warning for these errors of the time of day at the start and end of each cell.
    fn clock_steps_reported(off_ms: &[[i64; 2]]) -> Option<String> {
        warning_of_events((1..).zip(off_ms).flat_map(|(block, off)| cell_events(block, *off)).collect())
    }

    #[test]
    fn a_time_of_day_that_was_set_within_a_cell_is_reported() {
        assert_eq!(clock_steps_reported(&[[0, 0], [0, 90], [90, 0]]), None);
        assert_snapshot!(clock_steps_reported(&[[0, 0], [0, 40_000]]).unwrap(), @"clock-set-on [block 2 a insert-benchmark] seconds: 40.0");
        let all = [[0, -3_600_000], [-3_600_000, -3_599_800]];
        assert_snapshot!(clock_steps_reported(&all).unwrap(), @"clock-set-back [block 1 a insert-benchmark] cells: 2, seconds: 3600.0");
    }

    #[test]
    fn a_time_of_day_set_between_cells_is_reported_unless_the_run_was_stopped_then() {
        assert_snapshot!(clock_steps_reported(&[[0, 0], [-7_000, -7_000]]).unwrap(), @"clock-set-back [block 2 a insert-benchmark] seconds: 7.0");
        let resumed =
            RunEvent::Started { at: String::new(), resumed: true, tool: dbdyno_record::ToolInfo::default() };
        let events = [&cell_events(1, [0, 0])[..], &[resumed], &cell_events(2, [90_000, 90_000])].concat();
        assert_eq!(warning_of_events(events), None);
    }
}
