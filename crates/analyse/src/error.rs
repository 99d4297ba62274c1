//! The errors that say why findings could not be made.

use crate::model::Difference;

/// Each message says what was asked for and what there is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the run has no variant named {asked:?} to compare with; its variants are: {}", known.join(", "))]
    UnknownBase { asked: String, known: Vec<String> },
    #[error("run {run} has no variant named {asked:?}; its variants are: {}", known.join(", "))]
    UnknownVariant { run: String, asked: String, known: Vec<String> },
    #[error("{variant} would be compared with itself: name two variants, or two runs")]
    WithItself { variant: String },
    /// The report words the differences.
    #[error("the runs are not comparable")]
    NotComparable { differences: Vec<Difference> },
    #[error("the runs have no variant other than the base {base}, so there are no ratios: leave out --ratio")]
    NoRatios { base: String },
    #[error(
        "{base} is the base of the ratios and has none itself: name another variant, or leave out --ratio"
    )]
    RatioOfBase { base: String },
    #[error("a history has two runs or more, not {count}{}: name more runs", also_going_on(*going_on))]
    TooFewRuns { count: usize, going_on: usize },
}

/// The part of the message about runs that a history leaves out.
fn also_going_on(runs: usize) -> String {
    match runs {
        0 => String::new(),
        runs => format!(" (and {runs} still going on, left out until it has ended)"),
    }
}
