//! The products by name, and their versions as numbers.

use std::fmt;

use serde::{Deserialize, Deserializer, de};

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

    pub const EMBEDDED: Self = Self::Sqlite;

    /// Name, and how the names of its servers begin, `mariadb-10.11.5`; those of catalogues first.
    fn names(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::MySql => ("MySQL", &["mysql"]),
            Self::MariaDb => ("MariaDB", &["mariadb"]),
            Self::Percona => ("Percona Server", &["percona"]),
            Self::Postgresql => ("PostgreSQL", &["pg", "postgresql", "postgres", "pgsql"]),
            Self::Sqlite => ("SQLite", &[]),
        }
    }

    /// The product whose options it has too, where the data have none of its own.
    pub(crate) fn base(self) -> Option<Self> {
        (self == Self::Percona).then_some(Self::MySql)
    }

    /// How its option files begin, and each option with a value in them.
    pub(crate) fn file_form(self) -> (&'static str, &'static str) {
        match self {
            Self::MySql | Self::MariaDb | Self::Percona => ("[mysqld]\n", ""),
            Self::Postgresql => ("", ""),
            Self::Sqlite => ("", "PRAGMA "),
        }
    }

    /// Product and version of a server by its name: `mariadb-10.11.5`.
    pub fn named(name: &str) -> Option<(Self, &str)> {
        let (word, version) = name.split_once('-')?;
        let product = Self::ALL.into_iter().find(|product| product.names().1.contains(&word))?;
        version.starts_with(|c: char| c.is_ascii_digit()).then_some((product, version))
    }

    /// The name that catalogues have for the server `name`: `pg-18` for `postgresql-18`.
    pub fn name_in_catalogues(name: &str) -> Option<String> {
        let (product, version) = Self::named(name)?;
        Some(format!("{}-{version}", product.names().1.first()?))
    }

    /// The products that have servers.
    pub fn servers() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|product| !product.names().1.is_empty())
    }

    /// Whether what is said of `self` holds for `other`: what applies to MySQL applies to
    /// Percona Server.
    pub(crate) fn covers(self, other: Self) -> bool {
        self == other || other.base() == Some(self)
    }
}

impl fmt::Display for ConfigProduct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.names().0)
    }
}

/// A version as three numbers, absent ones 0: 10.11.5, 8.4.0, 18.0.0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release(pub [u32; 3]);

impl Release {
    /// Reads the numbers that `text` begins with: `10.11.19-MariaDB`, `19rc1`, `5.6`. `None`
    /// without any.
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

    /// Whether this version is `major.minor` or later.
    pub fn at_least(self, major: u32, minor: u32) -> bool {
        self >= Self([major, minor, 0])
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
