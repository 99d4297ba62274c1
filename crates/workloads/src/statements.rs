//! A connection that sends statements one after the other: indexes, keys, statistics.

use dbdyno_db::DatabaseServer;
use dbdyno_loadgen::{ConnectionTask, Done, Failure};

use crate::connection::{Connection, indispensable};

#[derive(Debug)]
pub struct StatementsTask {
    connection: Connection,
    statements: Vec<String>,
    /// Rows that count with each statement.
    rows: u64,
}

impl StatementsTask {
    /// `kind` is the task's kind, under which its connection is recorded.
    pub(crate) fn new(
        database_server: &DatabaseServer,
        kind: &'static str,
        statements: Vec<String>,
        rows: u64,
    ) -> Self {
        Self { connection: Connection::new(database_server, kind), statements, rows }
    }
}

impl ConnectionTask for StatementsTask {
    async fn open(&mut self) -> Result<(), Failure> {
        self.connection.open().await
    }

    async fn perform(&mut self, number: u64) -> Result<Done, Failure> {
        let sql = &self.statements[usize::try_from(number).unwrap_or(usize::MAX)];
        let answer = self.connection.query(sql.as_bytes()).await.map_err(indispensable)?;
        Ok(Done { rows: self.rows, received_bytes: answer.bytes })
    }

    async fn close(self) {
        self.connection.close().await;
    }
}
