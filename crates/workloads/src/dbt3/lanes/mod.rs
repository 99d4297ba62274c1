//! Connections of one step.

mod load;
mod query;

use std::sync::{Arc, Mutex};

use dbdyno_loadgen::{Done, Failure, Lane, LaneSpec, Notes};
use dbdyno_record::Execution;

use crate::dbt3::Setup;
use crate::dbt3::rows;
use crate::dbt3::schema::Table;
use crate::dbt3::steps::{self, StepKind, StepPlan};
use crate::statements::StatementsLane;

/// Executions of a step and the answers that differ from the published ones, as its connections note them down.
pub(crate) type Ledger = Arc<Mutex<Vec<Executed>>>;

/// One execution and how its answer differs from the published one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Executed {
    pub(crate) execution: Execution,
    /// Rows that a refresh function must change; 0 of a query.
    pub(crate) due_rows: u64,
    pub(crate) differing_rows: usize,
    pub(crate) difference: Option<String>,
}

/// Builds a lane on the thread that will run it.
pub type LaneFactory = Box<dyn FnOnce() -> AnyLane + Send>;

/// A lane of any kind.
#[derive(Debug)]
pub enum AnyLane {
    Load(load::LoadLane),
    Statements(StatementsLane),
    Query(query::QueryLane),
}

/// All lanes of `step`.
pub(crate) fn of_step(setup: &Arc<Setup>, step: &StepPlan, ledger: &Ledger) -> Vec<(LaneSpec, LaneFactory)> {
    match &step.kind {
        StepKind::Load => rows::assigned(setup)
            .into_iter()
            .zip(1..)
            .map(|(portions, client)| {
                let spec = LaneSpec::in_turn(client, portions.len() as u64);
                let setup = Arc::clone(setup);
                let factory: LaneFactory =
                    Box::new(move || AnyLane::Load(load::LoadLane::new(&setup, portions)));
                (spec, factory)
            })
            .collect(),
        StepKind::Index => {
            let statements =
                steps::index_statements(setup).into_iter().flat_map(|(_, statements)| statements);
            one_after_the_other(
                setup,
                "index",
                statements.chain(steps::foreign_key_statements(setup)).collect(),
            )
        }
        StepKind::Statistics => {
            let statements = Table::ALL.map(|table| steps::statistics_statement(table, setup));
            one_after_the_other(setup, "analyse", statements.to_vec())
        }
        StepKind::Query { .. } | StepKind::Power | StepKind::Throughput => {
            let scripts = steps::scripts(&step.kind, &setup.options);
            scripts
                .into_iter()
                .zip(1..)
                .map(|(script, client)| {
                    let spec = LaneSpec::in_turn(client, script.len() as u64);
                    let (setup, ledger) = (Arc::clone(setup), Arc::clone(ledger));
                    let factory: LaneFactory = Box::new(move || {
                        AnyLane::Query(query::QueryLane::new(&setup, client, script, ledger))
                    });
                    (spec, factory)
                })
                .collect()
        }
    }
}

fn one_after_the_other(
    setup: &Arc<Setup>,
    kind: &'static str,
    statements: Vec<String>,
) -> Vec<(LaneSpec, LaneFactory)> {
    let spec = LaneSpec::in_turn(1, statements.len() as u64);
    let setup = Arc::clone(setup);
    let lane = move || StatementsLane::new(&setup.context.endpoint, kind, statements, 0);
    let factory: LaneFactory = Box::new(move || AnyLane::Statements(lane()));
    vec![(spec, factory)]
}

/// Hands a call to the lane inside.
macro_rules! each {
    ($any:expr, $lane:ident => $call:expr) => {
        match $any {
            AnyLane::Load($lane) => $call,
            AnyLane::Statements($lane) => $call,
            AnyLane::Query($lane) => $call,
        }
    };
}

impl Lane for AnyLane {
    async fn open(&mut self) -> Result<(), Failure> {
        each!(self, lane => lane.open().await)
    }

    async fn prepare(&mut self, number: u64, _notes: &mut Notes) -> Result<(), Failure> {
        match self {
            Self::Load(lane) => lane.prepare(number).await,
            Self::Statements(_) => Ok(()),
            Self::Query(lane) => {
                lane.prepare(number);
                Ok(())
            }
        }
    }

    async fn perform(&mut self, number: u64) -> Result<Done, Failure> {
        each!(self, lane => lane.perform(number).await)
    }

    async fn close(self) {
        each!(self, lane => lane.close().await);
    }
}
