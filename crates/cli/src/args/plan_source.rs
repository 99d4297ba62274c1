//! Where a plan comes from: a file, a plan that ships, or the command line itself; and what is
//! changed of it.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use dbdyno_model::PlanDuration;

/// Which plan.
#[derive(Debug, Default, Parser)]
pub(crate) struct PlanSource {
    /// Plan file (TOML), or `@NAME` of a plan that ships; `dbdyno plans` lists these. Without one,
    /// and without --server or --address: the quickstart, which runs the Insert Benchmark on SQLite
    /// with a rollback journal and with a write-ahead log. It takes less than a minute and needs no
    /// server.
    #[arg(conflicts_with_all = ["servers", "addresses"])]
    pub(crate) plan: Option<PathBuf>,
    /// The plan in another size that it has, such as `small`; `dbdyno plan` lists them.
    #[arg(long, value_name = "NAME", requires = "plan")]
    pub(crate) size: Option<String>,
    #[command(flatten)]
    pub(crate) spelt: Spelt,
    /// Write the plan of these flags to this new file.
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
}

impl Changes {
    /// `--blocks N` is `--set blocks=N`, and so on.
    pub(crate) fn overrides(&self) -> Vec<(String, String)> {
        let blocks = self.blocks.map(|blocks| ("blocks".to_owned(), blocks.to_string()));
        let aa = self.aa.then(|| ("aa".to_owned(), "true".to_owned()));
        let budget = self.budget.map(|budget| ("budget".to_owned(), budget.to_string()));
        self.overrides.iter().cloned().chain(blocks).chain(aa).chain(budget).collect()
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
    pub(crate) spelt: Spelt,
    /// Number of blocks; verdicts need three or more.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) blocks: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn short_ways_are_settings() {
        let changes = Changes::parse_from(["dbdyno", "--aa", "--blocks", "5", "--set", "a.b=1"]);
        let pairs = [("a.b", "1"), ("blocks", "5"), ("aa", "true")];
        assert_eq!(changes.overrides(), pairs.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }
}
