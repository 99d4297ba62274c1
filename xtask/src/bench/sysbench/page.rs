//! The comparison as a table for the terminal and as a page of the documentation.

use super::cases::{Figure, MOST_OVER_FLOOR};
use super::peer::Used;
use crate::bench::grid::{Grid, met};
use crate::bench::spread::Spread;

const HEADER: [&str; 9] = [
    "server",
    "transaction, connections",
    "client CPU, µs",
    "sysbench's, µs",
    "ratio (range)",
    "target",
    "rate, per second",
    "ratio to sysbench's (range)",
    "target",
];

fn grid(figures: &[Figure]) -> Grid {
    Grid { header: HEADER.to_vec(), rows: figures.iter().map(cells).collect() }
}

fn cells(figure: &Figure) -> Vec<String> {
    let median = |of: &[Used], part: fn(&Used) -> f64| Spread::of(of.iter().map(part)).median;
    let case = figure.case;
    let rate = match case.least_rate {
        Some(least) => format!("≥ {least:.2} {}", met(figure.is_rate_met())),
        None => "–".to_owned(),
    };
    vec![
        figure.server.clone(),
        case.what(),
        format!("{:.2}", median(&figure.own, |used| used.cpu_us)),
        format!("{:.2}", median(&figure.peers, |used| used.cpu_us)),
        figure.cpu_ratio().shown(3),
        format!("≤ {:.2} {}", case.most_cpu, met(figure.is_cpu_met())),
        format!("{:.0}", median(&figure.own, |used| used.rate_per_second)),
        figure.rate_ratio().shown(3),
        rate,
    ]
}

/// One line for each figure that was compared with the bare loop.
fn floors(figures: &[Figure]) -> String {
    let lines = figures.iter().filter_map(|figure| {
        let ratio = figure.floor_ratio()?;
        let floor = Spread::of(figure.floors.iter().map(|used| used.cpu_us)).median;
        let target = match figure.has_floor_target() {
            true => format!("; target ≤ {MOST_OVER_FLOOR} {}", met(figure.is_floor_met())),
            false => String::new(),
        };
        let peer = floor / Spread::of(figure.peers.iter().map(|used| used.cpu_us)).median;
        let most = figure.case.most_cpu;
        let out_of_reach = if peer > most {
            format!(" (so that {most:.2} is out of reach here for any client that sleeps until an answer comes)")
        } else {
            String::new()
        };
        Some(format!(
            "* {}: the bare loop uses {floor:.2} µs, which is {peer:.2} of sysbench's{out_of_reach}; dbdyno uses {} of that{target}",
            figure.case.what(),
            ratio.shown(3),
        ))
    });
    format!("Above the bare epoll loop:\n\n{}", lines.collect::<Vec<_>>().join("\n"))
}

/// For the terminal.
pub(super) fn text(figures: &[Figure]) -> String {
    format!("{}\n\n{}", grid(figures).text(), floors(figures))
}

/// For the documentation.
pub(super) fn markdown(figures: &[Figure]) -> String {
    format!("{}\n\n{}", grid(figures).markdown(), floors(figures))
}

#[cfg(test)]
mod tests {
    use super::super::cases::CASES;
    use super::*;

    #[test]
    fn a_missed_target_is_said_aloud() {
        let mut figure = Figure::new(&CASES[1], "MariaDB 10.11.5");
        figure.own = vec![Used { cpu_us: 8.0, rate_per_second: 110.0 }];
        figure.peers = vec![Used { cpu_us: 12.5, rate_per_second: 100.0 }];
        figure.floors = vec![Used { cpu_us: 6.4, rate_per_second: 120.0 }];
        insta::assert_snapshot!(text(&[figure]), @r"
        server           transaction, connections      client CPU, µs  sysbench's, µs  ratio (range)           target         rate, per second  ratio to sysbench's (range)  target
        MariaDB 10.11.5  point-select, 16 connections  8.00            12.50           0.640 (0.640 to 0.640)  ≤ 0.60 MISSED  110               1.100 (1.100 to 1.100)       ≥ 1.10 met

        Above the bare epoll loop:

        * point-select, 16 connections: the bare loop uses 6.40 µs, which is 0.51 of sysbench's; dbdyno uses 1.250 (1.250 to 1.250) of that; target ≤ 1.25 met
        ");
    }

    #[test]
    fn a_target_below_what_the_bare_loop_uses_is_called_out_of_reach() {
        let mut figure = Figure::new(&CASES[0], "MariaDB 10.11.5");
        figure.own = vec![Used { cpu_us: 19.0, rate_per_second: 110.0 }];
        figure.peers = vec![Used { cpu_us: 20.0, rate_per_second: 100.0 }];
        figure.floors = vec![Used { cpu_us: 18.0, rate_per_second: 120.0 }];
        assert!(
            text(&[figure]).contains("0.90 of sysbench's (so that 0.75 is out of reach here for any client")
        );
    }
}
