//! Servers by name, and which names are near one that is not there.

use dbdyno_provision::{Base, list, servers_dir};
use strsim::levenshtein;

use crate::Error;
use crate::files::{Catalogue, catalogue};

/// Names that a message offers at most.
const OFFERED: usize = 4;

/// Opens the base directory `name` in the servers folder.
///
/// # Errors
/// [`Error::NotInFolder`], which lists what is there and says how to get it; those of [`Base::open`].
pub fn find_named(name: &str) -> Result<Base, Error> {
    use dbdyno_provision::Error::NotInFolder;

    dbdyno_provision::find_named(name).map_err(|error| match error {
        NotInFolder { name, folder, there } => {
            let help = how_to_get(&name, &list(&servers_dir()));
            Error::NotInFolder { name, folder, there, help }
        }
        other => other.into(),
    })
}

/// How to get the server `name`, or which names are near.
fn how_to_get(name: &str, there: &[String]) -> String {
    // The commands that are about the user's own catalogue say what is wrong with it.
    let entries = Catalogue::read().map_or_else(|_| catalogue(), |catalogue| catalogue.entries);
    if entries.iter().any(|entry| entry.name == name) {
        return format!("`dbdyno servers get {name}` gets it");
    }
    let known = there.iter().map(String::as_str).chain(entries.iter().map(|entry| entry.name.as_str()));
    help(name, known)
}

/// What to try instead of `name`, for the end of a message: the near ones among `known`, and the command that lists all.
pub(crate) fn help<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let near = nearest(name, known);
    let all = "`dbdyno servers list` shows all";
    if near.is_empty() { all.to_owned() } else { format!("near: {}; {all}", near.join(", ")) }
}

/// The known names that take the fewest edits, nearest first, alike ones sorted; none that takes more than a
/// third of its letters.
fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let name = name.to_lowercase();
    let mut near: Vec<(usize, &str)> = known
        .into_iter()
        .map(|other| (levenshtein(&name, &other.to_lowercase()), other))
        .filter(|(edits, other)| *edits <= other.chars().count() / 3)
        .collect();
    near.sort();
    near.dedup();
    let best = near.first().map_or(0, |(edits, _)| *edits);
    // What is much further away than the best is not meant.
    near.into_iter().filter(|(edits, _)| *edits <= best + 1).map(|(_, other)| other).take(OFFERED).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_the_catalogue_is_got_and_others_offer_what_is_near() {
        let there = ["mariadb-10.1.23", "mysql-8.0.31"].map(str::to_owned);
        insta::assert_snapshot!(how_to_get("mysql-8.0.99", &there), @"near: mysql-8.0.12, mysql-8.0.15, mysql-8.0.31, mysql-8.0.33; `dbdyno servers list` shows all");
        assert_eq!(how_to_get("mysql-5.7.22", &there), "`dbdyno servers get mysql-5.7.22` gets it");
    }

    #[test]
    fn the_nearest_names_come_first_and_far_ones_not_at_all() {
        let known = ["mysql-5.5.9", "mysql-8.0.31", "mysql-8.0.33", "mariadb-10.11.5", "pg-18.6"];
        assert_eq!(nearest("mysql-8.0.32", known), ["mysql-8.0.31", "mysql-8.0.33"]);
        assert_eq!(nearest("PG-18.6", known), ["pg-18.6"]);
        assert_eq!(nearest("oracle-23", known), [""; 0]);
        assert_eq!(help("oracle-23", known), "`dbdyno servers list` shows all");
    }
}
