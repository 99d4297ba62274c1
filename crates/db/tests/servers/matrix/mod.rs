//! Tests that start every supported version with dbdyno and use its protocol.

mod client;
mod mysql;
mod postgres;

use dbdyno_db::server::find_named;

every_version!(is_spoken, check);

fn check(name: &str) {
    let base = find_named(name).unwrap();
    match base.family.name() {
        "mysql" => mysql::check(name, &base),
        _ => postgres::check(name, &base),
    }
}
