//! Random numbers of one operation or row, one after the other. Each is a pure function of its address.

use crate::digits::eight_digits;
use crate::{Philox, draw_below_u64};

/// All draws of operation `number` of `task`. They depend on these, and on the stream, alone.
#[derive(Debug)]
pub(crate) struct OltpDraws {
    stream: Philox,
    task: u32,
    number: u64,
    /// Index of the next block.
    next: u32,
    block: [u32; 4],
    /// Words of the block that are used up.
    used: usize,
}

impl OltpDraws {
    pub(crate) fn new(stream: &Philox, task: u32, number: u64) -> Self {
        Self { stream: *stream, task, number, next: 0, block: [0; 4], used: 4 }
    }

    /// Returns 32 random bits.
    pub(crate) fn word(&mut self) -> u32 {
        if self.used == self.block.len() {
            self.block = self.stream.at(self.task, self.number, self.next);
            self.next += 1;
            self.used = 0;
        }
        let word = self.block[self.used];
        self.used += 1;
        word
    }

    /// Returns a uniform number in `0..bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let (high, low) = (self.word(), self.word());
        draw_below_u64(high, low, bound)
    }

    /// Returns a uniform number in `[0, 1)`, with 53 random bits.
    pub(crate) fn fraction(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
        let bits = u64::from(self.word()) << 32 | u64::from(self.word());
        (bits >> 11) as f64 * STEP
    }

    /// Returns 16 random decimal digits as characters: the first 16 digits of a uniform fraction of 64
    /// bits.
    pub(crate) fn digits(&mut self) -> [u8; 16] {
        const EIGHT: u128 = 100_000_000;
        let bits = u64::from(self.word()) << 32 | u64::from(self.word());
        let first = u128::from(bits) * EIGHT;
        let second = u128::from(first as u64) * EIGHT;
        let mut digits = [0; 16];
        for (half, value) in digits.chunks_exact_mut(8).zip([first, second]) {
            let eight = eight_digits((value >> 64) as u32);
            half.copy_from_slice(&(eight + 0x3030_3030_3030_3030).to_le_bytes());
        }
        digits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gives_its_draws_whatever_was_drawn_before() {
        let stream = Philox::new(3, 9);
        let all = |number| {
            let mut draws = OltpDraws::new(&stream, 2, number);
            (0..9).map(|_| draws.word()).collect::<Vec<_>>()
        };
        let first = all(5);
        all(6);
        assert_eq!(first, all(5));
        assert_ne!(first, all(6));
        assert_ne!(first[0], OltpDraws::new(&stream, 3, 5).word());
    }

    #[test]
    fn fractions_and_bounded_draws_stay_inside_and_have_the_right_mean() {
        let stream = Philox::new(1, 1);
        let (mut sum, mut below) = (0.0, [0_u32; 7]);
        for number in 0..100_000 {
            let mut draws = OltpDraws::new(&stream, 1, number);
            let fraction = draws.fraction();
            assert!((0.0..1.0).contains(&fraction));
            sum += fraction;
            below[draws.below(7) as usize] += 1;
        }
        // The standard error of the mean is 0.289 / sqrt(100,000) = 0.0009.
        assert!((sum / 100_000.0 - 0.5).abs() < 0.004, "{sum}");
        // With 6 degrees of freedom, chi-square exceeds 27.9 once in 10,000 times.
        let chi: f64 = below.iter().map(|&n| (f64::from(n) - 14_285.7).powi(2) / 14_285.7).sum();
        assert!(chi < 27.9, "{below:?}");
    }

    #[test]
    fn every_place_of_the_digits_holds_each_digit_as_often() {
        let stream = Philox::new(1, 2);
        let mut counts = [[0_u32; 10]; 16];
        for number in 0..50_000 {
            for (place, digit) in OltpDraws::new(&stream, 1, number).digits().into_iter().enumerate() {
                counts[place][usize::from(digit - b'0')] += 1;
            }
        }
        for (place, counts) in counts.iter().enumerate() {
            let chi: f64 = counts.iter().map(|&n| (f64::from(n) - 5000.0).powi(2) / 5000.0).sum();
            // With 9 degrees of freedom, chi-square exceeds 39.3 once in 100,000 times.
            assert!(chi < 39.3, "place {place}: {counts:?}");
        }
    }
}
