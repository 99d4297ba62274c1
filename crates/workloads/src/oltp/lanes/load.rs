//! The load: multi-row INSERTs in id order, each as long as the original's buffer.

use std::sync::Arc;

use dbdyno_loadgen::{Done, Failure};

use crate::connection::{Connection, changed};
use crate::oltp::rows::{C_LENGTH, PAD_LENGTH, RowSource, push_c, push_pad};
use crate::oltp::{Setup, sql};

/// Bytes of the original's buffer; a statement is never longer.
const BUFFER: usize = 512 << 10;
/// Bytes of a row in text without its numbers: brackets, commas with spaces, quotes, the comma to the next row.
const AROUND: usize = "(, '', ''),".len() + C_LENGTH + PAD_LENGTH;

/// How the rows of a table are spread over statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoadPlan {
    rows: u64,
    rows_per_statement: u64,
}

impl LoadPlan {
    /// As many rows a statement as surely fit: the number depends on the table's size and on nothing that is drawn.
    pub(crate) fn new(setup: &Setup) -> Self {
        let rows = setup.options.table_size;
        let digits = rows.to_string().len();
        let prefix = sql::load_prefix(&Setup::table(setup.options.tables), setup.client_ids());
        let id = if setup.client_ids() { digits + ", ".len() } else { 0 };
        let row = AROUND + digits + id;
        Self { rows, rows_per_statement: ((BUFFER - prefix.len()) / row) as u64 }
    }

    /// Statements of one table.
    pub(crate) fn statements(&self) -> u64 {
        self.rows.div_ceil(self.rows_per_statement)
    }

    /// Rows of a full statement.
    pub(crate) fn rows_per_statement(&self) -> u64 {
        self.rows_per_statement
    }

    /// First and last row (from 1) of statement `number` (from 0) of a table.
    fn rows_of(&self, number: u64) -> (u64, u64) {
        let before = number * self.rows_per_statement;
        (before + 1, (before + self.rows_per_statement).min(self.rows))
    }
}

/// Loads some tables, one after the other.
#[derive(Debug)]
pub struct LoadLane {
    connection: Connection,
    tables: Vec<u32>,
    plan: LoadPlan,
    source: RowSource,
    client_ids: bool,
    sql: Vec<u8>,
}

impl LoadLane {
    pub(crate) fn new(setup: &Arc<Setup>, tables: Vec<u32>) -> Self {
        Self {
            connection: Connection::new(&setup.context.endpoint, "insert"),
            tables,
            plan: LoadPlan::new(setup),
            source: RowSource::new(setup.context.seed, setup.options.table_size),
            client_ids: setup.client_ids(),
            sql: Vec::with_capacity(BUFFER),
        }
    }

    pub(crate) async fn open(&mut self) -> Result<(), Failure> {
        self.connection.open().await
    }

    pub(crate) fn prepare(&mut self, number: u64) {
        let statements = self.plan.statements();
        let table = self.tables[usize::try_from(number / statements).unwrap_or(usize::MAX)];
        let (first, last) = self.plan.rows_of(number % statements);
        let Self { source, client_ids, sql, .. } = self;
        let mut digits = itoa::Buffer::new();
        sql.clear();
        sql.extend_from_slice(sql::load_prefix(&Setup::table(table), *client_ids).as_bytes());
        for row in first..=last {
            sql.extend_from_slice(if row == first { b"(" } else { b",(" });
            if *client_ids {
                sql.extend_from_slice(digits.format(row).as_bytes());
                sql.extend_from_slice(b", ");
            }
            let (k, mut draws) = source.row(table, row);
            sql.extend_from_slice(digits.format(k).as_bytes());
            sql.extend_from_slice(b", '");
            push_c(&mut draws, sql);
            sql.extend_from_slice(b"', '");
            push_pad(&mut draws, sql);
            sql.extend_from_slice(b"')");
        }
    }

    pub(crate) async fn perform(&mut self, _number: u64) -> Result<Done, Failure> {
        self.connection.query(&self.sql).await.map(changed)
    }

    pub(crate) async fn close(self) {
        self.connection.close().await;
    }
}
