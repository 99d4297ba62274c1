//! Why a workload's own work beside the clock failed: set-up, cleanup, verification.

use dbdyno_drivers::DbError;

/// The message names the work and what the database said.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{work}: {source}")]
    Database { work: String, source: DbError },
    #[error(
        "the server's local_infile is off, so it takes no rows of load_method = \"stream\": switch it on with SET GLOBAL \
         local_infile = ON, or say load_method = \"insert\""
    )]
    LocalInfileOff,
    #[error(
        "table {table} has {rows} rows with ids up to {greatest}, but the plan says {wanted}: fill the tables \
         (the original's command prepare does), or say how large they are"
    )]
    TooSmall { table: String, rows: i128, greatest: i128, wanted: String },
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
