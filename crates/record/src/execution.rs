//! How a server said that it would execute a statement of a step, and one execution of a named
//! piece of work whose time counts by itself: a query of minutes, a refresh function.

use serde::{Deserialize, Serialize};

/// One execution, as its connection saw it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// `q7`, `rf1`
    pub name: String,
    /// The connection, from 1.
    pub client: u32,
    /// From 1: the how manieth of this name on this connection.
    pub repetition: u32,
    pub duration_us: u64,
    /// It was ended at its time limit: it would have taken longer than `duration_us`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
    /// Rows of the answer, or rows changed.
    pub rows: u64,
    /// `None` for work without an answer, and for one that was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerDigest>,
}

/// An answer, so that those of several servers can be compared: the order of rows does not matter,
/// and numbers may differ by what rounding does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnswerDigest {
    /// The sum of the hashes of each row's exact values (texts, whole numbers, dates), in
    /// hexadecimal digits.
    pub exact: String,
    /// For each column of decimal numbers: the sum of its values, each weighted by its row.
    pub sums: Vec<f64>,
    /// What a sum may differ by.
    pub tolerance: f64,
    /// The rows themselves, the first ones of a long answer.
    pub sample: Vec<Vec<Option<String>>>,
}

impl AnswerDigest {
    /// Both are digests of the same answer, within rounding.
    pub fn agrees(&self, other: &Self) -> bool {
        let tolerance = self.tolerance.max(other.tolerance);
        let is_near = |(a, b): (&f64, &f64)| (a - b).abs() <= tolerance + 1e-6 * a.abs().max(b.abs());
        self.exact == other.exact
            && self.sums.len() == other.sums.len()
            && self.sums.iter().zip(&other.sums).all(is_near)
    }
}

/// A server's own explanation of one statement, asked for when the step was over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryPlan {
    /// Name of the statement within the step: `simple-range`
    pub statement: String,
    /// As it was explained, with values for its parameters that are the same in all variants.
    pub sql: String,
    /// What the rows are: `mysql` (EXPLAIN), `postgres` (EXPLAIN (COSTS OFF)), `sqlite` (EXPLAIN
    /// QUERY PLAN); of an execution that counted rows and times, [`QueryPlan::EXECUTED_TREE`] and
    /// [`QueryPlan::EXECUTED_JSON`].
    pub form: String,
    /// As the server said them. Empty with an error.
    pub rows: Vec<Vec<Option<String>>>,
    /// Why there is none: old servers cannot explain statements that write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl QueryPlan {
    /// EXPLAIN ANALYZE of PostgreSQL and MySQL.
    pub const EXECUTED_TREE: &str = "executed-tree";
    /// ANALYZE FORMAT=JSON of MariaDB.
    pub const EXECUTED_JSON: &str = "executed-json";

    /// The statement was executed for it.
    pub fn is_executed(&self) -> bool {
        [Self::EXECUTED_TREE, Self::EXECUTED_JSON].contains(&self.form.as_str())
    }
}
