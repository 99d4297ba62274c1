//! Draws ids from 1 to N by the original's distributions.
//!
//! Two distributions are wrong in some version of the original. dbdyno draws `gaussian` as it is
//! documented. Version 1.1 takes the number of its uniform draws from an option that no longer
//! exists, and always draws 1. `special` hits only the upper three quarters of its band in version
//! 1.0, which uses one random number twice. Versions before 1.0 hit the whole band. A plan can
//! choose either band.

use crate::oltp::operation::OltpDraws;
use crate::oltp::options::{Distribution, OltpOptions};

/// A distribution over `1..=N`, ready to draw from.
#[derive(Debug, Clone)]
pub(crate) struct IdDistribution {
    highest: u64,
    shape: Shape,
}

#[derive(Debug, Clone)]
enum Shape {
    Uniform,
    Special(Special),
    Gaussian {
        iterations: u32,
    },
    /// A uniform draw from 0 to 1, raised to this power and stretched over the range.
    Pareto {
        power: f64,
    },
    Zipfian(Zipf, Option<Scramble>),
}

#[derive(Debug, Clone)]
struct Special {
    iterations: u32,
    /// Fraction of the draws that come from the bell instead of the band. The bell puts some of
    /// them into the band too.
    outside: f64,
    /// Number of ids over which the bell lies.
    span: f64,
    /// The band: where it begins, and how many ids wide it is.
    band: (f64, f64),
    /// Whether the draw that chose the band also chooses the position in it.
    reused: bool,
}

impl IdDistribution {
    /// Returns the distribution that `options` ask for, over `1..=highest`.
    pub(crate) fn new(options: &OltpOptions, highest: u64) -> Self {
        let iterations = options.special_iterations;
        let shape = match options.distribution {
            Distribution::Uniform => Shape::Uniform,
            Distribution::Special | Distribution::SpecialWhole => {
                Shape::Special(Special::new(options, highest))
            }
            Distribution::Gaussian => Shape::Gaussian { iterations },
            Distribution::Pareto => {
                Shape::Pareto { power: options.pareto_h.ln() / (1.0 - options.pareto_h).ln() }
            }
            Distribution::Zipfian => Shape::Zipfian(
                Zipf::new(highest, options.zipfian_exponent),
                options.zipfian_scrambled.then(|| Scramble::new(highest)),
            ),
        };
        Self { highest, shape }
    }

    pub(crate) fn draw(&self, draws: &mut OltpDraws) -> u64 {
        let fraction = match &self.shape {
            Shape::Uniform => return 1 + draws.below(self.highest),
            Shape::Zipfian(zipf, scramble) => {
                let rank = zipf.draw(draws);
                return scramble.map_or(rank, |scramble| scramble.id(rank));
            }
            Shape::Special(special) => return 1 + (special.draw(draws) as u64).min(self.highest - 1),
            Shape::Gaussian { iterations } => bell(draws, *iterations),
            Shape::Pareto { power } => draws.fraction().powf(*power),
        };
        // Rounding in the product may reach the range's end.
        1 + ((fraction * self.highest as f64) as u64).min(self.highest - 1)
    }
}

impl Special {
    /// Returns the shape for ids up to `highest`. Version 1.0 measures bell and band by the
    /// distance from the first id to the last, and makes the band one id wider.
    fn new(options: &OltpOptions, highest: u64) -> Self {
        let reused = options.distribution == Distribution::Special;
        let (span, more) = if reused { ((highest - 1) as f64, 1.0) } else { (highest as f64, 0.0) };
        let share = f64::from(options.special_percent) / 100.0;
        Self {
            iterations: options.special_iterations,
            outside: f64::from(100 - options.special_share) / 100.0,
            span,
            band: (span * (1.0 - share) / 2.0, span * share + more),
            reused,
        }
    }

    /// Draws a position in `[0, highest)`.
    fn draw(&self, draws: &mut OltpDraws) -> f64 {
        let first = draws.fraction();
        if first < self.outside {
            return self.span * bell(draws, self.iterations);
        }
        let position = if self.reused { first } else { (first - self.outside) / (1.0 - self.outside) };
        self.band.0 + position * self.band.1
    }
}

/// Returns the mean of `iterations` uniform draws. Its distribution is a bell from 0 to 1, with a
/// standard deviation of 1 / sqrt(12 * iterations).
fn bell(draws: &mut OltpDraws, iterations: u32) -> f64 {
    let sum: f64 = (0..iterations).map(|_| draws.fraction()).sum();
    sum / f64::from(iterations)
}

/// Draws ranks `1..=ranks` with probabilities proportional to rank^-s, where s is the exponent. It
/// draws a point below the curve x^-s, which is called the hat, and rejects points that would make
/// a rank too frequent.
#[derive(Debug, Clone)]
pub(crate) struct Zipf {
    ranks: f64,
    exponent: f64,
    /// Integral of the hat up to 1.5, minus 1, which is where the first rank's part begins.
    first: f64,
    /// Integral of the hat up to ranks + 0.5.
    last: f64,
    /// A rank that lies at most this far above the point is accepted without computing the hat.
    squeeze: f64,
}

impl Zipf {
    pub(crate) fn new(ranks: u64, exponent: f64) -> Self {
        let ranks = ranks as f64;
        let integral = |x| integral(x, exponent);
        Self {
            ranks,
            exponent,
            first: integral(1.5) - 1.0,
            last: integral(ranks + 0.5),
            squeeze: 2.0 - inverse(integral(2.5) - hat(2.0, exponent), exponent),
        }
    }

    pub(crate) fn draw(&self, draws: &mut OltpDraws) -> u64 {
        loop {
            let area = self.last + draws.fraction() * (self.first - self.last);
            let x = inverse(area, self.exponent);
            let rank = (x + 0.5).floor().clamp(1.0, self.ranks);
            let accepted = rank - x <= self.squeeze
                || area >= integral(rank + 0.5, self.exponent) - hat(rank, self.exponent);
            if accepted {
                return rank as u64;
            }
        }
    }
}

/// Returns the hat, x^-s.
fn hat(x: f64, exponent: f64) -> f64 {
    (-exponent * x.ln()).exp()
}

/// Returns the integral of the hat: (x^(1-s) - 1) / (1 - s), and ln x where s is 1.
fn integral(x: f64, exponent: f64) -> f64 {
    let log = x.ln();
    expm1_over((1.0 - exponent) * log) * log
}

/// Returns the x for which `integral` is `area`.
fn inverse(area: f64, exponent: f64) -> f64 {
    // Only rounding can bring the product below -1.
    let product = (area * (1.0 - exponent)).max(-1.0);
    (log1p_over(product) * area).exp()
}

/// Returns (e^x - 1) / x, also near 0.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 * (1.0 + x / 3.0) }
}

/// Returns ln(1 + x) / x, also near 0.
fn log1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x * (0.5 - x / 3.0) }
}

/// Constants of the rounds: the fraction of the golden ratio, and its multiples.
const ROUND_KEYS: [u64; 4] =
    [0x9E37_79B9_7F4A_7C15, 0x3C6E_F372_FE94_F82A, 0xDAA6_6D2C_7DDF_743F, 0x78DD_E6E5_FD29_F054];

/// A fixed permutation of `1..=highest`, which gives each rank an id. It is a Feistel network over
/// pairs of halves, repeated until the result is in the range.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scramble {
    highest: u64,
    /// Bits of each half of a number that is permuted.
    bits: u32,
}

impl Scramble {
    pub(crate) fn new(highest: u64) -> Self {
        let bits = (u64::BITS - (highest - 1).leading_zeros()).div_ceil(2).max(1);
        Self { highest, bits }
    }

    pub(crate) fn id(&self, rank: u64) -> u64 {
        let mut position = rank - 1;
        loop {
            position = self.permuted(position);
            if position < self.highest {
                return position + 1;
            }
        }
    }

    fn permuted(&self, position: u64) -> u64 {
        let mask = (1 << self.bits) - 1;
        let (mut left, mut right) = (position >> self.bits, position & mask);
        for key in ROUND_KEYS {
            (left, right) = (right, left ^ (mixed(right ^ key) & mask));
        }
        left << self.bits | right
    }
}

/// Applies the finalizer of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
/// generators", OOPSLA 2014).
pub(crate) fn mixed(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Philox;

    const N: u64 = 100_000;

    fn ids(options: &OltpOptions, highest: u64) -> Vec<u64> {
        let distribution = IdDistribution::new(options, highest);
        let stream = Philox::new(11, 5);
        let draw = |number| distribution.draw(&mut OltpDraws::new(&stream, 1, number));
        (0..100_000).map(draw).collect()
    }

    fn of(distribution: Distribution) -> Vec<u64> {
        ids(&OltpOptions { distribution, ..OltpOptions::default() }, N)
    }

    /// Returns the share of the ids in `from..=to`.
    fn share(ids: &[u64], from: u64, to: u64) -> f64 {
        ids.iter().filter(|&&id| (from..=to).contains(&id)).count() as f64 / ids.len() as f64
    }

    #[test]
    fn every_distribution_stays_in_its_range_and_is_the_same_each_time() {
        for kind in [
            Distribution::Uniform,
            Distribution::Special,
            Distribution::SpecialWhole,
            Distribution::Gaussian,
            Distribution::Pareto,
            Distribution::Zipfian,
        ] {
            for highest in [1, 2, 3, 10, N, 2_147_483_647] {
                let options = OltpOptions { distribution: kind, ..OltpOptions::default() };
                let drawn = ids(&options, highest);
                assert!(drawn.iter().all(|id| (1..=highest).contains(id)), "{kind:?} {highest}");
                assert_eq!(drawn[..100], ids(&options, highest)[..100]);
            }
        }
    }

    #[test]
    fn uniform_hits_every_part_alike() {
        let ids = of(Distribution::Uniform);
        assert!((share(&ids, 1, N / 5) - 0.2).abs() < 0.006);
        assert!((share(&ids, N / 2 - N / 200, N / 2 + N / 200) - 0.01).abs() < 0.002);
        let distinct: std::collections::HashSet<_> = ids.iter().collect();
        // The expected number is 1 - 1/e of N.
        assert!(distinct.len().abs_diff(63_212) < 600, "{}", distinct.len());
    }

    #[test]
    fn special_sends_three_quarters_into_the_middle_hundredth() {
        // Version 1.0.20 with N = 100,000 was measured: 76.05 % of the draws, 17,433 distinct, 18,712
        // to 82,832.
        let ids = of(Distribution::Special);
        let middle = share(&ids, N / 2 - N / 200, N / 2 + N / 200);
        assert!((middle - 0.7605).abs() < 0.008, "{middle}");
        let distinct = ids.iter().collect::<std::collections::HashSet<_>>().len();
        assert!(distinct.abs_diff(17_433) < 500, "{distinct}");
        assert!(*ids.iter().min().unwrap() > 5_000 && *ids.iter().max().unwrap() < 95_000);
        // The lowest quarter of the band gets nothing but its part of the bell.
        let lowest = share(&ids, N / 2 - N / 200, N / 2 - N / 200 + N / 400);
        assert!(lowest < 0.01, "{lowest}");
    }

    #[test]
    fn special_hits_the_same_ids_as_version_1_0_of_the_original() {
        // These are shares in 2,000,000 draws of sysbench 1.0.20 by (ids, special_percent,
        // special_share), from the named id on.
        let drawn: [(u64, u32, u32, u64, &[f64]); 6] = [
            (2, 1, 75, 1, &[0.5005, 0.4995]),
            (10, 1, 75, 3, &[0.0055, 0.0582, 0.3725, 0.5582, 0.0055]),
            (10, 50, 75, 3, &[0.0055, 0.1263, 0.3044, 0.2405, 0.1871, 0.1361]),
            (10, 100, 75, 3, &[0.0554, 0.1580, 0.2228, 0.1586, 0.1055, 0.1001, 0.0998, 0.0998]),
            (
                100,
                10,
                75,
                47,
                &[0.0113, 0.0780, 0.1034, 0.1038, 0.1035, 0.1034, 0.1029, 0.1022, 0.1013, 0.0506],
            ),
            (
                1000,
                1,
                75,
                497,
                &[0.0012, 0.0691, 0.0921, 0.0923, 0.0921, 0.0923, 0.0921, 0.0919, 0.0919, 0.0463, 0.0012],
            ),
        ];
        for (highest, special_percent, special_share, first, shares) in drawn {
            let options = OltpOptions {
                distribution: Distribution::Special,
                special_percent,
                special_share,
                ..OltpOptions::default()
            };
            let ids = ids(&options, highest);
            for (id, wanted) in (first..).zip(shares) {
                let found = share(&ids, id, id);
                // The noise is four standard deviations of both.
                let noise = 4.0 * (wanted * (1.0 - wanted) * (1.0 / 100_000.0 + 1.0 / 2_000_000.0)).sqrt();
                assert!(
                    (found - wanted).abs() < noise + 0.0001,
                    "id {id} of {highest}, {special_percent} %: {found}, sysbench {wanted}"
                );
            }
        }
    }

    #[test]
    fn special_before_1_0_fills_the_whole_band() {
        let ids = of(Distribution::SpecialWhole);
        let lowest = share(&ids, N / 2 - N / 200, N / 2 - N / 200 + N / 400);
        assert!((lowest - 0.75 / 4.0).abs() < 0.01, "{lowest}");
        let middle = share(&ids, N / 2 - N / 200, N / 2 + N / 200);
        assert!((middle - 0.76).abs() < 0.01, "{middle}");
    }

    #[test]
    fn special_follows_its_parameters() {
        let options = OltpOptions {
            distribution: Distribution::Special,
            special_percent: 10,
            special_share: 50,
            special_iterations: 1,
            ..OltpOptions::default()
        };
        // Half of the draws lie in the middle tenth. With one draw the bell is flat, and puts 5 % there
        // too.
        let middle = share(&ids(&options, N), N * 45 / 100, N * 55 / 100);
        assert!((middle - 0.55).abs() < 0.01, "{middle}");
    }

    #[test]
    fn gaussian_is_a_bell_with_a_twelfth_of_the_range_as_deviation() {
        let ids = of(Distribution::Gaussian);
        let mean = ids.iter().sum::<u64>() as f64 / ids.len() as f64;
        let variance = ids.iter().map(|&id| (id as f64 - mean).powi(2)).sum::<f64>() / ids.len() as f64;
        assert!((mean / N as f64 - 0.5).abs() < 0.002, "{mean}");
        assert!((variance.sqrt() / N as f64 - 1.0 / 12.0).abs() < 0.001, "{}", variance.sqrt());
    }

    #[test]
    fn zipfian_gives_rank_1_to_id_1_unless_it_is_scrambled() {
        let plain = of(Distribution::Zipfian);
        let options = OltpOptions {
            distribution: Distribution::Zipfian,
            zipfian_scrambled: true,
            ..OltpOptions::default()
        };
        let scrambled = ids(&options, N);
        // The expected share is the sum of i^-0.8 for the first 100 over that for all 100,000.
        assert!((share(&plain, 1, 100) - 0.1785).abs() < 0.005, "{}", share(&plain, 1, 100));
        assert!(share(&scrambled, 1, 100) < 0.02, "{}", share(&scrambled, 1, 100));
        assert!((share(&scrambled, 1, N / 2) - 0.5).abs() < 0.1, "{}", share(&scrambled, 1, N / 2));
        // Scrambling gives the same frequencies to other ids.
        let frequencies = |ids: &[u64]| {
            let mut counts = std::collections::HashMap::<u64, u32>::new();
            ids.iter().for_each(|&id| *counts.entry(id).or_default() += 1);
            let mut counts: Vec<u32> = counts.into_values().collect();
            counts.sort_unstable();
            counts
        };
        assert_eq!(frequencies(&plain), frequencies(&scrambled));
    }

    #[test]
    fn ids_go_beyond_32_bits() {
        for distribution in [Distribution::Uniform, Distribution::Pareto, Distribution::Zipfian] {
            let drawn = ids(&OltpOptions { distribution, ..OltpOptions::default() }, 5_000_000_000);
            let beyond = share(&drawn, 1 << 32, 5_000_000_000);
            assert!(beyond > 0.005, "{distribution:?}: {beyond}");
        }
    }

    #[test]
    fn pareto_gives_the_first_fifth_four_fifths() {
        let first = share(&of(Distribution::Pareto), 1, N / 5);
        assert!((first - 0.8).abs() < 0.006, "{first}");
    }

    fn counts(ranks: u64, exponent: f64, number: u64) -> std::collections::HashMap<u64, u64> {
        let (zipf, stream) = (Zipf::new(ranks, exponent), Philox::new(7, 7));
        let mut counts = std::collections::HashMap::new();
        for number in 0..number {
            *counts.entry(zipf.draw(&mut OltpDraws::new(&stream, 1, number))).or_default() += 1;
        }
        counts
    }

    #[test]
    fn few_ranks_have_exactly_their_probabilities() {
        for exponent in [0.0, 0.5, 0.8, 1.0, 1.5, 3.0] {
            let counts = counts(10, exponent, 200_000);
            let weight: f64 = (1..=10).map(|rank| f64::from(rank).powf(-exponent)).sum();
            let chi: f64 = (1..=10_u32)
                .map(|rank| {
                    let expected = 200_000.0 * f64::from(rank).powf(-exponent) / weight;
                    let seen = counts.get(&u64::from(rank)).copied().unwrap_or(0) as f64;
                    (seen - expected).powi(2) / expected
                })
                .sum();
            // With 9 degrees of freedom, chi-square exceeds 33.7 once in 10,000 times.
            assert!(chi < 33.7, "exponent {exponent}: chi-square {chi}, {counts:?}");
        }
    }

    #[test]
    fn ten_million_ranks_have_the_published_shares() {
        let counts = counts(10_000_000, 0.8, 200_000);
        let share = |to: u64| {
            counts.iter().filter(|(rank, _)| **rank <= to).map(|(_, count)| count).sum::<u64>() as f64
                / 200_000.0
        };
        for (to, expected) in [(1, 0.0083), (100, 0.067), (1000, 0.127), (10_000, 0.223), (1_000_000, 0.617)]
        {
            assert!((share(to) - expected).abs() < 0.004, "top {to}: {}", share(to));
        }
    }

    #[test]
    fn one_rank_is_always_drawn() {
        assert_eq!(counts(1, 0.8, 100).into_iter().collect::<Vec<_>>(), [(1, 100)]);
    }

    #[test]
    fn every_id_has_exactly_one_rank() {
        for highest in [1, 2, 3, 4, 5, 16, 17, 1000, 4096, 10_007] {
            let scramble = Scramble::new(highest);
            let mut ids: Vec<u64> = (1..=highest).map(|rank| scramble.id(rank)).collect();
            ids.sort_unstable();
            assert_eq!(ids, (1..=highest).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_first_ranks_lie_all_over_the_table() {
        for highest in [10_000_000, 5_000_000_000] {
            let scramble = Scramble::new(highest);
            let mut tenths = [0_u32; 10];
            for rank in 1..=1000 {
                tenths[((scramble.id(rank) - 1) * 10 / highest) as usize] += 1;
            }
            // With 9 degrees of freedom, chi-square exceeds 33.7 once in 10,000 times.
            let chi: f64 = tenths.iter().map(|&n| (f64::from(n) - 100.0).powi(2) / 100.0).sum();
            assert!(chi < 33.7, "{highest}: {tenths:?}");
        }
    }
}
