//! Errors in a plan: what is wrong, and where.

use std::fmt;
use std::path::PathBuf;

/// A plan that cannot be used. Every message is one sentence that says what to change. No message
/// holds a password.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read the plan {}: {source}; give the path of a plan file (TOML); `dbdyno init` makes one, `dbdyno plans` lists those that ship", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// The plan's text, or an override of it, is wrong.
    #[error("{location}: {message}")]
    Invalid { location: Location, message: String },
    #[error("the plan of a record cannot be written as TOML: {0}; the record is damaged")]
    Recorded(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A position in the file. Lines and columns count from 1, and a column counts characters, not
    /// bytes.
    File { origin: String, line: usize, column: usize },
    /// An override `--set KEY=VALUE`. Only the key is shown, because the value may be a secret that
    /// was given by mistake.
    Override { key: String },
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { origin, line, column } => write!(f, "{origin}:{line}:{column}"),
            Self::Override { key } => write!(f, "--set {key}"),
        }
    }
}
