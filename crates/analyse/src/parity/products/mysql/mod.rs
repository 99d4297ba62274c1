//! MariaDB, MySQL and Percona Server.

mod classes;
mod follow;
mod option_file;
mod query_plan;

use super::UNKNOWN;
use crate::parity::subject::Product;

pub(super) const ALL: &[Product] = &[MARIADB, MYSQL, Product { name: "Percona Server", ..MYSQL }];

const MARIADB: Product = Product { name: "MariaDB", defaults: "MariaDB", ..MYSQL };

fn is_mariadb(product: &Product) -> bool {
    product.name == MARIADB.name
}

/// As far as classes look, Percona Server has its defaults too.
const MYSQL: Product = Product {
    name: "MySQL",
    family: "mysql",
    defaults: "MySQL",
    engine: Some("innodb"),
    has_tls: true,
    zero_is_automatic: true,
    lines: option_file::lines,
    follow: follow::follow,
    plan_nodes: query_plan::nodes,
    classes: classes::CLASSES,
    ..UNKNOWN
};
