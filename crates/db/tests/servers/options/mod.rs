//! Compares the data of config intents with real servers. Each option must exist in the versions
//! that the data say, with the default that the data say, and a server must run with the rendered
//! values.

mod data;
mod effect;
mod facts;

use dbdyno_db::server::find_named;

every_version!(is_as_the_data_says, check);

#[test]
fn sqlite_matches_the_data() {
    data::check_sqlite();
}

fn check(name: &str) {
    let base = find_named(name).unwrap();
    data::check(name, &base);
    effect::check(name, &base);
}
