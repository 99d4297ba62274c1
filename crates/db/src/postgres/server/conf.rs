//! Checks a plan's `postgresql.conf` before the server reads it.

use std::path::Path;

use dbdyno_products::postgres::setting;

use crate::server::{Error, OwnConfig};

/// Settings that name files outside the data directory, or another data directory.
const REFUSED: &[&str] = &["config_file", "data_directory", "external_pid_file", "hba_file", "ident_file"];

/// Directives that include other files. The text is copied into the data directory, where relative
/// paths would mean other files.
const INCLUDES: &[&str] = &["include", "include_dir", "include_if_exists"];

/// Reads what the file at `path` sets, in its order, and its text. The text is checked so that it
/// can be appended to the file that `initdb` makes, where it wins.
pub(in crate::postgres) fn own_config(path: &Path) -> Result<OwnConfig, Error> {
    let wrong = |why: String| Error::OptionFile { path: path.to_path_buf(), why };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    if let Some(why) = problem(&text) {
        return Err(wrong(why));
    }
    let settings = text.lines().filter_map(setting).map(|(name, value)| (name, Some(value))).collect();
    Ok(OwnConfig { settings, text })
}

/// Finds the first line that is not allowed. Its value is not repeated, because it may hold a
/// password.
fn problem(text: &str) -> Option<String> {
    for (number, line) in (1..).zip(text.lines()) {
        let Some((name, _)) = setting(line) else { continue };
        if INCLUDES.contains(&name.as_str()) {
            return Some(format!("line {number}: {name} is not followed; put all settings into one file"));
        }
        if REFUSED.contains(&name.as_str()) {
            return Some(format!(
                "line {number}: dbdyno sets {name}, as it keeps all files in a fresh data directory for each cell: \
                 leave the line out"
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Result<String, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("postgresql.conf");
        std::fs::write(&path, text).unwrap();
        Ok(own_config(&path)?.text)
    }

    #[test]
    fn settings_stay_as_they_are() {
        let text = "# shared_buffers\nshared_buffers = 1GB\n\n  wal_level minimal # x\nmy.hba_file = 'x'\n\
                    archive_command = 'include me'\n#include 'x'\n";
        assert_eq!(written(text).unwrap(), text);
    }

    #[test]
    fn other_files_are_refused_by_line_and_name() {
        for (text, line) in [
            ("\nInclude 'more.conf'", "line 2: include is not followed"),
            ("include_dir='conf.d'", "line 1: include_dir is not followed"),
            ("a = 1\nb = 2\nDATA_DIRECTORY = '/x'", "line 3: dbdyno sets data_directory"),
            ("  hba_file '/x'", "line 1: dbdyno sets hba_file"),
        ] {
            let message = written(text).unwrap_err().to_string();
            assert!(message.contains(line), "{message}");
        }
    }

    #[test]
    fn names_and_values_of_a_file_are_read_without_quotes_and_comments() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("postgresql.conf");
        std::fs::write(&path, "# x\nWork_Mem = 4MB # each\nsearch_path 'a b'\n\n").unwrap();
        let settings = own_config(&path).ok().unwrap().settings;
        let pair = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
        assert_eq!(settings, [pair("work_mem", "4MB"), pair("search_path", "a b")]);
    }

    #[test]
    fn an_absent_file_is_named() {
        let message = own_config(Path::new("/nowhere/postgresql.conf")).err().unwrap().to_string();
        assert_eq!(message, "option file /nowhere/postgresql.conf: No such file or directory (os error 2)");
    }
}
