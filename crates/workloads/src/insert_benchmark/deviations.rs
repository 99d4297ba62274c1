//! Every respect in which this implementation differs from the original, for the record and the report.

use dbdyno_plan::{
    Clock, InsertBenchmark as Options, Pacing, Protocol, Settle, SettleAfter, SettleWait, Verify,
};
use dbdyno_record::Deviation;

/// Differences that hold with `options`.
pub(crate) fn deviations(options: &Options) -> Vec<Deviation> {
    let mut list = always();
    list.extend(of_settling(&options.settling()));
    list.push(of_pacing(options.pacing));
    list.push(of_protocol(options.protocol));
    let mut add = |topic: &str, original: &str, here: &str| list.push(deviation(topic, original, here));
    if options.clock == Clock::Addressed {
        add(
            "clock",
            "dateandtime is the client's local wall clock",
            "dateandtime advances one second every 10,000 rows of a client; clock = \"wall\" takes the wall clock, in UTC",
        );
    } else {
        add("clock", "dateandtime is local time", "dateandtime is UTC");
    }
    if options.verify != Verify::Off {
        add(
            "verify",
            "nothing is checked",
            "row counts, column sums and ids are read and compared outside the clock; reading brings whole tables through memory",
        );
    }
    add(
        "time_cap",
        "a read-write step below its rate runs on until its rows are done",
        &format!("it is cut off and failed after {} times its length", options.time_cap),
    );
    let profile = Options::default();
    if options.resync_rounds != profile.resync_rounds {
        add("resync_rounds", "1000", &options.resync_rounds.to_string());
    }
    if !options.deletes {
        add("deletes", "on", "off: tables grow");
    }
    if options.secondary_indexes != profile.secondary_indexes {
        add("secondary_indexes", "3", &options.secondary_indexes.to_string());
    }
    if !options.create_table_options.is_empty() {
        add("create_table_options", "none, unless its user appends some", &options.create_table_options);
    }
    if options.query_connections != profile.query_connections {
        add("query_connections", "1", &options.query_connections.to_string());
    }
    list
}

/// The original's own way would take its queues.
fn of_pacing(pacing: Pacing) -> Deviation {
    deviation(
        "pacing",
        "the process that feeds the two queues is paced: all statements of a second in one burst, then a pause until the \
         second is over unless feeding took 0.95 s; lost time is not made up",
        match pacing {
            Pacing::Even => {
                "one statement at a time at equal distances, a late stream catches up; pacing = \"burst\" comes nearest to the original"
            }
            Pacing::Poisson => {
                "one statement at a time at random times, a late stream catches up; pacing = \"burst\" comes nearest to the original"
            }
            Pacing::Burst => {
                "without queues: the inserter and the deleter are paced, each by its own clock, and a burst is over when its \
                 last statement is answered; a server that answers slowly delays the next burst sooner"
            }
        },
    )
}

/// What `auto` sends depends on the product; it is told whichever the run has.
fn of_protocol(protocol: Protocol) -> Deviation {
    deviation(
        "protocol",
        "text on MySQL and MariaDB; on PostgreSQL inserts and deletes as text, queries as EXECUTE of a prepared \
         statement in text; the original has no SQLite",
        match protocol {
            Protocol::Auto => {
                "the same, but queries to PostgreSQL as prepared statements of the protocol; all are prepared on SQLite"
            }
            Protocol::Text => "text, so that PostgreSQL plans each query anew",
            Protocol::Prepared => "all are prepared statements of the protocol",
        },
    )
}

/// The original waits for a fixed time, once.
fn of_settling(settle: &Settle) -> Vec<Deviation> {
    let here = settle.in_place_of_a_pause().or(match settle.wait {
        SettleWait::Fixed(fixed) => Some(format!("{} s", fixed.0.as_secs_f64())),
        SettleWait::Original => None,
    });
    let wait =
        here.map(|here| deviation("settle", "min(1200 s, 60 s + 1 s per million rows) after l.i2", &here));
    let each = (settle.behind() == Some(SettleAfter::EachWrite)).then(|| {
        deviation("settle.after", "cleanup after l.i2 only", "cleanup after each step but the last")
    });
    wait.into_iter().chain(each).collect()
}

fn always() -> Vec<Deviation> {
    vec![
        deviation(
            "random numbers",
            "seeded with the time of day; data from 4 MiB of operating system randomness",
            "counter-based: every operation is a function of (seed, client, number), the same for every variant",
        ),
        deviation(
            "start",
            "clients start 1 s apart (10 s after the first in l.i0) and the clock runs from the first",
            "all connections are open before the clock starts for all at once; tables are created before it",
        ),
        deviation(
            "steps of ids",
            "the server's own: auto_increment_increment of MySQL and MariaDB",
            "1: connections that insert send SET SESSION auto_increment_increment = 1, auto_increment_offset = 1 there before the clock runs",
        ),
        deviation(
            "rate",
            "requested rows / whole seconds of the whole step",
            "rows and queries answered in the common window / its length in microseconds",
        ),
        deviation(
            "timed interval",
            "drawing parameters, building the text, executing, fetching",
            "sending to answered; response time, from when the operation was due, is beside it",
        ),
        deviation(
            "generator",
            "a process feeds two queues of 8 statements and looks up the least id on a connection of its own",
            "insert and delete connections keep within 9 statements of each other; the least id is looked up on the delete connection before the delete that needs it",
        ),
        deviation(
            "query stop",
            "queries look every 16th time whether the inserter or the deleter is done",
            "after every query, whether the inserter is done",
        ),
    ]
}

fn deviation(topic: &str, original: &str, here: &str) -> Deviation {
    Deviation { topic: topic.to_owned(), original: original.to_owned(), here: here.to_owned() }
}
