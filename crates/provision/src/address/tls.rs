//! Where TLS to a server of others is asked for: the address, the plan, or a MySQL option file; in whose words.

use std::fs;
use std::path::{Path, PathBuf};

use dbdyno_drivers::{TlsMode, TlsSettings};

use super::{Family, decoded};
use crate::Error;
use crate::option_file::{self, Item};

/// What a word asks for.
#[derive(Debug, Clone, Copy)]
enum Word {
    Mode,
    Ca,
    Cert,
    Key,
}

/// Words of an address that are known for servers of every kind.
const OURS: &[(&str, Word)] =
    &[("tls", Word::Mode), ("tls_ca", Word::Ca), ("tls_cert", Word::Cert), ("tls_key", Word::Key)];

/// The words of MySQL's own tools; in option files with `_`.
const OF_MYSQL: &[(&str, Word)] =
    &[("ssl-mode", Word::Mode), ("ssl-ca", Word::Ca), ("ssl-cert", Word::Cert), ("ssl-key", Word::Key)];

/// The words of libpq.
const OF_POSTGRES: &[(&str, Word)] =
    &[("sslmode", Word::Mode), ("sslrootcert", Word::Ca), ("sslcert", Word::Cert), ("sslkey", Word::Key)];

/// libpq's name for the authorities that this machine trusts.
const SYSTEM_ROOTS: &str = "system";

fn word(family: Family, name: &str) -> Option<Word> {
    let theirs = match family {
        Family::Mysql => OF_MYSQL,
        Family::Postgres => OF_POSTGRES,
    };
    OURS.iter().chain(theirs).find(|(known, _)| *known == name).map(|(_, word)| *word)
}

/// Whether `name`, after the `?` of an address, is about TLS.
pub(super) fn is_key(family: Family, name: &str) -> bool {
    word(family, name).is_some()
}

/// What `address` and the plan's own words ask for; of MySQL else what the `[client]` group of `option_file` does. `None`
/// when no one speaks of TLS.
///
/// # Errors
/// [`Error::Address`] for a word that is not understood, or when address and plan both speak of TLS;
/// [`Error::OptionFile`].
pub fn tls_settings(
    family: Family,
    address: &str,
    plan: Option<TlsSettings>,
    option_file: Option<&Path>,
) -> Result<Option<TlsSettings>, Error> {
    let told = of_address(family, address)?;
    match (told, plan, option_file) {
        (Some(_), Some(_), _) => {
            Err(wrong("it speaks of TLS, and so does the variant's tls; say it in one of the two places"))
        }
        (Some(settings), None, _) | (None, Some(settings), _) => Ok(Some(settings)),
        (None, None, Some(path)) if family == Family::Mysql => of_option_file(path),
        _ => Ok(None),
    }
}

fn wrong(why: impl Into<String>) -> Error {
    Error::Address { why: why.into() }
}

/// What has been said so far.
#[derive(Debug, Default)]
struct Said {
    mode: Option<TlsMode>,
    ca: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    /// Someone spoke of TLS.
    anything: bool,
}

impl Said {
    fn take(&mut self, word: Word, value: &str) -> Result<(), String> {
        self.anything = true;
        let file = || Some(PathBuf::from(value));
        match word {
            Word::Mode => self.mode = Some(mode(value)?),
            Word::Ca if value == SYSTEM_ROOTS => {}
            Word::Ca => self.ca = file(),
            Word::Cert => self.cert = file(),
            Word::Key => self.key = file(),
        }
        Ok(())
    }

    /// MariaDB's switches: `ssl`, `skip-ssl`, `ssl-verify-server-cert`.
    fn take_switch(&mut self, name: &str, value: Option<&str>) {
        let is_on = !matches!(value.map(str::to_ascii_lowercase).as_deref(), Some("0" | "off" | "false"));
        let mode = match (name, is_on) {
            ("ssl", true) => None,
            ("ssl", false) | ("skip_ssl", true) => Some(TlsMode::Off),
            ("ssl_verify_server_cert", true) => Some(TlsMode::Verify),
            ("ssl_verify_server_cert", false) => Some(TlsMode::Require),
            _ => return,
        };
        self.anything = true;
        self.mode = mode.or(self.mode);
    }

    /// `None` when nothing was said. Who asks for TLS without saying how is given proof of who answers.
    fn settings(self) -> Option<TlsSettings> {
        let Self { mode, ca, cert, key, anything } = self;
        anything.then(|| TlsSettings { mode: mode.unwrap_or_default(), ca, cert, key })
    }
}

/// A mode in our words, MySQL's or libpq's.
fn mode(value: &str) -> Result<TlsMode, String> {
    let word = value.to_ascii_lowercase().replace('-', "_");
    match word.as_str() {
        "disable" | "disabled" => Ok(TlsMode::Off),
        "preferred" => Ok(TlsMode::Prefer),
        "required" => Ok(TlsMode::Require),
        "verify_full" | "verify_identity" => Ok(TlsMode::Verify),
        "allow" => Err("allow begins in clear and lets the server decide; say tls=prefer, or tls=off".to_owned()),
        "verify_ca" => Err("verify-ca checks the authority and not the host, which dbdyno does not offer; say \
                            tls=verify with a certificate that names the host, or tls=require to check neither"
            .to_owned()),
        word => TlsMode::named(word).ok_or_else(|| "tls is off, prefer, require or verify".to_owned()),
    }
}

fn of_address(family: Family, address: &str) -> Result<Option<TlsSettings>, Error> {
    let mut said = Said::default();
    let query = address.split_once('?').map_or("", |(_, query)| query);
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let Some(word) = word(family, name) else { continue };
        let value = decoded(value)?;
        let is_file = !matches!(word, Word::Mode) && value != SYSTEM_ROOTS;
        if is_file && !Path::new(&value).is_absolute() {
            return Err(wrong(format!(
                "{name}= needs an absolute path; a path that is relative to the plan goes into the variant's tls table"
            )));
        }
        said.take(word, &value).map_err(wrong)?;
    }
    Ok(said.settings())
}

fn of_option_file(path: &Path) -> Result<Option<TlsSettings>, Error> {
    let wrong = |why: String| Error::OptionFile { path: path.to_path_buf(), why };
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let mut said = Said::default();
    for item in option_file::parse(&text).map_err(wrong)? {
        let Item::Setting { group, name, value } = item else { continue };
        if group == "client" {
            said.take_switch(&name, value.as_deref());
        }
        let known = OF_MYSQL.iter().find(|(known, _)| known.replace('-', "_") == name);
        if let (Some((_, word)), Some(value), "client") = (known, value, group.as_str()) {
            said.take(*word, &value).map_err(wrong)?;
        }
    }
    let beside = |file: Option<PathBuf>| {
        file.map(|file| path.parent().map_or_else(|| file.clone(), |folder| folder.join(&file)))
    };
    Ok(said.settings().map(|settings| TlsSettings {
        ca: beside(settings.ca),
        cert: beside(settings.cert),
        key: beside(settings.key),
        ..settings
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(found: Result<Option<TlsSettings>, Error>) -> String {
        match found {
            Ok(Some(TlsSettings { mode, ca, cert, key })) => format!("{mode:?} {ca:?} {cert:?} {key:?}"),
            Ok(None) => "nothing".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn tls_is_read_from_addresses_in_our_words_and_in_those_of_each_family() {
        let of = |family, query: &str| shown(of_address(family, &format!("x://u@h/d?{query}")));
        let told = [
            of(Family::Mysql, "socket=/s"),
            of(Family::Mysql, "tls=require"),
            of(Family::Mysql, "socket=/s&tls_ca=/c%20a.pem"),
            of(Family::Mysql, "ssl-mode=VERIFY_IDENTITY&ssl-ca=/ca&ssl-cert=/c&ssl-key=/k"),
            of(Family::Mysql, "ssl-mode=DISABLED"),
            of(Family::Postgres, "sslmode=verify-full&sslrootcert=/ca&sslcert=/c&sslkey=/k"),
            of(Family::Postgres, "sslmode=verify-full&sslrootcert=system"),
            of(Family::Postgres, "sslmode=disable"),
            of(Family::Postgres, "tls=prefer"),
        ];
        insta::assert_snapshot!(told.join("\n"), @r#"
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
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_what_to_say_instead() {
        let of = |family, query: &str| {
            shown(of_address(family, &format!("x://u@h/d?{query}")))
                .replace("; write mysql://user@host:port/database or postgres://user@host:port/database", "")
        };
        let told = [
            of(Family::Postgres, "sslmode=allow"),
            of(Family::Postgres, "sslmode=verify-ca"),
            of(Family::Mysql, "tls=yes"),
            of(Family::Mysql, "tls_ca=ca.pem"),
        ];
        insta::assert_snapshot!(told.join("\n"), @r"
        server address: allow begins in clear and lets the server decide; say tls=prefer, or tls=off
        server address: verify-ca checks the authority and not the host, which dbdyno does not offer; say tls=verify with a certificate that names the host, or tls=require to check neither
        server address: tls is off, prefer, require or verify
        server address: tls_ca= needs an absolute path; a path that is relative to the plan goes into the variant's tls table
        ");
        assert!(!is_key(Family::Mysql, "sslmode") && is_key(Family::Postgres, "sslmode"));
    }

    #[test]
    fn switches_of_mariadb_are_heeded() {
        let of = |line: &str| {
            let file = tempfile::NamedTempFile::new().unwrap();
            fs::write(file.path(), format!("[client]\n{line}\n[mysqld]\nskip-ssl\n")).unwrap();
            of_option_file(file.path()).unwrap().map(|settings| settings.mode)
        };
        assert_eq!(of("user=x"), None);
        assert_eq!(of("ssl"), Some(TlsMode::Verify));
        assert_eq!(of("ssl = 0"), Some(TlsMode::Off));
        assert_eq!(of("skip-ssl"), Some(TlsMode::Off));
        assert_eq!(of("ssl-verify-server-cert"), Some(TlsMode::Verify));
        assert_eq!(of("ssl\nssl-verify-server-cert=OFF"), Some(TlsMode::Require));
    }

    #[test]
    fn the_option_file_is_asked_last_and_its_paths_lie_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my.cnf");
        let text =
            "[mysqld]\nssl-ca=/theirs\n[client]\nssl-mode=VERIFY_IDENTITY\nssl_ca=ca.pem\nssl-key=/k\n";
        fs::write(&path, text).unwrap();
        let find = |address: &str, plan| tls_settings(Family::Mysql, address, plan, Some(&path));
        let verified = TlsSettings {
            mode: TlsMode::Verify,
            ca: Some(folder.path().join("ca.pem")),
            cert: None,
            key: Some("/k".into()),
        };
        assert_eq!(find("mysql://u@h/d", None).unwrap(), Some(verified));
        let off = TlsSettings { mode: TlsMode::Off, ..TlsSettings::default() };
        assert_eq!(find("mysql://u@h/d?tls=off", None).unwrap(), Some(off.clone()));
        assert_eq!(find("mysql://u@h/d", Some(off.clone())).unwrap(), Some(off.clone()));
        assert!(
            find("mysql://u@h/d?tls=off", Some(off))
                .unwrap_err()
                .to_string()
                .contains("in one of the two places")
        );
        assert_eq!(tls_settings(Family::Postgres, "postgres://u@h/d", None, Some(&path)).unwrap(), None);
    }
}
