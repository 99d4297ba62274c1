//! The null database, which answers at once or after a fixed delay. It measures what dbdyno itself
//! costs.

mod affected;
mod journal;
mod product;

use std::time::Duration;

pub use self::NullOptions as Options;
pub use journal::{Journal, Request};

use affected::Affected;

use crate::product::Product;
use crate::products::Usual;
use crate::{Answer, Capabilities, Cells, Param, Result, Session, Statement};

#[derive(Debug)]
pub(crate) struct Null;

#[derive(Debug, Clone, Default)]
pub struct NullOptions {
    /// Time from request to answer.
    pub delay: Duration,
    /// Records every request, for tests. It makes the load path slower.
    pub journal: Option<Journal>,
}

#[derive(Debug)]
pub struct NullSession {
    options: NullOptions,
    /// Texts of the prepared statements, and the rows that they change. A statement's number counts
    /// from 1.
    statements: Vec<(String, Affected)>,
}

/// The null database wants the same SQL as the usual product, so that a workload builds the same
/// text for it.
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
            // Without this a closed loop would never let the runtime check its timers.
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
}
