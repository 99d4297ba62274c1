//! A connection that loads its share of the rows. A thread makes the next rows while the server takes
//! the previous ones.

use std::sync::Arc;
use std::thread;

use dbdyno_db::{Param, RowStream, Statement};
use dbdyno_loadgen::{ConnectionTask, Done, Failure, Notes};
use tokio::sync::mpsc;

use crate::connection::{Connection, changed, fatal, of_load};
use crate::dbt3::Dbt3Setup;
use crate::dbt3::rows::{BATCH_BYTES, Dbt3RowBatch, SEPARATOR, load_sql, write};
use crate::dbt3::schema::Dbt3Table;

/// Batches that lie ready, so that neither side waits for the other. In the meantime one more is made
/// and one is sent.
const AHEAD: usize = 1;
/// Bytes reserved for a batch, because its buffer would double when it grows.
const ROOM: usize = (BATCH_BYTES + BATCH_BYTES / 8) as usize;

/// Rows of a batch as lines.
#[derive(Debug)]
struct Lines {
    text: Vec<u8>,
    rows: u64,
}

#[derive(Debug)]
pub struct Dbt3LoadTask {
    connection: Connection,
    form: RowStream,
    begin: &'static str,
    scale_factor: f64,
    batches: Vec<Dbt3RowBatch>,
    /// Receives rows from the thread that makes them.
    lines: Option<mpsc::Receiver<Lines>>,
    ready: Lines,
    table: Dbt3Table,
    insert: Option<(Dbt3Table, Statement)>,
    params: Vec<Param>,
}

impl Dbt3LoadTask {
    pub(crate) fn new(setup: &Arc<Dbt3Setup>, batches: Vec<Dbt3RowBatch>) -> Self {
        let capabilities = &setup.context.database_server.capabilities;
        Self {
            connection: Connection::new(&setup.context.database_server, "insert"),
            form: capabilities.row_stream,
            begin: capabilities.begin_write,
            scale_factor: setup.options.scale_factor,
            batches,
            lines: None,
            ready: Lines { text: Vec::new(), rows: 0 },
            table: Dbt3Table::Region,
            insert: None,
            params: Vec::new(),
        }
    }

    /// Starts the thread with the batch at place `at`. It ends with its batches, or when no one takes
    /// them any more.
    fn made_from(&self, at: usize) -> Result<mpsc::Receiver<Lines>, Failure> {
        let (sender, receiver) = mpsc::channel(AHEAD);
        let (batches, scale_factor) = (self.batches[at..].to_vec(), self.scale_factor);
        let make = move || {
            for batch in batches {
                let mut text = Vec::with_capacity(ROOM);
                let rows = write(batch, scale_factor, &mut text);
                if sender.blocking_send(Lines { text, rows }).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("rows".to_owned()).spawn(make);
        thread.map_err(|error| fatal(format!("starting a thread that makes rows: {error}")))?;
        Ok(receiver)
    }

    /// Inserts all rows in one transaction.
    async fn insert_all(&mut self) -> Result<Done, Failure> {
        self.connection.query(self.begin.as_bytes()).await?;
        let inserted = self.insert_each().await;
        self.connection.end(inserted).await
    }

    async fn insert_each(&mut self) -> Result<Done, Failure> {
        let Some((_, insert)) = self.insert else { return Err(fatal("no INSERT is prepared")) };
        let mut done = Done::default();
        let columns = &self.table.definition().columns;
        self.params.resize(columns.len(), Param::Int(0));
        for line in self.ready.text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let cells = line.split(|&byte| byte == SEPARATOR as u8);
            for ((param, cell), column) in self.params.iter_mut().zip(cells).zip(columns) {
                if column.is_whole {
                    *param = Param::Int(whole(cell));
                } else {
                    param.set_text(|text| text.extend_from_slice(cell));
                }
            }
            done.rows += self.connection.execute(insert, &self.params).await?.affected;
        }
        Ok(done)
    }
}

impl ConnectionTask for Dbt3LoadTask {
    async fn open(&mut self) -> Result<(), Failure> {
        self.insert = None;
        if self.form == RowStream::PreparedRows {
            self.connection.open().await
        } else {
            self.connection.open_to_stream().await
        }
    }

    async fn prepare(&mut self, number: u64, _notes: &mut Notes) -> Result<(), Failure> {
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        if self.lines.is_none() {
            self.lines = Some(self.made_from(at)?);
        }
        let lines = self.lines.as_mut().expect("just set").recv().await;
        self.ready = lines.ok_or_else(|| fatal("the thread that makes rows has ended"))?;
        self.table = self.batches[at].table;
        if self.form == RowStream::PreparedRows && self.insert.is_none_or(|(table, _)| table != self.table) {
            let statement = self.connection.prepare(&load_sql(self.table, self.form)).await?;
            self.insert = Some((self.table, statement));
        }
        Ok(())
    }

    async fn perform(&mut self, _number: u64) -> Result<Done, Failure> {
        let taken = if self.form == RowStream::PreparedRows {
            self.insert_all().await
        } else {
            let sql = load_sql(self.table, self.form);
            self.connection.load_rows(&sql, &self.ready.text).await.map(changed)
        };
        let done = taken.map_err(of_load)?;
        if done.rows == self.ready.rows {
            return Ok(done);
        }
        let (table, due) = (self.table.name(), self.ready.rows);
        Err(fatal(format!("table {table} took {} of {due} rows", done.rows)))
    }

    async fn close(self) {
        self.connection.close().await;
    }
}

/// Returns the number that these digits represent.
fn whole(digits: &[u8]) -> i64 {
    digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'))
}
