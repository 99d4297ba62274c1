//! Finds servers by name: opens the installed one, or says how to get it.

use dbdyno_db::server::{Base, list, servers_dir};

use crate::files::{Catalogue, catalogue};
use crate::{Error, suggestions};

/// Opens the base directory `name` in the servers folder.
pub fn find_named(name: &str) -> Result<Base, Error> {
    use dbdyno_db::server::Error::NotInFolder;

    dbdyno_db::server::find_named(name).map_err(|error| match error {
        NotInFolder { name, folder, .. } => {
            let help = how_to_get(&name, &list(&servers_dir()));
            Error::NotInFolder { name, folder, help }
        }
        other => other.into(),
    })
}

/// How to get the server `name`, or which names are similar.
fn how_to_get(name: &str, there: &[String]) -> String {
    // Errors in the user's own catalogue are left to the commands that are about it.
    let entries = Catalogue::read().map_or_else(|_| catalogue(), |catalogue| catalogue.entries);
    if entries.iter().any(|entry| entry.name == name) {
        return format!("`dbdyno servers get {name}` gets it, as does `dbdyno run --get`");
    }
    let known = there.iter().map(String::as_str).chain(entries.iter().map(|entry| entry.name.as_str()));
    suggestions::help(name, known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_the_catalogue_is_got_and_others_offer_what_is_near() {
        let there = ["mariadb-10.1.23", "mysql-8.0.31"].map(str::to_owned);
        insta::assert_snapshot!(how_to_get("mysql-8.0.99", &there), @"suggestions: mysql-8.0.12, mysql-8.0.15, mysql-8.0.22, mysql-8.0.31; `dbdyno servers list` shows all");
        assert_eq!(
            how_to_get("mysql-5.7.22", &there),
            "`dbdyno servers get mysql-5.7.22` gets it, as does `dbdyno run --get`"
        );
    }
}
