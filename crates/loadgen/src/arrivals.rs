//! Decides when a task's operations are due: in a closed loop with or without think time, in an
//! open loop, or in the original Insert Benchmark's bursts. In an open loop, operation n becomes
//! due at the time of its arrival, even when earlier operations are late or have failed.
//!
//! Very fast Poisson arrivals are drawn in blocks, so that arrivals that no client keeps up with
//! are skipped block by block and not one by one.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{Philox, Schedule};

/// How one task gets its arrivals. Times count from the barrier.
#[derive(Debug, Clone)]
pub enum Arrivals {
    /// The next operation is due when the one before it is answered.
    Closed,
    /// The next operation is due one think time after the answer to the one before.
    Thinking(ThinkTime),
    /// Operations become due as they arrive, even when earlier ones are late or have failed. A late
    /// task catches up.
    Open(ArrivalProcess),
    /// Operations come from a schedule that this task shares with others of its client and kind.
    Shared(Arc<Schedule>),
    /// The task sends `per_second` operations back to back, then is idle until a second has passed
    /// since the burst began. Lost time is not made up. This is the Insert Benchmark's rate
    /// limiter. It has a checkpoint after each operation r with r mod per_second = 0. When less
    /// than 0.95 s have passed since the last checkpoint, it sleeps until exactly 1.0 s have
    /// passed.
    Burst { per_second: u64 },
}

/// How long a closed loop pauses between an answer and the next operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkTime {
    /// The pause is always `time`. The pause before the first operation is a uniformly drawn
    /// fraction of it, so that connections do not run in step.
    Fixed { time: Duration, draws: Draws },
    /// The pause is exponential with mean `mean`, before the first operation too, so that the loop is
    /// in a steady state from the beginning.
    Exponential { mean: Duration, draws: Draws },
}

impl ThinkTime {
    /// Returns the pause before operation `number`, which is a pure function of the number.
    pub fn before(&self, number: u64) -> Duration {
        match self {
            Self::Fixed { time, draws } if number == 0 => time.mul_f64(draws.uniform(0)),
            Self::Fixed { time, .. } => *time,
            Self::Exponential { mean, draws } => mean.mul_f64(draws.exponential(number)),
        }
    }
}

impl Arrivals {
    /// Returns whether the next operation waits for the answer to the one before, and for nothing but
    /// think time.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed | Self::Thinking(_))
    }

    /// Returns the open-loop process of this task alone. It is `None` for closed loops, bursts and
    /// shared schedules.
    pub fn arrival_process(&self) -> Option<ArrivalProcess> {
        match self {
            Self::Open(arrival_process) => Some(*arrival_process),
            Self::Closed | Self::Thinking(_) | Self::Shared(_) | Self::Burst { .. } => None,
        }
    }

    /// Returns the open-loop process, this task's own or a shared one.
    pub fn process(&self) -> Option<ArrivalProcess> {
        match self {
            Self::Shared(schedule) => Some(schedule.arrival_process()),
            _ => self.arrival_process(),
        }
    }

    /// Returns when operation `number` of an open loop is due. The result is `None` for arrivals
    /// without a schedule.
    pub fn due(&self, number: u64) -> Option<Duration> {
        self.process().map(|arrival_process| arrival_process.due(number))
    }
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("closed"),
            Self::Thinking(ThinkTime::Fixed { time, .. }) => write!(f, "closed, think time {time:?}"),
            Self::Thinking(ThinkTime::Exponential { mean, .. }) => {
                write!(f, "closed, exponential think time {mean:?}")
            }
            Self::Open(arrival_process) => arrival_process.fmt(f),
            Self::Shared(schedule) => write!(f, "{} over all connections", schedule.arrival_process()),
            Self::Burst { per_second } => write!(f, "burst {per_second}/s"),
        }
    }
}

impl fmt::Display for ArrivalProcess {
    /// Writes the process and its rate, such as `constant 2.4/s` or `poisson 1000/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/s", self.name(), trim(self.rate_per_second()))
    }
}

/// Writes a number with at most three decimals.
fn trim(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// An arrival process. Times count from the barrier. The scheduled time of an operation is a pure
/// function of its number, exact in nanoseconds. It is therefore the same on every variant, on
/// every machine and in every block, and does not drift.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ArrivalProcess {
    /// Operation n is due at `phase + n * per / operations`.
    Constant { operations: u64, per: Duration, phase: Duration },
    /// Gaps are independent and exponential with mean `per / operations`. Operation n is due after
    /// n + 1 of them. Each gap is multiplied by `stretch`, which is 1 except in a process from
    /// [`ArrivalProcess::fitted_to`]. Rates above a million operations per second are drawn in
    /// blocks.
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
/// because the results of these are the same on every machine. The last bit of a mathematical
/// library's logarithm differs between machines.
fn ln(value: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = value.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i32 - 1023;
    let mut mantissa = f64::from_bits((bits & MANTISSA) | (1023 << 52));
    // Between 1/sqrt(2) and sqrt(2) the series needs few terms, and near 1 no digits cancel.
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
    /// Returns a Poisson process whose gaps are not stretched.
    pub fn poisson(operations: u64, per: Duration, draws: Draws) -> Self {
        Self::Poisson { operations, per, draws, stretch: 1.0 }
    }

    /// Returns the process in which operation `count` is due exactly after the time that `count`
    /// operations take at the process's rate. In a Poisson process that time is random, so all gaps
    /// are stretched by the same factor. Its times are then distributed like those of a Poisson
    /// process that has `count` operations in that time (the conditional property of arrival times:
    /// S. Ross, Stochastic Processes, 2nd edition, theorem 2.3.1).
    #[must_use]
    pub fn fitted_to(self, count: u64) -> Self {
        let Self::Poisson { operations, per, draws, .. } = self else { return self };
        let came_ns = to_ns(Self::poisson(operations, per, draws).due(count)).max(1);
        let asked_ns = per.as_nanos() as f64 * count as f64 / operations.max(1) as f64;
        Self::Poisson { operations, per, draws, stretch: asked_ns / came_ns as f64 }
    }

    /// Returns the rate of the process in operations per second.
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

    /// Returns the scheduled time of operation `number`. In a Poisson process this takes `number` draws, so a
    /// walk through the process uses a [`Cursor`].
    pub fn due(&self, number: u64) -> Duration {
        Duration::from_nanos(Cursor::new(*self).scheduled_ns(number))
    }

    /// Returns the scheduled time of operation `number` when the one before it was due at `before_ns`, which
    /// is 0 before the first.
    fn next_ns(&self, number: u64, before_ns: u64) -> u64 {
        match self {
            Self::Constant { operations, per, phase } => {
                let offset = u128::from(number) * per.as_nanos() / u128::from((*operations).max(1));
                to_ns(*phase).saturating_add(u64::try_from(offset).unwrap_or(u64::MAX))
            }
            Self::Poisson { operations, per, draws, stretch } => {
                let mean_ns = stretch * mean_ns(*operations, *per);
                // `as` saturates at 584 years, and no run lasts so long.
                before_ns.saturating_add((mean_ns * draws.exponential(number)).round() as u64)
            }
        }
    }
}

/// A walk forwards through the scheduled times of a process.
#[derive(Debug, Clone)]
pub(crate) struct Cursor {
    arrival_process: ArrivalProcess,
    number: u64,
    /// Scheduled time of operation `number`.
    scheduled_ns: u64,
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
        let scheduled_ns = blocks.as_mut().map_or_else(|| arrival_process.next_ns(0, 0), Blocks::enter);
        Self { arrival_process, number: 0, scheduled_ns, blocks }
    }

    /// Returns the scheduled time of operation `number`, which must not be lower than in the last call.
    pub(crate) fn scheduled_ns(&mut self, number: u64) -> u64 {
        if let ArrivalProcess::Constant { .. } = self.arrival_process {
            return self.arrival_process.next_ns(number, 0);
        }
        debug_assert!(self.number <= number, "a walk goes forwards");
        self.leap(number, u64::MAX);
        while self.number < number {
            self.step();
        }
        self.scheduled_ns
    }

    /// Returns how many operations, at most `limit`, are due before `at_ns`, which must not be
    /// lower than in the last call.
    pub(crate) fn due_before(&mut self, at_ns: u64, limit: u64) -> u64 {
        if let ArrivalProcess::Constant { operations, per, phase } = self.arrival_process {
            let Some(elapsed) = at_ns.checked_sub(to_ns(phase)) else { return 0 };
            // Operation n is due before `at_ns` when n * per < slots. Scheduled times are rounded
            // downwards, so the first candidate is checked against them.
            let slots = u128::from(elapsed) * u128::from(operations);
            let mut count = u64::try_from(slots.div_ceil(per.as_nanos().max(1))).unwrap_or(u64::MAX);
            while count < limit && self.arrival_process.next_ns(count, 0) < at_ns {
                count += 1;
            }
            return count.min(limit);
        }
        self.leap(limit, at_ns);
        while self.number < limit && self.scheduled_ns < at_ns {
            self.step();
        }
        self.number
    }

    /// Goes on to the next operation.
    fn step(&mut self) {
        self.number += 1;
        self.scheduled_ns = match &mut self.blocks {
            None => self.arrival_process.next_ns(self.number, self.scheduled_ns),
            Some(blocks) if self.number < blocks.first() + BLOCK => blocks.scheduled_ns(self.number),
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
            (self.number, self.scheduled_ns) = (blocks.first(), blocks.enter());
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

/// Number of gaps in one block.
const BLOCK: u64 = 1024;

/// Processes whose mean gap is below this have blocks. Their rate is more than a million operations
/// per second, so drawing their arrivals one by one would leave the load thread no time for its
/// work.
const FAST_NS: f64 = 1_000.0;

/// A walk through the blocks of a process. The length of a block is one draw. The gaps in it are draws
/// too, and are stretched to that length. The sum of independent exponential gaps is gamma-distributed
/// and independent of the gaps' shares in it (E. Lukacs, A characterization of the gamma distribution,
/// 1955). Therefore this is a Poisson process too.
#[derive(Debug, Clone)]
pub(crate) struct Blocks {
    draws: Draws,
    mean_ns: f64,
    pub(crate) index: u64,
    begins_ns: u64,
    pub(crate) ends_ns: u64,
    /// Length in nanoseconds of a gap of 1 in this block.
    stretch_ns: f64,
    /// Sum of the gaps so far, before stretching.
    gaps: f64,
}

impl Blocks {
    /// Returns the first block, or `None` where the mean gap is long enough to draw each gap on its
    /// own. The decision depends on `mean_ns` before it is multiplied by `stretch`.
    pub(crate) fn of(draws: Draws, mean_ns: f64, stretch: f64) -> Option<Self> {
        (mean_ns < FAST_NS).then(|| {
            let mean_ns = mean_ns * stretch;
            let mut first =
                Self { draws, mean_ns, index: 0, begins_ns: 0, ends_ns: 0, stretch_ns: 0.0, gaps: 0.0 };
            first.begin_at(0);
            first
        })
    }

    /// Returns the number of the first operation of the block.
    pub(crate) const fn first(&self) -> u64 {
        self.index * BLOCK
    }

    /// Goes on to the next block without drawing its gaps.
    pub(crate) fn advance(&mut self) {
        let begins_ns = self.ends_ns;
        self.index += 1;
        self.begin_at(begins_ns);
    }

    /// Draws the length of this block, which begins at `begins_ns`.
    fn begin_at(&mut self, begins_ns: u64) {
        self.begins_ns = begins_ns;
        let length_ns = self.mean_ns * self.draws.sum_of_exponentials(self.index);
        self.ends_ns = begins_ns.saturating_add(length_ns.round() as u64);
        self.gaps = 0.0;
    }

    /// Draws the gaps of this block. The result is the scheduled time of the block's first operation.
    pub(crate) fn enter(&mut self) -> u64 {
        let all: f64 =
            (self.first()..self.first() + BLOCK).map(|number| self.draws.exponential(number)).sum();
        self.stretch_ns = (self.ends_ns - self.begins_ns) as f64 / all;
        self.scheduled_ns(self.first())
    }

    /// Returns the scheduled time of operation `number`, which must be the one after that of the last
    /// call. The block must have been entered.
    pub(crate) fn scheduled_ns(&mut self, number: u64) -> u64 {
        self.gaps += self.draws.exponential(number);
        let since_ns = (self.gaps * self.stretch_ns) as u64;
        self.begins_ns.saturating_add(since_ns).min(self.ends_ns)
    }
}

impl Draws {
    /// Returns the sum of [`BLOCK`] exponential draws with mean 1, from a single draw. The cube root of
    /// a gamma variable is nearly normal (E. Wilson and M. Hilferty, The distribution of chi-square,
    /// 1931), and so is a sum of twelve uniform draws. The code only adds and multiplies, because the
    /// results of these are the same on every machine.
    fn sum_of_exponentials(&self, block: u64) -> f64 {
        const SHAPE: f64 = BLOCK as f64;
        /// `NINTH` is 1 / (9 shape), and `ROOT` is its square root.
        const NINTH: f64 = 1.0 / 9216.0;
        const ROOT: f64 = 1.0 / 96.0;
        let uniform: f64 = (1..=3).flat_map(|index| self.bits(block, index)).map(f64::from).sum();
        let normal = uniform * 2_f64.powi(-32) - 6.0;
        let root = 1.0 - NINTH + normal * ROOT;
        SHAPE * root * root * root
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn constant_arrivals(operations: u64, per_ms: u64) -> Arrivals {
        let per = Duration::from_millis(per_ms);
        Arrivals::Open(ArrivalProcess::Constant { operations, per, phase: Duration::ZERO })
    }

    fn draws() -> Draws {
        Draws::new(1, 2, 3)
    }

    #[test]
    fn arrivals_are_written_as_rates() {
        let arrival_process = ArrivalProcess::poisson(10_000, Duration::from_secs(1), draws());
        let think = |millis| ThinkTime::Fixed { time: Duration::from_millis(millis), draws: draws() };
        let mean = Duration::from_millis(1500);
        let texts = [
            constant_arrivals(2, 1000).to_string(),
            constant_arrivals(12, 5000).to_string(),
            Arrivals::Burst { per_second: 20 }.to_string(),
            Arrivals::Shared(Arc::new(Schedule::new(arrival_process))).to_string(),
            Arrivals::Thinking(think(100)).to_string(),
            Arrivals::Thinking(ThinkTime::Exponential { mean, draws: draws() }).to_string(),
        ];
        insta::assert_snapshot!(texts.join("\n"), @r"
        constant 2/s
        constant 2.4/s
        burst 20/s
        poisson 10000/s over all connections
        closed, think time 100ms
        closed, exponential think time 1.5s
        ");
    }

    #[test]
    fn think_times_have_their_mean_and_the_first_one_spreads_connections() {
        let mean = Duration::from_millis(10);
        let exponential = ThinkTime::Exponential { mean, draws: draws() };
        let total: Duration = (0..100_000).map(|number| exponential.before(number)).sum();
        let seconds = total.as_secs_f64();
        // 1,000 s are expected, and the standard deviation is 3.2 s.
        assert!((seconds - 1000.0).abs() < 13.0, "{seconds}");
        let fixed = |client| ThinkTime::Fixed { time: mean, draws: Draws::new(1, 2, client) };
        assert!((1..50).all(|number| fixed(1).before(number) == mean));
        let first: Vec<Duration> = (1..=100).map(|client| fixed(client).before(0)).collect();
        assert!(first.iter().all(|pause| *pause <= mean));
        let early = first.iter().filter(|pause| **pause < mean / 2).count();
        assert!((30..70).contains(&early), "{early}");
    }

    fn constant_process(operations: u64, per_ms: u64, phase_ms: u64) -> ArrivalProcess {
        let (per, phase) = (Duration::from_millis(per_ms), Duration::from_millis(phase_ms));
        ArrivalProcess::Constant { operations, per, phase }
    }

    fn poisson(operations: u64, seed: u64) -> ArrivalProcess {
        ArrivalProcess::poisson(operations, Duration::from_secs(1), Draws::new(seed, 9, 1))
    }

    #[test]
    fn a_constant_schedule_is_exact_after_a_billion_operations() {
        let arrival_process = constant_process(3, 1000, 0);
        assert_eq!(arrival_process.due(3_000_000_000), Duration::from_secs(1_000_000_000));
        assert_eq!(arrival_process.due(1), Duration::from_nanos(333_333_333));
    }

    #[test]
    fn due_before_counts_exactly_the_operations_whose_scheduled_time_is_earlier() {
        let all = [
            constant_process(2, 1000, 0),
            constant_process(3, 1000, 125),
            constant_process(20, 1000, 7),
            constant_process(7, 5000, 1),
            poisson(20, 3),
        ];
        for arrival_process in all {
            let mut cursor = Cursor::new(arrival_process);
            let due: Vec<Duration> =
                (0..200).map(|number| Duration::from_nanos(cursor.scheduled_ns(number))).collect();
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
        // In a Kolmogorov-Smirnov test with n = 20,000 draws, the distance exceeds 1.95 / sqrt(n)
        // for one seed in 1,000.
        const COUNT: u64 = 20_000;
        let mut cursor = Cursor::new(poisson(1000, 42));
        let (mut before, mut gaps) = (0, Vec::new());
        for number in 0..COUNT {
            let due = cursor.scheduled_ns(number);
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
        assert_eq!(constant_process(2, 1000, 7).fitted_to(10), constant_process(2, 1000, 7));
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

    fn fast(operations: u64, seed: u64) -> ArrivalProcess {
        ArrivalProcess::poisson(operations, Duration::from_secs(1), Draws::new(seed, 9, 1))
    }

    #[test]
    fn leaping_over_blocks_finds_what_walking_through_them_finds() {
        const COUNT: u64 = 5 * BLOCK + 7;
        let mut walk = Cursor::new(fast(20_000_000, 3));
        let due: Vec<u64> = (0..COUNT).map(|number| walk.scheduled_ns(number)).collect();
        assert!(due.is_sorted(), "{due:?}");
        for number in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5, COUNT - 1] {
            assert_eq!(
                Cursor::new(fast(20_000_000, 3)).scheduled_ns(number),
                due[number as usize],
                "{number}"
            );
        }
        let mut counts = Cursor::new(fast(20_000_000, 3));
        for at_ns in (0..due[COUNT as usize - 1] + 1_000).step_by(1_237) {
            let expected = due.iter().take_while(|due| **due < at_ns).count() as u64;
            assert_eq!(counts.due_before(at_ns, COUNT), expected, "{at_ns}");
        }
    }

    #[test]
    fn gaps_are_exponential_across_blocks() {
        // This is the same Kolmogorov-Smirnov test as for slow processes. The tolerance allows for
        // scheduled times in whole nanoseconds.
        const COUNT: u64 = 20 * BLOCK;
        const MEAN_NS: f64 = 900.0;
        let arrival_process =
            ArrivalProcess::poisson(1_000, Duration::from_nanos(900_000), Draws::new(42, 9, 1));
        let mut cursor = Cursor::new(arrival_process);
        let (mut before, mut gaps) = (0, Vec::new());
        for number in 0..COUNT {
            let due = cursor.scheduled_ns(number);
            gaps.push((due - before) as f64 / MEAN_NS);
            before = due;
        }
        gaps.sort_by(f64::total_cmp);
        let count = COUNT as f64;
        let distance = gaps.iter().enumerate().fold(0.0_f64, |worst, (index, gap)| {
            let expected = 1.0 - (-gap).exp();
            worst.max((expected - (index as f64 + 0.5) / count).abs())
        });
        assert!(distance < 1.95 / count.sqrt() + 1.0 / MEAN_NS, "{distance}");
    }

    #[test]
    fn block_lengths_have_the_mean_and_variance_of_a_sum_of_exponential_gaps() {
        const COUNT: u64 = 4_000;
        let draws = Draws::new(7, 9, 1);
        let sums: Vec<f64> = (0..COUNT).map(|block| draws.sum_of_exponentials(block)).collect();
        let mean = sums.iter().sum::<f64>() / COUNT as f64;
        let variance = sums.iter().map(|sum| (sum - mean).powi(2)).sum::<f64>() / (COUNT - 1) as f64;
        // The bounds are four standard errors: 32 / sqrt(4000) of the mean, and sqrt(2 / 4000) of the
        // variance.
        assert!((mean - BLOCK as f64).abs() < 4.0 * 0.51, "{mean}");
        assert!((variance / BLOCK as f64 - 1.0).abs() < 4.0 * 0.023, "{variance}");
    }

    #[test]
    fn arrivals_at_the_highest_rate_are_counted_block_by_block() {
        let began = Instant::now();
        let count = Cursor::new(fast(100_000_000, 5)).due_before(10_000_000_000, u64::MAX);
        // The variance of a Poisson count is its mean. A count of one draw per arrival would take
        // far longer than the limit below.
        assert!((count as f64 - 1e9).abs() < 5.0 * 1e9_f64.sqrt(), "{count}");
        assert!(began.elapsed() < Duration::from_secs(120), "{:?}", began.elapsed());
    }
}
