//! What was measured, by test, server and client, and the ratios that it is for.

use super::{CLIENTS, SPIN, TESTS};
use crate::bench::spread::Spread;

/// How far a figure may move when the client gets slower.
pub(super) const TOLERANCE: f64 = 0.03;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    pub(super) rate_per_second: f64,
    pub(super) server_cpu_us: f64,
}

/// A quantity of a [`Sample`].
pub(super) type SampleValue = fn(&Sample) -> f64;

/// All measurements, one a round for each test, server and client.
pub(super) struct Samples {
    pub(super) titles: Vec<String>,
    rounds: Vec<Vec<Vec<Vec<Sample>>>>,
}

impl Samples {
    pub(super) fn new(titles: Vec<String>) -> Self {
        let rounds = vec![vec![vec![Vec::new(); CLIENTS.len()]; titles.len()]; TESTS.len()];
        Self { titles, rounds }
    }

    pub(super) fn add(&mut self, test: usize, server: usize, client: usize, sample: Sample) {
        self.rounds[test][server][client].push(sample);
    }

    pub(super) fn median(&self, test: usize, server: usize, client: usize, value: SampleValue) -> f64 {
        Spread::of(self.rounds[test][server][client].iter().map(value)).median
    }

    /// A quantity of one server and client over that of another, round by round.
    fn ratio(&self, test: usize, of: (usize, usize), to: (usize, usize), value: SampleValue) -> Spread {
        Spread::ratio(&self.rounds[test][of.0][of.1], &self.rounds[test][to.0][to.1], value)
    }

    /// Server over base, by one client.
    pub(super) fn to_base(&self, test: usize, server: usize, client: usize, value: SampleValue) -> Spread {
        self.ratio(test, (server, client), (0, client), value)
    }

    /// One client over another, of one server.
    pub(super) fn to_client(&self, test: usize, server: usize, client: usize, to: usize) -> Spread {
        self.ratio(test, (server, client), (server, to), |sample| sample.server_cpu_us)
    }

    /// Work added to a spinning client changes no server's CPU per operation, and no ratio of two
    /// servers, by more than [`TOLERANCE`].
    pub(super) fn is_met(&self) -> bool {
        (0..TESTS.len())
            .all(|test| (0..self.titles.len()).all(|server| self.is_independent_of_work(test, server)))
    }

    /// As [`Samples::is_met`], of one test and one server.
    pub(super) fn is_independent_of_work(&self, test: usize, server: usize) -> bool {
        (SPIN + 1..CLIENTS.len()).all(|client| self.is_independent(test, server, client))
    }

    /// As [`Samples::is_met`], of one server and one client with added work.
    pub(super) fn is_independent(&self, test: usize, server: usize, client: usize) -> bool {
        let moved = |ratio: f64| (ratio - 1.0).abs() > TOLERANCE;
        let cpu: SampleValue = |sample| sample.server_cpu_us;
        let before = self.to_base(test, server, SPIN, cpu).median;
        let after = self.to_base(test, server, client, cpu).median;
        !moved(self.to_client(test, server, client, SPIN).median) && !moved(after / before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(cpu_of: impl Fn(usize, usize) -> f64) -> Samples {
        let mut samples = Samples::new(vec!["a".to_owned(), "b".to_owned()]);
        for test in 0..TESTS.len() {
            for server in 0..2 {
                for client in 0..CLIENTS.len() {
                    let server_cpu_us = cpu_of(server, client);
                    samples.add(test, server, client, Sample { rate_per_second: 1.0, server_cpu_us });
                }
            }
        }
        samples
    }

    #[test]
    fn a_server_that_pays_for_a_slow_client_is_found() {
        let even = filled(|server, client| if client <= 1 { 50.0 } else { 10.0 * (server + 1) as f64 });
        assert!(even.is_met());
        assert_eq!(even.to_base(0, 1, SPIN, |sample| sample.server_cpu_us).median, 2.0);
        let slow = filled(|server, client| 10.0 + if (server, client) == (1, 4) { 0.4 } else { 0.0 });
        assert!(!slow.is_met());
        assert!(!slow.is_independent(0, 1, 4) && slow.is_independent(0, 1, 3));
    }
}
