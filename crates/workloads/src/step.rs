//! Makes steps from options. A workload's options give a list of its steps, and plans, forecasts
//! and the work around steps follow from that list.

use std::ops::Deref;
use std::time::Duration;

use dbdyno_loadgen::Arrivals;
use dbdyno_plan::{Forecast, Rest, Size, StepEstimate, StepOutline, WorkloadOptions, grouped, numbered};
use dbdyno_record::{Headline, KindSpec, OperationClass, StepSpec, Unit, WindowRule};
use serde_json::{Map, Value, json};

use crate::options::Verify;
use crate::settle::{Settle, SettleAfter};
use crate::workload::capped;
use crate::{Context, Philox};

/// A step of a workload: its outline, which plans use, and its kind, which only the workload uses.
#[derive(Debug, Clone, PartialEq)]
pub struct Step<K> {
    pub outline: StepOutline,
    pub kind: K,
}

impl<K> Deref for Step<K> {
    type Target = StepOutline;

    fn deref(&self) -> &StepOutline {
        &self.outline
    }
}

/// Options from which the steps of a workload are made.
pub trait StepOptions: WorkloadOptions {
    /// The part of a step that only the workload itself uses.
    type Kind;

    /// What `prepare` makes ready before the first step, as the forecast names it.
    const PREPARED: &'static str = "server and tables";

    /// Returns the steps in their order.
    fn list(&self) -> Vec<Step<Self::Kind>>;

    /// Returns how the server is brought to rest, with every option of `settle`.
    fn settling(&self) -> Settle;

    /// Returns the original's own pause, counted from the start of cleanup.
    fn original_wait(&self) -> Duration {
        Duration::ZERO
    }

    fn data_size(&self, size: &Size) -> DataSize;

    /// Returns when the tables are read, which row of `figures.toml` says how long a row takes, and
    /// how many rows there are. The result is `None` where a forecast counts no such time.
    fn checks(&self) -> Option<(Verify, &'static str, u64)> {
        None
    }
}

/// How long a measured step is: a time, or a number of operations over all its connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunLength {
    pub(crate) warmup: Duration,
    /// Length without the warm-up.
    pub(crate) time: Duration,
    /// Factor of the length after which the step is cut off.
    pub(crate) time_cap: f64,
    /// Number of operations, in place of a time.
    pub(crate) operations: Option<u64>,
}

/// The row of `figures.toml` for one operation of any kind.
pub(crate) const OPERATION: &str = "operation";

impl RunLength {
    /// Returns a step of a sweep, named `STEM.c16`, or with a rate `STEM.c16.r5000`.
    pub(crate) fn outline(
        self,
        stem: &str,
        (connections, rate): (u32, Option<u32>),
        detail: &str,
    ) -> StepOutline {
        let rate = rate.map_or_else(String::new, |rate| format!(".r{rate}"));
        let name = format!("{stem}.c{connections}{rate}");
        let Some(operations) = self.operations else {
            let length = self.warmup.saturating_add(self.time);
            let outline = StepOutline::new(StepEstimate::new(&name, detail, length));
            let time_cap = Some(capped(length, self.time_cap));
            return StepOutline { warmup: self.warmup, time_cap, ..outline };
        };
        let estimate = StepEstimate::new(&name, detail, Duration::ZERO);
        StepOutline::new(estimate.and(OPERATION, operations as f64, connections))
    }
}

/// Bytes that a workload takes on a kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataSize {
    /// Bytes that the server brings to rest after the load.
    pub settled: u64,
    /// Bytes of the data directory after the load.
    pub loaded: u64,
    /// Bytes of the data directory at its largest.
    pub disk: u64,
}

/// What a workload was made from, for the work that is the same for all workloads.
pub struct WorkloadParts<'a, O: StepOptions> {
    pub options: &'a O,
    pub context: &'a Context,
    pub steps: &'a [Step<O::Kind>],
}

impl<O: StepOptions> WorkloadParts<'_, O> {
    /// Returns whether the tables are read after step `index`.
    pub(crate) fn is_checked(&self, index: usize) -> bool {
        self.steps[index].is_checked && self.context.stores_data()
    }

    /// Returns whether the server is brought to rest after step `index`. It is never brought to
    /// rest after the last one.
    pub(crate) fn settles_after(&self, index: usize) -> bool {
        let after = self.options.settling().after_steps();
        index + 1 < self.steps.len()
            && match self.steps[index].rest {
                Rest::Never => false,
                Rest::EachWrite => after == Some(SettleAfter::EachWrite),
                Rest::Always(_) => after.is_some(),
            }
    }
}

/// Keeps only those checks of [`Verify::EachStep`] that `verify` asks for.
pub(crate) fn checked<K>(mut steps: Vec<Step<K>>, verify: Verify) -> Vec<Step<K>> {
    let count = steps.len();
    for (index, Step { outline, .. }) in steps.iter_mut().enumerate() {
        outline.is_checked = verify.holds(outline.is_checked, index + 1 == count);
    }
    steps
}

/// Returns `steps` marked as the steps of a load, which only make the data. The server comes to
/// rest after the last one.
pub(crate) fn load_steps<K>(mut steps: Vec<Step<K>>) -> Vec<Step<K>> {
    steps.iter_mut().for_each(|step| step.outline.loads = true);
    if let Some(last) = steps.last_mut() {
        last.outline.rest = Rest::Always("after the load".to_owned());
    }
    steps
}

/// Returns the steps of `options` as plans see them.
pub(crate) fn outlines(options: &impl StepOptions) -> Vec<StepOutline> {
    options.list().into_iter().map(|step| step.outline).collect()
}

/// Returns the steps of `options` with the work between them.
pub(crate) fn forecast<O: StepOptions>(options: &O, size: &Size) -> Forecast {
    let DataSize { settled, loaded, disk } = options.data_size(size);
    let (settle, outlines) = (options.settling(), options.steps());
    let mut steps = vec![StepEstimate::of_work("prepare", O::PREPARED, "server started", 1.0)];
    // The forecast of later blocks finds the rest after the load by this name, and may leave it
    // out.
    let mut name = "settle";
    for step in &outlines {
        steps.push(step.estimate.clone());
        if let (Rest::Always(place), Some(_)) = (&step.rest, settle.after_steps()) {
            steps.push(settle.forecast(name, place, options.original_wait(), settled));
            name = "settle again";
        }
    }
    if let Some((verify, figure, rows)) = options.checks().filter(|(verify, ..)| *verify != Verify::Off) {
        let is_found = !outlines.iter().any(|step| step.loads);
        let times = match verify {
            // Tables that exist already are read once before the first step.
            Verify::EachStep => {
                outlines.iter().filter(|step| step.is_checked).count() + usize::from(is_found)
            }
            Verify::End | Verify::Off => 1,
        };
        let detail = format!("{} of {} rows", numbered(times, "check"), grouped(rows));
        steps.push(StepEstimate::of_work("verify", &detail, figure, rows as f64 * times as f64));
    }
    Forecast { steps, disk_bytes: disk, loaded_bytes: loaded }
}

/// The most clients as which connections are recorded. More would make records long and add no
/// information.
const MOST_CLIENTS: u32 = 64;
/// The fewest clients as which more than [`MOST_CLIENTS`] connections are recorded.
const MIN_CLIENTS: u32 = 16;

/// Returns the stream of draws of step `name`. The draws depend on the step's name, so that adding
/// a step to a plan or removing one leaves the other steps as they are.
pub(crate) fn stream(name: &str, seed: u64) -> Philox {
    Philox::new(seed, fnv1a(name.as_bytes()))
}

/// Returns the 32-bit FNV-1a hash (Fowler, Noll and Vo).
pub(crate) fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Returns how many clients `connections` are recorded as. Up to 64 connections are one client
/// each. More of them form 16 to 64 groups of the same size, where their number can be divided in
/// this way. The connections of a schedule are one client.
pub(crate) fn clients(connections: u32, rate: Option<u32>) -> u32 {
    if rate.is_some() {
        return 1;
    }
    if connections <= MOST_CLIENTS {
        return connections;
    }
    let divides = |count: &u32| connections.is_multiple_of(*count);
    (MIN_CLIENTS..=MOST_CLIENTS).rev().find(divides).unwrap_or(connections)
}

/// Returns a step of one kind of operation, which the step's figure counts. With `is_timed` the step
/// ends with its time. Otherwise it ends with its operations, which all count.
pub(crate) fn step_spec(
    (name, clients): (&str, u32),
    (unit, label): (Unit, &str),
    is_timed: bool,
    kind: KindSpec,
    options: Map<String, Value>,
) -> StepSpec {
    StepSpec {
        name: name.to_owned(),
        clients,
        headline: Headline { kind: kind.kind.clone(), unit, label: label.to_owned() },
        window: if is_timed { WindowRule::FirstEnded } else { WindowRule::LastEnded },
        kinds: vec![kind],
        options,
        ..StepSpec::default()
    }
}

/// Returns a kind of operation in the text protocol, over one connection per client. Each operation
/// is sent when the one before is answered. The caller sets how many statements and rows an
/// operation has.
pub(crate) fn kind_spec(kind: &str, class: OperationClass, statement: String) -> KindSpec {
    KindSpec {
        kind: kind.to_owned(),
        class,
        connections_per_client: 1,
        arrivals: Arrivals::Closed.to_string(),
        protocol: "text".to_owned(),
        rows_per_operation: 0,
        statements_per_operation: 0,
        user_bytes_per_operation: 0.0,
        statement,
    }
}

/// Returns the protocol of statements, by its name in records.
pub(crate) fn protocol(is_prepared: bool) -> String {
    if is_prepared { "prepared" } else { "text" }.to_owned()
}

/// Adds to the options of a step how long it is, its warm-up and its rate. A step with a number of
/// operations has no time.
pub(crate) fn add_run(
    map: &mut Map<String, Value>,
    (operations, time): (Option<u64>, Duration),
    warmup: Duration,
    rate: Option<u32>,
) {
    match operations {
        Some(operations) => map.insert("operations".to_owned(), json!(operations)),
        None => map.insert("time_seconds".to_owned(), json!(time.as_secs_f64())),
    };
    map.insert("warmup_seconds".to_owned(), json!(warmup.as_secs_f64()));
    map.extend(rate.map(|rate| ("rate_per_second".to_owned(), json!(rate))));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_draws_of_a_step_depend_on_its_name_and_the_seed() {
        assert_eq!(fnv1a(b"foobar"), 0xbf9c_f968, "the authors' vector");
        assert_ne!(stream("a.c1", 1), stream("a.c2", 1));
        assert_ne!(stream("a.c1", 1), stream("a.c1", 2));
    }
}
