//! A database that answers at once, or after a fixed delay: the yardstick for what dbdyno itself costs.

use std::time::Duration;

use crate::{
    Answer, Capabilities, Cells, DbError, DeleteForm, IndexDdl, IndexHint, Param, Session, Statement, Upkeep,
};

/// What the null database answers.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Time from request to answer.
    pub delay: Duration,
}

/// One connection to nothing.
#[derive(Debug)]
pub struct NullSession {
    delay: Duration,
    statements: u32,
}

/// A null database wants what MySQL wants, so that a workload builds the same text for it.
pub fn capabilities() -> Capabilities {
    Capabilities {
        auto_key: "bigint not null auto_increment primary key",
        datetime: "datetime",
        table_suffix: String::new(),
        index_hint: IndexHint::Force,
        delete_form: DeleteForm::OrderLimit,
        index_ddl: IndexDdl::OneAlter,
        upkeep: Upkeep::None,
        text_by_default: true,
        blocking: false,
        drops_binlog: false,
        sets_next_key: true,
        stores_data: false,
    }
}

impl NullSession {
    /// A session that answers as `options` say.
    pub fn new(options: &Options) -> Self {
        Self { delay: options.delay, statements: 0 }
    }

    async fn answer(&self) -> Answer {
        if self.delay.is_zero() {
            // Without it a closed loop would never give the runtime a chance to look at its timers.
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(self.delay).await;
        }
        Answer { rows: 1, affected: 1, bytes: 0, warnings: 0 }
    }
}

impl Session for NullSession {
    async fn query(&mut self, _sql: &[u8]) -> Result<Answer, DbError> {
        Ok(self.answer().await)
    }

    async fn prepare(&mut self, sql: &str) -> Result<Statement, DbError> {
        self.statements += 1;
        let params = sql.bytes().filter(|&byte| byte == b'?').count();
        Ok(Statement { id: self.statements, params: u16::try_from(params).unwrap_or(u16::MAX), columns: 1 })
    }

    async fn execute(&mut self, _statement: Statement, _params: &[Param]) -> Result<Answer, DbError> {
        Ok(self.answer().await)
    }

    async fn rows(&mut self, _sql: &str) -> Result<Cells, DbError> {
        Ok(Vec::new())
    }

    async fn close(self) {}
}
