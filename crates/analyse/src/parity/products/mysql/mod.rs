//! MariaDB, MySQL and Percona Server.

mod classes;
mod option_file;
mod query_plan;

use super::UNKNOWN;
use crate::parity::settings::KNOWN;
use crate::parity::subject::{Product, Settings};
use crate::parity::value::size;

pub(super) const ALL: &[Product] = &[MARIADB, MYSQL, Product { name: "Percona Server", ..MYSQL }];

const MARIADB: Product = Product { name: "MariaDB", ..MYSQL };

fn is_mariadb(product: &Product) -> bool {
    product.name == MARIADB.name
}

const MYSQL: Product = Product {
    name: "MySQL",
    family: "mysql",
    engine: Some("innodb"),
    has_tls: true,
    zero_is_automatic: true,
    lines: option_file::lines,
    follow,
    plan_nodes: query_plan::nodes,
    classes: classes::CLASSES,
    ..UNKNOWN
};

/// A character set brings its collation, and a buffer pool is whole chunks.
fn follow(settings: &mut Settings, before: &Settings) {
    let [set, collation] = ["character_set_server", "collation_server"];
    if settings.get(set) != before.get(set) && settings.get(collation) == before.get(collation) {
        let set = settings.get(set).map(|set| set.to_ascii_lowercase()).unwrap_or_default();
        match KNOWN.collations.get(&set) {
            Some(brought) => settings.insert(collation.to_owned(), brought.clone()),
            None => settings.remove(collation),
        };
    }
    let [pool, chunk] = ["innodb_buffer_pool_size", "innodb_buffer_pool_chunk_size"];
    if let [Some(bytes), Some(chunk)] = [pool, chunk].map(|name| size(settings.get(name)?))
        && chunk > 0
        && bytes > chunk
    {
        settings.insert(pool.to_owned(), (bytes.div_ceil(chunk) * chunk).to_string());
    }
}
