//! Puts into the binary the commit that it was built from, so that every record can name it, and
//! the plans that ship with dbdyno.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    // Only files that are compiled in are watched, so a new commit alone causes no build. A binary
    // from before the commit then still names the earlier commit, with `+changes`. A distributed
    // binary is built in a fresh target folder and names its own commit.
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    for entry in fs::read_dir("..").into_iter().flatten().flatten() {
        println!("cargo::rerun-if-changed={}", entry.path().join("src").display());
    }
    println!("cargo::rustc-env=DBDYNO_COMMIT={}", commit().unwrap_or_else(|| "unknown".to_owned()));
    println!("cargo::rerun-if-changed=../../plans");
    let mut plans = Vec::new();
    files(Path::new("../../plans"), &mut plans);
    plans.sort();
    let entry = |path: &PathBuf| {
        let name = path.strip_prefix("../../plans").expect("it lies there").display().to_string();
        // The path goes through a variable that cargo watches, because another checkout may use the
        // same target folder.
        format!("({name:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/../../plans/{name}\"))),\n")
    };
    let list: String = plans.iter().map(entry).collect();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says it")).join("plans.rs");
    fs::write(out, format!("&[\n{list}]\n")).expect("cargo's folder can be written");
}

/// Adds the files below `folder` to `found`.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// Returns `1a2b3c4d5e6f`, with `+changes` when tracked files differ from that commit. It is `None`
/// outside a checkout.
fn commit() -> Option<String> {
    if !Path::new("../../.git").exists() {
        return None;
    }
    let id = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changes.is_empty() { id } else { format!("{id}+changes") })
}

fn git(arguments: &[&str]) -> Option<String> {
    // Without this option `git status` rewrites the index, which editors and other programs watch.
    let output = Command::new("git").arg("--no-optional-locks").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
