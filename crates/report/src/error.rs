//! Errors: what can go wrong while a report is written.

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no report format is called `{name}`; use one of: {known}")]
    UnknownFormat { name: String, known: String },

    #[cfg(feature = "parquet")]
    #[error("{} cannot be written: {reason}; give another folder with --output", path.display())]
    Parquet { path: std::path::PathBuf, reason: String },

    #[error("the run has no step called `{asked}`; its steps: {known}")]
    UnknownStep { asked: String, known: String },
}
