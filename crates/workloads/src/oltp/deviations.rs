//! Every respect in which this implementation differs from the original, for the record and the report.

use dbdyno_plan::{Distribution, Oltp as Options, OltpPace, OltpTest, Protocol, SettleBy, Verify};
use dbdyno_record::Deviation;

/// Differences that hold with `options`.
pub(crate) fn deviations(options: &Options) -> Vec<Deviation> {
    let mut list = always();
    let mut add = |topic: &str, original: &str, here: &str| list.push(deviation(topic, original, here));
    match options.protocol {
        Protocol::Auto => {}
        Protocol::Text => add("protocol", "prepared statements, but inserts as text", "text"),
        Protocol::Prepared => add("protocol", "prepared statements, but inserts as text", "prepared"),
    }
    if options.distribution == Distribution::Gaussian {
        add(
            "distribution",
            "version 1.1 takes the number of its uniform draws from an option that is gone and always gives the first id",
            "the mean of special_iterations uniform draws, as version 1.0",
        );
    }
    if options.pace != OltpPace::Closed {
        add(
            "rate",
            "random arrivals in a queue of 131,072 places, whose overflow ends the run; counted from when they were queued",
            "even or random arrivals from a schedule without a queue, counted from when they were due",
        );
    }
    if options.tests.contains(&OltpTest::Insert) && !options.auto_inc {
        add(
            "auto_inc",
            "ids of the test insert are a permutation of 32-bit numbers, in tables that begin empty",
            "the ids after the greatest one, in turn over the connections, in the loaded tables",
        );
    }
    let settle = options.settling();
    if settle.by == SettleBy::State {
        let here = format!("cleanup, then until the server's state is quiet, {} at most", settle.cap);
        add("settle", "tests begin at once", &here);
    }
    if options.verify != Verify::Off {
        add(
            "verify",
            "nothing is checked",
            "row counts and sums of k are read and compared outside the clock; reading brings whole tables through memory",
        );
    }
    list
}

fn always() -> Vec<Deviation> {
    vec![
        deviation(
            "random numbers",
            "xoroshiro128+ in each thread; the load cannot be repeated, nor a run of several threads",
            "counter-based: rows are a function of (seed, table, row), operations of (seed, step, connection, number)",
        ),
        deviation(
            "k",
            "drawn in the load as in the tests, which was not uniform by default before version 1.1",
            "uniform in the load, whatever the tests draw",
        ),
        deviation(
            "load",
            "rows are put into a buffer of 512 KiB until the next does not fit",
            "a fixed number of rows a statement, as many as surely fit; tables exist before the clock runs",
        ),
        deviation(
            "errors",
            "deadlocks and lock waits begin the operation again, on MySQL without a rollback: after a lock wait the next BEGIN commits the first part",
            "a ROLLBACK comes before the operation begins again; repetitions are counted",
        ),
        deviation(
            "timed interval",
            "drawing parameters and all statements of an event",
            "parameters are drawn before; from the first statement sent to the last answered",
        ),
    ]
}

fn deviation(topic: &str, original: &str, here: &str) -> Deviation {
    Deviation { topic: topic.to_owned(), original: original.to_owned(), here: here.to_owned() }
}
