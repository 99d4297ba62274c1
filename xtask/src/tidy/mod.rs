//! Rules about the repository that are tests: structure, sizes, documents, words.
//!
//! A rule is a function from the [`Repository`] to complaints, next to the test that wants none.

mod circles;
mod dependencies;
mod imports;
mod links;
mod mentions;
mod metric_ids;
mod product_names;
mod rate_tables;
mod sources;
mod texts;
mod workload_names;

use std::fs;
use std::path::Path;

use crate::places;

/// Made by tools or runs, not by people, and not part of the repository.
const NOT_OURS: &[&str] = &[".git", "target", "runs", "crates/report/page/node_modules"];

/// Texts of failed golden tests that wait for a look; git ignores them too.
const PENDING: &[&str] = &[".snap.new", ".pending-snap"];

struct Repository {
    files: Vec<File>,
}

struct File {
    /// From the root, with slashes.
    path: String,
    size: u64,
    is_executable: bool,
    /// `None` for what is not UTF-8.
    text: Option<String>,
}

impl Repository {
    /// Reads the repository that this was built from.
    fn load() -> Self {
        let mut repository = Self { files: Vec::new() };
        repository.read_folder(places::root(), "");
        assert!(repository.files.len() > 50, "the repository was not found");
        repository.files.sort_by(|a, b| a.path.cmp(&b.path));
        repository
    }

    /// For tests of the rules: a repository of these paths and texts.
    fn of(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| File {
            path: (*path).to_owned(),
            size: u64::try_from(text.len()).unwrap(),
            is_executable: false,
            text: Some((*text).to_owned()),
        };
        Self { files: files.iter().map(file).collect() }
    }

    fn read_folder(&mut self, folder: &Path, prefix: &str) {
        use std::os::unix::fs::PermissionsExt;

        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let path = format!("{prefix}{name}");
            if NOT_OURS.contains(&path.as_str()) || PENDING.iter().any(|ending| path.ends_with(ending)) {
                continue;
            }
            let metadata = entry.metadata().unwrap();
            if metadata.is_dir() {
                self.read_folder(&entry.path(), &format!("{path}/"));
                continue;
            }
            let text = String::from_utf8(fs::read(entry.path()).unwrap()).ok();
            let is_executable = metadata.permissions().mode() & 0o111 != 0;
            self.files.push(File { path, size: metadata.len(), is_executable, text });
        }
    }

    /// Path and text of each file whose name ends so.
    fn texts<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let texts = self.files.iter().filter_map(|file| Some((file.path.as_str(), file.text.as_deref()?)));
        texts.filter(move |(path, _)| path.ends_with(ending))
    }

    /// Place and text of each line of these files.
    fn lines<'a>(
        &'a self,
        is_looked_at: impl Fn(&str) -> bool + 'a,
    ) -> impl Iterator<Item = (String, &'a str)> {
        let files = self.texts("").filter(move |(path, _)| is_looked_at(path));
        files.flat_map(|(path, text)| {
            text.lines().enumerate().map(move |(index, line)| (format!("{path}:{}", index + 1), line))
        })
    }

    /// The text of one file; empty when there is none.
    fn text(&self, path: &str) -> &str {
        self.files
            .iter()
            .find(|file| file.path == path)
            .and_then(|file| file.text.as_deref())
            .unwrap_or_default()
    }

    fn has_file(&self, path: &str) -> bool {
        self.files.iter().any(|file| file.path == path)
    }

    fn has_folder(&self, path: &str) -> bool {
        let prefix = format!("{path}/");
        path.is_empty() || self.files.iter().any(|file| file.path.starts_with(&prefix))
    }

    fn folders_in(&self, folder: &str) -> Vec<&str> {
        let prefix = format!("{folder}/");
        let below = self.files.iter().filter_map(|file| file.path.strip_prefix(&prefix)?.split_once('/'));
        let mut names: Vec<&str> = below.map(|(name, _)| name).collect();
        names.dedup();
        names
    }
}

/// Lines of product code: without comments, and without what is for tests only. A module of tests
/// ends its file.
fn product_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let end = text.find("\n#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    // Indentation of the item for tests that is being left out.
    let mut left_out = None;
    text[..end].lines().enumerate().filter(move |(_, line)| {
        let code = line.trim_start();
        let depth = line.len() - code.len();
        if code.starts_with("#[cfg(test)]") {
            left_out = left_out.or(Some(depth));
        }
        let is_left_out = left_out.is_some();
        if left_out == Some(depth) && !code.starts_with("#[") && code.ends_with([';', ',', '}']) {
            left_out = None;
        }
        !is_left_out && !code.starts_with("//")
    })
}

/// Whether it is code that is shipped.
fn is_product(path: &str) -> bool {
    let only_tests = ["/tests/", "/tests.rs", "_tests.rs", "/fixture"];
    path.starts_with("crates/")
        && path.contains("/src/")
        && !only_tests.iter().any(|part| path.contains(part))
}

/// Whether `word` is in `text` with nothing of a name next to it.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |sign: char| sign.is_alphanumeric() || matches!(sign, '-' | '_');
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part))
}

/// Fails with all complaints, one a line.
fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "{} complaints:\n{}\n", complaints.len(), complaints.join("\n"));
}
