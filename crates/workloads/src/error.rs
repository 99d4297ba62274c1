//! The errors of a workload's work outside the measured windows: set-up, checks, cleanup and
//! verification.

use dbdyno_db::DbError;

/// Each message says what the workload did and what the database answered, or what to change.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{work}: {source}")]
    Database { work: String, source: DbError },
    #[error(
        "table {table} has {rows} rows with ids up to {highest}, but the plan says {wanted}: fill the tables \
         (the original's command prepare does), or set their size in the plan"
    )]
    TooSmall { table: String, rows: i128, highest: i128, wanted: String },
    #[error(
        "table {table} was to be made with engine {asked} and has {found}: the server does not have that engine, and its sql_mode lacks \
         NO_ENGINE_SUBSTITUTION, so that it took another one without an error; load the engine's plugin, or name an engine of \
         its SHOW ENGINES"
    )]
    Substituted { table: String, asked: String, found: String },
    #[error(
        "table {table} has engine {found}, but the plan says {asked} (the default is innodb), so cleanup would treat the table as {asked}; \
         set options.engine = \"{found}\" in the variant"
    )]
    OtherEngine { table: String, asked: String, found: String },
    #[error("this product cannot force an index: leave out `indexes` or the variant")]
    NoIndexHints,
    #[error("{work}: the database answered {answer:?}, which is not a valid answer to the statement")]
    Answer { work: String, answer: String },
    #[error(
        "the check {sql} failed before step {step}: {name} is {found}, but the plan expects {expected}; correct the data, or set at = \"after\" \
         if it holds only then"
    )]
    Check { step: String, sql: String, name: String, found: i128, expected: i128 },
    #[error("script {script}: {message}")]
    Script { script: String, message: String },
    /// The state that a snapshot restores cannot be read as this workload's state.
    #[error(
        "the state stored with the data's snapshot does not belong to this workload: {0}; start a new run"
    )]
    SavedState(String),
}

impl Error {
    /// Returns a function for `map_err`. It adds to the database's error the work that was being
    /// done.
    pub(crate) fn during(work: impl Into<String>) -> impl FnOnce(DbError) -> Self {
        let work = work.into();
        move |source| Self::Database { work, source }
    }
}
