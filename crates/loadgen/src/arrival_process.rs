//! Open-loop arrivals: they give when operation n becomes due, whatever happened to the operations
//! before it.

use std::time::Duration;

use crate::Philox;
use crate::blocks::{BLOCK, Blocks};

/// An arrival process. Times count from the barrier. The due time of an operation is a pure
/// function of its number, exact in nanoseconds. It is therefore the same on every variant, on
/// every machine and in every block, and does not drift.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ArrivalProcess {
    /// Operation n is due at `phase + n * per / operations`.
    Constant { operations: u64, per: Duration, phase: Duration },
    /// Gaps are independent and exponential with mean `per / operations`. Operation n is due after
    /// n + 1 of them. Each gap is multiplied by `stretch`, which is 1 except in what
    /// [`ArrivalProcess::fitted_to`] makes. Rates above a million operations per second are drawn
    /// in blocks.
    Poisson { operations: u64, per: Duration, draws: Draws, stretch: f64 },
}

/// The random draws of a schedule. Draw n is a pure function of (seed, stream, client, n).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draws {
    stream: Philox,
    client: u32,
}

impl Draws {
    /// Returns the draws of `client` in stream `stream` of `seed`. A workload gives its schedules a
    /// stream that no other draw uses.
    pub fn new(seed: u64, stream: u32, client: u32) -> Self {
        Self { stream: Philox::new(seed, stream), client }
    }

    /// Returns a uniform number in (0, 1], in steps of 2^-53.
    pub fn uniform(&self, number: u64) -> f64 {
        let bits = self.bits(number, 0);
        let high = (u64::from(bits[0]) << 21) | u64::from(bits[1] >> 11);
        // The sum is at most 2^53, which a double holds exactly.
        (high + 1) as f64 * 2_f64.powi(-53)
    }

    pub(crate) fn bits(&self, number: u64, index: u32) -> [u32; 4] {
        self.stream.at(self.client, number, index)
    }

    /// Returns an exponential number with mean 1. It is at most 36.8.
    pub fn exponential(&self, number: u64) -> f64 {
        -ln(self.uniform(number))
    }
}

/// Returns the natural logarithm of a positive normal number. It only adds, multiplies and divides,
/// because the results of these are the same on every machine. The last bit of a mathematical library's
/// logarithm is not.
fn ln(value: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = value.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i32 - 1023;
    let mut mantissa = f64::from_bits((bits & MANTISSA) | (1023 << 52));
    // Between 1/sqrt(2) and sqrt(2) the series is short, and next to 1 nothing cancels.
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    // ln(m) = 2 artanh(s) = 2 (s + s^3/3 + s^5/5 + ...) with s = (m - 1) / (m + 1), |s| <= 0.172.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let mut series = 0.0;
    for odd in (1..=21).rev().step_by(2) {
        series = series * square + 1.0 / f64::from(odd);
    }
    2.0 * s * series + f64::from(exponent) * std::f64::consts::LN_2
}

impl ArrivalProcess {
    /// Returns a Poisson process whose gaps are left as they are drawn.
    pub fn poisson(operations: u64, per: Duration, draws: Draws) -> Self {
        Self::Poisson { operations, per, draws, stretch: 1.0 }
    }

    /// Returns the process with operation `count` due exactly when that many operations are over at its
    /// rate. A Poisson process leaves that time to chance, so all its gaps are stretched by the same
    /// factor. Its times are then those of a Poisson process of which it is known that `count`
    /// operations come in that time (the conditional property of arrival times: S. Ross, Stochastic
    /// Processes, 2nd edition, theorem 2.3.1).
    #[must_use]
    pub fn fitted_to(self, count: u64) -> Self {
        let Self::Poisson { operations, per, draws, .. } = self else { return self };
        let came_ns = to_ns(Self::poisson(operations, per, draws).due(count)).max(1);
        let asked_ns = per.as_nanos() as f64 * count as f64 / operations.max(1) as f64;
        Self::Poisson { operations, per, draws, stretch: asked_ns / came_ns as f64 }
    }

    /// Returns the operations per second that the process asks for.
    pub fn rate_per_second(&self) -> f64 {
        match *self {
            Self::Constant { operations, per, .. } | Self::Poisson { operations, per, .. } => {
                operations as f64 / per.as_secs_f64()
            }
        }
    }

    /// Returns the name of the process, `constant` or `poisson`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Constant { .. } => "constant",
            Self::Poisson { .. } => "poisson",
        }
    }

    /// Returns the due time of operation `number`. In a Poisson process this takes `number` draws, so a
    /// walk through the process uses a [`Cursor`].
    pub fn due(&self, number: u64) -> Duration {
        Duration::from_nanos(Cursor::new(*self).due_ns(number))
    }

    /// Returns the due time of operation `number` when the one before it was due at `before_ns`, which
    /// is 0 before the first.
    fn next_ns(&self, number: u64, before_ns: u64) -> u64 {
        match self {
            Self::Constant { operations, per, phase } => {
                let offset = u128::from(number) * per.as_nanos() / u128::from((*operations).max(1));
                to_ns(*phase).saturating_add(u64::try_from(offset).unwrap_or(u64::MAX))
            }
            Self::Poisson { operations, per, draws, stretch } => {
                let mean_ns = stretch * mean_ns(*operations, *per);
                // `as` saturates, and a gap of 584 years is as good as the end.
                before_ns.saturating_add((mean_ns * draws.exponential(number)).round() as u64)
            }
        }
    }
}

/// A walk forwards through the due times of a process.
#[derive(Debug, Clone)]
pub(crate) struct Cursor {
    arrival_process: ArrivalProcess,
    number: u64,
    /// Due time of operation `number`.
    due_ns: u64,
    /// The blocks of a fast process, in which arrivals are drawn.
    blocks: Option<Blocks>,
}

impl Cursor {
    pub(crate) fn new(arrival_process: ArrivalProcess) -> Self {
        let mut blocks = match arrival_process {
            ArrivalProcess::Poisson { operations, per, draws, stretch } => {
                Blocks::of(draws, mean_ns(operations, per), stretch)
            }
            ArrivalProcess::Constant { .. } => None,
        };
        let due_ns = blocks.as_mut().map_or_else(|| arrival_process.next_ns(0, 0), Blocks::enter);
        Self { arrival_process, number: 0, due_ns, blocks }
    }

    /// Returns the due time of operation `number`, which must not lie before the one that was asked for
    /// last.
    pub(crate) fn due_ns(&mut self, number: u64) -> u64 {
        if let ArrivalProcess::Constant { .. } = self.arrival_process {
            return self.arrival_process.next_ns(number, 0);
        }
        debug_assert!(self.number <= number, "a walk goes forwards");
        self.leap(number, u64::MAX);
        while self.number < number {
            self.step();
        }
        self.due_ns
    }

    /// Returns how many operations, at most `limit`, are due before `at_ns`, which must not lie before
    /// that of the last call.
    pub(crate) fn due_before(&mut self, at_ns: u64, limit: u64) -> u64 {
        if let ArrivalProcess::Constant { operations, per, phase } = self.arrival_process {
            let Some(elapsed) = at_ns.checked_sub(to_ns(phase)) else { return 0 };
            // Operation n is due before `at` when n * per < slots. Due times are rounded downwards, so
            // the first candidate is checked against them.
            let slots = u128::from(elapsed) * u128::from(operations);
            let mut count = u64::try_from(slots.div_ceil(per.as_nanos().max(1))).unwrap_or(u64::MAX);
            while count < limit && self.arrival_process.next_ns(count, 0) < at_ns {
                count += 1;
            }
            return count.min(limit);
        }
        self.leap(limit, at_ns);
        while self.number < limit && self.due_ns < at_ns {
            self.step();
        }
        self.number
    }

    fn step(&mut self) {
        self.number += 1;
        self.due_ns = match &mut self.blocks {
            None => self.arrival_process.next_ns(self.number, self.due_ns),
            Some(blocks) if self.number < blocks.first() + BLOCK => blocks.due_ns(self.number),
            Some(blocks) => {
                blocks.advance();
                blocks.enter()
            }
        };
    }

    /// Passes over the blocks that lie wholly before operation `number` and before `at_ns`.
    fn leap(&mut self, number: u64, at_ns: u64) {
        let Some(blocks) = &mut self.blocks else { return };
        let before = blocks.index;
        while blocks.first() + BLOCK <= number && blocks.ends_ns < at_ns {
            blocks.advance();
        }
        if blocks.index > before {
            (self.number, self.due_ns) = (blocks.first(), blocks.enter());
        }
    }
}

fn mean_ns(operations: u64, per: Duration) -> f64 {
    per.as_nanos() as f64 / operations.max(1) as f64
}

pub(crate) fn to_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Rounds to the nearest microsecond.
pub(crate) fn to_us(nanos: u64) -> u64 {
    (nanos + 500) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn even(operations: u64, per_ms: u64, phase_ms: u64) -> ArrivalProcess {
        let (per, phase) = (Duration::from_millis(per_ms), Duration::from_millis(phase_ms));
        ArrivalProcess::Constant { operations, per, phase }
    }

    fn poisson(operations: u64, seed: u64) -> ArrivalProcess {
        ArrivalProcess::poisson(operations, Duration::from_secs(1), Draws::new(seed, 9, 1))
    }

    #[test]
    fn an_even_schedule_is_exact_after_a_billion_operations() {
        let arrival_process = even(3, 1000, 0);
        assert_eq!(arrival_process.due(3_000_000_000), Duration::from_secs(1_000_000_000));
        assert_eq!(arrival_process.due(1), Duration::from_nanos(333_333_333));
    }

    #[test]
    fn due_before_counts_exactly_the_operations_whose_due_time_is_earlier() {
        let all = [even(2, 1000, 0), even(3, 1000, 125), even(20, 1000, 7), even(7, 5000, 1), poisson(20, 3)];
        for arrival_process in all {
            let mut cursor = Cursor::new(arrival_process);
            let due: Vec<Duration> =
                (0..200).map(|number| Duration::from_nanos(cursor.due_ns(number))).collect();
            let mut counts = Cursor::new(arrival_process);
            for at_us in (0..12_000_000).step_by(1237) {
                let at = Duration::from_micros(at_us);
                let expected = due.iter().take_while(|due| **due < at).count() as u64;
                assert_eq!(counts.due_before(to_ns(at), 200), expected, "{arrival_process:?} at {at:?}");
            }
        }
    }

    #[test]
    fn gaps_of_a_poisson_process_are_exponential() {
        // In the test by Kolmogorov and Smirnov with n = 20,000 draws, the distance exceeds 1.95 /
        // sqrt(n) once in 1,000 seeds.
        const COUNT: u64 = 20_000;
        let mut cursor = Cursor::new(poisson(1000, 42));
        let (mut before, mut gaps) = (0, Vec::new());
        for number in 0..COUNT {
            let due = cursor.due_ns(number);
            gaps.push((due - before) as f64 / 1e6);
            before = due;
        }
        gaps.sort_by(f64::total_cmp);
        let count = COUNT as f64;
        let distance = gaps.iter().enumerate().fold(0.0_f64, |worst, (index, gap)| {
            let expected = 1.0 - (-gap).exp();
            worst
                .max((expected - index as f64 / count).abs())
                .max(((index + 1) as f64 / count - expected).abs())
        });
        assert!(distance < 1.95 / count.sqrt(), "{distance}");
        // The process has no memory, so neighbours do not correlate.
        let draws = Draws::new(42, 9, 1);
        let pairs = (0..COUNT).map(|n| (draws.exponential(n) - 1.0) * (draws.exponential(n + 1) - 1.0));
        let correlation = pairs.sum::<f64>() / count;
        assert!(correlation.abs() < 4.0 / count.sqrt(), "{correlation}");
    }

    #[test]
    fn arrivals_of_a_seed_are_the_same_everywhere_for_ever() {
        let first: Vec<u64> =
            (0..5).map(|number| u64::try_from(poisson(1000, 1).due(number).as_nanos()).unwrap()).collect();
        // The times are frozen on purpose: when they change, no two runs are comparable any more.
        assert_eq!(first, [966_513, 1_500_051, 1_731_044, 3_166_794, 3_640_825]);
        assert_ne!(poisson(1000, 1).due(9), poisson(1000, 2).due(9));
        let other = ArrivalProcess::poisson(1000, Duration::from_secs(1), Draws::new(1, 9, 2));
        assert_ne!(poisson(1000, 1).due(9), other.due(9));
    }

    #[test]
    fn a_fitted_process_has_its_operations_in_exactly_its_time_and_anywhere_in_it() {
        const SEEDS: u64 = 2_000;
        let mut tenths = [0_u32; 10];
        for seed in 0..SEEDS {
            let (plain, fitted) = (poisson(2, seed), poisson(2, seed).fitted_to(10));
            assert_eq!((fitted.rate_per_second(), fitted.name()), (2.0, "poisson"));
            let end = fitted.due(10).as_secs_f64();
            assert!((end - 5.0).abs() < 1e-7, "{end}");
            let share = |arrival_process: ArrivalProcess, number| {
                arrival_process.due(number).as_secs_f64() / arrival_process.due(10).as_secs_f64()
            };
            assert!((share(fitted, 3) - share(plain, 3)).abs() < 1e-7, "gaps are stretched equally");
            for number in 0..10 {
                tenths[(fitted.due(number).as_secs_f64() * 2.0) as usize] += 1;
            }
        }
        // Given their number, the times are uniform. With 9 degrees of freedom, chi-square exceeds 33.7
        // once in 10,000 times.
        let expected = SEEDS as f64;
        let chi: f64 = tenths.iter().map(|&seen| (f64::from(seen) - expected).powi(2) / expected).sum();
        assert!(chi < 33.7, "{tenths:?}");
        assert_eq!(even(2, 1000, 7).fitted_to(10), even(2, 1000, 7));
    }

    #[test]
    fn a_poisson_process_keeps_its_rate() {
        let seconds = poisson(1000, 7).due(1_000_000).as_secs_f64();
        // 1,000 s are expected, and the standard deviation of a million gaps is 1 s.
        assert!((seconds - 1000.0).abs() < 4.0, "{seconds}");
    }

    #[test]
    fn the_logarithm_is_right_to_fifteen_digits() {
        for step in 1..=100_000_u64 {
            let value = step as f64 / 100_000.0;
            let (ours, reference) = (ln(value), value.ln());
            assert!(
                (ours - reference).abs() <= 1e-15 * reference.abs().max(1e-3),
                "{value}: {ours} {reference}"
            );
        }
        assert_eq!(ln(1.0), 0.0);
        assert!((ln(2_f64.powi(-53)) + 53.0 * std::f64::consts::LN_2).abs() < 1e-13);
    }
}
