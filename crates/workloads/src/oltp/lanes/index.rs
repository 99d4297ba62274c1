//! The index step: one CREATE INDEX a table.

use std::sync::Arc;

use dbdyno_loadgen::{Done, Failure};

use crate::connection::{Connection, indispensable};
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
        let sql = sql::create_index(table);
        let answer = self.connection.query(sql.as_bytes()).await.map_err(indispensable)?;
        Ok(Done { rows: self.setup.options.table_size, received_bytes: answer.bytes })
    }

    pub(crate) async fn close(self) {
        self.connection.close().await;
    }
}
