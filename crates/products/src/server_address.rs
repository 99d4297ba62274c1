//! Reads the address of a server that others run, for both plan checks and logins. TLS options may
//! use the terms of dbdyno, MySQL or libpq, both in the address and in option files.

use std::fmt;
use std::path::{Path, PathBuf};

use dbdyno_model::{TlsMode, TlsSettings};

use crate::FamilyFacts;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Socket(PathBuf),
    Tcp { host: String, port: u16 },
}

impl Address {
    /// The host that a server's certificate must name.
    pub fn host(&self) -> &str {
        match self {
            Self::Socket(_) => "localhost",
            Self::Tcp { host, .. } => host,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(formatter, "{}", path.display()),
            Self::Tcp { host, port } if host.contains(':') => write!(formatter, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(formatter, "{host}:{port}"),
        }
    }
}

/// The parts of `mysql://user@host:port/database`.
#[derive(Debug, Clone)]
pub struct ServerAddress {
    pub family: &'static FamilyFacts,
    pub address: Address,
    /// The user. It is empty if the address names none.
    pub user: String,
    pub database: String,
    /// The TLS settings. They are `None` if the address has none.
    pub tls: Option<TlsSettings>,
}

impl ServerAddress {
    /// Reads `mysql://user@host:port/database` or `mysql://user@localhost/database?socket=/path`,
    /// and the same with another family's scheme. If a family's socket name contains the port, the
    /// address may name the socket's folder instead of the socket.
    ///
    /// TLS options may follow the `?` too. User and port may be left out. `%xx` stands for the byte
    /// with that hexadecimal value. A password is refused, because others can read arguments and
    /// plans.
    ///
    /// # Errors
    /// The error says what is wrong, as the rest of a sentence that begins "... has an address
    /// that". It does not quote the address, which may hold a password.
    pub fn parse(text: &str) -> Result<Self, String> {
        if holds_password(text) {
            let files: Vec<&str> = FamilyFacts::of_servers().map(|family| family.password_file).collect();
            return Err(format!(
                "holds a password: take it out and set password_env = \"NAME\" (an environment variable) or \
                 option_file = \"PATH\" ({})",
                files.join(", or ")
            ));
        }
        let (family, rest) = FamilyFacts::of_address(text).ok_or_else(wrong_form)?;
        let (location, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = location.split_once('/').unwrap_or((location, ""));
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, _)) if user.is_empty() || user.starts_with('@') => return Err(wrong_form()),
            Some((user, host)) => (user, host),
            None => ("", authority),
        };
        let (socket, tls) = options(query, family)?;
        let address = match socket {
            Some(socket) => Address::Socket(socket_file(socket, host, family)?),
            None => tcp(host, family.default_port)?,
        };
        if database.is_empty() || database.contains('/') {
            return Err("names no database: it must end in /DATABASE".to_owned());
        }
        Ok(Self { family, address, user: decoded(user)?, database: decoded(database)?, tls })
    }
}

fn wrong_form() -> String {
    let schemes: Vec<&str> = FamilyFacts::of_servers().map(|family| family.schemes[0]).collect();
    let (first, others) = schemes.split_first().unwrap_or((&"", &[]));
    format!(
        "is not of the form {first}user@host:port/database or {first}user@localhost/database?socket=/path, or the \
         same with {}",
        others.join(" or ")
    )
}

/// Returns whether a colon stands in front of an `@`, or whether the query has a key for a
/// password. The password itself may hold `/`, `?` or `@`.
fn holds_password(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let (before_query, query) = rest.split_once('?').unwrap_or((rest, ""));
    let is_secret = |pair: &str| {
        let key = pair.split('=').next().unwrap_or("").to_lowercase();
        matches!(key.as_str(), "password" | "pass" | "passwd" | "pwd" | "sslpassword")
    };
    if query.split('&').any(is_secret) {
        return true;
    }
    if let Some((user, _)) = before_query.rsplit_once('@') {
        return user.contains(':');
    }
    // In `user:se?cret@host` the `@` comes only after the `?`. The text after the colon is then
    // part of a password and no port, unless it is all digits.
    let authority = before_query.split('/').next().unwrap_or("");
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_bracketed = authority.starts_with('[');
    let colon = authority.split_once(':').filter(|_| !is_bracketed);
    colon.is_some_and(|(_, port)| !is_port(port)) && rest.contains('@')
}

/// Returns the socket and the TLS settings from the part after the `?`.
fn options(query: &str, family: &FamilyFacts) -> Result<(Option<PathBuf>, Option<TlsSettings>), String> {
    let (mut socket, mut tls) = (None, TlsOptions::default());
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decoded(value)?;
        if name == "socket" {
            socket = Some(PathBuf::from(&value));
        } else {
            let option = option_of(family, name).ok_or(
                "has an unknown option after the ?; there are socket=/path, tls=MODE, tls_ca=, tls_cert= and tls_key=",
            )?;
            let is_file = !matches!(option, TlsOption::Mode) && value != SYSTEM_ROOTS;
            if is_file && !Path::new(&value).is_absolute() {
                return Err(format!(
                    "has no absolute path after {name}=; a path that is relative to the plan goes into the variant's tls table"
                ));
            }
            tls.take(option, &value)
                .map_err(|why| format!("asks for TLS in a way that dbdyno does not have: {why}"))?;
        }
    }
    match socket {
        Some(path) if !path.is_absolute() => Err("has no absolute path after socket=".to_owned()),
        socket => Ok((socket, tls.settings())),
    }
}

/// Returns the path to the socket. `given` is the socket if its name is like a socket's, and
/// otherwise the folder. Only the name can tell, because the socket does not exist before the
/// server runs.
fn socket_file(given: PathBuf, host: &str, family: &FamilyFacts) -> Result<PathBuf, String> {
    let (name, port) = match host.split_once(':') {
        Some((name, port)) if family.socket_prefix.is_some() => (name, port_of(port)?),
        _ => (host, family.default_port),
    };
    if !(name.is_empty() || name == "localhost") {
        return Err(
            "has a socket, which is on this machine, and a host other than localhost: leave the host out"
                .to_owned(),
        );
    }
    let Some(prefix) = family.socket_prefix else { return Ok(given) };
    let is_file = given.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix));
    Ok(if is_file { given } else { given.join(format!("{prefix}{port}")) })
}

fn tcp(host: &str, default_port: u16) -> Result<Address, String> {
    let (host, port) = match host.strip_prefix('[') {
        // An IPv6 address is in brackets, and its colons do not start a port.
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or("has a [ without ] around its host")?;
            (host, port.strip_prefix(':'))
        }
        None => host.split_once(':').map_or((host, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return Err(wrong_form());
    }
    let port = port.map_or(Ok(default_port), port_of)?;
    Ok(Address::Tcp { host: decoded(host)?, port })
}

fn port_of(text: &str) -> Result<u16, String> {
    let port = text.parse().ok().filter(|port| *port != 0);
    port.ok_or_else(|| "has a port that is not a number from 1 to 65535".to_owned())
}

/// Replaces every `%xx` by the byte that it stands for.
fn decoded(text: &str) -> Result<String, String> {
    let broken = || "has a % without two hexadecimal digits after it, or bytes that are not UTF-8".to_owned();
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

/// libpq's name for the certificate authorities that this machine trusts.
pub(crate) const SYSTEM_ROOTS: &str = "system";

/// A TLS option in an address or an option file.
#[derive(Debug, Clone, Copy)]
pub enum TlsOption {
    Mode,
    Ca,
    Cert,
    Key,
}

/// TLS options in dbdyno's own terms, which every family's addresses may have.
const OWN_OPTIONS: &[(&str, TlsOption)] = &[
    ("tls", TlsOption::Mode),
    ("tls_ca", TlsOption::Ca),
    ("tls_cert", TlsOption::Cert),
    ("tls_key", TlsOption::Key),
];

/// Returns the TLS option that `name` stands for in an address for a `family` server. The result is
/// `None` for any other option.
pub(crate) fn option_of(family: &FamilyFacts, name: &str) -> Option<TlsOption> {
    OWN_OPTIONS.iter().chain(family.tls_options).find(|(known, _)| *known == name).map(|(_, option)| *option)
}

/// The TLS options that have been read so far from one address or file.
#[derive(Debug, Default)]
pub struct TlsOptions {
    pub mode: Option<TlsMode>,
    ca: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    /// Whether any TLS option was read, even one whose value is not kept, such as
    /// `sslrootcert=system`.
    pub is_given: bool,
}

impl TlsOptions {
    /// Takes an option's value from an address or an option file. The error says what to write
    /// instead.
    pub fn take(&mut self, option: TlsOption, value: &str) -> Result<(), String> {
        self.is_given = true;
        let file = || Some(PathBuf::from(value));
        match option {
            TlsOption::Mode => self.mode = Some(mode(value)?),
            TlsOption::Ca if value == SYSTEM_ROOTS => {}
            TlsOption::Ca => self.ca = file(),
            TlsOption::Cert => self.cert = file(),
            TlsOption::Key => self.key = file(),
        }
        Ok(())
    }

    /// Returns the settings, or `None` if no option was given. A user who asks for TLS without a
    /// mode gets [`TlsMode::Verify`], which proves the server's identity.
    pub fn settings(self) -> Option<TlsSettings> {
        let Self { mode, ca, cert, key, is_given } = self;
        is_given.then(|| TlsSettings { mode: mode.unwrap_or_default(), ca, cert, key })
    }
}

/// Reads a mode in dbdyno's, MySQL's or libpq's terms.
fn mode(value: &str) -> Result<TlsMode, String> {
    let word = value.to_ascii_lowercase().replace('-', "_");
    match word.as_str() {
        "disable" | "disabled" => Ok(TlsMode::Off),
        "preferred" => Ok(TlsMode::Prefer),
        "required" => Ok(TlsMode::Require),
        "verify_full" | "verify_identity" => Ok(TlsMode::Verify),
        "allow" => Err("allow begins in plaintext and lets the server decide; use tls=prefer, or tls=off".to_owned()),
        "verify_ca" => Err("verify-ca checks the authority and not the host, which dbdyno does not offer; use \
                            tls=verify with a certificate that names the host, or tls=require to check neither"
            .to_owned()),
        word => TlsMode::named(word).ok_or_else(|| "tls is off, prefer, require or verify".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> String {
        match ServerAddress::parse(text) {
            Ok(ServerAddress { address, user, database, .. }) => format!("{address:?} {user:?} {database:?}"),
            Err(why) => why,
        }
    }

    #[test]
    fn addresses_are_read_in_all_their_forms() {
        let addresses = [
            "mysql://ann@db.example:3307/ib",
            "mysql://ann@db.example/ib",
            "mariadb://db.example/ib",
            "mysql://a%40b@[::1]:3306/my%2Fdb",
            "mysql://root@[::1]/ib",
            "mysql://root@localhost/ib?socket=/run/my%20sql/s.sock",
            "mysql://localhost/ib?socket=/tmp/a@b:c.sock",
            "mysql:///ib?socket=/s",
            "mysql://root@/ib?socket=/s",
            "postgres://ann@db.example/ib",
            "postgresql://ann@localhost/ib?socket=/run/postgresql",
            "postgres://ann@localhost:5433/ib?socket=/run/postgresql",
            "postgres://ann@localhost/ib?socket=/run/.s.PGSQL.5434",
            "postgres://ann@:5433/ib?socket=/run/postgresql&",
        ];
        insta::assert_snapshot!(addresses.map(parsed).join("\n"), @r#"
        Tcp { host: "db.example", port: 3307 } "ann" "ib"
        Tcp { host: "db.example", port: 3306 } "ann" "ib"
        Tcp { host: "db.example", port: 3306 } "" "ib"
        Tcp { host: "::1", port: 3306 } "a@b" "my/db"
        Tcp { host: "::1", port: 3306 } "root" "ib"
        Socket("/run/my sql/s.sock") "root" "ib"
        Socket("/tmp/a@b:c.sock") "" "ib"
        Socket("/s") "" "ib"
        Socket("/s") "root" "ib"
        Tcp { host: "db.example", port: 5432 } "ann" "ib"
        Socket("/run/postgresql/.s.PGSQL.5432") "ann" "ib"
        Socket("/run/postgresql/.s.PGSQL.5433") "ann" "ib"
        Socket("/run/.s.PGSQL.5434") "ann" "ib"
        Socket("/run/postgresql/.s.PGSQL.5433") "ann" "ib"
        "#);
    }

    #[test]
    fn a_password_is_found_anywhere_in_an_address_and_never_quoted() {
        for address in [
            "mysql://root:hunter2@localhost/bench",
            "mysql://root:@localhost/bench",
            "mysql://root:hunt/er2@localhost/bench",
            "mysql://root:hunt?er2@localhost/bench",
            "mysql://root:hunt@er2@localhost/bench",
            "postgres://root:hunter2@localhost/bench",
            "root:hunter2@localhost",
            "mysql://root@localhost/bench?password=hunter2",
            "mysql://root@localhost/bench?socket=/s&PWD=hunter2",
        ] {
            let message = parsed(address);
            assert!(message.starts_with("holds a password"), "{address}: {message}");
            assert!(!message.contains("hunt"), "{message}");
        }
    }

    #[test]
    fn errors_say_what_is_wrong_and_never_quote_the_address() {
        let addresses = [
            "oracle://ann@h/d",
            "mysql://",
            "mysql://@localhost/d",
            "mysql://@@localhost/d",
            "mysql://ann@/d",
            "mysql://ann@:3306/d",
            "mysql://ann@[::1/d",
            "mysql://ann@h:99999/d",
            "mysql://ann@h:0/d",
            "mysql://ann@h:abc/d",
            "mysql://ann@h",
            "mysql://ann@h/d/e",
            "mysql://ann@h/%zz",
            "mysql://ann@h/d?ssl=1",
            "mysql://ann@h/d?socket=/s",
            "mysql://ann@localhost:3306/d?socket=/s",
            "mysql://ann@[::1]/d?socket=/s",
            "mysql://ann@/d?socket=s",
        ];
        let form = wrong_form();
        let errors = addresses.map(parsed).join("\n").replace(&form, "is not of the form");
        insta::assert_snapshot!(errors, @r"
        is not of the form
        is not of the form
        is not of the form
        is not of the form
        is not of the form
        is not of the form
        has a [ without ] around its host
        has a port that is not a number from 1 to 65535
        has a port that is not a number from 1 to 65535
        has a port that is not a number from 1 to 65535
        names no database: it must end in /DATABASE
        names no database: it must end in /DATABASE
        has a % without two hexadecimal digits after it, or bytes that are not UTF-8
        has an unknown option after the ?; there are socket=/path, tls=MODE, tls_ca=, tls_cert= and tls_key=
        has a socket, which is on this machine, and a host other than localhost: leave the host out
        has a socket, which is on this machine, and a host other than localhost: leave the host out
        has a socket, which is on this machine, and a host other than localhost: leave the host out
        has no absolute path after socket=
        ");
        insta::assert_snapshot!(form, @"is not of the form mysql://user@host:port/database or mysql://user@localhost/database?socket=/path, or the same with postgres://");
    }

    fn tls(scheme: &str, query: &str) -> String {
        match ServerAddress::parse(&format!("{scheme}://u@h/d?{query}")).map(|address| address.tls) {
            Ok(Some(TlsSettings { mode, ca, cert, key })) => format!("{mode:?} {ca:?} {cert:?} {key:?}"),
            Ok(None) => "nothing".to_owned(),
            Err(why) => why,
        }
    }

    #[test]
    fn tls_options_are_read_in_dbdynos_terms_and_in_those_of_each_family() {
        let read = [
            tls("mysql", ""),
            tls("mysql", "tls=require"),
            tls("mysql", "tls_ca=/c%20a.pem"),
            tls("mysql", "ssl-mode=VERIFY_IDENTITY&ssl-ca=/ca&ssl-cert=/c&ssl-key=/k"),
            tls("mysql", "ssl-mode=DISABLED"),
            tls("postgres", "sslmode=verify-full&sslrootcert=/ca&sslcert=/c&sslkey=/k"),
            tls("postgres", "sslmode=verify-full&sslrootcert=system"),
            tls("postgres", "sslmode=disable"),
            tls("postgres", "tls=prefer"),
        ];
        insta::assert_snapshot!(read.join("\n"), @r#"
        nothing
        Require None None None
        Verify Some("/c a.pem") None None
        Verify Some("/ca") Some("/c") Some("/k")
        Off None None None
        Verify Some("/ca") Some("/c") Some("/k")
        Verify None None None
        Off None None None
        Prefer None None None
        "#);
        assert!(tls("mysql", "sslmode=require").starts_with("has an unknown option"));
    }

    #[test]
    fn tls_options_that_dbdyno_lacks_are_refused_with_what_to_write_instead() {
        let refused = [
            tls("postgres", "sslmode=allow"),
            tls("postgres", "sslmode=verify-ca"),
            tls("mysql", "tls=yes"),
            tls("mysql", "tls_ca=ca.pem"),
        ];
        insta::assert_snapshot!(refused.join("\n"), @r"
        asks for TLS in a way that dbdyno does not have: allow begins in plaintext and lets the server decide; use tls=prefer, or tls=off
        asks for TLS in a way that dbdyno does not have: verify-ca checks the authority and not the host, which dbdyno does not offer; use tls=verify with a certificate that names the host, or tls=require to check neither
        asks for TLS in a way that dbdyno does not have: tls is off, prefer, require or verify
        has no absolute path after tls_ca=; a path that is relative to the plan goes into the variant's tls table
        ");
    }
}
