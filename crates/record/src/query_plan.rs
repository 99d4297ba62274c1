//! How a server said that it would execute a statement of a step.

use serde::{Deserialize, Serialize};

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
    #[serde(default)]
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
