//! Shell scripts that tests use in place of a server's programs.

use std::path::Path;
use std::process::Command;

/// Writes an executable shell script, and makes its folder if needed. A separate process writes the
/// script, because the kernel does not run a program that any process has open for writing, and a
/// process that another test starts meanwhile inherits this process's open files.
pub(crate) fn write_program(path: &Path, script: &str) {
    let text = path.with_extension("text");
    std::fs::create_dir_all(path.parent().expect("a path below a folder")).expect("a folder");
    std::fs::write(&text, format!("#!/bin/sh\n{script}\n")).expect("a file");
    let status = Command::new("install").arg(&text).arg(path).status().expect("install of coreutils");
    assert!(status.success(), "{} is not written", path.display());
}
