//! Why a workload's own work beside the clock failed: set-up, cleanup, verification.

use dbdyno_drivers::DbError;

/// The message names the work and what the database said.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{work}: {source}")]
    Database { work: String, source: DbError },
    #[error("{work}: the database answered {answer:?}, which is not what the statement asks for")]
    Answer { work: String, answer: String },
    #[error("what is kept with the snapshot of the data is not of this workload: {0}; start a new run")]
    Knowledge(String),
}

impl Error {
    /// For `map_err`: what was being done when the database said no.
    pub(crate) fn during(work: impl Into<String>) -> impl FnOnce(DbError) -> Self {
        let work = work.into();
        move |source| Self::Database { work, source }
    }
}
