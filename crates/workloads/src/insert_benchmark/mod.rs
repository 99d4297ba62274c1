//! The Insert Benchmark: tables as queues, secondary indexes under random inserts and deletes,
//! concurrent queries.
//!
//! Follows mdcallag/mytools, bench/ibench, as of 2026-06 (schema and steps of December 2023).
//! Shapes, distributions, row counts, step order and formulas are the original's; where this
//! differs, [`deviations`] says so in every record.

mod check;
mod deviations;
mod estimate;
mod explained;
mod history;
mod lanes;
pub mod options;
mod rows;
mod sql;
mod steps;
mod verify;

use std::sync::Arc;
use std::time::Duration;

use crate::insert_benchmark::options::{Clock, InsertBenchmark as Options};
use crate::options::Protocol;
use crate::settle::SettleAfter;
use dbdyno_db::{AnySession, Capabilities};
use dbdyno_loadgen::StepEnd;
use dbdyno_plan::WorkloadOptions;
use dbdyno_record::{Check, Deviation, StepSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cleanup::cleanup;
use crate::engine::create_tables;
use crate::insert_benchmark::history::History;
use crate::insert_benchmark::lanes::{AnyLane, Client};
use crate::insert_benchmark::steps::{StepKind, StepPlan};
use crate::{Cards, Context, Error, Explained, Lanes, Original, Result, Steps, Work, Workload, cards};

pub struct InsertBenchmark {
    shared: Arc<Setup>,
    steps: Vec<StepPlan>,
    history: History,
}

/// What all lanes of a cell must know; the same for every step.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) options: Options,
    pub(crate) context: Context,
    pub(crate) prepared: Prepared,
}

/// Which statements are prepared; the others are text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Prepared {
    /// INSERTs and DELETEs, but not the INSERT of the index step.
    pub(crate) writes: bool,
    pub(crate) queries: bool,
}

impl Prepared {
    /// `auto` is text where the original sends text.
    fn new(protocol: Protocol, capabilities: &Capabilities) -> Self {
        Self {
            writes: protocol.prepares(!capabilities.text_writes_by_default),
            queries: protocol.prepares(!capabilities.text_queries_by_default),
        }
    }
}

impl Setup {
    /// Table of client `client` (from 1).
    pub(crate) fn table(client: u32) -> String {
        format!("pi{client}")
    }

    fn tables(&self) -> Vec<String> {
        (1..=self.options.clients).map(Self::table).collect()
    }
}

impl InsertBenchmark {
    /// The original cleans up once, before the first step that reads.
    fn settles_after(&self, index: usize) -> bool {
        let Some(next) = self.steps.get(index + 1) else { return false };
        match self.shared.options.settling().after_steps() {
            None => false,
            Some(SettleAfter::Load) => self.steps[index].rate.is_none() && next.rate.is_some(),
            Some(SettleAfter::EachWrite) => true,
        }
    }

    fn client(&self, index: usize, client: u32) -> Client {
        let step = &self.steps[index];
        Client {
            setup: Arc::clone(&self.shared),
            number: client,
            step: index,
            rows_before: self.steps[..index].iter().map(StepPlan::rows).sum(),
            rows_in_table: self.history.in_table(client),
            rows_per_commit: step.rows_per_commit,
        }
    }
}

impl Steps for InsertBenchmark {
    fn options(&self) -> &dyn WorkloadOptions {
        &self.shared.options
    }

    fn knowledge(&self) -> Value {
        json!(self.history)
    }

    fn recall(&mut self, knowledge: &Value) -> Result<()> {
        self.history =
            History::deserialize(knowledge).map_err(|_| Error::Knowledge(knowledge.to_string()))?;
        Ok(())
    }

    fn spec(&self, index: usize) -> StepSpec {
        steps::spec(index, &self.steps[index], &self.shared)
    }

    fn time_cap(&self, index: usize) -> Option<Duration> {
        let options = &self.shared.options;
        self.steps[index].rate.map(|_| options.read_write_time.0.mul_f64(options.time_cap))
    }

    fn explained(&self, index: usize) -> Vec<Explained> {
        explained::explained(&self.steps[index], &self.shared, &self.history)
    }

    fn unchecked(&self, table: &str) -> String {
        let clients = 1..=self.shared.options.clients;
        let reasons = clients.filter(|client| Setup::table(*client) == table);
        reasons.filter_map(|client| self.history.of(client).unknown()).map(str::to_owned).collect()
    }
}

impl Workload for InsertBenchmark {
    const NAME: &'static str = "insert-benchmark";
    const PURPOSE: &'static str = "ten steps: load in key order, build indexes, random writes with deletes, then range and point \
                                   queries with concurrent writes at fixed rates";
    const VERSION: u32 = 3;
    const ORIGINAL: Original = Original {
        rest: (Duration::from_secs(1200), "1200 s between builds of servers"),
        transport: "{} over TCP, 127.0.0.1",
    };

    type Options = Options;
    type Lane = AnyLane;

    fn cards() -> Vec<Cards> {
        cards::of::<Self>(&Options::default(), include_str!("words.toml"))
    }

    fn follows(_: &Options) -> &'static str {
        "Insert Benchmark (mdcallag/mytools, bench/ibench), schema and steps of December 2023"
    }

    fn deviations(options: &Options) -> Vec<Deviation> {
        deviations::deviations(options)
    }

    fn new(options: &Options, context: Context) -> Self {
        let prepared = Prepared::new(options.protocol, &context.endpoint.capabilities);
        let steps = steps::plan(options);
        let history = History::new(options.clients);
        Self { shared: Arc::new(Setup { options: options.clone(), context, prepared }), steps, history }
    }

    async fn before(&mut self, index: usize, session: &mut AnySession) -> Result<Vec<Work>> {
        let mut works = Vec::new();
        if self.steps[index].kind == StepKind::Load {
            let Setup { options, context, .. } = &*self.shared;
            let tables = self.shared.tables().into_iter().map(|table| {
                let own = &options.create_table_options;
                let statements =
                    sql::create_table(&table, &context.endpoint.capabilities, own, options.first_id);
                (table, statements)
            });
            works.push(create_tables(context, session, tables).await?);
        }
        self.shared.context.drop_binlog(session).await?;
        Ok(works)
    }

    fn lanes(&self, index: usize) -> Lanes<AnyLane> {
        (1..=self.shared.options.clients)
            .flat_map(|client| lanes::of_client(&self.client(index, client), &self.steps[index]))
            .collect()
    }

    async fn verify(&mut self, index: usize, end: &StepEnd, session: &mut AnySession) -> Result<Vec<Check>> {
        let step = &self.steps[index];
        self.history.add(index, step, end);
        let is_last = index + 1 == self.steps.len();
        if !self.shared.options.verify.holds(true, is_last) || !self.shared.context.stores_data() {
            return Ok(Vec::new());
        }
        let checks = verify::verify(&self.shared, &self.history, session).await?;
        self.history.deletes_checked();
        Ok(checks)
    }

    async fn after(&mut self, index: usize, session: &mut AnySession) -> Result<Vec<Work>> {
        self.shared.context.drop_binlog(session).await?;
        if !self.settles_after(index) {
            return Ok(Vec::new());
        }
        let Setup { options, context, .. } = &*self.shared;
        let settle = (&options.settling(), options.original_wait());
        let step = &self.steps[index].name;
        Ok(vec![cleanup(session, context, &self.shared.tables(), settle, step).await?])
    }
}

/// `dateandtime` of a statement, in seconds since 1970, UTC; `rows_before` rows of its client came
/// before it.
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
