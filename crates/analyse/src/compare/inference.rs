//! Turns ratios over blocks into verdicts: faster, slower, same, missed, paced, stalled, undecided,
//! invalid.
//!
//! A verdict needs two things. One is a p-value, adjusted over all comparisons that are made at
//! once, so that at most 5 % of the reported differences are false. The other is a margin, below
//! which a difference does not matter. docs/concepts/statistics.md explains both.

use crate::model::{CONFIDENCE, Inference, LEVEL, Paired, Verdict};
use crate::statistics::bootstrap::bca;
use crate::statistics::describe::deviation;
use crate::statistics::equivalence::{bounds, p_of_equivalence};
use crate::statistics::false_discovery::benjamini_hochberg;
use crate::statistics::power::{USUAL_POWER, blocks_needed, detectable};
use crate::statistics::signed_rank::hodges_lehmann;
use crate::statistics::student::Estimate;

/// What the ratios of several blocks say together, with `q` not adjusted yet. `None` for fewer than
/// two blocks.
pub(crate) fn paired(ratios: &[f64], margin: f64, seed: u64) -> Option<Inference> {
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let inference = of_estimate(Estimate::of_mean(&logs)?, margin);
    let deviation = deviation(&logs)?;
    let robust = hodges_lehmann(&logs, CONFIDENCE)?;
    let blocks = u32::try_from(logs.len()).unwrap_or(u32::MAX);
    let paired = Paired {
        deviation,
        bootstrap: bca(&logs, CONFIDENCE, seed)?.exp(),
        robust_value: robust.value.exp(),
        robust_interval: robust.interval.exp(),
        robust_confidence: robust.confidence,
        detectable_ratio: detectable(bounds(margin).high, deviation, blocks, LEVEL, USUAL_POWER)?.exp(),
        blocks_for_twice_margin: blocks_needed(
            (2.0 * margin).ln_1p(),
            bounds(margin).high,
            deviation,
            LEVEL,
            USUAL_POWER,
        ),
    };
    Some(Inference { paired: Some(paired), ..inference })
}

/// What rates that were measured in two runs say about their ratio. `None` when a run has fewer
/// than two valid blocks.
pub(crate) fn unpaired(base_rates: &[f64], new_rates: &[f64], margin: f64) -> Option<Inference> {
    let logs = |rates: &[f64]| rates.iter().map(|rate| rate.ln()).collect::<Vec<f64>>();
    Some(of_estimate(Estimate::of_difference(&logs(base_rates), &logs(new_rates))?, margin))
}

pub(crate) fn of_estimate(estimate: Estimate, margin: f64) -> Inference {
    let p_difference = estimate.p_of_difference();
    let p_same = p_of_equivalence(estimate, bounds(margin));
    Inference {
        interval: estimate.interval(CONFIDENCE).exp(),
        p_difference,
        q_difference: p_difference,
        p_same,
        q_same: p_same,
        is_within_margin: is_within(estimate, margin),
        paired: None,
    }
}

pub(crate) fn is_within(estimate: Estimate, margin: f64) -> bool {
    let within = bounds(margin);
    within.low <= estimate.value && estimate.value <= within.high
}

/// Adjusts the p-values of all comparisons that are made at once. Differences that would be
/// reported are one family, and sameness is another. A difference that lies inside the margin has
/// p = 1. If such differences counted as found, they would lower the bar for the others, and more
/// than 5 % of the reported ones could be false.
pub(crate) fn adjust(all: &mut [&mut Inference]) {
    let p =
        |inference: &&mut Inference| if inference.is_within_margin { 1.0 } else { inference.p_difference };
    let differences: Vec<f64> = all.iter().map(p).collect();
    let same: Vec<f64> = all.iter().map(|inference| inference.p_same).collect();
    let adjusted = benjamini_hochberg(&differences).into_iter().zip(benjamini_hochberg(&same));
    for (inference, (q_difference, q_same)) in all.iter_mut().zip(adjusted) {
        (inference.q_difference, inference.q_same) = (q_difference, q_same);
    }
}

/// The verdict for a ratio whose p-values are adjusted.
///
/// A difference that is certain but smaller than the margin, where the ratio is not yet shown to be
/// within it, is undecided. More blocks will make it `same`, or show that it is larger.
pub(crate) fn verdict(ratio: f64, inference: &Inference, margin: f64) -> Verdict {
    let within = bounds(margin).exp();
    match ratio {
        _ if inference.q_same <= LEVEL => Verdict::Same,
        ratio if inference.q_difference <= LEVEL && ratio > within.high => Verdict::Faster,
        ratio if inference.q_difference <= LEVEL && ratio < within.low => Verdict::Slower,
        _ => Verdict::Undecided,
    }
}

/// A probability with three decimals. A small one is given as a bound, because it is never 0.
pub fn p_text(p: f64) -> String {
    if p < 0.001 { "below 0.001".to_owned() } else { format!("{p:.3}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulations::close;

    fn word(ratios: &[f64]) -> Verdict {
        let value = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
        verdict(value, &paired(ratios, 0.02, 1).unwrap(), 0.02)
    }

    #[test]
    fn each_verdict_has_its_case() {
        assert_eq!(word(&[1.08, 1.07, 1.09, 1.08, 1.085]), Verdict::Faster);
        assert_eq!(word(&[0.92, 0.91, 0.93, 0.92, 0.915]), Verdict::Slower);
        assert_eq!(word(&[1.003, 0.998, 1.001, 1.002, 0.999]), Verdict::Same);
        assert_eq!(word(&[1.08, 0.95, 1.02, 0.99, 1.05]), Verdict::Undecided);
    }

    #[test]
    fn a_certain_difference_below_the_margin_is_same() {
        let ratios = [1.005, 1.006, 1.005, 1.004, 1.005];
        assert!(paired(&ratios, 0.02, 1).unwrap().p_difference < 0.001);
        assert_eq!(word(&ratios), Verdict::Same);
    }

    #[test]
    fn a_certain_difference_of_about_the_margin_is_undecided() {
        assert_eq!(word(&[1.017, 1.019, 1.022, 1.018, 1.021]), Verdict::Undecided);
    }

    #[test]
    fn turning_the_comparison_round_turns_the_verdict() {
        for ratios in [[1.03, 1.04, 1.035], [1.019, 1.021, 1.02], [0.99, 1.0, 1.01]] {
            let turned = ratios.map(|ratio| 1.0 / ratio);
            let expected = match word(&ratios) {
                Verdict::Faster => Verdict::Slower,
                Verdict::Slower => Verdict::Faster,
                other => other,
            };
            assert_eq!(word(&turned), expected);
        }
    }

    #[test]
    fn the_interval_is_students_on_log_ratios() {
        // The log ratios 0.01, 0.02, 0.03 have the mean 0.02 and the standard error 0.01 ÷ √3;
        // t(0.975, 2) = 4.302653.
        let ratios = [0.01, 0.02, 0.03].map(f64::exp);
        let found = paired(&ratios, 0.02, 1).unwrap();
        close(found.interval.low, (0.02_f64 - 4.302_653 * 0.01 / 3_f64.sqrt()).exp(), 1e-7);
        close(found.interval.high, (0.02_f64 + 4.302_653 * 0.01 / 3_f64.sqrt()).exp(), 1e-7);
        close(found.paired.unwrap().deviation, 0.01, 1e-12);
    }

    #[test]
    fn one_block_says_nothing() {
        assert!(paired(&[1.5], 0.02, 1).is_none());
        assert!(unpaired(&[100.0], &[100.0, 101.0], 0.02).is_none());
    }

    #[test]
    fn adjusting_makes_one_of_many_chance_findings_undecided() {
        let mut all: Vec<Inference> =
            (0..20).map(|_| paired(&[1.08, 0.99, 1.04], 0.02, 1).unwrap()).collect();
        all[3].p_difference = 0.01;
        adjust(&mut all.iter_mut().collect::<Vec<_>>());
        close(all[3].q_difference, 0.2, 1e-12);
        assert_eq!(verdict(1.05, &all[3], 0.02), Verdict::Undecided);
    }

    #[test]
    fn what_lies_inside_of_the_margin_does_not_make_other_differences_more_likely() {
        let small = || paired(&[1.010, 1.011, 1.009], 0.02, 1).unwrap();
        let mut all: Vec<Inference> = (0..20).map(|_| small()).collect();
        assert!(small().p_difference < 0.01);
        all[3] = Inference { p_difference: 0.01, ..paired(&[1.08, 0.99, 1.04], 0.02, 1).unwrap() };
        adjust(&mut all.iter_mut().collect::<Vec<_>>());
        close(all[3].q_difference, 0.2, 1e-12);
        close(all[4].q_difference, 1.0, 1e-12);
    }
}
