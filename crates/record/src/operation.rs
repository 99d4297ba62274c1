//! What operations and statements do, as far as figures depend on it.

use serde::{Deserialize, Serialize};

/// What the operations of a kind do.
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

/// What a statement within an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementClass {
    /// It changes existing rows or inserts some. Outside a transaction it is a commit of its own, if it
    /// has changed a row.
    Write,
    /// It deletes rows, and otherwise counts like [`StatementClass::Write`].
    Delete,
    /// It ends a transaction, which is one commit however many statements it has.
    Commit,
    /// This is no statement: the connection was closed and opened again, as the plan asks.
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
