//! `dbdyno history`: many runs of one plan in order, and where a rate changed its level.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use dbdyno_analyse::{HistoryChoices, Measure, Series, history as history_of};
use dbdyno_record::Run;
use dbdyno_report::{history_html, history_json, history_markdown, history_terminal};

use crate::args::{HistoryArgs, HistoryFailOn, HistoryFormat};
use crate::commands::report::unknown_ending;
use crate::exit::{Ended, SLOWER, USAGE};
use crate::terminal;

pub(crate) fn history(args: &HistoryArgs) -> Result<(), Ended> {
    let format = match args.format {
        Some(format) => format,
        None => from_ending(args.output.as_deref())?,
    };
    let mut runs: Vec<Run> = Vec::new();
    for place in &args.runs {
        for folder in runs_in(place)? {
            let run = Run::open(&folder)?;
            // A run in a folder that is named too, a link to one, a copy of one: twice the same value would pass for a trend.
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
    if let Some(plan) = &args.plan {
        only_of(plan, &mut runs)?;
    }
    // What was measured later is later, however the shell has sorted the names.
    runs.sort_by(|a, b| a.manifest.started.cmp(&b.manifest.started));
    let found = history_of(
        &runs.iter().collect::<Vec<_>>(),
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
        HistoryFormat::Json => history_json(&found)?,
    };
    terminal::deliver("history", &text, args.output.as_deref())?;
    match args.fail_on {
        HistoryFailOn::Slower if found.series.iter().any(Series::is_worse_now) => {
            Err(Ended { code: SLOWER, message: None })
        }
        _ => Ok(()),
    }
}

/// Keeps the runs of the plan with this name.
fn only_of(plan: &str, runs: &mut Vec<Run>) -> Result<(), Ended> {
    let all: BTreeSet<String> = runs.iter().map(|run| run.manifest.name.clone()).collect();
    runs.retain(|run| run.manifest.name == plan);
    let found = match runs.len() {
        0 => format!("no run is of a plan named {plan:?}"),
        1 => format!("only one run is of the plan {plan:?}, and a history has two or more"),
        _ => return Ok(()),
    };
    let names = all.into_iter().collect::<Vec<_>>().join(", ");
    Err(Ended::new(USAGE, format!("{found}; the plans of these runs: {names}")))
}

/// The format that the ending of a file asks for, as for a report.
fn from_ending(output: Option<&Path>) -> Result<HistoryFormat, Ended> {
    let Some(ending) = output.and_then(Path::extension) else { return Ok(HistoryFormat::Terminal) };
    match ending.to_str() {
        Some("html") => Ok(HistoryFormat::Html),
        Some("md") => Ok(HistoryFormat::Md),
        Some("json") => Ok(HistoryFormat::Json),
        Some("txt") => Ok(HistoryFormat::Terminal),
        _ => Err(unknown_ending(ending, ["txt", "md", "html", "json"].into_iter())),
    }
}

/// The run directory itself, or all runs that lie in the folder.
fn runs_in(place: &Path) -> Result<Vec<PathBuf>, Ended> {
    let is_run = |folder: &Path| folder.join("manifest.json").is_file();
    if is_run(place) {
        return Ok(vec![place.to_owned()]);
    }
    let unreadable = |error| Ended::new(USAGE, format!("cannot read {}: {error}", place.display()));
    let entries = std::fs::read_dir(place).map_err(unreadable)?;
    let found: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| is_run(path)).collect();
    if found.is_empty() {
        let message = format!(
            "{} is no run directory and holds none; name run directories, or a folder that holds them (dbdyno run makes them in runs)",
            place.display()
        );
        return Err(Ended::new(USAGE, message));
    }
    Ok(found)
}
