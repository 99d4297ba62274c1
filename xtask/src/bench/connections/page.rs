//! Both clients as a table for the terminal and as a page of the documentation.

use super::{CONNECTIONS, ROWS, SECONDS, Taken};
use crate::bench::grid::Grid;
use crate::bench::machine::{self, Moment};
use crate::bench::spread::Spread;
use crate::bench::sysbench::hosts::MY_CNF;

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
    /// Ours over sysbench's, round by round.
    fn ratio(&self, part: fn(&Taken) -> f64) -> Spread {
        Spread::of(self.own.iter().zip(&self.peers).map(|(own, peer)| part(own) / part(peer)))
    }

    pub(super) fn is_met(&self) -> bool {
        !self.own.is_empty()
            && self.ratio(memory).median <= MOST_MEMORY
            && self.ratio(ready).median <= MOST_TIME
    }

    fn row(&self, figure: &str, part: fn(&Taken) -> f64, most: Option<f64>) -> Vec<String> {
        let median = |of: &[Taken]| format!("{:.2}", Spread::of(of.iter().map(part)).median);
        let Spread { least, median: middle, greatest } = self.ratio(part);
        let target = most.map_or_else(
            || "–".to_owned(),
            |most| format!("≤ {most:.2} {}", if middle <= most { "met" } else { "MISSED" }),
        );
        vec![
            figure.to_owned(),
            median(&self.own),
            median(&self.peers),
            format!("{middle:.3} ({least:.3} to {greatest:.3})"),
            target,
        ]
    }

    fn grid(&self) -> Grid {
        let rows = vec![
            self.row("peak resident memory, MiB", memory, Some(MOST_MEMORY)),
            self.row("all connected and ready, s", ready, Some(MOST_TIME)),
            self.row("queries, thousand a second", |taken| taken.rate_per_second / 1e3, None),
        ];
        Grid { header: HEADER.to_vec(), rows }
    }

    /// For the terminal.
    pub(super) fn text(&self) -> String {
        self.grid().text()
    }

    /// For the documentation.
    pub(super) fn page(&self, moment: &Moment, version: &str, server: &str) -> String {
        let (server_cpus, client_cpus) = machine::halves();
        format!(
            "# What many connections cost the client, compared with sysbench

Measured with `cargo xtask bench connections --save`, which writes this page: {rounds} rounds; in
each, dbdyno and sysbench open {CONNECTIONS} connections to the same server one after the other
(their order changes from round to round) and select points on all of them for {SECONDS} s, in a
closed loop with prepared statements over a unix socket. One table of {ROWS} rows. Medians; ratios
are taken within each round.

{table}

Memory is the greatest that the process had resident (`VmHWM`), from its start to its end; dbdyno's
holds its sampler, the load of its table and its report. Ready: dbdyno's is the time from the first
connection to the barrier, when every connection has logged in and prepared its statement, as the
run records it; sysbench's is that from its line \"Initializing worker threads\" to \"Threads
started!\".

* date: {date}; load average of the minute before: {load}
* server: {server}, started by dbdyno, on CPUs {server_cpus}; clients on CPUs {client_cpus}
* peer: {version} of Debian

The server's settings:

```ini
{MY_CNF}```
",
            rounds = self.own.len(),
            table = self.grid().markdown(),
            date = moment.date,
            load = moment.load,
            server_cpus = machine::list(server_cpus.as_deref()),
            client_cpus = machine::list(client_cpus.as_deref()),
        )
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
        insta::assert_snapshot!(figures.text(), @r"
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
