//! Warning about steps in which the CPU time of server, client and the rest does not add up to the
//! host's.

use crate::metrics::HostCheck;
use crate::model::runs::judged_runs;
use crate::model::{Code, Warning, WorkloadFindings};

/// A warning with the worst of these steps, and how many there are.
pub(crate) fn warning(workloads: &[WorkloadFindings]) -> Option<Warning> {
    let broken: Vec<(HostCheck, String)> = judged_runs(workloads)
        .filter_map(|found| Some((found.run.host_check.filter(|check| !check.holds())?, found.place())))
        .collect();
    let share = |check: &HostCheck| check.unexplained_share.abs();
    let (worst, place) = broken.iter().max_by(|a, b| share(&a.0).total_cmp(&share(&b.0)))?;
    let code = if worst.unexplained_share > 0.0 { Code::HostCpuUnseen } else { Code::HostCpuUncounted };
    Some(Warning::new(code).at(place).with("share", share(worst)).with("runs", broken.len()))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use crate::analyse;
    use crate::fixtures::{cell, query_step, run, series, texts};
    use crate::window::counters::HOST_BUSY;

    /// A step of 2 s, with the CPU time that the host counted and that of all processes.
    fn reported(host_us: i64, processes_us: i64) -> Option<String> {
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
    fn what_no_process_did_and_what_the_host_did_not_see_is_warned_of() {
        assert_snapshot!(reported(4_000_000, 2_000_000).unwrap(), @"host-cpu-unseen [block 1 a qr100] runs: 1, share: 0.5");
        assert_snapshot!(reported(2_000_000, 3_200_000).unwrap(), @"host-cpu-uncounted [block 1 a qr100] runs: 1, share: 0.6");
        assert_eq!(reported(2_000_000, 2_000_000), None);
    }
}
