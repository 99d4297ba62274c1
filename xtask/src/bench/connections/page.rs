//! Both clients as a table.

use super::Taken;
use crate::bench::grid::{Grid, met};
use crate::bench::spread::Spread;

/// Memory and time over sysbench's, at most.
const MOST_MEMORY: f64 = 0.15;
const MOST_TIME: f64 = 0.25;

const HEADER: [&str; 5] = ["figure", "dbdyno", "sysbench", "ratio (range)", "target"];

/// One run of each client a round.
pub(super) struct Figures {
    pub(super) own: Vec<Taken>,
    pub(super) peers: Vec<Taken>,
}

impl Figures {
    fn ratio(&self, part: fn(&Taken) -> f64) -> Spread {
        Spread::ratio(&self.own, &self.peers, part)
    }

    pub(super) fn is_met(&self) -> bool {
        !self.own.is_empty()
            && self.ratio(memory).median <= MOST_MEMORY
            && self.ratio(ready).median <= MOST_TIME
    }

    fn row(&self, figure: &str, part: fn(&Taken) -> f64, most: Option<f64>) -> Vec<String> {
        let median = |of: &[Taken]| format!("{:.2}", Spread::of(of.iter().map(part)).median);
        let ratio = self.ratio(part);
        let target = |most| format!("≤ {most:.2} {}", met(ratio.median <= most));
        vec![
            figure.to_owned(),
            median(&self.own),
            median(&self.peers),
            ratio.shown(3),
            most.map_or_else(|| "–".to_owned(), target),
        ]
    }

    pub(super) fn grid(&self) -> Grid {
        let rows = vec![
            self.row("peak resident memory, MiB", memory, Some(MOST_MEMORY)),
            self.row("all connected and ready, s", ready, Some(MOST_TIME)),
            self.row("queries, thousand a second", |taken| taken.rate_per_second / 1e3, None),
        ];
        Grid { header: HEADER.to_vec(), rows }
    }
}

fn memory(taken: &Taken) -> f64 {
    taken.peak_bytes / f64::from(1 << 20)
}

fn ready(taken: &Taken) -> f64 {
    taken.ready_seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_time_are_judged_and_the_rate_is_shown() {
        let taken = |mib: f64, ready_seconds, rate_per_second| Taken {
            peak_bytes: mib * f64::from(1 << 20),
            ready_seconds,
            rate_per_second,
        };
        let figures =
            Figures { own: vec![taken(15.0, 0.5, 50_000.0)], peers: vec![taken(100.0, 1.0, 40_000.0)] };
        insta::assert_snapshot!(figures.grid().text(), @r"
        figure                      dbdyno  sysbench  ratio (range)           target
        peak resident memory, MiB   15.00   100.00    0.150 (0.150 to 0.150)  ≤ 0.15 met
        all connected and ready, s  0.50    1.00      0.500 (0.500 to 0.500)  ≤ 0.25 MISSED
        queries, thousand a second  50.00   40.00     1.250 (1.250 to 1.250)  –
        ");
        assert!(!figures.is_met());
        assert!(Figures { own: vec![taken(15.0, 0.25, 1.0)], ..figures }.is_met());
        assert!(!Figures { own: vec![], peers: vec![] }.is_met(), "nothing measured is nothing met");
    }
}
