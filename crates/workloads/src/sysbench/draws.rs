//! Draws sysbench's random numbers from dbdyno's own generator. Every draw depends on the seed, the
//! step, the connection and the number of the event, and on nothing else.

use crate::Philox;
use crate::oltp::distribution::IdDistribution;
use crate::oltp::operation::OltpDraws;
use crate::oltp::options::{Distribution, OltpOptions};

/// The highest prime below 2^32. It is congruent to 3 modulo 4, as [`unique`] requires.
const PRIME: u64 = 4_294_967_291;

#[derive(Debug)]
pub(crate) struct Draw {
    stream: Philox,
    draws: OltpDraws,
    options: OltpOptions,
    /// Distributions that scripts have asked for, by kind and number of values. They are kept
    /// because making one may cost more than a draw.
    made: Vec<(Distribution, u64, IdDistribution)>,
}

impl Draw {
    /// Returns draws from `stream`. `options` name the default distribution, and have the
    /// parameters of every distribution.
    pub(crate) fn new(stream: Philox, options: OltpOptions) -> Self {
        Self { draws: OltpDraws::new(&stream, 0, u64::MAX), stream, options, made: Vec::new() }
    }

    /// Begins the draws for event `number` of connection task `task`.
    pub(crate) fn begin(&mut self, task: u32, number: u64) {
        self.draws = OltpDraws::new(&self.stream, task, number);
    }

    pub(crate) fn default(&mut self, low: i64, high: i64) -> i64 {
        self.of(self.options.distribution, low, high)
    }

    pub(crate) fn uniform(&mut self, low: i64, high: i64) -> i64 {
        let Some(values) = values(low, high) else { return low };
        low.wrapping_add_unsigned(self.draws.below(values))
    }

    /// Returns a number from `low` to `high`, both included, as `kind` draws it.
    pub(crate) fn of(&mut self, kind: Distribution, low: i64, high: i64) -> i64 {
        /// Highest number of distributions that are kept. Scripts ask for a few ranges repeatedly.
        const MOST_KEPT: usize = 8;
        if kind == Distribution::Uniform {
            return self.uniform(low, high);
        }
        let Some(values) = values(low, high) else { return low };
        let index = self.made.iter().position(|made| made.0 == kind && made.1 == values);
        let index = index.unwrap_or_else(|| {
            if self.made.len() == MOST_KEPT {
                self.made.remove(0);
            }
            let options = OltpOptions { distribution: kind, ..self.options.clone() };
            self.made.push((kind, values, IdDistribution::new(&options, values)));
            self.made.len() - 1
        });
        low.wrapping_add_unsigned(self.made[index].2.draw(&mut self.draws) - 1)
    }

    /// Returns a uniform number in `[0, 1)`.
    pub(crate) fn fraction(&mut self) -> f64 {
        self.draws.fraction()
    }

    /// Returns the `template` with a digit for each `#` and a lower-case letter for each `@`.
    pub(crate) fn text(&mut self, template: &[u8]) -> Vec<u8> {
        let (mut digits, mut used) = ([0; 16], 16);
        let mut filled = |&character: &u8| match character {
            b'#' => {
                if used == digits.len() {
                    (digits, used) = (self.draws.digits(), 0);
                }
                used += 1;
                digits[used - 1]
            }
            b'@' => b'a' + self.draws.below(26) as u8,
            other => other,
        };
        template.iter().map(&mut filled).collect()
    }

    /// Returns a text of `shortest` to `longest` characters from `0` to `z`.
    pub(crate) fn any_text(&mut self, shortest: i64, longest: i64) -> Vec<u8> {
        let length = self.uniform(shortest, longest);
        (0..length).map(|_| b'0' + self.draws.below(u64::from(b'z' - b'0') + 1) as u8).collect()
    }
}

/// Returns how many whole numbers there are from `low` to `high`, or `None` when there is at most
/// one.
fn values(low: i64, high: i64) -> Option<u64> {
    (high > low).then(|| high.abs_diff(low).saturating_add(1))
}

/// Returns value `index` of a permutation of all 32-bit numbers, so no two values are equal. The
/// function maps a number to its quadratic residue modulo [`PRIME`] twice. It adds the seed and
/// flips some bits in between.
pub(crate) fn unique(index: u32, seed: u64) -> u32 {
    let residue = |x: u32| {
        let wide = u64::from(x);
        if wide >= PRIME {
            return x;
        }
        let square = wide * wide % PRIME;
        (if wide <= PRIME / 2 { square } else { PRIME - square }) as u32
    };
    residue(residue(index).wrapping_add(seed as u32) ^ 0x5bf0_3635)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw() -> Draw {
        let mut draw = Draw::new(Philox::new(1, 2), OltpOptions::default());
        draw.begin(3, 0);
        draw
    }

    #[test]
    fn draws_stay_in_their_range_and_are_the_same_for_the_same_event() {
        let all = |draw: &mut Draw| {
            let kinds: [fn(&mut Draw, i64, i64) -> i64; 6] = [
                Draw::default,
                Draw::uniform,
                |draw, low, high| draw.of(Distribution::Gaussian, low, high),
                |draw, low, high| draw.of(Distribution::Special, low, high),
                |draw, low, high| draw.of(Distribution::Pareto, low, high),
                |draw, low, high| draw.of(Distribution::Zipfian, low, high),
            ];
            kinds.map(|next| (0..1000).map(|_| next(draw, -5, 20)).collect::<Vec<_>>())
        };
        let first = all(&mut draw());
        assert!(first.iter().flatten().all(|value| (-5..=20).contains(value)));
        assert!(first.iter().all(|values| values.iter().max() > values.iter().min()));
        assert_eq!(first, all(&mut draw()));
        let mut other = draw();
        other.begin(3, 1);
        assert_ne!(first, all(&mut other));
        assert_eq!((draw().uniform(7, 7), draw().uniform(7, 3)), (7, 7));
    }

    #[test]
    fn templates_are_filled_in() {
        let text = draw().text(b"##-@@-x#");
        let shape: Vec<u8> = text
            .iter()
            .map(|character| match character {
                b'0'..=b'9' => b'#',
                b'a'..=b'w' | b'y' | b'z' => b'@',
                other => *other,
            })
            .collect();
        assert_eq!(shape, b"##-@@-x#");
        let any = draw().any_text(3, 9);
        assert!((3..=9).contains(&any.len()) && any.iter().all(|byte| (b'0'..=b'z').contains(byte)));
    }

    #[test]
    fn unique_numbers_are_unique() {
        let drawn: std::collections::HashSet<u32> = (0..200_000).map(|index| unique(index, 9)).collect();
        assert_eq!(drawn.len(), 200_000);
        let above = drawn.iter().filter(|&&value| value > u32::MAX / 2).count();
        assert!(above.abs_diff(100_000) < 2_000, "{above}");
        assert_ne!(unique(5, 1), unique(5, 2));
    }
}
