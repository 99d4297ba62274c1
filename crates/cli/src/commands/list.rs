//! `dbdyno list` shows what is available: workloads, servers, drivers, metrics and runs.

use std::path::{Path, PathBuf};

use dbdyno_analyse::metrics::Metric;
use dbdyno_analyse::{HostCheck, MetricGroup};
use dbdyno_db::Family;
use dbdyno_record::{Outcome, Run, RunEvent};
use dbdyno_report::document::Block;
use serde_json::{Value, json};

use crate::args::{ListArgs, Listed};
use crate::commands::{servers, summaries};
use crate::exit::ExitError;
use crate::terminal;

/// Schema version of each JSON. It rises when a key is removed or changes its meaning.
const SCHEMA: u32 = 1;

pub(crate) fn list(args: &ListArgs) -> Result<(), ExitError> {
    let name = args.name.as_deref();
    if args.what != Listed::Workloads && name.is_some() {
        return Err(ExitError::usage("a name goes with `dbdyno list workloads` only; leave it out"));
    }
    if args.json {
        return match args.what {
            Listed::Workloads => terminal::out_json(&summaries::of(name)?),
            Listed::Drivers => terminal::out_json(&drivers_json()),
            Listed::Metrics => terminal::out_json(&metrics_json()),
            Listed::Runs => terminal::out_json(&runs_json(&run_dirs(&args.out))),
            Listed::Servers => terminal::out_json(&servers::here_json()?),
        };
    }
    terminal::out_blocks(&match args.what {
        Listed::Workloads => summaries::blocks(name)?,
        Listed::Drivers => vec![drivers()],
        Listed::Metrics => metrics(),
        Listed::Runs => vec![runs(&args.out)],
        Listed::Servers => servers::here(),
    })
}

fn drivers() -> Block {
    let about = |family: &Family| (family.name().to_owned(), family.about().to_owned());
    Block::Facts(Family::ALL.iter().map(about).collect())
}

fn metrics() -> Vec<Block> {
    let about = |metric: &Metric| (metric.name.to_owned(), format!("{} ({})", metric.meaning, metric.unit));
    let of_group = |group: &MetricGroup| {
        [Block::heading(3, group.name), Block::Facts(group.in_tables().map(about).collect())]
    };
    MetricGroup::ALL.iter().flat_map(of_group).collect()
}

/// Whether a folder is to be read as a run. A manifest that is no file is a fault of the run, and
/// the reader of the run reports it.
pub(super) fn is_run(dir: &Path) -> bool {
    dir.join("manifest.json").symlink_metadata().is_ok()
}

/// Returns the run directories, the newest first, because their names begin with the time.
pub(super) fn run_dirs(out: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(out).into_iter().flatten().flatten();
    let mut dirs: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| is_run(path)).collect();
    dirs.sort_by(|one, other| other.cmp(one));
    dirs
}

fn runs(out: &Path) -> Block {
    let dirs = run_dirs(out);
    if dirs.is_empty() {
        return Block::text(format!("no runs in {}", out.display()));
    }
    let about = |path: &PathBuf| {
        let state = Run::without_steps(path).map_or_else(|error| error.to_string(), |run| progress(&run));
        (path.display().to_string(), state)
    };
    Block::Facts(dirs.iter().map(about).collect())
}

fn completed(run: &Run) -> usize {
    run.cells.iter().filter(|cell| cell.outcome() == Some(Outcome::Completed)).count()
}

/// Returns how a run ended the last time. It is `None` for a run that has not ended.
fn ended(run: &Run) -> Option<Outcome> {
    run.events.iter().rev().find_map(|event| match event {
        RunEvent::Ended { outcome, .. } => Some(*outcome),
        _ => None,
    })
}

/// Returns a run's state, for programs and for people.
fn state(run: &Run) -> (&'static str, &'static str) {
    match ended(run) {
        _ if run.is_going_on => ("going-on", "going on"),
        Some(Outcome::Completed) => ("completed", "complete"),
        Some(Outcome::Failed) => ("failed-cells", "with failed cells; repeat them with --resume --failed"),
        Some(Outcome::Interrupted) => ("interrupted", "interrupted; continue with --resume"),
        None => ("not-ended", "not ended; continue with --resume"),
    }
}

pub(super) fn progress(run: &Run) -> String {
    format!("{} of {} cells, {}", completed(run), run.manifest.order.len(), state(run).1)
}

fn drivers_json() -> Value {
    let drivers: Vec<Value> =
        Family::ALL.iter().map(|family| json!({ "name": family.name(), "what": family.about() })).collect();
    json!({ "schema": SCHEMA, "drivers": drivers })
}

/// Lists every column of every table, with its name in JSON and CSV.
fn metrics_json() -> Value {
    let column = |table: &str, metric: &Metric| {
        json!({ "table": table, "name": metric.name, "field": metric.id, "unit": metric.unit, "meaning": metric.meaning,
            "better": metric.better })
    };
    let of_group = |group: &MetricGroup| group.in_tables().map(|metric| column(group.name, metric));
    let mut columns: Vec<Value> = MetricGroup::ALL.iter().flat_map(of_group).collect();
    columns.extend(HostCheck::METRICS.iter().map(|own| {
        json!({ "table": "host_check", "name": own.name, "field": own.id, "unit": own.unit, "meaning": own.meaning })
    }));
    json!({ "schema": SCHEMA, "metrics": columns })
}

/// Lists the runs, the newest first, as the text does. A folder that cannot be read as a run has
/// only its path and `error`.
fn runs_json(dirs: &[PathBuf]) -> Value {
    let run = |path: &PathBuf| match Run::without_steps(path) {
        Err(error) => json!({ "path": path, "error": error.to_string() }),
        Ok(run) => json!({
            "path": path,
            "run_id": run.manifest.run_id,
            "name": run.manifest.plan.name,
            "started": run.manifest.started,
            "state": state(&run).0,
            "cells_completed": completed(&run),
            "cells_planned": run.manifest.order.len(),
            "variants": run.manifest.variants.iter().map(|variant| &variant.name).collect::<Vec<_>>(),
        }),
    };
    json!({ "schema": SCHEMA, "runs": dirs.iter().map(run).collect::<Vec<_>>() })
}
