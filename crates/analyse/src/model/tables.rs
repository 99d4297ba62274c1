//! Tables ready to be drawn in any format.

use serde::Serialize;

use crate::model::verdict::Verdict;
use crate::statistics::Interval;

/// The tables at the top of a report; rows = variants where nothing else is said.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    pub absolute: Table,
    pub relative: Table,
    /// Of a full factorial design: rows = effects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<Table>,
    /// Rows = groups of steps, columns = figures; one for each grouping, and for each number of connections where there are
    /// several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Table>,
    /// Rows = numbers of connections, columns = rates and response times by variant; one for each test on a ladder.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sweeps: Vec<Table>,
    /// Rows = tests that ran before and after the steps that write, columns = variants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aging: Option<Table>,
    /// Background write rate against its target; `None` for a workload without targets.
    pub sla: Option<Table>,
    /// The base against itself; `None` for a run without A/A.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<Table>,
}

/// A table ready to be drawn in any format.
#[derive(Debug, Clone, Serialize)]
pub struct Table {
    pub title: String,
    /// One sentence: what the numbers are, with unit.
    pub caption: String,
    pub columns: Vec<String>,
    pub rows: Vec<TableRow>,
}

#[derive(Debug, Clone, Serialize)]
pub struct TableRow {
    pub label: String,
    /// Grey row that states a target rather than a measurement.
    pub is_target: bool,
    pub cells: Vec<Cell>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Cell {
    /// `None` when there is no valid measurement.
    pub value: Option<f64>,
    /// The value as it is shown; `n/a`, `failed` or `invalid` when there is none.
    pub text: String,
    pub colour: Colour,
    /// 95 % interval of a ratio over several blocks.
    pub interval: Option<Interval>,
    pub verdict: Option<Verdict>,
    /// What the plan wanted kept was not, as the background rate, whatever the colour.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub misses_target: bool,
    /// Why it has that colour or no value, in words, so that colour never stands alone.
    pub note: String,
}

/// Colour rules of the original's report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Colour {
    None,
    /// Within the lowest quarter of the column.
    Red,
    /// Within the highest quarter of the column.
    Green,
    /// The planned rate was not kept: that of background writes, or of an open loop.
    Grey,
    /// More than 5 % above the base.
    Blue,
    /// More than 5 % below the base.
    Yellow,
}
