//! DBT3 runs 22 queries on eight tables: each query alone, all one after the other, or in several
//! streams at once.
//!
//! It is derived from TPC-H. Its figures are not comparable with published TPC-H results, because
//! it runs only the parts of TPC-H that DBT3 runs, without TPC-H's rules of execution and audit.
//! Rows come from the crate `tpchgen`, which makes the same bytes as the original's generator.
//! `deviations.toml` lists differences from DBT3, and every record has them.

pub mod options;
mod queries;
mod rows;
mod schema;
mod steps;
pub(crate) mod tasks;
mod verify;

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use dbdyno_db::{AnySession, IndexHint, Session};
use dbdyno_loadgen::StepEnd;
use dbdyno_plan::Values;
use dbdyno_record::{Check, Deviation, Execution, StepSpec};

use crate::dbt3::options::{Dbt3Options, Dbt3Part, Parameters};
use crate::dbt3::queries::{Dialect, Hint};
use crate::dbt3::schema::Dbt3Table;
use crate::dbt3::steps::{Dbt3Step, Dbt3StepKind};
use crate::dbt3::tasks::{AnyTask, Ledger};
use crate::deviations::of_rows;
use crate::options::Verify;
use crate::step::{StepOptions, WorkloadParts};
use crate::{
    Context, Error, Explained, Original, Result, Steps, Tasks, Work, Workload, WorkloadSummary, summaries,
};

pub struct Dbt3 {
    shared: Arc<Dbt3Setup>,
    steps: Vec<Dbt3Step>,
    /// The executions of the step that ran last.
    ledger: Ledger,
}

/// Data that all tasks of a cell need. It is the same for every step.
#[derive(Debug)]
pub(crate) struct Dbt3Setup {
    pub(crate) options: Dbt3Options,
    pub(crate) context: Context,
}

impl Dbt3Setup {
    fn dialect(&self) -> Dialect {
        Dialect::new(&self.context.database_server.capabilities, self.options.q15)
    }

    pub(crate) fn params(&self, number: u8, stream: u32) -> Vec<String> {
        let scale_factor = self.options.scale_factor;
        match self.options.parameters {
            Parameters::Validation => queries::validation(number, scale_factor),
            Parameters::Seed => queries::drawn(number, scale_factor, self.context.seed, stream),
        }
    }

    /// Returns whether answers are published for these rows and parameters. Refresh functions
    /// change the rows, so the queries must run before them, or each step must begin with the
    /// loaded rows.
    fn has_published_answers(&self) -> bool {
        let options = &self.options;
        let is_fresh = options.parts.first() == Some(&Dbt3Part::Queries) || options.data.restores_each_step();
        options.scale_factor == 1.0
            && options.parameters == Parameters::Validation
            && options.verify != Verify::Off
            && is_fresh
            && self.context.stores_data()
    }
}

impl Dbt3 {
    fn kind(&self, index: usize) -> &Dbt3StepKind {
        &self.steps[index].kind
    }
}

impl Steps for Dbt3 {
    fn spec(&self, index: usize) -> StepSpec {
        steps::spec(&self.steps[index], &self.shared)
    }

    fn explained(&self, index: usize) -> Vec<Explained> {
        let explained = |number: u8, hint: &Hint, is_executed: bool| {
            let params = self.shared.params(number, 0);
            let sql = self.shared.dialect().explained(number, &params, hint);
            Explained { statement: format!("q{number}"), sql, is_executed }
        };
        match self.kind(index) {
            Dbt3StepKind::Query { number, hint } => {
                let is_counted =
                    self.shared.options.analyze && self.executions().iter().all(|one| !one.cut_off);
                let all = [false].into_iter().chain(is_counted.then_some(true));
                all.map(|is_executed| explained(*number, hint, is_executed)).collect()
            }
            Dbt3StepKind::Power => {
                (1..=queries::COUNT).map(|number| explained(number, &Hint::None, false)).collect()
            }
            Dbt3StepKind::Load
            | Dbt3StepKind::Index
            | Dbt3StepKind::Statistics
            | Dbt3StepKind::Throughput => Vec::new(),
        }
    }

    fn executions(&self) -> Vec<Execution> {
        let ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        ledger.iter().map(|executed| executed.execution.clone()).collect()
    }
}

impl Workload for Dbt3 {
    const NAME: &'static str = "dbt3";
    const PURPOSE: &'static str = "22 analytical queries on eight tables at any scale factor, one by one, as a power test or in streams; \
                                   derived from TPC-H, not comparable with published TPC-H results";
    const WORDS: &'static str = include_str!("words.toml");
    const VERSION: u32 = 1;
    const ORIGINAL: Original = Original {
        rest: (Duration::ZERO, "published DBT3 reports restart the server before each execution"),
        transport: "{} by psql, over a unix socket by default",
    };

    type Options = Dbt3Options;
    type ConnectionTask = AnyTask;

    fn summaries() -> Vec<WorkloadSummary> {
        let options = Dbt3Options {
            parts: vec![Dbt3Part::Queries, Dbt3Part::Power, Dbt3Part::Throughput],
            ..Dbt3Options::default()
        };
        summaries::of::<Self>(&options)
    }

    fn follows(_options: &Dbt3Options) -> &'static str {
        "DBT3 (derived from TPC-H, not comparable with published TPC-H results)"
    }

    fn deviations(options: &Dbt3Options) -> Vec<Deviation> {
        of_rows(include_str!("deviations.toml"), &options.values())
    }

    fn new(options: &Dbt3Options, context: Context) -> Self {
        let shared = Arc::new(Dbt3Setup { options: options.clone(), context });
        Self { shared, steps: options.list(), ledger: Ledger::default() }
    }

    fn parts(&self) -> WorkloadParts<'_, Dbt3Options> {
        let Dbt3Setup { options, context } = &*self.shared;
        WorkloadParts { options, context, steps: &self.steps }
    }

    fn tables(&self) -> Option<Vec<String>> {
        Some(Dbt3Table::ALL.iter().map(|table| table.name().to_owned()).collect())
    }

    async fn before_step(&mut self, index: usize, session: &mut AnySession) -> Result<Vec<Work>> {
        self.ledger = Ledger::default();
        let capabilities = &self.shared.context.database_server.capabilities;
        match self.kind(index) {
            Dbt3StepKind::Load => {
                if !self.shared.options.indexes.is_empty() && capabilities.index_hint == IndexHint::None {
                    return Err(Error::NoIndexHints);
                }
                schema::make(&self.shared, session).await
            }
            // The step's own connection sends the same statement, so the server explains the plan
            // that the step uses.
            Dbt3StepKind::Query { hint: Hint::Order(_), .. } if !capabilities.ordered_join.1.is_empty() => {
                let set = session.query(capabilities.ordered_join.1.as_bytes()).await;
                set.map_err(Error::during("setting the join order to that of the text"))?;
                Ok(Vec::new())
            }
            _ => Ok(Vec::new()),
        }
    }

    fn tasks(&self, index: usize) -> Tasks<AnyTask> {
        tasks::of_step(&self.shared, &self.steps[index], &self.ledger)
    }

    async fn check(&mut self, index: usize, _end: &StepEnd, session: &mut AnySession) -> Result<Vec<Check>> {
        let scripts = steps::scripts(self.kind(index), &self.shared.options);
        let mut checks = {
            let ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
            // The time of a step is no result where a query has no answer, so no option leaves this
            // check out.
            let refused = verify::refused(&self.steps[index].name, &scripts, &ledger);
            let mut checks = Vec::from_iter(refused);
            if !self.shared.context.stores_data() || self.shared.options.verify == Verify::Off {
                return Ok(checks);
            }
            checks.extend(verify::executions(&ledger, self.shared.has_published_answers()));
            checks
        };
        if self.parts().is_checked(index) {
            checks.extend(verify::row_counts(&self.shared, session).await?);
        }
        Ok(checks)
    }
}
