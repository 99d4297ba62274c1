//! Turns the messages of the TOML and serde crates into sentences for people who write plans, and
//! writes counts as people read them.

use std::fmt::Display;

use strsim::levenshtein;

use crate::Kinds;

/// Rewrites one message. It returns an unknown message unchanged.
pub(crate) fn explain(message: &str, kinds: Kinds<'_>) -> String {
    let words = quoted(message);
    if message.starts_with("unknown field") {
        let (key, known) = split(&words);
        return unknown_key(key, known);
    }
    if message.starts_with("unknown variant") {
        let (value, known) = split(&words);
        return format!(
            "`{value}` is not a value of this key{}; it takes {}",
            hint(value, known),
            list(known)
        );
    }
    if message.starts_with("missing field") {
        let key = split(&words).0;
        return format!("the key `{key}` is missing{}", missing_help(key, kinds));
    }
    let Some(rest) =
        message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "))
    else {
        return message.replace('\n', " ");
    };
    match rest.rsplit_once(", expected ") {
        Some((found, expected)) => format!("found {} where {} is wanted", found, wanted(expected)),
        None => rest.to_owned(),
    }
}

pub(crate) fn unknown_key(key: &str, known: &[&str]) -> String {
    match closest(key, known) {
        Some(suggestion) => format!("unknown key `{key}` (did you mean `{suggestion}`?)"),
        None => format!("unknown key `{key}`; known keys here: {}", list(known)),
    }
}

/// Returns the texts between backquotes.
fn quoted(message: &str) -> Vec<&str> {
    message.split('`').skip(1).step_by(2).collect()
}

fn split<'a, 'b>(words: &'b [&'a str]) -> (&'a str, &'b [&'a str]) {
    words.split_first().map_or(("", words), |(first, rest)| (*first, rest))
}

/// Lists each known word once. A second spelling of a word is accepted, but not offered.
fn list(known: &[&str]) -> String {
    let plain = |text: &str| text.replace(['-', '_'], "");
    let is_first = |(at, name): &(usize, &&str)| known[..*at].iter().all(|other| plain(other) != plain(name));
    known.iter().enumerate().filter(is_first).map(|(_, name)| *name).collect::<Vec<_>>().join(", ")
}

/// Names a number or a table for people who do not know Rust's types.
fn wanted(expected: &str) -> String {
    match expected {
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u64" => "a whole number of 0 or more".to_owned(),
        "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list such as [100, 500]".to_owned(),
        "a map" => "a table".to_owned(),
        "a string" | "path string" => "a text in quotes".to_owned(),
        _ if expected.starts_with("struct ") => "a table".to_owned(),
        _ => expected.to_owned(),
    }
}

fn missing_help(key: &str, kinds: Kinds<'_>) -> String {
    match (key, kinds.first()) {
        ("name", _) => ": every plan has a name, e.g. name = \"first-try\"".to_owned(),
        ("variant", _) => ": a plan compares [[variant]] tables, at least one".to_owned(),
        ("workload", Some(kind)) => format!(": add what to run, e.g. [workload.{}]", kind.name()),
        _ => String::new(),
    }
}

/// Returns ` (did you mean ...?)` when a known word is similar.
pub(crate) fn hint(word: &str, known: &[&str]) -> String {
    closest(word, known).map(|suggestion| format!(" (did you mean `{suggestion}`?)")).unwrap_or_default()
}

/// Words that other tools use, each with dbdyno's words for the same.
const OTHERS: [(&str, [&str; 2]); 4] = [
    ("threads", ["connections", "clients"]),
    ("connections", ["clients", "connections"]),
    ("clients", ["connections", "clients"]),
    ("duration", ["time", "read_write_time"]),
];

/// Returns the known word that is meant. This is dbdyno's word for the other tool's `word`, or
/// `word` itself without the prefix `oltp_`. Otherwise it is the known word that takes the fewest
/// edits, if these are at most a third of its letters, or a known word that begins with `word`.
pub fn closest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let find = |wanted: &str| known.iter().copied().find(|name| plain(name) == wanted);
    let whole = plain(word);
    let word = whole.strip_prefix("oltp_").unwrap_or(&whole);
    let of_others = OTHERS.iter().find(|(other, _)| *other == word);
    let same = of_others.and_then(|(_, ours)| ours.iter().find_map(|ours| find(ours)));
    if let Some(found) = same.or_else(|| find(word)) {
        return Some(found);
    }
    let begins = |name: &&&str| word.len() >= 4 && plain(name).starts_with(word);
    let edits = |name: &str| levenshtein(word, name).min(levenshtein(&whole, name));
    known
        .iter()
        .map(|name| (edits(&plain(name)), *name))
        .filter(|(edits, name)| *edits <= name.chars().count().max(3) / 3)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, name)| name)
        .or_else(|| known.iter().find(begins).copied())
}

/// Writes 1234567 as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).expect("decimal digits are ASCII"))
        .collect();
    groups.join(",")
}

/// Writes `1 check` and `3 checks`. It fits nouns that take an s.
pub fn numbered<N: Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let plural = if number == N::from(1) { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_word_is_offered_and_a_far_one_is_not() {
        assert_eq!(closest("client", &["blocks", "clients"]), Some("clients"));
        assert_eq!(closest("read-write-time", &["read_write_time"]), Some("read_write_time"));
        assert_eq!(closest("password", &["password_env", "option_file"]), Some("password_env"));
        assert_eq!(closest("oltp-conections", &["oltp-2012", "oltp-connections"]), Some("oltp-connections"));
        assert_eq!(closest("thread", &["blocks", "clients"]), None);
    }

    #[test]
    fn words_of_other_tools_get_the_word_that_is_meant() {
        assert_eq!(closest("threads", &["blocks", "clients"]), Some("clients"));
        assert_eq!(closest("threads", &["tests", "connections"]), Some("connections"));
        assert_eq!(closest("oltp_read_write", &["read-only", "read-write"]), Some("read-write"));
        assert_eq!(
            closest("oltp_update_non_index", &["update-index", "update-non-index"]),
            Some("update-non-index")
        );
    }

    #[test]
    fn an_unknown_message_stays_unchanged() {
        assert_eq!(explain("something\nelse", &[]), "something else");
    }

    #[test]
    fn digits_are_grouped_by_three_and_only_one_is_singular() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped).join(" "), "0 999 1,000 1,234,567");
        assert_eq!([0, 1, 2].map(|number| numbered(number, "check")), ["0 checks", "1 check", "2 checks"]);
    }
}
