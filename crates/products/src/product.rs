//! A database product, identified by its names, and its versions as numbers.

use std::fmt;

use serde::{Deserialize, Deserializer, de};

use crate::{ALL, FamilyFacts};

/// A product, which is a constant in its family's folder.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Product {
    /// The product's word in the intent data.
    pub word: &'static str,
    /// The name that servers and records use. It is empty for an unknown product.
    pub name: &'static str,
    /// Prefixes for its servers' names, as in `mariadb-10.11.5`. The prefix in the catalogues comes
    /// first.
    pub prefixes: &'static [&'static str],
    /// The product whose options apply where the intent data have none for this product.
    pub base: Option<&'static Product>,
}

impl Product {
    /// A server that gives programmed answers, or about which nothing is known.
    pub const UNKNOWN: &'static Self = &Self { word: "", name: "", prefixes: &[], base: None };

    pub fn is_known(&self) -> bool {
        !self.name.is_empty()
    }

    pub fn family(&self) -> &'static FamilyFacts {
        ALL.iter().find(|family| family.products.contains(&self)).copied().unwrap_or(FamilyFacts::UNKNOWN)
    }

    /// Whether facts about `self` also apply to `other`. Facts about MySQL also apply to Percona
    /// Server.
    pub fn covers(&self, other: &Self) -> bool {
        self == other || other.base == Some(self)
    }

    /// All products, in the order of tables.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        ALL.iter().flat_map(|family| family.products).copied()
    }

    /// The products that have servers.
    pub fn servers() -> impl Iterator<Item = &'static Self> {
        ALL.iter().filter(|family| !family.is_embedded()).flat_map(|family| family.products).copied()
    }

    /// The product with this name, in the servers' spelling.
    pub fn named(name: &str) -> &'static Self {
        Self::all().find(|product| product.name == name).unwrap_or(Self::UNKNOWN)
    }

    /// A server's product and version from its build's name: `mariadb-10.11.5`.
    pub fn of_build(name: &str) -> Option<(&'static Self, &str)> {
        let (word, version) = name.split_once('-')?;
        let product = Self::servers().find(|product| product.prefixes.contains(&word))?;
        version.starts_with(|c: char| c.is_ascii_digit()).then_some((product, version))
    }

    /// The catalogues' name for the build `name`: `pg-18` for `postgresql-18`.
    pub fn name_in_catalogues(name: &str) -> Option<String> {
        let (product, version) = Self::of_build(name)?;
        Some(format!("{}-{version}", product.prefixes.first()?))
    }
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Reads a product from its word.
impl<'de> Deserialize<'de> for &'static Product {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        let product = Product::all().find(|product| product.word == word);
        product.ok_or_else(|| de::Error::custom(format!("{word:?} is not a product")))
    }
}

/// A version as three numbers, where a missing number is 0: 10.11.5, 8.4.0, 18.0.0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release(pub [u32; 3]);

impl Release {
    /// Reads the numbers at the start of `text`: `10.11.19-MariaDB`, `19rc1`, `5.6`. The result is
    /// `None` if there is no number.
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

/// Writes the version without zeros at the end beyond the second number: `8.4`, `8.0.30`, `18`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_build_says_product_and_version() {
        let of = |name| Product::of_build(name).map(|(product, version)| (product.name, version));
        assert_eq!(of("mariadb-10.11.5"), Some(("MariaDB", "10.11.5")));
        assert_eq!(of("postgresql-18"), Some(("PostgreSQL", "18")));
        assert_eq!([of("mariadb"), of("mariadb-nightly"), of("sqlite-3")], [None; 3]);
        assert_eq!(Product::name_in_catalogues("postgresql-18").as_deref(), Some("pg-18"));
    }

    #[test]
    fn every_product_belongs_to_one_family_and_is_found_by_its_names() {
        for product in Product::all() {
            assert!(product.family().products.contains(&product), "{product}");
            assert_eq!(Product::named(product.name), product);
            for prefix in product.prefixes {
                assert_eq!(Product::of_build(&format!("{prefix}-1")), Some((product, "1")));
            }
        }
        assert_eq!((Product::named("Oracle"), Product::UNKNOWN.family().name), (Product::UNKNOWN, ""));
    }
}
