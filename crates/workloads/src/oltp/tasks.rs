//! The connections of one step.

mod load;
mod test;

use std::sync::Arc;

use dbdyno_loadgen::{Arrivals, ConnectionTask, Done, Failure, Notes, StatementDone, TaskSpec};

use crate::any_task::any_task;
use crate::oltp::list::{OltpStep, OltpStepKind};
use crate::oltp::load::LoadPlan;
use crate::oltp::mix::places;
use crate::oltp::{OltpSetup, sql, steps};
use crate::statements::StatementsTask;
use crate::{Tasks, planned};

pub(crate) use test::{TestScript, TestTask};

any_task! {
    Load(load::OltpLoadTask),
    Index(StatementsTask),
    Test(test::TestTask),
}

/// Returns all tasks of `step`. `first_new_id` is the first id for rows that the client numbers itself.
pub(crate) fn of_step(setup: &Arc<OltpSetup>, step: &OltpStep, first_new_id: i64) -> Tasks<AnyTask> {
    match step.kind {
        OltpStepKind::Load => loaders(setup),
        OltpStepKind::Index => indexers(setup),
        OltpStepKind::Test { test, connections, rate } => {
            let per_client = connections / crate::specs::clients(connections, rate);
            let script = TestScript {
                kind: steps::labels(test).0,
                places: places(test, &setup.options, setup.client_ids()),
                prepared: setup.options.prepares(test),
                stream: crate::specs::stream(&step.name, setup.context.draws),
                connections,
                is_shared: rate.is_some(),
                table_each: false,
                found_rows: Arc::default(),
            };
            let arrivals =
                steps::arrivals(&step.name, (connections, rate), &setup.options, setup.context.draws);
            let task = |(connection, arrivals): (u32, Arrivals)| {
                let limit = steps::limit(&setup.options, connection, connections);
                let spec = TaskSpec::new(1 + connection / per_client, arrivals, limit);
                let (setup, script) = (Arc::clone(setup), script.clone());
                let task = move || test::TestTask::new(&setup, script, connection, first_new_id);
                planned(spec, move || AnyTask::Test(task()))
            };
            (0..connections).zip(arrivals).map(task).collect()
        }
    }
}

/// Returns the connections that load. Each has its part of all tables.
fn loaders(setup: &Arc<OltpSetup>) -> Tasks<AnyTask> {
    let plan = LoadPlan::new(setup);
    let task = |connection: u32| {
        let statements = plan.statements_of(connection);
        let spec = TaskSpec::in_turn(1 + connection, statements.end - statements.start);
        let (setup, plan) = (Arc::clone(setup), plan.clone());
        planned(spec, move || AnyTask::Load(load::OltpLoadTask::new(&setup, plan, statements)))
    };
    (0..plan.connections).map(task).collect()
}

/// Returns the connections that build indexes. Table t goes to connection (t − 1) mod their number.
fn indexers(setup: &Arc<OltpSetup>) -> Tasks<AnyTask> {
    let count = LoadPlan::new(setup).index_connections();
    let task = |connection: u32| {
        let tables = (1 + connection..=setup.options.tables).step_by(count as usize);
        let statements: Vec<String> = tables.map(sql::create_index).collect();
        let spec = TaskSpec::in_turn(1 + connection, statements.len() as u64);
        let setup = Arc::clone(setup);
        planned(spec, move || {
            let rows = setup.options.table_size;
            AnyTask::Index(StatementsTask::new(&setup.context.database_server, "index", statements, rows))
        })
    };
    (0..count).map(task).collect()
}
