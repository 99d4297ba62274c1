//! `dbdyno history`: many runs of one plan in order, and where a rate changed its level.

use std::path::{Path, PathBuf};

use dbdyno_analyse::{HistoryChoices, Measure, Series, history as history_of};
use dbdyno_record::Run;
use dbdyno_report::{TerminalOptions, history_html, history_json, history_markdown, history_terminal};

use crate::args::{HistoryArgs, HistoryFailOn, HistoryFormat};
use crate::exit::{Ended, MACHINE, SLOWER, USAGE};
use crate::terminal;

pub(crate) fn history(args: &HistoryArgs) -> Result<(), Ended> {
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
        runs.retain(|run| run.manifest.name == *plan);
    }
    // What was measured later stands later, however the shell has sorted the names.
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
    let options =
        TerminalOptions { width: terminal::width(), colour: terminal::wants_colour(), evidence: false };
    let text = match args.format.unwrap_or_else(|| from_ending(args.output.as_deref())) {
        HistoryFormat::Terminal => history_terminal(&found, options),
        HistoryFormat::Md => history_markdown(&found),
        HistoryFormat::Html => history_html(&found)?,
        HistoryFormat::Json => history_json(&found)?,
    };
    match &args.output {
        None => terminal::out(&text)?,
        Some(path) => {
            std::fs::write(path, text)
                .map_err(|error| Ended::new(MACHINE, format!("cannot write {}: {error}", path.display())))?;
            terminal::note(&format!("history: {}", path.display()));
        }
    }
    match args.fail_on {
        HistoryFailOn::Slower if found.series.iter().any(Series::is_slower_now) => {
            Err(Ended { code: SLOWER, message: None })
        }
        _ => Ok(()),
    }
}

fn from_ending(output: Option<&Path>) -> HistoryFormat {
    let ending = output.and_then(Path::extension).and_then(|ending| ending.to_str());
    match ending {
        Some("html") => HistoryFormat::Html,
        Some("md") => HistoryFormat::Md,
        Some("json") => HistoryFormat::Json,
        _ => HistoryFormat::Terminal,
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
        let message = format!("{} is no run directory and holds none", place.display());
        return Err(Ended::new(USAGE, message));
    }
    Ok(found)
}
