//! Remembers which rows each client has inserted and how many were deleted. Verification compares the
//! tables with this.

use dbdyno_loadgen::{Coupling, StepEnd};
use serde::{Deserialize, Serialize};

use crate::insert_benchmark::steps::{ClientPart, TaskKind, kinds};

/// INSERT statements that one client sent in one step, in the order of their ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Inserted {
    pub(crate) step: usize,
    pub(crate) statements: u64,
    pub(crate) rows_per_statement: u32,
    /// Numbers of the statements that failed. Their rows are not in the table.
    pub(crate) failed: Vec<u64>,
    /// Number of statements that failed beyond those that `failed` lists. Their rows are not in the
    /// table, but it is unknown which rows these are.
    #[serde(default)]
    pub(crate) unlisted: u64,
}

/// Everything that happened to one client's table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TableHistory {
    pub(crate) inserted: Vec<Inserted>,
    /// Rows deleted. Deletes take the rows with the lowest ids, which were inserted first, unless
    /// [`Self::strays`] is set.
    pub(crate) deleted: u64,
    /// Whether a DELETE failed or found fewer rows than it should. Its cursor then passed rows that
    /// are still there, so that later DELETEs no longer took the oldest rows.
    pub(crate) strays: bool,
    /// Rows that answered DELETEs should have taken since the last check, and rows that they took.
    /// Fewer would mean that the table grows, which the count of the remaining rows cannot show.
    pub(crate) deletes: Deletes,
    /// Whether a connection was lost while a statement that changes rows was on its way. The content of
    /// the table is then unknown.
    pub(crate) lost: bool,
    /// Whether an INSERT was rolled back, so that the ids it had drawn are lost.
    pub(crate) gaps: bool,
}

/// Rows to delete and rows deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Deletes {
    pub(crate) due: u64,
    pub(crate) done: u64,
}

impl TableHistory {
    pub(crate) fn rows_inserted(&self) -> u64 {
        self.inserted.iter().map(Inserted::rows).sum()
    }

    /// Returns why the expected content of the table is unknown, or `None` where it is known.
    pub(crate) fn unknown(&self) -> Option<&'static str> {
        if self.lost {
            return Some("a connection was lost during a statement, so its outcome is unknown");
        }
        let is_unlisted = self.inserted.iter().any(|inserted| inserted.unlisted > 0);
        is_unlisted.then_some("too many INSERTs failed to note all of them, so the missing rows are unknown")
    }
}

/// The history of the tables of all clients. Client n has index n − 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct History {
    clients: Vec<TableHistory>,
}

impl History {
    pub(crate) fn new(clients: u32) -> Self {
        Self { clients: vec![TableHistory::default(); clients as usize] }
    }

    /// Returns the rows in the table of `client`.
    pub(crate) fn in_table(&self, client: u32) -> u64 {
        let table = self.of(client);
        table.rows_inserted().saturating_sub(table.deleted)
    }

    pub(crate) fn of(&self, client: u32) -> &TableHistory {
        &self.clients[client as usize - 1]
    }

    #[cfg(test)]
    pub(crate) fn clients_mut(&mut self) -> &mut [TableHistory] {
        &mut self.clients
    }

    /// Notes that deletes have been checked. The next check covers only later ones.
    pub(crate) fn deletes_checked(&mut self) {
        self.clients.iter_mut().for_each(|table| table.deletes = Deletes::default());
    }

    /// Adds the inserts and deletes of step `index`, which ended with `end`.
    pub(crate) fn add(&mut self, index: usize, step: &ClientPart, end: &StepEnd) {
        let kinds = kinds(step);
        let sent = |statements| Inserted {
            step: index,
            statements,
            rows_per_statement: step.rows_per_commit,
            failed: Vec::new(),
            unlisted: 0,
        };
        // Deletes may be this many rows ahead of inserts, so that they may find a smaller table
        // empty.
        let lead = (Coupling::ORIGINAL_LEAD + 1) * u64::from(step.rows_per_commit);
        let never_empty: Vec<bool> =
            (1..).take(self.clients.len()).map(|client| self.in_table(client) >= lead).collect();
        for task in &end.tasks {
            let table = &mut self.clients[task.client as usize - 1];
            let is_unknown = !task.unknown_numbers.is_empty();
            match kinds[task.kind] {
                TaskKind::Insert => {
                    table.lost |= is_unknown;
                    table.gaps |= task.retries > 0 || !task.failed_numbers.is_empty();
                    let (failed, unlisted) = (task.failed_numbers.clone(), task.unlisted());
                    table.inserted.push(Inserted { failed, unlisted, ..sent(task.started) });
                }
                TaskKind::Index => {
                    table.lost |= is_unknown;
                    // The index step inserts the rows of one full statement before it builds the
                    // indexes.
                    if task.started > 0 {
                        table.gaps |= task.retries > 0;
                        table.inserted.push(sent(1));
                    }
                }
                TaskKind::Delete => {
                    table.lost |= is_unknown;
                    table.strays |= task.rows != task.started * u64::from(step.rows_per_commit);
                    table.deleted += task.rows;
                    if never_empty[task.client as usize - 1] {
                        table.deletes.due += task.done * u64::from(step.rows_per_commit);
                        table.deletes.done += task.rows;
                    }
                }
                TaskKind::Range | TaskKind::Point => {}
            }
        }
    }
}

impl Inserted {
    /// Returns the rows that are or were in the table.
    pub(crate) fn rows(&self) -> u64 {
        (self.statements - self.failed.len() as u64 - self.unlisted) * u64::from(self.rows_per_statement)
    }
}

#[cfg(test)]
mod tests {
    use crate::insert_benchmark::options::InsertBenchmarkOptions;
    use dbdyno_loadgen::TaskEnd;
    use dbdyno_record::Outcome;

    use super::*;
    use crate::step::StepOptions;

    /// Returns the end of a client's task of `kind`. It sent `started` statements, which had `rows`
    /// rows, and `failed` of them failed.
    fn end(kind: usize, started: u64, rows: u64, failed: &[u64]) -> StepEnd {
        let task = TaskEnd {
            client: 1,
            kind,
            started,
            done: started - failed.len() as u64,
            rows,
            retries: 0,
            failed_numbers: failed.to_vec(),
            unknown_numbers: Vec::new(),
            reconnects: 0,
            complete: true,
            unanswered: false,
        };
        StepEnd { outcome: Outcome::Completed, message: None, at_us: 1, tasks: vec![task] }
    }

    /// Returns the deletes that are due and done in l.i1 (50 rows each) after a load of `loaded`
    /// statements of 100 rows.
    fn deletes(loaded: u64, l_i1: &StepEnd) -> Deletes {
        let steps = InsertBenchmarkOptions { clients: 1, ..InsertBenchmarkOptions::default() }.list();
        let mut history = History::new(1);
        history.add(0, &steps[0].kind, &end(0, loaded, loaded * 100, &[]));
        history.add(2, &steps[2].kind, l_i1);
        let deletes = history.of(1).deletes;
        history.deletes_checked();
        assert_eq!(history.of(1).deletes, Deletes::default());
        deletes
    }

    #[test]
    fn deletes_that_took_too_few_rows_are_noted() {
        assert_eq!(deletes(20, &end(1, 8, 390, &[])), Deletes { due: 400, done: 390 });
        assert_eq!(deletes(20, &end(1, 8, 350, &[3])), Deletes { due: 350, done: 350 });
    }

    /// Returns the end of a `task` with `more` failures that it does not list.
    fn unlisted(mut task: StepEnd, more: u64) -> StepEnd {
        task.tasks[0].done -= more;
        task
    }

    #[test]
    fn failed_deletes_are_not_due_whether_listed_or_not() {
        assert_eq!(deletes(20, &unlisted(end(1, 8, 300, &[3]), 1)), Deletes { due: 300, done: 300 });
    }

    #[test]
    fn a_table_with_unlisted_failed_inserts_is_unknown_but_its_rows_are_counted() {
        let steps = InsertBenchmarkOptions { clients: 1, ..InsertBenchmarkOptions::default() }.list();
        let mut history = History::new(1);
        history.add(0, &steps[0].kind, &end(0, 20, 1_700, &[3, 4, 5]));
        assert_eq!((history.of(1).unknown(), history.in_table(1)), (None, 1_700));
        history.add(2, &steps[2].kind, &unlisted(end(0, 10, 300, &[0, 1, 2]), 1));
        let why = history.of(1).unknown().expect("a reason");
        assert!(why.contains("too many INSERTs failed"), "{why}");
        assert_eq!(history.in_table(1), 1_700 + 300);
    }

    #[test]
    fn nothing_is_due_from_a_table_that_deletes_may_find_empty() {
        assert_eq!(deletes(4, &end(1, 8, 350, &[])), Deletes::default());
        assert_eq!(deletes(5, &end(1, 8, 350, &[])), Deletes { due: 400, done: 350 });
    }
}
