//! The families of products whose servers dbdyno can start or be given the address of, and the
//! product without servers.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, de};

use crate::Error;
use crate::product::{Base, Embedded, Family};
use crate::release::ConfigProduct;

/// In the order in which a base directory is looked into, and of tables.
pub const FAMILIES: &[&dyn Family] = &[&crate::mysql::Mysql, &crate::postgres::Postgres];

pub const EMBEDDED: Embedded = crate::sqlite::SQLITE;

impl ConfigProduct {
    pub const EMBEDDED: Self = EMBEDDED.product;

    /// The products that have servers.
    pub fn servers() -> impl Iterator<Item = Self> {
        FAMILIES.iter().flat_map(|family| family.facts().products).copied()
    }

    /// All, in the order of tables.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::servers().chain([Self::EMBEDDED])
    }

    /// Product and version of a server by its name: `mariadb-10.11.5`.
    pub fn named(name: &str) -> Option<(Self, &str)> {
        let (word, version) = name.split_once('-')?;
        let product = Self::servers().find(|product| product.0.prefixes.contains(&word))?;
        version.starts_with(|c: char| c.is_ascii_digit()).then_some((product, version))
    }

    /// The name that catalogues have for the server `name`: `pg-18` for `postgresql-18`.
    pub fn name_in_catalogues(name: &str) -> Option<String> {
        let (product, version) = Self::named(name)?;
        Some(format!("{}-{version}", product.0.prefixes.first()?))
    }
}

impl<'de> Deserialize<'de> for ConfigProduct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        let product = Self::all().find(|product| product.0.word == word);
        product.ok_or_else(|| de::Error::custom(format!("{word:?} is not a product")))
    }
}

impl Base {
    /// Looks into `path` and asks the server program in it for its version.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        if let Ok(absolute) = path.canonicalize() {
            for family in FAMILIES {
                if let Some(base) = family.open(&absolute)? {
                    return Ok(base);
                }
            }
        }
        let looked_for: Vec<String> = FAMILIES.iter().map(|family| family.looked_for()).collect();
        Err(Error::NoServer { path: path.to_path_buf(), looked_for: looked_for.join(", ") })
    }

    /// Whether `path` holds a server, without running anything.
    pub fn is_in(path: &Path) -> bool {
        Self::program_in(path).is_some()
    }

    /// The server program in `path`, without running it.
    pub fn program_in(path: &Path) -> Option<PathBuf> {
        FAMILIES.iter().find_map(|family| family.program_in(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_server_is_refused_with_what_was_looked_for() {
        let folder = tempfile::tempdir().unwrap();
        let message = Base::open(folder.path()).unwrap_err().to_string();
        let message = message.replace(folder.path().to_str().unwrap(), "FOLDER");
        insta::assert_snapshot!(message, @"FOLDER holds no server that dbdyno knows: looked for bin/mysqld, bin/mariadbd, sbin/mysqld, sbin/mariadbd, usr/sbin/mysqld, usr/sbin/mariadbd, libexec/mysqld, libexec/mariadbd, bin/postgres with bin/initdb, usr/lib/postgresql/*/bin/postgres; give the folder that the server was unpacked or installed into");
    }
}
