//! Load threads that waited for a CPU: answers waited with them, and the server seems slower than it is.

use crate::model::WorkloadFindings;
use crate::model::runs::worst;

/// Share of the window from which a step is named: the margin within which rates count as the same by default.
const TOLD_SHARE: f64 = 0.02;

/// The worst of the steps that were held up in this way, and how many there are.
pub(crate) fn warning(workloads: &[WorkloadFindings]) -> Option<String> {
    let worst = worst(workloads, TOLD_SHARE, |run| run.cost.load_thread_wait_share)?;
    Some(format!(
        "The load client waited for a CPU: a thread in {:.1} % of the time at worst, in {}; in \
         more than {:.0} % in {} of {} runs of steps. Rates are lower by up to as much, and \
         latencies longer.",
        100.0 * worst.share,
        worst.place,
        100.0 * TOLD_SHARE,
        worst.told,
        worst.all
    ))
}

#[cfg(test)]
mod tests {
    use crate::analyse;
    use crate::fixtures::{cell, query_step, run, series, texts};

    /// A step of 2 s whose only load thread waited so long.
    fn told(waited_us: i64) -> Option<String> {
        let mut step = query_step(500, 200);
        let keys = ["load-0.cpu_us", "load-0.run_delay_us"];
        step.counters.extend(series(
            "load",
            &keys,
            &[(0, vec![0, 0]), (2_000_000, vec![400_000, waited_us])],
        ));
        let mut run = run(&["a"], 1, vec![cell(1, "a", vec![step])]);
        run.manifest.variants[0].driver = "mysql".to_owned();
        texts(&analyse(&run)).into_iter().find(|warning| warning.contains("waited for a CPU"))
    }

    #[test]
    fn a_client_that_waited_for_a_cpu_is_told_from_two_percent_on() {
        assert_eq!(told(2_000_000 / 60), None);
        let text = told(2_000_000 / 20).unwrap();
        assert!(
            text.contains("5.0 % of the time at worst, in block 1 a ") && text.contains("in 1 of 1 runs"),
            "{text}"
        );
    }
}
