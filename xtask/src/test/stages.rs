//! The stages of `cargo xtask test`: one entry of [`ALL`] each.

use anyhow::Result;

use super::{licences, programs, side_by_side};
use crate::command::{cargo, run};
use crate::{page, servers};

/// One thing that must hold.
pub(super) struct Stage {
    pub(super) name: &'static str,
    /// What it does, for people.
    pub(super) job: &'static str,
    /// Name of a stage without which this one makes no sense.
    pub(super) needs: Option<&'static str>,
    /// Mostly waits for the network: goes on while later stages run, and ends before the last one
    /// begins.
    pub(super) in_background: bool,
    pub(super) run: fn() -> Result<()>,
}

impl Stage {
    const fn new(name: &'static str, job: &'static str, run: fn() -> Result<()>) -> Self {
        Self { name, job, needs: None, in_background: false, run }
    }
}

/// Every stage, in the order in which they run: what is quick to fail comes early.
pub(super) const ALL: &[Stage] = &[
    Stage::new("packages", "install the system packages that the servers and their tests need", packages),
    Stage {
        needs: Some("packages"),
        in_background: true,
        ..Stage::new("servers", "get the servers that the tests start", || servers::get(&servers::ci_set()?))
    },
    Stage::new("fmt", "format", || run(&mut cargo(&["fmt", "--all", "--check"]))),
    Stage::new("clippy", "lints", clippy),
    Stage::new("licences", "licences, versions and sources of dependencies", licences::check),
    Stage::new("page", "the script of the HTML page is what its sources give", page::check),
    Stage::new("doc", "documentation of the code, private items too", doc),
    // After a failed `servers` too: then the tests that start one fail and say which one is absent.
    Stage::new("test", "all tests, with real servers", test),
];

/// The list of stages for `--help`.
pub(super) fn help() -> String {
    let lines = ALL.iter().map(|stage| format!("  {:10} {}", stage.name, stage.job));
    format!("Stages:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

fn packages() -> Result<()> {
    servers::install(&servers::ci_set()?)?;
    servers::install_helpers()
}

fn clippy() -> Result<()> {
    run(&mut cargo(&["clippy", "--locked", "--workspace", "--all-targets", "--", "--deny", "warnings"]))
}

fn doc() -> Result<()> {
    let mut command = cargo(&["doc", "--locked", "--workspace", "--no-deps", "--document-private-items"]);
    run(command.env("RUSTDOCFLAGS", "--deny warnings"))
}

fn test() -> Result<()> {
    side_by_side::run(&programs::build()?)
}
