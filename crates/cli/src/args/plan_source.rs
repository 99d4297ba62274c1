//! Where a plan comes from: a file, a plan that ships, or the command line itself.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use dbdyno_plan::PlanDuration;

/// Which plan.
#[derive(Debug, Default, Parser)]
pub(crate) struct PlanSource {
    /// Plan file (TOML), or `@NAME` of a plan that ships; `dbdyno plans` lists these. Without one,
    /// and without --server or --address: the quickstart, which runs the Insert Benchmark on SQLite
    /// with a rollback journal and with a write-ahead log. It takes about a minute and needs no
    /// server.
    #[arg(conflicts_with_all = ["servers", "addresses"])]
    pub(crate) plan: Option<PathBuf>,
    /// The plan in another size that it has, such as `small`; `dbdyno plan` lists them.
    #[arg(long, value_name = "NAME", requires = "plan")]
    pub(crate) size: Option<String>,
    #[command(flatten)]
    pub(crate) spelt: Spelt,
    /// Write the plan that --server or --address stand for to this new file.
    #[arg(long, value_name = "FILE", requires = "workload")]
    pub(crate) save: Option<PathBuf>,
}

/// A plan in flags.
#[derive(Debug, Default, Parser)]
pub(crate) struct Spelt {
    /// A variant: a server of the servers folder, or `sqlite`. The first one is the base. May be
    /// given more than once, as --address, --config and --test.
    #[arg(long = "server", value_name = "NAME", requires = "workload")]
    pub(crate) servers: Vec<String>,
    /// A variant: the address of a running server, `mysql://user@host/database`.
    #[arg(long = "address", value_name = "URL", requires = "workload")]
    pub(crate) addresses: Vec<String>,
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
    #[arg(long, value_name = "TIME", requires = "workload")]
    pub(crate) time: Option<PlanDuration>,
}

/// List the plans that ship, or print one.
///
/// `dbdyno run @NAME` runs one as it is. To change it: dbdyno plans show NAME > my.toml
#[derive(Debug, Parser)]
pub(crate) struct PlansArgs {
    #[command(subcommand)]
    pub(crate) verb: Option<PlansVerb>,
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
    pub(crate) spelt: Spelt,
    /// Number of blocks; verdicts need three or more.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) blocks: u32,
}
