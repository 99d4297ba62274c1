//! `dbdyno report`: a run's records in, tables and charts out.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use dbdyno_analyse::{Choices, analyse_with};
use dbdyno_record::Run;
use dbdyno_report::{ALL, Format, Part, Terminal, TerminalOptions, find};

use crate::args::{DEFAULT_OUT, ReportArgs};
use crate::exit::{Ended, USAGE};
use crate::terminal;

/// The word for the newest run.
const LATEST: &str = "latest";

pub(crate) fn report(args: &ReportArgs) -> Result<(), Ended> {
    let name = match &args.format {
        Some(name) => name.clone(),
        None => from_ending(args.output.as_deref())?,
    };
    let format = find(&name)?;
    let dir = directory(&args.run)?;
    let run = Run::open(&dir)?;
    let findings = analyse_with(&run, &Choices { base: args.base.clone() })?;
    let text = match (&args.output, format.name()) {
        (None, "terminal") => {
            let options = TerminalOptions {
                part: part(args),
                steps: args.steps.clone(),
                run: dir.display().to_string(),
                ..terminal::options()
            };
            Terminal { options }.render(&findings)?
        }
        _ => format.render(&findings)?,
    };
    terminal::deliver("report", &text, args.output.as_deref())?;
    // The process ends here. Giving back the millions of pieces of a large run one by one would take a tenth of its time.
    std::mem::forget((run, findings));
    Ok(())
}

/// The run directory itself, or the newest one of `runs` for the word `latest`.
fn directory(asked: &Path) -> Result<PathBuf, Ended> {
    if asked.as_os_str() != LATEST || asked.exists() {
        return Ok(asked.to_owned());
    }
    let entries = std::fs::read_dir(DEFAULT_OUT).into_iter().flatten().flatten().map(|entry| entry.path());
    // Names begin with the time.
    entries.filter(|path| path.join("manifest.json").exists()).max().ok_or_else(|| {
        Ended::new(USAGE, format!("there is no run in the folder {DEFAULT_OUT}; give the run directory"))
    })
}

/// What was asked for: the answer, unless a flag says more.
fn part(args: &ReportArgs) -> Part {
    match &args.section {
        Some(section) => section.0,
        None if args.warnings => Part::Warnings,
        None if args.all || !args.steps.is_empty() => Part::All,
        None => Part::Answer,
    }
}

/// The format that the ending of a file asks for; text as on a terminal without a file or an ending.
fn from_ending(output: Option<&Path>) -> Result<String, Ended> {
    let Some(ending) = output.and_then(Path::extension) else { return Ok("terminal".to_owned()) };
    let format = ALL.iter().find(|format| ending == format.extension());
    let endings = ALL.iter().map(|format| format.extension());
    format.map(|format| format.name().to_owned()).ok_or_else(|| unknown_ending(ending, endings))
}

/// A file whose ending is of no format would hold what no one expects in it.
pub(super) fn unknown_ending<'a>(ending: &OsStr, known: impl Iterator<Item = &'a str>) -> Ended {
    let known = known.map(|ending| format!(".{ending}")).collect::<Vec<_>>().join(", ");
    let ending = ending.to_string_lossy();
    let message = format!("no format has the ending .{ending}; there are {known}, or say --format");
    Ended::new(USAGE, message)
}
