//! The figures as a table for the terminal and as a page of the documentation.

use super::figures::{Figure, Sample};
use crate::bench::grid::{Grid, met};
use crate::bench::spread::Spread;

const HEADER: [&str; 7] = [
    "what",
    "client CPU, µs",
    "range",
    "of it the sampler",
    "bare loop, µs",
    "rate, per second",
    "target, µs",
];

fn cells(figure: &Figure) -> Vec<String> {
    let cpu = figure.spread(|sample: &Sample| sample.client_cpu_us);
    let median = |part: fn(&Sample) -> f64| figure.spread(part).median;
    let Spread { least, greatest, .. } = cpu;
    let target = |target_us| format!("{target_us} {}", met(figure.is_met()));
    let floor = match figure.floors_us.as_slice() {
        [] => "–".to_owned(),
        floors => format!("{:.3}", Spread::of(floors.iter().copied()).median),
    };
    vec![
        figure.case.what.to_owned(),
        format!("{:.3} a {}", cpu.median, figure.case.unit),
        format!("{least:.3} to {greatest:.3}"),
        format!("{:.3}", median(|sample| sample.sampler_us)),
        floor,
        format!("{:.0}", median(|sample| sample.rate_per_second)),
        figure.case.target_us.map_or_else(|| "–".to_owned(), target),
    ]
}

pub(super) fn grid(figures: &[Figure]) -> Grid {
    Grid { header: HEADER.to_vec(), rows: figures.iter().map(cells).collect() }
}

/// Aligned columns, and a line that says what they are.
pub(super) fn text(figures: &[Figure]) -> String {
    format!("{}\n\nMedians. {WHAT_IS_COUNTED}", grid(figures).text())
}

const WHAT_IS_COUNTED: &str = "Client CPU is that of the whole dbdyno process over the step's common window, user and kernel: the\n\
     load, the sampler, and in l.i1 the deletes, in qr100 and qp100 the background writers (100 rows a\n\
     second a client). The target of l.i1 is for 100 rows a commit. With 50, the Insert Benchmark's own\n\
     number, each row bears twice as much of what a statement costs, so that figure is shown without a\n\
     target. The bare loop is what l.i1 costs a client that does nothing: one thread with epoll sends\n\
     constant bytes, as many as the INSERT and the DELETE have, and sleeps as long for each answer as in\n\
     the run before it (crates/drivers/examples/spaced_floor.rs). The rest is dbdyno's own.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::insert_benchmark::plans::CASES;

    fn figure(at: usize, client_cpu_us: &[f64]) -> Figure {
        let sample = |client_cpu_us: &f64| Sample {
            client_cpu_us: *client_cpu_us,
            sampler_us: 0.0123,
            rate_per_second: 181_234.5,
        };
        let floors_us = CASES[at].floor_rows.map(|_| 0.251).into_iter().collect();
        Figure { case: &CASES[at], samples: client_cpu_us.iter().map(sample).collect(), floors_us }
    }

    #[test]
    fn the_table_is_aligned_and_says_what_is_met() {
        let table = text(&[figure(0, &[0.4, 0.41, 0.52]), figure(1, &[1.1]), figure(3, &[13.0])]);
        insta::assert_snapshot!(table, @r"
        what                                               client CPU, µs  range             of it the sampler  bare loop, µs  rate, per second  target, µs
        l.i0: 1 client, 100 rows a commit                  0.410 a row     0.400 to 0.520    0.012              –              181234            0.5 met
        l.i1: 1 client, 50 rows a commit, as many deleted  1.100 a row     1.100 to 1.100    0.012              0.251          181234            –
        qr100: range queries, 4 clients                    13.000 a query  13.000 to 13.000  0.012              –              181234            12 MISSED

        Medians. Client CPU is that of the whole dbdyno process over the step's common window, user and kernel: the
        load, the sampler, and in l.i1 the deletes, in qr100 and qp100 the background writers (100 rows a
        second a client). The target of l.i1 is for 100 rows a commit. With 50, the Insert Benchmark's own
        number, each row bears twice as much of what a statement costs, so that figure is shown without a
        target. The bare loop is what l.i1 costs a client that does nothing: one thread with epoll sends
        constant bytes, as many as the INSERT and the DELETE have, and sleeps as long for each answer as in
        the run before it (crates/drivers/examples/spaced_floor.rs). The rest is dbdyno's own.
        ");
    }
}
