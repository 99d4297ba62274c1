//! This module has pgbench's random functions. They apply pgbench's formulas to draws that depend
//! on the seed, the connection and the transaction number.

use std::f64::consts::PI;

use crate::Philox;
use crate::oltp::distribution::mixed;
use crate::oltp::operation;

/// Lowest parameter of a Gaussian draw.
const MIN_GAUSSIAN: f64 = 2.0;
/// Range of the parameter of a Zipfian draw.
const ZIPFIAN: std::ops::RangeInclusive<f64> = 1.001..=1000.0;

/// The draws of one transaction, in their order.
#[derive(Debug)]
pub(crate) struct PgbenchDraws {
    stream: Philox,
    draws: operation::OltpDraws,
}

impl PgbenchDraws {
    pub(crate) fn new(stream: Philox) -> Self {
        Self { draws: operation::OltpDraws::new(&stream, 0, 0), stream }
    }

    /// Goes to the first draw of transaction `number` of `client`.
    pub(crate) fn begin(&mut self, client: u32, number: u64) {
        self.draws = operation::OltpDraws::new(&self.stream, client, number);
    }

    /// Returns a uniform number in `[0, 1)`.
    fn fraction(&mut self) -> f64 {
        self.draws.fraction()
    }

    /// Returns a uniform number from `low` to `high`, both included. The range must be one for
    /// which [`range_problem`] finds no problem.
    pub(crate) fn uniform(&mut self, low: i64, high: i64) -> i64 {
        low.wrapping_add_unsigned(self.draws.below(high.abs_diff(low).saturating_add(1)))
    }

    pub(crate) fn exponential(&mut self, low: i64, high: i64, parameter: f64) -> Result<i64, String> {
        if parameter <= 0.0 || parameter.is_nan() {
            return Err(format!("exponential parameter must be greater than zero (not {parameter:.6})"));
        }
        let cut = (-parameter).exp();
        let uniform = 1.0 - self.fraction();
        let share = -(cut + (1.0 - cut) * uniform).ln() / parameter;
        Ok(at(low, high, share))
    }

    pub(crate) fn gaussian(&mut self, low: i64, high: i64, parameter: f64) -> Result<i64, String> {
        if parameter < MIN_GAUSSIAN || parameter.is_nan() {
            return Err(format!(
                "gaussian parameter must be at least {MIN_GAUSSIAN:.6} (not {parameter:.6})"
            ));
        }
        loop {
            let (first, second) = (1.0 - self.fraction(), 1.0 - self.fraction());
            let deviate = (-2.0 * first.ln()).sqrt() * (2.0 * PI * second).sin();
            if (-parameter..parameter).contains(&deviate) {
                return Ok(at(low, high, (deviate + parameter) / (parameter * 2.0)));
            }
        }
    }

    /// Returns a Zipfian number by Devroye's method of rejection ("Non-Uniform Random Variate
    /// Generation", X.6.1), as pgbench does it.
    pub(crate) fn zipfian(&mut self, low: i64, high: i64, exponent: f64) -> Result<i64, String> {
        if !ZIPFIAN.contains(&exponent) {
            let (lowest, highest) = (ZIPFIAN.start(), ZIPFIAN.end());
            return Err(format!(
                "zipfian parameter must be in range [{lowest:.3}, {highest:.0}] (not {exponent:.6})"
            ));
        }
        let count = high.wrapping_sub(low).wrapping_add(1) as f64;
        if count <= 1.0 {
            return Ok(low);
        }
        let power = exponent - 1.0;
        let b = 2.0_f64.powf(power);
        loop {
            let (u, v) = (self.fraction(), self.fraction());
            let x = u.powf(-1.0 / power).floor();
            let t = (1.0 + 1.0 / x).powf(power);
            if v * x * (t - 1.0) / (b - 1.0) <= t / b && x <= count {
                return Ok((low - 1).wrapping_add(x as i64));
            }
        }
    }
}

/// Returns the value at `share` of a range. The share is from 0 to below 1.
fn at(low: i64, high: i64, share: f64) -> i64 {
    let count = high.wrapping_sub(low).wrapping_add(1) as f64;
    low.wrapping_add((count * share) as i64)
}

/// Checks a range that a random function takes.
pub(crate) fn range_problem(low: i64, high: i64) -> Result<(), String> {
    if low > high {
        return Err("empty range given to random".to_owned());
    }
    match high.checked_sub(low).and_then(|range| range.checked_add(1)) {
        Some(_) => Ok(()),
        None => Err("random range is too large".to_owned()),
    }
}

pub(crate) fn fnv1a(value: i64, seed: i64) -> i64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ seed as u64;
    for byte in value.to_le_bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash as i64
}

pub(crate) fn murmur2(value: i64, seed: i64) -> i64 {
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    let mut key = (value as u64).wrapping_mul(FACTOR);
    key = (key ^ (key >> SHIFT)).wrapping_mul(FACTOR);
    let mut hash = ((seed as u64 ^ FACTOR.wrapping_mul(8)) ^ key).wrapping_mul(FACTOR);
    hash = (hash ^ (hash >> SHIFT)).wrapping_mul(FACTOR);
    (hash ^ (hash >> SHIFT)) as i64
}

/// Returns where `value` goes in a permutation of `0..size` that `seed` chooses.
pub(crate) fn permute(value: i64, size: i64, seed: i64) -> i64 {
    const ROUNDS: u32 = 6;
    if size < 2 {
        return 0;
    }
    let mut state = Xoroshiro::new(seed as u64);
    let size = size as u64;
    let mut at = value as u64 % size;
    let bits = size.ilog2();
    let mask = (1_u64 << bits) - 1;
    for _ in 0..ROUNDS {
        let mut mixed = |at: u64| {
            let (factor, xor) = ((state.next() & mask) | 1, state.next() & mask);
            if at > mask {
                return at;
            }
            let at = (at.wrapping_mul(factor) ^ xor) & mask;
            ((at << 1) & mask) | (at >> (bits - 1))
        };
        at = mixed(at);
        at = size - 1 - mixed(size - 1 - at);
        at = (at + state.below(size - 1)) % size;
    }
    at as i64
}

/// The random generator xoroshiro128**, seeded by splitmix64. PostgreSQL has it since version 15.
struct Xoroshiro(u64, u64);

impl Xoroshiro {
    fn new(mut seed: u64) -> Self {
        let mut next = || {
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mixed(seed)
        };
        let (first, second) = (next(), next());
        Self(first, second)
    }

    fn next(&mut self) -> u64 {
        let (first, mixed) = (self.0, self.0 ^ self.1);
        let value = first.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        self.0 = first.rotate_left(24) ^ mixed ^ (mixed << 16);
        self.1 = mixed.rotate_left(37);
        value
    }

    /// Returns a number from 0 to `highest`.
    fn below(&mut self, highest: u64) -> u64 {
        let shift = 63 - highest.max(1).ilog2();
        loop {
            let value = self.next() >> shift;
            if value <= highest {
                return value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashMap};

    use super::*;

    /// The expected values are those that Debian's pgbench 15 computes.
    #[test]
    fn hashes_and_permutations_are_those_of_the_original() {
        assert_eq!(fnv1a(10, 5432), -7_793_829_335_365_542_153);
        assert_eq!(murmur2(10, 5432), -5_817_877_081_768_721_676);
        let all: BTreeSet<i64> = (0..1000).map(|value| permute(value, 1000, 7)).collect();
        assert_eq!(all, (0..1000).collect());
    }

    fn counts(draws: usize, mut draw: impl FnMut(&mut PgbenchDraws) -> i64) -> HashMap<i64, f64> {
        let mut source = PgbenchDraws::new(Philox::new(1, 2));
        let mut counts = HashMap::new();
        for number in 0..draws {
            source.begin(3, number as u64);
            *counts.entry(draw(&mut source)).or_default() += 1.0;
        }
        counts
    }

    #[test]
    fn draws_follow_their_distributions() {
        const DRAWS: usize = 200_000;
        let share =
            |counts: &HashMap<i64, f64>, value| counts.get(&value).copied().unwrap_or(0.0) / DRAWS as f64;
        let zipfian = counts(DRAWS, |draws| draws.zipfian(1, 1000, 1.5).unwrap());
        let norm: f64 = (1..=1000).map(|k| f64::from(k).powf(-1.5)).sum();
        for k in [1, 2, 10] {
            let expected = (k as f64).powf(-1.5) / norm;
            assert!((share(&zipfian, k) / expected - 1.0).abs() < 0.06, "{k}: {}", share(&zipfian, k));
        }
        let exponential = counts(DRAWS, |draws| draws.exponential(1, 10, 2.5).unwrap());
        for k in 1..=10 {
            let f = |x: f64| (-2.5 * x / 10.0).exp();
            let expected = (f(k as f64 - 1.0) - f(k as f64)) / (1.0 - (-2.5_f64).exp());
            assert!((share(&exponential, k) / expected - 1.0).abs() < 0.06, "{k}");
        }
        let gaussian = counts(DRAWS, |draws| draws.gaussian(-5, 4, 2.0).unwrap());
        // 38.3 % of a normal distribution lie within half a deviation, and 95.4 % within the two
        // deviations of the range.
        let middle: f64 = (-2..=1).map(|k| share(&gaussian, k)).sum();
        assert!((middle - 0.5762 / 0.9545).abs() < 0.01, "{middle}");
        let uniform = counts(DRAWS, |draws| draws.uniform(-1, 2));
        assert!((-1..=2).all(|k| (share(&uniform, k) - 0.25).abs() < 0.01), "{uniform:?}");
    }

    #[test]
    fn parameters_outside_their_ranges_are_refused() {
        let mut draws = PgbenchDraws::new(Philox::new(1, 2));
        assert!(draws.gaussian(1, 2, 1.9).is_err() && draws.zipfian(1, 2, 1.0).is_err());
        assert!(draws.exponential(1, 2, 0.0).is_err() && draws.exponential(1, 2, f64::NAN).is_err());
        assert_eq!(range_problem(2, 1).unwrap_err(), "empty range given to random");
        assert_eq!(range_problem(i64::MIN, i64::MAX).unwrap_err(), "random range is too large");
        assert_eq!((draws.zipfian(5, 5, 1.5), draws.uniform(5, 5)), (Ok(5), 5));
    }
}
