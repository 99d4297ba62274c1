//! Every version that dbdyno promises, started by it and spoken to.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

#[macro_use]
#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "shared with tests that need more of it")]
mod support;

mod client;
mod mysql;
mod postgres;

use dbdyno_provision::find_named;

every_version!(is_spoken, check);

fn check(name: &str) {
    let base = find_named(name).unwrap();
    match base.family.facts().name {
        "mysql" => mysql::check(name, &base),
        _ => postgres::check(name, &base),
    }
}
