//! Logins on servers that others run, and dbdyno's ownership of databases there. No argument
//! contains a secret: passwords come from the environment or from option files. A marker table
//! identifies the databases that belong to dbdyno, and dbdyno refuses to use any other database.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use dbdyno_model::TlsSettings;
use dbdyno_products::ServerAddress;

use crate::server::Error;
use crate::{DbError, Family, LoginOptions, Secret};

/// Returns the login for an address. Its password is empty, and [`credentials`] fills it in.
pub fn login_at(address: &ServerAddress) -> (Family, LoginOptions) {
    let options = LoginOptions::new(address.address.clone(), address.user.clone());
    (Family::of(address.family), options.with_database(address.database.clone()))
}

/// Takes the TLS settings from the address or otherwise from `plan`, and from `option_file` if
/// neither has any. The result is `None` when none of them mentions TLS.
pub fn tls_settings(
    address: &ServerAddress,
    plan: Option<TlsSettings>,
    option_file: Option<&Path>,
) -> Result<Option<TlsSettings>, Error> {
    match (address.tls.clone().or(plan), option_file) {
        (None, Some(path)) => Family::of(address.family).tls_of_file(path),
        (settings, _) => Ok(settings),
    }
}

/// Completes `options` with a password from the environment variable `password_env`, or with the
/// user and password that the family reads from `option_file`. A user in the address and a password
/// in the environment take precedence. The result also has warnings for the user.
pub fn credentials(
    family: Family,
    options: LoginOptions,
    password_env: Option<&str>,
    option_file: Option<&Path>,
) -> Result<(LoginOptions, Vec<String>), Error> {
    let variable = |name: &str| std::env::var(name).ok();
    complete(family, options, password_env, option_file, variable)
}

/// Does the same as [`credentials`] with environment variables that `variable` looks up.
fn complete(
    family: Family,
    mut options: LoginOptions,
    password_env: Option<&str>,
    option_file: Option<&Path>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<(LoginOptions, Vec<String>), Error> {
    let mut warnings = Vec::new();
    if let Some(path) = option_file {
        let client = family.login_of_file(path, &options)?;
        if let Some(user) = client.user.filter(|_| options.user.is_empty()) {
            options.user = user;
        }
        if let Some(password) = client.password {
            options.password = Secret::new(password);
            warnings.extend(warning_if_others_may_read(path)?);
        }
    }
    if let Some(name) = password_env {
        let why = format!("the environment variable {name}, which should hold the password, is not set");
        options.password = Secret::new(variable(name).ok_or(Error::Credentials { why })?);
    }
    if options.user.is_empty() {
        let scheme = family.facts().schemes[0];
        let why = format!(
            "no user: name one in the address ({scheme}user@host/database){}",
            family.facts().other_place_of_user
        );
        return Err(Error::Credentials { why });
    }
    Ok((options, warnings))
}

/// Returns a warning if other users may read the option file, which holds a password.
fn warning_if_others_may_read(path: &Path) -> Result<Option<String>, Error> {
    let metadata = fs::metadata(path).map_err(Error::io("cannot look at", path))?;
    let open = metadata.permissions().mode() & 0o044 != 0;
    Ok(open.then(|| {
        format!("option file {p} holds a password and others may read it: chmod 600 {p}", p = path.display())
    }))
}

/// The name of the marker table. A database that has this table belongs to dbdyno.
pub const MARKER_TABLE: &str = "dbdyno_mark";

/// How a database came to belong to dbdyno.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// The database did not exist. dbdyno made and marked it.
    Created,
    /// The database had the marker table already.
    Ours,
    /// The database is the only one on its server. It had no tables, so dbdyno marked it.
    Only,
}

/// Refuses the databases in `system`, in which the server keeps its own tables.
pub(crate) fn check_not_system(name: &str, system: &[&str]) -> Result<(), Error> {
    match system.iter().any(|system| name.eq_ignore_ascii_case(system)) {
        true => Err(Error::SystemDatabase { name: name.to_owned() }),
        false => Ok(()),
    }
}

/// Returns the error for a statement that failed on `database`. `what` is the statement's purpose.
pub(crate) fn refused(what: &str, database: &str, source: DbError) -> Error {
    Error::Database { what: format!("{what} {database}"), source }
}

#[cfg(test)]
mod tests {
    use dbdyno_model::TlsMode;

    use super::*;

    fn login(address: &str) -> (Family, LoginOptions) {
        login_at(&ServerAddress::parse(address).unwrap())
    }

    fn file(text: &str, mode: u32) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).unwrap();
        file
    }

    #[test]
    fn the_option_file_gives_user_and_password_and_warns_when_others_may_read_it() {
        let text = "[mysql]\npassword=not-this\n[client]\nuser=bob\npassword='p#1' # his\n";
        let bare = login("mysql://h/d").1;
        let (options, warnings) =
            complete(Family::Mysql, bare.clone(), None, Some(file(text, 0o600).path()), |_| None).unwrap();
        assert_eq!((options.user.as_str(), options.password), ("bob", Secret::new("p#1")));
        assert!(warnings.is_empty());
        let open = file(text, 0o644);
        let (_, warnings) = complete(Family::Mysql, bare, None, Some(open.path()), |_| None).unwrap();
        assert!(warnings[0].contains("others may read it: chmod 600"), "{warnings:?}");
        let named = login("mysql://ann@h/d").1;
        assert_eq!(complete(Family::Mysql, named, None, Some(open.path()), |_| None).unwrap().0.user, "ann");
    }

    #[test]
    fn the_environment_gives_the_password_and_a_missing_variable_is_named() {
        let ann = login("mysql://ann@h/d").1;
        let set = |name: &str| (name == "DB_PASSWORD").then(|| "secret".to_owned());
        let (options, _) = complete(Family::Mysql, ann.clone(), Some("DB_PASSWORD"), None, set).unwrap();
        assert_eq!(options.password, Secret::new("secret"));
        assert!(!format!("{options:?}").contains("secret"));
        let error = complete(Family::Mysql, ann, Some("DB_PASSWORT"), None, set).unwrap_err().to_string();
        insta::assert_snapshot!(error, @"credentials: the environment variable DB_PASSWORT, which should hold the password, is not set");
    }

    #[test]
    fn a_missing_user_and_an_included_file_are_errors() {
        let bare = login("mysql://h/d").1;
        let error = complete(Family::Mysql, bare.clone(), None, None, |_| None).unwrap_err().to_string();
        assert!(error.starts_with("credentials: no user"), "{error}");
        let error = complete(Family::Mysql, bare, None, Some(file("!include /x\n", 0o600).path()), |_| None)
            .unwrap_err();
        assert!(error.to_string().contains("it includes another file"), "{error}");
    }

    #[test]
    fn a_password_file_gives_the_password_of_the_line_that_fits() {
        let (family, ann) = login("postgres://ann@h/d");
        let closed = file("h:5432:d:ann:p#1\n", 0o600);
        let (options, warnings) = complete(family, ann.clone(), None, Some(closed.path()), |_| None).unwrap();
        assert_eq!(options.password, Secret::new("p#1"));
        assert!(warnings.is_empty());
        let other = file("h:5433:d:ann:p#1\n", 0o600);
        let error = complete(family, ann, None, Some(other.path()), |_| None).unwrap_err().to_string();
        assert!(
            error.ends_with("no line matches the host, port, database and user of the address"),
            "{error}"
        );
    }

    #[test]
    fn tls_settings_come_last_from_the_option_file_and_paths_are_relative_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my.cnf");
        let text =
            "[mysqld]\nssl-ca=/theirs\n[client]\nssl-mode=VERIFY_IDENTITY\nssl_ca=ca.pem\nssl-key=/k\n";
        fs::write(&path, text).unwrap();
        let find =
            |address: &str, plan| tls_settings(&ServerAddress::parse(address).unwrap(), plan, Some(&path));
        let verified = TlsSettings {
            mode: TlsMode::Verify,
            ca: Some(folder.path().join("ca.pem")),
            cert: None,
            key: Some("/k".into()),
        };
        assert_eq!(find("mysql://u@h/d", None).unwrap(), Some(verified));
        let off = TlsSettings { mode: TlsMode::Off, ..TlsSettings::default() };
        assert_eq!(find("mysql://u@h/d?tls=off", None).unwrap(), Some(off.clone()));
        assert_eq!(find("mysql://u@h/d", Some(off.clone())).unwrap(), Some(off));
        assert_eq!(find("postgres://u@h/d", None).unwrap(), None);
    }
}
