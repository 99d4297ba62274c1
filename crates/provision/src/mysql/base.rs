//! A base directory: which server lies in it, of which product and version, and where its parts are.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::Error;
use crate::launch::calling;
use crate::release::ConfigProduct as Product;

/// Where a server program lies: the prefix that the server calls its base directory, then the program.
///
/// Tarballs have `bin`, source installs `sbin` or `libexec`, unpacked distribution packages `usr/sbin`.
const PROGRAMS: &[(&str, &str)] = &[
    ("", "bin/mysqld"),
    ("", "bin/mariadbd"),
    ("", "sbin/mysqld"),
    ("", "sbin/mariadbd"),
    ("usr", "sbin/mysqld"),
    ("usr", "sbin/mariadbd"),
    ("", "libexec/mysqld"),
    ("", "libexec/mariadbd"),
];

const SHARE_DIRS: &[&str] = &["share", "share/mysql", "share/mariadb"];
const PLUGIN_DIRS: &[&str] = &["lib/plugin", "lib/mysql/plugin", "lib/mariadb/plugin", "lib64/mysql/plugin"];
const INSTALLERS: &[&str] = &[
    "bin/mariadb-install-db",
    "scripts/mariadb-install-db",
    "bin/mysql_install_db",
    "scripts/mysql_install_db",
];

/// A version: three numbers that decide how the server is started, and the server's own full text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) major: u32,
    pub(crate) minor: u32,
    pub(crate) patch: u32,
    /// As the program prints it: `10.11.19-MariaDB-0+deb12u1`.
    pub(crate) text: String,
}

/// An unpacked or installed server build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BaseDir {
    path: PathBuf,
    prefix: PathBuf,
    program: PathBuf,
    product: Product,
    version: Version,
    share_dir: Option<PathBuf>,
    plugin_dir: Option<PathBuf>,
    installer: Option<PathBuf>,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Version {
    /// Whether this version is `major.minor` or later.
    pub(crate) fn at_least(&self, major: u32, minor: u32) -> bool {
        (self.major, self.minor) >= (major, minor)
    }
}

impl BaseDir {
    /// Looks into `path` and asks the server program in it for its version.
    ///
    /// # Errors
    /// [`Error::NoServer`] when there is none, [`Error::Version`] when it does not run (a library may be missing).
    pub(crate) fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let given = path.as_ref();
        let no_server = || Error::NoServer { path: given.to_path_buf(), looked_for: looked_for() };
        let path = given.canonicalize().map_err(|_| no_server())?;
        let (prefix, program) = find_program(&path).ok_or_else(no_server)?;
        let printed = version_line(&program)?;
        let (product, version) = parse_version(&printed).ok_or_else(|| Error::Version {
            program: program.clone(),
            why: format!("it printed {printed:?}, in which no version is known"),
        })?;
        let share_dir = first_with(&prefix, SHARE_DIRS, "english/errmsg.sys");
        let plugin_dir = first_with(&prefix, PLUGIN_DIRS, "");
        // Some archives hold a link to one as an empty file.
        let has_text = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|file| file.len() > 0);
        let installer = INSTALLERS.iter().map(|name| prefix.join(name)).find(has_text);
        Ok(Self { path, prefix, program, product, version, share_dir, plugin_dir, installer })
    }

    /// The folder that was opened, absolute.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What the server itself takes as `--basedir`: the folder or its `usr`.
    pub(crate) fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// The server program.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    pub(crate) fn product(&self) -> Product {
        self.product
    }

    pub(crate) fn version(&self) -> &Version {
        &self.version
    }

    /// Folder whose `english/errmsg.sys` holds the error messages; it also holds `charsets` and the SQL scripts.
    pub(crate) fn share_dir(&self) -> Option<&Path> {
        self.share_dir.as_deref()
    }

    /// Folder of loadable plugins; builds with built-in plugins only have none.
    pub(crate) fn plugin_dir(&self) -> Option<&Path> {
        self.plugin_dir.as_deref()
    }

    /// The script that makes a data directory; MySQL from 5.7 needs none, some packages leave it out.
    pub(crate) fn installer(&self) -> Option<&Path> {
        self.installer.as_deref()
    }

    /// Product and version for people: `MariaDB 10.11.19`.
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.product, self.version)
    }

    /// Whether this is MariaDB.
    pub(crate) fn is_mariadb(&self) -> bool {
        self.product == Product::MariaDb
    }
}

/// Prefix and program of the server in `path`, without running anything.
pub(super) fn find_program(path: &Path) -> Option<(PathBuf, PathBuf)> {
    PROGRAMS.iter().find_map(|(prefix, program)| {
        let prefix = if prefix.is_empty() { path.to_path_buf() } else { path.join(prefix) };
        let program = prefix.join(program);
        program.is_file().then_some((prefix, program))
    })
}

/// The list of [`PROGRAMS`] for an error message.
pub(super) fn looked_for() -> String {
    let names: Vec<String> = PROGRAMS
        .iter()
        .map(
            |(prefix, program)| {
                if prefix.is_empty() { program.to_string() } else { format!("{prefix}/{program}") }
            },
        )
        .collect();
    names.join(", ")
}

fn first_with(prefix: &Path, candidates: &[&str], inside: &str) -> Option<PathBuf> {
    let has_it = |path: &PathBuf| if inside.is_empty() { path.exists() } else { path.join(inside).exists() };
    candidates.iter().map(|name| prefix.join(name)).find(has_it)
}

fn version_line(program: &Path) -> Result<String, Error> {
    let failed = |why: String| Error::Version { program: program.to_path_buf(), why };
    let output = calling(program)
        .args(["--no-defaults", "--version"])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().next().unwrap_or("it printed nothing").to_owned();
        let hint = match said.contains("shared librar") {
            true => "; install the library with the distribution's package manager (often libaio1, libnuma1)",
            false => "",
        };
        return Err(failed(format!("{}: {said}{hint}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Reads `mysqld  Ver 8.0.31 for Linux on x86_64 (MySQL Community Server - GPL)`.
fn parse_version(line: &str) -> Option<(Product, Version)> {
    let text = line.split_once("Ver ")?.1.split_whitespace().next()?;
    let mut numbers = text.splitn(3, '.');
    let major = numbers.next()?.parse().ok()?;
    let minor = numbers.next()?.parse().ok()?;
    let rest = numbers.next()?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let patch = rest[..digits].parse().ok()?;
    let product = if line.contains("MariaDB") {
        Product::MariaDb
    } else if line.contains("Percona") {
        Product::Percona
    } else {
        Product::MySql
    };
    Some((product, Version { major, minor, patch, text: text.to_owned() }))
}

#[cfg(test)]
impl BaseDir {
    /// A base directory that exists on no disk, for tests of pure parts.
    pub(crate) fn sample(product: Product, version: (u32, u32, u32)) -> Self {
        Self::sample_in(Path::new("/s/base"), product, version)
    }

    /// The same for one that may exist.
    pub(crate) fn sample_in(path: &Path, product: Product, (major, minor, patch): (u32, u32, u32)) -> Self {
        let path = path.to_path_buf();
        Self {
            prefix: path.clone(),
            program: path.join("bin/mysqld"),
            product,
            version: Version { major, minor, patch, text: format!("{major}.{minor}.{patch}") },
            share_dir: Some(path.join("share")),
            plugin_dir: None,
            installer: None,
            path,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::write_program;

    fn parsed(line: &str) -> String {
        match parse_version(line) {
            Some((product, version)) => format!("{product} {version} [{}]", version.text),
            None => "not understood".to_owned(),
        }
    }

    #[test]
    fn product_and_version_are_read_from_what_real_servers_print() {
        let lines = [
            "/s/bin/mysqld  Ver 10.1.23-MariaDB for Linux on x86_64 (MariaDB Server)",
            "/s/sbin/mysqld  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)",
            "/s/bin/mysqld  Ver 5.6.24 for linux-glibc2.5 on x86_64 (MySQL Community Server (GPL))",
            "/s/bin/mysqld  Ver 8.0.31 for Linux on x86_64 (MySQL Community Server - GPL)",
            "/s/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))",
            "mysqld  Ver 8.0.35-27 for Linux on x86_64 (Percona Server (GPL), Release 27, Revision 2f8eeab2)",
            "postgres (PostgreSQL) 15.2",
        ];
        insta::assert_snapshot!(lines.map(parsed).join("\n"), @r"
        MariaDB 10.1.23 [10.1.23-MariaDB]
        MariaDB 10.11.19 [10.11.19-MariaDB-0+deb12u1]
        MySQL 5.6.24 [5.6.24]
        MySQL 8.0.31 [8.0.31]
        MySQL 9.7.4 [9.7.4-2]
        Percona Server 8.0.35 [8.0.35-27]
        not understood
        ");
    }

    #[test]
    fn a_program_that_does_not_run_is_an_error_with_its_words() {
        let folder = tempfile::tempdir().unwrap();
        let script = "echo 'libaio.so.1: cannot open shared library' >&2\nexit 127";
        write_program(&folder.path().join("bin/mysqld"), script);
        let message = BaseDir::open(folder.path()).unwrap_err().to_string();
        assert!(message.contains("libaio.so.1: cannot open"), "{message}");
        assert!(message.contains("libaio1"), "{message}");
    }

    #[test]
    fn versions_compare_by_number_not_by_text() {
        let version = Version { major: 10, minor: 11, patch: 5, text: String::new() };
        assert!(version.at_least(10, 5) && version.at_least(10, 11) && !version.at_least(11, 0));
    }
}
