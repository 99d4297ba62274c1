//! `dbdyno list`: what there is.

mod json;

use std::path::{Path, PathBuf};

use dbdyno_analyse::MetricGroup;
use dbdyno_analyse::metrics::Metric;
use dbdyno_record::{Outcome, Run, RunEvent};
use dbdyno_report::document::Block;

use crate::args::{ListArgs, Listed};
use crate::commands::{cards, servers};
use crate::exit::{Ended, USAGE};
use crate::terminal;

pub(crate) fn list(args: &ListArgs) -> Result<(), Ended> {
    let name = args.name.as_deref();
    if args.what != Listed::Workloads && name.is_some() {
        return Err(Ended::new(USAGE, "a name goes with `dbdyno list workloads` only; leave it out"));
    }
    if args.json {
        return match args.what {
            Listed::Workloads => terminal::out_json(&cards::of(name)?),
            Listed::Drivers => terminal::out_json(&json::drivers()),
            Listed::Metrics => terminal::out_json(&json::metrics()),
            Listed::Runs => terminal::out_json(&json::runs(&run_dirs(&args.out))),
            Listed::Servers => terminal::out_json(&servers::here_json()?),
        };
    }
    terminal::out_blocks(&match args.what {
        Listed::Workloads => cards::blocks(name)?,
        Listed::Drivers => vec![drivers()],
        Listed::Metrics => metrics(),
        Listed::Runs => vec![runs(&args.out)],
        Listed::Servers => servers::here(),
    })
}

fn drivers() -> Block {
    let about = |(name, what): &(&str, &str)| ((*name).to_owned(), (*what).to_owned());
    Block::Facts(dbdyno_drivers::ALL.iter().map(about).collect())
}

fn metrics() -> Vec<Block> {
    let about = |metric: &Metric| (metric.name.to_owned(), format!("{} ({})", metric.meaning, metric.unit));
    let of_group = |group: &MetricGroup| {
        [Block::heading(3, group.name), Block::Facts(group.in_tables().map(about).collect())]
    };
    MetricGroup::ALL.iter().flat_map(of_group).collect()
}

/// The newest first.
pub(super) fn run_dirs(out: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(out).into_iter().flatten().flatten();
    let mut dirs: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.join("manifest.json").exists()).collect();
    dirs.sort_by(|one, other| other.cmp(one));
    dirs
}

fn runs(out: &Path) -> Block {
    let dirs = run_dirs(out);
    if dirs.is_empty() {
        return Block::text(format!("no runs in {}", out.display()));
    }
    let about = |path: &PathBuf| {
        let state = Run::without_steps(path).map_or_else(|error| error.to_string(), |run| state(&run));
        (path.display().to_string(), state)
    };
    Block::Facts(dirs.iter().map(about).collect())
}

/// How many cells of a run completed.
fn completed(run: &Run) -> usize {
    run.cells.iter().filter(|cell| cell.outcome() == Some(Outcome::Completed)).count()
}

/// How a run ended the last time; `None` for one that did not.
fn ended(run: &Run) -> Option<Outcome> {
    run.events.iter().rev().find_map(|event| match event {
        RunEvent::Ended { outcome, .. } => Some(*outcome),
        _ => None,
    })
}

pub(super) fn state(run: &Run) -> String {
    let word = match ended(run) {
        _ if run.is_going_on => "going on",
        Some(Outcome::Completed) => "complete",
        Some(Outcome::Failed) => "with failed cells; repeat them with --resume --failed",
        Some(Outcome::Interrupted) => "interrupted; continue with --resume",
        None => "not ended; continue with --resume",
    };
    format!("{} of {} cells, {word}", completed(run), run.manifest.order.len())
}
