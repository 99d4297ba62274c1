//! Lines of `events.jsonl` of a run: what happened to it, and when.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{CellId, HostInfo, Outcome, ToolInfo};

/// `events.jsonl` of the run. Times are RFC 3339, UTC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// dbdyno began or, with `resumed`, went on with the run; `tool` is the build that did.
    Started {
        at: String,
        resumed: bool,
        tool: ToolInfo,
    },
    /// `elapsed_us`: time that the run has taken so far, by a clock that no one sets and without
    /// the time between being stopped and going on.
    CellStarted {
        at: String,
        cell: CellId,
        elapsed_us: u64,
    },
    /// `elapsed_us` as of [`RunEvent::CellStarted`].
    CellEnded {
        at: String,
        cell: CellId,
        outcome: Outcome,
        message: Option<String>,
        elapsed_us: u64,
    },
    /// A cell that had not ended was set aside by a resume; its folder is `to`, below the run
    /// directory.
    CellSetAside {
        at: String,
        cell: CellId,
        to: String,
    },
    /// All blocks up to `blocks` are over and the run was looked at, to see which variants are
    /// still undecided. `order`: the cells of the next block, or of a fleet's next blocks, in the
    /// order in which they are to run; empty when there is none.
    Look {
        at: String,
        /// Blocks count from 1, so this is how many there are.
        blocks: u32,
        /// As of [`RunEvent::CellStarted`].
        elapsed_us: u64,
        /// There is no time for another block like the last one: this look is the last, whatever it
        /// finds.
        last: bool,
        order: Vec<CellId>,
        /// By workload the steps that the cells of these blocks run; a workload that is not named
        /// runs all of them.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        steps: BTreeMap<String, Vec<String>>,
    },
    /// The machine was left alone between two cells, for as long as the plan says or until the user
    /// ended the run.
    Rested {
        at: String,
        duration_us: u64,
        /// As of [`RunEvent::CellStarted`].
        elapsed_us: u64,
    },
    /// A machine of a fleet has measured a block. The events of its cells are before this one.
    BlockMeasured {
        at: String,
        block: u32,
        /// The fleet's name for it.
        machine: String,
        host: Box<HostInfo>,
    },
    Warning {
        at: String,
        text: String,
    },
    Ended {
        at: String,
        outcome: Outcome,
    },
}

/// What [`RunEvent::Warning`] says of a cell whose load was complete before the run was stopped: it
/// is not repeated, and its figures are only in `aside`. Records hold it as text.
pub fn load_kept(cell: &CellId, aside: &str) -> String {
    format!(
        "the load of {cell} was complete before the run was stopped and is not repeated; its figures are only in {aside}"
    )
}

/// Whether a warning is that of [`load_kept`].
pub fn is_load_kept(warning: &str, cell: &CellId) -> bool {
    warning.starts_with(&load_kept(cell, ""))
}
