//! Background rates that were not kept. A rate with fewer concurrent writes than planned does not
//! answer the step's question.

use crate::model::runs::valid;
use crate::model::{Code, StepFindings, VariantStep, Verdict, Warning};

/// The smallest whole number of rows per second that counts as having kept the target:
/// `round(share * target)`.
pub fn least_accepted(target_rows_per_second: f64, share: f64) -> f64 {
    (share * target_rows_per_second).round()
}

/// Applies the original's service level rule, on rounded figures: a target of 1000 at 95 % is kept
/// by 949.5 and missed by 949.4.
pub fn keeps_target(rows_per_second: f64, target_rows_per_second: f64, share: f64) -> bool {
    rows_per_second.round() >= least_accepted(target_rows_per_second, share)
}

impl StepFindings {
    /// Whether `variant` did not keep the step's background rate. It is `false` for a step without
    /// a target, and where nothing was measured.
    pub fn misses(&self, variant: &VariantStep) -> bool {
        let judged = self.target.zip(variant.judged_background_rate);
        judged.is_some_and(|((target, share), rate)| !keeps_target(rate, target, share))
    }

    /// Whether the variant of this name did not keep a background rate that `base` kept. Its ratio
    /// to the base is then one of rates with unequal writes.
    pub fn misses_target_of(&self, base: &str, variant: &str) -> bool {
        let base_keeps = |base: &VariantStep| base.background_rate.is_some() && !self.misses(base);
        self.variant(base).is_some_and(base_keeps)
            && self.variant(variant).is_some_and(|variant| self.misses(variant))
    }
}

/// The verdict for a variant that did not keep the background rate that the base kept. Slower with
/// fewer writes is still slower, and more blocks may show an undecided comparison to be slower.
pub(crate) fn with_fewer_writes(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Faster | Verdict::Same => Verdict::Missed,
        other => other,
    }
}

/// One warning per variant and step that missed its target, in all blocks or in some.
pub(crate) fn warnings(step: &StepFindings) -> Vec<Warning> {
    let missed = |variant: &VariantStep| {
        let place = format!("{} {}", variant.variant, step.name);
        let (some, all) = (variant.target_missed_blocks.len(), valid(&variant.runs).count());
        let blocks = (0 < some && some < all).then_some((some, all));
        let in_blocks = |warning: Warning| {
            let warning = warning.with_some("missed", blocks.map(|(missed, _)| missed));
            warning.with_some("blocks", blocks.map(|(_, all)| all))
        };
        if !step.misses(variant) {
            return blocks.map(|_| in_blocks(Warning::new(Code::TargetMissedInBlocks).at(place)));
        }
        let (target, share) = step.target?;
        let (judged, rate) = (variant.judged_background_rate?, variant.background_rate?);
        let warning = match keeps_target(rate, target, share) {
            true => Warning::new(Code::TargetMissedByClient)
                .with("part", (100.0 * judged / target).floor() / 100.0)
                .with("share", share),
            false => Warning::new(Code::TargetMissed).with("least", least_accepted(target, share)),
        };
        Some(in_blocks(warning.at(place).with("rate", rate).with("target", target)))
    };
    step.variants.iter().filter_map(missed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use crate::fixtures::{cell, interval, query_step, run, shown_all};
    use crate::model::Findings;

    /// Three blocks of `qr100` (the target is 200 rows/s, and 190 are enough), with a base of 400
    /// queries/s.
    fn findings(base_writes: u64, queries: u64, writes: u64) -> Findings {
        let cells = (1..=3).flat_map(|block| {
            let base = cell(block, "base", vec![query_step(400 + u64::from(block), base_writes)]);
            [base, cell(block, "new", vec![query_step(queries + u64::from(block), writes)])]
        });
        analyse(&run(&["base", "new"], 3, cells.collect()))
    }

    fn verdict(base_writes: u64, queries: u64, writes: u64) -> Option<Verdict> {
        findings(base_writes, queries, writes).workloads[0].steps[1].variants[1].to_base.verdict
    }

    #[test]
    fn with_fewer_writes_than_the_base_nothing_is_faster_or_the_same() {
        assert_eq!(verdict(200, 600, 200), Some(Verdict::Faster));
        assert_eq!(verdict(200, 600, 150), Some(Verdict::Missed));
        assert_eq!(verdict(200, 401, 150), Some(Verdict::Missed));
        assert_eq!(verdict(200, 300, 150), Some(Verdict::Slower));
    }

    #[test]
    fn where_the_base_missed_its_target_too_rates_are_compared() {
        assert_eq!(verdict(150, 600, 150), Some(Verdict::Faster));
        assert_eq!(verdict(150, 600, 200), Some(Verdict::Faster));
        let step = &findings(150, 600, 150).workloads[0].steps[1];
        assert!(!step.misses_target_of("base", "new") && !step.misses_target_of("base", "no such"));
        assert_eq!(warnings(step).len(), 2);
    }

    /// `qr100` with two clients in blocks of 2 s. The numbers are the second client's rows per
    /// second, of 100; the first client keeps its part.
    fn of_two_clients(second_client: &[u64]) -> Findings {
        let step = |rows: u64| {
            let mut step = query_step(400, 100);
            step.spec.clients = 2;
            step.intervals.push(interval(0, 2_000_000, 2, "insert", 2 * rows / 50, 2 * rows));
            step
        };
        let cells = second_client.iter().zip(1..).map(|(rows, block)| cell(block, "a", vec![step(*rows)]));
        analyse(&run(&["a"], second_client.len() as u32, cells.collect()))
    }

    #[test]
    fn a_slow_client_next_to_one_that_keeps_up_misses_the_target() {
        let findings = of_two_clients(&[92]);
        let step = &findings.workloads[0].steps[1];
        let variant = &step.variants[0];
        assert_eq!((variant.background_rate, variant.judged_background_rate), (Some(192.0), Some(184.0)));
        assert!(keeps_target(192.0, 200.0, 0.95) && step.misses(variant));
        insta::assert_snapshot!(shown_all(&warnings(step)), @"target-missed-by-client [a qr100] part: 0.92, rate: 192.0, share: 0.95, target: 200.0");
    }

    #[test]
    fn blocks_that_missed_the_target_are_counted_whatever_the_median_says() {
        let reported = |rows: &[u64]| shown_all(&warnings(&of_two_clients(rows).workloads[0].steps[1]));
        insta::assert_snapshot!(reported(&[100, 50, 100]), @"target-missed-in-blocks [a qr100] blocks: 3, missed: 1");
        insta::assert_snapshot!(reported(&[50, 100, 50]), @"target-missed [a qr100] blocks: 3, least: 190.0, missed: 2, rate: 150.0, target: 200.0");
        assert_eq!(reported(&[100, 96, 100]), "");
        let findings = of_two_clients(&[100, 50, 100]);
        assert_eq!(findings.workloads[0].steps[1].variants[0].target_missed_blocks, [2]);
    }

    #[test]
    fn a_step_without_a_target_cannot_miss_it() {
        let mut findings = findings(200, 600, 150);
        let step = &mut findings.workloads[0].steps[1];
        assert!(step.misses_target_of("base", "new"));
        step.target = None;
        assert!(!step.misses_target_of("base", "new"));
    }

    #[test]
    fn the_target_is_judged_on_rounded_figures() {
        assert!(keeps_target(949.5, 1000.0, 0.95));
        assert!(!keeps_target(949.4, 1000.0, 0.95));
        // round(0.95 * 250) = round(237.5) = 238, so that 237.4 is below it.
        assert!(!keeps_target(237.4, 250.0, 0.95));
        assert!(keeps_target(237.6, 250.0, 0.95));
    }
}
