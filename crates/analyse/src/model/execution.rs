//! Work within a step whose time counts by itself.

use dbdyno_record::AnswerDigest;
use serde::Serialize;

/// Figures over all queries that a step executed, under names of our own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Composite {
    /// Queries without refresh functions.
    pub queries: usize,
    /// Of the seconds of all executions, refresh functions too.
    pub geometric_mean_seconds: f64,
    /// All queries ÷ the step's time.
    pub queries_per_hour: f64,
    /// Executions that were ended at their time limit: the mean is too low by them.
    pub cut_off: usize,
}

/// One execution of a query or of a refresh function.
#[derive(Debug, Clone, Serialize)]
pub struct Execution {
    /// `q7`, `rf1`
    pub name: String,
    /// The connection, from 1.
    pub client: u32,
    /// Of its name on its connection, from 1.
    pub repetition: u32,
    pub seconds: f64,
    /// It was ended at its time limit, and would have taken longer.
    pub cut_off: bool,
    pub rows: u64,
    #[serde(skip)]
    pub answer: Option<AnswerDigest>,
}
