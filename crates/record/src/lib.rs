//! Defines the run directory, where a run keeps everything that it measures, with its types, a
//! writer and a reader. A format version freezes the types.
//!
//! This crate alone describes the files that a run leaves. The writer only appends, and syncs at
//! the end of each step. It never stores a rate, a ratio or a percentile: `analyse` computes those.

mod calibration;
mod checksum;
mod counters;
mod error;
mod event;
mod histogram;
mod interval;
mod layout;
mod lines;
mod manifest;
mod operation;
pub mod parallel;
mod plausible;
mod reader;
mod sum;
mod writer;

pub use calibration::{CalibratedHost, ClientCalibration, ClientRate, HostCalibration, LimitedBy};
pub use counters::{CounterHeader, CounterLine, CounterSeries};
pub use error::Error;
pub use event::{
    CellEvent, Check, CheckPart, ClientHost, ConnectionClass, ErrorClass, Headline, KindSpec, Outcome,
    Profiled, RunEvent, SETTLING, Settling, SettlingSample, StepEvent, StepSpec, Target, Throttled, Unit, WindowRule,
    is_load_kept, load_kept,
};
pub use histogram::{Clock, HistogramSpan, statement_kind};
pub use interval::{ErrorCounts, Interval, WindowCut};
pub use layout::small_text;
pub use manifest::{
    CellId, Deviation, HostInfo, Manifest, ServerInfo, ToolInfo, VariantInfo, WorkloadInfo,
    workload_and_setup,
};
pub use operation::{AnswerDigest, Execution, OperationClass, QueryPlan, StatementClass};
pub use reader::{CellRecord, Run, StepRecord, has_not_begun, is_written, last_event};
pub use writer::{CellWriter, CounterWriter, RunWriter, StepWriter};

/// Version of everything in a run directory. It increases with any change that an older reader
/// would misread.
pub const FORMAT_VERSION: u32 = 1;

/// Highest number of lost and reopened connections that a step records one by one. This is enough
/// for every connection to be lost and opened again once. The intervals count all of them.
pub const MOST_OUTAGE_EVENTS: u32 = 10_000;

#[cfg(test)]
mod tests;
