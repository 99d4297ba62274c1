//! The command line. Its texts are the manual: `--help` shows them.

mod known_answer;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

pub(crate) use known_answer::{KnownAnswerArgs, SpokenProtocol};

/// A dynamometer for database engines: runs the same work against servers, versions and configurations, charges CPU and
/// IO to who used them, and compares what it measured.
///
/// Without a command it says in ten lines what it can do.
#[derive(Debug, Parser)]
#[command(name = "dbdyno", version, max_term_width = 100)]
#[command(
    after_long_help = "Exit status: 0 fine; 2 the plan, a flag or a name is wrong; 3 something is wrong with this \
machine (space, rights, CPUs); 4 a server is not there, failed or refused; 5 a fault of dbdyno itself; 130 stopped with \
Ctrl-C or SIGTERM."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArgs),
    Plan(PlanArgs),
    Report(ReportArgs),
    List(ListArgs),
    KnownAnswer(Box<KnownAnswerArgs>),
}

/// Run a plan, or the built-in quickstart on SQLite.
///
/// Each block runs every variant once on fresh data, in a random order that is recorded. What is measured is written to a
/// new run directory and synced at the end of each step. Ctrl-C ends the run and keeps what was measured; `--resume` goes
/// on.
///
/// At the end the summary is printed; the whole report is the file report.html in the run directory.
#[derive(Debug, Parser)]
pub(crate) struct RunArgs {
    /// Plan file (TOML). Without one: the quickstart, which runs the Insert Benchmark on SQLite with a rollback journal and
    /// with a write-ahead log. It takes about a minute and needs no server.
    pub(crate) plan: Option<PathBuf>,
    /// Folder in which the run directory is made.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) out: PathBuf,
    /// Change a value of the plan: `blocks=5`, `workload.insert-benchmark.clients=4`, `variant.NAME.KEY=VALUE`. May be given
    /// more than once.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) overrides: Vec<(String, String)>,
    /// Number of blocks, instead of the plan's.
    #[arg(long, value_name = "N")]
    pub(crate) blocks: Option<u32>,
    /// Go on with a run that was stopped or killed. Cells that ended stay as they are; the others run from their start, in
    /// the recorded order. What an unfinished cell left behind is moved to the folder `aside` of the run.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["plan", "overrides", "blocks", "out"])]
    pub(crate) resume: Option<PathBuf>,
}

/// Show what a plan would run, how long it takes and how much disk it needs; runs nothing.
#[derive(Debug, Parser)]
pub(crate) struct PlanArgs {
    /// Plan file (TOML); the quickstart when left out.
    #[arg(conflicts_with = "schema")]
    pub(crate) plan: Option<PathBuf>,
    /// Change a value of the plan, as with `dbdyno run`.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) overrides: Vec<(String, String)>,
    /// Print the JSON Schema of plan files instead.
    #[arg(long)]
    pub(crate) schema: bool,
    /// Print the plan with all its defaults instead, as TOML.
    #[arg(long, conflicts_with = "schema")]
    pub(crate) resolved: bool,
}

/// Report on a run: tables, charts and the evidence behind them.
///
/// Everything is computed from the records in the run directory: the same run gives the same report on any machine. A run
/// that is going on, or was cut off, can be reported on too.
#[derive(Debug, Parser)]
pub(crate) struct ReportArgs {
    /// Run directory.
    pub(crate) run: PathBuf,
    /// Variant that the others are compared with, instead of the plan's base.
    #[arg(long, value_name = "VARIANT")]
    pub(crate) base: Option<String>,
    /// `terminal`, `md`, `html`, `csv` or `json`. When left out, the ending of --output decides; without --output it is
    /// `terminal`.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// File to write, instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// List what there is: workloads, drivers, metrics, runs or servers.
#[derive(Debug, Parser)]
pub(crate) struct ListArgs {
    #[arg(value_enum)]
    pub(crate) what: Listed,
    /// Folder with run directories, for `list runs`.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Listed {
    /// Workloads and their steps.
    Workloads,
    /// Databases that dbdyno speaks to.
    Drivers,
    /// Columns of the reports, each with its meaning and unit.
    Metrics,
    /// Runs in the folder --out, newest first.
    Runs,
    /// Servers in the servers folder ($DBDYNO_SERVERS, else ~/.cache/dbdyno/servers); a plan can name them.
    Servers,
}

fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, for instance blocks=5")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }

    #[test]
    fn a_setting_is_split_at_its_first_equals_sign() {
        assert_eq!(key_value("a.b = c=d"), Ok(("a.b".to_owned(), "c=d".to_owned())));
        assert!(key_value("blocks").is_err());
    }
}
