//! Watches how long a server has answered nothing, and decides when to say so.

use std::time::Duration;

use dbdyno_record::Interval;

/// A silence is reported when it has lasted this long, and again each time it has doubled.
pub(crate) const FIRST_WORD: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct StallWatch {
    since_us: u64,
    pub(crate) lasts: Duration,
    next_word: Duration,
}

impl Default for StallWatch {
    fn default() -> Self {
        Self { since_us: 0, lasts: Duration::ZERO, next_word: FIRST_WORD }
    }
}

impl StallWatch {
    /// Takes what all clients did in the last second. It returns how long the silence lasts, if it
    /// is time to say so. A server that is asked nothing is not silent.
    pub(crate) fn second(&mut self, intervals: &[Interval]) -> Option<Duration> {
        let last = intervals.first()?;
        let is_silent = intervals.iter().all(|interval| interval.done + interval.failed == 0)
            && intervals.iter().any(|interval| interval.in_flight > 0);
        if !is_silent {
            *self = Self { since_us: last.to_us, ..Self::default() };
            return None;
        }
        self.lasts = Duration::from_micros(last.to_us.saturating_sub(self.since_us));
        let is_time = self.lasts >= self.next_word;
        is_time.then(|| {
            self.next_word = self.next_word.max(self.lasts) * 2;
            self.lasts
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64, done: u64, in_flight: u64) -> [Interval; 1] {
        let (from_us, to_us) = (second * 1_000_000, (second + 1) * 1_000_000);
        [Interval { from_us, to_us, done, in_flight, ..Interval::default() }]
    }

    /// Returns the seconds after which something was said. The server answers in the seconds for
    /// which `answers` holds.
    fn words(seconds: u64, in_flight: u64, answers: impl Fn(u64) -> bool) -> Vec<(u64, u64)> {
        let mut silence = StallWatch::default();
        let said = |second| {
            silence.second(&at(second, answers(second).into(), in_flight)).map(|lasts| lasts.as_secs())
        };
        (0..seconds).zip((0..seconds).map(said)).filter_map(|(second, said)| Some((second, said?))).collect()
    }

    #[test]
    fn a_silence_is_reported_when_it_has_doubled() {
        assert_eq!(words(250, 1, |_| false), [(29, 30), (59, 60), (119, 120), (239, 240)]);
        assert_eq!(words(100, 1, |second| second < 10 || second == 70), [(39, 30), (69, 60)]);
        assert_eq!(words(100, 1, |second| second % 20 == 0), []);
    }

    #[test]
    fn a_server_that_is_asked_nothing_is_not_silent() {
        assert_eq!(words(100, 0, |_| false), []);
    }
}
