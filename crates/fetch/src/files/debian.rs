//! Gets servers from the packages of any Debian suite with `apt-get`, separately from the machine's
//! own packages. The packages are unpacked with their libraries, so that the servers run on a
//! machine with another Debian release.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use dbdyno_db::server::Base;

use crate::Error;
use crate::files::programs::{download_command, run};
use crate::files::{Entry, Goal, Source, catalogue, unfetchable};

/// The dynamic loader's path in the base directory or in its `usr`.
const LOADER: &str = "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2";

/// Packages with libraries whose names do not begin with `lib`.
const MORE_LIBRARIES: &[&str] = &["zlib1g", "openssl-provider-legacy"];

/// Prefixes of packages that begin with `lib` but belong to scripting languages. No server needs
/// these packages to run.
const NOT_LIBRARIES: &[&str] =
    &["libperl", "libpython", "libjson-perl", "libio-pty", "libipc-run", "libtext-"];

/// Folders that the server does not read.
const LEFT_OUT: &[&str] = &["usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/lintian", "etc"];

/// Resolves, downloads and unpacks the packages in the goal's entry, then links the programs to
/// their own libraries. apt checks the packages by their suite's signature.
pub(super) fn fetch(goal: &Goal<'_>, log: &mut dyn FnMut(&str)) -> Result<(), Error> {
    let Source::Debian { suite, alone, .. } = &goal.entry.source else {
        return Err(unfetchable(goal.entry, "it is not in Debian packages"));
    };
    let name = &goal.entry.name;
    let apt = Apt::new(suite, goal.lists, goal.cancel)?;
    log(&format!("{name}: reading the package lists of {suite}"));
    run(&format!("reading the package lists of {suite}"), apt.get().arg("update"), goal.cancel)?;
    let mut wanted = resolve(goal, &apt)?;
    wanted.extend(alone.iter().cloned());
    log(&format!("{name}: downloading {} packages, which apt checks by their signature", wanted.len()));
    let mut download = apt.get();
    download.arg("download").args(&wanted).current_dir(goal.downloads);
    run("downloading packages", &mut download, goal.cancel)?;
    for file in debs(goal.downloads)? {
        let what = format!("unpacking {}", file.display());
        run(&what, download_command("dpkg-deb").arg("-x").arg(&file).arg(goal.partial), goal.cancel)?;
    }
    // Releases before the merge of /lib and /usr/lib have both folders. Later releases have only
    // /usr/lib.
    let lib = goal.partial.join("lib");
    if !lib.exists() {
        std::os::unix::fs::symlink("usr/lib", &lib).map_err(Error::io("cannot link", lib))?;
    }
    for folder in LEFT_OUT.iter().map(|name| goal.partial.join(name)).filter(|path| path.exists()) {
        fs::remove_dir_all(&folder).map_err(Error::io("cannot remove", folder.clone()))?;
    }
    link_to_own_libraries(goal)
}

/// Lists the packages to unpack, each as `name=version`.
fn resolve(goal: &Goal<'_>, apt: &Apt) -> Result<Vec<String>, Error> {
    let Source::Debian { suite, packages, keep, .. } = &goal.entry.source else { return Ok(Vec::new()) };
    let server = plain(packages.first().map_or("", String::as_str));
    let planned = run("resolving packages", apt.get().args(["install", "-s"]).args(packages), goal.cancel);
    let wanted = match planned {
        Ok(plan) => to_unpack(&plan, packages, keep),
        Err(Error::Tool { output, .. }) if output.contains("was not found") => {
            let now = apt.versions(server, goal.cancel)?;
            return Err(moved(goal.entry, suite, &now));
        }
        Err(error) => return Err(error),
    };
    let version = wanted.iter().find_map(|package| package.strip_prefix(server)?.strip_prefix('='));
    match version.map(upstream) {
        Some(version) if !goal.entry.means(version) => Err(moved(goal.entry, suite, &[version.to_owned()])),
        _ => Ok(wanted),
    }
}

fn moved(entry: &Entry, suite: &str, now: &[String]) -> Error {
    let now = if now.is_empty() { "no such package".to_owned() } else { now.join(", ") };
    let is_instead = |other: &Entry| {
        let same_suite = matches!(&other.source, Source::Debian { suite: theirs, .. } if theirs == suite);
        same_suite && other.product == entry.product && other.name != entry.name && other.means_line_of(entry)
    };
    let instead = catalogue().into_iter().find(is_instead);
    let instead = instead
        .map_or(String::new(), |other| format!("`dbdyno servers get {}` takes what it has; ", other.name));
    Error::Moved { name: entry.name.clone(), suite: suite.to_owned(), now, instead }
}

/// A package's name without the version that may follow it.
fn plain(package: &str) -> &str {
    package.split('=').next().unwrap_or_default()
}

/// Selects, from the packages that apt would install, the libraries, the requested packages and the
/// packages to keep, each as `name=version`.
fn to_unpack(plan: &str, packages: &[String], keep: &[String]) -> Vec<String> {
    let named: Vec<&str> = packages.iter().chain(keep).map(|package| plain(package)).collect();
    let library = |name: &str| {
        let lib = name.starts_with("lib") && !NOT_LIBRARIES.iter().any(|prefix| name.starts_with(prefix));
        lib || MORE_LIBRARIES.contains(&name)
    };
    plan.lines()
        .filter_map(|line| line.strip_prefix("Inst ")?.split_once(" ("))
        .filter(|(name, _)| library(name) || named.contains(name))
        .filter_map(|(name, rest)| Some(format!("{name}={}", rest.split_whitespace().next()?)))
        .collect()
}

fn debs(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(folder).map_err(Error::io("cannot read", folder))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut debs: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "deb")).collect();
    debs.sort();
    Ok(debs)
}

/// Sets the loader and the library path in each program to those of the base directory, as absolute
/// paths below the directory's final path. The old kind of library path (forced RPATH) also applies
/// to the libraries' own dependencies and to plugins. Programs are not run through the loader
/// instead, because the process would then have the loader's name.
fn link_to_own_libraries(goal: &Goal<'_>) -> Result<(), Error> {
    let prefix = ["", "usr"].iter().find(|prefix| goal.partial.join(prefix).join(LOADER).exists());
    let prefix = prefix.ok_or_else(|| unfetchable(goal.entry, "libc6 was not among its packages"))?;
    let loader = goal.base.join(prefix).join(LOADER);
    let libraries = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"].map(|name| goal.base.join(name));
    let libraries = format!("{}:{}", libraries[0].display(), libraries[1].display());
    let folders = ["usr/bin", "usr/sbin"].map(|name| goal.partial.join(name));
    let program = Base::program_in(goal.partial);
    let own = program.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    let own = own.filter(|folder| !folders.contains(folder));
    for folder in folders.iter().cloned().chain(own) {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for program in entries.flatten().map(|entry| entry.path()).filter(|path| is_program(path)) {
            let mut command = download_command("patchelf");
            command.arg("--set-interpreter").arg(&loader);
            command.args(["--force-rpath", "--set-rpath", &libraries]).arg(&program);
            run(&format!("setting the library path of {}", program.display()), &mut command, goal.cancel)?;
        }
    }
    Ok(())
}

/// Whether a file is itself a dynamically linked program, and not a link, a script or a static
/// program.
fn is_program(path: &Path) -> bool {
    let file = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file());
    file && run(
        "",
        download_command("patchelf").arg("--print-interpreter").arg(path),
        &AtomicBool::new(false),
    )
    .is_ok()
}

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Suites whose security updates are in a separate archive.
const WITH_SECURITY: &[&str] = &["bullseye", "bookworm", "trixie"];

/// The suite for experimental packages, and the suite with the packages that the first suite lacks.
const EXPERIMENTAL: (&str, &str) = ("experimental", "sid");

/// An `apt-get` that sees one suite and assumes that nothing is installed, so that it lists every
/// package that is needed. It does not change the machine's own package state.
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

    /// The vendor's versions of `package` that the suite has now.
    pub(super) fn versions(&self, package: &str, cancel: &AtomicBool) -> Result<Vec<String>, Error> {
        let mut command = self.command("apt-cache");
        let table = run("asking for a package's versions", command.args(["madison", package]), cancel)?;
        let versions = table.lines().filter_map(|line| line.split('|').nth(1));
        let mut versions: Vec<String> = versions.map(|version| upstream(version.trim()).to_owned()).collect();
        versions.dedup();
        Ok(versions)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = download_command(program);
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
    let mut command = download_command("apt-get");
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
    fn libraries_and_named_packages_are_kept_and_other_dependencies_are_not() {
        let plan = "Inst gcc-12-base (12.2.0-14 Debian:12/stable [amd64])\n\
                    Inst libc6 (2.36-9+deb12u10 Debian:12/stable [amd64])\n\
                    Inst zlib1g (1:1.2.13 Debian:12/stable [amd64])\n\
                    Inst libperl5.36 (5.36.0 Debian:12/stable [amd64])\n\
                    Inst mariadb-server-core (1:10.11.11 Debian:12/stable [amd64])\n\
                    Inst rocksdb-tools (7.8.3-2 Debian:12/stable [amd64])\n\
                    Conf libc6 (2.36-9+deb12u10 Debian:12/stable [amd64])\n";
        let wanted =
            to_unpack(plan, &["mariadb-server-core=1:10.11.11".to_owned()], &["rocksdb-tools".to_owned()]);
        let all =
            "libc6=2.36-9+deb12u10 zlib1g=1:1.2.13 mariadb-server-core=1:10.11.11 rocksdb-tools=7.8.3-2";
        assert_eq!(wanted.join(" "), all);
    }

    #[test]
    fn the_error_for_a_suite_that_moved_on_says_what_it_has_and_how_to_get_it() {
        let entry = crate::by_name("mariadb-11.8.6").unwrap();
        insta::assert_snapshot!(moved(&entry, "trixie", &["11.8.9".to_owned()]), @"cannot get mariadb-11.8.6: Debian trixie has 11.8.9 by now, and a suite keeps one version only; `dbdyno servers get mariadb-11.8-debian` takes what it has; to get this version, unpack packages that you have kept and add their folder with `dbdyno servers add`");
        let entry = crate::by_name("pg-19-debian").unwrap();
        insta::assert_snapshot!(moved(&entry, "experimental", &[]), @"cannot get pg-19-debian: Debian experimental has no such package by now, and a suite keeps one version only; to get this version, unpack packages that you have kept and add their folder with `dbdyno servers add`");
    }

    #[test]
    fn the_vendors_version_has_no_epoch_and_no_revision() {
        let versions = ["1:10.11.19-0+deb12u1", "9.7.4-2", "19~rc1-1", "17.5"].map(upstream);
        assert_eq!(versions, ["10.11.19", "9.7.4", "19~rc1", "17.5"]);
    }

    #[test]
    fn suites_with_security_updates_list_both_mirrors() {
        let mirrors = Mirrors { main: "m/debian".to_owned(), security: Some("m/security".to_owned()) };
        insta::assert_snapshot!(sources_list("bookworm", &mirrors), @r"
        deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] m/debian bookworm main
        deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] m/security bookworm-security main
        ");
        assert_eq!(sources_list("sid", &mirrors).lines().count(), 1);
        assert!(sources_list("experimental", &mirrors).ends_with(" m/debian sid main\n"));
    }
}
