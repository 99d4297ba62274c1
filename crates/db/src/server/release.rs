//! The products by name, and their versions as numbers.

use std::fmt;

use serde::{Deserialize, Deserializer, de};

use crate::Family;

/// What a product is to those who write its configuration.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProductFacts {
    /// In the data of intents.
    pub(crate) word: &'static str,
    pub(crate) name: &'static str,
    /// How the names of its servers begin, `mariadb-10.11.5`; those of catalogues first.
    pub(crate) prefixes: &'static [&'static str],
    /// The product whose options it has too, where the data have none of its own.
    pub(crate) base: Option<ConfigProduct>,
    /// How its option files begin, and each option with a value in them.
    pub(crate) file_form: (&'static str, &'static str),
}

/// A product that intents are rendered for: a constant in the folder of its family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigProduct(pub(crate) &'static ProductFacts);

impl ConfigProduct {
    /// The products that have servers.
    pub fn servers() -> impl Iterator<Item = Self> {
        Family::with_servers().flat_map(|family| family.facts().products).copied()
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

    /// Whether what is said of `self` holds for `other`: what applies to MySQL applies to
    /// Percona Server.
    pub(crate) fn covers(self, other: Self) -> bool {
        self == other || other.0.base == Some(self)
    }
}

impl fmt::Display for ConfigProduct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl<'de> Deserialize<'de> for ConfigProduct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        let product = Self::all().find(|product| product.0.word == word);
        product.ok_or_else(|| de::Error::custom(format!("{word:?} is not a product")))
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
