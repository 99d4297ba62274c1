//! Queries whose time counts by itself within a step, and figures over all of them.

use dbdyno_record::AnswerDigest;
use serde::Serialize;

/// Figures over all queries in a step. Their names are our own, because they are not comparable
/// with published TPC-H results.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Composite {
    /// Number of queries, without refresh functions.
    pub queries: usize,
    /// Geometric mean of the times of all executions, including refresh functions.
    pub geometric_mean_seconds: f64,
    /// Number of queries ÷ the step's time.
    pub queries_per_hour: f64,
    /// Executions that ended at their time limit. They make the mean too low.
    pub cut_off: usize,
}

/// One execution of a query or of a refresh function.
#[derive(Debug, Clone, Serialize)]
pub struct Execution {
    /// Name of the query or refresh function: `q7`, `rf1`.
    pub name: String,
    /// Number of the connection, counted from 1.
    pub client: u32,
    /// How often this name has run on this connection, counted from 1.
    pub repetition: u32,
    pub seconds: f64,
    /// The execution ended at its time limit, and would have taken longer.
    pub cut_off: bool,
    pub rows: u64,
    #[serde(skip)]
    pub answer: Option<AnswerDigest>,
}
