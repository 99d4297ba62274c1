//! Every respect in which this implementation differs from the original, for the record and the report.

use crate::insert_benchmark::options::{Clock, InsertBenchmark as Options, Pacing};
use crate::options::{Protocol, Verify};
use crate::settle::{Settle, SettleAfter, SettleWait};
use dbdyno_record::Deviation;
use serde_json::{Map, Value};

use crate::deviations::{binary_logs, deviation, of_state};

/// Keys that set-ups of the original vary too.
const VARIED: [&str; 5] = ["clients", "load_rows", "write_rows", "read_write_time", "rates"];
/// Keys whose values are reported in words of their own, or whose default is not the original's.
const REPORTED: [&str; 11] = [
    "create_table_options",
    "deletes",
    "pacing",
    "time_cap",
    "protocol",
    "clock",
    "settle",
    "settle_wait",
    "verify",
    "data",
    "cold",
];

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
    if !options.deletes {
        add("deletes", "on", "off: tables grow");
    }
    if !options.create_table_options.is_empty() {
        add("create_table_options", "none, unless its user appends some", &options.create_table_options);
    }
    list.extend(of_state(options.data, &options.cold));
    list.extend(of_profile(options));
    list
}

/// Keys whose default is the original's value, where the plan says another.
fn of_profile(options: &Options) -> Vec<Deviation> {
    let [here, original] = [options, &Options::default()].map(values);
    let is_profile = |key: &&String| !VARIED.contains(&key.as_str()) && !REPORTED.contains(&key.as_str());
    let all = here.iter().filter(|(key, _)| is_profile(key));
    all.filter(|(key, value)| original.get(*key) != Some(*value))
        .map(|(key, value)| {
            let original = original.get(key).map_or_else(|| "not set".to_owned(), shown);
            deviation(key, &original, &shown(value))
        })
        .collect()
}

/// Values of all keys; those of a table as `table.key`.
fn values(options: &Options) -> Map<String, Value> {
    let mut all = Map::new();
    let Ok(Value::Object(map)) = serde_json::to_value(options) else { return all };
    for (key, value) in map {
        match value {
            Value::Object(table) if !REPORTED.contains(&key.as_str()) => {
                all.extend(table.into_iter().map(|(inner, value)| (format!("{key}.{inner}"), value)));
            }
            value => {
                all.insert(key, value);
            }
        }
    }
    all
}

/// Words without the quotes of JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => text.clone(),
        value => value.to_string(),
    }
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

/// What `auto` sends depends on the product; it is reported whichever the run has.
fn of_protocol(protocol: Protocol) -> Deviation {
    deviation(
        "protocol",
        "text on MySQL and MariaDB; on PostgreSQL inserts and deletes as text, queries as EXECUTE of a prepared \
         statement in text; the original has no SQLite",
        match protocol {
            Protocol::Auto => {
                "the same, but queries to PostgreSQL as prepared statements of the protocol, whose ids are no int once they need more than 32 bits; all are prepared on SQLite"
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
            "l.x",
            "its time holds a pause of up to one report interval (1 s) between the INSERT and the indexes",
            "the indexes are built as soon as the INSERT is answered",
        ),
        deviation(
            "SLA",
            "requested rows of all clients / whole seconds to the last client's exit",
            "rate of the slowest client, over the common window or until it was done, against its own part of the target",
        ),
        deviation(
            "timed interval",
            "drawing parameters, building the text, executing, fetching",
            "from sending to answer; response time (from due to answer) is reported as well",
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
        binary_logs(true),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(options: &Options) -> String {
        let before = deviations(&Options::default());
        let more = deviations(options).into_iter().filter(|found| !before.contains(found));
        more.map(|found| format!("{}: {} | {}\n", found.topic, found.original, found.here)).collect()
    }

    #[test]
    fn values_of_the_plan_that_are_not_the_originals_are_reported() {
        let mut options = Options {
            rows_per_query: 100,
            points_per_query: 20,
            max_id_every: 7,
            customers: 5,
            sla_share: 0.9,
            data: dbdyno_plan::DataMode::Restart,
            cold: dbdyno_plan::Cold::All(true),
            ..Options::default()
        };
        options.rows_per_commit.write_2 = 50;
        insta::assert_snapshot!(reported(&options), @r"
        data: one server and one set of tables, which ages | the server is stopped and started before each step; the tables age
        cold: caches as the step before left them | each measured step begins in a fresh server with empty caches
        rows_per_commit.write_2: 5 | 50
        rows_per_query: 10 | 100
        points_per_query: 10 | 20
        max_id_every: 100 | 7
        customers: 100000 | 5
        sla_share: 0.95 | 0.9
        ");
    }

    #[test]
    fn every_number_and_switch_is_reported_or_varied_by_the_original_too() {
        let default = serde_json::to_value(Options::default()).unwrap();
        let mut checked = 0;
        for (key, value) in values(&Options::default()) {
            let other = match &value {
                Value::Bool(on) => Value::Bool(!on),
                Value::Number(number) => match number.as_u64() {
                    Some(number) => (number + 1).into(),
                    None => (number.as_f64().unwrap() + 1.0).into(),
                },
                _ => continue,
            };
            checked += 1;
            let mut changed = default.clone();
            changed[key.split('.').next().unwrap()] = other.clone();
            if let Some((table, inner)) = key.split_once('.') {
                changed[table] = default[table].clone();
                changed[table][inner] = other;
            }
            let reported = reported(&serde_json::from_value(changed).unwrap());
            assert_eq!(
                reported.starts_with(&format!("{key}: ")),
                !VARIED.contains(&key.as_str()),
                "{key}: {reported}"
            );
        }
        assert!(checked > 20, "{checked}");
    }
}
