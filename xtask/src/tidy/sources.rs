//! Source files: each begins with its one job, is short, has comments of readable width, and only
//! two of them print.

use super::{Repository, assert_none};

/// Lines of product code in a source file, its inline tests not counted; also of a file that holds
/// only tests.
const MAX_LINES: usize = 600;

/// Where the commands speak.
const PRINTING: &[&str] = &["crates/cli/src/terminal.rs", "xtask/src/terminal.rs"];

fn without_job(repository: &Repository) -> Vec<String> {
    let without = repository.texts(".rs").filter(|(_, text)| !text.starts_with("//! "));
    without
        .map(|(path, _)| format!("{path}: does not begin with a `//!` line that says its one job"))
        .collect()
}

fn too_long(repository: &Repository) -> Vec<String> {
    let lengths = repository.texts(".rs").map(|(path, text)| (path, product_lines(text)));
    let long = lengths.filter(|(_, lines)| *lines > MAX_LINES);
    long.map(|(path, lines)| format!("{path}: {lines} lines; at most {MAX_LINES}")).collect()
}

/// Lines before the inline tests, which come last.
fn product_lines(text: &str) -> usize {
    text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default().lines().count()
}

/// Lines that hold only a comment are prose, which is read in lines of at most so many characters.
/// Rows of tables cannot be broken.
fn wide_comments(repository: &Repository) -> Vec<String> {
    const WIDTH: usize = 100;
    let is_prose = |text: &str| !text.trim_start_matches(['/', '!', ' ']).starts_with('|');
    let is_wide = |line: &str| {
        line.trim_start().strip_prefix("//").is_some_and(is_prose) && line.chars().count() > WIDTH
    };
    let wide = repository.lines(|path| path.ends_with(".rs")).filter(|(_, line)| is_wide(line));
    wide.map(|(place, _)| format!("{place}: a comment beyond {WIDTH} columns")).collect()
}

/// clippy holds that nothing prints, except where it is asked to look away.
fn printing(repository: &Repository) -> Vec<String> {
    let lint = concat!("clippy::", "print_");
    let others =
        repository.texts(".rs").filter(|(path, text)| text.contains(lint) && !PRINTING.contains(path));
    others
        .map(|(path, _)| format!("{path}: turns off a lint against printing; only these print: {PRINTING:?}"))
        .collect()
}

#[test]
fn every_source_file_begins_with_its_job_is_short_and_readable_and_does_not_print() {
    let repository = Repository::load();
    assert_none(&without_job(&repository));
    assert_none(&too_long(&repository));
    assert_none(&wide_comments(&repository));
    assert_none(&printing(&repository));
}

#[test]
fn a_file_without_a_job_a_long_one_a_wide_comment_and_one_that_prints_are_found() {
    let short = format!("{}#[cfg(test)]\nmod tests {{}}\n", "//! x\n".repeat(600));
    let long = "//! x\n".repeat(601);
    let wide =
        format!("//! x\n    // {0}é\nlet x = \"{1}\";\n//! | {1} |\n", "y".repeat(92), "z".repeat(100));
    let wider = wide.replace("// y", "// yy");
    let print = concat!("#![allow(clippy::", "print_stdout)]\n");
    let repository = Repository::of(&[
        ("a/src/short.rs", short.as_str()),
        ("a/src/long.rs", long.as_str()),
        ("a/src/loud.rs", print),
        ("a/src/wide.rs", wide.as_str()),
        ("a/src/wider.rs", wider.as_str()),
        ("crates/cli/src/terminal.rs", print),
    ]);
    assert_eq!(too_long(&repository), ["a/src/long.rs: 601 lines; at most 600"]);
    assert_eq!(without_job(&repository).len(), 2);
    assert_eq!(wide_comments(&repository), ["a/src/wider.rs:2: a comment beyond 100 columns"]);
    assert!(printing(&repository)[0].starts_with("a/src/loud.rs: "));
    assert_eq!(printing(&repository).len(), 1);
}
