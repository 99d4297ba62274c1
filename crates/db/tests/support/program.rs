//! Shell scripts that tests put in the place of a server's programs.

use std::path::Path;
use std::process::Command;

/// Writes a shell script that others run, and the folder that it lies in. A process of its own
/// writes it: as long as anybody has a program open for writing the kernel refuses to run it, and a
/// process that another test starts meanwhile has what this one has open.
pub(crate) fn write_program(path: &Path, script: &str) {
    let text = path.with_extension("text");
    std::fs::create_dir_all(path.parent().expect("a path below a folder")).expect("a folder");
    std::fs::write(&text, format!("#!/bin/sh\n{script}\n")).expect("a file");
    let status = Command::new("install").arg(&text).arg(path).status().expect("install of coreutils");
    assert!(status.success(), "{} is not written", path.display());
}
