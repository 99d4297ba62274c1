//! Reads PostgreSQL's password file (`.pgpass`). Its lines are `host:port:database:user:password`,
//! and the first that fits counts.

use std::fs;
use std::path::Path;

use crate::server::{Error, FileLogin};
use crate::{Address, LoginOptions};

/// Reads the login for [`crate::server::credentials`].
pub(in crate::postgres) fn login_of_file(path: &Path, options: &LoginOptions) -> Result<FileLogin, Error> {
    let wrong = |why: String| Error::OptionFile { path: path.to_path_buf(), why };
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let password = password(&text, options)
        .ok_or_else(|| wrong("no line fits host, port, database and user of the address".to_owned()))?;
    Ok(FileLogin { user: None, password: Some(password) })
}

/// Finds the password for `options` in a password file's text. A unix socket counts as host
/// `localhost`, with the port in its name.
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

/// Splits a line into its fields. A backslash keeps the next character from ending a field. The
/// fifth field extends to the end.
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
