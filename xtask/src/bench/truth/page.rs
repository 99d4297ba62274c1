//! The figures and their truths as a table for the terminal and as a page of the documentation.

use super::check::{Bound, Check, Checks, Verdict};
use crate::bench::grid::Grid;
use crate::bench::machine::{self, Moment};
use crate::bench::spread::Spread;

const HEADER: [&str; 6] = ["asked", "figure", "reported (range)", "server's own", "truth or limit", "off by"];

fn grid(checks: &Checks) -> Grid {
    let mut last = "";
    let rows = checks.0.iter().map(|check| {
        // A part is named once.
        let part = if check.part == last { "" } else { &check.part };
        last = &check.part;
        cells(part, check)
    });
    Grid { header: HEADER.to_vec(), rows: rows.collect() }
}

fn cells(part: &str, check: &Check) -> Vec<String> {
    let Spread { least, median, greatest } = Spread::of(check.samples.iter().copied());
    let verdict = match check.verdict() {
        Verdict::Met => "met",
        Verdict::Missed => "MISSED",
        Verdict::ServerWasOff => "NOT JUDGED: the server itself was off",
        Verdict::None => "",
    };
    let (bound, off) = match check.bound {
        Bound::Near { truth, share } => (
            number(truth),
            format!("{:+.2} %, allowed {} % {verdict}", 100.0 * (median / truth - 1.0), 100.0 * share),
        ),
        Bound::AtMost(most) => (format!("≤ {}", number(most)), verdict.to_owned()),
        Bound::Shown => ("–".to_owned(), String::new()),
    };
    vec![
        part.to_owned(),
        check.figure.clone(),
        format!("{} ({} to {})", number(median), number(least), number(greatest)),
        check.server_median().map_or_else(|| "–".to_owned(), number),
        bound,
        off,
    ]
}

/// With as many decimals as its size needs.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        1000.0.. => 0,
        10.0.. => 1,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// For the terminal.
pub(super) fn text(checks: &Checks) -> String {
    grid(checks).text()
}

/// For the documentation.
pub(super) fn page(checks: &Checks, moment: &Moment, rounds: u32) -> String {
    let (server_cpus, client_cpus) = machine::halves();
    format!(
        "# Are the client's figures true?

Measured with `cargo xtask bench truth --save`, which writes this page: {rounds} rounds. dbdyno asks
point selects of `dbdyno known-answer`, a server whose times are programmed, over a unix socket, and
its report is compared with that truth. Medians over the rounds; the distance is that of the median.

{table}

* **Delays.** Truth is the mean and the quantiles of the distribution by formula. *Server's own* is
  the same figure of the server's actual times, from having read a request to having written its
  answer. The client must be within what is allowed of both; where the server itself was off by
  more, nothing is known of the client.
* **Freeze.** At half load a freeze of 200 ms every 10 s delays 4 % of all arrivals, evenly between
  0 and 200 ms: during it the wait falls by a millisecond for every two that pass, since those who
  arrive later wait for a shorter rest and a longer queue, and after it by as much, since the queue
  is served twice as fast as it grows. So P(wait > x) = 0.04 (1 - x / 200 ms): 150 ms at p99, 195 ms
  at p99.9, and 1 ms of service. The closed loop sends nothing while the server is frozen and does
  not see it.
* **Burn.** CPU of the server's process a query, as reported, with a burn of 100 µs less that with
  one of 1 ns.
* **Closed loop.** The same for a client that
  [spins and one that sleeps](../guides/client-headroom.md#spin-or-sleep), as fast as one server
  thread goes. Truth is the burn and what a query costs without one, over as many connections to a
  client that spins. What a client that sleeps adds is the server's cost of waking it.
* **Schedule.** *Lag* is how late the load engine was with operations that a free connection was
  waiting to send. *Outside the load threads* is the CPU of dbdyno's process outside its load
  threads: sampling, swapping and writing the record.
* **Sampling.** In turn on and off (`sampling = false` in `[host]`). It counts as not visible when
  the median with it does not lie beyond the greatest without.

* date: {date}; load average of the minute before: {load}
* server on CPUs {server_cpus}, client on CPUs {client_cpus}
",
        table = grid(checks).markdown(),
        date = moment.date,
        load = moment.load,
        server_cpus = machine::list(server_cpus.as_deref()),
        client_cpus = machine::list(client_cpus.as_deref()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_says_what_it_is_off_by_and_whose_fault_that_may_be() {
        let mut checks = Checks::default();
        let near = |truth| Bound::Near { truth, share: 0.03 };
        checks.add_with_server("delay", "mean", near(5000.0), 5100.0, 5050.0);
        checks.add_with_server("delay", "p99", near(20.0), 22.0, 21.5);
        checks.add("schedule", "lag", Bound::AtMost(200.0), 350.0);
        insta::assert_snapshot!(text(&checks), @r"
        asked     figure  reported (range)        server's own  truth or limit  off by
        delay     mean    5100 (5100 to 5100)     5050          5000            +2.00 %, allowed 3 % met
                  p99     22.0 (22.0 to 22.0)     21.5          20.0            +10.00 %, allowed 3 % NOT JUDGED: the server itself was off
        schedule  lag     350.0 (350.0 to 350.0)  –             ≤ 200.0         MISSED
        ");
        let moment = Moment { date: "2026-01-02 03:04 UTC".to_owned(), load: "0.10".to_owned() };
        let page = page(&checks, &moment, 3);
        assert!(page.contains("| schedule | lag | 350.0 (350.0 to 350.0) |"), "{page}");
        assert!(!page.contains(" \n"), "no blanks at line ends");
    }
}
