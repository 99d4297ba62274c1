//! The requests to a null database, word for word: shows what a workload sends without a server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Cells, Param};

/// One request, in the order in which requests were sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    Query(String),
    /// A prepared statement's text, at each execution, with its parameters.
    Execute(String, Vec<Param>),
    /// A question outside the hot path.
    Rows(String),
}

/// Shared by all sessions of an endpoint; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Journal {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    requests: Vec<Request>,
    answers: BTreeMap<String, i64>,
}

impl Journal {
    /// From now on the question `sql` outside the hot path is answered with one row of `value`;
    /// without this it is answered with no row.
    pub fn answer(&self, sql: &str, value: i64) {
        self.state().answers.insert(sql.to_owned(), value);
    }

    /// All requests since the last call.
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
