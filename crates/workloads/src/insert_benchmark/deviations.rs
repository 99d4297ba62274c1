//! Every respect in which this implementation differs from the original, for the record and the report.

use dbdyno_model::PlanDuration;
use dbdyno_plan::Values;
use dbdyno_record::Deviation;
use serde_json::{Map, Value};

use crate::deviations::{deviation, of_rows, with_rest};
use crate::insert_benchmark::options::InsertBenchmarkOptions;
use crate::step::StepOptions;

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

pub(crate) fn deviations(options: &InsertBenchmarkOptions) -> Vec<Deviation> {
    let seconds = |wait: PlanDuration| format!("{} s", wait.0.as_secs_f64());
    let values = with_rest(options.values(), &options.settling(), seconds);
    let mut list = of_rows(include_str!("deviations.toml"), &values);
    list.extend(of_profile(options));
    list
}

/// Returns the keys whose default is the original's value, where the plan has another value.
fn of_profile(options: &InsertBenchmarkOptions) -> Vec<Deviation> {
    let [here, original] = [options, &InsertBenchmarkOptions::default()].map(values);
    let is_profile = |key: &&String| !VARIED.contains(&key.as_str()) && !REPORTED.contains(&key.as_str());
    let all = here.iter().filter(|(key, _)| is_profile(key));
    let others = all.filter(|(key, value)| original.get(*key) != Some(*value));
    let of = |(key, value): (&String, &Value)| {
        let original = original.get(key).map_or_else(|| "not set".to_owned(), shown);
        deviation(key, &original, &shown(value))
    };
    others.map(of).collect()
}

/// Returns the values of all keys. Those of a table are named `table.key`.
fn values(options: &InsertBenchmarkOptions) -> Map<String, Value> {
    let mut all = Map::new();
    for (key, value) in options.values() {
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

/// Formats a value, with words without the quotes of JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => text.clone(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(options: &InsertBenchmarkOptions) -> String {
        let before = deviations(&InsertBenchmarkOptions::default());
        let more = deviations(options).into_iter().filter(|found| !before.contains(found));
        more.map(|found| format!("{}: {} | {}\n", found.topic, found.original, found.here)).collect()
    }

    #[test]
    fn values_of_the_plan_that_are_not_the_originals_are_reported() {
        let mut options = InsertBenchmarkOptions {
            rows_per_query: 100,
            points_per_query: 20,
            max_id_every: 7,
            customers: 5,
            sla_share: 0.9,
            data: dbdyno_model::DataMode::Restart,
            cold: dbdyno_model::Cold::All(true),
            ..InsertBenchmarkOptions::default()
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
        let default = serde_json::to_value(InsertBenchmarkOptions::default()).unwrap();
        let mut checked = 0;
        for (key, value) in values(&InsertBenchmarkOptions::default()) {
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
