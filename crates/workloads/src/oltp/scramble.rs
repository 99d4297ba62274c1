//! A fixed permutation of ids, which spreads neighbouring ranks over the whole table.
//!
//! It is a Feistel network of four rounds on the two halves of a number of just enough bits. A result
//! outside of the table is permuted again until it lies inside ("cycle walking"; Black and Rogaway:
//! "Ciphers with arbitrary finite domains", CT-RSA 2002). So each id has exactly one rank, which a hash
//! of the rank would not give.

/// Constants of the rounds: the fraction of the golden ratio, and its multiples.
const ROUND_KEYS: [u64; 4] =
    [0x9E37_79B9_7F4A_7C15, 0x3C6E_F372_FE94_F82A, 0xDAA6_6D2C_7DDF_743F, 0x78DD_E6E5_FD29_F054];

/// The permutation of `1..=greatest`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scramble {
    greatest: u64,
    /// Bits of each half.
    bits: u32,
}

impl Scramble {
    pub(crate) fn new(greatest: u64) -> Self {
        let bits = (u64::BITS - (greatest - 1).leading_zeros()).div_ceil(2).max(1);
        Self { greatest, bits }
    }

    pub(crate) fn id(&self, rank: u64) -> u64 {
        let mut place = rank - 1;
        loop {
            place = self.permuted(place);
            if place < self.greatest {
                return place + 1;
            }
        }
    }

    fn permuted(&self, place: u64) -> u64 {
        let mask = (1 << self.bits) - 1;
        let (mut left, mut right) = (place >> self.bits, place & mask);
        for key in ROUND_KEYS {
            (left, right) = (right, left ^ (mixed(right ^ key) & mask));
        }
        left << self.bits | right
    }
}

/// Returns the finalizer of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
/// generators", OOPSLA 2014).
pub(crate) fn mixed(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_has_exactly_one_rank() {
        for greatest in [1, 2, 3, 4, 5, 16, 17, 1000, 4096, 10_007] {
            let scramble = Scramble::new(greatest);
            let mut ids: Vec<u64> = (1..=greatest).map(|rank| scramble.id(rank)).collect();
            ids.sort_unstable();
            assert_eq!(ids, (1..=greatest).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_first_ranks_lie_all_over_the_table() {
        for greatest in [10_000_000, 5_000_000_000] {
            let scramble = Scramble::new(greatest);
            let mut tenths = [0_u32; 10];
            for rank in 1..=1000 {
                tenths[((scramble.id(rank) - 1) * 10 / greatest) as usize] += 1;
            }
            // With 9 degrees of freedom, chi-square exceeds 33.7 once in 10,000 times.
            let chi: f64 = tenths.iter().map(|&n| (f64::from(n) - 100.0).powi(2) / 100.0).sum();
            assert!(chi < 33.7, "{greatest}: {tenths:?}");
        }
    }
}
