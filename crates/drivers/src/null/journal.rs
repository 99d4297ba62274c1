//! What a null database was asked, word for word: shows what a workload sends without a server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Cells, Param};

/// One request, in the order in which requests were sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
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
    asked: Vec<Asked>,
    answers: BTreeMap<String, i64>,
}

impl Journal {
    /// From now on the question `sql` outside the hot path is answered with one row of `value`;
    /// without this it is answered with no row.
    pub fn answer(&self, sql: &str, value: i64) {
        self.state().answers.insert(sql.to_owned(), value);
    }

    /// Everything asked since the last call.
    pub fn take(&self) -> Vec<Asked> {
        std::mem::take(&mut self.state().asked)
    }

    pub(super) fn write(&self, asked: Asked) {
        self.state().asked.push(asked);
    }

    pub(super) fn rows(&self, sql: &str) -> Cells {
        let mut state = self.state();
        state.asked.push(Asked::Rows(sql.to_owned()));
        let value = state.answers.get(sql);
        value.map_or_else(Vec::new, |value| vec![vec![Some(value.to_string())]])
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
