//! The Insert Benchmark: tables as queues, secondary indexes under random inserts and deletes, and
//! concurrent queries.
//!
//! It follows mdcallag/mytools, bench/ibench, as of 2026-06 (schema and steps of December 2023).
//! Shapes, distributions, row counts, step order and formulas are the original's. Where this differs,
//! [`deviations`] says so in every record.

mod deviations;
mod explained;
mod history;
pub mod options;
mod rows;
mod sql;
mod steps;
mod tasks;
mod verify;

use std::sync::Arc;
use std::time::Duration;

use crate::insert_benchmark::options::{Clock, InsertBenchmarkOptions};
use crate::options::Protocol;
use dbdyno_db::{AnySession, Capabilities};
use dbdyno_loadgen::StepEnd;
use dbdyno_record::{Check, Deviation, StepSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::engine::create_tables;
use crate::insert_benchmark::history::History;
use crate::insert_benchmark::steps::{ClientPart, InsertStepKind};
use crate::insert_benchmark::tasks::{AnyTask, Client};
use crate::step::{Cell, Step, StepOptions};
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
    /// With `auto`, statements are text where the original sends text.
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
    fn knowledge(&self) -> Value {
        json!(self.history)
    }

    fn restore_state(&mut self, knowledge: &Value) -> Result<()> {
        self.history =
            History::deserialize(knowledge).map_err(|_| Error::Knowledge(knowledge.to_string()))?;
        Ok(())
    }

    fn spec(&self, index: usize) -> StepSpec {
        steps::spec(index, &self.steps[index], &self.shared)
    }

    fn explained(&self, index: usize) -> Vec<Explained> {
        explained::explained(&self.steps[index].kind, &self.shared, &self.history)
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
        deviations::deviations(options)
    }

    fn new(options: &InsertBenchmarkOptions, context: Context) -> Self {
        let prepared = Prepared::new(options.protocol, &context.database_server.capabilities);
        let steps = options.list();
        let history = History::new(options.clients);
        Self { shared: Arc::new(InsertSetup { options: options.clone(), context, prepared }), steps, history }
    }

    fn cell(&self) -> Cell<'_, InsertBenchmarkOptions> {
        let InsertSetup { options, context, .. } = &*self.shared;
        Cell { options, context, steps: &self.steps }
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
        if !self.cell().is_checked(index) {
            return Ok(Vec::new());
        }
        let checks = verify::verify(&self.shared, &self.history, session).await?;
        self.history.deletes_checked();
        Ok(checks)
    }
}

/// Returns `dateandtime` of a statement, in seconds since 1970, UTC. `rows_before` rows of its client
/// came before it.
pub(crate) fn statement_second(clock: Clock, rows_before: u64) -> i64 {
    /// 2024-01-01 00:00:00 UTC.
    const EPOCH: i64 = 1_704_067_200;
    /// Rows of one client that share a second.
    const ROWS_PER_SECOND: u64 = 10_000;
    match clock {
        Clock::Addressed => EPOCH + i64::try_from(rows_before / ROWS_PER_SECOND).unwrap_or(0),
        Clock::Wall => jiff::Timestamp::now().as_second(),
    }
}
