//! The comparison as a table.

use super::{Case, LEAST_RATE};
use crate::bench::grid::{Grid, met};
use crate::bench::spread::Spread;

const HEADER: [&str; 6] =
    ["server", "tables, method", "rows/s", "sysbench's rows/s", "ratio (range)", "target"];

/// A case with its rates, one a round.
pub(super) struct Figure {
    pub(super) case: &'static Case,
    pub(super) server: String,
    pub(super) own: Vec<f64>,
    pub(super) peers: Vec<f64>,
}

impl Figure {
    pub(super) fn new(case: &'static Case, server: &str) -> Self {
        Self { case, server: server.to_owned(), own: Vec::new(), peers: Vec::new() }
    }

    fn ratio(&self) -> Spread {
        Spread::ratio(&self.own, &self.peers, |rate| *rate)
    }

    pub(super) fn is_met(&self) -> bool {
        !self.own.is_empty() && self.ratio().median >= LEAST_RATE
    }

    fn cells(&self) -> Vec<String> {
        let median = |rates: &[f64]| format!("{:.0}", Spread::of(rates.iter().copied()).median);
        vec![
            self.server.clone(),
            self.case.what(),
            median(&self.own),
            median(&self.peers),
            self.ratio().shown(2),
            format!("≥ {LEAST_RATE:.2} {}", met(self.is_met())),
        ]
    }
}

pub(super) fn grid(figures: &[Figure]) -> Grid {
    Grid { header: HEADER.to_vec(), rows: figures.iter().map(Figure::cells).collect() }
}

#[cfg(test)]
mod tests {
    use super::super::CASES;
    use super::*;

    #[test]
    fn a_missed_target_is_said_aloud() {
        let figure = |title: &str, case: &'static Case, own: f64| Figure {
            own: vec![own, 1.1 * own],
            peers: vec![100_000.0, 100_000.0],
            ..Figure::new(case, title)
        };
        let (mariadb, postgres) = ("MariaDB 10.11.5", "PostgreSQL 15.19");
        let figures = [
            figure(mariadb, &CASES[0][0], 200_000.0),
            figure(mariadb, &CASES[0][1], 120_000.0),
            figure(mariadb, &CASES[1][0], 90_000.0),
            figure(postgres, &CASES[0][1], 200_000.0),
        ];
        insta::assert_snapshot!(grid(&figures).text(), @r"
        server            tables, method    rows/s  sysbench's rows/s  ratio (range)        target
        MariaDB 10.11.5   1 table, insert   210000  100000             2.10 (2.00 to 2.20)  ≥ 1.50 met
        MariaDB 10.11.5   1 table, stream   126000  100000             1.26 (1.20 to 1.32)  ≥ 1.50 MISSED
        MariaDB 10.11.5   4 tables, insert  94500   100000             0.95 (0.90 to 0.99)  ≥ 1.50 MISSED
        PostgreSQL 15.19  1 table, stream   210000  100000             2.10 (2.00 to 2.20)  ≥ 1.50 met
        ");
        assert_eq!(figures.map(|figure| figure.is_met()), [true, false, false, true]);
        assert!(!Figure::new(&CASES[0][0], "MariaDB").is_met(), "nothing measured is nothing met");
    }
}
