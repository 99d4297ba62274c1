//! `cargo xtask bench`: what the load client itself costs, against the project's targets.

mod figures;
mod machine;
mod plans;
mod table;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Parser;
use dbdyno_provision::{list, servers_dir};

use crate::command::{cargo, output, run as run_command};
use crate::{places, terminal};
use figures::{Figure, RunFacts};
use plans::CASES;

/// Where `--save` writes.
const PAGE: &str = "docs/benchmarks/insert-benchmark.md";

/// Measure the CPU that the load client uses for a row and for a query, and compare it with the targets.
///
/// Builds dbdyno in release, runs two plans against a real server, one after the other, several times over, and reads
/// the figures from the runs' own reports. Takes about a minute and a half a round. Exit status 1 when a target is missed.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Name of a server in the servers folder; without it the newest mariadb-10.11 there.
    #[arg(long)]
    server: Option<String>,
    /// How often both plans run.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Keep the run directories, in this folder.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Write the table to docs/benchmarks/insert-benchmark.md too.
    #[arg(long)]
    save: bool,
}

/// Measures and prints. Returns whether all targets are met.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let server = match &args.server {
        Some(name) => name.clone(),
        None => newest_of(&list(&servers_dir()))?,
    };
    let started = machine::now();
    let dbdyno = built()?;
    // Below the build output and not in the system's temporary folder, which may be memory.
    let scratch = tempfile::Builder::new().prefix("bench-").tempdir_in(places::target())?;
    let folder = args.keep.as_ref().map_or(scratch.path(), PathBuf::as_path);
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let folder = folder.canonicalize()?;

    let mut figures: Vec<Figure> = CASES.iter().map(Figure::new).collect();
    let mut facts = None;
    for round in 1..=args.rounds {
        for plan in plans::ALL {
            terminal::note(&format!("round {round} of {}: {}", args.rounds, plan.name));
            let text = plan.text(&server, machine::cpus());
            let report = measured(&dbdyno, plan.name, &text, &folder.join(round.to_string()))?;
            for figure in figures.iter_mut().filter(|figure| figure.case.plan == plan.name) {
                figure.add(&report)?;
            }
            facts = Some(RunFacts::from(&report));
        }
    }
    terminal::out(&format!("\n{}", table::text(&figures)));
    if let (true, Some(facts)) = (args.save, facts) {
        let page = places::root().join(PAGE);
        std::fs::create_dir_all(page.parent().expect("it lies in docs"))?;
        std::fs::write(&page, table::page(&figures, &facts, &started, &server, machine::cpus()))?;
        terminal::note(&format!("written: {PAGE}"));
    }
    Ok(figures.iter().all(Figure::is_met))
}

/// The name with the greatest version among `there` that is a MariaDB 10.11.
fn newest_of(there: &[String]) -> Result<String> {
    let of_series = there.iter().filter(|name| name.starts_with("mariadb-10.11"));
    let patch = |name: &str| name.rsplit('.').next().and_then(|last| last.parse::<u32>().ok());
    let newest = of_series.max_by_key(|name| patch(name)).cloned();
    newest.context(
        "no mariadb-10.11 in the servers folder; get one with `cargo xtask servers`, or name --server",
    )
}

fn built() -> Result<PathBuf> {
    run_command(&mut cargo(&["build", "--locked", "--release", "--package", "dbdyno"]))?;
    Ok(places::target().join("release/dbdyno"))
}

/// Runs a plan in `folder` and returns its report as JSON.
fn measured(dbdyno: &Path, name: &str, plan: &str, folder: &Path) -> Result<serde_json::Value> {
    let out = folder.join(name);
    std::fs::create_dir_all(&out)?;
    std::fs::write(out.join("bench.cnf"), plans::MY_CNF)?;
    let file = out.join(format!("{name}.toml"));
    std::fs::write(&file, plan)?;
    let runs = out.join("runs");
    output(Command::new(dbdyno).arg("run").arg(&file).arg("--out").arg(&runs))?;
    let mut found = std::fs::read_dir(&runs)?.flatten().map(|entry| entry.path());
    let (Some(run), None) = (found.next(), found.next()) else {
        bail!("{} holds not exactly one run: empty it", runs.display());
    };
    let report = output(Command::new(dbdyno).arg("report").arg(&run).args(["--format", "json"]))?;
    serde_json::from_str(&report).context("the report is not JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_server_of_the_series_is_taken_and_none_is_an_error() {
        let names = ["mariadb-10.11.5", "mariadb-10.11.19", "mariadb-10.11-debian", "mysql-8.0.31"];
        let names = names.map(str::to_owned);
        assert_eq!(newest_of(&names).unwrap(), "mariadb-10.11.19");
        assert_eq!(newest_of(&names[2..]).unwrap(), "mariadb-10.11-debian");
        assert!(newest_of(&names[3..]).unwrap_err().to_string().contains("cargo xtask servers"));
    }
}
