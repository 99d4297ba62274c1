//! The address of a server that somebody else runs, and how to log in to it without a secret in any argument.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use dbdyno_drivers::mysql::{Address, Options, Secret};

use crate::Error;
use crate::option_file::{self, Item};

const DEFAULT_PORT: u16 = 3306;

/// Reads `mysql://user@host:port/database` or `mysql://user@localhost/database?socket=/path`.
///
/// User and port may be left out; `%xx` stands for any byte. The password is empty: see [`credentials`].
///
/// # Errors
/// [`Error::Address`]; a password in the address is one, as arguments and plans are read by others.
pub fn parse(address: &str) -> Result<Options, Error> {
    let rest = ["mysql://", "mariadb://"]
        .iter()
        .find_map(|scheme| address.strip_prefix(scheme))
        .ok_or_else(|| wrong("it does not begin with mysql://"))?;
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
    let socket = query.map(socket_of).transpose()?;
    let address = match socket {
        Some(socket) if host.is_empty() || host == "localhost" => Address::Socket(socket),
        Some(_) => return Err(wrong("a socket is on this machine: the host must be localhost or left out")),
        None => tcp(host)?,
    };
    let database = Some(decoded(database)?).filter(|name| !name.is_empty());
    Ok(Options { database, ..Options::new(address, decoded(user)?) })
}

fn wrong(why: impl Into<String>) -> Error {
    Error::Address { why: why.into() }
}

fn socket_of(query: &str) -> Result<PathBuf, Error> {
    let mut socket = None;
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if name != "socket" {
            return Err(wrong("unknown option after the ?; there is only socket=/path"));
        }
        socket = Some(PathBuf::from(decoded(value)?));
    }
    socket.filter(|path| path.is_absolute()).ok_or_else(|| wrong("socket= needs an absolute path"))
}

fn tcp(host: &str) -> Result<Address, Error> {
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
    let port = match port {
        None => DEFAULT_PORT,
        Some(port) => port
            .parse()
            .ok()
            .filter(|port| *port != 0)
            .ok_or_else(|| wrong("the port is no number from 1 to 65535"))?,
    };
    Ok(Address::Tcp { host: decoded(host)?, port })
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

/// Completes `options` with a password from the environment variable `password_env`, or with user and password
/// from the `[client]` group of `option_file`. A user in the address and a password in the environment go first.
/// Also returns warnings for the user.
///
/// # Errors
/// [`Error::Credentials`] when the variable is not set or no user is named, [`Error::OptionFile`].
pub fn credentials(
    options: Options,
    password_env: Option<&str>,
    option_file: Option<&Path>,
) -> Result<(Options, Vec<String>), Error> {
    let variable = |name: &str| std::env::var(name).ok();
    complete(options, password_env, option_file, variable)
}

fn complete(
    mut options: Options,
    password_env: Option<&str>,
    option_file: Option<&Path>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<(Options, Vec<String>), Error> {
    let mut warnings = Vec::new();
    if let Some(path) = option_file {
        let client = read_client_group(path)?;
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
        let why =
            "no user: name one in the address (mysql://user@host/database) or in the option file's [client]";
        return Err(Error::Credentials { why: why.to_owned() });
    }
    Ok((options, warnings))
}

#[derive(Default)]
struct ClientGroup {
    user: Option<String>,
    password: Option<String>,
}

fn read_client_group(path: &Path) -> Result<ClientGroup, Error> {
    let wrong = |why: String| Error::OptionFile { path: path.to_path_buf(), why };
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let mut client = ClientGroup::default();
    for item in option_file::parse(&text).map_err(wrong)? {
        match item {
            Item::Include { .. } => {
                return Err(wrong(
                    "it includes another file; name the file that has the [client] group".to_owned(),
                ));
            }
            Item::Setting { group, name, value } if group == "client" => match name.as_str() {
                "user" => client.user = value,
                "password" => client.password = value,
                _ => {}
            },
            Item::Setting { .. } => {}
        }
    }
    Ok(client)
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

    fn shown(address: &str) -> String {
        match parse(address) {
            Ok(options) => format!("{:?} {:?} {:?}", options.address, options.user, options.database),
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
        ];
        insta::assert_snapshot!(addresses.map(shown).join("\n"), @r#"
        Tcp { host: "db.example", port: 3307 } "ann" Some("ib")
        Tcp { host: "db.example", port: 3306 } "ann" Some("ib")
        Tcp { host: "db.example", port: 3306 } "" None
        Tcp { host: "::1", port: 3306 } "a@b" Some("my/db")
        Socket("/run/my sql/s.sock") "root" Some("ib")
        Socket("/s") "" Some("ib")
        "#);
    }

    #[test]
    fn wrong_addresses_say_why_and_never_repeat_themselves() {
        let addresses = [
            "postgres://ann@h/d",
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
        let said = addresses.map(shown).join("\n").replace("; write mysql://user@host:port/database", "");
        insta::assert_snapshot!(said, @r"
        server address: it does not begin with mysql://
        server address: it holds a password; put it into an environment variable or an option file instead
        server address: it names no host
        server address: the port is no number from 1 to 65535
        server address: the port is no number from 1 to 65535
        server address: the database's name holds a /
        server address: % must be followed by two hexadecimal digits of UTF-8
        server address: unknown option after the ?; there is only socket=/path
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
        let bare = parse("mysql://h/d").unwrap();
        let (options, warnings) =
            complete(bare.clone(), None, Some(file(text, 0o600).path()), |_| None).unwrap();
        assert_eq!((options.user.as_str(), options.password), ("bob", Secret::new("p#1")));
        assert!(warnings.is_empty());
        let open = file(text, 0o644);
        let (_, warnings) = complete(bare, None, Some(open.path()), |_| None).unwrap();
        assert!(warnings[0].contains("others may read it: chmod 600"), "{warnings:?}");
        let named = parse("mysql://ann@h/d").unwrap();
        assert_eq!(complete(named, None, Some(open.path()), |_| None).unwrap().0.user, "ann");
    }

    #[test]
    fn the_environment_gives_the_password_and_a_missing_variable_is_named() {
        let ann = parse("mysql://ann@h/d").unwrap();
        let set = |name: &str| (name == "DB_PASSWORD").then(|| "secret".to_owned());
        let (options, _) = complete(ann.clone(), Some("DB_PASSWORD"), None, set).unwrap();
        assert_eq!(options.password, Secret::new("secret"));
        assert!(!format!("{options:?}").contains("secret"));
        let error = complete(ann, Some("DB_PASSWORT"), None, set).unwrap_err().to_string();
        insta::assert_snapshot!(error, @"credentials: the environment variable DB_PASSWORT, which should hold the password, is not set");
    }

    #[test]
    fn no_user_and_an_include_are_errors() {
        let bare = parse("mysql://h/d").unwrap();
        let error = complete(bare.clone(), None, None, |_| None).unwrap_err().to_string();
        assert!(error.starts_with("credentials: no user"), "{error}");
        let error = complete(bare, None, Some(file("!include /x\n", 0o600).path()), |_| None).unwrap_err();
        assert!(error.to_string().contains("it includes another file"), "{error}");
    }
}
