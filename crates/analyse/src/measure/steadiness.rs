//! How steady one execution of a step was, second by second. The figures describe one run; its
//! seconds never count as repetitions.

use crate::model::{SecondPoint, Steadiness};
use crate::statistics::describe::median;
use crate::statistics::series::{longest_gap, modes, period, share_below_half_median};
use crate::statistics::warm_up::{WarmUp, warm_up};
use crate::window::Span;

/// Smallest number of whole seconds. Figures from fewer seconds say nothing and are not given.
const MIN_SECONDS: usize = 10;

/// Rates of `kind` in the whole seconds before the second `tail_from`, from which on not all
/// clients were at work.
pub(crate) fn rates_of(points: &[SecondPoint], kind: &str, tail_from: Option<u64>) -> Vec<f64> {
    let all_at_work = |second: u64| tail_from.is_none_or(|tail| second < tail);
    let wanted = points.iter().filter(|point| point.kind == kind && all_at_work(point.second));
    wanted.map(|point| point.rate).collect()
}

/// Computes the figures from one rate per second; `None` for fewer than ten. No connection was open
/// in `without_any`.
pub(crate) fn steadiness(rates: &[f64], without_any: Span) -> Option<Steadiness> {
    if rates.len() < MIN_SECONDS {
        return None;
    }
    let worst_rate = rates.iter().copied().reduce(f64::min)?;
    let median = median(rates)?;
    let warm_up = warm_up(rates);
    let found = modes(rates);
    Some(Steadiness {
        seconds: rates.len(),
        median_rate: median,
        worst_rate,
        worst_share: (median > 0.0).then(|| worst_rate / median),
        longest_gap_seconds: longest_gap(rates).max(without_any.seconds() as usize),
        share_below_half_median: share_below_half_median(rates)?,
        warm_up_seconds: match warm_up {
            Some(WarmUp::EndsAfter(seconds)) => Some(seconds),
            _ => None,
        },
        never_steady: warm_up == Some(WarmUp::NeverSteady),
        period_seconds: period(rates).map(|(lag, _)| lag),
        modes: found.map(|modes| [modes.low, modes.high]),
        low_mode_share: found.map(|modes| modes.low_share),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_of_three_seconds_is_in_every_figure_that_it_concerns() {
        let mut rates = vec![100.0; 20];
        rates[7..10].fill(0.0);
        let found = steadiness(&rates, Span::new(0, 0)).unwrap();
        assert_eq!(found.median_rate, 100.0);
        assert_eq!((found.seconds, found.worst_rate, found.worst_share), (20, 0.0, Some(0.0)));
        assert_eq!((found.longest_gap_seconds, found.share_below_half_median), (3, 0.15));
        assert_eq!((found.warm_up_seconds, found.never_steady, found.modes), (None, false, None));
    }

    #[test]
    fn a_run_that_only_gets_faster_is_never_steady() {
        let rates: Vec<f64> = (0..100).map(|second| 1_000.0 + 5.0 * f64::from(second)).collect();
        let found = steadiness(&rates, Span::new(0, 0)).unwrap();
        assert_eq!((found.never_steady, found.warm_up_seconds), (true, None));
    }

    #[test]
    fn fewer_than_ten_seconds_have_no_figures() {
        assert!(steadiness(&[1.0; 9], Span::new(0, 0)).is_none());
    }

    #[test]
    fn an_outage_between_two_busy_parts_of_seconds_is_a_gap() {
        let gap =
            |from_us, to_us| steadiness(&[100.0; 20], Span::new(from_us, to_us)).unwrap().longest_gap_seconds;
        assert_eq!((gap(7_500_000, 8_530_000), gap(7_500_000, 8_400_000)), (1, 0));
    }

    #[test]
    fn rates_are_of_one_kind_and_end_where_a_client_had_done_its_share() {
        let point = |(second, kind, rate): (u64, &str, f64)| SecondPoint {
            second,
            kind: kind.to_owned(),
            rate,
            service_max_us: None,
            response_max_us: None,
        };
        let points =
            [(3, "insert", 7.0), (4, "insert", 8.0), (5, "insert", 1.0), (3, "delete", 9.0)].map(point);
        assert_eq!(rates_of(&points, "insert", None), [7.0, 8.0, 1.0]);
        assert_eq!(rates_of(&points, "insert", Some(5)), [7.0, 8.0]);
    }
}
