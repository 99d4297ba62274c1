//! Gets the source of PostgreSQL as Debian packages it, and builds servers from it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use dbdyno_fetch as fetch;

use crate::workspace::{self, output, run};

/// What building PostgreSQL needs.
const TOOLS: [&str; 4] = ["gcc", "make", "perl", "bzip2"];

/// Returns the folder of PostgreSQL's sources, which are fetched where they are not there yet.
pub(crate) fn postgres() -> Result<PathBuf> {
    let folder = workspace::cache().join("sources/postgres");
    let tree = folder.join("tree");
    if tree.join("configure").exists() {
        return Ok(tree);
    }
    std::fs::create_dir_all(folder.join("lists/partial"))?;
    std::fs::create_dir_all(folder.join("parts"))?;
    let missing: Vec<String> =
        TOOLS.iter().filter(|tool| !is_installed(tool)).map(|tool| (*tool).to_owned()).collect();
    fetch::install_tools(&missing, &mut |line| workspace::note(line))?;
    source_lists(&folder)?;
    run(apt(&folder).args(["--quiet", "update"]))?;
    let depends = output(Command::new("apt-cache").args(["depends", "postgresql"]))?;
    let package = depends.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    let package = package.context("Debian's package postgresql does not name a version")?;
    let mut get = apt(&folder);
    get.args(["--quiet", "--download-only", "source", package]).env("PWD", &folder);
    run(Command::new("sh").args(["-c", "cd \"$0\" && exec \"$@\""]).arg(&folder).arg(get.get_program()).args(get.get_args()))?;
    let archive = archive_in(&folder)?;
    std::fs::create_dir_all(&tree)?;
    run(Command::new("tar").arg("-xf").arg(archive).args(["--strip-components=1", "-C"]).arg(&tree))?;
    Ok(tree)
}

fn is_installed(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok()
}

/// Returns an `apt-get` that knows sources of packages, without a change to the machine's lists.
fn apt(folder: &Path) -> Command {
    let mut command = Command::new("apt-get");
    for (key, path) in
        [("Etc::SourceList", "sources.list"), ("Etc::SourceParts", "parts"), ("State::Lists", "lists")]
    {
        command.arg("-o").arg(format!("Dir::{key}={}", folder.join(path).display()));
    }
    command
}

/// Writes the machine's lists of packages again as lists of their sources.
fn source_lists(folder: &Path) -> Result<()> {
    let parts = Path::new("/etc/apt/sources.list.d");
    let mut paths = vec![PathBuf::from("/etc/apt/sources.list")];
    paths.extend(std::fs::read_dir(parts).into_iter().flatten().flatten().map(|entry| entry.path()));
    let (mut lines, mut number) = (String::new(), 0);
    for path in paths {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        if path.extension().is_some_and(|ending| ending == "sources") {
            number += 1;
            std::fs::write(folder.join(format!("parts/{number}.sources")), text.replace("Types: deb\n", "Types: deb-src\n"))?;
        } else {
            let own = text.lines().filter_map(|line| line.trim().strip_prefix("deb "));
            lines.extend(own.map(|line| format!("deb-src {line}\n")));
        }
    }
    Ok(std::fs::write(folder.join("sources.list"), lines)?)
}

/// Returns the archive of the original sources in a folder.
fn archive_in(folder: &Path) -> Result<PathBuf> {
    let mut paths = std::fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    let is_original = |path: &PathBuf| path.to_string_lossy().contains(".orig.tar.");
    paths.find(is_original).context("apt-get got no archive of sources")
}

/// Builds the sources in `tree` with options that keep frame pointers and symbols, and installs the
/// server below `into`.
pub(crate) fn build(tree: &Path, into: &Path) -> Result<()> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let script = "cd \"$0\" && ./configure --quiet --prefix=\"$1\" --without-readline --without-zlib --without-icu \
                  CFLAGS='-O2 -g -fno-omit-frame-pointer' && make -s -j \"$2\" && make -s install";
    run(Command::new("sh").args(["-c", script]).arg(tree).arg(into).arg(cpus.to_string()))
}
