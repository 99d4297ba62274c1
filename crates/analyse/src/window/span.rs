//! A stretch of a step's time, from one moment to another.

use std::ops::Range;

pub(crate) const SECOND_US: u64 = 1_000_000;

/// Both ends are in microseconds since the step's barrier. Counter samples may lie before the
/// barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from_us: i64,
    pub(crate) to_us: i64,
}

impl Span {
    /// All of a step's time, whether it came to a window or not.
    pub(crate) const ALWAYS: Self = Self { from_us: 0, to_us: i64::MAX };

    pub(crate) fn new(from_us: u64, to_us: u64) -> Self {
        Self { from_us: signed(from_us), to_us: signed(to_us) }
    }

    pub(crate) fn seconds(self) -> f64 {
        (self.to_us - self.from_us).max(0) as f64 / SECOND_US as f64
    }

    /// An amount per second of the span; 0 for a span of no length.
    pub(crate) fn rate_of(self, amount: f64) -> f64 {
        if self.seconds() > 0.0 { amount / self.seconds() } else { 0.0 }
    }

    /// The time that two spans have in common; of length zero when they do not meet.
    pub(crate) fn overlap(self, other: Self) -> Self {
        let from_us = self.from_us.max(other.from_us);
        Self { from_us, to_us: self.to_us.min(other.to_us).max(from_us) }
    }

    /// Fraction of `[from_us, to_us)` that lies in this span: 1 for an interval wholly inside, 0
    /// for one outside.
    ///
    /// An interval that straddles an edge is prorated by this, as if its work were spread evenly
    /// over it.
    pub(crate) fn share_of(self, from_us: u64, to_us: u64) -> f64 {
        let part = Self::new(from_us, to_us);
        if part.from_us >= part.to_us {
            let inside = self.from_us <= part.from_us && part.to_us <= self.to_us;
            return if inside { 1.0 } else { 0.0 };
        }
        self.overlap(part).seconds() / part.seconds()
    }

    /// Numbers of the whole seconds that lie inside the span. Second 3 is `[3 s, 4 s)`.
    pub(crate) fn whole_seconds(self) -> Range<u64> {
        let from = u64::try_from(self.from_us).unwrap_or(0).div_ceil(SECOND_US);
        let to = u64::try_from(self.to_us).unwrap_or(0) / SECOND_US;
        from..to.max(from)
    }
}

/// Microseconds as a signed number; a step of 292,000 years is not expected.
fn signed(us: u64) -> i64 {
    i64::try_from(us).unwrap_or(i64::MAX)
}

/// Total length of the time that lies in any of the spans, each given by its begin and end.
pub(crate) fn covered_us(mut spans: Vec<(u64, u64)>) -> u64 {
    spans.sort_unstable();
    let (mut covered, mut end) = (0, 0);
    for (from, to) in spans {
        covered += to.saturating_sub(from.max(end));
        end = end.max(to);
    }
    covered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_spans_share_counts_once() {
        assert_eq!(covered_us(vec![(10, 20), (0, 5), (12, 25), (25, 26)]), 5 + 16);
    }

    #[test]
    fn only_seconds_wholly_inside_the_window_are_whole_seconds() {
        assert_eq!(Span::new(0, 3_999_999).whole_seconds(), 0..3);
        assert_eq!(Span::new(250_000, 4_000_000).whole_seconds(), 1..4);
        assert_eq!(Span::new(250_000, 900_000).whole_seconds().count(), 0);
    }
}
