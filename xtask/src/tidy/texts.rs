//! All files: no machine's paths, no words of unfinished work, no registry's host, no blanks at
//! line ends, no big files.

use super::{Repository, assert_none};

const MAX_BYTES: u64 = 1 << 20;
/// Pages of real runs, as users publish them. Each holds the script that draws its charts.
const PAGES: [&str; 2] = ["docs/demo/", "docs/reports/"];
const MAX_PAGE_BYTES: u64 = 4 << 20;

/// Words that must not be in any file, each with the reason. They are cut in two, so that this file
/// may hold them.
const BANNED: &[(&str, &str)] = &[
    (concat!("TO", "DO"), "finish it, or open an issue"),
    (concat!("FIX", "ME"), "finish it, or open an issue"),
    (concat!("XX", "X"), "finish it, or open an issue"),
    (concat!("dbg", "!("), "left over from looking for a fault"),
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("/sr", "v/"), "a path of one machine"),
    (concat!("/ro", "ot/"), "a path of one machine"),
    (concat!("registry.npm", "js"), "clients know their registry"),
    (concat!("repo.maven", ".apache"), "clients know their registry"),
    (concat!("repo1.maven", ".org"), "clients know their registry"),
    (concat!("static.crates", ".io"), "clients know their registry"),
    (concat!("index.crates", ".io"), "clients know their registry"),
    (concat!("deb.debian", ".org"), "clients know their registry"),
];

/// Words that make a reader stop, in what users read, each with better ones. One may be shown as
/// code: `nobody`.
const UNCLEAR: &[(&str, &str)] = &[
    ("told", "configured, set, reported"),
    ("tells", "reports, shows"),
    ("beside", "next to, during, in addition to"),
    ("somebody", "others, an external server"),
    ("nobody", "no one, or leave it out"),
    ("whoever", "the client, the user"),
    ("likewise", "and"),
];

/// Documents, plans, catalogues of texts, and what commands print as tests have recorded it.
const READ_BY_USERS: &[&str] = &[".md", ".toml", ".snap"];

/// Written by tools, and shown as they wrote it.
const GENERATED: &[&str] =
    &["Cargo.lock", "crates/report/page/package-lock.json", "crates/report/page/page.js"];

/// The only files that are run as they are.
const EXECUTABLE: &[&str] = &[".ci/run"];

fn banned(repository: &Repository) -> Vec<String> {
    let mut complaints = Vec::new();
    for (place, line) in repository.lines(|path| !GENERATED.contains(&path)) {
        let found = BANNED.iter().filter(|(word, _)| line.contains(word));
        complaints.extend(found.map(|(word, why)| format!("{place}: {word}: {why}")));
    }
    complaints
}

fn unclear(repository: &Repository) -> Vec<String> {
    let mut complaints = Vec::new();
    for (place, line) in repository.lines(|path| READ_BY_USERS.iter().any(|ending| path.ends_with(ending))) {
        let words: Vec<&str> =
            line.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '`')).collect();
        let found = UNCLEAR.iter().filter(|(word, _)| words.contains(word));
        complaints.extend(found.map(|(word, better)| format!("{place}: {word}: say {better}")));
    }
    complaints
}

fn untidy(repository: &Repository) -> Vec<String> {
    let is_ours = |path: &str| !is_recorded(path) && !GENERATED.contains(&path) && !is_page(path);
    let mut complaints = Vec::new();
    for (place, line) in repository.lines(is_ours) {
        if line.ends_with([' ', '\t', '\r']) {
            complaints.push(format!("{place}: a blank at the end of the line"));
        }
        if line.contains('\t') {
            complaints.push(format!("{place}: a tab"));
        }
    }
    for (path, text) in repository.texts("").filter(|(path, _)| is_ours(path)) {
        if !text.is_empty() && (!text.ends_with('\n') || text.ends_with("\n\n")) {
            complaints.push(format!("{path}: does not end in one line end"));
        }
    }
    complaints
}

/// A page of a run, with the bundled script.
fn is_page(path: &str) -> bool {
    path.ends_with(".html") && PAGES.iter().any(|folder| path.starts_with(folder))
}

/// What kernels and programs have said is kept as they said it.
fn is_recorded(path: &str) -> bool {
    path.contains("/tests/proc/") || path.ends_with(".snap")
}

/// Files that should not be there, or not so.
fn misplaced(repository: &Repository) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in &repository.files {
        let (path, mut complain) =
            (&file.path, |what: &str| complaints.push(format!("{}: {what}", file.path)));
        if file.size > if is_page(path) { MAX_PAGE_BYTES } else { MAX_BYTES } {
            complain("is too large");
        }
        if file.is_executable != EXECUTABLE.contains(&path.as_str()) {
            complain("is executable and should not be, or the other way round");
        }
        if [".orig", ".rej", ".bak"].iter().any(|ending| path.ends_with(ending)) {
            complain("was left by a tool");
        }
    }
    complaints
}

#[test]
fn no_file_has_what_no_file_should_have() {
    let repository = Repository::load();
    assert_none(&banned(&repository));
    assert_none(&unclear(&repository));
    assert_none(&untidy(&repository));
    assert_none(&misplaced(&repository));
}

#[test]
fn the_changelog_has_a_place_for_what_comes_next() {
    assert!(Repository::load().text("CHANGELOG.md").contains("\n## Unreleased\n"));
}

#[test]
fn every_banned_word_is_found_with_its_line() {
    for (word, why) in BANNED {
        let text = format!("fine\nnot {word} fine\n");
        assert_eq!(banned(&Repository::of(&[("a.md", &text)])), [format!("a.md:2: {word}: {why}")]);
        assert!(banned(&Repository::of(&[("Cargo.lock", &text)])).is_empty());
    }
}

#[test]
fn unclear_words_are_found_where_users_read_them() {
    for (word, better) in UNCLEAR {
        let text = format!("fine\nit is {word}.\n`{word}` {word}-x\n");
        let found = unclear(&Repository::of(&[("a.md", &text), ("b.rs", &text)]));
        assert_eq!(found, [format!("a.md:2: {word}: say {better}")]);
    }
}

#[test]
fn blanks_tabs_and_missing_line_ends_are_found() {
    let found = untidy(&Repository::of(&[
        ("a", "x \ny\tz\n"),
        ("b", "x"),
        ("c", "x\n\n"),
        ("d", ""),
        ("e.snap", "x \n"),
    ]));
    insta::assert_snapshot!(found.join("\n"), @r"
    a:1: a blank at the end of the line
    a:2: a tab
    b: does not end in one line end
    c: does not end in one line end
    ");
}

#[test]
fn big_executable_and_left_over_files_are_found() {
    let mut repository = Repository::of(&[("a", ""), ("b.rs", ""), ("c.rs.orig", ""), (".ci/run", "")]);
    repository.files[0].size = MAX_BYTES + 1;
    repository.files[1].is_executable = true;
    insta::assert_snapshot!(misplaced(&repository).join("\n"), @r"
    a: is too large
    b.rs: is executable and should not be, or the other way round
    c.rs.orig: was left by a tool
    .ci/run: is executable and should not be, or the other way round
    ");
}
