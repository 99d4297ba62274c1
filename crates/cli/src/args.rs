//! The command line. Its texts are the manual: `--help` shows them.

mod known_answer;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand};
use dbdyno_model::{CpuList, On, PlanDuration};
use dbdyno_report::ReportPart;

pub(crate) use known_answer::{KnownAnswerArgs, SpokenProtocol};

/// Folder in which run directories are made.
pub(crate) const DEFAULT_OUT: &str = "runs";

/// A dynamometer for database engines: runs the same workload on servers, versions and
/// configurations, attributes CPU and IO to the processes that used them, and compares the results.
///
/// Without a command it prints a short overview.
#[derive(Debug, Parser)]
#[command(name = "dbdyno", version, max_term_width = 80)]
#[command(
    after_long_help = "Exit status: 0 fine; 1 a comparison ended as slower than allowed; 2 the plan, a flag or a name is wrong; 3 something is wrong with this \
machine (space, rights, CPUs); 4 a server is not there, failed or refused; 5 a fault of dbdyno itself; 130 stopped with \
Ctrl-C, SIGTERM or SIGHUP."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// Colours in results: `auto` where they go to a terminal that supports them and NO_COLOR is
    /// not set.
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true
    )]
    pub(crate) color: Colour,
    /// No progress and no notes; warnings, errors and results only.
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

/// `auto`, `always` or `never`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Colour {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArgs),
    Plan(PlanArgs),
    /// List the plans that ship, or print one.
    ///
    /// `dbdyno run @NAME` runs one as it is. To change it: dbdyno plans show NAME > my.toml
    Plans {
        #[command(subcommand)]
        verb: Option<PlansVerb>,
    },
    Init(InitArgs),
    Report(ReportArgs),
    Compare(CompareArgs),
    History(HistoryArgs),
    /// Show a folder of runs in a browser on this machine, runs in progress too.
    ///
    /// There is an index, a page for each run, and a history for each plan that ran more than once.
    /// Pages are made from the records on each request; the page of a run in progress says when
    /// there are new figures.
    Serve {
        /// Folder that holds run directories.
        #[arg(value_name = "RUNS", default_value = DEFAULT_OUT)]
        folder: PathBuf,
        /// Port on 127.0.0.1; 0 for any that is free.
        #[arg(long, value_name = "PORT", default_value_t = 8765)]
        port: u16,
    },
    List(ListArgs),
    /// Get, list, add, start and remove database servers.
    ///
    /// Servers are unpacked base directories in one folder: $DBDYNO_SERVERS, otherwise
    /// ~/.cache/dbdyno/servers. A plan names one by its folder: `server = "mysql-8.0.31"`. Nothing
    /// is installed on this machine, and any number of versions can be kept side by side.
    ///
    /// Servers that can be downloaded are listed in a catalogue. Entries of your own go into
    /// ~/.config/dbdyno/servers.toml, or the file that $DBDYNO_CATALOGUE names.
    Servers {
        #[command(subcommand)]
        verb: ServersVerb,
    },
    Doctor(DoctorArgs),
    /// Print completions of the command line for a shell.
    ///
    /// For instance: dbdyno completions bash > ~/.local/share/bash-completion/completions/dbdyno
    Completions {
        shell: clap_complete::Shell,
    },
    /// Print a manual page: dbdyno man run | man -l -
    Man {
        /// Command whose page is printed; that of dbdyno itself when left out.
        command: Option<String>,
    },
    KnownAnswer(Box<KnownAnswerArgs>),
    /// Run a script of sysbench as sysbench does: its command line, its text output, dbdyno's load
    /// engine.
    ///
    /// SCRIPT is a file, or the name of one of sysbench's own; COMMAND is prepare, run, cleanup,
    /// prewarm, help or one of the script's own. Options are those of sysbench 1.0.20 and 1.1 and
    /// of the script. Ignored options are listed. The password may come from MYSQL_PWD or
    /// PGPASSWORD instead of --mysql-password and --pgsql-password, which other users of the
    /// machine see.
    #[command(override_usage = "dbdyno sysbench SCRIPT [--NAME=VALUE ...] COMMAND")]
    Sysbench {
        /// Script, options and command, in any order.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD", required = true)]
        words: Vec<String>,
    },
    /// Run pgbench's scripts as pgbench does: its command line, its report, dbdyno's load engine.
    ///
    /// Options are those of pgbench 15: -i and -s make the tables, -f and -b name scripts, -c -j -t
    /// -T -M -R -L -C -r -P and others say how they run; -h -p -U, a database, and libpq's
    /// variables say where. Ignored options are listed.
    #[command(override_usage = "dbdyno pgbench [OPTION]... [DBNAME]", disable_help_flag = true)]
    Pgbench {
        /// Print this help. -h is pgbench's host.
        #[arg(long, action = clap::ArgAction::Help)]
        help: Option<bool>,
        /// pgbench's own options, and a database.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD")]
        words: Vec<String>,
    },
    #[command(hide = true)]
    Task(TaskArgs),
    /// One of several client hosts of a run: what `dbdyno run` starts on each of them.
    #[command(hide = true)]
    Agent {
        /// Address or name of this host, under which the conductor reaches it.
        #[arg(long)]
        listen: String,
    },
}

/// One block of a fleet's run, as a run of its own: what a fleet starts on its machines.
#[derive(Debug, Parser)]
pub(crate) struct TaskArgs {
    /// As of `dbdyno run`.
    #[arg(long)]
    pub(crate) templates: Option<PathBuf>,
    /// Where the files that the plan names have been put.
    #[arg(long)]
    pub(crate) files: Option<PathBuf>,
    /// Directory of the run.
    pub(crate) run: PathBuf,
    pub(crate) block: u32,
    /// Folder in which the task's run directory is made, and its name.
    pub(crate) out: PathBuf,
    pub(crate) name: String,
}

/// Run a plan, or the built-in quickstart on SQLite.
///
/// A run can be one line: dbdyno run --server mysql-5.7.22 --server mysql-8.0.31 --workload oltp
/// --test point-select --connections 16 --time 30s
///
/// Each block runs every variant once on fresh data, in a random order that is recorded. Results
/// are written to a new run directory and synced at the end of each step. Ctrl-C ends the run and
/// keeps its results; `--resume` continues it.
///
/// At the end the summary is printed; the whole report is the file report.html in the run
/// directory.
#[derive(Debug, Parser)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) source: PlanSource,
    /// Get servers of the plan that are not installed, without asking.
    #[arg(long)]
    pub(crate) get: bool,
    /// Folder in which the run directory is made.
    #[arg(long, alias = "output", value_name = "DIR", default_value = DEFAULT_OUT)]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) changes: Changes,
    /// Folder in which initialised data directories are kept, one for each build and set of options
    /// that shape them. Later runs copy them instead of initialising servers again, which takes 2
    /// to 30 s each; several runs may share it at the same time. Best on the filesystem of the data
    /// directories. When left out: $DBDYNO_TEMPLATES; without it each run makes its own and removes
    /// them with its data.
    #[arg(long, value_name = "DIR")]
    pub(crate) templates: Option<PathBuf>,
    /// Serve the figures as OpenMetrics text during the run, at this port of 127.0.0.1,
    /// or at this address and port for other hosts. The run directory gets the figures of the whole
    /// run as metrics.prom.
    #[arg(long, value_name = "PORT")]
    pub(crate) metrics: Option<String>,
    /// Do not begin while another dbdyno measures on this host. Without this flag the run begins
    /// with a warning, which its report repeats.
    #[arg(long)]
    pub(crate) alone: bool,
    /// Run the blocks on several machines, each block on one of them: `slurm` or `slurm:PARTITION`
    /// for the idle nodes of a cluster, `ray` or `ray://HOST:PORT` for the nodes of a Ray cluster.
    /// Files travel to machines that lack them. A block whose machine fails is run again.
    #[arg(long, value_name = "FLEET", conflicts_with = "metrics")]
    pub(crate) on: Option<On>,
    /// Continue a run that was stopped or killed. Cells that ended, failed ones too, stay as they
    /// are; the others run from their start, in the recorded order. Records of an unfinished cell
    /// are moved to the folder `aside` of the run.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["plan", "servers", "addresses", "overrides", "blocks", "aa", "budget", "out"])]
    pub(crate) resume: Option<PathBuf>,
    /// With --resume: also repeat failed cells, each in its place of the order. The records of the
    /// failure are moved to the folder `aside` of the run, and the report says which cells were
    /// repeated and why.
    #[arg(long)]
    pub(crate) failed: bool,
    /// Continue with --resume even if another version or commit of dbdyno began the run; the report
    /// then says so. A different version of a workload, or a debug build after a release build, is
    /// still refused.
    #[arg(long)]
    pub(crate) anyway: bool,
}

/// Show what a plan would run, how long it takes, how much disk it needs and which differences it
/// can detect; runs nothing.
#[derive(Debug, Parser)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) source: PlanSource,
    #[command(flatten)]
    pub(crate) changes: Changes,
    /// Run whose noise the plan's power is computed from: that of its A/A, otherwise that of its
    /// ratios. When left out, it is that of the runs of the same workload that ended on this host.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["schema", "resolved"])]
    pub(crate) noise: Option<PathBuf>,
    /// Difference in percent for which to show the number of blocks; twice each step's margin when
    /// left out.
    #[arg(long, value_name = "PCT", value_parser = difference, conflicts_with_all = ["schema", "resolved"])]
    pub(crate) detect: Option<f64>,
    /// Print time, disk, order and power as JSON instead.
    #[arg(long, conflicts_with_all = ["schema", "resolved"])]
    pub(crate) json: bool,
    /// Print the JSON Schema of plan files instead.
    #[arg(long, conflicts_with_all = ["plan", "servers", "addresses"])]
    pub(crate) schema: bool,
    /// Print the option files that the variants' config intents are rendered to instead.
    #[arg(long, conflicts_with = "schema")]
    pub(crate) configs: bool,
    /// Print the plan with all its defaults instead, as TOML.
    #[arg(long, conflicts_with_all = ["schema", "configs"])]
    pub(crate) resolved: bool,
}

/// Report on a run: the summary, and the details on request.
///
/// Without further flags it prints what was compared, what makes figures invalid, and one table:
/// the rate of each step, its ratio to the base with interval and verdict, p99 response times, and
/// the main cause of each difference. Everything is computed from the records in the run directory:
/// the same run gives the same report on any machine. It also works for a run that is going on or
/// was cut off.
#[derive(Debug, Parser)]
pub(crate) struct ReportArgs {
    /// Run directory; `latest` for the newest one in the folder `runs`. Several are reported on as
    /// one, with what differs among the warnings. A folder of runs gets an index page, a page for
    /// each run, and a history for each plan that ran more than once; with `--format parquet` the
    /// tables of all its runs.
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// Variant that the others are compared with, instead of the plan's base.
    #[arg(long, value_name = "VARIANT")]
    pub(crate) base: Option<String>,
    /// Only these variants, by name: `A,B`.
    #[arg(long, value_name = "VARIANT", value_delimiter = ',')]
    pub(crate) variants: Vec<String>,
    /// One part: `summary`, `warnings`, `tables` (rates, ratios, groups, sweeps), `latency`, `cost`
    /// (CPU by who used it), `io`, `sql` (statements and query plans), `statistics`, `why` (functions
    /// that make the difference), `config` or
    /// `all`.
    #[arg(long, value_name = "PART", value_parser = part)]
    pub(crate) section: Option<ReportPart>,
    /// Only this step; all its details, unless --section says less. May be given more than once.
    #[arg(long = "step", value_name = "NAME")]
    pub(crate) steps: Vec<String>,
    /// All warnings in full; short for --section warnings.
    #[arg(long, conflicts_with = "section")]
    pub(crate) warnings: bool,
    /// Everything; short for --section all.
    #[arg(long, conflicts_with_all = ["section", "warnings"])]
    pub(crate) all: bool,
    /// `terminal`, `md`, `html`, `csv`, `json`, `openmetrics` or `parquet`. When left out, the
    /// ending of --output decides; without --output it is `terminal`. Files always hold the whole
    /// report; for Parquet, --output is a folder.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// Style of an HTML page: `summary`, or `published` for tables and charts as in published
    /// reports, with servers in rows, steps in columns and the base first. The rest is then on a
    /// second page next to it.
    #[arg(long, value_enum, value_name = "STYLE", default_value = "summary", hide_default_value = true)]
    pub(crate) style: Style,
    /// With --style published: no second page. Warnings are then on the first.
    #[arg(long, requires = "style")]
    pub(crate) without_details: bool,
    /// File to write, instead of standard output.
    #[arg(short, long, alias = "out", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Style {
    /// The summary first, then its details.
    Summary,
    /// As published reports.
    Published,
}

fn part(word: &str) -> Result<ReportPart, String> {
    let found = ReportPart::ALL.into_iter().find(|(name, _)| *name == word);
    found.map(|(_, part)| part).ok_or_else(|| {
        let names: Vec<&str> = ReportPart::ALL.iter().map(|(name, _)| *name).collect();
        format!("there are {}", names.join(", "))
    })
}

/// Compare two variants, of one run or of two, and end with status 1 if the new one is slower.
///
/// Each step gets a ratio, its 95 % interval and a verdict: faster, slower, same, missed, stalled,
/// on schedule, undecided or invalid. Variants of one run are compared in pairs, block by block.
/// Two runs must be comparable: same plan name, options, seed, load client, class of host and
/// memory of the servers.
#[derive(Debug, Parser)]
pub(crate) struct CompareArgs {
    /// The base: RUN:VARIANT, or RUN alone for a run of one variant.
    pub(crate) base: String,
    /// The new one: RUN:VARIANT, RUN, or :VARIANT for another variant of the run of BASE.
    pub(crate) new: String,
    /// Margin in percent for all steps: smaller differences do not matter; the margins of the plan
    /// of BASE when left out.
    #[arg(long, value_name = "PCT", value_parser = percent)]
    pub(crate) margin: Option<f64>,
    /// Results that end with status 1; `slower` when left out.
    #[arg(long, value_enum, value_name = "WHAT", default_value = "slower", hide_default_value = true)]
    pub(crate) fail_on: FailOn,
    /// Which figures decide the status: `rate`, `p99` (response times) or `rate,p99`.
    #[arg(long, value_enum, value_name = "FIGURES", value_delimiter = ',', default_value = "rate")]
    pub(crate) gate: Vec<Gate>,
    /// How the comparison is printed; `terminal` when left out.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "terminal", hide_default_value = true)]
    pub(crate) format: ComparisonFormat,
    /// File to write, instead of standard output.
    #[arg(short, long, alias = "out", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Compare runs that are not comparable, too; the output then begins with what differs.
    #[arg(long)]
    pub(crate) anyway: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FailOn {
    /// A step that is slower or stalled, that did not keep a rate of the plan that BASE kept, or
    /// that is invalid or failed where BASE is valid.
    Slower,
    /// A step that was not shown to be the same or faster: slower, missed, stalled, on schedule,
    /// undecided, invalid, or one block.
    Undecided,
    /// Nothing; the status says only whether the comparison could be made.
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Gate {
    /// The verdict of the rate.
    Rate,
    /// The verdict of the 99th percentile of the response times.
    P99,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ComparisonFormat {
    /// Text for a terminal.
    Terminal,
    /// Markdown, for a comment on a pull request.
    Md,
    /// JUnit XML, for the test page of a CI system.
    Junit,
    /// JSON, for a program.
    Json,
}

/// Show many runs of one plan in order, and when the rate or the p99 of a step changed.
///
/// Each series, the rate or the p99 of a step of a variant, has one value per run. The largest
/// shift of its level is tested against shuffled series, and corrected over all series, so that
/// noise rarely counts as a change. Runs must be comparable, as for `dbdyno compare`.
#[derive(Debug, Parser)]
pub(crate) struct HistoryArgs {
    /// Run directories, or folders that hold them; they are put into the order of their start.
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// Only runs of the plan with this name, for folders that hold others too.
    #[arg(long, value_name = "NAME")]
    pub(crate) plan: Option<String>,
    /// Only this variant; all when left out.
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,
    /// Follow ratios to the base of the same run instead of rates, which removes changes of the
    /// whole machine.
    #[arg(long)]
    pub(crate) ratio: bool,
    /// Margin in percent for all steps: smaller changes do not matter; the margins of the last
    /// run's plan when left out.
    #[arg(long, value_name = "PCT", value_parser = percent)]
    pub(crate) margin: Option<f64>,
    /// Results that end with status 1; `never` when left out.
    #[arg(long, value_enum, value_name = "WHAT", default_value = "never", hide_default_value = true)]
    pub(crate) fail_on: HistoryFailOn,
    /// Which series decide the status: `rate`, `p99` (response times) or `rate,p99`. For a step
    /// whose rate the plan sets, p99 is followed instead of the rate.
    #[arg(long, value_enum, value_name = "FIGURES", value_delimiter = ',', default_value = "rate")]
    pub(crate) gate: Vec<Gate>,
    /// How the history is written. When left out, the ending of --output decides; without --output
    /// it is `terminal`.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<HistoryFormat>,
    /// File to write, instead of standard output.
    #[arg(short, long, alias = "out", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Put runs that are not comparable into one series, too; the output then begins with what
    /// differs.
    #[arg(long)]
    pub(crate) anyway: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum HistoryFormat {
    /// Text for a terminal.
    Terminal,
    /// Markdown, for a comment on a pull request.
    Md,
    /// One page with charts, which needs no network.
    Html,
    /// JSON, for a program.
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum HistoryFailOn {
    /// A series whose newest change is to slower, or whose newest run has a block with rate zero or
    /// no valid block.
    Slower,
    /// Nothing.
    Never,
}

/// List workloads, drivers, metrics, runs or servers.
#[derive(Debug, Parser)]
pub(crate) struct ListArgs {
    #[arg(value_enum)]
    pub(crate) what: Listed,
    /// For `list workloads`: one workload, with the statements, parameters and purpose of each
    /// step.
    pub(crate) name: Option<String>,
    /// As JSON, for a program; of `list workloads` the steps of NAME, or of all workloads.
    #[arg(long)]
    pub(crate) json: bool,
    /// Folder with run directories, for `list runs`.
    #[arg(long, alias = "output", value_name = "DIR", default_value = DEFAULT_OUT)]
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
    /// Servers in the servers folder; a plan can name them. `dbdyno servers list` also shows
    /// servers that can be downloaded.
    Servers,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(value) if (0.0..100.0).contains(&value) => Ok(value),
        _ => Err("write a percentage from 0 to below 100, for instance 2 or 2.5".to_owned()),
    }
}

/// Reads a difference to be detected, in percent. It must be above 0, because no number of blocks
/// can show a difference of 0.
fn difference(text: &str) -> Result<f64, String> {
    percent(text)
        .ok()
        .filter(|value| *value > 0.0)
        .ok_or_else(|| "write a percentage above 0 and below 100, for instance 2 or 1.5".to_owned())
}

/// Which plan.
#[derive(Debug, Default, Parser)]
pub(crate) struct PlanSource {
    /// Plan file (TOML), or `@NAME` of a plan that ships; `dbdyno plans` lists these. Without one,
    /// and without --server or --address: the quickstart, which runs the Insert Benchmark on SQLite
    /// with a rollback journal and with a write-ahead log. It takes less than a minute and needs no
    /// server.
    #[arg(conflicts_with_all = ["servers", "addresses"])]
    pub(crate) plan: Option<PathBuf>,
    /// Another size of the plan, such as `small`; `dbdyno plan` lists them.
    #[arg(long, value_name = "NAME", requires = "plan")]
    pub(crate) size: Option<String>,
    #[command(flatten)]
    pub(crate) spelt: PlanFlags,
    /// Write the plan of these flags to this new file.
    #[arg(long, value_name = "FILE", requires = "workload")]
    pub(crate) save: Option<PathBuf>,
}

/// A plan in flags.
#[derive(Debug, Default, Parser)]
pub(crate) struct PlanFlags {
    /// A variant: a server of the servers folder, or `sqlite`. The first one is the base. May be
    /// given more than once, as --address, --config and --test.
    #[arg(long = "server", value_name = "NAME", requires = "workload")]
    pub(crate) servers: Vec<String>,
    /// A variant: the address of a running server, `mysql://user@host/database`.
    #[arg(long = "address", value_name = "URL", requires = "workload")]
    pub(crate) addresses: Vec<String>,
    /// Environment variable that holds the password for each --address.
    #[arg(long, value_name = "NAME", requires = "addresses")]
    pub(crate) password_env: Option<String>,
    /// Config of each server; with several, each server is a variant with each of them.
    #[arg(long = "config", id = "config", value_name = "FILE", requires = "servers")]
    pub(crate) configs: Vec<PathBuf>,
    /// Workload of --server and --address; `dbdyno list workloads` shows them.
    #[arg(long, value_name = "NAME")]
    pub(crate) workload: Option<String>,
    /// Option `tests` of that workload.
    #[arg(long = "test", value_name = "NAME", requires = "workload")]
    pub(crate) tests: Vec<String>,
    /// Option `connections` of that workload: `16`, `1,4,16` or `1..64`.
    #[arg(long, alias = "threads", value_name = "N", requires = "workload")]
    pub(crate) connections: Option<String>,
    /// How long each step of that workload takes: its option `time`, or those for reads and writes.
    /// Where loading and writing as many rows as usual would take longer than the steps, there are
    /// fewer, unless --set says how many.
    #[arg(long, value_name = "TIME", value_parser = PlanDuration::of_argument, requires = "workload")]
    pub(crate) time: Option<PlanDuration>,
}

/// What is changed of a plan.
#[derive(Debug, Parser)]
pub(crate) struct Changes {
    /// Change a value of the plan: `blocks=5`, `workload.insert-benchmark.clients=4`,
    /// `variant.NAME.KEY=VALUE`. May be given more than once.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    overrides: Vec<(String, String)>,
    /// Number of blocks, instead of the plan's.
    #[arg(long, value_name = "N")]
    blocks: Option<u32>,
    /// A/A: run the base under a second name too, once in every block. The report then shows the
    /// noise and the false differences of this machine, and `dbdyno plan --noise RUN` computes from
    /// it what a plan can detect.
    #[arg(long)]
    aa: bool,
    /// Time that the whole run may take, such as 2h. After the plan's blocks (3 or more) come
    /// interim analyses: while a comparison is undecided and time is left, further blocks of the
    /// base and the undecided variants are run. Verdicts are corrected for each interim analysis.
    /// With --on it is the time of all machines together.
    #[arg(long, value_name = "TIME", value_parser = PlanDuration::of_argument)]
    budget: Option<PlanDuration>,
    /// Profile the servers after the plan's blocks, and show the functions that make the
    /// difference. Needs Linux perf; `dbdyno doctor` says whether it works.
    #[arg(long)]
    profile: bool,
    /// Profile these steps, instead of those in which a variant is faster or slower: `l.i1,qr*`.
    #[arg(long, value_name = "STEPS", value_delimiter = ',')]
    profile_steps: Vec<String>,
}

impl Changes {
    /// `--blocks N` is `--set blocks=N`, and so on.
    pub(crate) fn overrides(&self) -> Vec<(String, String)> {
        let blocks = self.blocks.map(|blocks| ("blocks".to_owned(), blocks.to_string()));
        let aa = self.aa.then(|| ("aa".to_owned(), "true".to_owned()));
        let budget = self.budget.map(|budget| ("budget".to_owned(), budget.to_string()));
        let profile = match &self.profile_steps[..] {
            [] => self.profile.then(|| ("profile".to_owned(), "true".to_owned())),
            steps => Some(("profile.steps".to_owned(), format!("{steps:?}"))),
        };
        self.overrides.iter().cloned().chain(blocks).chain(aa).chain(budget).chain(profile).collect()
    }
}

fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, for instance blocks=5")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlansVerb {
    /// Print a plan, or a file that plans refer to.
    Show {
        /// Name of a plan, with or without @; or of a file, as configs/small.toml.
        name: String,
    },
}

/// Write a commented plan to a new file, from flags or, on a terminal, from a few questions.
///
/// Options of the workload that were not chosen are in it as comments, if they have a default. All
/// options: dbdyno plan --schema
#[derive(Debug, Parser)]
pub(crate) struct InitArgs {
    /// The new file.
    #[arg(default_value = "plan.toml")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) spelt: PlanFlags,
    /// Number of blocks; verdicts need three or more.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) blocks: u32,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServersVerb {
    /// List servers that can be downloaded, and installed servers with their features.
    ///
    /// The features come from the server itself, which was started once on fresh data when it was
    /// downloaded or added.
    List {
        /// Only downloaded and added servers.
        #[arg(long)]
        here: bool,
        /// Print JSON instead, with all engines and logins.
        #[arg(long)]
        json: bool,
    },
    /// Download servers of the catalogue.
    ///
    /// Each is downloaded, checked (SHA-256; Debian packages by apt's signature), unpacked, started
    /// once on fresh data and asked for its features. A failed download leaves no files. An
    /// installed server is not downloaded again.
    Get {
        /// Names in the catalogue; `dbdyno servers list` shows them.
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// Take the tarball from this file, or from this folder under the vendor's file name,
        /// instead of downloading it. It is checked and started as if it had been downloaded.
        #[arg(long, value_name = "FILE|FOLDER")]
        from: Option<PathBuf>,
    },
    Build(BuildArgs),
    /// Name a server that you built or installed, for use in plans.
    ///
    /// It is started once on fresh data and asked for its features. Its base directory is neither
    /// moved nor changed. After a rebuild in place, add it again.
    Add {
        /// Name for plans: letters, digits, dots, dashes and underscores.
        name: String,
        /// What `make install`, a binary tarball or a package made: the folder with bin/mysqld,
        /// bin/mariadbd, sbin/mysqld, usr/sbin/mariadbd, bin/postgres or the like.
        #[arg(long, value_name = "DIR")]
        basedir: PathBuf,
    },
    /// Start a server on fresh data, for trying things out, until Ctrl-C.
    ///
    /// It listens on a private unix socket only, and its superuser has no password. When it ends,
    /// its data is removed.
    Start {
        /// A downloaded or added server.
        name: String,
        /// The server's own option file: my.cnf, or settings of postgresql.conf.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Remove a downloaded server, or forget one that was added.
    ///
    /// The base directory of a server that was added stays. Folders that dbdyno did not create are
    /// refused.
    Remove {
        /// A downloaded, built or added server.
        #[arg(required_unless_present = "older_than")]
        name: Option<String>,
        /// All builds that were made longer ago than this, such as 30d or 12h.
        #[arg(long, value_name = "AGE", conflicts_with = "name", value_parser = age)]
        older_than: Option<PlanDuration>,
    },
}

/// Reads an age: a duration, or a number of days.
fn age(text: &str) -> Result<PlanDuration, String> {
    match text.strip_suffix('d').map(str::parse::<u64>) {
        Some(Ok(days)) => Ok(PlanDuration::from_secs(days * 86_400)),
        _ => PlanDuration::of_argument(text).map_err(|error| error.to_string()),
    }
}

/// Build a server from a revision of a git repository.
///
/// PostgreSQL, MariaDB and MySQL can be built: as a release, with symbols and frame pointers. The
/// build is a server like any other; its name is the product and the revision: postgres@3f2a91c0aa.
/// A build that is there is not made again. Files are taken from a work tree of their own, so the
/// checkout stays as it is, and only what has changed since the last build is compiled.
#[derive(Debug, Parser)]
pub(crate) struct BuildArgs {
    /// `postgres`, `mariadb` or `mysql`.
    pub(crate) product: String,
    /// The checkout of the git repository.
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: PathBuf,
    /// Revision: a hash, branch or tag, or an expression such as HEAD~3.
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    pub(crate) commit: String,
    /// Patch that is applied to the revision.
    #[arg(long, value_name = "FILE")]
    pub(crate) patch: Option<PathBuf>,
    /// Option of configure or cmake, in addition to those of the recipe. May be given more than
    /// once.
    #[arg(long = "option", value_name = "OPTION", allow_hyphen_values = true)]
    pub(crate) options: Vec<String>,
}

/// Check whether this machine is fit for measuring, or calibrate the load client on it.
///
/// Without --client it looks at CPUs, memory, the disk under the data, the kernel, limits and other
/// programs, for about three seconds, and prints a line for each check with a verdict (`good`;
/// `note`: figures may be worse or vary more than they need; `bad`: measuring makes no sense) and a
/// remedy. The status is 3 when something is bad. Nothing is changed; a small file is written and
/// removed to time an fsync.
///
/// With --client it runs point selects against servers that only answer (`dbdyno known-answer`,
/// MySQL's and PostgreSQL's protocol), prints the rates, and keeps them in client-calibration.json
/// in the cache folder. `dbdyno run` finds them there and has steps in which the client was the
/// limit marked invalid.
#[derive(Debug, Parser)]
pub(crate) struct DoctorArgs {
    /// Calibrate the load client.
    #[arg(long)]
    pub(crate) client: bool,
    /// Folder for the data; its disk is checked. The current folder when left out.
    #[arg(long, value_name = "DIR", conflicts_with = "client")]
    pub(crate) data_dir: Option<PathBuf>,
    /// CPUs of the client, as `client_cpus` of a plan: "2-3". All when left out.
    #[arg(long, value_name = "CPUS", requires = "client")]
    pub(crate) client_cpus: Option<CpuList>,
    /// CPUs of the server that answers, as `server_cpus` of a plan: "0-1". All when left out.
    #[arg(long, value_name = "CPUS", requires = "client")]
    pub(crate) server_cpus: Option<CpuList>,
    /// Load threads, as `client_threads` of a plan. dbdyno's own choice when left out.
    #[arg(long, value_name = "N", requires = "client")]
    pub(crate) client_threads: Option<u32>,
    /// How load threads wait for answers, as `client_wait` of a plan: "sleep" or "spin". As in a
    /// plan when left out.
    #[arg(long, value_name = "HOW", requires = "client", value_parser = ["sleep", "spin"])]
    pub(crate) client_wait: Option<String>,
    /// Numbers of connections.
    #[arg(
        long,
        value_name = "N,N",
        requires = "client",
        value_delimiter = ',',
        default_value = "1,16,64,256,1024"
    )]
    pub(crate) connections: Vec<u32>,
    /// How long each number of connections is measured; at least a second.
    #[arg(long, value_name = "TIME", requires = "client", value_parser = PlanDuration::of_argument, default_value = "2s")]
    pub(crate) time: PlanDuration,
    /// Print JSON instead.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Commands with `--format`.
const WITH_FORMATS: [&str; 3] = ["report", "compare", "history"];
/// Commands that print text or, with `--json`, JSON.
const WITH_JSON: [&str; 4] = ["plan", "list", "servers", "doctor"];

/// Returns the command line with a request for JSON spelt as its command spells it: `--json`, or
/// `--format=json`.
pub(crate) fn accepted(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut all: Vec<OsString> = words.collect();
    let is_any = |names: &[&str]| {
        let mut plain = all.iter().skip(1).filter_map(|word| word.to_str());
        plain
            .find(|word| WITH_FORMATS.contains(word) || WITH_JSON.contains(word))
            .is_some_and(|word| names.contains(&word))
    };
    if is_any(&WITH_FORMATS) {
        for word in all.iter_mut().filter(|word| *word == "--json") {
            *word = "--format=json".into();
        }
    } else if is_any(&WITH_JSON) {
        if let Some(at) = all.windows(2).position(|pair| pair[0] == "--format" && pair[1] == "json") {
            all.splice(at..at + 2, [OsString::from("--json")]);
        }
        for word in all.iter_mut().filter(|word| *word == "--format=json") {
            *word = "--json".into();
        }
    }
    all
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
    fn a_margin_is_a_percentage() {
        assert_eq!((percent("2.5"), percent("5%")), (Ok(2.5), Ok(5.0)));
        assert_eq!((difference("1.5"), percent("0")), (Ok(1.5), Ok(0.0)));
        assert!(difference("0").is_err() && difference("100").is_err());
        assert!(percent("100").is_err() && percent("-1").is_err() && percent("NaN").is_err());
    }

    #[test]
    fn a_setting_is_split_at_its_first_equals_sign() {
        assert_eq!(key_value("a.b = c=d"), Ok(("a.b".to_owned(), "c=d".to_owned())));
        assert!(key_value("blocks").is_err());
    }

    #[test]
    fn a_duration_needs_a_unit_and_no_quotes() {
        let said = PlanDuration::of_argument("3").unwrap_err().to_string();
        assert_eq!(
            said,
            "the duration \"3\" has no unit: write a number and its unit (ms, s, m or h), e.g. 30s"
        );
    }

    #[test]
    fn short_flags_become_settings() {
        let changes = Changes::parse_from(["dbdyno", "--aa", "--blocks", "5", "--set", "a.b=1"]);
        let pairs = [("a.b", "1"), ("blocks", "5"), ("aa", "true")];
        assert_eq!(changes.overrides(), pairs.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }

    #[test]
    fn each_command_accepts_both_spellings_of_json() {
        for (given, spelt) in [
            ("report latest --json", "report latest --format=json"),
            ("--quiet compare a b --json", "--quiet compare a b --format=json"),
            ("plan x.toml --format json", "plan x.toml --json"),
            ("list runs --format=json", "list runs --json"),
            ("report latest --format md", "report latest --format md"),
            ("run --json", "run --json"),
        ] {
            let words = format!("dbdyno {given}");
            let words = accepted(words.split(' ').map(OsString::from));
            assert_eq!(words.join(" ".as_ref()).to_str(), Some(format!("dbdyno {spelt}").as_str()));
        }
    }
}
