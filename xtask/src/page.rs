//! `cargo xtask page` bundles the script of the HTML page from its sources and the locked packages
//! of npm.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Parser;

use crate::workspace::{self, run};

/// Build the script of the HTML page: crates/report/page/page.js.
///
/// It is committed, so that building dbdyno needs no Node. Packages come from npm, in the versions
/// of the lock file.
#[derive(Debug, Parser)]
pub(crate) struct PageArgs {
    /// Change nothing; fail where the committed script is not what its sources give.
    #[arg(long)]
    check: bool,
}

const BUNDLE: &str = "page.js";

pub(crate) fn folder() -> PathBuf {
    workspace::root().join("crates/report/page")
}

pub(crate) fn build(args: &PageArgs) -> Result<()> {
    if args.check { check() } else { install().and_then(|()| bundle()) }
}

/// Checks that the committed script is what its sources give.
pub(crate) fn check() -> Result<()> {
    let path = folder().join(BUNDLE);
    let read = || std::fs::read(&path).with_context(|| format!("{} cannot be read", path.display()));
    let committed = read()?;
    install()?;
    bundle()?;
    if read()? != committed {
        std::fs::write(&path, committed)?;
        bail!("crates/report/page/{BUNDLE} is not what its sources give; run `cargo xtask page`");
    }
    Ok(())
}

/// Installs the locked packages without running their scripts.
pub(crate) fn install() -> Result<()> {
    npm(&["ci", "--silent", "--ignore-scripts"])
}

fn bundle() -> Result<()> {
    npm(&["run", "--silent", "build"])
}

fn npm(arguments: &[&str]) -> Result<()> {
    run(Command::new("npm").arg("--prefix").arg(folder()).args(arguments))
}
