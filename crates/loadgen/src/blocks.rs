//! Draws very fast Poisson arrivals in blocks, so that the arrivals that no client keeps up with are
//! skipped by the block and not one by one.

use crate::arrival_process::Draws;

/// Number of gaps in one block.
pub(crate) const BLOCK: u64 = 1024;

/// Blocks are for processes whose gaps have a mean below this, which is more than a million operations
/// per second. At such rates, counting arrivals one by one would cost more than it measures.
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
    /// Returns `None` where the mean gap is long enough to draw each gap on its own. `mean_ns` is
    /// multiplied by `stretch` after that decision.
    pub(crate) fn of(draws: Draws, mean_ns: f64, stretch: f64) -> Option<Self> {
        (mean_ns < FAST_NS).then(|| {
            let mean_ns = mean_ns * stretch;
            let mut first =
                Self { draws, mean_ns, index: 0, begins_ns: 0, ends_ns: 0, stretch_ns: 0.0, gaps: 0.0 };
            first.lay(0);
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
        self.lay(begins_ns);
    }

    fn lay(&mut self, begins_ns: u64) {
        self.begins_ns = begins_ns;
        let length_ns = self.mean_ns * self.draws.sum_of_exponentials(self.index);
        self.ends_ns = begins_ns.saturating_add(length_ns.round() as u64);
        self.gaps = 0.0;
    }

    /// Draws the gaps of this block. The result is the due time of the block's first operation.
    pub(crate) fn enter(&mut self) -> u64 {
        let all: f64 =
            (self.first()..self.first() + BLOCK).map(|number| self.draws.exponential(number)).sum();
        self.stretch_ns = (self.ends_ns - self.begins_ns) as f64 / all;
        self.due_ns(self.first())
    }

    /// Returns the due time of the operation after the one that was asked for last. The block must have
    /// been entered.
    pub(crate) fn due_ns(&mut self, number: u64) -> u64 {
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
    use crate::ArrivalProcess;
    use crate::arrival_process::Cursor;

    fn fast(operations: u64, seed: u64) -> ArrivalProcess {
        ArrivalProcess::poisson(operations, Duration::from_secs(1), Draws::new(seed, 9, 1))
    }

    #[test]
    fn who_leaps_finds_what_who_walks_finds() {
        const COUNT: u64 = 5 * BLOCK + 7;
        let mut walk = Cursor::new(fast(20_000_000, 3));
        let due: Vec<u64> = (0..COUNT).map(|number| walk.due_ns(number)).collect();
        assert!(due.is_sorted(), "{due:?}");
        for number in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5, COUNT - 1] {
            assert_eq!(Cursor::new(fast(20_000_000, 3)).due_ns(number), due[number as usize], "{number}");
        }
        let mut counts = Cursor::new(fast(20_000_000, 3));
        for at_ns in (0..due[COUNT as usize - 1] + 1_000).step_by(1_237) {
            let expected = due.iter().take_while(|due| **due < at_ns).count() as u64;
            assert_eq!(counts.due_before(at_ns, COUNT), expected, "{at_ns}");
        }
    }

    #[test]
    fn gaps_are_exponential_across_blocks() {
        // This is the test by Kolmogorov and Smirnov, as for slow processes. The tolerance allows for
        // due times in whole nanoseconds.
        const COUNT: u64 = 20 * BLOCK;
        const MEAN_NS: f64 = 900.0;
        let arrival_process =
            ArrivalProcess::poisson(1_000, Duration::from_nanos(900_000), Draws::new(42, 9, 1));
        let mut cursor = Cursor::new(arrival_process);
        let (mut before, mut gaps) = (0, Vec::new());
        for number in 0..COUNT {
            let due = cursor.due_ns(number);
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
    fn lengths_of_blocks_have_mean_and_variance_of_the_sums_that_they_stand_for() {
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
    fn what_comes_in_ten_seconds_of_the_highest_rate_is_counted_at_once() {
        let began = Instant::now();
        let count = Cursor::new(fast(100_000_000, 5)).due_before(10_000_000_000, u64::MAX);
        // The variance of a Poisson count is its mean. Counted one by one, this would take half an hour
        // here.
        assert!((count as f64 - 1e9).abs() < 5.0 * 1e9_f64.sqrt(), "{count}");
        assert!(began.elapsed() < Duration::from_secs(120), "{:?}", began.elapsed());
    }
}
