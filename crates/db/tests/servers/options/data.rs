//! Compares the data with the options and defaults of a server without any settings.

use dbdyno_db::server::Base;
use dbdyno_db::server::intents::{ConfigServer, checked, option_at, option_names, same_value};
use dbdyno_db::{AnySession, DatabaseAddress, DatabaseServer, Session, sqlite};
use dbdyno_products::Release;
use dbdyno_products::postgres::POSTGRESQL;
use dbdyno_products::sqlite::SQLITE;

use super::facts::{self, Values};
use crate::support::{block_on, new_folder};

/// Checks every option in the data for the product of the server `base`.
pub(crate) fn check(name: &str, base: &Base) {
    let server = ConfigServer::of_base(base, facts::engine(base));
    let running = facts::running(base, None).unwrap_or_else(|error| panic!("{name}: {error}"));
    let accepted = facts::accepted(name, base, &running);
    let wrong = differences(&server, &accepted, &running);
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
    // The list of checked versions must contain this server's version line. Only the line counts,
    // because a distribution's builds change within their line.
    let line = |release: Release| match server.product {
        POSTGRESQL => (release.0[0], 0),
        _ => (release.0[0], release.0[1]),
    };
    let known = checked(server.product).iter().filter_map(|text| Release::parse(text));
    let is_listed = known.map(line).any(|known| known == line(server.version));
    assert!(is_listed, "{name}: add {} to [checked] of the data", server.version);
}

fn differences(server: &ConfigServer, accepted: &Values, running: &Values) -> Vec<String> {
    let mut wrong = Vec::new();
    for option in option_names(server.product) {
        let known = option_at(server.product, server.version, option);
        let plugin = known.and_then(|range| range.plugin.as_deref());
        if plugin.is_some_and(|plugin| !server.has_plugin(plugin)) {
            continue;
        }
        let is_there = accepted.get(option);
        match (known, is_there) {
            (None, None) => {}
            (Some(range), Some(of_help)) => {
                let value = running.get(option).unwrap_or(of_help);
                if range.default != "auto" && !same_value(&range.default, value) {
                    wrong.push(format!("{option} is {value:?}, in the data {:?}", range.default));
                }
            }
            (Some(_), None) => wrong.push(format!("{option} does not exist, in the data it does")),
            (None, Some(value)) => {
                wrong.push(format!("{option} exists ({value:?}), in the data it does not"))
            }
        }
    }
    wrong
}

/// Checks SQLite's pragmas. A query for an unknown pragma returns no row.
pub(crate) fn check_sqlite() {
    let folder = new_folder();
    let options = sqlite::Options {
        path: folder.path().join("x.db"),
        pragmas: Vec::new(),
        busy_timeout: std::time::Duration::from_secs(1),
    };
    sqlite::create_marked(&options).unwrap();
    let database_server =
        DatabaseServer { address: DatabaseAddress::Sqlite(options), capabilities: sqlite::capabilities() };
    let mut session: AnySession = block_on(database_server.connect()).unwrap();
    for option in option_names(SQLITE) {
        let rows = block_on(session.rows(&format!("PRAGMA {option}"))).unwrap();
        let value =
            rows.into_iter().flatten().next().flatten().unwrap_or_else(|| panic!("no pragma {option}"));
        let range = option_at(SQLITE, Release([3, 0, 0]), option).unwrap();
        assert!(same_value(&range.default, &value), "{option} is {value:?}, in the data {:?}", range.default);
    }
}
