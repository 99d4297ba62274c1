//! The Insert Benchmark uses tables as queues. It has secondary indexes under random inserts and
//! deletes, and concurrent queries.
//!
//! It follows mdcallag/mytools, bench/ibench, as of 2026-06 (schema and steps of December 2023).
//! Shapes, distributions, row counts, step order and formulas are the original's. Where this
//! differs, [`deviations`] says so in every record.

mod history;
pub mod options;
mod rows;
mod sql;
mod steps;
mod tasks;
mod verify;

use std::sync::Arc;
use std::time::Duration;

use dbdyno_db::{AnySession, Capabilities};
use dbdyno_loadgen::StepEnd;
use dbdyno_model::PlanDuration;
use dbdyno_plan::Values;
use dbdyno_record::{Check, Deviation, StepSpec};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::deviations::{deviation, of_rows, with_rest};
use crate::engine::create_tables;
use crate::insert_benchmark::history::History;
use crate::insert_benchmark::options::{Clock, InsertBenchmarkOptions};
use crate::insert_benchmark::steps::{ClientPart, InsertStepKind};
use crate::insert_benchmark::tasks::{AnyTask, Client};
use crate::options::Protocol;
use crate::step::{Step, StepOptions, WorkloadParts};
use crate::{Context, Error, Explained, Original, Result, Steps, Tasks, Work, Workload};

pub struct InsertBenchmark {
    shared: Arc<InsertSetup>,
    steps: Vec<Step<ClientPart>>,
    history: History,
}

/// What all tasks of a cell must know. It is the same for every step.
#[derive(Debug)]
pub(crate) struct InsertSetup {
    pub(crate) options: InsertBenchmarkOptions,
    pub(crate) context: Context,
    pub(crate) prepared: Prepared,
}

/// Which statements are prepared. The others are text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Prepared {
    /// INSERTs and DELETEs, but not the INSERT of the index step.
    pub(crate) writes: bool,
    pub(crate) queries: bool,
}

impl Prepared {
    /// Returns which statements are prepared. With `auto`, statements are text where the original
    /// sends text.
    fn new(protocol: Protocol, capabilities: &Capabilities) -> Self {
        Self {
            writes: protocol.prepares(!capabilities.text_writes_by_default),
            queries: protocol.prepares(!capabilities.text_queries_by_default),
        }
    }
}

impl InsertSetup {
    /// Returns the table of client `client` (from 1).
    pub(crate) fn table(client: u32) -> String {
        format!("pi{client}")
    }

    fn tables(&self) -> Vec<String> {
        (1..=self.options.clients).map(Self::table).collect()
    }
}

impl InsertBenchmark {
    fn client(&self, index: usize, client: u32) -> Client {
        Client {
            setup: Arc::clone(&self.shared),
            number: client,
            step: index,
            rows_before: self.steps[..index].iter().map(|step| step.kind.rows()).sum(),
            rows_in_table: self.history.in_table(client),
            rows_per_commit: self.steps[index].kind.rows_per_commit,
        }
    }
}

impl Steps for InsertBenchmark {
    fn saved_state(&self) -> Value {
        json!(self.history)
    }

    fn restore_state(&mut self, saved_state: &Value) -> Result<()> {
        self.history =
            History::deserialize(saved_state).map_err(|_| Error::SavedState(saved_state.to_string()))?;
        Ok(())
    }

    fn spec(&self, index: usize) -> StepSpec {
        steps::spec(index, &self.steps[index], &self.shared)
    }

    fn explained(&self, index: usize) -> Vec<Explained> {
        sql::explained(&self.steps[index].kind, &self.shared, &self.history)
    }

    fn unchecked(&self, table: &str) -> String {
        let clients = 1..=self.shared.options.clients;
        let reasons = clients.filter(|client| InsertSetup::table(*client) == table);
        reasons.filter_map(|client| self.history.of(client).unknown()).map(str::to_owned).collect()
    }
}

impl Workload for InsertBenchmark {
    const NAME: &'static str = "insert-benchmark";
    const PURPOSE: &'static str = "ten steps: load in key order, build indexes, random writes with deletes, then range and point \
                                   queries with concurrent writes at fixed rates";
    const WORDS: &'static str = include_str!("words.toml");
    const VERSION: u32 = 3;
    const ORIGINAL: Original = Original {
        rest: (Duration::from_secs(1200), "1200 s between builds of servers"),
        transport: "{} over TCP, 127.0.0.1",
    };

    type Options = InsertBenchmarkOptions;
    type ConnectionTask = AnyTask;

    fn follows(_: &InsertBenchmarkOptions) -> &'static str {
        "Insert Benchmark (mdcallag/mytools, bench/ibench), schema and steps of December 2023"
    }

    fn deviations(options: &InsertBenchmarkOptions) -> Vec<Deviation> {
        deviations(options)
    }

    fn new(options: &InsertBenchmarkOptions, context: Context) -> Self {
        let prepared = Prepared::new(options.protocol, &context.database_server.capabilities);
        let steps = options.list();
        let history = History::new(options.clients);
        Self { shared: Arc::new(InsertSetup { options: options.clone(), context, prepared }), steps, history }
    }

    fn parts(&self) -> WorkloadParts<'_, InsertBenchmarkOptions> {
        let InsertSetup { options, context, .. } = &*self.shared;
        WorkloadParts { options, context, steps: &self.steps }
    }

    fn tables(&self) -> Option<Vec<String>> {
        Some(self.shared.tables())
    }

    async fn before_step(&mut self, index: usize, session: &mut AnySession) -> Result<Vec<Work>> {
        if self.steps[index].kind.kind != InsertStepKind::Load {
            return Ok(Vec::new());
        }
        let InsertSetup { options, context, .. } = &*self.shared;
        let tables = self.shared.tables().into_iter().map(|table| {
            let own = &options.create_table_options;
            let statements =
                sql::create_table(&table, &context.database_server.capabilities, own, options.first_id);
            (table, statements)
        });
        Ok(vec![create_tables(context, session, tables).await?])
    }

    fn tasks(&self, index: usize) -> Tasks<AnyTask> {
        (1..=self.shared.options.clients)
            .flat_map(|client| tasks::of_client(&self.client(index, client), &self.steps[index].kind))
            .collect()
    }

    async fn check(&mut self, index: usize, end: &StepEnd, session: &mut AnySession) -> Result<Vec<Check>> {
        self.history.add(index, &self.steps[index].kind, end);
        if !self.parts().is_checked(index) {
            return Ok(Vec::new());
        }
        let checks = verify::verify(&self.shared, &self.history, session).await?;
        self.history.deletes_checked();
        Ok(checks)
    }
}

/// Returns the value of `dateandtime` in a statement's rows, in seconds since 1970, UTC.
/// `rows_before` is the number of rows that the client inserted before it.
fn statement_second(clock: Clock, rows_before: u64) -> i64 {
    /// 2024-01-01 00:00:00 UTC.
    const EPOCH: i64 = 1_704_067_200;
    /// Rows of one client that share a second.
    const ROWS_PER_SECOND: u64 = 10_000;
    match clock {
        Clock::Addressed => EPOCH + i64::try_from(rows_before / ROWS_PER_SECOND).unwrap_or(0),
        Clock::Wall => jiff::Timestamp::now().as_second(),
    }
}

/// Keys that set-ups of the original vary too, so none of their values is a deviation.
const VARIED: [&str; 5] = ["clients", "load_rows", "write_rows", "read_write_time", "rates"];
/// Keys that a row of `deviations.toml` reports, or whose default is not the original's.
const REPORTED: [&str; 11] = [
    "create_table_options",
    "deletes",
    "arrivals",
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
    list.extend(changed_defaults(options));
    list
}

/// Returns a deviation for each key that has another value in the plan than by default, where the
/// default is the original's value.
fn changed_defaults(options: &InsertBenchmarkOptions) -> Vec<Deviation> {
    let [here, original] = [options, &InsertBenchmarkOptions::default()].map(values);
    let is_profile = |key: &&String| !VARIED.contains(&key.as_str()) && !REPORTED.contains(&key.as_str());
    let all = here.iter().filter(|(key, _)| is_profile(key));
    let others = all.filter(|(key, value)| original.get(*key) != Some(*value));
    let of = |(key, value): (&String, &Value)| {
        let original = original.get(key).map_or_else(|| "not set".to_owned(), formatted);
        deviation(key, &original, &formatted(value))
    };
    others.map(of).collect()
}

/// Returns the values of all keys. A key within a table is named `table.key`.
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

/// Formats a value. Words have no quotes, unlike in JSON.
fn formatted(value: &Value) -> String {
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
