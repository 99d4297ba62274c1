//! Every respect in which this implementation differs from the original, for the record and the report.

use dbdyno_record::Deviation;

use crate::dbt3::options::{Dbt3 as Options, Parameters, Part, Q15};
use crate::deviations::{binary_logs, deviation, of_state};
use crate::options::Verify;

/// Differences that hold with `options`.
pub(crate) fn deviations(options: &Options) -> Vec<Deviation> {
    let mut list = vec![
        deviation(
            "load",
            "files by dbgen, then LOAD DATA or COPY",
            "the same rows, streamed by the client without files",
        ),
        deviation(
            "dates and numbers of queries",
            "the server computes date '1994-01-01' + interval '1' year",
            "the client does, and sends the date",
        ),
        deviation(
            "answers",
            "printed by the product's own client",
            "read in full within the query's time, and digested after it",
        ),
        binary_logs(false),
    ];
    let mut add = |topic: &str, original: &str, here: &str| list.push(deviation(topic, original, here));
    if options.foreign_keys {
        add("foreign keys", "none", "added after the load where the engine has them");
    }
    if options.q15 == Q15::Cte {
        add("q15", "a view", "a common table expression");
    }
    if options.parameters == Parameters::Validation {
        add(
            "parameters",
            "drawn by qgen for each stream",
            "those with which answers are published, in every stream",
        );
    } else {
        add("parameters", "drawn by qgen", "drawn by the same rules, by a generator of our own");
    }
    if options.parts.iter().any(|part| matches!(part, Part::Power | Part::Throughput)) {
        add(
            "refresh functions",
            "rows by dbgen, one order at a time",
            "new orders are like loaded ones under keys that are left free for them; 100 orders in a transaction",
        );
    }
    if options.analyze {
        add(
            "plans",
            "EXPLAIN",
            "each query is executed once more after its step, to count rows and time by operator",
        );
    }
    if options.verify != Verify::Off {
        add("verify", "nothing is checked", "rows are counted and answers compared outside the clock");
    }
    list.extend(of_state(options.data, &options.cold));
    list
}
