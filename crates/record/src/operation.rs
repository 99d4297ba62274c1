//! What operations and statements do, as far as figures depend on it.

use serde::{Deserialize, Serialize};

/// What the operations of a kind do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationClass {
    /// They fetch rows by one statement.
    Query,
    /// They read all rows of a table.
    Scan,
    /// They bring rows.
    Insert,
    Delete,
    /// They build indexes over rows that are there.
    Index,
    /// Anything else, such as transactions of several statements.
    #[default]
    Other,
}

/// What a statement within an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementClass {
    /// It changes rows that are there, or brings some: a commit of its own outside of a
    /// transaction, if it has changed a row.
    Write,
    /// As [`StatementClass::Write`], which takes rows away.
    Delete,
    /// It ends a transaction, which is one commit however many statements it has.
    Commit,
    /// No statement: the connection was closed and opened again, as the plan asks.
    Reconnect,
    /// It changes nothing.
    Other,
}

impl StatementClass {
    /// By its name in records.
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
