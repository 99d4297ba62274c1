//! `cargo xtask demo`: compares real servers and writes the page and its screenshots under docs/demo.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::Parser;
use dbdyno_fetch as fetch;

use crate::command::{built_dbdyno, run};
use crate::{page, places, servers};

/// Compare five MySQL and MariaDB servers (docs/demo/demo.toml) and write docs/demo: the page and screenshots.
///
/// Builds dbdyno in release, gets the servers and runs them for about half an hour; nothing else should run on the
/// machine meanwhile. Chromium and npm are needed for the screenshots.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Write page and screenshots of a run that is there, instead of running the plan.
    #[arg(long, value_name = "DIR")]
    run: Option<PathBuf>,
}

const SERVERS: [&str; 5] =
    ["mysql-5.6.24", "mysql-5.7.22", "mysql-8.0.31", "mariadb-10.2.11", "mariadb-11.4.5"];

pub(crate) fn make(args: &Args) -> Result<()> {
    let dbdyno = built_dbdyno()?;
    let folder = places::root().join("docs/demo");
    let measured = match &args.run {
        Some(run) => std::path::absolute(run)?,
        None => measured(&dbdyno, &folder)?,
    };
    let html = folder.join("report.html");
    run(Command::new(&dbdyno).arg("report").arg(&measured).arg("--output").arg(&html))?;
    page::install()?;
    let script = page::folder().join("test/screenshots.mjs");
    run(Command::new("node").arg(script).arg(&html).arg(&folder))
}

/// Runs the plan; returns the run's directory.
fn measured(dbdyno: &Path, folder: &Path) -> Result<PathBuf> {
    let entries = SERVERS.iter().map(|name| fetch::by_name(name)).collect::<Result<Vec<_>, _>>()?;
    servers::install(&entries)?;
    servers::get(&entries)?;
    let runs = places::target().join("demo");
    run(Command::new(dbdyno).arg("run").arg(folder.join("demo.toml")).arg("--out").arg(&runs))?;
    let entries = std::fs::read_dir(&runs)?.flatten().map(|entry| entry.path());
    // Names of runs begin with their date.
    entries.max().with_context(|| format!("{} holds no run", runs.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_are_those_of_the_plan() {
        let plan = std::fs::read_to_string(places::root().join("docs/demo/demo.toml")).unwrap();
        let named: Vec<&str> =
            plan.lines().filter_map(|line| line.strip_prefix("server = \"")?.strip_suffix('"')).collect();
        assert_eq!(named, SERVERS);
    }
}
