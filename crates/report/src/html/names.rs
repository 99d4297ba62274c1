//! Names cut to the room next to a chart, so that they still differ.

use std::collections::HashSet;

/// The names cut to so many characters, in their order: at the end; where two would be the same then, in the middle; where they
/// still would, after what all have in common.
pub(super) fn shortened<'a>(names: impl IntoIterator<Item = &'a str>, limit: usize) -> Vec<String> {
    let names: Vec<&str> = names.into_iter().collect();
    let common = common_start(&names);
    let at_end: Vec<String> = names.iter().map(|name| cut_at_end(name, limit)).collect();
    let in_middle = || names.iter().map(|name| cut_in_middle(name, limit)).collect();
    let behind_common = || names.iter().map(|name| cut_before(name, common, limit)).collect();
    let wanted = differing(&names);
    let ways = [at_end.clone(), in_middle(), behind_common()];
    ways.into_iter().find(|cut: &Vec<String>| differing(cut) == wanted).unwrap_or(at_end)
}

fn differing<T: AsRef<str>>(names: &[T]) -> usize {
    names.iter().map(AsRef::as_ref).collect::<HashSet<&str>>().len()
}

fn cut_at_end(name: &str, limit: usize) -> String {
    if name.chars().count() <= limit {
        name.to_owned()
    } else {
        name.chars().take(limit - 1).chain(['…']).collect()
    }
}

fn cut_in_middle(name: &str, limit: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= limit {
        return name.to_owned();
    }
    let (first, last) = (limit / 2, (limit - 1) / 2);
    letters[..first].iter().chain(&['…']).chain(&letters[letters.len() - last..]).collect()
}

/// Without its first `common` characters if it is too long.
fn cut_before(name: &str, common: usize, limit: usize) -> String {
    if name.chars().count() <= limit || common == 0 {
        return cut_at_end(name, limit);
    }
    let rest: String = ['…'].into_iter().chain(name.chars().skip(common)).collect();
    cut_at_end(&rest, limit)
}

/// How many characters all differing names begin with alike.
fn common_start(names: &[&str]) -> usize {
    let Some(first) = names.first() else { return 0 };
    let alike = |name: &&str| first.chars().zip(name.chars()).take_while(|(a, b)| a == b).count();
    names.iter().filter(|name| *name != first).map(alike).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_stay_and_long_ones_lose_their_end() {
        assert_eq!(shortened(["wal", "a-very-long-name"], 8), ["wal", "a-very-…"]);
    }

    #[test]
    fn names_that_differ_at_their_ends_are_cut_in_the_middle() {
        let names = ["rollback-journal-default", "rollback-journal-persist", "wal"];
        assert_eq!(shortened(names, 16), ["rollback…default", "rollback…persist", "wal"]);
    }

    #[test]
    fn names_that_differ_in_the_middle_lose_what_they_begin_with_alike() {
        let names = ["mariadb-innodb-10.11.5-compressed-small", "mariadb-innodb-10.11.6-compressed-small"];
        assert_eq!(shortened(names, 16), ["…5-compressed-s…", "…6-compressed-s…"]);
    }

    #[test]
    fn the_same_name_twice_is_no_reason_to_cut_it_elsewhere() {
        assert_eq!(shortened(["a-very-long-name"; 2], 8), ["a-very-…"; 2]);
    }
}
