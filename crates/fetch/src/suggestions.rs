//! Suggests names that look like the one that the user has typed.

use dbdyno_products::Product;
use strsim::levenshtein;

/// Highest number of names that a message suggests.
const OFFERED: usize = 4;

/// What to try instead of `name`, for the end of a message: similar names among `known`, and the
/// command that lists all.
pub(crate) fn help<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let suggestions = nearest(name, known);
    let all = "`dbdyno servers list` shows all";
    if suggestions.is_empty() {
        all.to_owned()
    } else {
        format!("suggestions: {}; {all}", suggestions.join(", "))
    }
}

/// The known names for the version that is meant, newest first. If there are none, these are the
/// names that need the fewest edits, closest first and sorted when equal. None needs more edits
/// than a third of its letters.
fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let known: Vec<&str> = known.into_iter().collect();
    let name = name.to_lowercase();
    let name = Product::name_in_catalogues(&name).unwrap_or(name);
    let is_of_version = |other: &&str| match other.strip_prefix(&name) {
        Some(rest) => rest.is_empty() || rest.starts_with(['.', '-']),
        None => false,
    };
    let mut of_version: Vec<&str> = known.iter().copied().filter(is_of_version).collect();
    if !of_version.is_empty() {
        let numbers = |name: &str| -> Vec<u32> {
            name.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
        };
        of_version.sort_by_key(|name| std::cmp::Reverse(numbers(name)));
        of_version.dedup();
        of_version.truncate(OFFERED);
        return of_version;
    }
    let mut suggestions: Vec<(usize, &str)> = known
        .into_iter()
        .map(|other| (levenshtein(&name, &other.to_lowercase()), other))
        .filter(|(edits, other)| *edits <= other.chars().count() / 3)
        .collect();
    suggestions.sort();
    suggestions.dedup();
    let best = suggestions.first().map_or(0, |(edits, _)| *edits);
    // Names with many more edits than the best one are not meant.
    suggestions
        .into_iter()
        .filter(|(edits, _)| *edits <= best + 1)
        .map(|(_, other)| other)
        .take(OFFERED)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_come_first_and_far_ones_not_at_all() {
        let known = ["mysql-5.5.9", "mysql-8.0.31", "mysql-8.0.33", "mariadb-10.11.5", "pg-18.6"];
        assert_eq!(nearest("mysql-8.0.32", known), ["mysql-8.0.31", "mysql-8.0.33"]);
        assert_eq!(nearest("PG-18.6", known), ["pg-18.6"]);
        assert_eq!(nearest("oracle-23", known), [""; 0]);
        assert_eq!(nearest("postgres-18", known), ["pg-18.6"]);
        assert_eq!(nearest("PostgreSQL-18.6", known), ["pg-18.6"]);
        assert_eq!(nearest("mysql-8", known), ["mysql-8.0.33", "mysql-8.0.31"]);
        assert_eq!(nearest("mysql-8.0", known), ["mysql-8.0.33", "mysql-8.0.31"]);
        assert_eq!(help("oracle-23", known), "`dbdyno servers list` shows all");
    }
}
