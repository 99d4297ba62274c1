//! Servers in packages of any Debian suite: unpacked with their libraries, so that they run on another release.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::run::run;
use super::{Goal, Source, unfetchable};
use crate::Error;
use crate::postgres::find_programs;

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
const LOADER: &str = "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2";

/// Suites with security updates in a place of their own.
const WITH_SECURITY: &[&str] = &["bullseye", "bookworm", "trixie"];

/// Packages besides `lib*` that hold libraries.
const MORE_LIBRARIES: &[&str] = &["zlib1g", "openssl-provider-legacy"];

/// Packages called `lib*` that belong to scripting languages, which no server needs to run.
const NO_LIBRARIES: &[&str] =
    &["libperl", "libpython", "libjson-perl", "libio-pty", "libipc-run", "libtext-"];

/// Folders that the server does not read.
const LEFT_OUT: &[&str] = &["usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/lintian", "etc"];

/// Resolves, downloads and unpacks the packages of the goal's entry, then ties the programs to their own libraries.
pub(super) fn fetch(goal: &Goal<'_>, log: &mut dyn FnMut(&str)) -> Result<(), Error> {
    let Source::Debian { suite, packages, keep, alone } = &goal.entry.source else {
        return Err(unfetchable(goal.entry, "it is not in Debian packages"));
    };
    let apt = Apt::new(suite, goal.lists)?;
    log(&format!("{}: reading the package lists of {suite}", goal.entry.name));
    run(&format!("reading the package lists of {suite}"), apt.get().arg("update"))?;
    let plan = run("resolving packages", apt.get().args(["install", "-s"]).args(packages))?;
    let mut wanted = to_unpack(&plan, packages, keep);
    wanted.extend(alone.iter().cloned());
    log(&format!("{}: downloading {} packages", goal.entry.name, wanted.len()));
    run("downloading packages", apt.get().arg("download").args(&wanted).current_dir(goal.downloads))?;
    for file in debs(goal.downloads)? {
        let what = format!("unpacking {}", file.display());
        run(&what, Command::new("dpkg-deb").arg("-x").arg(&file).arg(goal.partial))?;
    }
    // Releases before the merge of /lib and /usr/lib have both, later ones only the second.
    let lib = goal.partial.join("lib");
    if !lib.exists() {
        std::os::unix::fs::symlink("usr/lib", &lib).map_err(Error::io("cannot link", lib))?;
    }
    for folder in LEFT_OUT.iter().map(|name| goal.partial.join(name)).filter(|path| path.exists()) {
        fs::remove_dir_all(&folder).map_err(Error::io("cannot remove", folder.clone()))?;
    }
    tie_to_own_libraries(goal)
}

/// `apt-get` that sees one suite and thinks that nothing is installed, so that it names every package needed; it
/// touches nothing of the machine's own package state.
struct Apt {
    options: Vec<String>,
}

impl Apt {
    fn new(suite: &str, state: &Path) -> Result<Self, Error> {
        let lists = state.join("lists");
        let cache = state.join(format!("cache-{suite}"));
        for folder in [lists.join("partial"), cache.join("archives/partial")] {
            fs::create_dir_all(&folder).map_err(Error::io("cannot make", folder.clone()))?;
        }
        let status = state.join("empty-status");
        let sources = state.join(format!("{suite}.list"));
        let text = sources_list(suite, &mirrors()?);
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

    fn get(&self) -> Command {
        let mut command = Command::new("apt-get");
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

fn mirrors() -> Result<Mirrors, Error> {
    let mut command = Command::new("apt-get");
    command.args(["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]);
    let text = run("asking apt for the machine's Debian mirror", &mut command)?;
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
    if let Some(security) = mirrors.security.as_deref().filter(|_| WITH_SECURITY.contains(&suite)) {
        text.push_str(&line(security, &format!("{suite}-security")));
    }
    text
}

/// Of what apt would install, the libraries, the packages asked for and those to keep, each as `name=version`.
fn to_unpack(plan: &str, packages: &[String], keep: &[String]) -> Vec<String> {
    let plain = |package: &String| package.split('=').next().unwrap_or_default().to_owned();
    let named: Vec<String> = packages.iter().chain(keep).map(plain).collect();
    let library = |name: &str| {
        let lib = name.starts_with("lib") && !NO_LIBRARIES.iter().any(|prefix| name.starts_with(prefix));
        lib || MORE_LIBRARIES.contains(&name)
    };
    plan.lines()
        .filter_map(|line| line.strip_prefix("Inst ")?.split_once(" ("))
        .filter(|(name, _)| library(name) || named.iter().any(|wanted| wanted == name))
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

/// Gives each program the base directory's own loader and library path, as absolute paths of where it will lie. The
/// forced (old) kind of path also serves the libraries' own needs and plugins. The process keeps its name, unlike
/// one that is run through the loader.
fn tie_to_own_libraries(goal: &Goal<'_>) -> Result<(), Error> {
    let prefix = ["", "usr"].iter().find(|prefix| goal.partial.join(prefix).join(LOADER).exists());
    let prefix = prefix.ok_or_else(|| unfetchable(goal.entry, "libc6 was not among its packages"))?;
    let loader = goal.base.join(prefix).join(LOADER);
    let libraries = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"].map(|name| goal.base.join(name));
    let libraries = format!("{}:{}", libraries[0].display(), libraries[1].display());
    let folders = ["usr/bin", "usr/sbin"].map(|name| goal.partial.join(name));
    for folder in folders.into_iter().chain(find_programs(goal.partial)) {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for program in entries.flatten().map(|entry| entry.path()).filter(|path| is_program(path)) {
            let mut command = Command::new("patchelf");
            command.arg("--set-interpreter").arg(&loader);
            command.args(["--force-rpath", "--set-rpath", &libraries]).arg(&program);
            run(&format!("telling {} its libraries", program.display()), &mut command)?;
        }
    }
    Ok(())
}

/// A file that is itself a dynamically linked program: no link to one, no script, nothing static.
fn is_program(path: &Path) -> bool {
    let file = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file());
    file && run("", Command::new("patchelf").arg("--print-interpreter").arg(path)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_named_packages_are_kept_and_the_rest_of_the_closure_is_not() {
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
    fn suites_with_security_updates_list_both_places() {
        let mirrors = Mirrors { main: "m/debian".to_owned(), security: Some("m/security".to_owned()) };
        insta::assert_snapshot!(sources_list("bookworm", &mirrors), @r"
        deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] m/debian bookworm main
        deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] m/security bookworm-security main
        ");
        assert_eq!(sources_list("sid", &mirrors).lines().count(), 1);
    }
}
