//! Checks a plan's `postgresql.conf` before the server reads it, and reads logins from a password
//! file.

use std::fs;
use std::path::Path;

use dbdyno_products::postgres::setting;

use crate::server::{Error, FileLogin, OwnConfig};
use crate::{Address, LoginOptions};

/// Settings that name files outside the data directory, or another data directory.
const REFUSED: &[&str] = &["config_file", "data_directory", "external_pid_file", "hba_file", "ident_file"];

/// Directives that include other files. The text is copied into the data directory, where relative
/// paths would mean other files.
const INCLUDES: &[&str] = &["include", "include_dir", "include_if_exists"];

/// Reads the text of the file at `path`, and its settings in their order. The text will be
/// appended to the file that `initdb` makes, to override its settings, so the text is checked for
/// lines that must not be there.
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

/// Reads the password for `options` from a password file, for [`crate::server::credentials`].
pub(in crate::postgres) fn login_of_file(path: &Path, options: &LoginOptions) -> Result<FileLogin, Error> {
    let wrong = |why: String| Error::OptionFile { path: path.to_path_buf(), why };
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let password = password(&text, options).ok_or_else(|| {
        wrong("no line matches the host, port, database and user of the address".to_owned())
    })?;
    Ok(FileLogin { user: None, password: Some(password) })
}

/// Finds the password for `options` in a password file's text. A Unix socket counts as host
/// `localhost`, and its port is the extension of its path.
fn password(text: &str, options: &LoginOptions) -> Option<String> {
    let (host, port) = match &options.address {
        Address::Tcp { host, port } => (host.clone(), port.to_string()),
        Address::Socket(path) => {
            let port = path.extension().map_or_else(String::new, |port| port.to_string_lossy().into_owned());
            ("localhost".to_owned(), port)
        }
    };
    let database = options.database.clone().unwrap_or_else(|| options.user.clone());
    let wanted = [host, port, database, options.user.clone()];
    text.lines().filter(|line| !line.starts_with('#')).map(fields).find_map(|mut fields| {
        let fits = fields.len() == 5
            && fields.iter().zip(&wanted).all(|(field, wanted)| field == "*" || field == wanted);
        if fits { fields.pop() } else { None }
    })
}

/// Splits a line of a password file into its fields. A backslash keeps the next character from
/// ending a field. The fifth field, the password, extends to the end.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        let is_last = fields.len() == 5;
        match c {
            ':' if !is_last => fields.push(String::new()),
            c => {
                let c = if c == '\\' { chars.next().unwrap_or('\\') } else { c };
                if let Some(field) = fields.last_mut() {
                    field.push(c);
                }
            }
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_read_back(text: &str) -> Result<String, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("postgresql.conf");
        std::fs::write(&path, text).unwrap();
        Ok(own_config(&path)?.text)
    }

    #[test]
    fn settings_stay_as_they_are() {
        let text = "# shared_buffers\nshared_buffers = 1GB\n\n  wal_level minimal # x\nmy.hba_file = 'x'\n\
                    archive_command = 'include me'\n#include 'x'\n";
        assert_eq!(text_read_back(text).unwrap(), text);
    }

    #[test]
    fn other_files_are_refused_by_line_and_name() {
        for (text, line) in [
            ("\nInclude 'more.conf'", "line 2: include is not followed"),
            ("include_dir='conf.d'", "line 1: include_dir is not followed"),
            ("a = 1\nb = 2\nDATA_DIRECTORY = '/x'", "line 3: dbdyno sets data_directory"),
            ("  hba_file '/x'", "line 1: dbdyno sets hba_file"),
        ] {
            let message = text_read_back(text).unwrap_err().to_string();
            assert!(message.contains(line), "{message}");
        }
    }

    #[test]
    fn names_and_values_are_read_without_quotes_and_comments() {
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

    const TEXT: &str = "# host:port:database:user:password\n\
        db1:5432:*:ann:first\n\
        db1:*:shop:ann:never\n\
        localhost:5433:ib:ann:of\\:the\\\\socket\n\
        *:*:*:bob:a:b\n\
        broken:line\n";

    #[test]
    fn the_first_line_that_fits_counts() {
        let tcp = |host: &str, user: &str| LoginOptions::tcp(host, 5432, user).with_database("shop");
        assert_eq!(password(TEXT, &tcp("db1", "ann")).as_deref(), Some("first"));
        assert_eq!(password(TEXT, &tcp("db2", "bob")).as_deref(), Some("a:b"));
        assert_eq!(password(TEXT, &tcp("db2", "ann")), None);
        let socket = LoginOptions::socket("/run/pg/.s.PGSQL.5433", "ann").with_database("ib");
        assert_eq!(password(TEXT, &socket).as_deref(), Some("of:the\\socket"));
    }
}
