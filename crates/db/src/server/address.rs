//! The address of a server that others run, and how to log in to it without a secret in any
//! argument.

mod tls;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use dbdyno_products::FamilyFacts;

use crate::server::Error;
use crate::{Address, Family, Options, Secret};
pub use tls::tls_settings;

/// The family of the server that `address` is of, and the rest of it.
fn split_scheme(address: &str) -> Option<(Family, &str)> {
    let (facts, rest) = FamilyFacts::of_address(address)?;
    let family = Family::with_servers().find(|family| family.name() == facts.name)?;
    Some((family, rest))
}

/// Reads `mysql://user@host:port/database` or `mysql://user@localhost/database?socket=/path`, and
/// the same with `postgres://`. There the socket may also be the folder that it is in; its port is
/// then that of the address.
///
/// After the `?` TLS may be configured too: see [`tls_settings`].
///
/// User and port may be left out; `%xx` stands for any byte. The password is empty: see
/// [`credentials`]. A password in the address is an error, as arguments and plans are read by
/// others.
pub fn parse(address: &str) -> Result<(Family, Options), Error> {
    let schemes: Vec<&str> = Family::with_servers().map(|family| family.facts().schemes[0]).collect();
    let (family, rest) = split_scheme(address)
        .ok_or_else(|| wrong(format!("it begins with neither {}", schemes.join(" nor "))))?;
    let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if user.contains(':') {
        return Err(wrong(
            "it holds a password; put it into an environment variable or an option file instead",
        ));
    }
    if database.contains('/') {
        return Err(wrong("the database's name holds a /"));
    }
    let socket = query.map(|query| socket_of(query, family)).transpose()?.flatten();
    let address = match socket {
        Some(socket) => Address::Socket(socket_file(socket, host, family)?),
        None => tcp(host, family.facts().default_port)?,
    };
    let database = Some(decoded(database)?).filter(|name| !name.is_empty());
    Ok((family, Options { database, ..Options::new(address, decoded(user)?) }))
}

/// The socket itself. A folder is distinguished from a socket by its name, because the server may
/// not run yet.
fn socket_file(given: PathBuf, host: &str, family: Family) -> Result<PathBuf, Error> {
    let prefix = family.facts().socket_prefix;
    let (name, port) = match host.split_once(':') {
        Some((name, port)) if prefix.is_some() => (name, port_of(port)?),
        _ => (host, family.facts().default_port),
    };
    if !(name.is_empty() || name == "localhost") {
        return Err(wrong("a socket is on this machine: the host must be localhost or left out"));
    }
    let Some(prefix) = prefix else { return Ok(given) };
    let is_file = given.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix));
    Ok(if is_file { given } else { given.join(format!("{prefix}{port}")) })
}

fn wrong(why: impl Into<String>) -> Error {
    Error::Address { why: why.into() }
}

/// The socket, if the part after the `?` names one. What it says of TLS is read by
/// [`tls_settings`].
fn socket_of(query: &str, family: Family) -> Result<Option<PathBuf>, Error> {
    let mut socket = None;
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match name {
            "socket" => socket = Some(PathBuf::from(decoded(value)?)),
            name if tls::is_key(family, name) => {}
            _ => {
                return Err(wrong(
                    "unknown option after the ?; there are socket=/path, tls=MODE, tls_ca=, tls_cert= and tls_key=",
                ));
            }
        }
    }
    match socket {
        Some(path) if !path.is_absolute() => Err(wrong("socket= needs an absolute path")),
        socket => Ok(socket),
    }
}

fn tcp(host: &str, default_port: u16) -> Result<Address, Error> {
    let (host, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or_else(|| wrong("[ without ] around the host"))?;
            (host, port.strip_prefix(':'))
        }
        None => host.split_once(':').map_or((host, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return Err(wrong("it names no host"));
    }
    let port = port.map_or(Ok(default_port), port_of)?;
    Ok(Address::Tcp { host: decoded(host)?, port })
}

fn port_of(text: &str) -> Result<u16, Error> {
    let port = text.parse().ok().filter(|port| *port != 0);
    port.ok_or_else(|| wrong("the port is no number from 1 to 65535"))
}

fn decoded(text: &str) -> Result<String, Error> {
    let broken = || wrong("% must be followed by two hexadecimal digits of UTF-8");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16)).ok_or_else(broken);
        let value = digit()? * 16 + digit()?;
        bytes.push(u8::try_from(value).map_err(|_| broken())?);
    }
    String::from_utf8(bytes).map_err(|_| broken())
}

/// Completes `options` with a password from the environment variable `password_env`, or from
/// `option_file`: what its family reads there. A user in the address and a password in the
/// environment go first. Also returns warnings for the user.
pub fn credentials(
    family: Family,
    options: Options,
    password_env: Option<&str>,
    option_file: Option<&Path>,
) -> Result<(Options, Vec<String>), Error> {
    let variable = |name: &str| std::env::var(name).ok();
    complete(family, options, password_env, option_file, variable)
}

fn complete(
    family: Family,
    mut options: Options,
    password_env: Option<&str>,
    option_file: Option<&Path>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<(Options, Vec<String>), Error> {
    let mut warnings = Vec::new();
    if let Some(path) = option_file {
        let client = family.login_of_file(path, &options)?;
        if let Some(user) = client.user.filter(|_| options.user.is_empty()) {
            options.user = user;
        }
        if let Some(password) = client.password {
            options.password = Secret::new(password);
            warnings.extend(readable_by_others(path)?);
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

fn readable_by_others(path: &Path) -> Result<Option<String>, Error> {
    let metadata = fs::metadata(path).map_err(Error::io("cannot look at", path))?;
    let open = metadata.permissions().mode() & 0o044 != 0;
    Ok(open.then(|| {
        format!("option file {p} holds a password and others may read it: chmod 600 {p}", p = path.display())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOW: &str = "; write mysql://user@host:port/database or postgres://user@host:port/database";

    fn shown(address: &str) -> String {
        match parse(address) {
            Ok((_, options)) => format!("{:?} {:?} {:?}", options.address, options.user, options.database),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn addresses_are_read_in_all_their_forms() {
        let addresses = [
            "mysql://ann@db.example:3307/ib",
            "mysql://ann@db.example/ib",
            "mariadb://db.example",
            "mysql://a%40b@[::1]:3306/my%2Fdb",
            "mysql://root@localhost/ib?socket=/run/my%20sql/s.sock",
            "mysql:///ib?socket=/s",
            "postgres://ann@db.example/ib",
            "postgresql://ann@localhost/ib?socket=/run/postgresql",
            "postgres://ann@localhost:5433/ib?socket=/run/postgresql",
            "postgres://ann@localhost/ib?socket=/run/.s.PGSQL.5434",
        ];
        insta::assert_snapshot!(addresses.map(shown).join("\n"), @r#"
        Tcp { host: "db.example", port: 3307 } "ann" Some("ib")
        Tcp { host: "db.example", port: 3306 } "ann" Some("ib")
        Tcp { host: "db.example", port: 3306 } "" None
        Tcp { host: "::1", port: 3306 } "a@b" Some("my/db")
        Socket("/run/my sql/s.sock") "root" Some("ib")
        Socket("/s") "" Some("ib")
        Tcp { host: "db.example", port: 5432 } "ann" Some("ib")
        Socket("/run/postgresql/.s.PGSQL.5432") "ann" Some("ib")
        Socket("/run/postgresql/.s.PGSQL.5433") "ann" Some("ib")
        Socket("/run/.s.PGSQL.5434") "ann" Some("ib")
        "#);
    }

    #[test]
    fn wrong_addresses_say_why_and_never_repeat_themselves() {
        let addresses = [
            "oracle://ann@h/d",
            "mysql://ann:hunter2@h/d",
            "mysql://ann@/d",
            "mysql://ann@h:99999/d",
            "mysql://ann@h:0/d",
            "mysql://ann@h/d/e",
            "mysql://ann@h/%zz",
            "mysql://ann@h/d?ssl=1",
            "mysql://ann@h/d?socket=/s",
            "mysql://ann@/d?socket=s",
        ];
        let said = addresses.map(shown).join("\n").replace(HOW, "");
        insta::assert_snapshot!(said, @r"
        server address: it begins with neither mysql:// nor postgres://
        server address: it holds a password; put it into an environment variable or an option file instead
        server address: it names no host
        server address: the port is no number from 1 to 65535
        server address: the port is no number from 1 to 65535
        server address: the database's name holds a /
        server address: % must be followed by two hexadecimal digits of UTF-8
        server address: unknown option after the ?; there are socket=/path, tls=MODE, tls_ca=, tls_cert= and tls_key=
        server address: a socket is on this machine: the host must be localhost or left out
        server address: socket= needs an absolute path
        ");
        assert!(!shown(addresses[1]).contains("hunter2"));
    }

    fn file(text: &str, mode: u32) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).unwrap();
        file
    }

    #[test]
    fn the_option_file_gives_user_and_password_and_is_warned_of_when_open() {
        let text = "[mysql]\npassword=not-this\n[client]\nuser=bob\npassword='p#1' # his\n";
        let bare = parse("mysql://h/d").unwrap().1;
        let (options, warnings) =
            complete(Family::Mysql, bare.clone(), None, Some(file(text, 0o600).path()), |_| None).unwrap();
        assert_eq!((options.user.as_str(), options.password), ("bob", Secret::new("p#1")));
        assert!(warnings.is_empty());
        let open = file(text, 0o644);
        let (_, warnings) = complete(Family::Mysql, bare, None, Some(open.path()), |_| None).unwrap();
        assert!(warnings[0].contains("others may read it: chmod 600"), "{warnings:?}");
        let named = parse("mysql://ann@h/d").unwrap().1;
        assert_eq!(complete(Family::Mysql, named, None, Some(open.path()), |_| None).unwrap().0.user, "ann");
    }

    #[test]
    fn the_environment_gives_the_password_and_a_missing_variable_is_named() {
        let ann = parse("mysql://ann@h/d").unwrap().1;
        let set = |name: &str| (name == "DB_PASSWORD").then(|| "secret".to_owned());
        let (options, _) = complete(Family::Mysql, ann.clone(), Some("DB_PASSWORD"), None, set).unwrap();
        assert_eq!(options.password, Secret::new("secret"));
        assert!(!format!("{options:?}").contains("secret"));
        let error = complete(Family::Mysql, ann, Some("DB_PASSWORT"), None, set).unwrap_err().to_string();
        insta::assert_snapshot!(error, @"credentials: the environment variable DB_PASSWORT, which should hold the password, is not set");
    }

    #[test]
    fn no_user_and_an_include_are_errors() {
        let bare = parse("mysql://h/d").unwrap().1;
        let error = complete(Family::Mysql, bare.clone(), None, None, |_| None).unwrap_err().to_string();
        assert!(error.starts_with("credentials: no user"), "{error}");
        let error = complete(Family::Mysql, bare, None, Some(file("!include /x\n", 0o600).path()), |_| None)
            .unwrap_err();
        assert!(error.to_string().contains("it includes another file"), "{error}");
    }

    #[test]
    fn a_password_file_gives_the_password_of_the_line_that_fits() {
        let (family, ann) = parse("postgres://ann@h/d").unwrap();
        let closed = file("h:5432:d:ann:p#1\n", 0o600);
        let (options, warnings) = complete(family, ann.clone(), None, Some(closed.path()), |_| None).unwrap();
        assert_eq!(options.password, Secret::new("p#1"));
        assert!(warnings.is_empty());
        let other = file("h:5433:d:ann:p#1\n", 0o600);
        let error = complete(family, ann, None, Some(other.path()), |_| None).unwrap_err().to_string();
        assert!(error.ends_with("no line fits host, port, database and user of the address"), "{error}");
    }
}
