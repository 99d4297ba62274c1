//! The connections of one client in one step.

mod delete;
mod index;
pub(crate) mod insert;
mod point;
mod range;

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use dbdyno_loadgen::{
    Arrivals, ConnectionTask, Coupling, Done, Failure, Limit, Notes, Role, Side, StatementDone, TaskSpec,
};

use crate::any_task::any_task;
use crate::insert_benchmark::steps::{ClientPart, TaskKind, kinds, writer_arrivals};
use crate::insert_benchmark::{InsertSetup, sql};
use crate::{Tasks, planned};

/// One client in one step, as its tasks see it.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) setup: Arc<InsertSetup>,
    /// Number of the client, from 1.
    pub(crate) number: u32,
    /// Index of the step.
    pub(crate) step: usize,
    /// Rows that earlier steps have for this client, whatever became of them. This is part of the
    /// address of a row.
    pub(crate) rows_before: u64,
    pub(crate) rows_in_table: u64,
    pub(crate) rows_per_commit: u32,
}

impl Client {
    pub(crate) fn table(&self) -> String {
        InsertSetup::table(self.number)
    }
}

any_task! {
    Insert(insert::InsertTask),
    Delete(delete::DeleteTask),
    Range(range::RangeTask),
    Point(point::PointTask),
    Index(index::IndexTask),
}

pub(crate) fn of_client(client: &Client, step: &ClientPart) -> Tasks<AnyTask> {
    let setup = &client.setup;
    let arrivals = writer_arrivals(setup, client.step, step, client.number);
    let writes = Limit::Operations(step.inserts);
    let coupling = step.deletes.then(|| Arc::new(Coupling::new(Coupling::ORIGINAL_LEAD)));
    let side = |side| coupling.as_ref().map(|coupling| (Arc::clone(coupling), side));
    // The deleter's cursor, from which point queries draw upwards. It is 0 until the first delete, as
    // in the original.
    let cursor = Arc::new(AtomicI64::new(0));
    let mut tasks = Vec::new();
    for (number, kind) in kinds(step).into_iter().enumerate() {
        let of = client.clone();
        let task =
            |arrivals, limit| TaskSpec { kind: number, ..TaskSpec::new(client.number, arrivals, limit) };
        let reads = || TaskSpec { role: Role::Follows, ..task(Arrivals::Closed, Limit::UntilClientEnds) };
        match kind {
            TaskKind::Index => {
                let (capabilities, count) =
                    (&setup.context.database_server.capabilities, setup.options.secondary_indexes);
                let statements = sql::create_indexes(&client.table(), capabilities, count);
                let spec = task(Arrivals::Closed, Limit::Operations(statements.len() as u64));
                tasks.push(planned(spec, move || AnyTask::Index(index::IndexTask::new(&of, statements))));
            }
            TaskKind::Insert => {
                let spec = TaskSpec { coupling: side(Side::Left), ..task(arrivals.clone(), writes) };
                tasks.push(planned(spec, move || AnyTask::Insert(insert::InsertTask::new(&of))));
            }
            TaskKind::Delete => {
                // The deleter does not decide when the window ends. Deletes keep within a few
                // statements of the inserts, and the rate is one of inserts. If a deleter's end were
                // the window's, a short step could count no inserts.
                let deletes = task(arrivals.clone(), writes);
                let spec = TaskSpec { role: Role::Follows, coupling: side(Side::Right), ..deletes };
                let cursor = Arc::clone(&cursor);
                tasks.push(planned(spec, move || AnyTask::Delete(delete::DeleteTask::new(&of, cursor))));
            }
            TaskKind::Range => tasks.extend((0..setup.options.query_connections).map(|connection| {
                let of = of.clone();
                planned(reads(), move || AnyTask::Range(range::RangeTask::new(&of, connection)))
            })),
            TaskKind::Point => tasks.extend((0..setup.options.query_connections).map(|connection| {
                let (of, cursor) = (of.clone(), Arc::clone(&cursor));
                planned(reads(), move || AnyTask::Point(point::PointTask::new(&of, connection, cursor)))
            })),
        }
    }
    tasks
}
