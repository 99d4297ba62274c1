//! The data of config intents held against real servers: each option exists in the versions that
//! the data says, with the default that it says, and what intents are rendered to is what a server
//! then has.

mod data;
mod effect;
mod facts;

use dbdyno_db::server::find_named;

every_version!(is_as_the_data_says, check);

#[test]
fn sqlite_is_as_the_data_says() {
    data::check_sqlite();
}

fn check(name: &str) {
    let base = find_named(name).unwrap();
    data::check(name, &base);
    effect::check(name, &base);
}
