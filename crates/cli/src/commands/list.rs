//! `dbdyno list` shows what is available: workloads, servers, drivers, metrics and runs. For
//! workloads it shows the steps, each with its statements, its parameters and its purpose.

use std::path::{Path, PathBuf};

use dbdyno_analyse::metrics::Metric;
use dbdyno_analyse::{HostCheck, MetricGroup};
use dbdyno_db::Family;
use dbdyno_record::{Outcome, Run, RunEvent};
use dbdyno_report::document::Block;
use dbdyno_workloads::{ALL, StepSummary, WorkloadSummary};
use serde_json::{Value, json};

use crate::args::{ListArgs, Listed};
use crate::commands::servers;
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
            Listed::Workloads => terminal::out_json(&summaries(name)?),
            Listed::Drivers => terminal::out_json(&drivers_json()),
            Listed::Metrics => terminal::out_json(&metrics_json()),
            Listed::Runs => terminal::out_json(&runs_json(&run_dirs(&args.out))),
            Listed::Servers => terminal::out_json(&servers::here_json()?),
        };
    }
    terminal::out_blocks(&match args.what {
        Listed::Workloads => workload_blocks(name)?,
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

/// Whether a folder is to be read as a run. A manifest that is not a file is a fault of the
/// run, and the reader of the run reports it.
pub(super) fn is_run(dir: &Path) -> bool {
    dir.join("manifest.json").symlink_metadata().is_ok()
}

/// Returns the run directories, the newest first, because their names begin with the time.
pub(crate) fn run_dirs(out: &Path) -> Vec<PathBuf> {
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

/// Returns the last outcome that a run has recorded. It is `None` for a run that has never ended.
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

/// Shows the steps of the workload called `name`. Without a name it shows all workloads, with the
/// names of their steps.
pub(crate) fn workload_blocks(name: Option<&str>) -> Result<Vec<Block>, ExitError> {
    let lists = summaries(name)?;
    if name.is_some() {
        return Ok(lists.iter().flat_map(workload_details).collect());
    }
    let purpose = ALL.iter().map(|kind| (kind.name().to_owned(), kind.purpose()));
    let steps = |list: &WorkloadSummary| {
        let names = list.steps.iter().map(|step_summary| step_summary.step.as_str());
        (workload_title(list), names.collect::<Vec<_>>().join(" "))
    };
    Ok(vec![
        Block::Facts(purpose.collect()),
        Block::heading(3, "steps with every test and part, other options at their defaults"),
        Block::Facts(lists.iter().map(steps).collect()),
        Block::text(""),
        Block::text("each step with its statements, parameters and pitfalls: dbdyno list workloads NAME"),
        Block::text("those that a plan runs: dbdyno plan"),
    ])
}

/// Returns the steps of the workload called `name`, or of all.
pub(crate) fn summaries(name: Option<&str>) -> Result<Vec<WorkloadSummary>, ExitError> {
    let Some(name) = name else { return Ok(ALL.iter().flat_map(|kind| kind.summaries()).collect()) };
    let Some(kind) = ALL.iter().find(|kind| kind.name() == name) else {
        let names: Vec<&str> = ALL.iter().map(|kind| kind.name()).collect();
        let message = format!("there is no workload {name:?}; its name must be one of: {}", names.join(", "));
        return Err(ExitError::usage(message));
    };
    let lists = kind.summaries();
    // A build that leaves a workload out knows none of its steps.
    if lists.is_empty() {
        return Err(ExitError::usage(format!("workload {name}: {}", kind.purpose())));
    }
    Ok(lists)
}

fn workload_title(list: &WorkloadSummary) -> String {
    if list.title.is_empty() {
        list.workload.to_owned()
    } else {
        format!("{}, {}", list.workload, list.title)
    }
}

fn workload_details(list: &WorkloadSummary) -> Vec<Block> {
    // These are the steps for the null database, which takes the same statements as the first
    // family.
    let own = dbdyno_products::ALL[0].products.iter().filter(|product| product.base.is_none());
    let products: Vec<&str> = own.map(|product| product.name).collect();
    let what = format!(
        "{} steps with every test and part, other options at their defaults; statements as {} get them",
        list.steps.len(),
        products.join(" and ")
    );
    let mut blocks = vec![Block::heading(2, workload_title(list)), Block::text(what)];
    blocks.extend(list.steps.iter().flat_map(step_summary));
    blocks
}

fn step_summary(step_summary: &StepSummary) -> [Block; 2] {
    let published =
        step_summary.published_as.as_ref().map_or_else(String::new, |name| format!(" (published as {name})"));
    let mut facts = vec![("for", step_summary.purpose.to_owned())];
    for operation in &step_summary.operations {
        facts.push(("sends", format!("{}, {}", operation.kind, operation.protocol)));
        facts.extend(operation.statements.iter().map(|sql| ("", sql.clone())));
    }
    let groups = step_summary.groups.iter().map(|(grouping, group)| format!("{grouping}: {group}"));
    facts.extend([
        ("parameters", step_summary.parameters.to_owned()),
        ("rate", step_summary.rate.clone()),
        ("pitfall", step_summary.pitfall.to_owned()),
        ("groups", groups.collect::<Vec<_>>().join("; ")),
    ]);
    facts.retain(|(_, text)| !text.is_empty());
    let facts = facts.into_iter().map(|(name, text)| (name.to_owned(), text));
    [Block::heading(3, format!("{}{published}", step_summary.step)), Block::Facts(facts.collect())]
}
