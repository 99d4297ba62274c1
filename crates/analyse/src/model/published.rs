//! Types for figures from a published report, each next to the figure that the run measured.

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

/// A published figure and the measured one. Both are the variant's figure ÷ the base's.
#[derive(Debug, Clone)]
pub struct PublishedRow {
    /// In which it was measured, with its set-up.
    pub workload: Option<String>,
    pub setup: Option<String>,
    /// Name of the base in the published report; `variant` is a name from there too.
    pub base: String,
    pub variant: String,
    /// Name of the step, or of the group of steps with its statistic: `writes: average`.
    pub subject: String,
    pub quantity: Quantity,
    pub published: f64,
    /// `None` where the run did not measure both variants.
    pub measured: Option<f64>,
    /// 95 % interval over the blocks; `None` for one block.
    pub interval: Option<Interval>,
    pub blocks: usize,
    pub agreement: Agreement,
}

/// How near a measured figure must be to a published one, as a fraction of it, to agree.
pub const CLOSE: f64 = 0.10;

/// How a published figure relates to the measured one. It does not judge the two machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// The measured interval is within [`CLOSE`] of the published figure.
    Agrees,
    /// The whole measured interval is farther than [`CLOSE`] from the published figure.
    Contradicts,
    /// The interval neither agrees nor contradicts, or there is no interval.
    TooWide,
    NotMeasured,
}

impl Agreement {
    /// Returns the name that tables for programs have for the agreement.
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
    /// Steps in which the finding was seen. The two fields below count those in which it was not
    /// seen and those that are undecided.
    pub steps_seen: usize,
    pub steps_not_seen: usize,
    pub steps_undecided: usize,
    /// Steps that both variants ran and in which no block is valid for both.
    pub steps_invalid: usize,
}

/// Says whether a published finding shows in the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// The finding shows in more than half of its steps.
    Seen,
    /// The measurements show the opposite in at least as many steps as those that show the finding.
    NotSeen,
    Undecided,
    /// Both variants ran the steps, and none of the steps is valid.
    Invalid,
    /// The run does not have the variants or the steps, so it cannot show the finding.
    CannotBeTried,
}
