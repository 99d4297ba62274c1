//! Implements [`Product`] for the null database.

use super::{Null, NullOptions, NullSession, capabilities};
use crate::product::{Connection, Description, LimitedSession, Product};
use crate::{Answer, Capabilities, Result};

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
