//! Runs `apt-get` for one Debian suite, separately from the machine's own packages.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use super::run::{fetching, run};
use crate::Error;

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Suites whose security updates are in a separate archive.
const WITH_SECURITY: &[&str] = &["bullseye", "bookworm", "trixie"];

/// The suite for experimental packages, and the suite that completes it.
const EXPERIMENTAL: (&str, &str) = ("experimental", "sid");

/// An `apt-get` that sees one suite and assumes that nothing is installed, so that it names every
/// package needed. It does not touch the machine's own package state.
pub(super) struct Apt {
    options: Vec<String>,
}

impl Apt {
    pub(super) fn new(suite: &str, state: &Path, cancel: &AtomicBool) -> Result<Self, Error> {
        let lists = state.join("lists");
        let cache = state.join(format!("cache-{suite}"));
        for folder in [lists.join("partial"), cache.join("archives/partial")] {
            fs::create_dir_all(&folder).map_err(Error::io("cannot make", folder.clone()))?;
        }
        let status = state.join("empty-status");
        let sources = state.join(format!("{suite}.list"));
        let text = sources_list(suite, &mirrors(cancel)?);
        fs::write(&status, "").map_err(Error::io("cannot write", status.clone()))?;
        fs::write(&sources, text).map_err(Error::io("cannot write", sources.clone()))?;
        let settings = [
            format!("Dir::Etc::sourcelist={}", sources.display()),
            "Dir::Etc::sourceparts=/dev/null".to_owned(),
            format!("Dir::State::lists={}", lists.display()),
            format!("Dir::State::status={}", status.display()),
            format!("Dir::Cache={}", cache.display()),
            "APT::Get::List-Cleanup=0".to_owned(),
            "APT::Install-Recommends=0".to_owned(),
            "APT::Sandbox::User=root".to_owned(),
            "Acquire::Languages=none".to_owned(),
        ];
        let options = settings.into_iter().flat_map(|setting| ["-o".to_owned(), setting]).collect();
        Ok(Self { options })
    }

    /// An `apt-get` command, to which the caller adds a verb.
    pub(super) fn get(&self) -> Command {
        self.command("apt-get")
    }

    /// The vendor's versions of `package` that are in the suite now.
    pub(super) fn versions(&self, package: &str, cancel: &AtomicBool) -> Result<Vec<String>, Error> {
        let mut command = self.command("apt-cache");
        let table = run("asking for a package's versions", command.args(["madison", package]), cancel)?;
        let versions = table.lines().filter_map(|line| line.split('|').nth(1));
        let mut versions: Vec<String> = versions.map(|version| upstream(version.trim()).to_owned()).collect();
        versions.dedup();
        Ok(versions)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = fetching(program);
        command.arg("-q").args(&self.options).env("LC_ALL", "C");
        command
    }
}

/// The machine's own mirror, and its mirror of security updates if it has one.
#[derive(Debug, Default, PartialEq, Eq)]
struct Mirrors {
    main: String,
    security: Option<String>,
}

fn mirrors(cancel: &AtomicBool) -> Result<Mirrors, Error> {
    let mut command = fetching("apt-get");
    command.args(["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]);
    let text = run("asking apt for the machine's Debian mirror", &mut command, cancel)?;
    let mut mirrors = Mirrors::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line.contains("security") {
            mirrors.security.get_or_insert_with(|| line.to_owned());
        } else if mirrors.main.is_empty() {
            line.clone_into(&mut mirrors.main);
        }
    }
    match mirrors.main.is_empty() {
        false => Ok(mirrors),
        true => Err(Error::Tool {
            what: "finding a Debian mirror".to_owned(),
            command: "apt-get indextargets".to_owned(),
            status: "named none".to_owned(),
            output: "the machine's own package sources are empty; run apt-get update".to_owned(),
        }),
    }
}

fn sources_list(suite: &str, mirrors: &Mirrors) -> String {
    let line = |mirror: &str, suite: &str| format!("deb [signed-by={KEYRING}] {mirror} {suite} main\n");
    let mut text = line(&mirrors.main, suite);
    if suite == EXPERIMENTAL.0 {
        text.push_str(&line(&mirrors.main, EXPERIMENTAL.1));
    }
    if let Some(security) = mirrors.security.as_deref().filter(|_| WITH_SECURITY.contains(&suite)) {
        text.push_str(&line(security, &format!("{suite}-security")));
    }
    text
}

/// The vendor's version in a package version: `10.11.19` in `1:10.11.19-0+deb12u1`.
pub(super) fn upstream(version: &str) -> &str {
    let version = version.split_once(':').map_or(version, |(_, version)| version);
    version.rsplit_once('-').map_or(version, |(version, _)| version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vendors_version_is_without_epoch_and_revision() {
        let versions = ["1:10.11.19-0+deb12u1", "9.7.4-2", "19~rc1-1", "17.5"].map(upstream);
        assert_eq!(versions, ["10.11.19", "9.7.4", "19~rc1", "17.5"]);
    }

    #[test]
    fn suites_with_security_updates_list_both_places() {
        let mirrors = Mirrors { main: "m/debian".to_owned(), security: Some("m/security".to_owned()) };
        insta::assert_snapshot!(sources_list("bookworm", &mirrors), @r"
        deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] m/debian bookworm main
        deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] m/security bookworm-security main
        ");
        assert_eq!(sources_list("sid", &mirrors).lines().count(), 1);
        assert!(sources_list("experimental", &mirrors).ends_with(" m/debian sid main\n"));
    }
}
