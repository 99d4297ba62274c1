//! A journal of all requests to a null database, word for word. It shows what a workload sends
//! without a server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Cells, Param};

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
    /// Without this it returns no row.
    pub fn answer(&self, sql: &str, value: i64) {
        self.state().answers.insert(sql.to_owned(), value);
    }

    /// Returns all requests since the last call.
    pub fn take(&self) -> Vec<Request> {
        std::mem::take(&mut self.state().requests)
    }

    pub(super) fn write(&self, request: Request) {
        self.state().requests.push(request);
    }

    pub(super) fn rows(&self, sql: &str) -> Cells {
        let mut state = self.state();
        state.requests.push(Request::Rows(sql.to_owned()));
        let value = state.answers.get(sql);
        value.map_or_else(Vec::new, |value| vec![vec![Some(value.to_string())]])
    }

    fn state(&self) -> MutexGuard<'_, JournalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
