//! The index step: one more INSERT, then the secondary indexes.

use std::time::Instant;

use dbdyno_loadgen::{ConnectionTask, Done, Failure, Notes};

use super::Client;
use super::insert::InsertBuilder;
use crate::connection::{Connection, indispensable};

/// Builds the indexes of one client's table, with one operation per DDL statement.
#[derive(Debug)]
pub struct IndexTask {
    connection: Connection,
    insert: InsertBuilder,
    statements: Vec<String>,
    /// Rows that count for this client: those in its table before the INSERT, and for client 1 also
    /// those of the INSERT. The original credits one INSERT, however many clients make one.
    rows: u64,
}

impl IndexTask {
    pub(crate) fn new(client: &Client, statements: Vec<String>) -> Self {
        Self {
            connection: Connection::new(&client.setup.context.database_server, "index"),
            insert: InsertBuilder::new(client),
            statements,
            rows: client.rows_in_table
                + if client.number == 1 { u64::from(client.rows_per_commit) } else { 0 },
        }
    }
}

impl ConnectionTask for IndexTask {
    async fn open(&mut self) -> Result<(), Failure> {
        self.connection.open_to_insert().await
    }

    /// The INSERT comes before the first index. It is part of the step's time, and noted separately.
    async fn prepare(&mut self, number: u64, notes: &mut Notes) -> Result<(), Failure> {
        if number == 0 {
            let mut sql = Vec::new();
            self.insert.text(0, &mut sql);
            let began = Instant::now();
            let answer = self.connection.query(&sql).await.map_err(indispensable)?;
            notes.lookup("insert", began.elapsed(), i64::try_from(answer.affected).ok());
        }
        Ok(())
    }

    /// All rows count once, with the last statement. The rate is therefore rows indexed, not rows times
    /// indexes.
    async fn perform(&mut self, number: u64) -> Result<Done, Failure> {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let sql = self.statements[index].as_bytes();
        let answer = self.connection.query(sql).await.map_err(indispensable)?;
        let rows = if index + 1 == self.statements.len() { self.rows } else { 0 };
        Ok(Done { rows, received_bytes: answer.bytes })
    }

    async fn close(self) {
        self.connection.close().await;
    }
}
