//! Connections of one step.

mod load;
mod load_rows;
mod row_params;
mod test;

use std::sync::Arc;

use dbdyno_drivers::RowStream;
use dbdyno_loadgen::{Done, Failure, Lane, LaneSpec, Notes, StatementDone};

use crate::oltp::load::{LoadForm, LoadPlan};
use crate::oltp::mix::places;
use crate::oltp::steps::{StepKind, StepPlan};
use crate::oltp::{Setup, sql, steps};
use crate::statements::StatementsLane;

pub(crate) use test::{Script, TestLane};

/// Builds a lane on the thread that will run it.
pub type LaneFactory = Box<dyn FnOnce() -> AnyLane + Send>;

/// A lane of any kind.
#[derive(Debug)]
pub enum AnyLane {
    Load(load::LoadLane),
    Rows(load_rows::RowsLane),
    Index(StatementsLane),
    Test(test::TestLane),
}

/// All lanes of `step`. `first_new_id` is the first id that rows of the client's own numbering take.
pub(crate) fn of_step(
    setup: &Arc<Setup>,
    step: &StepPlan,
    first_new_id: i64,
) -> Vec<(LaneSpec, LaneFactory)> {
    match step.kind {
        StepKind::Load => loaders(setup),
        StepKind::Index => indexers(setup),
        StepKind::Test { connections, rate, .. } => {
            let per_client = connections / steps::clients(connections, rate);
            let script = script(step, setup);
            (0..connections)
                .zip(steps::paces(step, setup))
                .map(|(connection, pace)| {
                    let limit = steps::limit(setup, connection, connections);
                    let spec = LaneSpec::new(1 + connection / per_client, pace, limit);
                    let (setup, script) = (Arc::clone(setup), script.clone());
                    let factory: LaneFactory = Box::new(move || {
                        AnyLane::Test(test::TestLane::new(&setup, script, connection, first_new_id))
                    });
                    (spec, factory)
                })
                .collect()
        }
    }
}

/// Connections that load, each its part of all tables.
fn loaders(setup: &Arc<Setup>) -> Vec<(LaneSpec, LaneFactory)> {
    let plan = LoadPlan::new(setup);
    (0..plan.connections())
        .map(|connection| {
            let statements = plan.statements_of(connection);
            let spec = LaneSpec::in_turn(1 + connection, statements.end - statements.start);
            let (setup, plan) = (Arc::clone(setup), plan.clone());
            let factory: LaneFactory = Box::new(move || {
                if plan.form == LoadForm::Stream(RowStream::PreparedRows) {
                    AnyLane::Rows(load_rows::RowsLane::new(&setup, plan, statements))
                } else {
                    AnyLane::Load(load::LoadLane::new(&setup, plan, statements))
                }
            });
            (spec, factory)
        })
        .collect()
}

/// Connections that build indexes; table t goes to connection (t − 1) mod their number.
fn indexers(setup: &Arc<Setup>) -> Vec<(LaneSpec, LaneFactory)> {
    let count = LoadPlan::new(setup).index_connections();
    (0..count)
        .map(|connection| {
            let tables = (1 + connection..=setup.options.tables).step_by(count as usize);
            let statements: Vec<String> = tables.map(sql::create_index).collect();
            let spec = LaneSpec::in_turn(1 + connection, statements.len() as u64);
            let setup = Arc::clone(setup);
            let lane = move || {
                let rows = setup.options.table_size;
                StatementsLane::new(&setup.context.endpoint, "index", statements, rows)
            };
            let factory: LaneFactory = Box::new(move || AnyLane::Index(lane()));
            (spec, factory)
        })
        .collect()
}

/// Hands a call to the lane inside.
macro_rules! each {
    ($any:expr, $lane:ident => $call:expr) => {
        match $any {
            AnyLane::Load($lane) => $call,
            AnyLane::Rows($lane) => $call,
            AnyLane::Index($lane) => $call,
            AnyLane::Test($lane) => $call,
        }
    };
}

impl Lane for AnyLane {
    async fn open(&mut self) -> Result<(), Failure> {
        each!(self, lane => lane.open().await)
    }

    async fn prepare(&mut self, number: u64, _notes: &mut Notes) -> Result<(), Failure> {
        match self {
            Self::Load(lane) => return lane.prepare(number).await,
            Self::Rows(lane) => lane.prepare(number),
            Self::Index(_) => {}
            Self::Test(lane) => lane.prepare(number),
        }
        Ok(())
    }

    async fn perform(&mut self, number: u64) -> Result<Done, Failure> {
        each!(self, lane => lane.perform(number).await)
    }

    fn statements(&self) -> &[StatementDone] {
        match self {
            AnyLane::Test(lane) => lane.statements(),
            AnyLane::Load(_) | AnyLane::Rows(_) | AnyLane::Index(_) => &[],
        }
    }

    async fn close(self) {
        each!(self, lane => lane.close().await);
    }
}

/// What the connections of a test do; for a load or an index, see [`StepPlan::test`].
pub(crate) fn script(step: &StepPlan, setup: &Setup) -> Script {
    let (test, connections, is_shared) = step.test();
    Script {
        kind: steps::kind_name(test),
        places: places(test, &setup.options, setup.client_ids()),
        prepared: setup.prepared(test),
        stream: steps::stream(&step.name, setup.context.seed),
        connections,
        is_shared,
        table_each: false,
        found_rows: Arc::default(),
    }
}
