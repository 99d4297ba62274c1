//! For which server intents are rendered: product, version, engine, plugins.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, de};

use crate::{Base, Product};

/// A product that intents are rendered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConfigProduct {
    MySql,
    MariaDb,
    Percona,
    Postgresql,
    Sqlite,
}

impl ConfigProduct {
    /// All, in the order of tables.
    pub const ALL: [Self; 5] = [Self::MySql, Self::Percona, Self::MariaDb, Self::Postgresql, Self::Sqlite];

    /// Whether what is said of `self` holds for `other`: what is of MySQL is of Percona Server too.
    pub(crate) fn covers(self, other: Self) -> bool {
        self == other || (self == Self::MySql && other == Self::Percona)
    }
}

impl fmt::Display for ConfigProduct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MySql => "MySQL",
            Self::MariaDb => "MariaDB",
            Self::Percona => "Percona Server",
            Self::Postgresql => "PostgreSQL",
            Self::Sqlite => "SQLite",
        })
    }
}

/// A version as three numbers, absent ones 0: 10.11.5, 8.4.0, 18.0.0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release(pub [u32; 3]);

impl Release {
    /// Reads the numbers that `text` begins with: `10.11.19-MariaDB`, `19rc1`, `5.6`. `None` without any.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = [0; 3];
        for (index, part) in text.split('.').take(3).enumerate() {
            let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            match part[..digits].parse() {
                Ok(number) => numbers[index] = number,
                Err(_) if index == 0 => return None,
                Err(_) => break,
            }
            if digits < part.len() {
                break;
            }
        }
        Some(Self(numbers))
    }
}

/// Without zeros at the end beyond the second number: `8.4`, `8.0.30`, `18`.
impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [major, 0, 0] if major >= 13 => write!(f, "{major}"),
            [major, minor, 0] => write!(f, "{major}.{minor}"),
            [major, minor, patch] => write!(f, "{major}.{minor}.{patch}"),
        }
    }
}

impl<'de> Deserialize<'de> for Release {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom(format!("{text:?} is not a version")))
    }
}

/// What is known of a build's loadable plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plugins {
    /// The build is not here; plugins are taken to be in it.
    Unknown,
    /// Their folder; `None` for a build without.
    In(Option<PathBuf>),
}

/// A server that a config is rendered for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigServer {
    pub product: ConfigProduct,
    pub version: Release,
    /// Product and version for people.
    pub title: String,
    /// Storage engine of the benchmark's tables, in small letters.
    pub engine: String,
    pub plugins: Plugins,
}

impl ConfigServer {
    /// A build that is here.
    pub fn of_base(base: &Base, engine: &str) -> Self {
        let (product, version, plugins) = match base {
            Base::Mysql(base) => {
                let product = match base.product() {
                    Product::MariaDb => ConfigProduct::MariaDb,
                    Product::MySql => ConfigProduct::MySql,
                    Product::PerconaServer => ConfigProduct::Percona,
                };
                let version = base.version();
                let numbers = Release([version.major, version.minor, version.patch]);
                (product, numbers, Plugins::In(base.plugin_dir().map(PathBuf::from)))
            }
            Base::Postgres(base) => {
                let version = Release::parse(base.version()).unwrap_or_default();
                (ConfigProduct::Postgresql, version, Plugins::In(None))
            }
        };
        Self { product, version, title: base.title(), engine: engine.to_lowercase(), plugins }
    }

    /// A server that is not here, by its name in the catalogue: `mariadb-10.11.5`, `pg-18.6`; `mysql-9-sid` is the newest of 9.
    /// `None` when the name does not say.
    pub fn named(name: &str, engine: &str) -> Option<Self> {
        let (product, rest) = name.split_once('-')?;
        let product = match product {
            "mysql" => ConfigProduct::MySql,
            "mariadb" => ConfigProduct::MariaDb,
            "percona" => ConfigProduct::Percona,
            "pg" | "postgresql" => ConfigProduct::Postgresql,
            _ => return None,
        };
        let mut version = Release::parse(rest)?;
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let said = rest[..end].split('.').count();
        version.0.iter_mut().skip(said).for_each(|number| *number = u32::MAX);
        let title = format!("{product} {}", &rest[..end]);
        Some(Self { product, version, title, engine: engine.to_lowercase(), plugins: Plugins::Unknown })
    }

    /// The embedded SQLite.
    pub fn sqlite() -> Self {
        Self {
            product: ConfigProduct::Sqlite,
            version: Release([3, 0, 0]),
            title: ConfigProduct::Sqlite.to_string(),
            engine: String::new(),
            plugins: Plugins::In(None),
        }
    }

    /// Whether `plugin` (a file name) can be loaded, as far as is known.
    pub fn has_plugin(&self, plugin: &str) -> bool {
        match &self.plugins {
            Plugins::Unknown => true,
            Plugins::In(folder) => folder.as_ref().is_some_and(|folder| folder.join(plugin).is_file()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_far_as_they_are_numbers_and_compared_as_numbers() {
        let shown = |text: &str| Release::parse(text).map(|release| release.to_string());
        for (text, wanted) in [
            ("10.11.19-MariaDB-0+deb12u1", "10.11.19"),
            ("19rc1", "19"),
            ("9.6.24", "9.6.24"),
            ("5.6", "5.6"),
            ("9.0", "9.0"),
            ("11.8-debian", "11.8"),
            ("18.6", "18.6"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(wanted), "{text}");
        }
        assert_eq!(shown("sid"), None);
        assert!(Release::parse("10.2.11") > Release::parse("10.2.4"));
    }

    #[test]
    fn names_of_the_catalogue_tell_product_and_version() {
        let server = |name: &str| ConfigServer::named(name, "innodb").map(|server| server.title);
        assert_eq!(server("mariadb-10.11.5").as_deref(), Some("MariaDB 10.11.5"));
        assert_eq!(server("pg-19-debian").as_deref(), Some("PostgreSQL 19"));
        assert_eq!(server("my-build"), None);
        let newest = ConfigServer::named("mysql-9-sid", "innodb").unwrap();
        assert!(newest.title == "MySQL 9" && newest.version > Release([9, 7, 4]), "{newest:?}");
    }
}
