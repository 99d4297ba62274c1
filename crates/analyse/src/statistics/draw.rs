//! Random numbers as a pure function of seed and position, so that a result never depends on the
//! order in which work is done.
//!
//! The generator is SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number
//! Generators", OOPSLA 2014). It is written out here, so that no update of a dependency changes a
//! report.

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number at `position` in the sequence of `seed`. All 64-bit numbers are equally likely.
pub(crate) fn number(seed: u64, position: u64) -> u64 {
    let mut z = seed.wrapping_add(position.wrapping_add(1).wrapping_mul(GOLDEN));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A whole number below `limit`, by multiplying and shifting. The bias is below `limit` ÷ 2⁶⁴.
pub(crate) fn below(seed: u64, position: u64, limit: usize) -> usize {
    ((u128::from(number(seed, position)) * limit as u128) >> 64) as usize
}

/// Puts `values` into a random order, where all orders are equally likely (Fisher and Yates, from
/// the last place to the second).
pub(crate) fn shuffle(values: &mut [f64], seed: u64) {
    for last in (1..values.len()).rev() {
        values.swap(last, below(seed, last as u64, last + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // These are the reference implementation's first outputs for the seed 1234567.
        let first: Vec<u64> = (0..3).map(|position| number(1_234_567, position)).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn numbers_below_a_limit_are_spread_evenly() {
        let mut counts = [0_u32; 7];
        for position in 0..70_000 {
            counts[below(5, position, 7)] += 1;
        }
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
    }

    #[test]
    fn every_order_of_three_is_equally_likely() {
        let mut counts = std::collections::BTreeMap::new();
        for seed in 0..6_000 {
            let mut values = [1.0, 2.0, 3.0];
            shuffle(&mut values, number(9, seed));
            *counts.entry(format!("{values:?}")).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|count| (880..1_120).contains(count)), "{counts:?}");
    }
}
