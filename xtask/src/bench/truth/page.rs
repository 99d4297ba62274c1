//! The figures and their truths as a table.

use super::check::{Bound, Check, Checks, Verdict};
use crate::bench::grid::Grid;
use crate::bench::spread::Spread;

const HEADER: [&str; 6] = ["asked", "figure", "reported (range)", "server's own", "truth or limit", "off by"];

pub(super) fn grid(checks: &Checks) -> Grid {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_says_what_it_is_off_by_and_whose_fault_that_may_be() {
        let mut checks = Checks::default();
        let near = |truth| Bound::Near { truth, share: 0.03 };
        checks.add("delay", "mean", near(5000.0), 5100.0).of_server.push(5050.0);
        checks.add("delay", "p99", near(20.0), 22.0).of_server.push(21.5);
        checks.add("schedule", "lag", Bound::AtMost(200.0), 350.0);
        insta::assert_snapshot!(grid(&checks).text(), @r"
        asked     figure  reported (range)        server's own  truth or limit  off by
        delay     mean    5100 (5100 to 5100)     5050          5000            +2.00 %, allowed 3 % met
                  p99     22.0 (22.0 to 22.0)     21.5          20.0            +10.00 %, allowed 3 % NOT JUDGED: the server itself was off
        schedule  lag     350.0 (350.0 to 350.0)  –             ≤ 200.0         MISSED
        ");
        let page = grid(&checks).markdown();
        assert!(page.contains("| schedule | lag | 350.0 (350.0 to 350.0) |"), "{page}");
        assert!(!page.contains(" \n"), "no blanks at line ends");
    }
}
