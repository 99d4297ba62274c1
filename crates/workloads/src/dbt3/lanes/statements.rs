//! One connection that sends statements one after the other: indexes, keys, statistics.

use std::sync::Arc;

use dbdyno_loadgen::{Done, Failure};

use crate::connection::{Connection, indispensable};
use crate::dbt3::Setup;

#[derive(Debug)]
pub struct StatementsLane {
    connection: Connection,
    statements: Vec<String>,
}

impl StatementsLane {
    pub(crate) fn new(setup: &Arc<Setup>, kind: &'static str, statements: Vec<String>) -> Self {
        Self { connection: Connection::new(&setup.context.endpoint, kind), statements }
    }

    pub(crate) async fn open(&mut self) -> Result<(), Failure> {
        self.connection.open().await
    }

    pub(crate) async fn perform(&mut self, number: u64) -> Result<Done, Failure> {
        let sql = &self.statements[usize::try_from(number).unwrap_or(usize::MAX)];
        let answer = self.connection.query(sql.as_bytes()).await.map_err(indispensable)?;
        Ok(Done { rows: answer.rows, received_bytes: answer.bytes })
    }

    pub(crate) async fn close(self) {
        self.connection.close().await;
    }
}
