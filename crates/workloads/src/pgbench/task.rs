//! Runs one connection of a step. It draws a script for each transaction, and executes the script's
//! commands.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dbdyno_db::{Answer, Param, Sent, Statement};
use dbdyno_loadgen::{ConnectionTask, Done, Failure, Notes, OperationTimes, StatementDone};
use dbdyno_record::ErrorClass;

use crate::Philox;
use crate::connection::{Connection, of_script};
use crate::pgbench::PgbenchSetup;
use crate::pgbench::options::QueryMode;
use crate::pgbench::random::PgbenchDraws;
use crate::pgbench::script::{Action, Keep, NO_COPY, Piece, Sql};
use crate::pgbench::sources::Scripts;
use crate::pgbench::variables::{Value, Variables, invalid_name, is_name};

/// The code that a session gives to the failure of a COPY that asks for rows.
const REFUSED_COPY: &str = "copy";

/// One command of a script, as a connection keeps it.
#[derive(Debug)]
struct ConnectionCommand {
    /// The name under which its times are counted.
    name: &'static str,
    /// The text, with a placeholder for each variable.
    text: String,
    params: Vec<Param>,
    prepared: Option<Statement>,
}

/// What all connections of a step share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepDraws {
    pub(crate) stream: Philox,
    /// Whether all connections take their transactions from one schedule. What transaction n draws
    /// is then the same whichever connection sends it.
    pub(crate) is_shared: bool,
}

pub struct PgbenchTask {
    setup: Arc<PgbenchSetup>,
    step_draws: StepDraws,
    connection: Connection,
    client: u32,
    draws: PgbenchDraws,
    variables: Variables,
    /// The variables as they were when the transaction began, for another try.
    before: Variables,
    tries: u32,
    transaction: TransactionState,
    /// When the transaction was tried for the first time.
    began: Instant,
    /// When the step's time is over, counted from the first transaction. It is `None` before that,
    /// and in steps without a length.
    ends: Option<Instant>,
    /// Commands by script and command number.
    commands: Vec<Vec<ConnectionCommand>>,
    names: Vec<&'static str>,
    /// Commands that wait for the end of the pipeline.
    pipeline: Option<Vec<(usize, usize)>>,
    text: Vec<u8>,
    done: Vec<StatementDone>,
    /// The rows and bytes of the transaction so far.
    sum: Done,
}

impl PgbenchTask {
    pub(crate) fn new(setup: Arc<PgbenchSetup>, step_draws: StepDraws, client: u32) -> Self {
        let scripts = setup.scripts.as_ref().ok();
        let names = scripts.map(|scripts| Arc::clone(&scripts.names)).unwrap_or_default();
        let mut variables = Variables::new(names);
        setup.give_variables(client, &mut variables);
        let commands = scripts.map_or_else(Vec::new, |scripts| {
            let each = |(script, source): (usize, &super::sources::ScriptSource)| {
                let commands = source.commands.iter().enumerate();
                commands
                    .map(|(command, of)| ConnectionCommand::new(&of.action, &setup, (script, command)))
                    .collect()
            };
            scripts.list.iter().enumerate().map(each).collect()
        });
        Self {
            connection: Connection::new(&setup.context.database_server, "transaction"),
            draws: PgbenchDraws::new(step_draws.stream),
            names: setup.script_names(),
            before: variables.clone(),
            setup,
            step_draws,
            client,
            variables,
            tries: 0,
            transaction: TransactionState::default(),
            began: Instant::now(),
            ends: None,
            commands,
            pipeline: None,
            text: Vec::new(),
            done: Vec::new(),
            sum: Done::default(),
        }
    }

    /// Opens the connection, on which nothing is prepared yet.
    async fn connect(&mut self) -> Result<(), Failure> {
        self.commands.iter_mut().flatten().for_each(|command| command.prepared = None);
        self.connection.open().await
    }

    fn begin(&mut self, number: u64) {
        let client = if self.step_draws.is_shared { 0 } else { self.client };
        self.draws.begin(client, number);
        if self.tries == 0 {
            self.began = Instant::now();
            self.before.copy_from(&self.variables);
        } else {
            self.variables.copy_from(&self.before);
        }
        self.done.clear();
        (self.sum, self.pipeline) = (Done::default(), None);
    }

    async fn transaction(&mut self) -> Result<(), Failure> {
        let setup = Arc::clone(&self.setup);
        let scripts = setup.scripts.as_ref().map_err(of_script)?;
        let began = Instant::now();
        let script = drawn(scripts, &mut self.draws);
        self.transaction.script = script;
        if setup.options.connect {
            self.connect().await?;
            let took = Some(began.elapsed());
            self.done.push(StatementDone { index: 0, name: "connect", took, rows: 0 });
        }
        let source = &scripts.list[script];
        let (mut at, mut has_waited) = (0, false);
        while let Some(command) = source.commands.get(at) {
            has_waited |= matches!(command.action, Action::Sql(_) | Action::Sleep(..));
            match self.act(&command.action, (script, at)).await {
                Ok(to) => at = to.unwrap_or(at + 1),
                Err(failure) => {
                    self.transaction.command = at;
                    let what = if failure.code == REFUSED_COPY { NO_COPY } else { &failure.message };
                    let message = format!("script {}, line {}: {what}", source.given, command.line);
                    return Err(Failure { message, ..failure });
                }
            }
        }
        if self.connection.in_transaction() {
            let message = "its end was reached without completing the last transaction, whose work is not kept; \
                           end it with COMMIT or ROLLBACK";
            return Err(of_script(format!("script {}: {message}", source.given)));
        }
        if !has_waited {
            // The script has not waited for anything, so it gives the thread's other connections a
            // turn.
            tokio::task::yield_now().await;
        }
        if let Some(name) = self.names.get(script).filter(|_| self.names.len() > 1) {
            let took = Some(began.elapsed());
            self.done.push(StatementDone { index: 1 + script, name, took, rows: self.sum.rows });
        }
        if setup.options.connect {
            self.connection.leave().await;
        }
        Ok(())
    }

    /// Executes a command. The result is the index of the command with which the script continues,
    /// or `None` for the next one.
    async fn act(&mut self, action: &Action, position: (usize, usize)) -> Result<Option<usize>, Failure> {
        let began = self.setup.alone.is_some().then(Instant::now);
        match action {
            Action::Set(variable, value) => {
                let value = value.value(&self.variables, &mut self.draws).map_err(of_script)?;
                self.variables.set(*variable, value);
            }
            Action::Unless(condition, to) => {
                let value = condition.value(&self.variables, &mut self.draws).map_err(of_script)?;
                return Ok((!value.is_true()).then_some(*to));
            }
            Action::Jump(to) => return Ok(Some(*to)),
            Action::Sleep(amount, unit_us) => {
                let amount = amount.value(&self.variables, &mut self.draws).and_then(Value::to_int);
                let amount = u64::try_from(amount.map_err(of_script)?).unwrap_or(0);
                self.sleep(Duration::from_micros(amount.saturating_mul(*unit_us))).await;
            }
            Action::StartPipeline => {
                if self.setup.options.protocol == QueryMode::Simple {
                    let needed = "\\startpipeline needs protocol = \"extended\" or \"prepared\"";
                    return Err(of_script(needed));
                }
                self.pipeline = Some(Vec::new());
            }
            Action::SyncPipeline => {
                self.flush(position).await?;
                self.pipeline = Some(Vec::new());
            }
            Action::EndPipeline => self.flush(position).await?,
            Action::Sql(sql) => self.sql(sql, position).await?,
            Action::Nothing => {}
        }
        if let (Action::Set(..) | Action::Sleep(..), Some(began)) = (action, began) {
            self.count(position, began, 0);
        }
        Ok(None)
    }

    /// Sleeps, but only until the step's time is over.
    async fn sleep(&self, amount: Duration) {
        let left = self.ends.map(|end| end.saturating_duration_since(Instant::now()));
        tokio::time::sleep(left.map_or(amount, |left| left.min(amount))).await;
    }

    async fn sql(&mut self, sql: &Sql, position: (usize, usize)) -> Result<(), Failure> {
        let mode = self.setup.options.protocol;
        let command = &mut self.commands[position.0][position.1];
        if mode == QueryMode::Prepared && command.prepared.is_none() {
            command.prepared = Some(self.connection.prepare(&command.text).await?);
        }
        match mode {
            QueryMode::Simple => fill_text(sql, &self.variables, &mut self.text),
            QueryMode::Extended | QueryMode::Prepared => command.fill(sql, &self.variables),
        }
        if let Some(waiting) = &mut self.pipeline {
            waiting.push(position);
            return Ok(());
        }
        let began = Instant::now();
        if let Some(keep) = &sql.keep {
            let text = String::from_utf8_lossy(&self.text);
            let results = self.connection.results(command.sent(mode, &text)).await?;
            let rows = results.iter().map(|result| result.cells.len() as u64).sum();
            self.sum.rows += rows;
            self.count(position, began, rows);
            return keep_rows(keep, &results, &mut self.variables);
        }
        let answer = match (mode, command.prepared) {
            (QueryMode::Simple, _) => self.connection.query(&self.text).await?,
            (QueryMode::Prepared, Some(statement)) => {
                self.connection.execute(statement, &command.params).await?
            }
            _ => self.connection.pipeline(&[Sent::Parsed(&command.text, &command.params)]).await?,
        };
        self.answered(position, began, answer)
    }

    /// Sends what the pipeline holds. Its time counts for the command that ends it.
    async fn flush(&mut self, position: (usize, usize)) -> Result<(), Failure> {
        let waiting = self.pipeline.take().unwrap_or_default();
        if waiting.is_empty() {
            return Ok(());
        }
        let (mode, began) = (self.setup.options.protocol, Instant::now());
        let sent = waiting.iter().map(|&(script, command)| self.commands[script][command].sent(mode, ""));
        let sent: Vec<Sent<'_>> = sent.collect();
        let answer = self.connection.pipeline(&sent).await?;
        self.answered(position, began, answer)
    }

    fn answered(&mut self, position: (usize, usize), began: Instant, answer: Answer) -> Result<(), Failure> {
        if answer.copied_out {
            return Err(of_script(NO_COPY));
        }
        let rows = answer.rows.max(answer.affected);
        self.sum.rows += rows;
        self.sum.received_bytes += answer.bytes;
        self.count(position, began, rows);
        Ok(())
    }

    fn count(&mut self, (script, command): (usize, usize), began: Instant, rows: u64) {
        let name = self.commands[script][command].name;
        let before: usize = self.commands[..script].iter().map(Vec::len).sum();
        let index = 1 + self.commands.len() + before + command;
        self.done.push(StatementDone { index, name, took: Some(began.elapsed()), rows });
    }

    /// Rolls back. If the server refuses ROLLBACK, the next statement shows the session's state.
    async fn roll_back(&mut self) {
        let began = Instant::now();
        if self.connection.query(b"ROLLBACK").await.is_ok() {
            let commands: usize = self.commands.iter().map(Vec::len).sum();
            let index = 1 + self.commands.len() + commands;
            self.done.push(StatementDone { index, name: "rollback", took: Some(began.elapsed()), rows: 0 });
        }
    }

    /// Decides what a failed try means: another try, a failed transaction, or the end of the step.
    async fn judged(&mut self, failure: Failure) -> Failure {
        self.pipeline = None;
        self.tries += 1;
        if failure.class != ErrorClass::Lost {
            self.roll_back().await;
            if self.setup.options.connect {
                self.connection.leave().await;
            }
        }
        let class = match failure.class {
            ErrorClass::Lost => ErrorClass::Lost,
            ErrorClass::Retry if self.may_repeat() => ErrorClass::Retry,
            ErrorClass::Retry => ErrorClass::Refused,
            _ => ErrorClass::Fatal,
        };
        if let Some(alone) = &self.setup.alone {
            alone.listener.failed(&Attempt {
                client: self.client,
                script: self.transaction.script,
                command: self.setup.command_index((self.transaction.script, self.transaction.command)),
                tries: self.tries,
                will_be_retried: class == ErrorClass::Retry,
                is_fatal: matches!(class, ErrorClass::Lost | ErrorClass::Fatal),
                took: self.began.elapsed(),
                message: &failure.message,
            });
            if class == ErrorClass::Refused {
                self.transaction.ending = Some((Ending::Failed(FailureKind::of(&failure)), self.tries - 1));
            }
        }
        if class != ErrorClass::Retry {
            self.tries = 0;
        }
        Failure { class, ..failure }
    }

    /// Returns whether a transaction may be tried again. Outside of a plan it may not be tried
    /// again once its latency limit has passed or the run's time is over.
    fn may_repeat(&self) -> bool {
        let is_late = self.setup.alone.as_ref().is_some_and(|alone| {
            alone.latency_limit.is_some_and(|limit| self.began.elapsed() > limit)
                || self.ends.is_some_and(|end| Instant::now() >= end)
        });
        self.tries < self.setup.options.max_tries && !is_late
    }
}

impl ConnectionCommand {
    fn new(action: &Action, setup: &PgbenchSetup, position: (usize, usize)) -> Self {
        let name = setup.command_name(position);
        let Action::Sql(sql) = action else {
            return Self { name, text: String::new(), params: Vec::new(), prepared: None };
        };
        let mut params = Vec::new();
        let mut text = String::new();
        for piece in &sql.pieces {
            match piece {
                Piece::Text(literal) => text.push_str(literal),
                Piece::Variable(_) => {
                    params.push(Param::Null);
                    match setup.options.protocol {
                        QueryMode::Extended => text.push_str(&format!("${}", params.len())),
                        QueryMode::Simple | QueryMode::Prepared => text.push('?'),
                    }
                }
            }
        }
        Self { name, text, params, prepared: None }
    }

    /// Fills parameters from variables. A variable without a value becomes NULL.
    fn fill(&mut self, sql: &Sql, variables: &Variables) {
        let indexes = sql.pieces.iter().filter_map(|piece| match piece {
            Piece::Variable(index) => Some(*index),
            Piece::Text(_) => None,
        });
        for (param, index) in self.params.iter_mut().zip(indexes) {
            match variables.param(index) {
                Some(number) => *param = Param::Int(number),
                None => {
                    let mut has_value = false;
                    param.set_text(|text| has_value = variables.write(index, text));
                    if !has_value {
                        *param = Param::Null;
                    }
                }
            }
        }
    }

    fn sent<'a>(&'a self, mode: QueryMode, text: &'a str) -> Sent<'a> {
        match (mode, self.prepared) {
            (QueryMode::Simple, _) => Sent::Text(text),
            (QueryMode::Prepared, Some(statement)) => Sent::Prepared(statement, &self.params),
            _ => Sent::Parsed(&self.text, &self.params),
        }
    }
}

/// Returns the script of a transaction, which is its first draw.
fn drawn(scripts: &Scripts, draws: &mut PgbenchDraws) -> usize {
    if scripts.list.len() == 1 {
        return 0;
    }
    scripts.chosen(draws.uniform(0, scripts.weights() as i64 - 1) as u64)
}

/// Writes the statement with values for its variables. A variable without a value stays in the text
/// as `:name`.
fn fill_text(sql: &Sql, variables: &Variables, text: &mut Vec<u8>) {
    text.clear();
    for piece in &sql.pieces {
        match piece {
            Piece::Text(literal) => text.extend_from_slice(literal.as_bytes()),
            Piece::Variable(index) => {
                if !variables.write(*index, text) {
                    text.push(b':');
                    text.extend_from_slice(variables.name(*index).as_bytes());
                }
            }
        }
    }
}

/// Gives variables the values of columns, for `\gset` and `\aset`.
fn keep_rows(keep: &Keep, results: &[dbdyno_db::Rows], variables: &mut Variables) -> Result<(), Failure> {
    let first = if keep.all { 0 } else { results.len().saturating_sub(1) };
    if results.is_empty() && !keep.all {
        return Err(of_script("\\gset: the statement has no result"));
    }
    for result in &results[first..] {
        if !keep.all && result.cells.len() != 1 {
            return Err(of_script(format!("\\gset: expected one row, got {}", result.cells.len())));
        }
        let Some(row) = result.cells.last() else { continue };
        for (column, cell) in result.columns.iter().zip(row) {
            let name = format!("{}{column}", keep.prefix);
            if !is_name(&name) {
                return Err(of_script(invalid_name(&name)));
            }
            variables.set_text(&name, cell.as_deref().unwrap_or(""));
        }
    }
    Ok(())
}

impl ConnectionTask for PgbenchTask {
    async fn open(&mut self) -> Result<(), Failure> {
        if self.setup.options.connect {
            return Ok(());
        }
        self.connect().await
    }

    async fn prepare(&mut self, _number: u64, _notes: &mut Notes) -> Result<(), Failure> {
        // The first transaction is prepared when the clock starts, however late it is due.
        if let (None, Some(length)) = (self.ends, self.setup.options.length()) {
            self.ends = Instant::now().checked_add(length);
        }
        Ok(())
    }

    async fn perform(&mut self, number: u64) -> Result<Done, Failure> {
        self.begin(number);
        match self.transaction().await {
            Ok(()) => {
                self.transaction.ending = Some((Ending::Done, self.tries));
                self.tries = 0;
                Ok(self.sum)
            }
            Err(failure) => Err(self.judged(failure).await),
        }
    }

    fn timed(&mut self, times: OperationTimes) {
        if let Some(alone) = &self.setup.alone {
            self.transaction.report_ended(&*alone.listener, self.client, times);
            // In pgbench's report a script's time begins when its transaction was due, and includes
            // all tries.
            let script = 1 + self.transaction.script;
            if let Some(own) = self.done.iter_mut().find(|done| done.index == script) {
                own.took = Some(Duration::from_nanos(times.ended_ns.saturating_sub(times.scheduled_ns)));
            }
        }
    }

    fn skipped(&mut self, numbers: Range<u64>) {
        let (Some(alone), Ok(scripts)) = (&self.setup.alone, &self.setup.scripts) else { return };
        // Only a schedule that all connections share skips transactions, so the draws are those of
        // client 0.
        self.draws.begin(0, numbers.end);
        let script = drawn(scripts, &mut self.draws);
        self.transaction.skip(&*alone.listener, self.client, numbers.end - numbers.start, script);
    }

    fn statements(&self) -> &[StatementDone] {
        &self.done
    }

    async fn close(self) {
        self.connection.close().await;
    }
}

/// Receives the outcome of transactions. Load threads make the calls, and transactions wait until
/// they return.
pub trait Listener: Send + Sync {
    /// Returns whether the listener also wants the transactions that succeeded at the first try.
    fn wants_all(&self) -> bool;
    /// Reports that a try failed. [`Listener::ended`] follows unless the transaction is repeated.
    fn failed(&self, attempt: &Attempt<'_>);
    fn ended(&self, transaction: &Transaction);
    /// Reports transactions that were late and are not sent. At a high rate one call may report
    /// millions.
    fn skipped(&self, skipped: &Skipped);
}

/// Why a transaction failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    Serialization,
    Deadlock,
    /// Another failure after which the server asks to try again.
    Other,
}

impl FailureKind {
    pub(crate) fn of(failure: &Failure) -> Self {
        match failure.code.as_str() {
            "40001" => Self::Serialization,
            "40P01" => Self::Deadlock,
            _ => Self::Other,
        }
    }
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Done,
    Failed(FailureKind),
}

/// One try of a transaction, which failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt<'a> {
    pub client: u32,
    pub script: usize,
    /// Index among the commands of [`crate::pgbench::ScriptInfo`].
    pub command: usize,
    /// Number of the try, from 1.
    pub tries: u32,
    pub will_be_retried: bool,
    /// Whether the error ends the run.
    pub is_fatal: bool,
    /// Time since the beginning of the first try.
    pub took: Duration,
    pub message: &'a str,
}

/// A transaction that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transaction {
    pub client: u32,
    /// Number of the transaction among those of this client, from 1.
    pub number: u64,
    pub script: usize,
    pub ending: Ending,
    pub retries: u32,
    pub times: OperationTimes,
}

/// Transactions that follow each other and were not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skipped {
    pub client: u32,
    /// Number of the first one among those of this client, from 1.
    pub first: u64,
    pub count: u64,
    /// The script of the transaction that is sent after them. It stands for the scripts of all of
    /// them, as in the original.
    pub script: usize,
}

/// What a connection knows about its transactions, for the listener.
#[derive(Debug, Default)]
pub(crate) struct TransactionState {
    pub(crate) script: usize,
    pub(crate) command: usize,
    /// Transactions that have ended.
    ended: u64,
    /// How the transaction that was tried last has ended, and its retries. It is `None` while the
    /// transaction is repeated, and after one that ended the run.
    ending: Option<(Ending, u32)>,
}

impl TransactionState {
    /// Reports the transaction that was tried last, if it has ended.
    fn report_ended(&mut self, listener: &dyn Listener, client: u32, times: OperationTimes) {
        let Some((ending, retries)) = self.ending.take() else { return };
        self.ended += 1;
        if listener.wants_all() || retries > 0 || ending != Ending::Done {
            let (number, script) = (self.ended, self.script);
            listener.ended(&Transaction { client, number, script, ending, retries, times });
        }
    }

    /// Reports `count` transactions that are not sent.
    pub(crate) fn skip(&mut self, listener: &dyn Listener, client: u32, count: u64, script: usize) {
        listener.skipped(&Skipped { client, first: self.ended + 1, count, script });
        self.ended += count;
    }
}
