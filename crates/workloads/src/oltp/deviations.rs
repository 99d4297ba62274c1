//! Every respect in which this implementation differs from the original, for the record and the report.

use std::time::Duration;

use crate::oltp::options::{
    Distribution, IdType, LoadMethod, Oltp as Options, OltpPace, OltpProfile, OltpTest,
};
use crate::options::{Protocol, Verify};
use crate::settle::SettleAfter;
use dbdyno_record::Deviation;

use crate::deviations::{binary_logs, deviation, of_state, time_cap};

/// Differences that hold with `options`.
pub(crate) fn deviations(options: &Options) -> Vec<Deviation> {
    let mut list = always();
    list.extend(of_tables(options));
    let is_old = options.profile == OltpProfile::Sysbench05;
    let mut add = |topic: &str, original: &str, here: &str| list.push(deviation(topic, original, here));
    let protocol = if is_old { "text" } else { "prepared statements, but inserts as text" };
    match options.protocol {
        Protocol::Auto if is_old => add("protocol", protocol, "prepared statements, but inserts as text"),
        Protocol::Text if !is_old => add("protocol", protocol, "text"),
        Protocol::Prepared => add("protocol", protocol, "prepared"),
        Protocol::Auto | Protocol::Text => {}
    }
    if options.one_table != is_old {
        let [one, each] =
            ["all statements of a transaction use one table", "each group of statements draws its table"];
        let (original, here) = if is_old { (one, each) } else { (each, one) };
        add("tables of a transaction", original, here);
    }
    if is_old && options.distribution != Distribution::SpecialWhole {
        add("distribution", "special, the whole band", &name(options.distribution));
    }
    if options.distribution == Distribution::Zipfian && options.zipfian_scrambled {
        add(
            "distribution",
            "rank 1 is id 1, rank 2 is id 2, ...",
            "a fixed permutation spreads ranks over the ids",
        );
    }
    if options.distribution == Distribution::Gaussian {
        add(
            "distribution",
            "version 1.1 takes the number of its uniform draws from an option that is gone and always gives the first id",
            "the mean of special_iterations uniform draws, as version 1.0",
        );
    }
    list.extend(of_operations(options));
    list.extend(of_state(options.data, &options.cold));
    let mut add = |topic: &str, original: &str, here: &str| list.push(deviation(topic, original, here));
    if let Some(here) = rest(options) {
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

/// How operations begin, end and fail.
fn of_operations(options: &Options) -> Vec<Deviation> {
    let mut list = Vec::new();
    let mut add = |topic: &str, original: &str, here: &str| list.push(deviation(topic, original, here));
    if options.ignore_errors.is_none() {
        add(
            "duplicate keys",
            "an INSERT of a taken id begins the operation again on PostgreSQL, and ends the run on MySQL",
            "it begins the operation again on every product",
        );
    }
    if options.protocol != Protocol::Text {
        add(
            "columns of results",
            "on PostgreSQL libpq asks for them at each execution of a prepared statement; parameters as text, results binary",
            "asked for once, at prepare; whole numbers as binary parameters, results as text",
        );
    }
    if options.events.is_some() {
        add(
            "events",
            "connections take from one number of operations, beginning after the warm-up; time \
             ends the run if it comes first",
            "each connection has an equal part of the operations, without a warm-up; time is not looked at",
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
    if options.events.is_none() {
        list.push(time_cap(options.time_cap));
    }
    list
}

/// What is done between steps, and after which; `None` where it is nothing, as in the original.
fn rest(options: &Options) -> Option<String> {
    let settle = options.settling();
    let behind = match (settle.behind()?, options.use_existing) {
        (SettleAfter::Load, true) => return None,
        (SettleAfter::Load, false) => "after the load",
        (SettleAfter::EachWrite, true) => "after each step that writes",
        (SettleAfter::EachWrite, false) => "after the load and each step that writes",
    };
    let length = match settle.in_place_of_a_pause() {
        Some(until_quiet) => format!(", then {until_quiet}"),
        None => match settle.wait_of(Duration::ZERO) {
            Duration::ZERO => String::new(),
            wait => format!(", with a pause at least {} s long in all", wait.as_secs_f64()),
        },
    };
    Some(format!(
        "{behind}: cleanup (InnoDB flushes dirty pages, vacuum, ANALYZE, a checkpoint, as far as \
         the product has them){length}"
    ))
}

/// Those that hold with all options.
pub(crate) fn always() -> Vec<Deviation> {
    vec![
        deviation(
            "random numbers",
            "xoroshiro128+ in each thread; loads and runs of several threads cannot be repeated",
            "counter-based: rows are a function of (seed, table, row), operations of (seed, step, connection, number)",
        ),
        deviation(
            "k",
            "drawn in the load as in the tests, which was not uniform by default before version 1.1",
            "uniform in the load, whatever the tests draw",
        ),
        deviation(
            "steps of ids",
            "the server's own: auto_increment_increment of MySQL and MariaDB",
            "1: connections that load or insert set auto_increment_increment and auto_increment_offset to 1 before the clock runs",
        ),
        deviation(
            "query plans",
            "not looked at",
            "EXPLAIN of each statement that reads or finds rows once, after the step and its \
             verification",
        ),
        deviation(
            "errors",
            "after deadlocks and lock waits the operation begins again with new draws, without an end; on MySQL without a rollback, so after a lock wait the next BEGIN commits the first part",
            "rolled back and begun again with the same draws; counted, and 1000 repetitions of one operation end the step",
        ),
        deviation(
            "timed interval",
            "drawing parameters and all statements of an event",
            "parameters are drawn before; from the first statement sent to the last answered",
        ),
        binary_logs(false),
    ]
}

/// How the tables come to be, or that they were there.
fn of_tables(options: &Options) -> Vec<Deviation> {
    if options.use_existing {
        let here = "made before the run by other means; no database is claimed, nothing is dropped";
        return vec![deviation("tables", "made and filled by its own command prepare", here)];
    }
    let mut list = vec![match options.load_method {
        LoadMethod::Insert => deviation(
            "load",
            "rows are put into a buffer of 512 KiB until the next does not fit",
            "a fixed number of rows a statement; tables exist before the clock runs; the index is a step of its own, while published load rates include tables and index",
        ),
        LoadMethod::Stream => deviation(
            "load",
            "multi-row INSERTs of up to 512 KiB",
            "4 MiB of rows at a time in the database's own way for bulk, on MySQL and MariaDB with ids of the client; the index is a step of its own",
        ),
    }];
    if options.load_method == LoadMethod::Insert && options.protocol != Protocol::Text {
        list.push(deviation(
            "protocol of the load",
            "INSERTs as text",
            "prepared, with rows as parameters; only the last, shorter INSERT of a table is text",
        ));
    }
    if options.load_method == LoadMethod::Insert {
        list.push(deviation(
            "character set of the load",
            "that of its client library (utf8mb4 in Debian's build); the server converts each text for tables of another",
            "on MySQL and MariaDB that of the table: no conversion, the same rows",
        ));
    }
    if options.load_connections > 1 {
        list.push(deviation(
            "load connections",
            "each table is loaded by one connection, and the server gives the ids",
            "each connection loads an equal part of all rows (PostgreSQL, MyISAM, Aria: whole tables; SQLite: one connection loads all); where connections share a table, the client gives the ids",
        ));
    }
    if options.index_before_load {
        list.push(deviation("index", "built after the load", "there before the load"));
    }
    if options.id == IdType::Bigint {
        list.push(deviation("id", "id and k are 32-bit numbers", "id and k are 64-bit numbers"));
    }
    if options.first_id != 1 {
        let here = format!("ids and k begin with {}", options.first_id);
        list.push(deviation("first_id", "ids and k begin with 1", &here));
    }
    list
}

/// The distribution as plans name it.
fn name(distribution: Distribution) -> String {
    let value = serde_json::to_value(distribution);
    value.ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
