//! Errors that keep a known-answer server from starting, and mistakes in its script.

use std::io;
use std::path::PathBuf;

/// An error in the known-answer server itself. The errors that it sends to its clients are
/// programmed and are not of this type.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path} is in use: a server answers there; stop it, or name another socket")]
    SocketInUse { path: PathBuf },
    #[error("{path} exists and is not a socket; name another path")]
    NotASocket { path: PathBuf },
    #[error("cannot listen on {address}: {source}; name another socket or port")]
    Listen { address: String, source: io::Error },
    /// The system does not provide threads, timers or file descriptors.
    #[error("cannot {what}: {source}")]
    System { what: &'static str, source: io::Error },
    /// A CPU does not exist, or this process may not use it.
    #[error("cannot keep the server to CPUs {cpus:?}: {source}; name CPUs that this process may use")]
    Cpus { cpus: Vec<usize>, source: io::Error },
    /// A text in the script cannot be understood.
    #[error("{text:?}: {problem}; write {form}")]
    Text { text: String, problem: String, form: &'static str },
    #[error("{what}; {advice}")]
    Script { what: String, advice: &'static str },
}

impl Error {
    /// The error for a `text` with a `problem`, and the `form` in which the text should be written.
    pub(crate) fn text(text: &str, problem: impl Into<String>, form: &'static str) -> Self {
        Self::Text { text: text.to_owned(), problem: problem.into(), form }
    }
}
