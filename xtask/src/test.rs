//! `cargo xtask test`: everything that must hold before a change lands, stage by stage, and with
//! `--all` everything else that the tests can show.

use std::time::Instant;

use anyhow::{Result, bail};
use clap::Parser;

use crate::command::{cargo, run as run_command};
use crate::{page, places, servers, terminal, tools};

/// Check what must hold: install and fetch what the tests need, then format, lints and tests.
///
/// The first part takes minutes: unit tests, recorded runs, SQLite, the known-answer server, and
/// one MariaDB, one MySQL and one PostgreSQL. `--all` adds the tests that are marked with
/// `#[ignore]`: other versions, kills, full disks, the page in a browser, real clusters, truth on
/// the clock.
#[derive(Debug, Parser)]
#[command(after_help = help())]
pub(crate) struct Args {
    /// Everything; needs root, control groups and some GB of servers.
    #[arg(long)]
    all: bool,
    /// Only these stages, in the order of the list below.
    #[arg(value_name = "STAGE", value_parser = STAGES.map(|stage| stage.name))]
    stages: Vec<String>,
}

/// One thing that must hold.
#[derive(Clone, Copy)]
struct Stage {
    name: &'static str,
    /// What it does, for people.
    job: &'static str,
    /// Runs with `--all` and when it is named.
    only_all: bool,
    run: fn(all: bool) -> Result<()>,
}

const fn first(name: &'static str, job: &'static str, run: fn(bool) -> Result<()>) -> Stage {
    Stage { name, job, only_all: false, run }
}

const fn rest(name: &'static str, job: &'static str, run: fn(bool) -> Result<()>) -> Stage {
    Stage { name, job, only_all: true, run }
}

/// Every stage, in the order in which they run: what is quick to fail comes early.
const STAGES: [Stage; 12] = [
    first("packages", "install the system packages that the tests need", servers::install_for_tests),
    first("servers", "get the servers that the tests start", |all| servers::get(&servers::for_tests(all)?)),
    first("fmt", "format", |_| run_command(&mut cargo(&["fmt", "--all", "--check"]))),
    first("clippy", "lints", |_| clippy()),
    first("test", "the tests that need no more than minutes", |_| tests(&[])),
    rest("default", "lints of the build without features", |_| default_features()),
    rest("doc", "documentation of the code, private items too", |_| doc()),
    rest("licences", "licences, versions and sources of dependencies", |_| tools::licences()),
    rest("unused", "no dependency that is not used", |_| tools::unused_dependencies()),
    rest("links", "links in the documents lead somewhere", |_| tools::links()),
    rest("page", "the script of the HTML page is what its sources give", |_| page::check()),
    rest("rest", "the tests that are marked #[ignore]", |_| ignored_tests()),
];

/// Beginnings of the names of tests that hold dbdyno to the clock: they have the machine for
/// themselves.
const ALONE: [&str; 2] = ["alone::", "truth::"];

/// The test program of the command: its tests wait for servers and for whole seconds more than they
/// work.
const WAITING: &str = "dbdyno";

/// Tests at once beyond one per CPU: in that program, and in the others, whose tests wait too.
const WAITING_THREADS: (usize, usize) = (4, 2);

pub(crate) fn run(args: &Args) -> Result<bool> {
    let begun = Instant::now();
    let is_chosen = |stage: &&Stage| match args.stages.is_empty() {
        true => args.all || !stage.only_all,
        false => args.stages.iter().any(|name| name == stage.name),
    };
    let mut lines = Vec::new();
    let mut failed = Vec::new();
    for stage in STAGES.iter().filter(is_chosen) {
        terminal::note(&format!("\n== {}: {}", stage.name, stage.job));
        let started = Instant::now();
        let outcome = (stage.run)(args.all);
        let result = if outcome.is_ok() { "passed" } else { "FAILED" };
        let why = outcome.map_or_else(|error| format!("  {error:#}"), |()| String::new());
        terminal::note(&format!("{} {result}{why}", stage.name));
        lines.push(format!("{:10} {result} {:8.1} s{why}", stage.name, started.elapsed().as_secs_f64()));
        if result == "FAILED" {
            failed.push(stage.name);
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    lines.push(match failed.is_empty() {
        true => format!("all passed in {seconds:.0} s"),
        false => format!("NOT passed: {} ({seconds:.0} s)", failed.join(", ")),
    });
    terminal::out(&format!("\n{}", lines.join("\n")));
    Ok(failed.is_empty())
}

/// The list of stages for `--help`.
fn help() -> String {
    let line = |stage: &Stage| {
        let part = if stage.only_all { " (--all)" } else { "" };
        format!("  {:10} {}{part}", stage.name, stage.job)
    };
    format!("Stages:\n{}", STAGES.iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn clippy() -> Result<()> {
    run_command(&mut cargo(&[
        "clippy",
        "--locked",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "--deny",
        "warnings",
    ]))
}

/// The build of the README's first command warns of nothing either.
fn default_features() -> Result<()> {
    run_command(&mut cargo(&["clippy", "--locked", "--package", "dbdyno", "--", "--deny", "warnings"]))
}

fn doc() -> Result<()> {
    let arguments =
        ["doc", "--locked", "--workspace", "--all-features", "--no-deps", "--document-private-items"];
    run_command(cargo(&arguments).env("RUSTDOCFLAGS", "--deny warnings"))
}

fn ignored_tests() -> Result<()> {
    let others: Vec<&str> =
        ["--ignored"].into_iter().chain(ALONE.iter().flat_map(|name| ["--skip", name])).collect();
    let alone: Vec<&str> = ["--ignored", "--test-threads=1"].into_iter().chain(ALONE).collect();
    let (others, alone) = (tests(&others), tests(&alone));
    others.and(alone)
}

/// Runs all test programs, one after the other, with these words for each.
fn tests(words: &[&str]) -> Result<()> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let programs = programs()?;
    let named = |wanted: fn(&str) -> bool| {
        programs.iter().filter(move |name| wanted(name)).flat_map(|name| ["--test", name])
    };
    let library: Vec<&str> = ["--lib", "--bins"].into_iter().chain(named(|name| name != WAITING)).collect();
    let command: Vec<&str> = named(|name| name == WAITING).collect();
    let results = [(library, cpus + WAITING_THREADS.1), (command, cpus + WAITING_THREADS.0)].map(
        |(targets, threads)| {
            let mut command =
                cargo(&["test", "--locked", "--workspace", "--all-features", "--no-fail-fast", "--quiet"]);
            command.args(targets).arg("--").args(words);
            // Golden texts that differ are failures, not files to be reviewed.
            command.env("INSTA_UPDATE", "no");
            if std::env::var_os("RUST_TEST_THREADS").is_none() {
                command.env("RUST_TEST_THREADS", threads.to_string());
            }
            run_command(&mut command)
        },
    );
    if results.iter().any(Result::is_err) {
        bail!("some tests failed; cargo printed their names and how to run them again");
    }
    Ok(())
}

/// Names of the programs in the `tests` folders of all crates.
fn programs() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for package in std::fs::read_dir(places::root().join("crates"))? {
        let Ok(entries) = std::fs::read_dir(package?.path().join("tests")) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            let is_program = path.join("main.rs").is_file() || path.extension().is_some_and(|it| it == "rs");
            if let Some(stem) = path.file_stem().filter(|_| is_program) {
                names.push(stem.to_string_lossy().into_owned());
            }
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests_of_runner {
    use super::*;

    #[test]
    fn the_program_that_gets_more_threads_is_there_and_so_is_each_stage_of_the_help() {
        assert!(programs().unwrap().iter().any(|name| name == WAITING));
        let help = help();
        assert!(STAGES.iter().all(|stage| help.contains(stage.job)), "{help}");
    }
}
