//! Makes the connections of one step, which load, build indexes or run a test.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use dbdyno_db::{Answer, Param, RowStream, Statement};
use dbdyno_loadgen::{Arrivals, ConnectionTask, Done, Failure, Notes, StatementDone, TaskSpec};
use dbdyno_record::ErrorClass;

use crate::connection::StatementsTask;
use crate::connection::any_task;
use crate::connection::{Connection, changed, fatal, of_load};
use crate::oltp::load::{LoadForm, LoadPlan, RowBatch, write_insert};
use crate::oltp::operation::OltpDraws;
use crate::oltp::operation::OltpOperation;
use crate::oltp::operation::{StatementSlot, statement_slots};
use crate::oltp::rows::{OltpRowSource, push_c, push_pad};
use crate::oltp::sql::Template;
use crate::oltp::sql::{self, OltpStatement};
use crate::oltp::steps::{OltpStep, OltpStepKind};
use crate::oltp::{OltpSetup, steps};
use crate::{Philox, Tasks, planned};

any_task! {
    Load(OltpLoadTask),
    Index(StatementsTask),
    Test(TestTask),
}

/// Returns all tasks of `step`. `first_new_id` is the first id for rows that the client numbers
/// itself.
pub(crate) fn of_step(setup: &Arc<OltpSetup>, step: &OltpStep, first_new_id: i64) -> Tasks<AnyTask> {
    match step.kind {
        OltpStepKind::Load => loaders(setup),
        OltpStepKind::Index => indexers(setup),
        OltpStepKind::Test { test, connections, rate } => {
            let per_client = connections / crate::step::clients(connections, rate);
            let script = TestScript {
                kind: steps::labels(test).0,
                statement_slots: statement_slots(test, &setup.options, setup.client_ids()),
                prepared: setup.options.prepares(test),
                stream: crate::step::stream(&step.name, setup.context.draws),
                connections,
                is_shared: rate.is_some(),
                table_each: false,
                found_rows: Arc::default(),
            };
            let arrivals =
                steps::arrivals(&step.name, (connections, rate), &setup.options, setup.context.draws);
            let task = |(connection, arrivals): (u32, Arrivals)| {
                let limit = steps::limit(&setup.options, connection, connections);
                let spec = TaskSpec::new(1 + connection / per_client, arrivals, limit);
                let (setup, script) = (Arc::clone(setup), script.clone());
                let task = move || TestTask::new(&setup, script, connection, first_new_id);
                planned(spec, move || AnyTask::Test(task()))
            };
            (0..connections).zip(arrivals).map(task).collect()
        }
    }
}

/// Returns the connections that load. Each has its part of all tables.
fn loaders(setup: &Arc<OltpSetup>) -> Tasks<AnyTask> {
    let plan = LoadPlan::new(setup);
    let task = |connection: u32| {
        let statements = plan.statements_of(connection);
        let spec = TaskSpec::in_turn(1 + connection, statements.end - statements.start);
        let (setup, plan) = (Arc::clone(setup), plan.clone());
        planned(spec, move || AnyTask::Load(OltpLoadTask::new(&setup, plan, statements)))
    };
    (0..plan.connections).map(task).collect()
}

/// Returns the connections that build indexes. Table t goes to connection (t − 1) mod their number.
fn indexers(setup: &Arc<OltpSetup>) -> Tasks<AnyTask> {
    let count = LoadPlan::new(setup).index_connections();
    let task = |connection: u32| {
        let tables = (1 + connection..=setup.options.tables).step_by(count as usize);
        let statements: Vec<String> = tables.map(sql::create_index).collect();
        let spec = TaskSpec::in_turn(1 + connection, statements.len() as u64);
        let setup = Arc::clone(setup);
        planned(spec, move || {
            let rows = setup.options.table_size;
            AnyTask::Index(StatementsTask::new(&setup.context.database_server, "index", statements, rows))
        })
    };
    (0..count).map(task).collect()
}

/// What the connections of a test do.
#[derive(Debug, Clone)]
pub(crate) struct TestScript {
    /// The name of an operation, which is also the kind under which its connections are recorded.
    pub(crate) kind: &'static str,
    pub(crate) statement_slots: Vec<StatementSlot>,
    pub(crate) prepared: bool,
    /// The stream of draws of this step.
    pub(crate) stream: Philox,
    pub(crate) connections: u32,
    /// Whether all connections take their operations from one schedule.
    pub(crate) is_shared: bool,
    /// Whether each connection keeps to one table. The tables are given out in turn.
    pub(crate) table_each: bool,
    /// Rows of each table, where they are not `table_size`.
    pub(crate) found_rows: Arc<[u64]>,
}

#[derive(Debug)]
pub struct TestTask {
    connection: Connection,
    setup: Arc<OltpSetup>,
    operation: OltpOperation,
    stream: Philox,
    /// Number of this task (from 0) among `tasks` tasks, on which draws depend. All connections of
    /// a schedule count as one task, whose operations are numbered consecutively. What operation n
    /// does is then the same whichever connection sends it.
    task: u32,
    tasks: u32,
    first_new_id: i64,
    /// Rows that a scan reads.
    scanned_rows: u64,
    in_transaction: bool,
    writes: bool,
    prepared: bool,
    /// The senders by kind of statement, then by table. BEGIN and COMMIT have only one sender each.
    senders: Vec<(OltpStatement, Vec<Sender>)>,
    /// For each statement of an operation, the index of its senders in `senders`.
    statement_slots: Vec<usize>,
    /// The results of the statements of the last operation.
    done: Vec<StatementDone>,
    sql: Vec<u8>,
    /// Number of operations answered.
    answered: u64,
}

/// How one statement on one table is sent.
#[derive(Debug)]
enum Sender {
    Prepared(Statement),
    Text(Template),
}

impl TestTask {
    pub(crate) fn new(
        setup: &Arc<OltpSetup>,
        script: TestScript,
        connection: u32,
        first_new_id: i64,
    ) -> Self {
        let TestScript {
            kind,
            statement_slots,
            prepared,
            stream,
            connections,
            is_shared,
            table_each,
            found_rows,
        } = script;
        let fixed_table = table_each.then_some((connection % setup.options.tables) as usize);
        let found = fixed_table.and_then(|table| found_rows.get(table).copied());
        Self {
            connection: Connection::new(&setup.context.database_server, kind),
            setup: Arc::clone(setup),
            operation: OltpOperation::new(&statement_slots, setup, fixed_table),
            stream,
            task: if is_shared { 0 } else { connection },
            tasks: if is_shared { 1 } else { connections },
            first_new_id,
            scanned_rows: found.unwrap_or(setup.options.table_size),
            in_transaction: statement_slots.iter().any(|place| place.kind == OltpStatement::Begin),
            writes: statement_slots.iter().any(|place| place.kind.is_write()),
            prepared,
            senders: Vec::new(),
            statement_slots: Vec::new(),
            done: Vec::with_capacity(statement_slots.len()),
            sql: Vec::new(),
            answered: 0,
        }
    }

    async fn open_connection(&mut self) -> Result<(), Failure> {
        let takes_ids = self.operation.statements().iter().any(|ready| ready.kind == OltpStatement::NewRow);
        if takes_ids { self.connection.open_to_insert().await } else { self.connection.open().await }
    }

    /// Makes a sender for each table. BEGIN and COMMIT have no table, and get one sender.
    async fn senders_of(&mut self, kind: OltpStatement) -> Result<Vec<Sender>, Failure> {
        let tables = if kind.is_transaction_control() { 1 } else { self.setup.options.tables };
        let mut senders = Vec::with_capacity(tables as usize);
        for table in 1..=tables {
            let sql = sql::statement_of(&self.setup, kind, &OltpSetup::table(table), self.writes);
            senders.push(self.sender(kind, &sql).await?);
        }
        Ok(senders)
    }

    async fn sender(&mut self, kind: OltpStatement, sql: &str) -> Result<Sender, Failure> {
        if !self.prepared {
            return Ok(Sender::Text(Template::new(sql)));
        }
        match self.connection.prepare(sql).await {
            Ok(statement) => Ok(Sender::Prepared(statement)),
            // Some servers prepare no BEGIN. The original then sends it as text.
            Err(_) if kind.is_transaction_control() => Ok(Sender::Text(Template::new(sql))),
            Err(failure) => Err(failure),
        }
    }

    /// Logs out and in again, and prepares again. This is part of the operation before it, as in
    /// the original, and counts among its statements.
    async fn connect_again(&mut self) -> Result<(), Failure> {
        let began = Instant::now();
        self.connection.leave().await;
        // Without a connection the task cannot continue, whatever the error was.
        self.open().await.map_err(|failure| Failure {
            class: ErrorClass::Lost,
            message: format!("connecting again after {} operations: {}", self.answered, failure.message),
            code: failure.code,
        })?;
        let (index, took) = (self.senders.len(), Some(began.elapsed()));
        self.done.push(StatementDone { index, name: "reconnect", took, rows: 0 });
        Ok(())
    }

    /// Rolls back, and returns whether the connection still exists. The result is true for a
    /// refused ROLLBACK too, because the next statement then shows the session's state.
    async fn has_rolled_back(&mut self) -> bool {
        let began = Instant::now();
        match self.connection.query(b"ROLLBACK").await {
            Ok(_) => {
                let (index, took) = (self.senders.len() + 1, Some(began.elapsed()));
                self.done.push(StatementDone { index, name: "rollback", took, rows: 0 });
                true
            }
            Err(failure) => failure.class != ErrorClass::Lost,
        }
    }

    /// Returns what a failed statement means for its operation. A transaction is rolled back even
    /// if the server has rolled back the statement already. Otherwise the next BEGIN would commit
    /// the part before it.
    async fn given_up(&mut self, kind: OltpStatement, mut failure: Failure) -> Failure {
        if matches!(failure.class, ErrorClass::Lost | ErrorClass::Fatal) {
            return failure;
        }
        if self.in_transaction && !self.has_rolled_back().await {
            failure.class = ErrorClass::Lost;
            return failure;
        }
        failure.class = match &self.setup.options.ignore_errors {
            Some(codes) if codes.iter().any(|code| code.0 == "all" || code.0 == failure.code) => {
                ErrorClass::Retry
            }
            Some(_) => ErrorClass::Refused,
            // The INSERT has failed because another connection has put the same id back after the
            // DELETE. This cannot happen where a server locks rows that do not exist. On PostgreSQL
            // the original begins such a transaction again, too.
            None if kind == OltpStatement::Insert => ErrorClass::Retry,
            None => failure.class,
        };
        failure
    }
}

impl ConnectionTask for TestTask {
    async fn open(&mut self) -> Result<(), Failure> {
        self.open_connection().await?;
        let kinds: Vec<OltpStatement> = self.operation.statements().iter().map(|ready| ready.kind).collect();
        self.senders.clear();
        self.statement_slots.clear();
        for kind in kinds {
            let place = match self.senders.iter().position(|entry| entry.0 == kind) {
                Some(place) => place,
                None => {
                    let senders = self.senders_of(kind).await?;
                    self.senders.push((kind, senders));
                    self.senders.len() - 1
                }
            };
            self.statement_slots.push(place);
        }
        Ok(())
    }

    async fn prepare(&mut self, number: u64, _notes: &mut Notes) -> Result<(), Failure> {
        let rows_before = number * u64::from(self.tasks) + u64::from(self.task);
        let new_id = self.first_new_id.saturating_add_unsigned(rows_before);
        self.operation.draw(&mut OltpDraws::new(&self.stream, self.task, number), new_id);
        Ok(())
    }

    async fn perform(&mut self, _number: u64) -> Result<Done, Failure> {
        let Self {
            connection,
            operation,
            senders,
            statement_slots,
            done: statements,
            sql,
            setup,
            scanned_rows,
            ..
        } = self;
        let mut done = Done::default();
        statements.clear();
        // The load engine's time of an operation is also that of its only statement, unless the
        // operation includes a login.
        let mut sent = (statement_slots.len() > 1 || setup.options.reconnect > 0).then(Instant::now);
        for (ready, &place) in operation.statements().iter().zip(statement_slots.iter()) {
            let answer = match &senders[place].1[ready.table] {
                Sender::Prepared(statement) => connection.execute(*statement, &ready.params).await,
                Sender::Text(template) => {
                    template.write(&ready.params, sql);
                    connection.query(sql).await
                }
            };
            match answer {
                Ok(answer) => {
                    let rows = rows(ready.kind, &answer, *scanned_rows);
                    done.rows += rows;
                    done.received_bytes += answer.bytes;
                    let took = sent.as_mut().map(|sent| {
                        let before = std::mem::replace(sent, Instant::now());
                        sent.duration_since(before)
                    });
                    statements.push(StatementDone { index: place, name: ready.kind.name(), took, rows });
                }
                Err(failure) => {
                    let kind = ready.kind;
                    return Err(self.given_up(kind, failure).await);
                }
            }
        }
        self.answered += 1;
        if setup.options.reconnect > 0 && self.answered.is_multiple_of(setup.options.reconnect) {
            self.connect_again().await?;
        }
        Ok(done)
    }

    fn statements(&self) -> &[StatementDone] {
        &self.done
    }

    async fn close(self) {
        self.connection.close().await;
    }
}

/// Returns the rows that a statement fetched or changed. A scan fetches none, so its rows are those
/// that it read: the whole table.
fn rows(kind: OltpStatement, answer: &Answer, scanned_rows: u64) -> u64 {
    if matches!(kind, OltpStatement::Scan) { scanned_rows } else { answer.rows + answer.affected }
}

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
    /// Parameters of the rows that are ready. Those after them only keep their memory.
    params: Vec<Param>,
    /// The bulk statement, where there is one.
    sql: String,
    /// The INSERT, or the rows of the bulk statement.
    text: Vec<u8>,
}

impl OltpLoadTask {
    /// Returns the task that sends these `statements` of `plan`.
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

    /// Prepares the INSERT of the batch where it is a prepared one, and forgets any other. The
    /// result is whether it is a prepared one.
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

    /// Checks that all rows were taken. Some servers skip rows of a bulk statement that they
    /// refuse, with only a warning.
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
