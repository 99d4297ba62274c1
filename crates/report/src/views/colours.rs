//! Colour rules of the original's report, checked against every table cell that its author has
//! published.
//!
//! They say what is unusual in a column, not what is significant. Ratios are coloured by their
//! verdicts, unless the plan wants thresholds.

use dbdyno_analyse::Verdict;

use crate::document::Tone;

/// Lowest ÷ highest from which on red is off. Red would cover most of a column whose values hardly
/// differ.
const RED_OFF_ABOVE: f64 = 0.8;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rated {
    pub(super) rate: f64,
    /// Whether the background rate was kept; `true` for a step without a target.
    pub(super) kept: bool,
}

/// Colours for the rates of one step, in their order; `None` stays without a colour.
///
/// They are computed on whole numbers, as the original prints them. lo is the lowest of all, hi is
/// the highest of those that kept their target (lo when none did), and q = floor((hi − lo) / 4).
/// The rules apply in this order: at most lo + q is red, unless lo ≥ 0.8 hi; a missed target is
/// grey; at least hi − q is green. Red comes before grey, so that a miss in the lowest quarter is
/// red.
///
/// Unlike in the original, a single value is not green, because it is not above any other.
pub(super) fn absolute(column: &[Option<Rated>]) -> Vec<Tone> {
    let rounded = || column.iter().flatten().map(|cell| Rated { rate: cell.rate.round(), ..*cell });
    let Some(lo) = rounded().map(|cell| cell.rate).reduce(f64::min) else {
        return vec![Tone::Plain; column.len()];
    };
    let hi = rounded().filter(|cell| cell.kept).map(|cell| cell.rate).reduce(f64::max).unwrap_or(lo);
    let quarter = (0.25 * (hi - lo)).floor();
    let red = lo < RED_OFF_ABOVE * hi;
    let is_alone = rounded().count() < 2;
    let tone = |cell: &Rated| match cell.rate.round() {
        rate if red && rate <= lo + quarter => Tone::Lowest,
        _ if !cell.kept => Tone::Missed,
        rate if rate >= hi - quarter && !is_alone => Tone::Highest,
        _ => Tone::Plain,
    };
    column.iter().map(|cell| cell.as_ref().map_or(Tone::Plain, tone)).collect()
}

/// Colours for times. The longer time has the lower speed. Speeds are in millionths, because whole
/// numbers are compared.
pub(super) fn absolute_times(seconds: &[Option<f64>]) -> Vec<Tone> {
    let speed = |seconds: &Option<f64>| {
        seconds.filter(|seconds| *seconds > 0.0).map(|seconds| Rated { rate: 1e6 / seconds, kept: true })
    };
    absolute(&seconds.iter().map(speed).collect::<Vec<_>>())
}

/// Distance of a ratio from 1: more than 5 % above, more than 5 % below, or near, on two decimals.
/// For times it is the distance of the ratio of their speeds.
pub(crate) fn distance(ratio: f64, is_time: bool) -> Tone {
    match percent(ratio, is_time) {
        percent if percent > 105.0 => Tone::Above,
        percent if percent < 95.0 => Tone::Below,
        _ => Tone::Plain,
    }
}

/// Colour by threshold, as in published reports: 0.95 and less is red, 1.05 and more is green, and
/// between them it is grey.
pub(super) fn by_threshold(ratio: f64, is_time: bool) -> Tone {
    match percent(ratio, is_time) {
        percent if percent >= 105.0 => Tone::Highest,
        percent if percent <= 95.0 => Tone::Lowest,
        _ => Tone::Missed,
    }
}

/// Colour by verdict. Only what was decided has a colour.
pub(super) fn by_verdict(verdict: Option<Verdict>) -> Tone {
    match verdict {
        Some(Verdict::Faster) => Tone::Above,
        Some(Verdict::Slower) => Tone::Below,
        Some(Verdict::Missed) => Tone::Missed,
        _ => Tone::Plain,
    }
}

fn percent(ratio: f64, is_time: bool) -> f64 {
    let ratio = if is_time && ratio > 0.0 { 1.0 / ratio } else { ratio };
    (100.0 * ratio).round()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(cells: &[(u32, bool)]) -> Vec<Tone> {
        absolute(
            &cells
                .iter()
                .map(|(rate, kept)| Some(Rated { rate: f64::from(*rate), kept: *kept }))
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn the_lowest_quarter_is_red_and_the_highest_green() {
        // lo is 1000, hi is 2003 and q = floor(250.75) = 250, so that it is red up to 1250 and
        // green from 1753.
        let cells = [(1000, true), (1250, true), (1251, true), (1752, true), (1753, true), (2003, true)];
        let (r, n, g) = (Tone::Lowest, Tone::Plain, Tone::Highest);
        assert_eq!(column(&cells), [r, r, n, n, g, g]);
    }

    #[test]
    fn red_is_off_when_the_least_is_at_least_four_fifths_of_the_greatest() {
        assert_eq!(column(&[(800, true), (1000, true)]), [Tone::Plain, Tone::Highest]);
        assert_eq!(column(&[(799, true), (1000, true)]), [Tone::Lowest, Tone::Highest]);
    }

    #[test]
    fn red_comes_before_grey_and_grey_before_green() {
        // 2660 missed its target and lies in the lowest quarter. 9000 missed it too, and would be
        // green. hi is 8000.
        let cells = [(2660, false), (6000, false), (9000, false), (8000, true)];
        assert_eq!(column(&cells), [Tone::Lowest, Tone::Missed, Tone::Missed, Tone::Highest]);
    }

    #[test]
    fn a_column_in_which_no_variant_kept_the_target_is_grey() {
        assert_eq!(column(&[(100, false), (900, false)]), [Tone::Missed, Tone::Missed]);
    }

    #[test]
    fn equal_values_are_the_highest() {
        assert_eq!(column(&[(500, true), (500, true)]), [Tone::Highest, Tone::Highest]);
        let rounded = [Some(Rated { rate: 500.4, kept: true }), Some(Rated { rate: 499.6, kept: true })];
        assert_eq!(absolute(&rounded), [Tone::Highest, Tone::Highest]);
    }

    #[test]
    fn a_cell_without_a_value_has_no_colour_and_no_say() {
        let cells = [None, Some(Rated { rate: 5.0, kept: true })];
        let kept = |rate| Some(Rated { rate, kept: true });
        assert_eq!(absolute(&[None, kept(5.0), kept(5.0)]), [Tone::Plain, Tone::Highest, Tone::Highest]);
        assert_eq!(absolute(&cells), [Tone::Plain, Tone::Plain]);
        assert_eq!(absolute(&[None, None]), [Tone::Plain, Tone::Plain]);
    }

    #[test]
    fn a_single_value_stands_out_of_nothing_but_says_that_it_missed_its_target() {
        assert_eq!(column(&[(500, true)]), [Tone::Plain]);
        assert_eq!(column(&[(500, false)]), [Tone::Missed]);
    }

    #[test]
    fn of_times_the_least_is_the_best_and_a_ratio_below_1_is_faster() {
        let (low, plain, high) = (Tone::Lowest, Tone::Plain, Tone::Highest);
        assert_eq!(absolute_times(&[Some(0.05), Some(0.07), Some(0.2), None]), [high, plain, low, plain]);
        assert_eq!([0.94, 1.0, 1.2].map(|ratio| distance(ratio, true)), [Tone::Above, plain, Tone::Below]);
        assert_eq!([0.94, 1.0, 1.2].map(|ratio| by_threshold(ratio, true)), [high, Tone::Missed, low]);
    }

    #[test]
    fn five_percent_either_way_is_near_and_reaches_the_threshold() {
        let ratios = [1.05, 0.95, 1.0549, 1.055, 0.9449, 1.0];
        let (n, b, y) = (Tone::Plain, Tone::Above, Tone::Below);
        assert_eq!(ratios.map(|ratio| distance(ratio, false)), [n, n, n, b, y, n]);
        let (green, red, grey) = (Tone::Highest, Tone::Lowest, Tone::Missed);
        let colours = ratios.map(|ratio| by_threshold(ratio, false));
        assert_eq!(colours, [green, red, green, green, red, grey]);
    }

    #[test]
    fn only_verdicts_that_differ_have_a_colour() {
        let of = [Verdict::Faster, Verdict::Slower, Verdict::Same, Verdict::Undecided, Verdict::Paced];
        let (n, b, y) = (Tone::Plain, Tone::Above, Tone::Below);
        assert_eq!(of.map(|verdict| by_verdict(Some(verdict))), [b, y, n, n, n]);
        assert_eq!(by_verdict(None), n, "one block");
    }
}
