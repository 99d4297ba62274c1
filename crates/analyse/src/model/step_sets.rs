//! Steps taken together: groups, sweeps over connections, and tests before and after writes.

use serde::Serialize;

use crate::model::verdict::Bound;

use crate::statistics::{Interval, describe};

/// The relative rates of one variant in the steps of one group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupFindings {
    /// Name of the grouping: `2024`
    pub grouping: String,
    /// `point, part 1`
    pub group: String,
    /// Number of connections, where the steps ran with several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    pub variant: String,
    /// The ratios are of times: below 1 is faster.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub less_is_better: bool,
    /// Steps whose ratios are in the figures, with these ratios.
    pub steps: Vec<(String, f64)>,
    /// Those of them whose ratios are only bounds, because of a time limit: `> 3.1`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<(String, Bound)>,
    /// Steps of the group without a ratio, without that of all blocks because one of the two
    /// answered nothing in some, and those whose rate is the plan's.
    pub without: Vec<String>,
    /// `None` when no step has a ratio.
    pub figures: Option<describe::Group>,
    /// 95 % interval of the geometric mean over the blocks; `None` for one block, for bounds, and
    /// where not all steps have the same blocks.
    pub interval: Option<Interval>,
}

impl GroupFindings {
    /// Of the ratio of this step; of the means of all of them without a name.
    pub fn bound(&self, step: Option<&str>) -> Option<Bound> {
        let of = |(name, bound): &(String, Bound)| step.is_none_or(|step| name == step).then_some(*bound);
        Bound::of_all(self.bounds.iter().filter_map(of))
    }

    pub fn lowest(&self) -> Option<&str> {
        self.steps.iter().min_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name.as_str())
    }

    pub fn highest(&self) -> Option<&str> {
        self.steps.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name.as_str())
    }
}

/// A test that ran with several numbers of connections.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sweep {
    /// The steps' common name: `read-only` of `read-only.c1`, `read-only.c2`, ...
    pub test: String,
    /// `transactions/s`
    pub rate_label: String,
    /// Ascending.
    pub connections: Vec<u32>,
    /// Names of the steps, a rung each.
    pub steps: Vec<String>,
    pub variants: Vec<SweepVariant>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SweepVariant {
    pub variant: String,
    /// As many as there are rungs; `None` without a valid run.
    pub rungs: Vec<Option<SweepPoint>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SweepPoint {
    /// The step's: the median over the valid blocks.
    pub median_rate: f64,
    /// Response times of the headline's kind, all valid blocks together; `None` where nothing was
    /// answered.
    pub mean_us: Option<f64>,
    pub p50_us: Option<f64>,
    pub p95_us: Option<f64>,
    pub p99_us: Option<f64>,
    pub max_us: Option<f64>,
    pub blocks: usize,
    pub spread: SweepSpread,
}

/// The least and the greatest of the valid blocks; `None` for one block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct SweepSpread {
    pub rate: Option<Interval>,
    pub p50_us: Option<Interval>,
    pub p95_us: Option<Interval>,
    pub p99_us: Option<Interval>,
}

/// The load and the building of its indexes together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadWithIndexes {
    /// Names of the two steps.
    pub load: String,
    pub index: String,
    pub variants: Vec<LoadVariant>,
}

/// Rows a second of one variant over both steps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadVariant {
    pub variant: String,
    /// Median over the blocks in which both are valid.
    pub rate: Option<f64>,
    /// To the base in the same block; the geometric mean.
    pub ratio: Option<f64>,
    /// 95 %; `None` for one block.
    pub interval: Option<Interval>,
}

/// A test that ran before the steps that write and after them, on the same rung.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BeforeAfterWrites {
    /// Name of the step before them: `point-query.pre.c16`
    pub before: String,
    /// Name of the step after them: `point-query.c16`
    pub after: String,
    pub connections: u32,
    pub variants: Vec<BeforeAfterVariant>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BeforeAfterVariant {
    pub variant: String,
    /// Rate after ÷ rate before, in the same block; the geometric mean over the blocks. `None`
    /// where no block has both.
    pub ratio: Option<f64>,
    /// One for each block in which both are valid and answered something, as (block, ratio).
    pub blocks: Vec<(u32, f64)>,
    /// 95 %, paired by block; `None` for one block.
    pub interval: Option<Interval>,
    /// Blocks in which both are valid and one answered nothing.
    pub without: Vec<u32>,
}
