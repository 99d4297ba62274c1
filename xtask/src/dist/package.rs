//! The files of an architecture: a Debian package, and an archive of the same for other systems.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::target::Target;
use crate::command::{output, run};
use crate::places;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Shells, and where Debian's packages have their completions.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/dbdyno"),
    ("zsh", "usr/share/zsh/vendor-completions/_dbdyno"),
    ("fish", "usr/share/fish/vendor_completions.d/dbdyno.fish"),
];

/// Path in a root, and content.
pub(super) type Text = (String, String);

/// Manual pages and completions, as `binary` prints them.
pub(super) fn texts(binary: &Path) -> Result<Vec<Text>> {
    let said = |words: &[&str]| output(Command::new(binary).args(words));
    let mut texts = vec![("usr/share/man/man1/dbdyno.1".to_owned(), said(&["man"])?)];
    for command in commands(&said(&["--help"])?) {
        texts.push((format!("usr/share/man/man1/dbdyno-{command}.1"), said(&["man", &command])?));
    }
    for (shell, path) in SHELLS {
        texts.push((path.to_owned(), said(&["completions", shell])?));
    }
    Ok(texts)
}

/// The names below `Commands:`.
fn commands(help: &str) -> Vec<String> {
    let lines =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let name = |line: &str| {
        let rest = line.strip_prefix("  ")?;
        rest.starts_with(|c: char| c.is_ascii_lowercase())
            .then(|| rest.split(' ').next().unwrap_or_default().to_owned())
    };
    lines.filter_map(name).filter(|name| name != "help").collect()
}

/// Makes them in `out`, and returns their names.
pub(super) fn files(target: &Target, binary: &Path, texts: &[Text], out: &Path) -> Result<Vec<String>> {
    let root = out.join(format!("root-{}", target.arch));
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    for (path, text) in texts {
        write(&root.join(path), text)?;
    }
    let place = root.join("usr/bin/dbdyno");
    fs::create_dir_all(place.parent().context("it has a folder")?)?;
    fs::copy(binary, &place)?;
    let documents = root.join("usr/share/doc/dbdyno");
    let read = |name: &str| fs::read_to_string(places::root().join(name)).with_context(|| name.to_owned());
    let licences = ["LICENSE-MIT", "LICENSE-APACHE"].map(read).into_iter().collect::<Result<Vec<_>>>()?;
    write(&documents.join("copyright"), &licences.join("\n"))?;
    write(&documents.join("changelog"), &read("CHANGELOG.md")?)?;
    let archive = format!("dbdyno-{VERSION}-{}.tar.gz", target.arch);
    let of_root = ["--owner=0", "--group=0", "--sort=name", "-C"];
    run(Command::new("tar").arg("-czf").arg(out.join(&archive)).args(of_root).arg(&root).arg("usr"))?;
    let pages = fs::read_dir(root.join("usr/share/man/man1"))?.map(|entry| Ok(entry?.path()));
    let packed: Vec<PathBuf> = pages.chain([Ok(documents.join("changelog"))]).collect::<Result<_>>()?;
    run(Command::new("gzip").args(["-9", "-n"]).args(&packed))?;
    write(&root.join("DEBIAN/control"), &control(target, bytes_below(&root)?))?;
    let deb = deb_name(target);
    run(Command::new("dpkg-deb").args(["--build", "--root-owner-group"]).arg(&root).arg(out.join(&deb)))?;
    fs::remove_dir_all(&root)?;
    let program = format!("dbdyno-{VERSION}-{}", target.arch);
    fs::copy(binary, out.join(&program))?;
    Ok(vec![program, archive, deb])
}

pub(super) fn deb_name(target: &Target) -> String {
    format!("dbdyno_{VERSION}_{}.deb", target.debian)
}

/// It needs nothing. What fetching and starting servers needs is named when it is missing.
fn control(target: &Target, bytes: u64) -> String {
    format!(
        "Package: dbdyno\nVersion: {VERSION}\nArchitecture: {}\nInstalled-Size: {}\nMaintainer: the dbdyno authors <dbdyno@localhost>\n\
         Section: database\nPriority: optional\nSuggests: maven, npm, curl, xz-utils\n\
         Description: dynamometer for database engines\n \
         Runs standard workloads on MariaDB, MySQL, PostgreSQL and SQLite, in randomised\n \
         blocks, and says which differences between versions and configurations are real.\n",
        target.debian,
        bytes.div_ceil(1024)
    )
}

fn bytes_below(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let found = entry.metadata()?;
        sum += if found.is_dir() { bytes_below(&entry.path())? } else { found.len() };
    }
    Ok(sum)
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(path.parent().context("it has a folder")?)?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_from_the_help() {
        let help = "Usage: x\n\nCommands:\n  run           Run a plan\n  known-answer  Serve\n                tools\n  help          Print\n\nOptions:\n  -q";
        assert_eq!(commands(help), ["run", "known-answer"]);
    }
}
