//! The connections of one step.

mod load;
mod query;

use std::sync::{Arc, Mutex};

use dbdyno_loadgen::{ConnectionTask, Done, Failure, Notes, StatementDone, TaskSpec};
use dbdyno_record::Execution;

use crate::any_task::any_task;
use crate::dbt3::Dbt3Setup;
use crate::dbt3::rows::{self, Dbt3RowBatch};
use crate::dbt3::schema::Dbt3Table;
use crate::dbt3::steps::{self, Dbt3Step, Dbt3Operation, Dbt3StepKind};
use crate::statements::StatementsTask;
use crate::{Tasks, planned};

/// Executions of a step, and the answers that differ from the published ones, as its connections note
/// them down.
pub(crate) type Ledger = Arc<Mutex<Vec<Executed>>>;

/// One execution and how its answer differs from the published one.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Executed {
    pub(crate) execution: Execution,
    /// Rows that a refresh function must change. It is 0 for a query.
    pub(crate) due_rows: u64,
    pub(crate) differing_rows: usize,
    pub(crate) difference: Option<String>,
}

any_task! {
    Load(load::Dbt3LoadTask),
    Statements(StatementsTask),
    Query(query::QueryTask),
}

pub(crate) fn of_step(setup: &Arc<Dbt3Setup>, step: &Dbt3Step, ledger: &Ledger) -> Tasks<AnyTask> {
    match &step.kind {
        Dbt3StepKind::Load => {
            let task = |(batches, client): (Vec<Dbt3RowBatch>, u32)| {
                let spec = TaskSpec::in_turn(client, batches.len() as u64);
                let setup = Arc::clone(setup);
                planned(spec, move || AnyTask::Load(load::Dbt3LoadTask::new(&setup, batches)))
            };
            rows::assigned(setup).into_iter().zip(1..).map(task).collect()
        }
        Dbt3StepKind::Index => one_after_the_other(setup, "index", steps::index_statements(setup)),
        Dbt3StepKind::Statistics => {
            let statements = Dbt3Table::ALL.iter().filter_map(|table| steps::statistics_statement(*table, setup));
            one_after_the_other(setup, "analyse", statements.collect())
        }
        Dbt3StepKind::Query { .. } | Dbt3StepKind::Power | Dbt3StepKind::Throughput => {
            let task = |(script, client): (Vec<Dbt3Operation>, u32)| {
                let spec = TaskSpec::in_turn(client, script.len() as u64);
                let (setup, ledger) = (Arc::clone(setup), Arc::clone(ledger));
                planned(spec, move || AnyTask::Query(query::QueryTask::new(&setup, client, script, ledger)))
            };
            steps::scripts(&step.kind, &setup.options).into_iter().zip(1..).map(task).collect()
        }
    }
}

fn one_after_the_other(setup: &Arc<Dbt3Setup>, kind: &'static str, statements: Vec<String>) -> Tasks<AnyTask> {
    let spec = TaskSpec::in_turn(1, statements.len() as u64);
    let setup = Arc::clone(setup);
    let task = move || StatementsTask::new(&setup.context.database_server, kind, statements, 0);
    vec![planned(spec, move || AnyTask::Statements(task()))]
}
