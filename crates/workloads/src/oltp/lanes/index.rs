//! The index step: one CREATE INDEX a table, and what the load has left of its other indexes made compact.

use std::sync::Arc;

use dbdyno_loadgen::{Done, Failure};

use crate::connection::{Connection, indispensable};
use crate::oltp::load::LoadPlan;
use crate::oltp::{Setup, sql};

/// Builds the indexes of some tables, one after the other.
#[derive(Debug)]
pub struct IndexLane {
    connection: Connection,
    setup: Arc<Setup>,
    tables: Vec<u32>,
}

impl IndexLane {
    pub(crate) fn new(setup: &Arc<Setup>, tables: Vec<u32>) -> Self {
        Self {
            connection: Connection::new(&setup.context.endpoint, "index"),
            setup: Arc::clone(setup),
            tables,
        }
    }

    pub(crate) async fn open(&mut self) -> Result<(), Failure> {
        self.connection.open().await
    }

    pub(crate) fn prepare(&mut self, _number: u64) {}

    /// All rows of a table count with its index.
    pub(crate) async fn perform(&mut self, number: u64) -> Result<Done, Failure> {
        let table = self.tables[usize::try_from(number).unwrap_or(usize::MAX)];
        let mut received_bytes = 0;
        if self.is_split(table) {
            received_bytes += self.run(&sql::rebuild_indexes(table)).await?;
        }
        received_bytes += self.run(&sql::create_index(table)).await?;
        Ok(Done { rows: self.setup.options.table_size, received_bytes })
    }

    /// Its pages would be in all figures of the tests: one connection leaves them full.
    fn is_split(&self, table: u32) -> bool {
        self.setup.context.endpoint.capabilities.splits_pages_in_halves
            && LoadPlan::new(&self.setup).is_shared(table)
    }

    async fn run(&mut self, sql: &str) -> Result<u64, Failure> {
        Ok(self.connection.query(sql.as_bytes()).await.map_err(indispensable)?.bytes)
    }

    pub(crate) async fn close(self) {
        self.connection.close().await;
    }
}
