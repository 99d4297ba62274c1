//! The parts of a plan that shape its report: prose, sections, and published figures to show next
//! to the measured ones.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use crate::plan::demand;

/// The report's own words, in Markdown. What is left out is drafted from the findings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Report {
    /// Title of the page; the plan's name when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Author of the report that the plan follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Year of that report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub year: Option<u32>,
    /// Who paid for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sponsor: Option<String>,
    /// What was found, in a few sentences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The machine and how it was prepared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Where the original and others can be found: words or addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
    /// Differences between the plan and the report that it follows, one sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deviations: Vec<String>,
    /// Text on a step or a section, by its name or title.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub notes: BTreeMap<String, String>,
    /// Figures that were published: a TOML file, relative to the plan, or what it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<Published>,
    /// What colours ratios in tables.
    #[serde(skip_serializing_if = "Colours::are_by_verdict")]
    pub colours: Colours,
    /// The size that the plan was read in, and its rules; set by `--size`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
}

impl Report {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What decides about the colour of a ratio.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Colours {
    /// Faster and slower are coloured, and nothing else is.
    #[default]
    Verdict,
    /// As in published reports: 0.95 and less is red, 1.05 and more green, what is between grey.
    Threshold,
}

impl Colours {
    fn are_by_verdict(&self) -> bool {
        *self == Self::Verdict
    }
}

/// A part of the report with tables of its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = needs_title)]
pub struct Section {
    pub title: String,
    /// The variant that the others of the section are compared with; its first one when left out.
    pub base: Option<String>,
    /// Names of variants; all when left out.
    pub variants: Vec<String>,
    /// Names of set-ups; all when left out.
    pub setups: Vec<String>,
    /// Names or patterns of steps (`qr*`); all when left out.
    pub steps: Vec<String>,
    /// Markdown above its tables.
    pub text: Option<String>,
}

fn needs_title(schema: &mut Schema) {
    demand(schema, "title");
}

/// Where published figures come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "published is the path of a file of figures")]
pub enum Published {
    File(PathBuf),
    /// What the file holds, as records keep it.
    Figures(Box<PublishedFigures>),
}

/// Figures of a published report. A value is that of the variant ÷ that of the base.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishedFigures {
    pub title: String,
    pub author: String,
    pub year: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sponsor: Option<String>,
    /// The machine on which the figures were measured.
    pub machine: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<StepFigures>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupFigures>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<PublishedFinding>,
}

/// Ratios of one pair of variants, by step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepFigures {
    pub base: String,
    pub variant: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    #[serde(default)]
    pub quantity: Quantity,
    pub values: BTreeMap<String, f64>,
}

/// The measured quantity whose values are divided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Operations per second.
    #[default]
    Rate,
    /// CPU time of the machine per operation.
    Cpu,
    /// KiB read for an operation.
    ReadKb,
    /// Wall time of a query: less is better.
    Seconds,
    /// 99th percentile of the response times.
    P99,
}

/// Statistics of the relative rates of the steps of each group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupFigures {
    /// Name of the grouping, as `2024`.
    pub grouping: String,
    pub base: String,
    pub variant: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    pub average: BTreeMap<String, f64>,
    pub median: BTreeMap<String, f64>,
    pub min: BTreeMap<String, f64>,
    pub max: BTreeMap<String, f64>,
    pub stddev: BTreeMap<String, f64>,
}

/// A finding of the published report, in dbdyno's words, and the condition by which a run shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishedFinding {
    pub says: String,
    pub base: String,
    pub variant: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// Names or patterns of the steps that it is about.
    pub steps: Vec<String>,
    #[serde(default)]
    pub quantity: Quantity,
    pub is: Relation,
    /// The ratio that it is above, below or the same as; 1 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub than: Option<f64>,
}

/// How the variant is to the base in a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Relation {
    Above,
    Below,
    Same,
}

/// A size of the plan. All keys of a plan may be in it, and are laid over the plan's; `variant` and
/// `setup` are tables by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PlanSize {
    /// For which machine it is, and by which rules it was scaled.
    pub about: String,
}
