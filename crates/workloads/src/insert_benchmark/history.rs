//! Which rows each client has inserted and how many were deleted: what verification compares the tables with.

use dbdyno_loadgen::StepEnd;

use crate::insert_benchmark::steps::StepPlan;

/// INSERT statements of one client in one step that were sent, in the order of their ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inserted {
    pub(crate) step: usize,
    pub(crate) statements: u64,
    pub(crate) rows_per_statement: u32,
    /// Statements that failed: their rows are not there.
    pub(crate) failed: Vec<u64>,
}

/// Everything that happened to one client's table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TableHistory {
    pub(crate) inserted: Vec<Inserted>,
    /// Rows deleted. Deletes take the rows with the least ids, which were inserted first, unless [`Self::strays`].
    pub(crate) deleted: u64,
    /// A DELETE failed or found fewer rows than it should: its cursor went on over rows that are still there, so that
    /// later ones no longer took the oldest rows.
    pub(crate) strays: bool,
    /// An INSERT was rolled back, and the ids it had drawn are lost.
    pub(crate) gaps: bool,
}

impl TableHistory {
    pub(crate) fn rows_inserted(&self) -> u64 {
        self.inserted.iter().map(Inserted::rows).sum()
    }
}

/// Index = client − 1.
#[derive(Debug, Clone)]
pub(crate) struct History {
    clients: Vec<TableHistory>,
}

impl History {
    pub(crate) fn new(clients: u32) -> Self {
        Self { clients: vec![TableHistory::default(); clients as usize] }
    }

    /// Rows in the table of `client`.
    pub(crate) fn in_table(&self, client: u32) -> u64 {
        let table = self.of(client);
        table.rows_inserted().saturating_sub(table.deleted)
    }

    pub(crate) fn of(&self, client: u32) -> &TableHistory {
        &self.clients[client as usize - 1]
    }

    /// Takes over what step `index` did.
    pub(crate) fn add(&mut self, index: usize, step: &StepPlan, end: &StepEnd) {
        let kinds = super::lanes::kinds(step);
        for lane in &end.lanes {
            let table = &mut self.clients[lane.client as usize - 1];
            match kinds[lane.kind] {
                "insert" => {
                    table.gaps |= lane.retries > 0 || !lane.failed_numbers.is_empty();
                    table.inserted.push(Inserted {
                        step: index,
                        statements: lane.started,
                        rows_per_statement: step.rows_per_commit,
                        failed: lane.failed_numbers.clone(),
                    });
                }
                // The index step inserts one full statement before it builds.
                "index" if lane.started > 0 => table.inserted.push(Inserted {
                    step: index,
                    statements: 1,
                    rows_per_statement: step.rows_per_commit,
                    failed: Vec::new(),
                }),
                "delete" => {
                    table.strays |= lane.rows != lane.started * u64::from(step.rows_per_commit);
                    table.deleted += lane.rows;
                }
                _ => {}
            }
        }
    }
}

impl Inserted {
    /// Rows that are or were in the table.
    pub(crate) fn rows(&self) -> u64 {
        (self.statements - self.failed.len() as u64) * u64::from(self.rows_per_statement)
    }
}
