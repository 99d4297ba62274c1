//! Finds what else differs from the base where the rates do: query plans, settings, stalls.

use crate::compare::query_plans::differences;
use crate::model::runs::valid;
use crate::model::{RatioContext, StallDifference, StallFigure, Steadiness, StepFindings, StepRun};
use crate::parity::Parity;
use crate::statistics::describe::median;

/// A figure, the smallest difference that is reported, and the function that reads it.
type Figure = (StallFigure, f64, fn(&Steadiness) -> Option<f64>);

/// Each figure, with the difference from which on it is reported: what a reader of its chart would
/// see.
const FIGURES: [Figure; 3] = [
    (StallFigure::WorstSecondShare, 0.25, |found| found.worst_share),
    (StallFigure::LongestGapSeconds, 2.0, |found| Some(found.longest_gap_seconds as f64)),
    (StallFigure::ShareBelowHalfMedian, 0.01, |found| Some(found.share_below_half_median)),
];

/// Fills in what differs from `base` in each step.
pub(crate) fn fill(steps: &mut [StepFindings], base: &str, parity: Option<&Parity>) {
    for step in steps {
        let Some(of_base) = step.variant(base).cloned() else {
            continue;
        };
        for variant in step.variants.iter_mut().filter(|variant| variant.variant != base) {
            let differing = |parity: &Parity| parity.differences(base, &variant.variant);
            variant.context = RatioContext {
                query_plans: differences(&of_base.query_plans, &variant.query_plans),
                settings: parity.map_or_else(Vec::new, differing),
                stalls: stalls(&of_base.runs, &variant.runs),
            };
        }
    }
}

fn stalls(base: &[StepRun], variant: &[StepRun]) -> Vec<StallDifference> {
    let of = |(figure, least, value): &Figure| {
        let over = |runs: &[StepRun]| {
            let values: Vec<f64> = valid(runs).filter_map(|run| value(run.steadiness.as_ref()?)).collect();
            median(&values)
        };
        let (base, variant) = (over(base)?, over(variant)?);
        ((base - variant).abs() >= *least).then_some(StallDifference { figure: *figure, base, variant })
    };
    FIGURES.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::step_run;

    fn run(
        block: u32,
        worst_share: f64,
        longest_gap_seconds: usize,
        share_below_half_median: f64,
    ) -> StepRun {
        let steadiness = Steadiness {
            seconds: 60,
            median_rate: 100.0,
            worst_rate: 100.0 * worst_share,
            worst_share: Some(worst_share),
            longest_gap_seconds,
            share_below_half_median,
            warm_up_seconds: None,
            never_steady: false,
            period_seconds: None,
            modes: None,
            low_mode_share: None,
        };
        StepRun { steadiness: Some(steadiness), ..step_run(block, 100.0) }
    }

    #[test]
    fn stalls_that_a_chart_would_show_are_reported_with_the_median_of_the_blocks() {
        let base = [run(1, 0.9, 0, 0.0), run(2, 0.8, 0, 0.001), run(3, 0.1, 9, 0.3)];
        let stalling = [run(1, 0.0, 3, 0.05), run(2, 0.1, 2, 0.04)];
        let found = stalls(&base, &stalling);
        let reported: Vec<_> = found.iter().map(|stall| (stall.figure, stall.base)).collect();
        assert_eq!(
            reported,
            [
                (StallFigure::WorstSecondShare, 0.8),
                (StallFigure::LongestGapSeconds, 0.0),
                (StallFigure::ShareBelowHalfMedian, 0.001)
            ]
        );
        assert!((found[2].variant - 0.045).abs() < 1e-12);
        assert!(stalls(&base, &[run(1, 0.7, 1, 0.005)]).is_empty());
        assert!(stalls(&base, &[step_run(1, 100.0)]).is_empty(), "without seconds");
    }
}
