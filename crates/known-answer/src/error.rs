//! What keeps a known-answer server from starting, and what is wrong with a script.

use std::io;
use std::path::PathBuf;

/// An error of the known-answer server itself. What it sends its clients is programmed, not an
/// error.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path} is in use: a server answers there; stop it, or name another socket")]
    SocketInUse { path: PathBuf },
    #[error("{path} exists and is not a socket; name another path")]
    NotASocket { path: PathBuf },
    #[error("cannot listen on {address}: {source}; name another socket or port")]
    Listen { address: String, source: io::Error },
    /// Threads, timers or file descriptors cannot be had.
    #[error("cannot {what}: {source}")]
    System { what: &'static str, source: io::Error },
    /// A CPU that is not there, or that this process may not use.
    #[error("cannot keep the server to CPUs {cpus:?}: {source}; name CPUs that this process may use")]
    Cpus { cpus: Vec<usize>, source: io::Error },
    /// A text that says how to behave cannot be understood.
    #[error("{text:?}: {problem}; write {form}")]
    Text { text: String, problem: String, form: &'static str },
    #[error("{what}; {advice}")]
    Script { what: String, advice: &'static str },
}

impl Error {
    /// A `text` with a `problem`, and the `form` in which it is written.
    pub(crate) fn text(text: &str, problem: impl Into<String>, form: &'static str) -> Self {
        Self::Text { text: text.to_owned(), problem: problem.into(), form }
    }
}
