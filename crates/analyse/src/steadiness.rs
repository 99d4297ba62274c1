//! How steady one execution of a step was, second by second. Figures of one run: its seconds are no repetitions.

use dbdyno_record::{StepSpec, WindowRule};
use serde::Serialize;

use crate::SecondPoint;
use crate::statistics::describe::median;
use crate::statistics::series::{longest_gap, modes, period, share_below_half_median};
use crate::statistics::warm_up::{WarmUp, warm_up};

/// Figures of fewer whole seconds say nothing, and are not given.
const MIN_SECONDS: usize = 10;

/// Whole seconds of the common window, headline kind, all clients together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Steadiness {
    pub seconds: usize,
    /// Rate of the median second.
    pub median_rate: f64,
    /// Rate of the slowest second.
    pub worst_rate: f64,
    /// The slowest second's rate ÷ the median second's; `None` when the median is 0.
    pub worst_share: Option<f64>,
    /// Longest run of whole seconds in which nothing was done.
    pub longest_gap_seconds: usize,
    /// Share of seconds below half of the median.
    pub share_below_half_median: f64,
    /// Seconds before the steady state (MSER-5); `None` for fewer than 40 seconds, and when it was never steady.
    pub warm_up_seconds: Option<usize>,
    /// No steady state was found: the best cut would lose more than half of the seconds.
    pub never_steady: bool,
    /// Seconds after which the rate repeats itself, for instance from checkpoint to checkpoint.
    pub period_seconds: Option<usize>,
    /// The two levels between which the rate jumps, and the share of seconds at the lower.
    pub modes: Option<[f64; 2]>,
    pub low_mode_share: Option<f64>,
}

/// `None` for fewer than ten whole seconds and for a step that is one piece of work.
pub(crate) fn steadiness(spec: &StepSpec, points: &[SecondPoint]) -> Option<Steadiness> {
    let of_headline = points.iter().filter(|point| point.kind == spec.headline.kind);
    let rates: Vec<f64> = of_headline.map(|point| point.rate).collect();
    if spec.window == WindowRule::LastEnded || rates.len() < MIN_SECONDS {
        return None;
    }
    let worst_rate = rates.iter().copied().reduce(f64::min)?;
    let median = median(&rates)?;
    let warm_up = warm_up(&rates);
    let found = modes(&rates);
    Some(Steadiness {
        seconds: rates.len(),
        median_rate: median,
        worst_rate,
        worst_share: (median > 0.0).then(|| worst_rate / median),
        longest_gap_seconds: longest_gap(&rates),
        share_below_half_median: share_below_half_median(&rates)?,
        warm_up_seconds: match warm_up {
            Some(WarmUp::EndsAfter(seconds)) => Some(seconds),
            _ => None,
        },
        never_steady: warm_up == Some(WarmUp::NeverSteady),
        period_seconds: period(&rates).map(|(lag, _)| lag),
        modes: found.map(|modes| [modes.low, modes.high]),
        low_mode_share: found.map(|modes| modes.low_share),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{index_spec, load_spec};

    fn points(rates: &[f64]) -> Vec<SecondPoint> {
        let kinds = ["insert", "delete"];
        let point = |(second, rate): (u64, &f64)| {
            kinds.map(|kind| SecondPoint {
                second,
                kind: kind.to_owned(),
                rate: if kind == "insert" { *rate } else { 0.0 },
                service_max_us: 0,
                response_max_us: 0,
            })
        };
        (0..).zip(rates).flat_map(point).collect()
    }

    #[test]
    fn a_stall_of_three_seconds_is_in_every_figure_that_it_concerns() {
        let mut rates = vec![100.0; 20];
        rates[7..10].fill(0.0);
        let found = steadiness(&load_spec(), &points(&rates)).unwrap();
        assert_eq!(found.median_rate, 100.0);
        assert_eq!((found.seconds, found.worst_rate, found.worst_share), (20, 0.0, Some(0.0)));
        assert_eq!((found.longest_gap_seconds, found.share_below_half_median), (3, 0.15));
        assert_eq!((found.warm_up_seconds, found.never_steady, found.modes), (None, false, None));
    }

    #[test]
    fn a_run_that_only_gets_faster_is_never_steady() {
        let rates: Vec<f64> = (0..100).map(|second| 1_000.0 + 5.0 * f64::from(second)).collect();
        let found = steadiness(&load_spec(), &points(&rates)).unwrap();
        assert_eq!((found.never_steady, found.warm_up_seconds), (true, None));
    }

    #[test]
    fn few_seconds_and_one_piece_of_work_have_no_figures() {
        assert!(steadiness(&load_spec(), &points(&[1.0; 9])).is_none());
        let mut index = index_spec();
        index.headline.kind = "insert".to_owned();
        assert!(steadiness(&index, &points(&[1.0; 30])).is_none());
    }
}
