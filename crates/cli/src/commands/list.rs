//! `dbdyno list`: what there is.

use std::path::{Path, PathBuf};

use dbdyno_analyse::metrics::{self, Metric};
use dbdyno_plan::{InsertBenchmark, MicroSequence, MicroStep, OltpTest};
use dbdyno_record::{Outcome, Run, RunEvent};

use dbdyno_workloads::microbenchmarks;

use crate::args::{ListArgs, Listed};
use crate::commands::{cards, list_json};
use crate::exit::{Ended, USAGE};
use crate::terminal;

pub(crate) fn list(args: &ListArgs) -> Result<(), Ended> {
    if args.what != Listed::Workloads && args.name.is_some() {
        return Err(Ended::new(USAGE, "a name goes with `dbdyno list workloads` only; leave it out"));
    }
    let text = match args.what {
        Listed::Workloads if args.name.is_some() || args.json => {
            cards::text(args.name.as_deref(), args.json)?
        }
        Listed::Workloads => workloads(),
        Listed::Drivers if args.json => list_json::drivers()?,
        Listed::Drivers => pairs(dbdyno_drivers::ALL.iter().map(|(name, what)| (*name, (*what).to_owned()))),
        Listed::Metrics if args.json => list_json::metrics()?,
        Listed::Metrics => metrics(),
        Listed::Runs if args.json => list_json::runs(&run_dirs(&args.out))?,
        Listed::Runs => runs(&args.out),
        Listed::Servers if args.json => super::servers::here_json()?,
        Listed::Servers => super::servers::here(),
    };
    if args.json { terminal::out(&text) } else { terminal::out_folded(&text) }
}

fn workloads() -> String {
    let mut text = pairs(dbdyno_workloads::ALL.iter().map(|(name, what)| (*name, (*what).to_owned())));
    let steps = InsertBenchmark::default().step_names().join(" ");
    let tests = OltpTest::ALL.map(OltpTest::name).join(" ");
    text.push_str(&format!("\nsteps of insert-benchmark: {steps}\n"));
    text.push_str(&format!(
        "steps of oltp: load index, then one for each test, number of connections and rate: {tests}\n"
    ));
    for (title, sequence) in [("42", MicroSequence::FortyTwo), ("32", MicroSequence::ThirtyTwo)] {
        let steps: Vec<String> = sequence.steps().iter().map(MicroStep::name).collect();
        text.push_str(&format!(
            "steps of microbenchmarks, sequence {title}: load index {}\n",
            steps.join(" ")
        ));
    }
    text.push_str("\nwhat each microbenchmark is for, and what it sends:\n");
    for entry in microbenchmarks::ALL.iter().flat_map(|family| family.iter()) {
        let statement = microbenchmarks::statement(entry.test);
        text.push_str(&format!("\n{}\n  {}\n  {statement}\n", entry.test.name(), entry.purpose));
    }
    text.push_str("\neach step with its statements, parameters and traps: dbdyno list workloads NAME\n");
    text
}

fn metrics() -> String {
    let about = |metric: &Metric| (metric.name, format!("{} ({})", metric.meaning, metric.unit));
    metrics::all().map(|(_, group)| pairs(group.into_iter().map(about))).join("\n")
}

/// The newest first.
fn run_dirs(out: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(out).into_iter().flatten().flatten();
    let mut dirs: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.join("manifest.json").exists()).collect();
    dirs.sort_by(|one, other| other.cmp(one));
    dirs
}

fn runs(out: &Path) -> String {
    let dirs = run_dirs(out);
    if dirs.is_empty() {
        return format!("no runs in {}\n", out.display());
    }
    let lines = dirs.iter().map(|path| {
        let state = match Run::open(path) {
            Ok(run) => state(&run),
            Err(error) => error.to_string(),
        };
        (path.display().to_string(), state)
    });
    pairs(lines)
}

/// How many cells of a run completed.
pub(super) fn completed(run: &Run) -> usize {
    run.cells.iter().filter(|cell| cell.outcome() == Some(Outcome::Completed)).count()
}

/// How a run ended the last time; `None` for one that did not.
pub(super) fn ended(run: &Run) -> Option<Outcome> {
    run.events.iter().rev().find_map(|event| match event {
        RunEvent::Ended { outcome, .. } => Some(*outcome),
        _ => None,
    })
}

fn state(run: &Run) -> String {
    let word = match ended(run) {
        _ if run.is_going_on => "going on",
        Some(Outcome::Completed) => "complete",
        Some(Outcome::Failed) => "with failed cells; --resume with --failed repeats them",
        Some(Outcome::Interrupted) => "interrupted; --resume goes on",
        None => "not ended; --resume goes on",
    };
    format!("{} of {} cells, {word}", completed(run), run.manifest.order.len())
}

/// Names and what they are, aligned.
fn pairs<N: AsRef<str>>(pairs: impl IntoIterator<Item = (N, String)>) -> String {
    let pairs: Vec<_> = pairs.into_iter().collect();
    let width = pairs.iter().map(|(name, _)| name.as_ref().chars().count()).max().unwrap_or(0);
    pairs.iter().map(|(name, what)| format!("{:<width$}  {what}\n", name.as_ref())).collect()
}
