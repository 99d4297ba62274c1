//! Defines the classes of operations and statements, on which figures depend. It also defines the
//! records of how a server executed them. One is the server's plan for a statement. The other is an
//! execution of a named piece of work that is timed on its own, such as a query of minutes or a
//! refresh function.

use serde::{Deserialize, Serialize};

/// The class of the operations of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationClass {
    /// The operations fetch rows with one statement.
    Query,
    /// The operations read all rows of a table.
    Scan,
    /// The operations insert rows.
    Insert,
    Delete,
    /// The operations build indexes over existing rows.
    Index,
    /// The operations do anything else, such as transactions of several statements.
    #[default]
    Other,
}

/// The class of a statement within an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementClass {
    /// It changes existing rows or inserts some. Outside a transaction it is a commit of its own, if it
    /// has changed a row.
    Write,
    /// It deletes rows, and otherwise counts like [`StatementClass::Write`].
    Delete,
    /// It ends a transaction, which is one commit however many statements it has.
    Commit,
    /// This is no statement. The connection was closed and opened again, as the plan requires.
    Reconnect,
    /// It changes nothing.
    Other,
}

impl StatementClass {
    /// Returns the class of a statement, by its name in records.
    pub fn of(statement: &str) -> Self {
        match statement {
            "insert" | "index-update" | "non-index-update" | "list-update" => Self::Write,
            "delete" => Self::Delete,
            "commit" => Self::Commit,
            "reconnect" => Self::Reconnect,
            _ => Self::Other,
        }
    }
}

/// One execution, as its connection saw it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// Name of the work, such as `q7` or `rf1`.
    pub name: String,
    /// The connection, from 1.
    pub client: u32,
    /// Number of this execution among those with the same name on this connection, from 1.
    pub repetition: u32,
    pub duration_us: u64,
    /// Whether it was ended at its time limit. It would then have taken longer than `duration_us`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
    /// Rows of the answer, or rows changed.
    pub rows: u64,
    /// `None` for work without an answer, and for work that was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerDigest>,
}

/// A digest of an answer, so that the answers of several servers can be compared. The order of rows
/// does not matter, and numbers may differ by rounding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnswerDigest {
    /// The sum of the hashes of each row's exact values (texts, whole numbers, dates), in hexadecimal
    /// digits.
    pub exact: String,
    /// For each column of decimal numbers: the sum of its values, each weighted by its row.
    pub sums: Vec<f64>,
    /// How much a sum may differ from the same sum of another server.
    pub tolerance: f64,
    /// The rows themselves, or the first ones of a long answer.
    pub sample: Vec<Vec<Option<String>>>,
}

impl AnswerDigest {
    /// Returns whether both are digests of the same answer, within rounding.
    pub fn agrees(&self, other: &Self) -> bool {
        let tolerance = self.tolerance.max(other.tolerance);
        let is_near = |(a, b): (&f64, &f64)| (a - b).abs() <= tolerance + 1e-6 * a.abs().max(b.abs());
        self.exact == other.exact
            && self.sums.len() == other.sums.len()
            && self.sums.iter().zip(&other.sums).all(is_near)
    }
}

/// A server's own explanation of one statement. dbdyno queries it when the step is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryPlan {
    /// Name of the statement within the step, such as `simple-range`.
    pub statement: String,
    /// The statement as it was explained. The values for its parameters are the same in all variants.
    pub sql: String,
    /// The form of the rows: `mysql` (EXPLAIN), `postgres` (EXPLAIN (COSTS OFF)) or `sqlite` (EXPLAIN
    /// QUERY PLAN). For an execution that counted rows and times it is [`QueryPlan::EXECUTED_TREE`] or
    /// [`QueryPlan::EXECUTED_JSON`].
    pub form: String,
    /// The rows as the server gave them. They are empty with an error.
    pub rows: Vec<Vec<Option<String>>>,
    /// Why there is no explanation, for example because old servers cannot explain statements that
    /// write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl QueryPlan {
    /// EXPLAIN ANALYZE of PostgreSQL and MySQL.
    pub const EXECUTED_TREE: &str = "executed-tree";
    /// ANALYZE FORMAT=JSON of MariaDB.
    pub const EXECUTED_JSON: &str = "executed-json";

    /// Returns whether the statement was executed for the explanation.
    pub fn is_executed(&self) -> bool {
        [Self::EXECUTED_TREE, Self::EXECUTED_JSON].contains(&self.form.as_str())
    }
}
