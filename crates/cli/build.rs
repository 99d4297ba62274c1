//! Tells the binary which commit it was built from, so that every record can say so.

use std::path::Path;
use std::process::Command;

fn main() {
    // HEAD and index change with every commit and checkout; the sources tell whether there are changes beyond it.
    for path in ["../../.git/HEAD", "../../.git/index", "../../Cargo.lock", ".."] {
        if Path::new(path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    println!("cargo::rustc-env=DBDYNO_COMMIT={}", commit().unwrap_or_else(|| "unknown".to_owned()));
}

/// `1a2b3c4d5e6f`, with `+changes` when tracked files differ from it; `None` outside a checkout.
fn commit() -> Option<String> {
    let id = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changes.is_empty() { id } else { format!("{id}+changes") })
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
