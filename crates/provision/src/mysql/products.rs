//! The products of the family.

use crate::release::{ConfigProduct, ProductFacts};

/// What all of them say alike.
const OF_FAMILY: ProductFacts =
    ProductFacts { word: "", name: "", prefixes: &[], base: None, file_form: ("[mysqld]\n", "") };

impl ConfigProduct {
    pub const MYSQL: Self =
        Self(&ProductFacts { word: "mysql", name: "MySQL", prefixes: &["mysql"], ..OF_FAMILY });
    pub const PERCONA: Self = Self(&ProductFacts {
        word: "percona",
        name: "Percona Server",
        prefixes: &["percona"],
        base: Some(Self::MYSQL),
        ..OF_FAMILY
    });
    pub const MARIADB: Self =
        Self(&ProductFacts { word: "mariadb", name: "MariaDB", prefixes: &["mariadb"], ..OF_FAMILY });
}

pub(super) const ALL: &[ConfigProduct] =
    &[ConfigProduct::MYSQL, ConfigProduct::PERCONA, ConfigProduct::MARIADB];
