//! Every respect in which this implementation differs from the original, for the record and the report.

use crate::microbenchmarks::options::Microbenchmarks as Options;
use crate::oltp::options::OltpProfile;
use crate::options::{Protocol, Verify};
use crate::settle::{SettleAfter, SettleWait};
use dbdyno_record::Deviation;

use crate::deviations::{binary_logs, deviation, time_cap};
use crate::{deviations, oltp};

/// Topics of the classic workload's deviations that hold here too.
pub(super) const SHARED: [&str; 14] = [
    "random numbers",
    "steps of ids",
    "tables",
    "load",
    "protocol of the load",
    "character set of the load",
    "load connections",
    "index",
    "id",
    "first_id",
    "errors",
    "duplicate keys",
    "timed interval",
    "columns of results",
];

/// Differences that hold with `options`.
pub(crate) fn deviations(options: &Options) -> Vec<Deviation> {
    let classic = oltp::deviations::deviations(&options.tables_part()).into_iter();
    let mut list: Vec<Deviation> = classic.filter(|found| SHARED.contains(&found.topic.as_str())).collect();
    let mut add = |topic: &str, original: &str, here: &str| list.push(deviation(topic, original, here));
    add(
        "rates",
        "statements a second, BEGIN and COMMIT included",
        "operations a second; a transaction is one. Statements are counted by kind too",
    );
    add(
        "scan",
        "million or thousand rows a second, of all or of one connection, by the year of the report",
        "rows a second of all connections together",
    );
    add(
        "query plans",
        "EXPLAIN of every statement before the clock starts, since March 2025",
        "EXPLAIN of each statement once, after the step and its checks",
    );
    match options.protocol {
        Protocol::Auto => {}
        Protocol::Text => add("protocol", "prepared statements, but insert and scan as text", "text"),
        Protocol::Prepared => add("protocol", "prepared statements, but insert and scan as text", "prepared"),
    }
    if options.update_inlist_ids != 10 {
        add("update_inlist_ids", "10, though the name says 100", &options.update_inlist_ids.to_string());
    }
    if options.operations.is_some() {
        add(
            "operations",
            "steps have a length in time",
            "steps end with their operations, without a warm-up",
        );
    }
    if options.delete_refill {
        add(
            "delete_refill",
            "insert runs on what delete has left",
            "rows that delete took away are put back before insert",
        );
    }
    if options.verify != Verify::Off {
        add(
            "verify",
            "nothing is checked",
            "after steps that write, row counts and sums of k, outside the clock; that reads whole tables",
        );
    }
    if options.zipfian_exponent != 0.8 {
        add("zipfian_exponent", "0.8", &options.zipfian_exponent.to_string());
    }
    if options.operations.is_none() {
        list.push(time_cap(options.time_cap));
    }
    list.push(binary_logs(true));
    list.extend(of_state(options));
    list
}

/// What steps find: tables, caches, a server at rest.
fn of_state(options: &Options) -> Vec<Deviation> {
    let mut list = Vec::new();
    let mut add = |topic: &str, original: &str, here: &str| list.push(deviation(topic, original, here));
    if options.profile == OltpProfile::Sysbench05 {
        add("profile", "tables of version 1", "tables of version 0.5: unsigned numbers, MAX_ROWS = 1000000");
    }
    let settle = options.settling();
    let rest = settle.in_place_of_a_pause().or(match settle.wait {
        SettleWait::Fixed(fixed) => Some(fixed.to_string()),
        SettleWait::Original => None,
    });
    if let Some(rest) = rest {
        add("settle", "60 s and 1 s for each million rows, at most 1200 s", &rest);
    }
    if settle.behind() == Some(SettleAfter::EachWrite) {
        add("settle.after", "after load and writes", "after the load and after each step that writes");
    }
    list.extend(deviations::of_state(options.data, &options.cold));
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Topics of the classic workload that are other ones here.
    const OTHERS: [&str; 3] = ["k", "query plans", "binary logs"];

    #[test]
    fn what_always_holds_for_the_classic_workload_holds_here_or_is_known_not_to() {
        for found in oltp::deviations::always() {
            let topic = found.topic.as_str();
            assert!(SHARED.contains(&topic) != OTHERS.contains(&topic), "{topic}");
        }
    }

    #[test]
    fn options_of_the_plan_that_the_original_has_not_are_reported() {
        let topics =
            |options: &Options| deviations(options).into_iter().map(|found| found.topic).collect::<Vec<_>>();
        let default = topics(&Options::default());
        for topic in ["steps of ids", "binary logs", "time_cap"] {
            assert!(default.iter().any(|one| one == topic), "{topic}");
        }
        assert!(!default.iter().any(|one| one == "zipfian_exponent"));
        let other = Options { zipfian_exponent: 1.2, operations: Some(9), ..Options::default() };
        assert!(topics(&other).iter().any(|one| one == "zipfian_exponent"));
        assert!(!topics(&other).iter().any(|one| one == "time_cap"), "steps end with their operations");
    }
}
