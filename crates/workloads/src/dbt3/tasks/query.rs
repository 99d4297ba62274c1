//! A connection that sends queries and refresh functions, each with a time of its own.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use dbdyno_db::Cells;
use dbdyno_loadgen::{ConnectionTask, Done, Failure, Notes};
use dbdyno_record::{ErrorClass, Execution};

use super::{Executed, Ledger};
use crate::connection::{Connection, indispensable};
use crate::dbt3::Dbt3Setup;
use crate::dbt3::queries::{Hint, Query};
use crate::dbt3::rows::{Refresh, delete_orders, insert_orders};
use crate::dbt3::steps::Dbt3Operation;
use crate::dbt3::{answers, rows};

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
    pub(crate) fn new(setup: &Arc<Dbt3Setup>, client: u32, script: Vec<Dbt3Operation>, ledger: Ledger) -> Self {
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
        let answer = Some(answers::digest(number, &cells));
        let execution = Execution { rows: cells.len() as u64, answer, ..Execution::default() };
        let (differing_rows, difference) =
            if self.setup.has_published_answers() { answers::difference(number, &cells) } else { (0, None) };
        Executed { execution, due_rows: 0, differing_rows, difference }
    }

    /// Returns what it means that a query has failed. A step that is one query ends with it. In a step
    /// of many queries the others still run, because refresh functions after it put the rows right.
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
        let is_ordered =
            |operation: &Dbt3Operation| matches!(operation, Dbt3Operation::Query { hint: Hint::Order(_), .. });
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
            Dbt3Operation::Insert { set } => ReadyQuery::Refresh(insert_orders(*set, options.scale_factor, begin)),
            Dbt3Operation::Delete { set } => ReadyQuery::Refresh(delete_orders(*set, options.scale_factor, begin)),
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
