//! The catalogue of servers that dbdyno can download: the built-in `servers.toml`, and the user's
//! own file next to it.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use super::entry::{Entry, Source};
use super::rules;
use crate::{Error, suggestions};

const SERVERS_TOML: &str = include_str!("../../servers.toml");

/// The environment variable that names the user's own catalogue. Without it, that is `servers.toml`
/// in dbdyno's settings folder.
const VARIABLE: &str = "DBDYNO_CATALOGUE";

/// The built-in catalogue with the user's own entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue {
    /// All entries: the built-in ones by product and version, then the user's own.
    pub entries: Vec<Entry>,
    pub own_file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    server: Vec<Spanned<Entry>>,
}

impl Catalogue {
    /// Reads the built-in catalogue and the user's own. The latter is the file in
    /// `$DBDYNO_CATALOGUE`, otherwise `$XDG_CONFIG_HOME/dbdyno/servers.toml`, otherwise
    /// `~/.config/dbdyno/servers.toml`.
    pub fn read() -> Result<Self, Error> {
        let variable =
            |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(named) = variable(VARIABLE) {
            return Self::with(&named);
        }
        let settings = variable("XDG_CONFIG_HOME").or_else(|| Some(variable("HOME")?.join(".config")));
        match settings.map(|folder| folder.join("dbdyno/servers.toml")).filter(|file| file.exists()) {
            Some(file) => Self::with(&file),
            None => Ok(Self { entries: catalogue(), own_file: None }),
        }
    }

    /// Reads the built-in catalogue and the user's `own_file`.
    pub fn with(own_file: &Path) -> Result<Self, Error> {
        let wrong = |line, why: String| Error::Catalogue { path: own_file.to_path_buf(), line, why };
        let text = std::fs::read_to_string(own_file)
            .map_err(|error| wrong(1, format!("cannot be read: {error}; {VARIABLE} names another file")))?;
        let mut entries = catalogue();
        for spanned in parse(&text).map_err(|(line, why)| wrong(line, why))? {
            let line = line_at(&text, spanned.span());
            let mut entry = spanned.into_inner();
            rules::check(&entry).map_err(|why| wrong(line, why))?;
            if let Some(other) = entries.iter().find(|other| other.name == entry.name) {
                let whose = if other.own { "twice in this file" } else { "in dbdyno's own catalogue" };
                return Err(wrong(line, format!("{} is {whose}; choose another name", entry.name)));
            }
            entry.own = true;
            let folder = own_file.parent().unwrap_or(Path::new(""));
            resolve(&mut entry.source, folder);
            entries.push(entry);
        }
        Ok(Self { entries, own_file: Some(own_file.to_path_buf()) })
    }

    pub fn find(&self, name: &str) -> Result<&Entry, Error> {
        let found = self.entries.iter().find(|entry| entry.name == name);
        found.ok_or_else(|| {
            let names = self.entries.iter().map(|entry| entry.name.as_str());
            Error::NotInCatalogue { name: name.to_owned(), help: suggestions::help(name, names) }
        })
    }
}

/// The servers in the built-in catalogue, in the file's order: by product, then version.
pub fn catalogue() -> Vec<Entry> {
    let entries = parse(SERVERS_TOML).expect("the file is part of the program and read by a test");
    entries.into_iter().map(Spanned::into_inner).collect()
}

/// The entry with that name in the built-in catalogue.
pub fn by_name(name: &str) -> Result<Entry, Error> {
    Catalogue { entries: catalogue(), own_file: None }.find(name).cloned()
}

/// The entries in a catalogue's text. The error says what is wrong, and in which line.
fn parse(text: &str) -> Result<Vec<Spanned<Entry>>, (usize, String)> {
    let file: File = toml::from_str(text)
        .map_err(|error| (line_at(text, error.span().unwrap_or_default()), error.message().to_owned()))?;
    Ok(file.server)
}

/// The line in which `span` begins, counted from 1.
fn line_at(text: &str, span: Range<usize>) -> usize {
    1 + text.bytes().take(span.start).filter(|byte| *byte == b'\n').count()
}

/// Makes paths that are relative to the catalogue's file absolute.
fn resolve(source: &mut Source, folder: &Path) {
    if let Source::Tarball { path: Some(path), .. } | Source::Basedir { path } = source {
        let joined = folder.join(&*path);
        *path = std::path::absolute(&joined).unwrap_or(joined);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(text: &str) -> (tempfile::TempDir, Result<Catalogue, Error>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("servers.toml");
        std::fs::write(&path, text).unwrap();
        let read = Catalogue::with(&path);
        (folder, read)
    }

    fn refusal(text: &str) -> String {
        let (folder, read) = own(text);
        let message = read.unwrap_err().to_string();
        message.replace(folder.path().to_str().unwrap(), "FOLDER")
    }

    #[test]
    fn the_catalogue_is_sound_and_its_names_are_unique_and_tell_the_version() {
        let mut names = Vec::new();
        for entry in catalogue() {
            let version = entry.name.split('-').nth(1).unwrap();
            assert_eq!(version, entry.version, "{}", entry.name);
            rules::check(&entry).unwrap();
            assert!(!names.contains(&entry.name), "{} twice", entry.name);
            names.push(entry.name);
        }
        assert!(names.len() > 40);
    }

    #[test]
    fn what_was_really_downloaded_has_a_checksum_or_a_signature() {
        for entry in catalogue() {
            let is_checked = entry.source.check() != "none";
            assert!(is_checked || entry.untested, "{} is neither checked nor marked untested", entry.name);
            assert!(!matches!(entry.source, Source::Basedir { .. }), "{} is on one machine only", entry.name);
        }
    }

    #[test]
    fn an_unknown_name_offers_the_near_ones() {
        insta::assert_snapshot!(by_name("mysql-8.0.32").unwrap_err(), @"no server mysql-8.0.32 in the catalogue; suggestions: mysql-8.0.12, mysql-8.0.22, mysql-8.0.31, mysql-8.0.33; `dbdyno servers list` shows all");
    }

    #[test]
    fn entries_of_the_user_come_after_those_of_dbdyno_and_paths_are_relative_to_the_file() {
        let (folder, read) =
            own("[[server]]\nname = \"patched\"\nproduct = \"MariaDB\"\nversion = \"12.3\"\n\
             source = { kind = \"basedir\", path = \"build\" }\n");
        let read = read.unwrap();
        let last = read.entries.last().unwrap();
        assert!(last.own && last.name == "patched" && read.entries.len() == catalogue().len() + 1);
        assert_eq!(last.source, Source::Basedir { path: folder.path().join("build") });
    }

    #[test]
    fn what_is_wrong_is_named_with_file_and_line() {
        let server = |name: &str, more: &str| {
            format!("\n[[server]]\nname = \"{name}\"\nproduct = \"MySQL\"\nversion = \"8.4.6\"\n{more}\n")
        };
        let tarball = "source = { kind = \"tarball\", url = \"https://x.example/a.tar.xz\" }";
        let messages = [
            refusal("[[server]\n"),
            refusal(&server("a", "")),
            refusal(&server("a", &format!("{tarball}\ncolour = 1"))),
            refusal(&server("a", "source = { kind = \"floppy\" }")),
            refusal(&format!("{}{}", server("a", tarball), server("a", tarball))),
            refusal(&server("mysql-8.0.31", tarball)),
        ];
        insta::assert_snapshot!(messages.join("\n"), @r"
        FOLDER/servers.toml:1: unclosed array table, expected `]`
        FOLDER/servers.toml:2: missing field `source`
        FOLDER/servers.toml:7: unknown field `colour`, expected one of `name`, `product`, `version`, `download_mb`, `untested`, `source`
        FOLDER/servers.toml:6: unknown variant `floppy`, expected one of `maven`, `npm`, `debian`, `tarball`, `basedir`
        FOLDER/servers.toml:8: a is twice in this file; choose another name
        FOLDER/servers.toml:2: mysql-8.0.31 is in dbdyno's own catalogue; choose another name
        ");
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let message = Catalogue::with(Path::new("/nowhere/servers.toml")).unwrap_err().to_string();
        assert!(message.starts_with("/nowhere/servers.toml:1: cannot be read: No such file"), "{message}");
    }
}
