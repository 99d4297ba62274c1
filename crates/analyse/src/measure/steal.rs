//! CPU time that a hypervisor gave to others while a step ran: a virtual machine that is held up measures its neighbours.

use crate::measure::measured::Measured;
use crate::model::WorkloadFindings;
use crate::model::runs::worst;
use crate::model::{Code, Notice};

/// Share of all CPUs' time above which a step is named; half of the margin within which rates count as the same by default.
const REPORTED_SHARE: f64 = 0.01;

/// Share of the time of all the host's CPUs in which they had something to run and were not there for it; `None` where the host
/// was not sampled.
pub(crate) fn share(step: &Measured<'_>) -> Option<f64> {
    let stolen = step.change("host", &["cpu_steal_us"])?;
    Some(stolen.value / (f64::from(step.cpus) * stolen.between.seconds() * 1e6))
}

/// The worst of the steps that lost CPU time in this way, and how many there are.
pub(crate) fn notice(workloads: &[WorkloadFindings]) -> Option<Notice> {
    let worst = worst(workloads, REPORTED_SHARE, |run| run.cost.host_steal_share)?;
    Some(worst.notice(Code::Steal, REPORTED_SHARE))
}

#[cfg(test)]
mod tests {
    use crate::analyse;
    use crate::fixtures::{cell, query_step, run, series, texts};

    /// A step of 2 s on a host with 4 CPUs, of whose time this much was stolen.
    fn reported(stolen_us: i64) -> Option<String> {
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
        assert_eq!(reported(all_us / 125), None);
        let text = reported(all_us / 20).unwrap();
        insta::assert_snapshot!(text, @"steal [block 1 a qr100] all: 1, limit: 0.01, runs: 1, share: 0.05");
    }
}
