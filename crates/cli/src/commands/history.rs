//! `dbdyno history` shows the runs of one plan in the order of their start, and the runs at which a
//! rate changed its level.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use dbdyno_analyse::{HistoryChoices, Measure, RunValues, Series, history as history_of, numbered};
use dbdyno_record::{Error, Run, parallel};
use dbdyno_report::{history_html, history_json, history_markdown, history_terminal};

use crate::args::{Gate, HistoryArgs, HistoryFailOn, HistoryFormat};
use crate::commands::list::{is_run, run_dirs};
use crate::commands::report::{directory, of_ending};
use crate::exit::{ExitError, SLOWER};
use crate::terminal;

/// File extensions, and the format that each selects.
const ENDINGS: [(&str, HistoryFormat); 4] = [
    ("txt", HistoryFormat::Terminal),
    ("md", HistoryFormat::Md),
    ("html", HistoryFormat::Html),
    ("json", HistoryFormat::Json),
];

pub(crate) fn history(args: &HistoryArgs) -> Result<(), ExitError> {
    let format = match args.format {
        Some(format) => format,
        None => of_ending(args.output.as_deref(), &ENDINGS, HistoryFormat::Terminal, "--format")?,
    };
    let mut runs: Vec<Run> = Vec::new();
    let mut left_out = Vec::new();
    for place in &args.runs {
        let folders = runs_in(&directory(place)?)?;
        for (folder, run) in folders.iter().zip(parallel::map(&folders, |folder| Run::outline(folder))) {
            let Some(run) = read(args, folder, run, &mut left_out)? else { continue };
            // The same run may be named twice: by a link to it, by a copy of it, or together with
            // its folder. The same value twice would look like a trend.
            match runs.iter().find(|known| known.manifest == run.manifest) {
                Some(known) => terminal::note(&format!(
                    "note: {} is the run of {}, and counts once",
                    folder.display(),
                    known.dir.display()
                )),
                None => runs.push(run),
            }
        }
    }
    warn_of(&mut left_out);
    match &args.plan {
        Some(plan) => only_of(plan, &mut runs)?,
        None if !args.anyway => of_one_plan(&runs)?,
        None => {}
    }
    // Runs are ordered by their start, because the shell sorts by name.
    runs.sort_by(|a, b| a.manifest.started.cmp(&b.manifest.started));
    let mut measured: Vec<RunValues> = Vec::new();
    let values = |run: &Run| Run::open(&run.dir).map(|run| RunValues::of(&run));
    for (run, values) in runs.iter().zip(parallel::map(&runs, values)) {
        measured.extend(read(args, &run.dir, values, &mut left_out)?);
    }
    warn_of(&mut left_out);
    let found = history_of(
        &measured.iter().collect::<Vec<_>>(),
        HistoryChoices {
            variant: args.variant.as_deref(),
            measure: if args.ratio { Measure::Ratio } else { Measure::Rate },
            margin: args.margin.map(|percent| percent / 100.0),
            anyway: args.anyway,
        },
    )?;
    let options = terminal::options();
    let text = match format {
        HistoryFormat::Terminal => history_terminal(&found, &options),
        HistoryFormat::Md => history_markdown(&found),
        HistoryFormat::Html => history_html(&found),
        HistoryFormat::Json => history_json(&found),
    };
    terminal::deliver("history", &text, args.output.as_deref())?;
    let decides =
        |series: &&Series| args.gate.contains(&if series.is_secondary { Gate::P99 } else { Gate::Rate });
    match args.fail_on {
        HistoryFailOn::Slower if found.series.iter().filter(decides).any(Series::is_worse_now) => {
            Err(ExitError::silent(SLOWER))
        }
        _ => Ok(()),
    }
}

/// Fails for a named run that cannot be read. Such a run in a folder is only left out.
fn read<T>(
    args: &HistoryArgs,
    folder: &PathBuf,
    read: Result<T, Error>,
    left_out: &mut Vec<(PathBuf, Error)>,
) -> Result<Option<T>, ExitError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if args.runs.contains(folder) => Err(error.into()),
        Err(error) => {
            left_out.push((folder.clone(), error));
            Ok(None)
        }
    }
}

/// Lists in one warning the folders that could not be read.
fn warn_of(left_out: &mut Vec<(PathBuf, Error)>) {
    match &std::mem::take(left_out)[..] {
        [] => {}
        [(folder, error)] => terminal::warning(&format!("{} is left out: {error}", folder.display())),
        [(folder, error), others @ ..] => {
            let others: Vec<String> = others.iter().map(|(folder, _)| folder.display().to_string()).collect();
            terminal::warning(&format!(
                "{} folders are left out, for what `dbdyno report` says of each: {} ({error}), {}",
                others.len() + 1,
                folder.display(),
                others.join(", ")
            ));
        }
    }
}

fn only_of(plan: &str, runs: &mut Vec<Run>) -> Result<(), ExitError> {
    let (kept, others): (Vec<Run>, Vec<Run>) =
        std::mem::take(runs).into_iter().partition(|run| run.manifest.plan.name == plan);
    let found = match kept.len() {
        0 => format!("no run is of a plan named {plan:?}"),
        1 => format!("only one run is of the plan {plan:?}, and a history has two or more"),
        _ => {
            match &others[..] {
                [] => {}
                [Run { dir, manifest, .. }] => {
                    let name = &manifest.plan.name;
                    terminal::note(&format!("note: {} is left out: it is of plan {name}", dir.display()));
                }
                others => {
                    let count = others.len();
                    terminal::note(&format!(
                        "note: {count} runs are left out, of other plans: {}",
                        plans(others)
                    ));
                }
            }
            *runs = kept;
            return Ok(());
        }
    };
    let names: BTreeSet<&str> =
        kept.iter().chain(&others).map(|run| run.manifest.plan.name.as_str()).collect();
    let names = names.into_iter().collect::<Vec<_>>().join(", ");
    Err(ExitError::usage(format!("{found}; the plans of these runs: {names}")))
}

fn of_one_plan(runs: &[Run]) -> Result<(), ExitError> {
    let is_of_one = runs.windows(2).all(|pair| pair[0].manifest.plan.name == pair[1].manifest.plan.name);
    if is_of_one {
        return Ok(());
    }
    Err(ExitError::usage(format!("these runs are of several plans: {}; choose one with --plan", plans(runs))))
}

/// Lists the plans of runs, each with its number of runs.
fn plans(runs: &[Run]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for run in runs {
        *counts.entry(&run.manifest.plan.name).or_default() += 1;
    }
    let plans = counts.iter().map(|(plan, count)| format!("{plan} ({})", numbered(*count, "run")));
    plans.collect::<Vec<_>>().join(", ")
}

/// Returns the run directory itself, or all runs that lie in the folder.
fn runs_in(place: &Path) -> Result<Vec<PathBuf>, ExitError> {
    if is_run(place) {
        return Ok(vec![place.to_owned()]);
    }
    let unreadable = |error| ExitError::usage(format!("cannot read {}: {error}", place.display()));
    // This read returns the error of an unreadable folder, because `run_dirs` ignores it.
    std::fs::read_dir(place).map_err(unreadable)?;
    let found = run_dirs(place);
    if found.is_empty() {
        let message = format!(
            "{} is no run directory and holds none; name run directories, or a folder that holds them (dbdyno run makes them in runs)",
            place.display()
        );
        return Err(ExitError::usage(message));
    }
    Ok(found)
}
