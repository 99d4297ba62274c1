//! Steps taken together, by the groups of published reports.

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
