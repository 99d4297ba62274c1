//! The server for which config intents are rendered: product, version, engine and plugins.

use std::path::PathBuf;

use crate::server::Base;
use dbdyno_products::{EMBEDDED, Product, Release};

/// What is known about a build's loadable plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plugins {
    /// The build is not installed here, so its plugins are assumed to be in it.
    Unknown,
    /// The build's plugin folder; `None` for a build without plugins.
    In(Option<PathBuf>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigServer {
    pub product: &'static Product,
    pub version: Release,
    /// Product and version for people.
    pub title: String,
    /// Storage engine of the benchmark's tables, in lower case.
    pub engine: String,
    pub plugins: Plugins,
}

impl ConfigServer {
    /// A server build that is installed here.
    pub fn of_base(base: &Base, engine: &str) -> Self {
        let plugins = Plugins::In(base.plugin_dir.clone());
        let (product, version) = (base.product, base.release);
        Self { product, version, title: base.title.clone(), engine: engine.to_lowercase(), plugins }
    }

    /// A server that is not installed here, by its name in the catalogue: `mariadb-10.11.5`,
    /// `pg-18.6`. `mysql-9-sid` stands for the newest version 9. The result is `None` when the name
    /// does not say.
    pub fn named(name: &str, engine: &str) -> Option<Self> {
        let (product, rest) = Product::of_build(name)?;
        let mut version = Release::parse(rest)?;
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let said = rest[..end].split('.').count();
        version.0.iter_mut().skip(said).for_each(|number| *number = u32::MAX);
        let title = format!("{product} {}", &rest[..end]);
        Some(Self { product, version, title, engine: engine.to_lowercase(), plugins: Plugins::Unknown })
    }

    pub fn embedded() -> Self {
        Self {
            product: EMBEDDED.products[0],
            version: Release([3, 0, 0]),
            title: EMBEDDED.products[0].to_string(),
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
