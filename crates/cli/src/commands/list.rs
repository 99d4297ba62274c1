//! `dbdyno list`: what there is.

mod json;

use std::path::{Path, PathBuf};

use dbdyno_analyse::metrics::{self, Metric};
use dbdyno_record::{Outcome, Run, RunEvent};
use dbdyno_workloads::{ALL, Listing};

use crate::args::{ListArgs, Listed};
use crate::commands::cards;
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
        Listed::Drivers if args.json => json::drivers()?,
        Listed::Drivers => pairs(dbdyno_drivers::ALL.iter().map(|(name, what)| (*name, (*what).to_owned()))),
        Listed::Metrics if args.json => json::metrics()?,
        Listed::Metrics => metrics(),
        Listed::Runs if args.json => json::runs(&run_dirs(&args.out))?,
        Listed::Runs => runs(&args.out),
        Listed::Servers if args.json => super::servers::here_json()?,
        Listed::Servers => return terminal::out_blocks(&super::servers::here()),
    };
    if args.json { terminal::out(&text) } else { terminal::out_folded(&text) }
}

fn workloads() -> String {
    let mut text = pairs(ALL.iter().map(|kind| (kind.name(), kind.purpose().to_owned())));
    let mut listings: Vec<Listing> = ALL.iter().map(|kind| kind.listing()).collect();
    // Whose details follow comes last.
    listings.sort_by_key(|listing| !listing.details.is_empty());
    for part in [|listing: &Listing| listing.steps.clone(), |listing: &Listing| listing.details.clone()] {
        text.push('\n');
        text.extend(listings.iter().map(part));
    }
    text.push_str("\neach step with its statements, parameters and traps: dbdyno list workloads NAME\n");
    text
}

fn metrics() -> String {
    let about = |metric: &Metric| (metric.name, format!("{} ({})", metric.meaning, metric.unit));
    metrics::all().map(|(_, group)| pairs(group.into_iter().map(about))).join("\n")
}

/// The newest first.
pub(super) fn run_dirs(out: &Path) -> Vec<PathBuf> {
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

/// Names and what they are, aligned.
fn pairs<N: AsRef<str>>(pairs: impl IntoIterator<Item = (N, String)>) -> String {
    let pairs: Vec<_> = pairs.into_iter().collect();
    let width = pairs.iter().map(|(name, _)| name.as_ref().chars().count()).max().unwrap_or(0);
    pairs.iter().map(|(name, what)| format!("{:<width$}  {what}\n", name.as_ref())).collect()
}
