//! `cargo xtask servers` gets the catalogue's servers into the servers folder. For other commands,
//! this module also gets the servers of a plan and runs the plan on them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use clap::Parser;
use dbdyno_db::server::{list, servers_dir};
use dbdyno_fetch as fetch;
use dbdyno_fetch::Entry;

use crate::workspace::{self, output, run as run_command};

/// The servers that `cargo xtask test` starts without `--all`. There is one of each product, and
/// all are small to fetch.
const FIRST: [&str; 3] = ["mariadb-11.8-debian", "mysql-8.0.31", "pg-15.19"];

/// The servers that `cargo xtask test --all` starts too. With [`FIRST`] they cover every release
/// line that dbdyno promises, the oldest and the newest kind of initialisation and login of each
/// product, and every server that the shipped plans name. The archives of all but two never change.
/// The two from Debian move within their line, and `mysql-9-sid` disappears when sid moves to
/// another line.
const REST: [&str; 19] = [
    "mariadb-10.1.23",
    "mariadb-10.2.11",
    "mariadb-10.4.20",
    "mariadb-10.5.23",
    "mariadb-10.11.5",
    "mariadb-11.4.5",
    "mysql-5.5.9",
    "mysql-5.6.24",
    "mysql-5.7.22",
    "mysql-9-sid",
    "pg-9.6.24",
    "pg-10.23",
    "pg-11.22",
    "pg-12.22",
    "pg-13.23",
    "pg-14.24",
    "pg-16.15",
    "pg-17.11",
    "pg-18.6",
];

/// Get servers of the catalogue into the servers folder: $DBDYNO_SERVERS, otherwise
/// ~/.cache/dbdyno/servers.
///
/// Works as `dbdyno servers get` does, but leaves installed servers as they are, and as root
/// installs the system packages that are needed.
#[derive(Debug, Parser)]
pub(crate) struct ServersArgs {
    /// Names in the catalogue; without any: the servers that the tests need.
    names: Vec<String>,
}

pub(crate) fn run(args: &ServersArgs) -> Result<()> {
    let entries = match args.names.is_empty() {
        true => for_tests(true)?,
        false => args.names.iter().map(|name| fetch::by_name(name)).collect::<Result<_, _>>()?,
    };
    install(&entries)?;
    get(&entries)
}

/// Returns the servers that the tests need: those of [`FIRST`], and with `all` those of [`REST`]
/// too.
pub(crate) fn for_tests(all: bool) -> Result<Vec<Entry>> {
    let rest = if all { REST.as_slice() } else { &[] };
    Ok(FIRST.iter().chain(rest).map(|name| fetch::by_name(name)).collect::<Result<_, _>>()?)
}

/// Installs the packages that getting and running `entries` needs. A server that is already
/// installed needs only the packages to run it.
pub(crate) fn install(entries: &[Entry]) -> Result<()> {
    let installed = list(&servers_dir());
    let mut packages: Vec<String> = entries
        .iter()
        .flat_map(|entry| match installed.contains(&entry.name) {
            true => fetch::missing_libraries(entry),
            false => fetch::missing_tools(entry),
        })
        .collect();
    packages.sort();
    packages.dedup();
    Ok(fetch::install_tools(&packages, &mut |line| workspace::note(line))?)
}

/// Programs that the tests need without `--all`, and the Debian packages that bring them.
/// sysbench is needed for its scripts.
const FIRST_HELPERS: [(&str, &str); 1] = [("sysbench", "sysbench")];

/// Programs that the tests need with `--all`. They are pgbench, a pooler, a filesystem whose
/// copies share blocks, the tools that build the script of the HTML page and show it, the installer
/// of Python packages, a reader of metrics, a terminal that can be inspected, network namespaces
/// for machines on this host, and Slurm.
const HELPERS: [(&str, &str); 10] = [
    ("pgbench", "postgresql-contrib"),
    ("pgbouncer", "pgbouncer"),
    ("mkfs.xfs", "xfsprogs"),
    ("npm", "npm"),
    ("chromium", "chromium"),
    ("pip3", "python3-pip"),
    ("prometheus", "prometheus"),
    ("tmux", "tmux"),
    ("ip", "iproute2"),
    ("slurmd", "slurm-wlm"),
];

/// Python packages, each with the folder that its installation leaves. They are Ray, a server that
/// speaks MySQL's protocol, and DuckDB, which reads the Parquet files that dbdyno writes.
const PYTHON_PACKAGES: [(&str, &str); 3] =
    [("duckdb", "duckdb==1.4.1"), ("grpc", "ray[client]==2.60.0"), ("mysql_mimic", "mysql-mimic==3.0.5")];

/// npm packages, which together are a server that speaks PostgreSQL's protocol.
const NODE_PACKAGES: [(&str, &str); 2] = [
    ("@electric-sql/pglite", "@electric-sql/pglite@0.5.14"),
    ("@electric-sql/pglite-socket", "@electric-sql/pglite-socket@0.2.17"),
];

/// Installs what the tests need in addition to servers, where it is missing.
pub(crate) fn install_for_tests(all: bool) -> Result<()> {
    install(&for_tests(all)?)?;
    let rest = if all { HELPERS.as_slice() } else { &[] };
    let is_installed = |program: &str| Command::new(program).arg("-V").stdin(Stdio::null()).output().is_ok();
    let missing = FIRST_HELPERS.iter().chain(rest).filter(|(program, _)| !is_installed(program));
    let packages: Vec<String> = missing.map(|(_, package)| (*package).to_owned()).collect();
    fetch::install_tools(&packages, &mut |line| workspace::note(line))?;
    if !all {
        return Ok(());
    }
    let folder = workspace::cache().join("tools/python");
    for (_, package) in PYTHON_PACKAGES.iter().filter(|(name, _)| !folder.join(name).exists()) {
        run_command(Command::new("pip3").args(["install", "--quiet", "--target"]).arg(&folder).arg(package))?;
    }
    let folder = workspace::cache().join("tools/node");
    if NODE_PACKAGES.iter().any(|(name, _)| !folder.join("node_modules").join(name).exists()) {
        std::fs::create_dir_all(&folder)?;
        let packages = NODE_PACKAGES.map(|(_, package)| package);
        run_command(
            Command::new("npm")
                .args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
                .arg(&folder)
                .args(packages),
        )?;
    }
    Ok(())
}

/// Gets `entries`, one after the other. The caches of Maven and npm do not allow two at once, and
/// the network takes most of the time. A server that is installed but was not probed is probed.
pub(crate) fn get(entries: &[Entry]) -> Result<()> {
    let folder = servers_dir();
    for entry in entries.iter().filter(|entry| fetch::answer_of(&folder, &entry.name).is_none()) {
        fetch::get(entry, &servers_dir(), &AtomicBool::new(false), &mut |line| workspace::note(line))?;
    }
    Ok(())
}

/// Returns the catalogue's servers that a plan names. `plan` holds the command-line arguments that
/// select the plan, such as `@NAME --size small`.
pub(crate) fn servers_of(dbdyno: &Path, plan: &[&str]) -> Result<Vec<Entry>> {
    let resolved = output(Command::new(dbdyno).arg("plan").args(plan).arg("--resolved"))?;
    names(&resolved).into_iter().map(|name| Ok(fetch::by_name(name)?)).collect()
}

fn names(plan: &str) -> BTreeSet<&str> {
    let named = plan.lines().filter_map(|line| line.strip_prefix("server = \"")?.strip_suffix('"'));
    named.filter(|name| *name != "sqlite").collect()
}

/// Gets the servers of a plan.
pub(crate) fn get_for_plan(servers: &[Entry]) -> Result<()> {
    install(servers)?;
    get(servers)
}

/// Runs a plan and returns its run directory, which is made below `runs`. `state` is the folder in
/// which dbdyno remembers runs, if it is not the user's.
pub(crate) fn measured(dbdyno: &Path, plan: &[&str], runs: &Path, state: Option<&Path>) -> Result<PathBuf> {
    let mut command = Command::new(dbdyno);
    command.arg("run").args(plan).arg("--out").arg(runs);
    command.envs(state.map(|state| ("XDG_STATE_HOME", state)));
    run_command(&mut command)?;
    let entries = std::fs::read_dir(runs)?.flatten().map(|entry| entry.path());
    // Names of runs begin with their date, so the highest name is the newest run.
    entries.max().with_context(|| format!("{} holds no run", runs.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test accepts servers that the catalogue calls untested, because other servers stand for
    /// them in the tests. A plan's small size has no such excuse: it is there to be run.
    #[test]
    fn the_tests_have_all_servers_that_the_plans_name() {
        let tested = [FIRST.as_slice(), &REST].concat();
        let plans = std::fs::read_dir(workspace::root().join("plans")).unwrap();
        for path in plans.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
            let plan: toml::Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
            let named = plan["variant"].as_array().unwrap().iter().map(server);
            let small = plan.get("size").and_then(|size| size["small"].get("variant")?.as_table());
            let named_small = small.into_iter().flat_map(toml::Table::values).map(server);
            let is_tested = |name: &&str| tested.contains(name);
            let is_excused = |name: &&str| is_tested(name) || fetch::by_name(name).unwrap().untested;
            let missing = named.flatten().filter(|name| !is_excused(name));
            let missing: Vec<&str> =
                missing.chain(named_small.flatten().filter(|name| !is_tested(name))).collect();
            assert!(missing.is_empty(), "{}: {missing:?}", path.display());
        }
    }

    /// The server that a plan's variant names, unless it is embedded.
    fn server(variant: &toml::Value) -> Option<&str> {
        variant.get("server")?.as_str().filter(|name| *name != "sqlite")
    }

    #[test]
    fn each_server_of_a_plan_is_named_once_and_sqlite_is_left_out() {
        let plan = "[[variant]]\nname = \"a\"\nserver = \"b-2\"\n\n[[variant]]\nserver = \"a-1\"\n";
        let more = "[[variant]]\nserver = \"b-2\"\n[[variant]]\nserver = \"sqlite\"\n";
        assert_eq!(names(&[plan, more].concat()).into_iter().collect::<Vec<_>>(), ["a-1", "b-2"]);
    }
}
