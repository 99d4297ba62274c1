//! Makes the connections of one step. They load rows, build indexes, gather statistics, or send
//! queries and refresh functions.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use dbdyno_db::{Cells, Param, RowStream, Statement};
use dbdyno_loadgen::{ConnectionTask, Done, Failure, Notes, StatementDone, TaskSpec};
use dbdyno_record::{ErrorClass, Execution};
use tokio::sync::mpsc;

use crate::connection::StatementsTask;
use crate::connection::any_task;
use crate::connection::{Connection, changed, fatal, indispensable, of_load};
use crate::dbt3::queries::{Hint, Query};
use crate::dbt3::rows::{
    self, BATCH_BYTES, Dbt3RowBatch, Refresh, SEPARATOR, delete_orders, insert_orders, load_sql, write,
};
use crate::dbt3::schema::Dbt3Table;
use crate::dbt3::steps::{self, Dbt3Operation, Dbt3Step, Dbt3StepKind};
use crate::dbt3::{Dbt3Setup, verify};
use crate::{Tasks, planned};

/// The executions of a step, as its connections note them down. An execution has the difference of
/// its answer from the published one.
pub(crate) type Ledger = Arc<Mutex<Vec<Executed>>>;

/// One execution and how its answer differs from the published one.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Executed {
    pub(crate) execution: Execution,
    /// Rows that a refresh function must change. It is 0 for a query.
    pub(crate) due_rows: u64,
    pub(crate) differing_rows: usize,
    pub(crate) difference: Option<String>,
}

any_task! {
    Load(Dbt3LoadTask),
    Statements(StatementsTask),
    Query(QueryTask),
}

pub(crate) fn of_step(setup: &Arc<Dbt3Setup>, step: &Dbt3Step, ledger: &Ledger) -> Tasks<AnyTask> {
    match &step.kind {
        Dbt3StepKind::Load => {
            let task = |(batches, client): (Vec<Dbt3RowBatch>, u32)| {
                let spec = TaskSpec::in_turn(client, batches.len() as u64);
                let setup = Arc::clone(setup);
                planned(spec, move || AnyTask::Load(Dbt3LoadTask::new(&setup, batches)))
            };
            rows::assigned(setup).into_iter().zip(1..).map(task).collect()
        }
        Dbt3StepKind::Index => one_after_the_other(setup, "index", steps::index_statements(setup)),
        Dbt3StepKind::Statistics => {
            let statements =
                Dbt3Table::ALL.iter().filter_map(|table| steps::statistics_statement(*table, setup));
            one_after_the_other(setup, "analyse", statements.collect())
        }
        Dbt3StepKind::Query { .. } | Dbt3StepKind::Power | Dbt3StepKind::Throughput => {
            let task = |(script, client): (Vec<Dbt3Operation>, u32)| {
                let spec = TaskSpec::in_turn(client, script.len() as u64);
                let (setup, ledger) = (Arc::clone(setup), Arc::clone(ledger));
                planned(spec, move || AnyTask::Query(QueryTask::new(&setup, client, script, ledger)))
            };
            steps::scripts(&step.kind, &setup.options).into_iter().zip(1..).map(task).collect()
        }
    }
}

fn one_after_the_other(
    setup: &Arc<Dbt3Setup>,
    kind: &'static str,
    statements: Vec<String>,
) -> Tasks<AnyTask> {
    let spec = TaskSpec::in_turn(1, statements.len() as u64);
    let setup = Arc::clone(setup);
    let task = move || StatementsTask::new(&setup.context.database_server, kind, statements, 0);
    vec![planned(spec, move || AnyTask::Statements(task()))]
}

/// Number of batches that are kept ready, so that neither the thread that makes rows nor the
/// connection waits for the other. In the meantime one more batch is made and one is sent.
const AHEAD: usize = 1;
/// Bytes that are reserved for a batch, because a buffer doubles when it grows.
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

    /// Starts the thread that makes rows, from the batch at index `at` on. The thread ends after
    /// the last batch, or when the receiver has been dropped.
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

#[derive(Debug)]
enum ReadyQuery {
    Query(u8, Query),
    Refresh(Refresh),
}

#[derive(Debug)]
pub struct QueryTask {
    connection: Connection,
    setup: Arc<Dbt3Setup>,
    client: u32,
    script: Vec<Dbt3Operation>,
    ready: Option<ReadyQuery>,
    ledger: Ledger,
}

impl QueryTask {
    pub(crate) fn new(
        setup: &Arc<Dbt3Setup>,
        client: u32,
        script: Vec<Dbt3Operation>,
        ledger: Ledger,
    ) -> Self {
        Self {
            connection: Connection::new(&setup.context.database_server, "query"),
            setup: Arc::clone(setup),
            client,
            script,
            ready: None,
            ledger,
        }
    }

    /// Returns the answer, or `None` when the query was ended at its time limit.
    async fn query(&mut self, query: &Query) -> Result<Option<Cells>, Failure> {
        if let Some(before) = &query.before {
            self.connection.query(before.as_bytes()).await?;
        }
        let limit = self.setup.options.time_limit.map(|limit| limit.0);
        let answer = self.connection.rows_within(&query.select, limit).await;
        let Some(after) = &query.after else { return answer };
        let ended = self.connection.query(after.as_bytes()).await;
        // If the query failed, its error also explains why the statement after it failed.
        answer.and_then(|rows| ended.map(|_| rows))
    }

    fn answered(&self, number: u8, answer: Option<Cells>) -> Executed {
        let Some(cells) = answer else {
            let execution = Execution { cut_off: true, ..Execution::default() };
            return Executed { execution, ..Executed::default() };
        };
        let answer = Some(verify::digest(number, &cells));
        let execution = Execution { rows: cells.len() as u64, answer, ..Execution::default() };
        let (differing_rows, difference) =
            if self.setup.has_published_answers() { verify::difference(number, &cells) } else { (0, None) };
        Executed { execution, due_rows: 0, differing_rows, difference }
    }

    /// Gives the failure of a query the class that decides about its step. A step that only repeats
    /// this query ends. In a step of many queries the others still run, because a refresh function
    /// after them brings back the number of rows.
    fn failed(&self, failure: Failure) -> Failure {
        let is_alone = self.script.iter().all(|operation| operation.name() == self.script[0].name());
        match failure.class {
            ErrorClass::Refused | ErrorClass::Fatal if !is_alone => {
                Failure { class: ErrorClass::Refused, ..failure }
            }
            _ => indispensable(failure),
        }
    }

    /// Runs a refresh function. The result is how many rows it changed.
    async fn refresh(&mut self, refresh: &rows::Refresh) -> Result<u64, Failure> {
        let mut rows = 0;
        for statement in &refresh.statements {
            match self.connection.query(statement.as_bytes()).await {
                Ok(answer) => rows += answer.affected,
                Err(failure) => {
                    // A refused ROLLBACK shows with the next BEGIN.
                    let _ = self.connection.query(b"ROLLBACK").await;
                    return Err(indispensable(failure));
                }
            }
        }
        Ok(rows)
    }
}

impl ConnectionTask for QueryTask {
    async fn open(&mut self) -> Result<(), Failure> {
        self.connection.open().await?;
        let is_ordered = |operation: &Dbt3Operation| {
            matches!(operation, Dbt3Operation::Query { hint: Hint::Order(_), .. })
        };
        let before = self.setup.context.database_server.capabilities.ordered_join.1;
        if !before.is_empty() && self.script.iter().any(is_ordered) {
            self.connection.query(before.as_bytes()).await?;
        }
        Ok(())
    }

    async fn prepare(&mut self, number: u64, _notes: &mut Notes) -> Result<(), Failure> {
        let Dbt3Setup { options, context } = &*self.setup;
        let begin = context.database_server.capabilities.begin_write;
        self.ready = Some(match &self.script[usize::try_from(number).unwrap_or(usize::MAX)] {
            Dbt3Operation::Query { number, stream, hint } => {
                let params = self.setup.params(*number, *stream);
                let query = self.setup.dialect().query(*number, &params, *stream, hint);
                ReadyQuery::Query(*number, query)
            }
            Dbt3Operation::Insert { set } => {
                ReadyQuery::Refresh(insert_orders(*set, options.scale_factor, begin))
            }
            Dbt3Operation::Delete { set } => {
                ReadyQuery::Refresh(delete_orders(*set, options.scale_factor, begin))
            }
        });
        Ok(())
    }

    async fn perform(&mut self, number: u64) -> Result<Done, Failure> {
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        let name = self.script[at].name();
        let repetition = self.script[..at].iter().filter(|before| before.name() == name).count() + 1;
        let began = Instant::now();
        let (mut executed, took) = match self.ready.take() {
            Some(ReadyQuery::Query(number, query)) => {
                let sent = self.query(&query).await;
                let took = began.elapsed();
                self.ready = Some(ReadyQuery::Query(number, query));
                (self.answered(number, sent.map_err(|failure| self.failed(failure))?), took)
            }
            Some(ReadyQuery::Refresh(refresh)) => {
                let changed = self.refresh(&refresh).await;
                let (took, due_rows) = (began.elapsed(), refresh.rows);
                self.ready = Some(ReadyQuery::Refresh(refresh));
                let execution = Execution { rows: changed?, ..Execution::default() };
                (Executed { execution, due_rows, ..Executed::default() }, took)
            }
            None => return Ok(Done::default()),
        };
        executed.execution = Execution {
            name,
            client: self.client,
            repetition: u32::try_from(repetition).unwrap_or(u32::MAX),
            duration_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            ..executed.execution
        };
        let rows = executed.execution.rows;
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner).push(executed);
        Ok(Done { rows, received_bytes: 0 })
    }

    async fn close(self) {
        self.connection.close().await;
    }
}
