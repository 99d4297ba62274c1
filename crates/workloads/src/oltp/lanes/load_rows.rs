//! The load of an embedded database: prepared INSERTs of single rows, many of them in a
//! transaction.

use std::ops::Range;
use std::sync::Arc;

use dbdyno_drivers::{Param, RowStream, Statement};
use dbdyno_loadgen::{Done, Failure, Lane, Notes};

use super::row_params::{columns, fill};
use crate::connection::{Connection, of_load};
use crate::oltp::load::{LoadPlan, Portion};
use crate::oltp::rows::RowSource;
use crate::oltp::{Setup, sql};

/// Loads its part of all tables.
#[derive(Debug)]
pub struct RowsLane {
    connection: Connection,
    plan: LoadPlan,
    /// Its statements among those of all tables.
    statements: Range<u64>,
    tables: u32,
    source: RowSource,
    begin: &'static str,
    /// One INSERT for each table.
    inserts: Vec<Statement>,
    /// Table of the rows that are ready.
    table: u32,
    /// Parameters of each row, of which the first `ready` are to be sent; their memory is used
    /// again.
    rows: Vec<Vec<Param>>,
    ready: usize,
}

impl RowsLane {
    /// The connection with these `statements` of `plan`.
    pub(crate) fn new(setup: &Arc<Setup>, plan: LoadPlan, statements: Range<u64>) -> Self {
        Self {
            connection: Connection::new(&setup.context.endpoint, "insert"),
            plan,
            statements,
            tables: setup.options.tables,
            source: RowSource::of(setup),
            begin: setup.context.endpoint.capabilities.begin_write,
            inserts: Vec::new(),
            table: 1,
            rows: Vec::new(),
            ready: 0,
        }
    }

    async fn insert_all(&mut self) -> Result<Done, Failure> {
        let insert = self.inserts[self.table as usize - 1];
        let mut done = Done::default();
        for row in &self.rows[..self.ready] {
            done.rows += self.connection.execute(insert, row).await?.affected;
        }
        self.connection.query(b"COMMIT").await?;
        Ok(done)
    }
}

impl Lane for RowsLane {
    async fn open(&mut self) -> Result<(), Failure> {
        self.connection.open().await?;
        self.inserts.clear();
        for table in 1..=self.tables {
            let sql = sql::load_rows(&Setup::table(table), RowStream::PreparedRows, self.plan.with_ids);
            self.inserts.push(self.connection.prepare(&sql).await?);
        }
        Ok(())
    }

    async fn prepare(&mut self, number: u64, _notes: &mut Notes) -> Result<(), Failure> {
        let Portion { table, first, last } = self.plan.portion(self.statements.start + number);
        self.table = table;
        self.ready = 0;
        for row in first..=last {
            if self.ready == self.rows.len() {
                self.rows.push(vec![Param::Int(0); columns(self.plan.with_ids)]);
            }
            fill(&mut self.rows[self.ready], &self.source, table, row);
            self.ready += 1;
        }
        Ok(())
    }

    /// A transaction of all rows; one that fails is rolled back as a whole.
    async fn perform(&mut self, _number: u64) -> Result<Done, Failure> {
        self.connection.query(self.begin.as_bytes()).await.map_err(of_load)?;
        match self.insert_all().await {
            Ok(done) => Ok(done),
            Err(failure) => {
                // A refused ROLLBACK shows with the next BEGIN.
                let _ = self.connection.query(b"ROLLBACK").await;
                Err(of_load(failure))
            }
        }
    }

    async fn close(self) {
        self.connection.close().await;
    }
}
