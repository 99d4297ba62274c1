//! Zipf's distribution by rejection-inversion: P(rank i) is proportional to 1 / i^s.
//!
//! The method is that of Hörmann and Derflinger: "Rejection-inversion to generate variates from
//! monotone discrete distributions" (ACM TOMACS 6, 1996). The original uses it too. It takes constant
//! memory and time, whatever the number of ranks.

use crate::oltp::draws::OltpDraws;

/// Ranks `1..=ranks` with exponent `s`.
#[derive(Debug, Clone)]
pub(crate) struct Zipf {
    ranks: f64,
    exponent: f64,
    /// Integral of the hat up to 1.5, minus 1, which is where the first rank's part begins.
    first: f64,
    /// Integral of the hat up to ranks + 0.5.
    last: f64,
    /// Candidates this close above the inverse are accepted without computing the hat.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Philox;

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
}
