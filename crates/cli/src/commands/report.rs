//! `dbdyno report` reads the records of one or more runs and writes tables and charts.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use dbdyno_analyse::{Choices, Findings, analyse_only, join};
use dbdyno_record::Run;
use dbdyno_report::{
    ALL, PageOptions, ReportPart, TerminalOptions, find, published_html, run_html, run_terminal, unlike_runs,
};

use crate::args::{DEFAULT_OUT, ReportArgs, Style};
use crate::commands::list::{is_run, run_dirs};
#[cfg(feature = "parquet")]
use crate::commands::parquet;
use crate::commands::site::Site;
use crate::exit::ExitError;
use crate::terminal;

const TERMINAL: &str = "terminal";
/// The format whose output is a folder of files. Each other format writes one text.
const PARQUET: &str = "parquet";
/// Word that stands for the newest run directory, in place of a path.
pub(super) const LATEST: &str = "latest";

pub(crate) fn report(args: &ReportArgs) -> Result<(), ExitError> {
    let asked = asked_format(args);
    if asked == Some(PARQUET) && !cfg!(feature = "parquet") {
        return Err(ExitError::usage(dbdyno_plan::built_without(dbdyno_plan::BuildPart::PARQUET)));
    }
    if let [folder] = args.runs.as_slice()
        && let Some(site) = Site::of(folder).filter(|_| !is_run(folder))
    {
        return match (asked, &args.output) {
            #[cfg(feature = "parquet")]
            (Some(PARQUET), _) => parquet::many(args, folder),
            (None, None) => site.write(),
            _ => Err(ExitError::usage(format!(
                "{} holds runs: without --format and --output they get pages, with --format parquet tables; name one \
                     run for another format",
                folder.display()
            ))),
        };
    }
    let dirs = args.runs.iter().map(|run| directory(run)).collect::<Result<Vec<_>, _>>()?;
    #[cfg(feature = "parquet")]
    if asked == Some(PARQUET) {
        let (run, findings) = analysed(&dirs, args)?;
        return parquet::one(args, &run, &findings);
    }
    if args.style == Style::Published {
        return write_published(&dirs, args);
    }
    let name = match asked {
        Some(name) => name,
        None => {
            let texts = ALL.iter().map(|format| (format.extension, format.name));
            let endings: Vec<_> = texts.chain([(PARQUET, PARQUET)]).collect();
            of_ending(args.output.as_deref(), &endings, TERMINAL, "--format")?
        }
    };
    let format = find(name)?;
    let (run, findings) = analysed(&dirs, args)?;
    let text = match (&args.output, format.name) {
        (None, TERMINAL) => {
            let names: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
            let (part, steps, run) = (part(args), args.steps.clone(), names.join(" "));
            run_terminal(&findings, &TerminalOptions { part, steps, run, ..terminal::options() })?
        }
        _ => (format.render)(&findings),
    };
    terminal::deliver("report", &text, args.output.as_deref())?;
    // The process ends here, so the memory is not freed. Freeing a large run's millions of
    // allocations one by one would take a tenth of the command's time.
    std::mem::forget((run, findings));
    Ok(())
}

/// Returns the format that --format names. Without --format the result is Parquet when the output
/// has its file extension, and otherwise `None`. The caller then decides by the extension.
fn asked_format(args: &ReportArgs) -> Option<&str> {
    let is_parquet =
        || args.output.as_ref().and_then(|path| path.extension()).is_some_and(|ending| ending == PARQUET);
    args.format.as_deref().or_else(|| is_parquet().then_some(PARQUET))
}

/// Reads the runs, joins them into one, and drops the variants that were not requested.
pub(super) fn analysed(dirs: &[PathBuf], args: &ReportArgs) -> Result<(Run, Findings), ExitError> {
    let mut opened = dirs.iter().map(|dir| Run::open(dir)).collect::<Result<Vec<_>, _>>()?.into_iter();
    let first =
        opened.next().ok_or_else(|| ExitError::usage("name a run directory, or `latest`".to_owned()))?;
    let mut run = join(first, opened.collect(), unlike_runs);
    let findings = analyse_only(&mut run, &args.variants, &Choices { base: args.base.clone() })?;
    Ok((run, findings))
}

/// Writes two pages: one in the published style at --output, and next to it one with the details.
/// With --without-details it writes only the first.
fn write_published(dirs: &[PathBuf], args: &ReportArgs) -> Result<(), ExitError> {
    let is_page = |path: &&PathBuf| path.extension() == Some(OsStr::new("html"));
    let Some(path) = args.output.as_ref().filter(is_page) else {
        return Err(ExitError::usage("--style published writes two pages; name one with --output FILE.html"));
    };
    let (_, findings) = analysed(dirs, args)?;
    if args.without_details {
        return terminal::deliver("report", &published_html(&findings, PageOptions::default()), Some(path));
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = format!("{stem}-details.html");
    let details = path.with_file_name(&name);
    let options = PageOptions { details: Some(&name), ..PageOptions::default() };
    terminal::deliver("report", &published_html(&findings, options), Some(path))?;
    terminal::deliver("report", &run_html(&findings, PageOptions::default()), Some(&details))
}

/// Returns the run directory that `asked` names. For the word `latest` that is the newest one in
/// the folder [`DEFAULT_OUT`].
pub(super) fn directory(asked: &Path) -> Result<PathBuf, ExitError> {
    if asked.as_os_str() != LATEST || asked.exists() {
        return Ok(asked.to_owned());
    }
    run_dirs(Path::new(DEFAULT_OUT)).into_iter().next().ok_or_else(|| {
        ExitError::usage(format!("there is no run in the folder {DEFAULT_OUT}; give the run directory"))
    })
}

/// Returns the requested part of the report, which is the summary by default.
fn part(args: &ReportArgs) -> ReportPart {
    match &args.section {
        Some(part) => *part,
        None if args.warnings => ReportPart::Warnings,
        None if args.all || !args.steps.is_empty() => ReportPart::All,
        None => ReportPart::Summary,
    }
}

/// Returns the format that the output file's extension selects, or `plain` without a file or an
/// extension. It refuses an unknown extension, because the file's name would then not match its
/// content.
pub(super) fn of_ending<T: Copy>(
    output: Option<&Path>,
    endings: &[(&str, T)],
    plain: T,
    flag: &str,
) -> Result<T, ExitError> {
    let Some(ending) = output.and_then(Path::extension) else { return Ok(plain) };
    let found = endings.iter().find(|(known, _)| ending == *known);
    found.map(|(_, format)| *format).ok_or_else(|| {
        let known: Vec<String> = endings.iter().map(|(known, _)| format!(".{known}")).collect();
        let (ending, known) = (ending.to_string_lossy(), known.join(", "));
        ExitError::usage(format!("no format has the ending .{ending}; there are {known}, or use {flag}"))
    })
}
