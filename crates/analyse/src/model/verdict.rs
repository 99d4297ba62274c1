//! What a comparison says: the ratio of two rates or times, what several blocks say of it, and the
//! verdict.

use serde::Serialize;

use crate::statistics::Interval;

/// Confidence of the intervals of ratios.
pub const CONFIDENCE: f64 = 0.95;

/// False discovery rate: of reported differences, and of reported equivalences.
pub const LEVEL: f64 = 0.05;

/// What a comparison of a variant with the base says of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The rates differ, and the ratio is above 1 + margin; of times, below 1 ÷ (1 + margin).
    Faster,
    /// The rates differ, and the ratio is below 1 ÷ (1 + margin); of times, above 1 + margin.
    Slower,
    /// The ratio was shown to be within the margin.
    Same,
    /// It did not keep the background rate that the base kept: its rate, which is not slower, has
    /// fewer concurrent writes. Or it did not keep the schedule of an open loop that the base kept.
    Missed,
    /// The rate is the plan's, and both kept it: response times can tell what rates cannot.
    Paced,
    /// It answered nothing in a block in which the base did, whatever the ratio of the others.
    Stalled,
    /// Neither was shown: more blocks may tell.
    Undecided,
    /// There is no block in which both are valid.
    Invalid,
}

impl Verdict {
    /// The word of the glossary.
    pub fn word(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Same => "same",
            Self::Missed => "missed",
            Self::Paced => "paced",
            Self::Stalled => "stalled",
            Self::Undecided => "undecided",
            Self::Invalid => "invalid",
        }
    }
}

impl Verdict {
    /// The word for a time, from that for a rate: more is worse.
    pub(crate) fn of_time(self) -> Self {
        match self {
            Self::Faster => Self::Slower,
            Self::Slower => Self::Faster,
            other => other,
        }
    }
}

/// Other programs that took CPU time from server and client, enough to explain a difference beyond
/// the margin: of the CPU time that these could have had, the part of others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ForeignLoad {
    pub base_share: f64,
    pub new_share: f64,
}

/// On which side of a ratio the true one lies, where one of the two times was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The variant was cut off: the ratio is greater.
    MoreThan,
    /// The base was cut off: the ratio is less.
    LessThan,
    /// The variant was cut off in some blocks and the base in others: nothing is known of the side.
    Both,
}

impl Bound {
    /// Its word in tables for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::MoreThan => "more_than",
            Self::LessThan => "less_than",
            Self::Both => "both",
        }
    }

    /// Of a mean of ratios of which some have these bounds; `None` where none has.
    pub fn of_all(bounds: impl IntoIterator<Item = Self>) -> Option<Self> {
        bounds.into_iter().reduce(|all, next| if all == next { all } else { Self::Both })
    }
}

/// What several blocks say of a ratio beyond its value. All intervals are of ratios.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inference {
    /// 95 %, by Student's t on log ratios (paired) or log rates (Welch, for two runs).
    pub interval: Interval,
    /// Probability of such a difference if there were none.
    pub p_difference: f64,
    /// The same, adjusted (Benjamini and Hochberg) over all comparisons that are made at once.
    pub q_difference: f64,
    /// Probability of so small a difference if it were as great as the margin (two one-sided
    /// tests).
    pub p_same: f64,
    pub q_same: f64,
    /// The ratio lies inside the margin, so no difference is reported whatever its p.
    #[serde(skip)]
    pub is_within_margin: bool,
    /// `None` for two runs, which have no pairs.
    pub paired: Option<Paired>,
}

/// What only blocks in pairs can tell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Paired {
    /// Standard deviation of the blocks' log ratios; 0.01 is about 1 %.
    pub deviation: f64,
    /// 95 %, by the BCa bootstrap; too narrow for few blocks.
    pub bootstrap: Interval,
    /// Hodges–Lehmann estimate of the ratio, its interval and the interval's exact confidence.
    pub robust_value: f64,
    pub robust_interval: Interval,
    pub robust_confidence: f64,
    /// A ratio so far above 1 gets its verdict from as many blocks as these in 80 % of studies.
    pub detectable_ratio: f64,
    /// Blocks that tell a difference of twice the margin in 80 % of studies; `None` for more than
    /// 1,000. Of one as great as the margin itself half of all estimates lie within it, however
    /// many blocks there are.
    pub blocks_for_twice_margin: Option<u32>,
}

/// Ratio to the base: geometric mean of the per-block ratios of blocks in which both are valid and
/// answered something.
#[derive(Debug, Clone, Serialize)]
pub struct Ratio {
    pub value: f64,
    /// One per block, as (block, ratio).
    pub blocks: Vec<(u32, f64)>,
    /// Some of the blocks' ratios are only bounds, on this side, and so is the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// What the blocks say beyond the value; `None` for one block, for a bound, and for the base
    /// itself.
    pub inference: Option<Inference>,
}

impl Ratio {
    /// The 95 % interval of the value; `None` where there is no `inference`.
    pub fn interval(&self) -> Option<Interval> {
        Some(self.inference.as_ref()?.interval)
    }
}

/// The look at which a verdict was reached. It holds from then on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Decided {
    /// Counted from 1.
    pub look: u32,
    /// Looks in all.
    pub of: u32,
    /// Blocks that were over at this look.
    pub blocks: u32,
}

/// What one factor, or two together, do to the rate of a step.
#[derive(Debug, Clone, Serialize)]
pub struct Effect {
    /// `binlog: on against off`, `binlog on × doublewrite off`
    pub name: String,
    /// Main effect: the rate at a level ÷ the rate at the base's level, over all combinations of
    /// the other factors. Interaction: by what the ratio of the one factor changes when the other
    /// changes too; 1 = they do not meet.
    pub ratio: Ratio,
    /// Blocks in which all of its variants are valid and one answered nothing: they have no ratio,
    /// and the verdict is at best undecided.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stalled: Vec<u32>,
    /// Its variants that did not keep the step's background rate, where others of them did: their
    /// rates have fewer concurrent writes, and the verdict is at best undecided.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<String>,
    pub verdict: Option<Verdict>,
}
