//! Runs a plan on real servers, which it gets first.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use dbdyno_fetch::{self as fetch, Entry};

use crate::command::{output, run};
use crate::servers;

/// Returns the catalogue's servers that a plan names. `plan` holds its words on the command line,
/// as `@NAME --size small`.
pub(crate) fn servers_of(dbdyno: &Path, plan: &[&str]) -> Result<Vec<Entry>> {
    let resolved = output(Command::new(dbdyno).arg("plan").args(plan).arg("--resolved"))?;
    names(&resolved).into_iter().map(|name| Ok(fetch::by_name(name)?)).collect()
}

fn names(plan: &str) -> BTreeSet<&str> {
    let named = plan.lines().filter_map(|line| line.strip_prefix("server = \"")?.strip_suffix('"'));
    named.filter(|name| *name != "sqlite").collect()
}

/// Gets the servers of a plan.
pub(crate) fn get(servers: &[Entry]) -> Result<()> {
    servers::install(servers)?;
    servers::get(servers)
}

/// Runs a plan below `runs`, and returns the run's directory. `state` is the folder in which dbdyno
/// remembers runs, if it is not the user's.
pub(crate) fn measured(dbdyno: &Path, plan: &[&str], runs: &Path, state: Option<&Path>) -> Result<PathBuf> {
    let mut command = Command::new(dbdyno);
    command.arg("run").args(plan).arg("--out").arg(runs);
    command.envs(state.map(|state| ("XDG_STATE_HOME", state)));
    run(&mut command)?;
    let entries = std::fs::read_dir(runs)?.flatten().map(|entry| entry.path());
    // Names of runs begin with their date.
    entries.max().with_context(|| format!("{} holds no run", runs.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_of_a_plan_is_named_once_and_what_is_built_in_not_at_all() {
        let plan = "[[variant]]\nname = \"a\"\nserver = \"b-2\"\n\n[[variant]]\nserver = \"a-1\"\n";
        let more = "[[variant]]\nserver = \"b-2\"\n[[variant]]\nserver = \"sqlite\"\n";
        assert_eq!(names(&[plan, more].concat()).into_iter().collect::<Vec<_>>(), ["a-1", "b-2"]);
    }
}
