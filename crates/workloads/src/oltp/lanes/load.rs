//! One connection of the load: multi-row INSERTs or a stream of rows, in the order of ids.

use std::ops::Range;
use std::sync::Arc;

use dbdyno_drivers::{Param, Statement};
use dbdyno_loadgen::{Done, Failure, Lane, Notes};
use dbdyno_record::ErrorClass;

use super::row_params::{columns, fill};
use crate::connection::{Connection, changed, of_load};
use crate::oltp::load::{LoadForm, LoadPlan, Portion};
use crate::oltp::rows::RowSource;
use crate::oltp::{Setup, sql};

/// Loads its part of all tables.
#[derive(Debug)]
pub struct LoadLane {
    connection: Connection,
    plan: LoadPlan,
    /// Its statements among those of all tables.
    statements: Range<u64>,
    source: RowSource,
    /// What goes with the statement that is ready.
    portion: Portion,
    /// The prepared INSERT and its table. One at a time: the server keeps some megabytes for each.
    insert: Option<(u32, Statement)>,
    params: Vec<Param>,
    /// The bulk statement, where there is one.
    sql: String,
    /// The INSERT, or the rows of the bulk statement.
    text: Vec<u8>,
}

impl LoadLane {
    /// The connection with these `statements` of `plan`.
    pub(crate) fn new(setup: &Arc<Setup>, plan: LoadPlan, statements: Range<u64>) -> Self {
        Self {
            connection: Connection::new(&setup.context.endpoint, "insert"),
            portion: plan.portion(statements.start),
            plan,
            statements,
            source: RowSource::of(setup),
            insert: None,
            params: Vec::new(),
            sql: String::new(),
            text: Vec::new(),
        }
    }

    /// Sees to it that the INSERT of the portion is prepared, and no other; whether it is a
    /// prepared one.
    async fn prepare_insert(&mut self) -> Result<bool, Failure> {
        let table = self.portion.table;
        let is_prepared = self.plan.is_prepared(self.portion);
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

    fn write_params(&mut self) {
        let Portion { table, first, last } = self.portion;
        let columns = columns(self.plan.with_ids);
        self.params.resize(self.portion.rows() as usize * columns, Param::Int(0));
        for (row, params) in (first..=last).zip(self.params.chunks_exact_mut(columns)) {
            fill(params, &self.source, table, row);
        }
    }

    /// Some servers pass over rows of a bulk statement that they do not like, with a warning that
    /// no one reads.
    fn all_taken(&self, taken: u64) -> Result<(), Failure> {
        let Portion { table, first, last } = self.portion;
        let rows = self.portion.rows();
        if taken == rows {
            return Ok(());
        }
        let table = Setup::table(table);
        Err(Failure {
            class: ErrorClass::Fatal,
            code: String::new(),
            message: format!("table {table} took {taken} of the {rows} rows {first} to {last}"),
        })
    }
}

impl Lane for LoadLane {
    async fn open(&mut self) -> Result<(), Failure> {
        // A new session knows of no statement.
        self.insert = None;
        match self.plan.form {
            LoadForm::Text => self.connection.open_to_load(&Setup::table(self.portion.table)).await,
            LoadForm::Prepared => {
                self.connection.open_to_load(&Setup::table(self.portion.table)).await?;
                self.prepare_insert().await.map(|_| ())
            }
            LoadForm::Stream(_) => self.connection.open_to_stream().await,
        }
    }

    async fn prepare(&mut self, number: u64, _notes: &mut Notes) -> Result<(), Failure> {
        self.portion = self.plan.portion(self.statements.start + number);
        if self.prepare_insert().await? {
            self.write_params();
            return Ok(());
        }
        let Self { plan, portion, source, text, .. } = self;
        match plan.form {
            LoadForm::Text | LoadForm::Prepared => plan.write_insert(*portion, source, text),
            LoadForm::Stream(form) => {
                self.sql = sql::load_rows(&Setup::table(portion.table), form, plan.with_ids);
                plan.write_lines(*portion, source, text);
            }
        }
        Ok(())
    }

    async fn perform(&mut self, _number: u64) -> Result<Done, Failure> {
        if let Some((_, statement)) = self.insert {
            return self.connection.execute(statement, &self.params).await.map(changed).map_err(of_load);
        }
        match self.plan.form {
            LoadForm::Text | LoadForm::Prepared => {
                self.connection.query(&self.text).await.map(changed).map_err(of_load)
            }
            LoadForm::Stream(_) => {
                let answer = self.connection.load_rows(&self.sql, &self.text).await.map_err(of_load)?;
                self.all_taken(answer.affected)?;
                Ok(changed(answer))
            }
        }
    }

    async fn close(self) {
        self.connection.close().await;
    }
}
