//! Whether other programs that took CPU time during the measurement may explain a difference
//! between two variants.
//!
//! Others took a part f of the CPU time that server or client could have had. Without them the two
//! could have had all of it, and a rate could have been up to 1 ÷ (1 − f) times as high. Where that
//! is within the margin, it changes no verdict. Beyond the margin, a difference counts only if it
//! is larger by as much. Where others had half of the time or more, none counts: threads that wait
//! for each other lose more than their part.

use crate::model::runs::valid;
use crate::model::{Code, ComparedStep, ForeignLoad, Ratio, StepFindings, StepRun, Verdict, Warning};

/// From this part on, nothing is decided.
const MOST: f64 = 0.5;

impl ForeignLoad {
    /// The foreign load over the valid runs of both; `None` where it changes no verdict.
    pub(crate) fn between(new: &[StepRun], base: &[StepRun], margin: f64) -> Option<Self> {
        let found = Self { base_share: mean_share(base), new_share: mean_share(new) };
        (found.slowed([found.base_share, found.new_share].into_iter().fold(0.0, f64::max)) > margin.ln_1p())
            .then_some(found)
    }

    /// The logarithm of the factor by which a rate may have been slowed.
    fn slowed(self, share: f64) -> f64 {
        -(-share).ln_1p()
    }

    /// The verdict for rates or times, given the ratio's own verdict and its log interval
    /// `low..high`.
    fn judged(self, verdict: Verdict, (low, high): (f64, f64), margin: f64, is_time: bool) -> Verdict {
        // From here on the logs are those of a rate, of which more is better.
        let (low, high) = if is_time { (-high, -low) } else { (low, high) };
        let holds = match verdict {
            Verdict::Faster => low - self.slowed(self.base_share) > margin.ln_1p(),
            Verdict::Slower => high + self.slowed(self.new_share) < -margin.ln_1p(),
            Verdict::Same | Verdict::Missed => false,
            // A stall, or a rate that the plan sets, does not depend on a comparison of rates.
            Verdict::Stalled | Verdict::Paced | Verdict::Undecided | Verdict::Invalid => return verdict,
        };
        let is_less = self.base_share < MOST && self.new_share < MOST;
        if holds && is_less { verdict } else { Verdict::Undecided }
    }

    /// The verdict for a response time. It is always undecided, because a wait for a CPU lasts
    /// longer than most answers take.
    pub(crate) fn of_percentile(verdict: Option<Verdict>) -> Option<Verdict> {
        verdict.map(|_| Verdict::Undecided)
    }
}

/// Geometric mean of the factors by which rates may have been slowed, as a share of CPU time.
fn mean_share(runs: &[StepRun]) -> f64 {
    let shares: Vec<f64> =
        valid(runs).map(|run| run.cost.foreign_cpu_share.unwrap_or(0.0).clamp(0.0, 0.999)).collect();
    let logs: f64 = shares.iter().map(|share| (-share).ln_1p()).sum();
    1.0 - (logs / shares.len().max(1) as f64).exp()
}

/// The logarithms between which a ratio lies.
fn interval(ratio: &Ratio) -> (f64, f64) {
    match ratio.interval() {
        Some(interval) => (interval.low.ln(), interval.high.ln()),
        None => (ratio.value.ln(), ratio.value.ln()),
    }
}

/// Whether a ratio's verdict does not hold, given the CPU time that other programs took.
pub(crate) fn is_explained(
    load: ForeignLoad,
    verdict: Verdict,
    ratio: &Ratio,
    (margin, is_time): (f64, bool),
) -> bool {
    load.judged(verdict, interval(ratio), margin, is_time) != verdict
}

/// One warning for all steps of a run in which foreign load may explain a difference, the worst
/// step first.
pub(crate) fn warning<'a>(steps: impl Iterator<Item = &'a StepFindings>) -> Option<Warning> {
    let of_step = |step: &'a StepFindings| {
        let found = step.variants.iter().filter_map(|variant| Some((variant, variant.to_base.foreign_load?)));
        found.map(move |(variant, found)| (format!("{} {}", variant.variant, step.name), found))
    };
    warning_of(steps.flat_map(of_step).collect())
}

/// The note that a comparison has above its table.
pub(crate) fn note(steps: &[ComparedStep]) -> Option<Warning> {
    warning_of(
        steps.iter().filter_map(|step| Some((step.step.clone(), step.to_base.foreign_load?))).collect(),
    )
}

fn warning_of(mut found: Vec<(String, ForeignLoad)>) -> Option<Warning> {
    let most = |load: &ForeignLoad| load.base_share.max(load.new_share);
    found.sort_by(|(_, one), (_, other)| most(other).total_cmp(&most(one)));
    let (_, worst) = *found.first().as_ref()?;
    let (base, new) = (worst.base_share, worst.new_share);
    let warning = Warning::new(Code::ForeignLoad).at_all(found.into_iter().map(|(place, _)| place));
    Some(warning.with("base_share", base).with("new_share", new))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use crate::compare::comparison::{CompareChoices, compare};
    use crate::fixtures::{cell, load_step, run, series, shown_all, step_run, texts};
    use crate::metrics::Cost;
    use crate::model::Side;
    use crate::window::counters::HOST_BUSY;

    const MARGIN: f64 = 0.05;

    fn runs(shares: &[f64]) -> Vec<StepRun> {
        let cost = |share| Cost { foreign_cpu_share: Some(share), ..Cost::default() };
        shares.iter().map(|share| StepRun { cost: cost(*share), ..step_run(1, 100.0) }).collect()
    }

    /// The verdict for a ratio from `low` to `high`, where others had these parts of the CPU time.
    fn word(verdict: Verdict, (low, high): (f64, f64), base: f64, new: f64) -> Verdict {
        match ForeignLoad::between(&runs(&[new]), &runs(&[base]), MARGIN) {
            Some(found) => found.judged(verdict, (f64::ln(low), f64::ln(high)), MARGIN, false),
            None => verdict,
        }
    }

    #[test]
    fn a_difference_that_foreign_load_may_explain_is_undecided_and_a_greater_one_is_not() {
        assert_eq!(word(Verdict::Slower, (0.70, 0.76), 0.0, 0.2), Verdict::Slower);
        // Without the others the ratio could be 0.80 ÷ 0.8.
        assert_eq!(word(Verdict::Slower, (0.70, 0.80), 0.0, 0.2), Verdict::Undecided);
        assert_eq!(word(Verdict::Faster, (1.20, 1.30), 0.2, 0.0), Verdict::Undecided);
        assert_eq!(word(Verdict::Faster, (1.35, 1.40), 0.2, 0.0), Verdict::Faster);
        assert_eq!(word(Verdict::Faster, (1.20, 1.30), 0.0, 0.2), Verdict::Faster, "it was held up itself");
        assert_eq!(word(Verdict::Same, (0.99, 1.01), 0.2, 0.2), Verdict::Undecided);
    }

    #[test]
    fn where_others_had_half_of_the_time_nothing_is_decided() {
        assert_eq!(word(Verdict::Slower, (0.08, 0.10), 0.0, 0.6), Verdict::Undecided);
        assert_eq!(word(Verdict::Faster, (10.0, 11.0), 0.0, 0.6), Verdict::Undecided);
        assert_eq!(word(Verdict::Stalled, (1.0, 1.0), 0.6, 0.6), Verdict::Stalled);
    }

    #[test]
    fn what_lies_within_the_margin_changes_nothing() {
        assert_eq!(word(Verdict::Same, (0.99, 1.01), 0.04, 0.04), Verdict::Same);
        assert_eq!(word(Verdict::Slower, (0.90, 0.94), 0.0, 0.04), Verdict::Slower);
        assert!(ForeignLoad::between(&runs(&[0.1, 0.0]), &runs(&[0.0]), MARGIN).is_some(), "5.1 %");
        assert_eq!(ForeignLoad::between(&runs(&[0.1, 0.0, 0.0]), &runs(&[0.0]), MARGIN), None);
    }

    #[test]
    fn of_times_a_longer_one_may_be_due_to_others() {
        let found = ForeignLoad { base_share: 0.0, new_share: 0.2 };
        let word = |low: f64, high: f64| found.judged(Verdict::Slower, (low.ln(), high.ln()), MARGIN, true);
        assert_eq!((word(1.20, 1.30), word(1.35, 1.40)), (Verdict::Undecided, Verdict::Slower));
    }

    /// Three blocks with 2 s of CPU time each. Next to `b`, others took `others_us` more.
    fn loaded(others_us: i64) -> dbdyno_record::Run {
        let step = |rate, others_us| {
            let two = |values: &[i64]| [(0, vec![0; values.len()]), (2_000_000, values.to_vec())];
            let mut step = load_step(rate);
            step.counters.extend(series("server", &["cpu_us"], &two(&[1_500_000])));
            step.counters.extend(series("client", &["cpu_us"], &two(&[500_000])));
            let all_us = 2_000_000 + others_us;
            let keys = ["cpu_us", "kernel_threads_cpu_us"];
            step.counters.extend(series("processes", &keys, &two(&[all_us, 0])));
            step.counters.extend(series("host", &HOST_BUSY, &two(&[all_us, 0, 0, 0, 0])));
            step
        };
        let of_block = |block| {
            let rate = |rate| rate + 10 * u64::from(block);
            let b = cell(block, "b", vec![step(rate(80_000), others_us)]);
            [cell(block, "a", vec![step(rate(100_000), 0)]), b]
        };
        run(&["a", "b"], 3, (1..=3).flat_map(of_block).collect())
    }

    #[test]
    fn a_run_next_to_other_programs_says_so_in_its_report_and_in_its_comparison() {
        let idle = loaded(30_000);
        let found = analyse(&idle);
        assert_eq!(found.workloads[0].steps[0].variants[1].to_base.verdict, Some(Verdict::Slower));
        assert_eq!(texts(&found), Vec::<String>::new());
        let busy = loaded(2_030_000);
        let found = analyse(&busy);
        assert_eq!(found.workloads[0].steps[0].variants[1].to_base.verdict, Some(Verdict::Undecided));
        let reported = texts(&found).join("\n");
        assert!(reported.contains("foreign-load [b l.i0] base_share: 0.0, new_share: 0.25"), "{reported}");
        assert!(reported.contains("foreign-cpu [block 3 b l.i0] all: 6, limit: 0.02, runs: 3"), "{reported}");
        let side = |variant| Side { run: &busy, variant };
        let compared = compare(side("a"), side("b"), CompareChoices::default()).unwrap();
        assert_eq!(compared.steps[0].to_base.verdict, Some(Verdict::Undecided));
        let notes = shown_all(&compared.notes);
        assert!(notes.contains("foreign-load [l.i0] base_share: 0.0, new_share: 0.25"), "{notes}");
    }
}
