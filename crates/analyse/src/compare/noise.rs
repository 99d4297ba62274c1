//! Measures how much ratios scatter from block to block, and forecasts what a plan with a given
//! number of blocks can show on a machine with that noise (the table of `dbdyno plan`). Warns about
//! rates that rise or fall from block to block (drift).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::model::steps::valid;
use crate::model::{Code, Findings, LEVEL, StepFindings, VariantStep, Warning, WorkloadFindings};
use crate::statistics::false_discovery::benjamini_hochberg;
use crate::statistics::power::{USUAL_POWER, blocks_for_same, blocks_needed, detectable, margin_for_same};
use crate::statistics::ranks::{Trend, trend};

/// The scatter of one step's ratios in one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepNoise {
    pub workload: String,
    pub step: String,
    /// Standard deviation of a block's log ratio; 0.01 is about 1 %.
    pub deviation: f64,
    /// Degrees of freedom of the estimate: blocks − 1, added up over the variants.
    pub degrees: u32,
    /// The noise is from the control (the base against itself), not from variants against the base.
    pub control: bool,
}

/// The noise of every step with two blocks or more. It is from the control where there is one, and
/// otherwise from all variants pooled. A difference between variants is not noise: each variant's
/// ratios scatter around their own mean.
pub fn noise(findings: &Findings) -> Vec<StepNoise> {
    let control = findings.run.control.as_deref();
    let of_step = |workload: &str, step: &StepFindings| {
        let control = control.and_then(|control| step.variant(control));
        let (parts, is_control): (Vec<_>, bool) = match control.and_then(deviation_of) {
            Some(found) => (vec![found], true),
            None => (step.variants.iter().filter_map(deviation_of).collect(), false),
        };
        let (deviation, degrees) = pooled(&parts)?;
        Some(StepNoise {
            workload: workload.to_owned(),
            step: step.name.clone(),
            deviation,
            degrees,
            control: is_control,
        })
    };
    let workloads = findings.workloads.iter();
    workloads
        .flat_map(|workload| workload.steps.iter().filter_map(move |step| of_step(&workload.name, step)))
        .collect()
}

/// Deviation and degrees of freedom of a variant's log ratios.
fn deviation_of(variant: &VariantStep) -> Option<(f64, u32)> {
    let ratio = variant.to_base.ratio.as_ref()?;
    let deviation = ratio.inference.as_ref()?.paired.as_ref()?.deviation;
    Some((deviation, u32::try_from(ratio.blocks.len()).ok()?.checked_sub(1)?))
}

/// Combines several deviations into one, each weighted by its degrees of freedom; `None` for none.
pub fn pooled(parts: &[(f64, u32)]) -> Option<(f64, u32)> {
    let degrees: u32 = parts.iter().map(|(_, degrees)| degrees).sum();
    let squares: f64 = parts.iter().map(|(deviation, degrees)| f64::from(*degrees) * deviation.powi(2)).sum();
    (degrees > 0).then(|| ((squares / f64::from(degrees)).sqrt(), degrees))
}

/// What a plan can detect in one step, with 80 % power. Differences and margins are fractions: 0.02
/// is 2 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Forecast {
    /// A variant that is faster by this fraction gets the verdict `faster`: it is found to differ
    /// by more than the margin. `None` for fewer than two blocks.
    pub detects: Option<f64>,
    /// The same, when it is the only one of the run's comparisons that differs. Its p is then
    /// compared with 5 % ÷ the number of comparisons.
    pub detects_alone: Option<f64>,
    /// Two equal variants are shown to differ by no more than this.
    pub same_within: Option<f64>,
    /// Number of blocks that detect the wanted difference; `None` when even 1,000 do not, as for a
    /// difference within the margin.
    pub blocks_for_difference: Option<u32>,
    /// Number of blocks that show two equal variants to be within the margin.
    pub blocks_for_same: Option<u32>,
}

/// Forecasts what `blocks` show when log ratios scatter from block to block with `deviation`.
/// `comparisons` is how many the run makes at once (steps × variants other than the base), `wanted`
/// is the difference to be found, and `margin` is the difference up to which two variants count as
/// the same.
pub fn forecast(deviation: f64, blocks: u32, comparisons: usize, wanted: f64, margin: f64) -> Forecast {
    let alone = LEVEL / comparisons.max(1) as f64;
    let fraction = |log: Option<f64>| log.map(f64::exp_m1);
    let bound = margin.ln_1p();
    Forecast {
        detects: fraction(detectable(bound, deviation, blocks, LEVEL, USUAL_POWER)),
        detects_alone: fraction(detectable(bound, deviation, blocks, alone, USUAL_POWER)),
        same_within: fraction(margin_for_same(deviation, blocks, LEVEL, USUAL_POWER)),
        blocks_for_difference: blocks_needed(wanted.ln_1p(), bound, deviation, LEVEL, USUAL_POWER),
        blocks_for_same: blocks_for_same(bound, deviation, LEVEL, USUAL_POWER),
    }
}

/// A run of up to `most` blocks that is analysed after each block shows as much as a run with this
/// smaller, fixed number of blocks. docs/concepts/statistics-methods.md has the simulations.
pub fn fixed_blocks(most: u32) -> u32 {
    (f64::from(most) / 1.3).round() as u32
}

/// Warnings about rates that rise or fall from block to block, with p-values adjusted over all
/// steps and variants of the run.
pub(crate) fn drift_warnings(workloads: &[WorkloadFindings]) -> Vec<Warning> {
    let steps = workloads.iter().flat_map(|workload| &workload.steps);
    let all: Vec<_> = steps
        .flat_map(|step| {
            step.variants.iter().filter_map(move |variant| Some((step, variant, variant.drift?)))
        })
        .collect();
    let adjusted = benjamini_hochberg(&all.iter().map(|(_, _, trend)| trend.p).collect::<Vec<_>>());
    let common = common_trend(workloads).filter(|trend| trend.p <= LEVEL).map(|trend| {
        let code = if trend.tau > 0.0 { Code::RatesRise } else { Code::RatesFall };
        Warning::new(code).with("tau", trend.tau).with("p", trend.p)
    });
    let reported = all.iter().zip(adjusted).filter(|(_, adjusted)| *adjusted <= LEVEL);
    let of_steps = reported.map(|((step, variant, trend), adjusted)| {
        let code = if trend.tau > 0.0 { Code::RateRises } else { Code::RateFalls };
        let warning = Warning::new(code).at(format!("{} {}", variant.variant, step.name));
        warning.with("tau", trend.tau).with("adjusted_p", adjusted)
    });
    common.into_iter().chain(of_steps).collect()
}

/// The trend in the blocks' mean log rates, over all steps and variants that are valid in every
/// block. It is tested once for all of them, because with few blocks and many steps, a trend that
/// all share may be significant in none of them alone.
fn common_trend(workloads: &[WorkloadFindings]) -> Option<Trend> {
    let variants = || workloads.iter().flat_map(|workload| &workload.steps).flat_map(|step| &step.variants);
    let blocks: BTreeSet<u32> = variants().flat_map(|variant| &variant.runs).map(|run| run.block).collect();
    let series: Vec<Vec<f64>> = variants()
        .map(|variant| valid(&variant.runs).map(|run| run.rate.ln()).collect::<Vec<f64>>())
        .filter(|logs| logs.len() == blocks.len() && logs.iter().all(|log| log.is_finite()))
        .collect();
    // A single series has its own test, which this one would repeat.
    (series.len() > 1).then_some(())?;
    let of_block = |at: usize| series.iter().map(|logs| logs[at]).sum::<f64>() / series.len() as f64;
    trend(&(0..blocks.len()).map(of_block).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::analyse;
    use crate::fixtures::{add_control, cell, load_step, run, run_of_pairs, texts};
    use crate::model::{Findings, Verdict};
    use crate::simulations::close;

    #[test]
    fn deviations_are_pooled_by_their_degrees_of_freedom() {
        let (deviation, degrees) = pooled(&[(0.01, 4), (0.02, 2)]).unwrap();
        close(deviation, (12e-4_f64 / 6.0).sqrt(), 1e-12);
        assert_eq!((degrees, pooled(&[])), (6, None));
    }

    #[test]
    fn the_noise_is_from_the_control_where_there_is_one() {
        let rates = [(1_000, 1_010, 2_000), (1_000, 990, 2_100), (1_000, 1_000, 1_900)];
        let cells = rates.iter().zip(1..).flat_map(|((a, control, b), block)| {
            [("a", a), ("a~control", control), ("b", b)]
                .map(|(name, rate)| cell(block, name, vec![load_step(rate * 100)]))
        });
        let mut run = run(&["a", "a~control", "b"], 3, cells.collect());
        let all = noise(&analyse(&run));
        assert_eq!((all.len(), all[0].degrees, all[0].control), (1, 4, false));
        add_control(&mut run);
        let control = noise(&analyse(&run));
        assert_eq!((control[0].degrees, control[0].control), (2, true));
        close(control[0].deviation, 0.01, 1e-4);
        assert!(all[0].deviation > 2.0 * control[0].deviation, "{all:?}");
    }

    #[test]
    fn more_blocks_see_more_and_one_sees_nothing() {
        let of = |blocks| forecast(0.01, blocks, 42, 0.04, 0.02);
        assert_eq!((of(1).detects, of(1).same_within), (None, None));
        let (five, ten) = (of(5), of(10));
        assert!(five.detects > ten.detects && five.same_within > ten.same_within, "{five:?} {ten:?}");
        assert!(five.detects_alone > five.detects, "{five:?}");
        assert_eq!(five.blocks_for_difference, ten.blocks_for_difference);
    }

    #[test]
    fn as_many_blocks_as_are_needed_find_the_wanted_difference_and_one_fewer_does_not() {
        let of = |blocks, wanted| forecast(0.01, blocks, 1, wanted, 0.02);
        let needed = of(5, 0.03).blocks_for_difference.unwrap();
        let detects = |blocks| of(blocks, 0.03).detects.unwrap();
        assert!(detects(needed) <= 0.03 && detects(needed - 1) > 0.03, "{needed}");
        assert_eq!(of(5, 0.02).blocks_for_difference, None, "half of all estimates lie within the margin");
    }

    /// A run whose `a` and `b` have these rates in `l.i0`, one pair per block.
    fn found(blocks: &[(u64, u64)]) -> Findings {
        analyse(&run_of_pairs("r", blocks))
    }

    #[test]
    fn a_trend_that_all_variants_share_is_reported_where_none_shows_it_alone() {
        let rates =
            [(100_000, 100_000), (97_000, 98_000), (98_000, 94_000), (91_000, 95_000), (90_000, 80_000)];
        let reported: Vec<String> =
            texts(&found(&rates)).into_iter().filter(|warning| warning.starts_with("rate")).collect();
        assert_snapshot!(reported.join("\n"), @"rates-fall p: 0.016666666666666666, tau: -1.0");
    }

    #[test]
    fn rates_that_fall_in_every_block_are_reported_and_do_not_touch_the_ratio() {
        let blocks: Vec<(u64, u64)> =
            (0..7).map(|block| (100_000 - 3_000 * block, 100_000 - 3_000 * block)).collect();
        let findings = found(&blocks);
        assert_eq!(findings.workloads[0].steps[0].variants[1].to_base.verdict, Some(Verdict::Same));
        assert_snapshot!(texts(&findings).join("\n"), @r"
        rates-fall p: 0.0003968253968253968, tau: -1.0
        rate-falls [a l.i0] adjusted_p: 0.0003968253968253968, tau: -1.0
        rate-falls [b l.i0] adjusted_p: 0.0003968253968253968, tau: -1.0
        ");
    }
}
