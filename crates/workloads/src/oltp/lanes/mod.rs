//! Connections of one step.

mod load;
mod test;

use std::sync::Arc;

use dbdyno_loadgen::{Done, Failure, Lane, LaneSpec, Notes, Pace, StatementDone};

use crate::any_lane::any_lane;
use crate::oltp::list::{OltpStep, StepKind};
use crate::oltp::load::LoadPlan;
use crate::oltp::mix::places;
use crate::oltp::{Setup, sql, steps};
use crate::statements::StatementsLane;
use crate::{Lanes, planned};

pub(crate) use test::{Script, TestLane};

any_lane! {
    Load(load::LoadLane),
    Index(StatementsLane),
    Test(test::TestLane),
}

/// All lanes of `step`. `first_new_id` is the first id that rows of the client's own numbering
/// take.
pub(crate) fn of_step(setup: &Arc<Setup>, step: &OltpStep, first_new_id: i64) -> Lanes<AnyLane> {
    match step.kind {
        StepKind::Load => loaders(setup),
        StepKind::Index => indexers(setup),
        StepKind::Test { test, connections, rate } => {
            let per_client = connections / crate::specs::clients(connections, rate);
            let script = Script {
                kind: steps::labels(test).0,
                places: places(test, &setup.options, setup.client_ids()),
                prepared: setup.options.prepares(test),
                stream: crate::specs::stream(&step.name, setup.context.draws),
                connections,
                is_shared: rate.is_some(),
                table_each: false,
                found_rows: Arc::default(),
            };
            let paces = steps::paces(&step.name, (connections, rate), &setup.options, setup.context.draws);
            let lane = |(connection, pace): (u32, Pace)| {
                let limit = steps::limit(&setup.options, connection, connections);
                let spec = LaneSpec::new(1 + connection / per_client, pace, limit);
                let (setup, script) = (Arc::clone(setup), script.clone());
                let lane = move || test::TestLane::new(&setup, script, connection, first_new_id);
                planned(spec, move || AnyLane::Test(lane()))
            };
            (0..connections).zip(paces).map(lane).collect()
        }
    }
}

/// Connections that load, each its part of all tables.
fn loaders(setup: &Arc<Setup>) -> Lanes<AnyLane> {
    let plan = LoadPlan::new(setup);
    let lane = |connection: u32| {
        let statements = plan.statements_of(connection);
        let spec = LaneSpec::in_turn(1 + connection, statements.end - statements.start);
        let (setup, plan) = (Arc::clone(setup), plan.clone());
        planned(spec, move || AnyLane::Load(load::LoadLane::new(&setup, plan, statements)))
    };
    (0..plan.connections).map(lane).collect()
}

/// Connections that build indexes; table t goes to connection (t − 1) mod their number.
fn indexers(setup: &Arc<Setup>) -> Lanes<AnyLane> {
    let count = LoadPlan::new(setup).index_connections();
    let lane = |connection: u32| {
        let tables = (1 + connection..=setup.options.tables).step_by(count as usize);
        let statements: Vec<String> = tables.map(sql::create_index).collect();
        let spec = LaneSpec::in_turn(1 + connection, statements.len() as u64);
        let setup = Arc::clone(setup);
        planned(spec, move || {
            let rows = setup.options.table_size;
            AnyLane::Index(StatementsLane::new(&setup.context.endpoint, "index", statements, rows))
        })
    };
    (0..count).map(lane).collect()
}
