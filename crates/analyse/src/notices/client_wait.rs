//! Load threads that waited for a CPU: answers waited with them, and the server seems slower than it is.

use crate::model::WorkloadFindings;
use crate::model::runs::worst;
use crate::model::{Code, Notice};

/// Share of the window from which a step is named: the margin within which rates count as the same by default.
const REPORTED_SHARE: f64 = 0.02;

/// The worst of the steps that were held up in this way, and how many there are.
pub(crate) fn notice(workloads: &[WorkloadFindings]) -> Option<Notice> {
    let worst = worst(workloads, REPORTED_SHARE, |run| run.cost.load_thread_wait_share)?;
    Some(worst.notice(Code::ClientWait, REPORTED_SHARE))
}

#[cfg(test)]
mod tests {
    use crate::analyse;
    use crate::fixtures::{cell, query_step, run, series, texts};

    /// A step of 2 s whose only load thread waited so long.
    fn reported(waited_us: i64) -> Option<String> {
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
        assert_eq!(reported(2_000_000 / 60), None);
        let text = reported(2_000_000 / 20).unwrap();
        insta::assert_snapshot!(text, @"client-wait [block 1 a qr100] all: 1, limit: 0.02, runs: 1, share: 0.05");
    }
}
