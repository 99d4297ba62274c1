//! Bench `analysis`: how long the findings and the report of a large run take, and how large the report is.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::Result;
use dbdyno_record::{
    CellEvent, CellId, Clock, CounterHeader, Experiment, FORMAT_VERSION, Headline, HostInfo, Interval,
    KindSpec, Manifest, Outcome, RunWriter, StepEvent, StepSpec, ToolInfo, Unit, VariantInfo, WindowRule,
    WorkloadInfo,
};
use hdrhistogram::Histogram;
use serde_json::Map;

use super::spread::Spread;
use super::{Measured, Setting};
use crate::command::output;
use crate::terminal;

const AT: &str = "2026-01-01T00:00:00Z";
const STEPS: u32 = 42;
const VARIANTS: u32 = 5;
const BLOCKS: u32 = 5;
const SECONDS: u64 = 60;

/// What is timed: name, format of the report, longest time in seconds.
const TIMED: [(&str, &str, f64); 2] = [("findings, as JSON", "json", 1.0), ("report, as HTML", "html", 2.0)];
/// Largest HTML report, in MB.
const MOST_MEGABYTES: f64 = 5.0;

pub(super) fn run(setting: &Setting) -> Result<Measured> {
    terminal::note(&format!("writing a run of {STEPS} steps x {VARIANTS} variants x {BLOCKS} blocks"));
    let dir = setting.folder.join("runs");
    let run = write_run(&dir)?;
    let mut rows = Vec::new();
    let mut is_met = true;
    for (what, format, most) in TIMED {
        let target = setting.folder.join(format!("report.{format}"));
        let mut seconds = Vec::new();
        for _ in 0..setting.rounds {
            let began = Instant::now();
            let mut report = Command::new(&setting.dbdyno);
            output(report.arg("report").arg(&run).args(["--format", format, "--output"]).arg(&target))?;
            seconds.push(began.elapsed().as_secs_f64());
        }
        let spread = Spread::of(seconds);
        is_met &= spread.median <= most;
        rows.push([format!("{what}, s"), format!("{:.2}", spread.median), format!("{most}")]);
    }
    let megabytes = std::fs::metadata(setting.folder.join("report.html"))?.len() as f64 / 1e6;
    is_met &= megabytes <= MOST_MEGABYTES;
    rows.push(["HTML report, MB".to_owned(), format!("{megabytes:.2}"), format!("{MOST_MEGABYTES}")]);
    Ok(Measured { table: text(&rows), page: page(&rows, setting), is_met })
}

fn text(rows: &[[String; 3]]) -> String {
    let mut text = format!("{:<22}  {:>8}  {:>8}\n", "figure", "median", "at most");
    for [what, found, most] in rows {
        text.push_str(&format!("{what:<22}  {found:>8}  {most:>8}\n"));
    }
    text
}

fn page(rows: &[[String; 3]], setting: &Setting) -> String {
    let rows: Vec<String> = rows.iter().map(|row| format!("| {} |", row.join(" | "))).collect();
    format!(
        "# How long a large run takes to analyse\n\nMeasured with `cargo xtask bench analysis --save`, which writes this page: {} \
         rounds of `dbdyno report` over a\nrun of {STEPS} steps, {VARIANTS} variants and {BLOCKS} blocks, {SECONDS} seconds a step, \
         from start to end of the process: reading\nthe records, all findings and the report. Medians.\n\n| figure | median | at most |\n\
         |---|---|---|\n{}\n\n* date: {}; load average of the minute before: {}\n",
        setting.rounds,
        rows.join("\n"),
        setting.started.date,
        setting.started.load
    )
}

/// A run directory through the writer, so that reading it is what it is for any run.
fn write_run(parent: &Path) -> Result<std::path::PathBuf> {
    std::fs::create_dir_all(parent)?;
    let manifest = manifest();
    let writer = RunWriter::create(parent, &manifest)?;
    for id in &manifest.order {
        let mut cell = writer.cell(id)?;
        for number in 1..=STEPS {
            // Some scatter from block to block and a tenth between the variants.
            let per_second = 10_000 + 7 * u64::from(id.block * number % 11) + 100 * id.variant.len() as u64;
            write_step(&mut cell.step(&step_name(number))?, number, per_second)?;
        }
        let (outcome, connections) = (Outcome::Completed, Vec::new());
        cell.event(&CellEvent::Ended { at: AT.to_owned(), outcome, message: None, connections })?;
    }
    Ok(writer.dir().to_owned())
}

fn write_step(step: &mut dbdyno_record::StepWriter, number: u32, per_second: u64) -> Result<()> {
    step.event(&StepEvent::Started { at: AT.to_owned(), spec: spec(number) })?;
    let header = CounterHeader { source: "client".to_owned(), about: Map::new() };
    let mut client = step.counters(header)?;
    for second in 0..SECONDS {
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
        let values = BTreeMap::from([("cpu_us".to_owned(), (second * 100_000).cast_signed())]);
        client.line(from_us.cast_signed(), &values)?;
    }
    let to_us = SECONDS * 1_000_000;
    step.event(&StepEvent::Window { from_us: 0, to_us })?;
    let outcome = Outcome::Completed;
    step.event(&StepEvent::Ended { at: AT.to_owned(), at_us: to_us, outcome, message: None })?;
    client.sync()?;
    Ok(step.sync()?)
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

fn manifest() -> Manifest {
    // Names of different lengths, which make different rates.
    let names: Vec<String> = (1..=VARIANTS).map(|number| "v".repeat(number as usize)).collect();
    let variant = |name: &String| VariantInfo {
        name: name.clone(),
        driver: "mysql".to_owned(),
        server: "server".to_owned(),
        config: String::new(),
        external: true,
        ..VariantInfo::default()
    };
    let id =
        |block, variant: &String| CellId { block, variant: variant.clone(), workload: "many".to_owned() };
    Manifest {
        format_version: FORMAT_VERSION,
        tool: ToolInfo { version: "0".to_owned(), commit: "none".to_owned(), build: "release".to_owned() },
        run_id: "analysis".to_owned(),
        name: "analysis".to_owned(),
        started: AT.to_owned(),
        seed: 1,
        blocks: BLOCKS,
        base: names[0].clone(),
        margin: 0.02,
        experiment: Experiment::default(),
        client_calibration: None,
        host: HostInfo { cpus: 4, ..HostInfo::default() },
        plan_toml: String::new(),
        variants: names.iter().map(variant).collect(),
        workloads: vec![WorkloadInfo {
            name: "many".to_owned(),
            version: 1,
            follows: "nothing".to_owned(),
            options: Map::new(),
            deviations: Vec::new(),
            steps: (1..=STEPS).map(step_name).collect(),
        }],
        order: (1..=BLOCKS).flat_map(|block| names.iter().map(move |name| id(block, name))).collect(),
    }
}
