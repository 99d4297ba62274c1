//! Where TLS to a server of others is asked for: the address, the plan, or a MySQL option file; in
//! whose words.

use std::path::Path;

use dbdyno_model::TlsSettings;
use dbdyno_products::TlsOption;

use super::{decoded, wrong};
use crate::Family;
use crate::server::Error;
use crate::server::tls_options::{SYSTEM_ROOTS, TlsOptions};

/// Words of an address that are known for servers of every kind.
const OURS: &[(&str, TlsOption)] = &[
    ("tls", TlsOption::Mode),
    ("tls_ca", TlsOption::Ca),
    ("tls_cert", TlsOption::Cert),
    ("tls_key", TlsOption::Key),
];

fn option(family: Family, name: &str) -> Option<TlsOption> {
    OURS.iter().chain(family.facts().tls_options).find(|(known, _)| *known == name).map(|(_, option)| *option)
}

/// Whether `name`, after the `?` of an address, is about TLS.
pub(super) fn is_key(family: Family, name: &str) -> bool {
    option(family, name).is_some()
}

/// What `address` and the plan's own words ask for, else what `option_file` does. `None` when no
/// one speaks of TLS. Refused when address and plan both speak of TLS.
pub fn tls_settings(
    family: Family,
    address: &str,
    plan: Option<TlsSettings>,
    option_file: Option<&Path>,
) -> Result<Option<TlsSettings>, Error> {
    let in_address = of_address(family, address)?;
    match (in_address, plan, option_file) {
        (Some(_), Some(_), _) => Err(wrong("TLS is set in the address and in the variant; keep one")),
        (Some(settings), None, _) | (None, Some(settings), _) => Ok(Some(settings)),
        (None, None, Some(path)) => family.tls_of_file(path),
        (None, None, None) => Ok(None),
    }
}

fn of_address(family: Family, address: &str) -> Result<Option<TlsSettings>, Error> {
    let mut tls = TlsOptions::default();
    let query = address.split_once('?').map_or("", |(_, query)| query);
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let Some(option) = option(family, name) else { continue };
        let value = decoded(value)?;
        let is_file = !matches!(option, TlsOption::Mode) && value != SYSTEM_ROOTS;
        if is_file && !Path::new(&value).is_absolute() {
            return Err(wrong(format!(
                "{name}= needs an absolute path; a path that is relative to the plan goes into the variant's tls table"
            )));
        }
        tls.take(option, &value).map_err(wrong)?;
    }
    Ok(tls.settings())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use dbdyno_model::TlsMode;

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
        let of = |family: Family, query: &str| shown(of_address(family, &format!("x://u@h/d?{query}")));
        let reported = [
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
        insta::assert_snapshot!(reported.join("\n"), @r#"
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
        let of = |family: Family, query: &str| {
            shown(of_address(family, &format!("x://u@h/d?{query}")))
                .replace("; write mysql://user@host:port/database or postgres://user@host:port/database", "")
        };
        let reported = [
            of(Family::Postgres, "sslmode=allow"),
            of(Family::Postgres, "sslmode=verify-ca"),
            of(Family::Mysql, "tls=yes"),
            of(Family::Mysql, "tls_ca=ca.pem"),
        ];
        insta::assert_snapshot!(reported.join("\n"), @r"
        server address: allow begins in clear and lets the server decide; use tls=prefer, or tls=off
        server address: verify-ca checks the authority and not the host, which dbdyno does not offer; use tls=verify with a certificate that names the host, or tls=require to check neither
        server address: tls is off, prefer, require or verify
        server address: tls_ca= needs an absolute path; a path that is relative to the plan goes into the variant's tls table
        ");
        assert!(!is_key(Family::Mysql, "sslmode") && is_key(Family::Postgres, "sslmode"));
    }

    #[test]
    fn the_option_file_is_asked_last_and_its_paths_are_relative_to_it() {
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
                .contains("in the address and in the variant")
        );
        assert_eq!(tls_settings(Family::Postgres, "postgres://u@h/d", None, Some(&path)).unwrap(), None);
    }
}
