//! The tables for the terminal and the page of the documentation.

use super::samples::{SampleValue, Samples, TOLERANCE};
use super::{CLIENTS, SLEEP, SPIN, TESTS, Test};
use crate::bench::grid::Grid;
use crate::bench::spread::Spread;

/// Every test's tables, each written by `write`.
pub(super) fn tables(samples: &Samples, write: fn(&Grid) -> String) -> String {
    let tests = TESTS.iter().enumerate().map(|(number, test)| {
        format!(
            "## {}\n\nServer CPU per operation, ratio to {}:\n\n{}\n\nRate, ratio to {}:\n\n{}\n\nServer CPU per \
             operation, µs, and what the client adds to it:\n\n{}",
            test.title(),
            samples.titles[0],
            write(&ratios(samples, number, |sample| sample.server_cpu_us)),
            samples.titles[0],
            write(&ratios(samples, number, |sample| sample.rate_per_second)),
            write(&cost(samples, number)),
        )
    });
    tests.collect::<Vec<_>>().join("\n\n")
}

fn ratios(samples: &Samples, test: usize, value: SampleValue) -> Grid {
    let header = std::iter::once("server").chain(CLIENTS.iter().map(|client| client.title)).collect();
    let row = |server: usize| {
        let ratio = |client| spread(samples.to_base(test, server, client, value));
        std::iter::once(samples.titles[server].clone()).chain((0..CLIENTS.len()).map(ratio)).collect()
    };
    Grid { header, rows: (1..samples.titles.len()).map(row).collect() }
}

fn cost(samples: &Samples, test: usize) -> Grid {
    let header = vec![
        "server",
        "sysbench",
        "sleep",
        "spin",
        "spin ÷ sleep",
        "waking the sleeping client",
        "spin + 2 µs ÷ spin",
        "spin + 5 µs ÷ spin",
        "independent",
    ];
    let row = |server: usize| {
        let cpu =
            |client| format!("{:.1}", samples.median(test, server, client, |sample| sample.server_cpu_us));
        let waking = samples.to_client(test, server, SPIN, SLEEP);
        let added = |client| spread(samples.to_client(test, server, client, SPIN));
        let is_independent = samples.is_independent_of_work(test, server);
        vec![
            samples.titles[server].clone(),
            cpu(0),
            cpu(SLEEP),
            cpu(SPIN),
            spread(waking),
            format!("{:.0} %", (1.0 - waking.median) * 100.0),
            added(SPIN + 1),
            added(SPIN + 2),
            if is_independent { "yes" } else { "NO" }.to_owned(),
        ]
    };
    Grid { header, rows: (0..samples.titles.len()).map(row).collect() }
}

fn spread(Spread { least, median, greatest }: Spread) -> String {
    format!("{median:.3} ({least:.3}–{greatest:.3})")
}

/// The answer, of all tests together.
fn shown(samples: &Samples) -> String {
    let all =
        || (0..TESTS.len()).flat_map(|test| (0..samples.titles.len()).map(move |server| (test, server)));
    let waking =
        Spread::of(all().map(|(test, server)| 1.0 - samples.to_client(test, server, SPIN, SLEEP).median));
    let ratio =
        |test, server, client| samples.to_base(test, server, client, |sample| sample.server_cpu_us).median;
    let moved = |&(test, server): &(usize, usize)| {
        (ratio(test, server, SLEEP) / ratio(test, server, SPIN)).ln().abs()
    };
    let (test, server) =
        all().max_by(|one, other| moved(one).total_cmp(&moved(other))).expect("there are tests");
    let slowest = CLIENTS.len() - 1;
    let added = |test: usize| {
        let servers = 0..samples.titles.len();
        Spread::of(servers.map(|server| samples.to_client(test, server, slowest, SPIN).median))
    };
    let added = TESTS.iter().enumerate().map(|(test, Test { own, connections, .. })| {
        format!("{} in {own} at {connections} connections", spread(added(test)))
    });
    let independent = all().filter(|&(test, server)| samples.is_independent_of_work(test, server)).count();
    format!(
        "* **A sleeping client costs the server {:.0} to {:.0} % of its CPU per operation**, the median of servers and tests \
         being {:.0} %. The ratio that depends most on it: {} to {} in {} is {:.2} asleep and {:.2} spinning.\n\
         * **Work added to a spinning client** leaves {independent} of {} figures within {:.0} %. Server CPU per operation with 5 µs \
         more, over that with none (median of the servers, least and greatest): {}. A slower client leaves the server without \
         work more often. Then the server's own threads sleep, and pay for their own wake-ups. More connections keep it busy.\n\
         * **Read the brackets.** They are the rounds of one figure. A difference that is smaller than they are wide is noise \
         of this machine, not an effect of the client.",
        waking.least * 100.0,
        waking.greatest * 100.0,
        waking.median * 100.0,
        samples.titles[server],
        samples.titles[0],
        TESTS[test].title(),
        ratio(test, server, SLEEP),
        ratio(test, server, SPIN),
        all().count(),
        TOLERANCE * 100.0,
        added.collect::<Vec<_>>().join(", "),
    )
}

/// For the documentation.
pub(super) fn markdown(samples: &Samples) -> String {
    format!("{}\n\n{}", shown(samples), tables(samples, Grid::markdown))
}
