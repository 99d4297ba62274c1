//! One connection of the load. It sends multi-row INSERTs, a stream of rows, or prepared INSERTs of
//! single rows with many of them in a transaction. Rows go in the order of ids.

use std::ops::Range;
use std::sync::Arc;

use dbdyno_db::{Param, RowStream, Statement};
use dbdyno_loadgen::{ConnectionTask, Done, Failure, Notes};

use crate::connection::{Connection, changed, fatal, of_load};
use crate::oltp::load::{LoadForm, LoadPlan, RowBatch, write_insert};
use crate::oltp::rows::{OltpRowSource, push_c, push_pad};
use crate::oltp::{OltpSetup, sql};

#[derive(Debug)]
pub struct OltpLoadTask {
    connection: Connection,
    plan: LoadPlan,
    /// Its statements among those of all tables.
    statements: Range<u64>,
    source: OltpRowSource,
    /// The rows that go with the statement that is ready.
    batch: RowBatch,
    begin: &'static str,
    /// The prepared INSERT and its table. There is one at a time, because the server keeps some
    /// megabytes for each.
    insert: Option<(u32, Statement)>,
    /// Parameters of the rows that are ready, and after them memory for more.
    params: Vec<Param>,
    /// The bulk statement, where there is one.
    sql: String,
    /// The INSERT, or the rows of the bulk statement.
    text: Vec<u8>,
}

impl OltpLoadTask {
    /// Returns the connection with these `statements` of `plan`.
    pub(crate) fn new(setup: &Arc<OltpSetup>, plan: LoadPlan, statements: Range<u64>) -> Self {
        Self {
            connection: Connection::new(&setup.context.database_server, "insert"),
            batch: plan.batch(statements.start),
            plan,
            statements,
            source: OltpRowSource::of(setup),
            begin: setup.context.database_server.capabilities.begin_write,
            insert: None,
            params: Vec::new(),
            sql: String::new(),
            text: Vec::new(),
        }
    }

    /// Makes sure that the INSERT of the batch is prepared, and no other. The result is whether it is a
    /// prepared one.
    async fn prepare_insert(&mut self) -> Result<bool, Failure> {
        let table = self.batch.table;
        let is_prepared = self.plan.is_prepared(self.batch);
        if let Some((known, statement)) = self.insert
            && !(is_prepared && known == table)
        {
            self.insert = None;
            self.connection.forget(statement).await?;
        }
        if is_prepared && self.insert.is_none() {
            let statement = self.connection.prepare(&self.plan.prepared_insert(table)).await?;
            self.insert = Some((table, statement));
        }
        Ok(is_prepared)
    }

    fn columns(&self) -> usize {
        3 + usize::from(self.plan.with_ids)
    }

    fn write_params(&mut self) {
        let RowBatch { table, first, last } = self.batch;
        let columns = self.columns();
        let count = self.batch.rows() as usize * columns;
        self.params.resize(count.max(self.params.len()), Param::Int(0));
        for (row, params) in (first..=last).zip(self.params.chunks_exact_mut(columns)) {
            let [id @ .., key, c, pad] = params else { return };
            let (k, mut draws) = self.source.row(table, row);
            if let [id] = id {
                *id = Param::Int(self.source.id(row).cast_signed());
            }
            *key = Param::Int(k.cast_signed());
            c.set_text(|text| push_c(&mut draws, text));
            pad.set_text(|text| push_pad(&mut draws, text));
        }
    }

    /// Inserts all rows in one transaction.
    async fn insert_rows(&mut self, insert: Statement) -> Result<Done, Failure> {
        self.connection.query(self.begin.as_bytes()).await?;
        let inserted = self.insert_each(insert).await;
        self.connection.end(inserted).await
    }

    async fn insert_each(&mut self, insert: Statement) -> Result<Done, Failure> {
        let mut done = Done::default();
        let rows = self.params.chunks_exact(self.columns()).take(self.batch.rows() as usize);
        for row in rows {
            done.rows += self.connection.execute(insert, row).await?.affected;
        }
        Ok(done)
    }

    /// Checks that all rows were taken. Some servers skip rows of a bulk statement that they do not
    /// like, with a warning that no one reads.
    fn all_taken(&self, taken: u64) -> Result<(), Failure> {
        let RowBatch { table, first, last } = self.batch;
        let rows = self.batch.rows();
        if taken == rows {
            return Ok(());
        }
        let table = OltpSetup::table(table);
        Err(fatal(format!("table {table} took {taken} of the {rows} rows {first} to {last}")))
    }
}

impl ConnectionTask for OltpLoadTask {
    async fn open(&mut self) -> Result<(), Failure> {
        // A new session does not have any prepared statement.
        self.insert = None;
        match self.plan.form {
            LoadForm::Text | LoadForm::Prepared => {
                self.connection.open_to_load(&OltpSetup::table(self.batch.table)).await
            }
            LoadForm::Stream(RowStream::PreparedRows) => self.connection.open().await,
            LoadForm::Stream(_) => self.connection.open_to_stream().await,
        }?;
        self.prepare_insert().await.map(|_| ())
    }

    async fn prepare(&mut self, number: u64, _notes: &mut Notes) -> Result<(), Failure> {
        self.batch = self.plan.batch(self.statements.start + number);
        if self.prepare_insert().await? {
            self.write_params();
            return Ok(());
        }
        let Self { plan, batch, source, text, .. } = self;
        match plan.form {
            LoadForm::Text | LoadForm::Prepared => {
                let RowBatch { table, first, last } = *batch;
                write_insert(table, first..=last, plan.with_ids, source, text);
            }
            LoadForm::Stream(form) => {
                self.sql = sql::load_rows(&OltpSetup::table(batch.table), form, plan.with_ids);
                plan.write_lines(*batch, source, text);
            }
        }
        Ok(())
    }

    async fn perform(&mut self, _number: u64) -> Result<Done, Failure> {
        let answer = match (self.plan.form, self.insert) {
            (LoadForm::Stream(_), Some((_, insert))) => {
                return self.insert_rows(insert).await.map_err(of_load);
            }
            (_, Some((_, insert))) => self.connection.execute(insert, &self.params).await,
            (LoadForm::Text | LoadForm::Prepared, None) => self.connection.query(&self.text).await,
            (LoadForm::Stream(_), None) => {
                let answer = self.connection.load_rows(&self.sql, &self.text).await.map_err(of_load)?;
                self.all_taken(answer.affected)?;
                Ok(answer)
            }
        };
        answer.map(changed).map_err(of_load)
    }

    async fn close(self) {
        self.connection.close().await;
    }
}
