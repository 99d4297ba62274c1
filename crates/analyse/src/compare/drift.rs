//! Warnings about drift: rates that rise or fall from block to block.

use std::collections::BTreeSet;

use crate::model::runs::valid;
use crate::model::{Code, LEVEL, Warning, WorkloadFindings};
use crate::statistics::false_discovery::benjamini_hochberg;
use crate::statistics::kendall::{Trend, trend};

/// Warnings about such rates, with p-values adjusted over all steps and variants of the run.
pub(crate) fn warnings(workloads: &[WorkloadFindings]) -> Vec<Warning> {
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
/// block. It is one test of what they have in common, because a few blocks can show nothing for
/// each of many steps alone.
fn common_trend(workloads: &[WorkloadFindings]) -> Option<Trend> {
    let variants = || workloads.iter().flat_map(|workload| &workload.steps).flat_map(|step| &step.variants);
    let blocks: BTreeSet<u32> = variants().flat_map(|variant| &variant.runs).map(|run| run.block).collect();
    let series: Vec<Vec<f64>> = variants()
        .map(|variant| valid(&variant.runs).map(|run| run.rate.ln()).collect::<Vec<f64>>())
        .filter(|logs| logs.len() == blocks.len() && logs.iter().all(|log| log.is_finite()))
        .collect();
    // A single series has its own test.
    (series.len() > 1).then_some(())?;
    let of_block = |at: usize| series.iter().map(|logs| logs[at]).sum::<f64>() / series.len() as f64;
    trend(&(0..blocks.len()).map(of_block).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use crate::analyse;
    use crate::fixtures::{run_of_pairs, texts};
    use crate::model::{Findings, Verdict};

    /// A run whose `a` and `b` have these rates in `l.i0`, one pair per block.
    fn found(blocks: &[(u64, u64)]) -> Findings {
        analyse(&run_of_pairs("r", blocks))
    }

    #[test]
    fn a_trend_that_is_in_all_steps_together_is_reported_where_none_shows_it_alone() {
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
