//! Run directories of a given size, as a comparison of MariaDB servers leaves them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use dbdyno_record::{
    CellEvent, CellId, Clock, CounterHeader, Experiment, FORMAT_VERSION, Headline, HostInfo, Interval,
    KindSpec, Manifest, OperationClass, Outcome, RunWriter, StepEvent, StepSpec, StepWriter, ToolInfo, Unit,
    VariantInfo, WindowRule, WorkloadInfo,
};
use hdrhistogram::Histogram;
use serde_json::Map;

use crate::command::output;

const AT: &str = "2026-01-01T00:00:00Z";

#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) steps: u32,
    pub(super) variants: u32,
    pub(super) blocks: u32,
    /// Of each step.
    pub(super) seconds: u64,
}

/// Counters that are sampled together.
struct Source {
    name: &'static str,
    /// With what they rise by in a second.
    rising: &'static [(&'static str, i64)],
    /// Others that change each second.
    more_rising: usize,
    /// Others that never change.
    still: usize,
}

/// As many as were seen in records of a MariaDB 10.11 under point queries.
const SOURCES: &[Source] = &[
    Source {
        name: "client",
        rising: &[("cpu_us", 100_000), ("cpu_user_us", 40_000), ("cpu_kernel_us", 60_000)],
        more_rising: 7,
        still: 7,
    },
    Source {
        name: "server",
        rising: &[("cpu_us", 900_000), ("cpu_user_us", 600_000), ("cpu_kernel_us", 300_000)],
        more_rising: 6,
        still: 6,
    },
    Source {
        name: "host",
        rising: &[
            ("cpu_user_us", 640_000),
            ("cpu_system_us", 360_000),
            ("cpu_idle_us", 2_990_000),
            ("cpu_iowait_us", 10_000),
        ],
        more_rising: 8,
        still: 6,
    },
    Source { name: "disk", rising: &[("writes", 10), ("written_bytes", 160_000)], more_rising: 4, still: 6 },
    Source { name: "load", rising: &[("cpu_us", 90_000), ("run_delay_us", 100)], more_rising: 2, still: 0 },
    Source { name: "sampler", rising: &[("cpu_us", 1_000), ("samples", 1)], more_rising: 1, still: 1 },
    Source { name: "switches", rising: &[("voluntary_switches", 10_000)], more_rising: 1, still: 0 },
    Source { name: "status", rising: &[("Questions", 10_000)], more_rising: 40, still: 488 },
];

/// Runs of the first and of the second half that have records of their own. The others are copies:
/// the writer syncs each file.
const KINDS: u32 = 12;

/// Writes `runs` runs of one plan, day after day. In the second half all rates are a twentieth
/// lower.
pub(super) fn write_many(parent: &Path, size: Size, runs: u32) -> Result<()> {
    for number in 0..runs {
        let of_half = number % (runs / 2);
        let kind = of_half % KINDS;
        let Some(original) = of_half.checked_sub(KINDS) else {
            let per_second = if number < runs / 2 { 10_000 } else { 9_500 };
            write(parent, size, number, per_second + u64::from(kind * 5 % KINDS))?;
            continue;
        };
        let original = number - of_half + original % KINDS;
        let copy = parent.join(run_id(number));
        output(Command::new("cp").arg("-r").arg(parent.join(run_id(original))).arg(&copy))?;
        std::fs::write(copy.join("manifest.json"), serde_json::to_vec(&manifest(size, number))?)?;
    }
    Ok(())
}

/// Writes a run of `size` into `parent` through the writer, so that reading it is what it is for
/// any run.
pub(super) fn write(parent: &Path, size: Size, run: u32, per_second: u64) -> Result<PathBuf> {
    std::fs::create_dir_all(parent)?;
    let manifest = manifest(size, run);
    let writer = RunWriter::create(parent, &manifest)?;
    for id in &manifest.order {
        let mut cell = writer.cell(id)?;
        for number in 1..=size.steps {
            // Some scatter from block to block, and a hundredth between a variant and the next.
            let per_second =
                per_second + 7 * u64::from(id.block * number % 11) + 100 * id.variant.len() as u64;
            write_step(&mut cell.step(&step_name(number))?, number, per_second, size.seconds)?;
        }
        let (outcome, connections) = (Outcome::Completed, Vec::new());
        cell.event(&CellEvent::Ended { at: AT.to_owned(), outcome, message: None, connections })?;
    }
    Ok(writer.dir().to_owned())
}

fn write_step(step: &mut StepWriter, number: u32, per_second: u64, seconds: u64) -> Result<()> {
    step.event(&StepEvent::Started { at: AT.to_owned(), spec: spec(number) })?;
    for second in 0..seconds {
        let (from_us, to_us) = (second * 1_000_000, (second + 1) * 1_000_000);
        let interval =
            Interval { from_us, to_us, client: 1, kind: "query".to_owned(), ..Interval::default() };
        step.interval(&Interval { due: per_second, done: per_second, rows: per_second, ..interval })?;
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000, 3)?;
        for us in 0..500 {
            histogram.record_n(100 + us * (second % 7 + 1), per_second / 500)?;
        }
        for clock in [Clock::Service, Clock::Response] {
            step.histogram(&clock.tag("query"), from_us, to_us, &histogram)?;
        }
    }
    let to_us = seconds * 1_000_000;
    step.event(&StepEvent::Window { from_us: 0, to_us })?;
    let outcome = Outcome::Completed;
    step.event(&StepEvent::Ended { at: AT.to_owned(), at_us: to_us, outcome, message: None })?;
    for source in SOURCES {
        write_counters(step, source, seconds)?;
    }
    Ok(step.sync()?)
}

/// A sample each second.
fn write_counters(step: &StepWriter, source: &Source, seconds: u64) -> Result<()> {
    let mut counters = step.counters(CounterHeader { source: source.name.to_owned(), about: Map::new() })?;
    let named = source.rising.iter().map(|(name, _)| (*name).to_owned());
    let rising: Vec<String> = named.chain((0..source.more_rising).map(|at| format!("Rising_{at}"))).collect();
    let mut values: BTreeMap<String, i64> =
        (0..source.still).map(|at| (format!("Still_{at}"), 12_345)).collect();
    for second in 0..=seconds.cast_signed() {
        for (at, name) in rising.iter().enumerate() {
            let a_second = source.rising.get(at).map_or(1_000, |(_, a_second)| *a_second);
            values.insert(name.clone(), 1_000_000_000 + a_second * second);
        }
        counters.line(second * 1_000_000, &values)?;
    }
    Ok(counters.sync()?)
}

fn step_name(number: u32) -> String {
    format!("step{number:02}")
}

fn spec(number: u32) -> StepSpec {
    StepSpec {
        groups: BTreeMap::new(),
        is_warm_up: false,
        name: step_name(number),
        clients: 1,
        headline: Headline {
            kind: "query".to_owned(),
            unit: Unit::Operations,
            label: "queries/s".to_owned(),
        },
        window: WindowRule::FirstEnded,
        target: None,
        kinds: vec![KindSpec {
            kind: "query".to_owned(),
            class: Some(OperationClass::Query),
            connections_per_client: 16,
            pace: "closed".to_owned(),
            protocol: "prepared".to_owned(),
            rows_per_operation: 1,
            statements_per_operation: 1,
            user_bytes_per_operation: 0.0,
            statement: "SELECT c FROM sbtest1 WHERE id = ?".to_owned(),
        }],
        options: Map::new(),
    }
}

fn run_id(run: u32) -> String {
    format!("analysis-{run:04}")
}

/// A day after that of the run before, in months of 28 days.
fn started(run: u32) -> String {
    format!("{}-{:02}-{:02}T00:00:00Z", 2020 + run / 336, 1 + run / 28 % 12, 1 + run % 28)
}

fn manifest(size: Size, run: u32) -> Manifest {
    // Names of different lengths, which make different rates.
    let names: Vec<String> = (1..=size.variants).map(|number| "v".repeat(number as usize)).collect();
    let variant = |name: &String| VariantInfo {
        name: name.clone(),
        driver: "mysql".to_owned(),
        server: "server".to_owned(),
        config: String::new(),
        ..VariantInfo::default()
    };
    let id =
        |block, variant: &String| CellId { block, variant: variant.clone(), workload: "many".to_owned() };
    Manifest {
        format_version: FORMAT_VERSION,
        tool: ToolInfo { version: "0".to_owned(), commit: "none".to_owned(), build: "release".to_owned() },
        run_id: run_id(run),
        name: "analysis".to_owned(),
        started: started(run),
        seed: 1,
        blocks: size.blocks,
        base: names[0].clone(),
        margin: 0.02,
        experiment: Experiment::default(),
        client_calibration: None,
        host: HostInfo { cpus: 4, ..HostInfo::default() },
        plan_toml: String::new(),
        variants: names.iter().map(variant).collect(),
        workloads: vec![WorkloadInfo {
            load_steps: 0,
            name: "many".to_owned(),
            version: 1,
            follows: "nothing".to_owned(),
            options: Map::new(),
            data_bytes: None,
            connections: None,
            deviations: Vec::new(),
            steps: (1..=size.steps).map(step_name).collect(),
        }],
        order: (1..=size.blocks).flat_map(|block| names.iter().map(move |name| id(block, name))).collect(),
    }
}
