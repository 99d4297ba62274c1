//! `dbdyno report --format parquet` writes a folder of files, so it is not one of the report's text
//! formats.

use std::path::{Path, PathBuf};

use dbdyno_analyse::{Findings, operation_histograms};
use dbdyno_record::{Run, parallel};
use dbdyno_report::{RunRows, parquet};

use crate::args::ReportArgs;
use crate::commands::list::run_dirs;
use crate::commands::report::analysed;
use crate::exit::ExitError;
use crate::terminal;

/// Runs whose rows are in memory at the same time.
const RUNS_AT_A_TIME: usize = 8;

pub(super) fn one(args: &ReportArgs, run: &Run, findings: &Findings) -> Result<(), ExitError> {
    write(args, [RunRows::of(findings, &operation_histograms(run))])
}

/// Writes the runs of a folder, the oldest first, each with findings of its own. It warns of a run
/// that cannot be read, and leaves it out.
pub(super) fn many(args: &ReportArgs, folder: &Path) -> Result<(), ExitError> {
    let dirs: Vec<PathBuf> = run_dirs(folder).into_iter().rev().collect();
    let rows = |dir: &PathBuf| match analysed(std::slice::from_ref(dir), args) {
        Ok((run, findings)) => Some(RunRows::of(&findings, &operation_histograms(&run))),
        Err(ended) => {
            let why = ended.message.unwrap_or_default();
            terminal::warning(&format!("{} is left out: {why}", dir.display()));
            None
        }
    };
    write(args, dirs.chunks(RUNS_AT_A_TIME).flat_map(|dirs| parallel::map(dirs, rows)).flatten())
}

fn write(args: &ReportArgs, runs: impl IntoIterator<Item = RunRows>) -> Result<(), ExitError> {
    let Some(folder) = &args.output else {
        return Err(ExitError::usage("--format parquet writes a folder of files; name it with --output"));
    };
    let paths = parquet(runs, folder)?;
    let lines: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    terminal::out(&lines.join("\n"))
}
