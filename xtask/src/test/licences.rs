//! The stage `licences`: `cargo deny` in one pinned version, installed when it is missing.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::command::{cargo, output, run};
use crate::{places, terminal};

/// Its rules and their names change between versions.
const VERSION: &str = "0.20.2";

/// Checks the tree against deny.toml.
pub(super) fn check() -> Result<()> {
    let program = cargo_deny()?;
    // The graph has crates of other platforms, which no build downloads; with them here, the check
    // needs no network.
    run(&mut cargo(&["fetch", "--quiet", "--locked"]))?;
    let mut command = Command::new(program);
    run(command.args([
        "--workspace",
        "--offline",
        "--locked",
        "check",
        "--hide-inclusion-graph",
        "licenses",
        "bans",
        "sources",
    ]))
}

/// The pinned version: the one of the path, else ours in the cache, which is built if need be.
fn cargo_deny() -> Result<PathBuf> {
    let tools = places::cache().join("tools");
    let candidates = [PathBuf::from("cargo-deny"), tools.join("bin/cargo-deny")];
    if let Some(program) = candidates.into_iter().find(is_pinned) {
        return Ok(program);
    }
    terminal::note(&format!("installing cargo-deny {VERSION} into {}", tools.display()));
    std::fs::create_dir_all(&tools)?;
    let build = tempfile::Builder::new().prefix("build-").tempdir_in(&tools)?;
    // A debug build takes a quarter of the time, and checking takes a second.
    let mut command =
        cargo(&["install", "cargo-deny", "--quiet", "--locked", "--force", "--debug", "--version", VERSION]);
    run(command.arg("--root").arg(&tools).env("CARGO_TARGET_DIR", build.path()))?;
    Ok(tools.join("bin/cargo-deny"))
}

fn is_pinned(program: &PathBuf) -> bool {
    let said = output(Command::new(program).arg("--version"));
    said.is_ok_and(|version| version.trim() == format!("cargo-deny {VERSION}"))
}
