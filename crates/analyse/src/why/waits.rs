//! Splits the time of an operation into what the server did meanwhile: CPU, waiting for a CPU, disk
//! IO, and the waits that the server names. What is left is the rest: the network, the client, and
//! waits without a name.
//!
//! A named wait's time per operation is the mean number of connections that were in it, divided by
//! the operations per second (Little's law). The server was asked once per second.

use dbdyno_record::StepRecord;
use serde::Serialize;

use crate::model::StepRun;
use crate::statistics::describe::mean;
use crate::window::{Hosting, WindowSummary};

/// The source that samples waits, its counter of samples, and what its counters of waits begin with.
const SOURCE: &str = "waits";
const SAMPLES: &str = "samples";
const WAIT: &str = "wait.";

/// Where the time of an operation goes, in microseconds; means over the profile blocks.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TimePerOperation {
    /// The operation's mean service time, as the client saw it.
    pub service_us: f64,
    /// The server's CPU time.
    pub cpu_us: f64,
    /// Time in which the server's threads could have run and had no CPU; `None` where the kernel
    /// does not count it.
    pub run_queue_us: Option<f64>,
    /// Time in which they waited for the disk; `None` where the kernel does not count it.
    pub io_us: Option<f64>,
    /// Waits by the server's names, the longest first.
    pub waits: Vec<NamedWait>,
    /// The service time without all of these.
    pub rest_us: f64,
}

/// A wait that the server names.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NamedWait {
    pub name: String,
    pub us: f64,
}

/// Returns the mean over the blocks. It is `None` for a step with several kinds of operations, with
/// a schedule, or with a time as its figure.
pub(super) fn time_per_operation(usable: &[&(&StepRecord, StepRun)]) -> Option<TimePerOperation> {
    let blocks: Vec<TimePerOperation> = usable.iter().filter_map(|(record, run)| of_block(record, run)).collect();
    let over = |figure: &dyn Fn(&TimePerOperation) -> Option<f64>| {
        mean(&blocks.iter().filter_map(figure).collect::<Vec<f64>>())
    };
    let mut names: Vec<&str> = blocks.iter().flat_map(|block| &block.waits).map(|wait| wait.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let of_wait = |name: &str, block: &TimePerOperation| {
        Some(block.waits.iter().find(|wait| wait.name == name).map_or(0.0, |wait| wait.us))
    };
    let mut waits: Vec<NamedWait> = names
        .into_iter()
        .filter_map(|name| Some(NamedWait { name: name.to_owned(), us: over(&|block| of_wait(name, block))? }))
        .collect();
    waits.sort_by(|one, other| other.us.total_cmp(&one.us));
    Some(TimePerOperation {
        service_us: over(&|block| Some(block.service_us))?,
        cpu_us: over(&|block| Some(block.cpu_us))?,
        run_queue_us: over(&|block| block.run_queue_us),
        io_us: over(&|block| block.io_us),
        waits,
        rest_us: over(&|block| Some(block.rest_us))?,
    })
}

fn of_block(record: &StepRecord, run: &StepRun) -> Option<TimePerOperation> {
    let [spec] = &record.spec.kinds[..] else { return None };
    let kind = run.kind(&spec.kind)?;
    if !spec.is_closed_loop() || record.spec.headline.unit.is_time() || kind.operations_per_second <= 0.0 {
        return None;
    }
    // Costs are per unit of the headline, which may be a row.
    let units = run.rate / kind.operations_per_second;
    let summary = WindowSummary::of(record, Hosting::Process, 0);
    let waits = named(record, &summary, kind.operations_per_second);
    let is_named_io = waits.iter().any(|wait| wait.name.starts_with("IO"));
    let io_us = summary.per_unit(SOURCE, &["io_delay_us"]).filter(|_| !is_named_io).map(|us| units * us);
    let found = TimePerOperation {
        service_us: kind.service.mean_us,
        cpu_us: units * run.cost.server_cpu_us?,
        run_queue_us: run.cost.server_run_delay_us.map(|us| units * us),
        io_us,
        waits,
        rest_us: 0.0,
    };
    let known = found.cpu_us + found.run_queue_us.unwrap_or(0.0) + found.io_us.unwrap_or(0.0);
    let rest_us = found.service_us - known - found.waits.iter().map(|wait| wait.us).sum::<f64>();
    Some(TimePerOperation { rest_us, ..found })
}

/// Returns the server's own waits in the common window.
fn named(record: &StepRecord, summary: &WindowSummary<'_>, operations_per_second: f64) -> Vec<NamedWait> {
    let Some(series) = record.counters.get(SOURCE) else { return Vec::new() };
    let Some(samples) = summary.change(SOURCE, &[SAMPLES]) else { return Vec::new() };
    let wait = |key: &str| {
        // A wait that had not occurred yet has no value in a sample, which means 0.
        let until = |end_us| series.values(key).take_while(|(at_us, _)| *at_us <= end_us).last();
        let value = |end_us| until(end_us).map_or(0, |(_, value)| value);
        let seen = value(samples.between.to_us) - value(samples.between.from_us);
        let us = seen as f64 / samples.value * 1e6 / operations_per_second;
        (us > 0.0).then(|| NamedWait { name: key.trim_start_matches(WAIT).to_owned(), us })
    };
    series.keys().filter(|key| key.starts_with(WAIT)).filter_map(wait).collect()
}
