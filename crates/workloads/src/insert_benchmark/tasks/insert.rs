//! Multi-row INSERTs at the high end of a client's table.

use crate::insert_benchmark::options::InsertBenchmarkOptions;
use dbdyno_db::{Param, Statement};
use dbdyno_loadgen::{ConnectionTask, Done, Failure, Notes};

use super::Client;
use crate::connection::{Connection, changed, of_load};
use crate::digits::push_decimal;
use crate::insert_benchmark::rows::InsertRowSource;
use crate::insert_benchmark::{sql, statement_second};

#[derive(Debug)]
pub struct InsertTask {
    connection: Connection,
    client: Client,
    builder: InsertBuilder,
    statement: Option<Statement>,
    sql: Vec<u8>,
    params: Vec<Param>,
}

impl InsertTask {
    pub(crate) fn new(client: &Client) -> Self {
        Self {
            connection: Connection::new(&client.setup.context.database_server, "insert"),
            client: client.clone(),
            builder: InsertBuilder::new(client),
            statement: None,
            sql: Vec::new(),
            params: Vec::new(),
        }
    }
}

impl ConnectionTask for InsertTask {
    async fn open(&mut self) -> Result<(), Failure> {
        self.connection.open_to_insert().await?;
        if self.client.setup.prepared.writes {
            let sql = sql::prepared_insert(&self.client.table(), self.client.rows_per_commit);
            self.statement = Some(self.connection.prepare(&sql).await?);
        }
        Ok(())
    }

    async fn prepare(&mut self, number: u64, _notes: &mut Notes) -> Result<(), Failure> {
        if self.statement.is_some() {
            self.builder.params(number, &mut self.params);
        } else {
            self.builder.text(number, &mut self.sql);
        }
        Ok(())
    }

    async fn perform(&mut self, _number: u64) -> Result<Done, Failure> {
        let answer = self.connection.send(self.statement, &self.params, &self.sql).await;
        let is_load = self.client.step < InsertBenchmarkOptions::LOAD_STEPS;
        answer.map(changed).map_err(|failure| if is_load { of_load(failure) } else { failure })
    }

    async fn close(self) {
        self.connection.close().await;
    }
}

/// Where the time is in [`InsertBuilder::row_head`].
const TIME: std::ops::Range<usize> = 2..21;

/// Writes INSERT `number` of a client in a step as text or as parameters.
#[derive(Debug, Clone)]
pub(crate) struct InsertBuilder {
    prefix: String,
    rows: InsertRowSource,
    rows_before: u64,
    rows_per_commit: u32,
    clock: crate::insert_benchmark::options::Clock,
    /// The second that `row_head` holds. Most statements share it with the one before.
    second: i64,
    /// The beginning of a row, `('YYYY-MM-DD HH:MM:SS',`.
    row_head: [u8; 23],
}

impl InsertBuilder {
    pub(crate) fn new(client: &Client) -> Self {
        let options = &client.setup.options;
        Self {
            prefix: sql::insert_prefix(&client.table()),
            rows: InsertRowSource::new(options, client.setup.context.seed, client.step, client.number),
            rows_before: client.rows_before,
            rows_per_commit: client.rows_per_commit,
            clock: options.clock,
            second: i64::MIN,
            row_head: *b"('0000-00-00 00:00:00',",
        }
    }

    /// Writes the whole statement. `price` is written with two decimals into its integer column, as the
    /// original does.
    pub(crate) fn text(&mut self, number: u64, out: &mut Vec<u8>) {
        self.set_time(number);
        out.clear();
        out.extend_from_slice(self.prefix.as_bytes());
        for row in 0..self.rows_per_commit {
            let numbers = self.rows.numbers(number, row);
            out.extend_from_slice(&self.row_head);
            push_decimal(out, numbers.cashregisterid);
            out.push(b',');
            push_decimal(out, numbers.customerid);
            out.push(b',');
            push_decimal(out, numbers.productid);
            out.push(b',');
            push_decimal(out, numbers.price);
            out.extend_from_slice(b".00,'");
            self.rows.write_data(number, row, out);
            out.extend_from_slice(b"'),");
        }
        // This removes the comma after the last row.
        out.pop();
    }

    /// Writes six parameters per row. The texts that are already there are reused.
    pub(crate) fn params(&mut self, number: u64, out: &mut Vec<Param>) {
        self.set_time(number);
        out.resize(self.rows_per_commit as usize * 6, Param::Int(0));
        for (row, params) in (0..self.rows_per_commit).zip(out.chunks_exact_mut(6)) {
            let numbers = self.rows.numbers(number, row);
            params[0].set_text(|text| text.extend_from_slice(&self.row_head[TIME]));
            params[1] = Param::Int(i64::from(numbers.cashregisterid));
            params[2] = Param::Int(i64::from(numbers.customerid));
            params[3] = Param::Int(i64::from(numbers.productid));
            params[4] = Param::Int(i64::from(numbers.price));
            params[5].set_text(|text| self.rows.write_data(number, row, text));
        }
    }

    fn set_time(&mut self, number: u64) {
        let rows_before = self.rows_before + number * u64::from(self.rows_per_commit);
        let second = statement_second(self.clock, rows_before);
        if self.second != second {
            let time = jiff::Timestamp::from_second(second).unwrap_or_default();
            let text = time.strftime("%Y-%m-%d %H:%M:%S").to_string();
            // Times of a run lie between the years 1000 and 9999, so that the length is always the
            // same.
            if text.len() == TIME.len() {
                self.row_head[TIME].copy_from_slice(text.as_bytes());
            }
            self.second = second;
        }
    }
}
