//! Every metric of a variant ÷ the base's, for the groups that are compared.

use crate::metrics::Better;
use crate::model::runs::pairs;
use crate::model::{MetricGroup, RelativeMetrics, StepRun};

/// Returns the ratios over the blocks in which both are valid, or `None` when there is no such
/// block.
pub(crate) fn relative_metrics(runs: &[StepRun], base: &[StepRun]) -> Option<RelativeMetrics> {
    let pairs: Vec<(&StepRun, &StepRun)> = pairs(runs, base).collect();
    pairs.first()?;
    let mut found = RelativeMetrics::default();
    for group in MetricGroup::ALL.iter().filter(|group| group.is_compared) {
        for metric in group.metrics.iter().filter(|metric| metric.better != Better::NotCompared) {
            let value = |run: &StepRun| (group.of)(run)?.value(metric);
            let both = pairs.iter().filter_map(|(run, base)| value(run).zip(value(base)));
            found.0.extend(quotient(&both.collect::<Vec<_>>()).map(|ratio| (metric.id, ratio)));
        }
    }
    Some(found)
}

/// Returns the geometric mean of the blocks' ratios, as for rates, where 0 ÷ 0 counts as 1. If a
/// block has a 0 on one side, the mean is 0 or infinite. It is `None` where one block would make it
/// 0 and another infinite.
fn quotient(both: &[(f64, f64)]) -> Option<f64> {
    let log = |(new, base): &(f64, f64)| if new == base { 0.0 } else { (new / base).ln() };
    let mean = both.iter().map(log).sum::<f64>() / both.len() as f64;
    Some(mean.exp()).filter(|ratio| !ratio.is_nan())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::step_run;
    use crate::model::Validity;
    use crate::simulations::close;

    fn run(block: u32, cpupq: Option<f64>, rps: f64) -> StepRun {
        let mut run = step_run(block, 100.0);
        (run.metrics.cpupq, run.metrics.rps) = (cpupq, Some(rps));
        run
    }

    #[test]
    fn figures_are_paired_by_block_and_averaged_on_a_log_scale() {
        let found = relative_metrics(
            &[run(1, Some(20.0), 1.0), run(2, Some(5.0), 3.0)],
            &[run(2, Some(10.0), 1.0), run(1, Some(10.0), 1.0)],
        )
        .unwrap();
        close(found.0["cpupq"], 1.0, 1e-12);
        close(found.0["rps"], 3.0_f64.sqrt(), 1e-12);
    }

    #[test]
    fn a_zero_in_a_block_makes_the_geometric_mean_zero_or_infinite() {
        let of = |new, base| {
            relative_metrics(&[run(1, None, new)], &[run(1, None, base)]).unwrap().0.get("rps").copied()
        };
        assert_eq!(of(0.0, 0.0), Some(1.0));
        assert_eq!(of(2.0, 0.0), Some(f64::INFINITY));
        assert_eq!(of(0.0, 2.0), Some(0.0));
        let two = |first, second| {
            let base = [run(1, None, 1.0), run(2, None, second)];
            relative_metrics(&[run(1, None, first), run(2, None, 4.0)], &base).unwrap().0.get("rps").copied()
        };
        close(two(1.0, 1.0).unwrap(), 2.0, 1e-12);
        assert_eq!(two(0.0, 1.0), Some(0.0), "a zero in one block");
        assert_eq!(two(1.0, 0.0), Some(f64::INFINITY));
        assert_eq!(two(0.0, 0.0), None, "one block makes it 0, the other infinite");
    }

    #[test]
    fn a_program_can_tell_an_infinite_ratio_from_one_that_is_not_known() {
        let found = relative_metrics(&[run(1, None, 2.0)], &[run(1, None, 0.0)]).unwrap();
        let json = serde_json::to_value(&found).unwrap();
        assert_eq!((&json["rps"], json.get("cpupq")), (&"infinite".into(), None));
    }

    #[test]
    fn what_one_of_the_two_has_not_is_not_available_and_invalid_runs_do_not_count() {
        let found = relative_metrics(&[run(1, None, 1.0)], &[run(1, Some(10.0), 1.0)]).unwrap();
        assert!(!found.0.contains_key("cpupq"));
        let mut broken = run(1, Some(1.0), 1.0);
        broken.validity = Validity::Interrupted;
        assert!(relative_metrics(&[broken], &[run(1, Some(10.0), 1.0)]).is_none());
    }
}
