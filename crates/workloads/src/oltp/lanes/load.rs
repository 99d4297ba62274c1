//! One connection of the load: multi-row INSERTs or a stream of rows, in the order of ids.

use std::ops::Range;
use std::sync::Arc;

use dbdyno_loadgen::{Done, Failure};
use dbdyno_record::ErrorClass;

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
            sql: String::new(),
            text: Vec::new(),
        }
    }

    pub(crate) async fn open(&mut self) -> Result<(), Failure> {
        match self.plan.form {
            LoadForm::Insert => self.connection.open_to_load(&Setup::table(self.portion.table)).await,
            LoadForm::Stream(_) => self.connection.open_to_stream().await,
        }
    }

    pub(crate) fn prepare(&mut self, number: u64) {
        let Self { plan, portion, source, text, .. } = self;
        *portion = plan.portion(self.statements.start + number);
        match plan.form {
            LoadForm::Insert => plan.write_insert(*portion, source, text),
            LoadForm::Stream(form) => {
                self.sql = sql::load_rows(&Setup::table(portion.table), form, plan.with_ids);
                plan.write_lines(*portion, source, text);
            }
        }
    }

    pub(crate) async fn perform(&mut self, _number: u64) -> Result<Done, Failure> {
        match self.plan.form {
            LoadForm::Insert => self.connection.query(&self.text).await.map(changed).map_err(of_load),
            LoadForm::Stream(_) => {
                let answer = self.connection.load_rows(&self.sql, &self.text).await.map_err(of_load)?;
                self.all_taken(answer.affected)?;
                Ok(changed(answer))
            }
        }
    }

    /// Some servers pass over rows of a bulk statement that they do not like, with a warning that nobody reads.
    fn all_taken(&self, taken: u64) -> Result<(), Failure> {
        let Portion { table, first, last } = self.portion;
        let rows = last - first + 1;
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

    pub(crate) async fn close(self) {
        self.connection.close().await;
    }
}
