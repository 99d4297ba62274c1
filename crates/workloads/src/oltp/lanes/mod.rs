//! Connections of one step.

mod index;
mod load;
mod test;

use std::sync::Arc;

use dbdyno_loadgen::{Done, Failure, Lane, LaneSpec, Limit, Notes, Pace, Role, StatementDone};

use crate::oltp::steps::{StepKind, StepPlan};
use crate::oltp::{Setup, steps};

pub(crate) use load::LoadPlan;
pub(crate) use test::{Script, TestLane};

/// Builds a lane on the thread that will run it.
pub type LaneFactory = Box<dyn FnOnce() -> AnyLane + Send>;

/// A lane of any kind.
#[derive(Debug)]
pub enum AnyLane {
    Load(load::LoadLane),
    Index(index::IndexLane),
    Test(test::TestLane),
}

/// All lanes of `step`. `first_new_id` is the first id that rows of the client's own numbering take.
pub(crate) fn of_step(
    setup: &Arc<Setup>,
    step: &StepPlan,
    first_new_id: i64,
) -> Vec<(LaneSpec, LaneFactory)> {
    match step.kind {
        StepKind::Load | StepKind::Index => loaders(setup, step.kind == StepKind::Load),
        StepKind::Test { connections, rate, .. } => {
            let per_client = connections / steps::clients(connections, rate);
            let script = steps::script(step, setup);
            (0..connections)
                .zip(steps::paces(step, setup))
                .map(|(connection, pace)| {
                    let spec = LaneSpec {
                        client: 1 + connection / per_client,
                        kind: 0,
                        pace,
                        limit: Limit::Time(setup.options.warmup.0 + setup.options.time.0),
                        role: Role::Decides,
                        coupling: None,
                    };
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

/// Connections that load or index; table t goes to connection (t − 1) mod their number, as in the original.
fn loaders(setup: &Arc<Setup>, load: bool) -> Vec<(LaneSpec, LaneFactory)> {
    let count = setup.load_connections();
    (0..count)
        .map(|connection| {
            let tables: Vec<u32> = (1 + connection..=setup.options.tables).step_by(count as usize).collect();
            let operations = if load {
                tables.len() as u64 * LoadPlan::new(setup).statements()
            } else {
                tables.len() as u64
            };
            let spec = LaneSpec {
                client: 1 + connection,
                kind: 0,
                pace: Pace::Closed,
                limit: Limit::Operations(operations),
                role: Role::Decides,
                coupling: None,
            };
            let setup = Arc::clone(setup);
            let factory: LaneFactory = Box::new(move || {
                if load {
                    AnyLane::Load(load::LoadLane::new(&setup, tables))
                } else {
                    AnyLane::Index(index::IndexLane::new(&setup, tables))
                }
            });
            (spec, factory)
        })
        .collect()
}

/// Hands a call to the lane inside.
macro_rules! each {
    ($any:expr, $lane:ident => $call:expr) => {
        match $any {
            AnyLane::Load($lane) => $call,
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
        each!(self, lane => lane.prepare(number));
        Ok(())
    }

    async fn perform(&mut self, number: u64) -> Result<Done, Failure> {
        each!(self, lane => lane.perform(number).await)
    }

    fn statements(&self) -> &[StatementDone] {
        match self {
            AnyLane::Test(lane) => lane.statements(),
            AnyLane::Load(_) | AnyLane::Index(_) => &[],
        }
    }

    async fn close(self) {
        each!(self, lane => lane.close().await);
    }
}
