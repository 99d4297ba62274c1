//! The null database answers at once or after a fixed delay. A run on it shows the cost of dbdyno
//! itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use self::NullOptions as Options;
use crate::product::{Connection, Description, LimitedSession, Product};
use crate::products::Usual;
use crate::{Answer, Capabilities, Cells, Param, Result, Session, Statement};

#[derive(Debug)]
pub(crate) struct Null;

#[derive(Debug, Clone, Default)]
pub struct NullOptions {
    /// Time from request to answer.
    pub delay: Duration,
    /// The journal that records every request, for tests. It makes the load path slower.
    pub journal: Option<Journal>,
}

#[derive(Debug)]
pub struct NullSession {
    options: NullOptions,
    /// Texts of the prepared statements, and how many rows each affects. A statement's number is
    /// its position here, counted from 1.
    statements: Vec<(String, Affected)>,
}

/// The null database gets the same SQL as a MySQL server, so that a workload does the same work to
/// build it.
pub fn capabilities() -> Capabilities {
    Capabilities {
        engine: None,
        table_suffix: String::new(),
        stores_data: false,
        foreign: None,
        ..Usual::capabilities("innodb", false)
    }
}

impl NullSession {
    pub fn new(options: &NullOptions) -> Self {
        Self { options: options.clone(), statements: Vec::new() }
    }

    /// Accepts the rows of a bulk statement, one per line. A journal gets them after the
    /// statement's text.
    pub async fn load_rows(&mut self, sql: &str, rows: &[u8]) -> Answer {
        if let Some(journal) = &self.options.journal {
            journal.write(Request::Query(format!("{sql}\n{}", String::from_utf8_lossy(rows))));
        }
        let lines = rows.iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.answer(lines).await
    }

    async fn answer(&self, affected: u64) -> Answer {
        if self.options.delay.is_zero() {
            // Without this yield, a closed loop would never let the runtime check its timers.
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(self.options.delay).await;
        }
        Answer { rows: 1, affected, ..Answer::default() }
    }
}

impl Session for NullSession {
    async fn query(&mut self, sql: &[u8]) -> Result<Answer> {
        if let Some(journal) = &self.options.journal {
            journal.write(Request::Query(String::from_utf8_lossy(sql).into_owned()));
        }
        Ok(self.answer(Affected::of(sql).with(&[])).await)
    }

    async fn prepare(&mut self, sql: &str) -> Result<Statement> {
        self.statements.push((sql.to_owned(), Affected::of(sql.as_bytes())));
        let id = u32::try_from(self.statements.len()).unwrap_or(u32::MAX);
        let params = sql.bytes().filter(|&byte| byte == b'?').count();
        let asks = sql.get(..6).is_some_and(|verb| verb.eq_ignore_ascii_case("SELECT"));
        Ok(Statement { id, params: u16::try_from(params).unwrap_or(u16::MAX), columns: asks.into() })
    }

    async fn execute(&mut self, statement: Statement, params: &[Param]) -> Result<Answer> {
        let prepared = self.statements.get((statement.id as usize).saturating_sub(1));
        if let Some(journal) = &self.options.journal {
            let sql = prepared.map(|(sql, _)| sql.clone()).unwrap_or_default();
            journal.write(Request::Execute(sql, params.to_vec()));
        }
        let affected = prepared.map_or(1, |(_, affected)| affected.with(params));
        Ok(self.answer(affected).await)
    }

    async fn rows(&mut self, sql: &str) -> Result<Cells> {
        Ok(self.options.journal.as_ref().map_or_else(Vec::new, |journal| journal.rows(sql)))
    }

    async fn close(self) {}
}

impl Connection for NullSession {
    async fn load_rows(&mut self, sql: &str, rows: &[u8]) -> Result<Answer> {
        Ok(self.load_rows(sql, rows).await)
    }
}

impl Product for Null {
    const NAME: &'static str = "null";
    const ABOUT: &'static str = "answers at once; shows what dbdyno itself costs";
    const TABLES: &'static str = "";

    type Options = NullOptions;
    type Session = NullSession;

    fn capabilities(_engine: &str, _owned: bool) -> Capabilities {
        capabilities()
    }

    async fn connect(options: &NullOptions) -> Result<NullSession> {
        Ok(NullSession::new(options))
    }

    async fn describe(_session: &mut LimitedSession<'_, Self>) -> Result<Description> {
        let name = Self::NAME.to_owned();
        Ok(Description { product: name.clone(), engine: name, ..Description::default() })
    }
}

/// The word VALUES is looked for in this many bytes, so an INSERT's column list must be shorter.
const HEAD_MAX: usize = 512;

/// How many rows a statement affects, as far as its text says so before it is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Affected {
    Rows(u64),
    /// The last parameter is the maximum number of rows.
    LastParam,
}

impl Affected {
    /// Derives the count from a statement's text. Text values in a row must not contain a
    /// parenthesis, because each opening one counts as a row. The workloads' values contain none.
    fn of(sql: &[u8]) -> Self {
        let from_values = || {
            let head = &sql[..sql.len().min(HEAD_MAX)];
            let values = head.windows(6).position(|word| word.eq_ignore_ascii_case(b"VALUES"));
            values.map(|at| &sql[at..])
        };
        match sql.get(..6) {
            Some(verb) if verb.eq_ignore_ascii_case(b"INSERT") => {
                let rows = from_values().map_or(1, |rows| rows.iter().filter(|&&byte| byte == b'(').count());
                Self::Rows(rows as u64)
            }
            Some(verb) if verb.eq_ignore_ascii_case(b"DELETE") => Self::limited(sql),
            _ => Self::Rows(1),
        }
    }

    /// Reads `... LIMIT 100` or `... LIMIT ?`.
    fn limited(sql: &[u8]) -> Self {
        let Some((word, number)) = std::str::from_utf8(sql).ok().and_then(|sql| sql.rsplit_once("LIMIT "))
        else {
            return Self::Rows(1);
        };
        match (word.is_empty(), number.trim_end_matches(')')) {
            (false, "?") => Self::LastParam,
            (_, number) => Self::Rows(number.parse().unwrap_or(1)),
        }
    }

    /// Returns the count for an execution with `params`.
    fn with(self, params: &[Param]) -> u64 {
        match (self, params.last()) {
            (Self::Rows(rows), _) => rows,
            (Self::LastParam, Some(Param::Int(limit))) => u64::try_from(*limit).unwrap_or(0),
            (Self::LastParam, _) => 1,
        }
    }
}

/// One request, in the order of sending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    Query(String),
    /// A prepared statement's text and its parameters, once for each execution.
    Execute(String, Vec<Param>),
    /// A query outside the measured load.
    Rows(String),
}

/// A journal that all sessions on one server share. It is cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Journal {
    state: Arc<Mutex<JournalState>>,
}

#[derive(Debug, Default)]
struct JournalState {
    requests: Vec<Request>,
    answers: BTreeMap<String, i64>,
}

impl Journal {
    /// Makes the query `sql` outside the measured load return one row with `value` from now on.
    /// Without this call it returns no row.
    pub fn answer(&self, sql: &str, value: i64) {
        self.state().answers.insert(sql.to_owned(), value);
    }

    /// Returns all requests since the last call.
    pub fn take(&self) -> Vec<Request> {
        std::mem::take(&mut self.state().requests)
    }

    fn write(&self, request: Request) {
        self.state().requests.push(request);
    }

    fn rows(&self, sql: &str) -> Cells {
        let mut state = self.state();
        state.requests.push(Request::Rows(sql.to_owned()));
        let value = state.answers.get(sql);
        value.map_or_else(Vec::new, |value| vec![vec![Some(value.to_string())]])
    }

    fn state(&self) -> MutexGuard<'_, JournalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn a_journal_holds_all_requests_in_order_and_answers_look_ups() {
        let journal = Journal::default();
        let mut session =
            NullSession::new(&NullOptions { journal: Some(journal.clone()), ..NullOptions::default() });
        journal.answer("SELECT 1", 7);
        session.query(b"DELETE").await.unwrap();
        let statement = session.prepare("INSERT ?").await.unwrap();
        session.execute(statement, &[Param::Int(3)]).await.unwrap();
        assert_eq!(crate::first_i64(&session.rows("SELECT 1").await.unwrap()), Some(7));
        assert!(session.rows("SELECT 2").await.unwrap().is_empty());
        let expected = [
            Request::Query("DELETE".into()),
            Request::Execute("INSERT ?".into(), vec![Param::Int(3)]),
            Request::Rows("SELECT 1".into()),
            Request::Rows("SELECT 2".into()),
        ];
        assert_eq!(journal.take(), expected);
        assert!(journal.take().is_empty());
    }

    #[test]
    fn inserts_affect_the_rows_in_their_text_and_deletes_their_limit() {
        let rows = |sql: &str, params: &[Param]| Affected::of(sql.as_bytes()).with(params);
        assert_eq!(rows("INSERT INTO t (a,b) VALUES (?,?),(?,?),(?,?)", &[Param::Int(7)]), 3);
        assert_eq!(rows("INSERT INTO t(k, c, pad) VALUES(1, 'a', 'b')", &[]), 1);
        let columns = "column_with_a_long_name, ".repeat(10);
        assert_eq!(rows(&format!("insert into t ({columns}z) values {}(1)", "(1),".repeat(99)), &[]), 100);
        assert_eq!(rows("DELETE FROM t WHERE a >= 5 ORDER BY a ASC LIMIT 250", &[]), 250);
        assert_eq!(
            rows("DELETE FROM t WHERE a >= ? ORDER BY a ASC LIMIT ?", &[Param::Int(5), Param::Int(40)]),
            40
        );
        let nested = "DELETE FROM t WHERE a IN (SELECT a FROM t WHERE a >= 5 ORDER BY a ASC LIMIT 30)";
        assert_eq!(rows(nested, &[]), 30);
        assert_eq!(rows("DELETE FROM t WHERE id=?", &[Param::Int(9)]), 1);
        assert_eq!(rows("UPDATE t SET k=k+1 WHERE id=4", &[]), 1);
        assert_eq!(rows("BEGIN", &[]), 1);
    }
}
