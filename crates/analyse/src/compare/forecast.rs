//! How much a plan with a given number of blocks can show on a machine with a given noise: the
//! table of `dbdyno plan`.

use serde::Serialize;

use crate::model::LEVEL;
use crate::statistics::power::{USUAL_POWER, blocks_needed, detectable};
use crate::statistics::power_same::{blocks_for_same, margin_for_same};

/// What can be seen for one step, with 80 % power. Differences and margins are fractions: 0.02 is 2
/// %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Forecast {
    /// A variant that is faster by this fraction gets the verdict `faster`: it is found to differ
    /// by more than the margin. `None` for fewer than two blocks.
    pub detects: Option<f64>,
    /// The same, when it is the only one of the run's comparisons that differs. Its p is then
    /// compared with 5 % ÷ their number.
    pub detects_alone: Option<f64>,
    /// Two equal variants are shown to differ by no more than this.
    pub same_within: Option<f64>,
    /// Number of blocks that detect the wanted difference; `None` when even 1,000 do not, as for a
    /// difference within the margin.
    pub blocks_for_difference: Option<u32>,
    /// Number of blocks that show two equal variants to be within the margin.
    pub blocks_for_same: Option<u32>,
}

/// What `blocks` show when log ratios scatter from block to block with `deviation`. `comparisons`
/// is how many the run makes at once (steps × variants other than the base), `wanted` is the
/// difference to be found, and `margin` is what counts as no difference.
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

/// Number of blocks, fixed beforehand, that show as much as up to `most` blocks do with an analysis
/// after each. docs/concepts/statistics-methods.md has the simulations.
pub fn fixed_blocks(most: u32) -> u32 {
    (f64::from(most) / 1.3).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
