//! `dbdyno report`: a run's records in, tables and charts out.

use std::path::Path;

use dbdyno_analyse::{Choices, analyse_with};
use dbdyno_record::Run;
use dbdyno_report::{ALL, Format, Terminal, TerminalOptions, find};

use crate::args::ReportArgs;
use crate::exit::{Ended, MACHINE};
use crate::terminal;

pub(crate) fn report(args: &ReportArgs) -> Result<(), Ended> {
    let name = args.format.clone().unwrap_or_else(|| from_ending(args.output.as_deref()));
    let format = find(&name)?;
    let run = Run::open(&args.run)?;
    let findings = analyse_with(&run, &Choices { base: args.base.clone() })?;
    let text = match (&args.output, format.name()) {
        (None, "terminal") => {
            let options = TerminalOptions {
                width: terminal::width(),
                colour: terminal::wants_colour(),
                evidence: true,
            };
            Terminal { options }.render(&findings)?
        }
        _ => format.render(&findings)?,
    };
    match &args.output {
        None => terminal::out(&text)?,
        Some(path) => {
            std::fs::write(path, text)
                .map_err(|error| Ended::new(MACHINE, format!("cannot write {}: {error}", path.display())))?;
            terminal::note(&format!("report: {}", path.display()));
        }
    }
    // The process ends here. Giving back the millions of pieces of a large run one by one would take a tenth of its time.
    std::mem::forget((run, findings));
    Ok(())
}

fn from_ending(output: Option<&Path>) -> String {
    let ending = output.and_then(Path::extension).map(|ending| ending.to_string_lossy().into_owned());
    let format = ALL.iter().find(|format| Some(format.extension()) == ending.as_deref());
    format.map_or("terminal", |format| format.name()).to_owned()
}
