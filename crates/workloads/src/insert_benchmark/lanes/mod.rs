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
use crate::insert_benchmark::steps::{ClientPart, LaneKind, kinds, writer_pace};
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

pub(crate) fn of_client(client: &Client, step: &ClientPart) -> Lanes<AnyLane> {
    let setup = &client.setup;
    let pace = writer_pace(setup, client.step, step, client.number);
    let writes = Limit::Operations(step.inserts);
    let coupling = step.deletes.then(|| Arc::new(Coupling::new(Coupling::ORIGINAL_LEAD)));
    let side = |side| coupling.as_ref().map(|coupling| (Arc::clone(coupling), side));
    // The deleter's cursor; point queries draw from it upwards. 0 until the first delete, as in the
    // original.
    let cursor = Arc::new(AtomicI64::new(0));
    let mut lanes = Vec::new();
    for (number, kind) in kinds(step).into_iter().enumerate() {
        let of = client.clone();
        let lane = |pace, limit| LaneSpec { kind: number, ..LaneSpec::new(client.number, pace, limit) };
        let reads = || LaneSpec { role: Role::Follows, ..lane(Pace::Closed, Limit::UntilClientEnds) };
        match kind {
            LaneKind::Index => {
                let (capabilities, count) =
                    (&setup.context.endpoint.capabilities, setup.options.secondary_indexes);
                let statements = sql::create_indexes(&client.table(), capabilities, count);
                let spec = lane(Pace::Closed, Limit::Operations(statements.len() as u64));
                lanes.push(planned(spec, move || AnyLane::Index(index::IndexLane::new(&of, statements))));
            }
            LaneKind::Insert => {
                let spec = LaneSpec { coupling: side(Side::Left), ..lane(pace.clone(), writes) };
                lanes.push(planned(spec, move || AnyLane::Insert(insert::InsertLane::new(&of))));
            }
            LaneKind::Delete => {
                // Deletes keep within a few statements of the inserts, and the rate is one of
                // inserts: were a deleter's end the window's, a short step could count none.
                let deletes = lane(pace.clone(), writes);
                let spec = LaneSpec { role: Role::Follows, coupling: side(Side::Right), ..deletes };
                let cursor = Arc::clone(&cursor);
                lanes.push(planned(spec, move || AnyLane::Delete(delete::DeleteLane::new(&of, cursor))));
            }
            LaneKind::Range => lanes.extend((0..setup.options.query_connections).map(|connection| {
                let of = of.clone();
                planned(reads(), move || AnyLane::Range(range::RangeLane::new(&of, connection)))
            })),
            LaneKind::Point => lanes.extend((0..setup.options.query_connections).map(|connection| {
                let (of, cursor) = (of.clone(), Arc::clone(&cursor));
                planned(reads(), move || AnyLane::Point(point::PointLane::new(&of, connection, cursor)))
            })),
        }
    }
    lanes
}
