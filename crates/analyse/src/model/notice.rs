//! What a reader must know before the figures.

use std::fmt;

use serde::Serialize;

/// One warning of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Notice {
    /// What it is about, for programs: `cell-failed`, `one-block`.
    pub code: &'static str,
    pub severity: Severity,
    /// One or more sentences.
    pub text: String,
}

/// What a warning does to the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Figures are missing or must not be used.
    Invalid,
    /// Figures hold; something else must be known to read them.
    Caution,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
