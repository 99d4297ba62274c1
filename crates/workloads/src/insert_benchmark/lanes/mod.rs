//! Connections of one client in one step.

mod delete;
mod index;
pub(crate) mod insert;
mod point;
mod range;

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use dbdyno_loadgen::{Coupling, Done, Failure, Lane, LaneSpec, Limit, Notes, Pace, Role, Side};

use crate::insert_benchmark::steps::{StepKind, StepPlan, kinds, writer_pace};
use crate::insert_benchmark::{Setup, sql};

/// Builds a lane on the thread that will run it.
pub type LaneFactory = Box<dyn FnOnce() -> AnyLane + Send>;

/// One client in one step, as its lanes see it.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) setup: Arc<Setup>,
    /// From 1.
    pub(crate) number: u32,
    /// Index of the step.
    pub(crate) step: usize,
    /// Rows that earlier steps have for this client, whatever became of them: part of the address of a row.
    pub(crate) rows_before: u64,
    /// Rows that are in its table.
    pub(crate) rows_in_table: u64,
    pub(crate) rows_per_commit: u32,
}

impl Client {
    pub(crate) fn table(&self) -> String {
        Setup::table(self.number)
    }
}

/// A lane of any kind.
#[derive(Debug)]
pub enum AnyLane {
    Insert(insert::InsertLane),
    Delete(delete::DeleteLane),
    Range(range::RangeLane),
    Point(point::PointLane),
    Index(index::IndexLane),
}

/// All lanes of `client` in `step`.
pub(crate) fn of_client(client: &Client, step: &StepPlan) -> Vec<(LaneSpec, LaneFactory)> {
    let kinds = kinds(step);
    let kind = |name: &str| kinds.iter().position(|kind| *kind == name).unwrap_or(0);
    let lane = |kind, pace, limit, role, coupling| LaneSpec {
        client: client.number,
        kind,
        pace,
        limit,
        role,
        coupling,
    };
    if step.kind == StepKind::Index {
        return vec![index_lane(
            client,
            lane(kind("index"), Pace::Closed, Limit::Operations(0), Role::Decides, None),
        )];
    }
    let pace = writer_pace(&client.setup, client.step, step, client.number);
    let writes = Limit::Operations(step.inserts);
    let coupling = step.deletes.then(|| Arc::new(Coupling::new(Coupling::ORIGINAL_LEAD)));
    let side = |side| coupling.as_ref().map(|coupling| (Arc::clone(coupling), side));
    // The deleter's cursor; point queries draw from it upwards. 0 until the first delete, as in the original.
    let cursor = Arc::new(AtomicI64::new(0));

    let mut lanes: Vec<(LaneSpec, LaneFactory)> = Vec::new();
    let of = client.clone();
    lanes.push((
        lane(kind("insert"), pace.clone(), writes, Role::Decides, side(Side::Left)),
        Box::new(move || AnyLane::Insert(insert::InsertLane::new(&of))),
    ));
    if step.deletes {
        let (of, cursor) = (client.clone(), Arc::clone(&cursor));
        lanes.push((
            // Deletes keep within a few statements of the inserts, and the rate is one of inserts: were a deleter's
            // end the window's, a short step could count none.
            lane(kind("delete"), pace, writes, Role::Follows, side(Side::Right)),
            Box::new(move || AnyLane::Delete(delete::DeleteLane::new(&of, cursor))),
        ));
    }
    if step.rate.is_some() {
        for connection in 0..client.setup.options.query_connections {
            let (of, cursor, queries) = (client.clone(), Arc::clone(&cursor), step.kind);
            lanes.push((
                lane(kind("query"), Pace::Closed, Limit::UntilClientEnds, Role::Follows, None),
                Box::new(move || match queries {
                    StepKind::Range => AnyLane::Range(range::RangeLane::new(&of, connection)),
                    _ => AnyLane::Point(point::PointLane::new(&of, connection, cursor)),
                }),
            ));
        }
    }
    lanes
}

fn index_lane(client: &Client, mut spec: LaneSpec) -> (LaneSpec, LaneFactory) {
    let setup = &client.setup;
    let capabilities = &setup.context.endpoint.capabilities;
    let statements = sql::create_indexes(&client.table(), capabilities, setup.options.secondary_indexes);
    spec.limit = Limit::Operations(statements.len() as u64);
    let of = client.clone();
    (spec, Box::new(move || AnyLane::Index(index::IndexLane::new(&of, statements))))
}

/// Hands a call to the lane inside.
macro_rules! each {
    ($any:expr, $lane:ident => $call:expr) => {
        match $any {
            AnyLane::Insert($lane) => $call,
            AnyLane::Delete($lane) => $call,
            AnyLane::Range($lane) => $call,
            AnyLane::Point($lane) => $call,
            AnyLane::Index($lane) => $call,
        }
    };
}

impl Lane for AnyLane {
    async fn open(&mut self) -> Result<(), Failure> {
        each!(self, lane => lane.open().await)
    }

    async fn prepare(&mut self, number: u64, notes: &mut Notes) -> Result<(), Failure> {
        each!(self, lane => lane.prepare(number, notes).await)
    }

    async fn perform(&mut self, number: u64) -> Result<Done, Failure> {
        each!(self, lane => lane.perform(number).await)
    }

    async fn close(self) {
        each!(self, lane => lane.close().await);
    }
}
