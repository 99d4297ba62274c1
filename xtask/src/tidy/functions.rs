//! Functions of product code are short.

use super::{Repository, assert_none, is_product};

const MAX_LINES: usize = 70;

/// What follows it is no product code.
const TESTS: &str = "\n#[cfg(test)]\nmod tests {";

/// Functions that are longer, as file and name, each with its reason.
const LONG: &[(&str, &str, &str)] = &[(
    "crates/report/src/notices.rs",
    "row",
    "a table: the words of each warning, and the compiler sees that none is missing",
)];

/// Name and number of lines of each function in `text`, which is formatted: a function ends at the
/// first line that is a closing brace in its own column. A raw string with such a line would only
/// make it shorter.
fn lengths(text: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let is_end = |line: &&str| {
            let rest = line.strip_prefix(indent).unwrap_or(" ");
            // The second is a declaration without a body.
            rest == "}" || (rest.ends_with(';') && !rest.starts_with([' ', '#', '/']))
        };
        let is_whole = line.ends_with('}') || line.ends_with(';');
        let more = lines[at..].iter().skip(1).position(is_end).map_or(0, |ahead| ahead + 1);
        found.push((name, if is_whole { 1 } else { 1 + more }));
    }
    found
}

fn function_name(line: &str) -> Option<&str> {
    let mut words = line.trim_start().split(' ');
    let is_qualifier = |word: &str| {
        matches!(word, "pub" | "const" | "async" | "unsafe" | "extern" | "super)" | "crate)")
            || word.starts_with("pub(")
            || word.starts_with('"')
    };
    let first = words.find(|word| !is_qualifier(word))?;
    let name = words.next().filter(|_| first == "fn")?;
    name.split(['(', '<']).next()
}

fn complaints(repository: &Repository, allowed: &[(&str, &str, &str)]) -> Vec<String> {
    let product = repository.texts(".rs").filter(|(path, _)| is_product(path) || path.starts_with("xtask/"));
    let functions: Vec<(&str, &str, usize)> = product
        .map(|(path, text)| (path, text.split(TESTS).next().unwrap_or_default()))
        .flat_map(|(path, text)| lengths(text).into_iter().map(move |(name, lines)| (path, name, lines)))
        .collect();
    let long = functions.iter().filter(|(_, _, lines)| *lines > MAX_LINES);
    let long: Vec<_> = long.collect();
    let is_allowed = |path: &str, name: &str| allowed.iter().any(|(p, n, _)| *p == path && *n == name);
    let mut complaints: Vec<String> = long
        .iter()
        .filter(|(path, name, _)| !is_allowed(path, name))
        .map(|(path, name, lines)| format!("{path}: fn {name} has {lines} lines; at most {MAX_LINES}"))
        .collect();
    let stale = allowed.iter().filter(|(path, name, _)| !long.iter().any(|(p, n, _)| p == path && n == name));
    complaints.extend(stale.map(|(path, name, _)| format!("{path}: fn {name} needs no entry in LONG")));
    complaints
}

#[test]
fn every_function_is_short() {
    assert_none(&complaints(&Repository::load(), LONG));
}

#[test]
fn lengths_are_counted_to_the_closing_brace() {
    let text = "\
impl A {
    pub(crate) async fn one(&self) -> bool { true }

    fn declared(
        a: u32,
    ) -> u32;

    pub const fn three<T>(
        a: T,
    ) -> T {
        loop {
            a;
        }
    }
}

let fn_pointer: fn() = x;
// a fn in words
fn last() {
}
";
    assert_eq!(lengths(text), [("one", 1), ("declared", 3), ("three", 7), ("last", 2)]);
}

#[test]
fn a_long_function_is_found_and_a_stale_exception_too() {
    let long = format!("fn long() {{\n{}}}\n", "    x;\n".repeat(69));
    let tests = format!("fn short() {{\n}}\n#[cfg(test)]\nmod tests {{\n{long}}}\n");
    let repository = Repository::of(&[
        ("crates/a/src/a.rs", long.as_str()),
        ("crates/a/src/b.rs", tests.as_str()),
        ("crates/a/tests/c.rs", long.as_str()),
    ]);
    assert_eq!(complaints(&repository, &[]), ["crates/a/src/a.rs: fn long has 71 lines; at most 70"]);
    let allowed = [("crates/a/src/a.rs", "long", "why"), ("crates/a/src/b.rs", "short", "stale")];
    assert_eq!(complaints(&repository, &allowed), ["crates/a/src/b.rs: fn short needs no entry in LONG"]);
}
