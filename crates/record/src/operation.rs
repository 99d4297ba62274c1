//! What operations and statements do, as far as figures depend on it.

use serde::{Deserialize, Serialize};

use crate::{KindSpec, StepSpec, Unit, recorded_before};

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

impl OperationClass {
    /// What the rate of a kind counts that is not the step's headline.
    pub fn unit(self) -> Unit {
        if self == Self::Query { Unit::Operations } else { Unit::Rows }
    }
}

impl KindSpec {
    /// What its operations do.
    pub fn class(&self) -> OperationClass {
        self.class.unwrap_or_else(|| recorded_before::class_of(&self.kind))
    }

    /// They write, so that each of them commits.
    pub fn writes(&self) -> bool {
        let changes_rows = matches!(self.class(), OperationClass::Insert | OperationClass::Delete);
        self.user_bytes_per_operation > 0.0 || changes_rows
    }
}

impl StepSpec {
    /// What the operations of `kind` do.
    pub fn class_of(&self, kind: &str) -> OperationClass {
        let known = self.kinds.iter().find(|known| known.kind == kind);
        known.map_or_else(|| recorded_before::class_of(kind), KindSpec::class)
    }

    /// What the operations do that the step's figure counts.
    pub fn headline_class(&self) -> OperationClass {
        self.class_of(&self.headline.kind)
    }
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
