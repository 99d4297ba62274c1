//! Every respect in which this implementation differs from the original, for the record and the report.

use dbdyno_plan::{Microbenchmarks as Options, Protocol, SettleAfter, SettleBy, SettleWait, Verify};
use dbdyno_record::Deviation;

use crate::oltp;

/// Topics of the classic workload's deviations that hold here too.
const SHARED: [&str; 4] = ["random numbers", "load", "errors", "timed interval"];

/// Differences that hold with `options`.
pub(crate) fn deviations(options: &Options) -> Vec<Deviation> {
    let classic = oltp::deviations::deviations(&options.tables_part()).into_iter();
    let mut list: Vec<Deviation> = classic.filter(|found| SHARED.contains(&found.topic.as_str())).collect();
    let mut add = |topic: &str, original: &str, here: &str| {
        list.push(Deviation {
            topic: topic.to_owned(),
            original: original.to_owned(),
            here: here.to_owned(),
        });
    };
    add(
        "rates",
        "statements a second, those that begin and end a transaction too",
        "operations a second; a transaction is one. Statements are counted by kind beside them",
    );
    add(
        "scan",
        "million or thousand rows a second, of all or of one connection, by the year of the report",
        "rows a second of all connections together",
    );
    add(
        "query plans",
        "EXPLAIN of every statement before the clock starts, since March 2025",
        "not asked for",
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
    let settle = options.settling();
    let rest = match (settle.by, settle.wait) {
        (SettleBy::State, _) => Some(format!("until the server's state is quiet, {} at most", settle.cap)),
        (SettleBy::Wait, SettleWait::Fixed(fixed)) => Some(format!("{fixed}")),
        (SettleBy::Wait, SettleWait::Original) => None,
    };
    if let Some(rest) = rest {
        add("settle", "60 s and 1 s for each million rows, at most 1200 s", &rest);
    }
    if settle.after == SettleAfter::EachWrite {
        add("settle.after", "behind load and writes", "behind the load and behind each step that writes");
    }
    if options.verify != Verify::Off {
        add(
            "verify",
            "nothing is checked",
            "behind steps that write, row counts and sums of k are read and compared outside the clock; reading brings whole \
             tables through memory",
        );
    }
    list
}
