//! Where a script runs otherwise than in pgbench.

use dbdyno_record::Deviation;

use super::options::{Pgbench, QueryMode};
use crate::deviations::{binary_logs, deviation, of_state, time_cap};

/// Every respect in which a run with `options` differs from pgbench's.
pub(crate) fn deviations(options: &Pgbench) -> Vec<Deviation> {
    let mut list = vec![
        deviation(
            "random numbers",
            "a generator for each client, seeded by the time",
            "each transaction's draws depend on the plan's seed, the step, the connection and the transaction's number: the same for \
             every variant",
        ),
        deviation(
            "connections",
            "clients share -j threads",
            "connections share load threads, as many as the client has CPUs",
        ),
        deviation(
            "errors",
            "a client that meets an error other than a deadlock or serialization failure ends, the others go on",
            "such an error ends the step",
        ),
        deviation(
            "commands",
            "\\shell and \\setshell start programs; debug() prints",
            "\\shell and \\setshell are refused; debug() prints nothing",
        ),
        binary_logs(false),
    ];
    if options.has_load() {
        list.push(deviation(
            "load",
            "one COPY of all accounts with FREEZE; an INSERT for each branch and teller",
            "a COPY for each 20,000 accounts without FREEZE, INSERTs of 1,000 rows; MySQL and SQLite get INSERTs only",
        ));
        if options.settling().behind().is_some() {
            list.push(deviation(
                "settle",
                "none",
                "the server is brought to rest between its load and the first run",
            ));
        }
    }
    if options.protocol == QueryMode::Prepared {
        list.push(deviation(
            "parameters",
            "all as text",
            "whole numbers go binary; `?` outside of quotes is a parameter",
        ));
    }
    list.push(time_cap(options.time_cap));
    list.extend(of_state(options.data, &options.cold));
    list
}
