//! Deviations of workloads from their originals. Some come from a workload's options and are rows
//! of `deviations.toml`. The others come from settings of the whole plan.

use std::collections::BTreeMap;
use std::time::Duration;

use dbdyno_model::PlanDuration;
use dbdyno_record::Deviation;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::settle::{Settle, SettleAfter, SettleWait};

/// Rows that several workloads have.
const SHARED: &str = include_str!("deviations.toml");

/// A plan's settings around a workload, from which its original may differ.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Surroundings {
    /// Rest between two cells.
    pub rest: Duration,
    /// The product of a server that dbdyno starts and reaches over a unix socket, where the originals
    /// may use TCP.
    pub on_socket: Option<String>,
}

/// An original's settings around its steps, from which a plan may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Original {
    /// The original's rest between two builds of servers, as a time and in words.
    pub rest: (Duration, &'static str),
    /// How the original reaches a server. `{}` is the name of the product.
    pub transport: &'static str,
}

/// Returns the differences from `original` that come from the settings around a workload.
pub(crate) fn of_surroundings(original: &Original, around: &Surroundings) -> Vec<Deviation> {
    let mut list = Vec::new();
    let (original_rest, rest) = original.rest;
    let is_original = around.rest == original_rest && !around.rest.is_zero();
    if !is_original {
        let here = match around.rest {
            Duration::ZERO => "none: the next cell begins at once".to_owned(),
            rest => format!("{} between cells", PlanDuration(rest)),
        };
        list.push(deviation("rest", rest, &here));
    }
    if let Some(product) = &around.on_socket {
        let here = format!("over a unix socket to a {product} that dbdyno started; with TLS over TCP");
        list.push(deviation("transport", &original.transport.replace("{}", product), &here));
    }
    list
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DeviationRow {
    /// Name of a row that several workloads have. It replaces `topic`, `original` and `here`.
    shared: String,
    pub(crate) topic: String,
    /// Whether the deviation is due to the workload's tables, and so also applies to other
    /// workloads that use them.
    pub(crate) of_tables: bool,
    original: String,
    /// The text about this workload, in which `{option}` is the value of an option.
    here: String,
    /// The row applies where each of these options has the value given here, or one of a list of
    /// values. `""` also means an option that is not set.
    when: Map<String, Value>,
    /// The row applies where none of these options has the value given here, or one of a list of
    /// values.
    unless: Map<String, Value>,
}

impl DeviationRow {
    #[cfg(test)]
    pub(crate) fn always_holds(&self) -> bool {
        self.when.is_empty() && self.unless.is_empty()
    }

    fn holds(&self, options: &Map<String, Value>) -> bool {
        let fits = |(key, wanted): (&String, &Value)| fits(options.get(key).unwrap_or(&Value::Null), wanted);
        self.when.iter().all(fits) && !self.unless.iter().any(fits)
    }

    fn deviation(&self, options: &Map<String, Value>) -> Deviation {
        let placeholder =
            self.here.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
        let here = match placeholder {
            Some((before, (key, after))) => {
                format!("{before}{}{after}", options.get(key).map_or_else(String::new, shown))
            }
            None => self.here.clone(),
        };
        deviation(&self.topic, &self.original, &here)
    }
}

fn fits(option: &Value, wanted: &Value) -> bool {
    match (option, wanted) {
        (option, Value::Array(any)) => any.iter().any(|wanted| fits(option, wanted)),
        (Value::Array(all), wanted) if !all.is_empty() => all.contains(wanted),
        (Value::Null | Value::Array(_), wanted) => wanted == "",
        (option, wanted) => option == wanted,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Number(number) => match number.as_f64() {
            Some(fraction) if number.is_f64() => fraction.to_string(),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

pub(crate) fn rows(text: &str, name: &str) -> Vec<DeviationRow> {
    let mut all: BTreeMap<String, Vec<DeviationRow>> =
        toml::from_str(text).expect("tests read every file of rows");
    all.remove(name).unwrap_or_default()
}

/// Returns the rows of a workload's `deviations.toml` that apply with `options`.
pub(crate) fn of_rows(text: &str, options: &Map<String, Value>) -> Vec<Deviation> {
    holding(&rows(text, "deviation"), options)
}

/// Returns the rows of a workload's `deviations.toml` that also apply with `options` to another
/// workload on the same tables.
pub(crate) fn of_table_rows(text: &str, options: &Map<String, Value>) -> Vec<Deviation> {
    let mut all = rows(text, "deviation");
    all.retain(|row| row.of_tables);
    holding(&all, options)
}

fn holding(all: &[DeviationRow], options: &Map<String, Value>) -> Vec<Deviation> {
    let mut list = Vec::new();
    for row in all.iter().filter(|row| row.holds(options)) {
        if row.shared.is_empty() {
            list.push(row.deviation(options));
        } else {
            list.extend(holding(&rows(SHARED, &row.shared), options));
        }
    }
    list
}

/// Adds two values to those of the options, so that rows of `deviations.toml` can depend on how the
/// server is brought to rest. `rest` says what replaces the original's pause, and is null where the
/// pause is the original's. `cleans_each` says whether cleanup follows each step that writes.
/// `shown` formats a pause.
pub(crate) fn with_rest(
    mut values: Map<String, Value>,
    settle: &Settle,
    shown: impl FnOnce(PlanDuration) -> String,
) -> Map<String, Value> {
    let rest = settle.in_place_of_a_pause().or_else(|| match settle.wait {
        SettleWait::Fixed(wait) => Some(shown(wait)),
        SettleWait::Original => None,
    });
    let cleans_each = settle.after_steps() == Some(SettleAfter::EachWrite);
    values.extend([("rest".to_owned(), json!(rest)), ("cleans_each".to_owned(), json!(cleans_each))]);
    values
}

pub(crate) fn deviation(topic: &str, original: &str, here: &str) -> Deviation {
    Deviation { topic: topic.to_owned(), original: original.to_owned(), here: here.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Workload;
    use crate::insert_benchmark::InsertBenchmark;
    use crate::microbenchmarks::Microbenchmarks;
    use dbdyno_model::{Cold, DataMode};
    use dbdyno_plan::Values;

    const ALL: &[Original] = &[
        InsertBenchmark::ORIGINAL,
        Microbenchmarks::ORIGINAL,
        crate::oltp::Oltp::ORIGINAL,
        #[cfg(feature = "scripts")]
        crate::sysbench::Sysbench::ORIGINAL,
        crate::pgbench::Pgbench::ORIGINAL,
        crate::dbt3::Dbt3::ORIGINAL,
    ];

    fn here(original: &Original, around: Surroundings, topic: &str) -> Option<String> {
        let found = of_surroundings(original, &around).into_iter().find(|found| found.topic == topic)?;
        assert!(!found.original.contains("{}"), "{found:?}");
        Some(found.here)
    }

    #[test]
    fn each_workload_reports_its_rest_unless_it_is_the_originals() {
        let rest = |original: &Original, seconds| {
            let rest = Duration::from_secs(seconds);
            here(original, Surroundings { rest, ..Surroundings::default() }, "rest")
        };
        assert_eq!(ALL.len() + usize::from(cfg!(not(feature = "scripts"))), crate::ALL.len());
        for original in ALL {
            assert_eq!(rest(original, 0).as_deref(), Some("none: the next cell begins at once"));
            assert_eq!(rest(original, 5).as_deref(), Some("5s between cells"));
        }
        let [insert_benchmark, microbenchmarks, ..] = ALL else { panic!() };
        assert_eq!((rest(insert_benchmark, 1200), rest(microbenchmarks, 600)), (None, None));
        assert!(rest(insert_benchmark, 600).is_some() && rest(microbenchmarks, 1200).is_some());
    }

    #[test]
    fn a_unix_socket_to_postgresql_is_reported_where_there_is_one() {
        for original in ALL {
            let transport = |on_socket: Option<&str>| {
                let on_socket = on_socket.map(str::to_owned);
                here(original, Surroundings { on_socket, ..Surroundings::default() }, "transport")
            };
            assert_eq!(transport(None), None);
            assert!(transport(Some("PostgreSQL")).unwrap().contains("unix socket to a PostgreSQL"));
        }
    }

    #[test]
    fn steps_that_begin_cold_or_on_other_data_are_reported() {
        let reported = |data: DataMode, cold: Cold| {
            let options = serde_json::json!({ "data": data, "cold": cold }).values();
            let all = holding(&rows(SHARED, "state"), &options);
            all.iter().map(|found| format!("{}: {}\n", found.topic, found.here)).collect::<String>()
        };
        assert_eq!(reported(DataMode::Preserve, Cold::Steps(Vec::new())), "");
        assert_eq!(reported(DataMode::Preserve, Cold::All(false)), "");
        insta::assert_snapshot!(reported(DataMode::Restart, Cold::Steps(vec!["qr100".to_owned(), "qp100".to_owned()])), @r"
        data: the server is stopped and started before each step; the tables age
        cold: some steps begin in a fresh server with empty caches: qr100, qp100
        ");
        for data in [DataMode::Reset, DataMode::Restore, DataMode::RestoreEachStep] {
            assert_eq!(reported(data, Cold::All(true)).lines().count(), 2, "{data:?}");
        }
    }

    /// The keys that workloads add to their options.
    const COMPUTED: [&str; 4] = ["rest", "cleans_each", "loads", "settles"];

    fn check<W: Workload>(text: &str) {
        let schema = schemars::schema_for!(W::Options).to_value();
        let is_known = |key: &str| COMPUTED.contains(&key) || !schema["properties"][key].is_null();
        for row in rows(text, "deviation") {
            let about = format!("{}: {row:?}", W::NAME);
            let shared = rows(SHARED, &row.shared);
            assert_eq!(row.shared.is_empty(), shared.is_empty(), "{about}");
            assert!(row.shared.is_empty() || row.topic.is_empty(), "{about}");
            for row in [row].iter().chain(&shared) {
                let placeholder = row.here.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
                let keys = row.when.keys().chain(row.unless.keys()).map(String::as_str);
                for key in keys.chain(placeholder.map(|(key, _)| key)) {
                    assert!(is_known(key), "{about}: {key}");
                }
            }
        }
    }

    #[test]
    fn rows_name_options_that_exist() {
        check::<InsertBenchmark>(include_str!("insert_benchmark/deviations.toml"));
        check::<Microbenchmarks>(include_str!("microbenchmarks/deviations.toml"));
        check::<crate::oltp::Oltp>(include_str!("oltp/deviations.toml"));
        #[cfg(feature = "scripts")]
        check::<crate::sysbench::Sysbench>(include_str!("sysbench/deviations.toml"));
        check::<crate::pgbench::Pgbench>(include_str!("pgbench/deviations.toml"));
        check::<crate::dbt3::Dbt3>(include_str!("dbt3/deviations.toml"));
    }
}
