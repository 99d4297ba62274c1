//! Types for what a comparison says: the ratio of two rates or times, what several blocks say about
//! it, the verdict, and the reason for an undecided verdict where more blocks cannot decide it.

use serde::Serialize;

use crate::model::TooFewOperations;
use crate::statistics::Interval;

/// Confidence of a ratio's intervals.
pub const CONFIDENCE: f64 = 0.95;

/// False discovery rate that is allowed among reported differences, and among reported
/// equivalences.
pub const LEVEL: f64 = 0.05;

/// What a comparison of a variant with the base says about one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The rates differ, and the ratio is above 1 + margin. For times it is below 1 ÷ (1 + margin).
    Faster,
    /// The rates differ, and the ratio is below 1 ÷ (1 + margin). For times it is above 1 + margin.
    Slower,
    /// The blocks show that the ratio is within the margin.
    Same,
    /// The variant did not keep the background rate that the base kept. Its own rate is faster or
    /// the same, but was measured with fewer concurrent writes. The verdict is also given where the
    /// variant did not keep the schedule of an open loop that the base kept.
    Missed,
    /// The plan sets the rate, and both kept it. Response times can show a difference; rates
    /// cannot.
    OnSchedule,
    /// The variant answered nothing in a block in which the base did, whatever the ratios of other
    /// blocks.
    Stalled,
    /// The blocks show neither a difference nor equivalence. More blocks may decide it.
    Undecided,
    /// There is no block in which both are valid.
    Invalid,
}

impl Verdict {
    /// Returns the verdict's name, as the glossary has it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Same => "same",
            Self::Missed => "missed",
            Self::OnSchedule => "on schedule",
            Self::Stalled => "stalled",
            Self::Undecided => "undecided",
            Self::Invalid => "invalid",
        }
    }
}

impl Verdict {
    /// Turns the verdict on a rate into the verdict on a time. A longer time is slower, so
    /// `Faster` and `Slower` change places.
    pub(crate) fn of_time(self) -> Self {
        match self {
            Self::Faster => Self::Slower,
            Self::Slower => Self::Faster,
            other => other,
        }
    }
}

/// CPU time that other programs took from server and client, where it could explain a difference
/// beyond the margin. Each share is this time ÷ the CPU time that was available to the server or to
/// the client, whichever has fewer CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ForeignLoad {
    pub base_share: f64,
    pub new_share: f64,
}

/// On which side of the measured ratio the true one lies, where one of the two times was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The variant was cut off, so the true ratio is greater.
    MoreThan,
    /// The base was cut off, so the true ratio is less.
    LessThan,
    /// The variant was cut off in some blocks and the base in others, so the side is not known.
    Both,
}

impl Bound {
    /// Returns the bound's name in the machine-readable reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::MoreThan => "more_than",
            Self::LessThan => "less_than",
            Self::Both => "both",
        }
    }

    /// Returns the bound of a mean of ratios from the bounds that some of them have, or `None`
    /// where none has one.
    pub fn of_all(bounds: impl IntoIterator<Item = Self>) -> Option<Self> {
        bounds.into_iter().reduce(|all, next| if all == next { all } else { Self::Both })
    }
}

/// What several blocks say about a ratio beyond its value. All intervals are intervals of ratios.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inference {
    /// 95 % interval by Student's t, on log ratios (paired) or on log rates (Welch, for two runs).
    pub interval: Interval,
    /// Probability of such a difference if there were none (p value).
    pub p_difference: f64,
    /// The same probability, adjusted (Benjamini and Hochberg) over all comparisons that are made
    /// at once.
    pub q_difference: f64,
    /// Probability of so small a difference if the true one were as large as the margin (two
    /// one-sided tests).
    pub p_same: f64,
    /// `p_same`, adjusted as `q_difference` is.
    pub q_same: f64,
    /// The ratio lies within the margin, so no difference is reported whatever its p value.
    #[serde(skip)]
    pub is_within_margin: bool,
    /// `None` for two runs, whose blocks are not paired.
    pub paired: Option<Paired>,
}

/// What only paired blocks can show.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Paired {
    /// Standard deviation of the blocks' log ratios; 0.01 is about 1 %.
    pub deviation: f64,
    /// 95 % interval by the BCa bootstrap. It is too narrow where there are few blocks.
    pub bootstrap: Interval,
    /// Hodges–Lehmann estimate of the ratio, its interval and the interval's exact confidence.
    pub robust_value: f64,
    pub robust_interval: Interval,
    pub robust_confidence: f64,
    /// Smallest ratio above 1 for which a study with this number of blocks reports a difference in
    /// 80 % of cases.
    pub detectable_ratio: f64,
    /// Number of blocks that show a difference of twice the margin in 80 % of studies; `None` for
    /// more than 1,000. It is not given for a difference as large as the margin: half of all
    /// estimates would lie within the margin, however many blocks there are.
    pub blocks_for_twice_margin: Option<u32>,
}

/// Ratio to the base. It is the geometric mean of the ratios per block, over blocks in which both
/// are valid and answered something.
#[derive(Debug, Clone, Serialize)]
pub struct Ratio {
    pub value: f64,
    /// One entry per block, as (block, ratio).
    pub blocks: Vec<(u32, f64)>,
    /// Side of the bound, where some blocks' ratios are only bounds. The value is then a bound too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// What the blocks say about the ratio beyond its value; `None` for one block, for a bound, and
    /// for the base itself.
    pub inference: Option<Inference>,
}

impl Ratio {
    /// Returns the value's 95 % interval, or `None` where there is no `inference`.
    pub fn interval(&self) -> Option<Interval> {
        Some(self.inference.as_ref()?.interval)
    }
}

/// The interim analysis at which a verdict was reached. The verdict holds from then on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Decided {
    /// Number of the interim analysis, counted from 1.
    pub look: u32,
    /// Number of interim analyses in all.
    pub of: u32,
    /// Number of blocks that had ended at this analysis.
    pub blocks: u32,
}

/// The effect of one factor on a step's rate, or the interaction of two factors.
#[derive(Debug, Clone, Serialize)]
pub struct Effect {
    /// Name of the effect: `binlog: on against off`, `binlog on × doublewrite off`.
    pub name: String,
    /// A main effect is the rate at a level ÷ the rate at the base's level, over all combinations
    /// of the other factors. An interaction compares two such ratios of one factor: it is the ratio
    /// where the second factor is changed too, divided by the ratio where the second is as in the
    /// base. 1 means that the factors do not interact.
    pub ratio: Ratio,
    /// Blocks in which all of the effect's variants are valid and one answered nothing. They have
    /// no ratio, and the verdict is at best undecided.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stalled: Vec<u32>,
    /// The effect's variants that did not keep the step's background rate, where others of them
    /// did. Their rates were measured with fewer concurrent writes, and the verdict is at best
    /// undecided.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<String>,
    pub verdict: Option<Verdict>,
}

/// A reason for being undecided that more blocks cannot remove. A new reason needs an entry here, a
/// rule in `compare/verdicts.rs` and words in the report's `words.rs`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Undecided {
    /// One of the two times is shorter than the records' clock resolves, so no ratio is
    /// formed.
    BelowClock,
    /// A window of the base or of the variant holds too few operations. The figures are those of
    /// the window with the fewest.
    TooFewOperations(TooFewOperations),
    /// Other programs took so much CPU time that they may explain the difference.
    ForeignLoad(ForeignLoad),
    /// The base answered nothing in some blocks, and these are in no ratio.
    BaseStalled,
}
