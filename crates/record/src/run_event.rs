//! Lines in a run's `events.jsonl`: what happened to the run, and when.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{CellId, HostInfo, Outcome, ToolInfo};

/// An event in the run's `events.jsonl`. Times are RFC 3339, UTC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// dbdyno began the run or, with `resumed`, continued it. `tool` is the build that did so.
    Started {
        at: String,
        resumed: bool,
        tool: ToolInfo,
    },
    /// A cell began. `elapsed_us` is the time that the run has taken so far. It comes from a clock that
    /// no one sets, and leaves out the time between being stopped and being resumed.
    CellStarted {
        at: String,
        cell: CellId,
        elapsed_us: u64,
    },
    /// A cell ended. `elapsed_us` is as in [`RunEvent::CellStarted`].
    CellEnded {
        at: String,
        cell: CellId,
        outcome: Outcome,
        message: Option<String>,
        elapsed_us: u64,
    },
    /// A resume set aside a cell that had not ended. Its folder is now `to`, below the run directory.
    CellSetAside {
        at: String,
        cell: CellId,
        to: String,
    },
    /// All blocks up to `blocks` are over, and dbdyno checked which variants are still undecided.
    /// `order` has the cells of the next block, or of a fleet's next blocks, in the order in which they
    /// are to run. It is empty when there is no next block.
    Look {
        at: String,
        /// Number of the last block so far. Blocks count from 1, so this is also how many there are.
        blocks: u32,
        /// As in [`RunEvent::CellStarted`].
        elapsed_us: u64,
        /// Whether there is no time for another block like the last one. This check is then the last,
        /// whatever it finds.
        last: bool,
        order: Vec<CellId>,
        /// For each workload, the steps that the cells of these blocks run. A workload that is not
        /// named runs all of its steps.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        steps: BTreeMap<String, Vec<String>>,
    },
    /// The machine was left idle between two cells, for as long as the plan says or until the user
    /// ended the run.
    Rested {
        at: String,
        duration_us: u64,
        /// As in [`RunEvent::CellStarted`].
        elapsed_us: u64,
    },
    /// A machine of a fleet has measured a block. The events of the block's cells come before this one.
    BlockMeasured {
        at: String,
        block: u32,
        /// The fleet's name for the machine.
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

/// Returns the text of a [`RunEvent::Warning`] about a cell whose load was complete before the run was
/// stopped. The load is not repeated, and its figures are only in `aside`. Records hold it as text.
pub fn load_kept(cell: &CellId, aside: &str) -> String {
    format!(
        "the load of {cell} was complete before the run was stopped and is not repeated; its figures are only in {aside}"
    )
}

/// Returns whether a warning is that of [`load_kept`].
pub fn is_load_kept(warning: &str, cell: &CellId) -> bool {
    warning.starts_with(&load_kept(cell, ""))
}
