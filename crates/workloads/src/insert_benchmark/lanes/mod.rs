//! Connections of one client in one step.

mod delete;
mod index;
pub(crate) mod insert;
mod point;
mod range;

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use dbdyno_loadgen::{
    Coupling, Done, Failure, Lane, LaneSpec, Limit, Notes, Pace, Role, Side, StatementDone,
};

use crate::any_lane::any_lane;
use crate::insert_benchmark::steps::{StepKind, StepPlan, kinds, writer_pace};
use crate::insert_benchmark::{Setup, sql};
use crate::{Lanes, planned};

/// One client in one step, as its lanes see it.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) setup: Arc<Setup>,
    /// From 1.
    pub(crate) number: u32,
    /// Index of the step.
    pub(crate) step: usize,
    /// Rows that earlier steps have for this client, whatever became of them: part of the address
    /// of a row.
    pub(crate) rows_before: u64,
    pub(crate) rows_in_table: u64,
    pub(crate) rows_per_commit: u32,
}

impl Client {
    pub(crate) fn table(&self) -> String {
        Setup::table(self.number)
    }
}

any_lane! {
    Insert(insert::InsertLane),
    Delete(delete::DeleteLane),
    Range(range::RangeLane),
    Point(point::PointLane),
    Index(index::IndexLane),
}

pub(crate) fn of_client(client: &Client, step: &StepPlan) -> Lanes<AnyLane> {
    let kinds = kinds(step);
    let kind = |name: &str| kinds.iter().position(|kind| *kind == name).unwrap_or(0);
    if step.kind == StepKind::Index {
        let setup = &client.setup;
        let capabilities = &setup.context.endpoint.capabilities;
        let statements = sql::create_indexes(&client.table(), capabilities, setup.options.secondary_indexes);
        let spec = LaneSpec::in_turn(client.number, statements.len() as u64);
        let of = client.clone();
        return vec![planned(spec, move || AnyLane::Index(index::IndexLane::new(&of, statements)))];
    }
    let pace = writer_pace(&client.setup, client.step, step, client.number);
    let writes = Limit::Operations(step.inserts);
    let coupling = step.deletes.then(|| Arc::new(Coupling::new(Coupling::ORIGINAL_LEAD)));
    let side = |side| coupling.as_ref().map(|coupling| (Arc::clone(coupling), side));
    // The deleter's cursor; point queries draw from it upwards. 0 until the first delete, as in the
    // original.
    let cursor = Arc::new(AtomicI64::new(0));

    let of = client.clone();
    let inserts = LaneSpec::new(client.number, pace.clone(), writes);
    let spec = LaneSpec { kind: kind("insert"), coupling: side(Side::Left), ..inserts };
    let mut lanes = vec![planned(spec, move || AnyLane::Insert(insert::InsertLane::new(&of)))];
    if step.deletes {
        let (of, cursor) = (client.clone(), Arc::clone(&cursor));
        // Deletes keep within a few statements of the inserts, and the rate is one of inserts: were
        // a deleter's end the window's, a short step could count none.
        let deletes = LaneSpec::new(client.number, pace, writes);
        let (kind, coupling) = (kind("delete"), side(Side::Right));
        let spec = LaneSpec { kind, role: Role::Follows, coupling, ..deletes };
        lanes.push(planned(spec, move || AnyLane::Delete(delete::DeleteLane::new(&of, cursor))));
    }
    if step.rate.is_some() {
        for connection in 0..client.setup.options.query_connections {
            let (of, cursor, queries) = (client.clone(), Arc::clone(&cursor), step.kind);
            let reads = LaneSpec::new(client.number, Pace::Closed, Limit::UntilClientEnds);
            let spec = LaneSpec { kind: kind("query"), role: Role::Follows, ..reads };
            lanes.push(planned(spec, move || match queries {
                StepKind::Range => AnyLane::Range(range::RangeLane::new(&of, connection)),
                _ => AnyLane::Point(point::PointLane::new(&of, connection, cursor)),
            }));
        }
    }
    lanes
}
