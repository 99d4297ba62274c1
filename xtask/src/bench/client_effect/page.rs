//! The tables for the terminal and the page of the documentation.

use super::samples::{Part, Samples, TOLERANCE};
use super::{CLIENTS, CONNECTIONS, SECONDS, SLEEP, SPIN, TESTS};
use crate::bench::grid::Grid;
use crate::bench::machine::{self, Moment};
use crate::bench::spread::Spread;
use crate::bench::sysbench::hosts::{MY_CNF, POSTGRESQL_CONF};

/// Every test's tables, each written by `write`.
pub(super) fn tables(samples: &Samples, write: fn(&Grid) -> String) -> String {
    let tests = TESTS.iter().enumerate().map(|(number, test)| {
        format!(
            "## {}\n\nServer CPU an operation, ratio to {}:\n\n{}\n\nRate, ratio to {}:\n\n{}\n\nServer CPU an \
             operation, µs, and what the client adds to it:\n\n{}",
            test.own,
            samples.titles[0],
            write(&ratios(samples, number, |sample| sample.server_cpu_us)),
            samples.titles[0],
            write(&ratios(samples, number, |sample| sample.rate_per_second)),
            write(&cost(samples, number)),
        )
    });
    tests.collect::<Vec<_>>().join("\n\n")
}

fn ratios(samples: &Samples, test: usize, part: Part) -> Grid {
    let header = std::iter::once("server").chain(CLIENTS.iter().map(|client| client.title)).collect();
    let row = |server: usize| {
        let ratio = |client| spread(samples.to_base(test, server, client, part));
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
        let is_independent =
            (SPIN + 1..CLIENTS.len()).all(|client| samples.is_independent(test, server, client));
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

/// For the documentation.
pub(super) fn page(samples: &Samples, moment: &Moment, version: &str, rounds: u32) -> String {
    let (server_cpus, client_cpus) = machine::halves();
    format!(
        "# Does a comparison of servers depend on the client?

Measured with `cargo xtask bench client-effect --save`, which writes this page. All servers run side by side on CPUs
{server_cpus}. In each of {rounds} rounds every server is asked by every client on CPUs {client_cpus} for {SECONDS} s, in
an order that changes from round to round: {CONNECTIONS} connections, prepared statements, unix socket, uniform keys.
sysbench makes the tables; dbdyno runs on them with `use_existing = true`. Cells are medians with the least and the
greatest of the rounds; ratios are formed within a round.

* **sleep**, **spin**: dbdyno with that [`client_wait`](../reference/plan-file.md).
* **spin + 2 µs**, **spin + 5 µs**: a spinning dbdyno that also works for so long after each answer (`client_work`).
* **waking the sleeping client**: the share of the server's CPU an operation that is gone when the client never sleeps.
* **independent**: added client work changes neither the server's CPU an operation nor its ratio to {base} by more than
  {tolerance:.0} %.

Server CPU is dbdyno's figure for its step; for sysbench it is that of the server's processes over sysbench's whole
run.

{tables}

* date: {date}; load average of the minute before: {load}
* peer: {version} of Debian

The servers' settings:

```ini
{MY_CNF}```

```
{POSTGRESQL_CONF}```
",
        base = samples.titles[0],
        tolerance = TOLERANCE * 100.0,
        tables = tables(samples, Grid::markdown),
        date = moment.date,
        load = moment.load,
        server_cpus = machine::list(server_cpus.as_deref()),
        client_cpus = machine::list(client_cpus.as_deref()),
    )
}
