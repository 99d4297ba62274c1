//! Published figures next to the measured ones.

use dbdyno_model::Quantity;
use serde::Serialize;

use crate::statistics::Interval;

/// A published report compared with the run.
#[derive(Debug, Clone, Serialize)]
pub struct PublishedComparison {
    pub title: String,
    pub author: String,
    pub year: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sponsor: Option<String>,
    pub machine: String,
    #[serde(skip)]
    pub rows: Vec<PublishedRow>,
    pub findings: Vec<FindingSeen>,
}

/// A published figure and the measured one: the variant's ÷ the base's.
#[derive(Debug, Clone)]
pub struct PublishedRow {
    /// In which it was measured, with its set-up.
    pub workload: Option<String>,
    pub setup: Option<String>,
    /// Their names in the published report.
    pub base: String,
    pub variant: String,
    /// Name of the step, or of the group of steps with its statistic: `writes: average`.
    pub subject: String,
    pub quantity: Quantity,
    pub published: f64,
    /// `None` where the run has no such pair.
    pub measured: Option<f64>,
    /// 95 %, over the blocks; `None` for one block.
    pub interval: Option<Interval>,
    pub blocks: usize,
    pub agreement: Agreement,
}

/// How near a measured figure must be to a published one, as a fraction of it, to agree.
pub const CLOSE: f64 = 0.10;

/// How a published figure is to the measured one. It is no verdict between machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// The measured interval is within [`CLOSE`] of the published figure.
    Agrees,
    /// The whole interval is farther from it.
    Contradicts,
    /// Neither, or there is no interval.
    TooWide,
    NotMeasured,
}

impl Agreement {
    /// Its word in tables for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Contradicts => "contradicts",
            Self::TooWide => "too_wide",
            Self::NotMeasured => "not_measured",
        }
    }
}

/// A finding of a published report, looked for in the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FindingSeen {
    pub says: String,
    pub seen: Seen,
    /// Steps in which it was seen, was not, and which are undecided.
    pub steps_seen: usize,
    pub steps_not_seen: usize,
    pub steps_undecided: usize,
    /// Steps that both ran and in which no block is valid on both sides.
    pub steps_invalid: usize,
}

/// Whether a published finding shows in the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// In more than half of its steps.
    Seen,
    /// It is shown not to be so in as many steps as it is seen in, or more.
    NotSeen,
    Undecided,
    /// Both variants ran its steps, and none is valid.
    Invalid,
    /// The run lacks the variants or the steps.
    CannotBeTried,
}
