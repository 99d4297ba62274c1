//! Why findings could not be made.

/// Each message says what was asked for and what there is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the run has no variant named {asked:?} to compare with; its variants are: {}", known.join(", "))]
    UnknownBase { asked: String, known: Vec<String> },
}
