//! Reads logins and TLS settings from MySQL option files.

use std::fs;
use std::path::{Path, PathBuf};

use dbdyno_model::{TlsMode, TlsSettings};
use dbdyno_products::TlsOptions;
use dbdyno_products::mysql::FACTS;
use dbdyno_products::mysql::option_file::{Item, items};

use crate::server::Error;
use crate::server::family::FileLogin;

/// User and password from an option file's `[client]` group.
pub(in crate::mysql) fn login_of_file(path: &Path) -> Result<FileLogin, Error> {
    let wrong = |why: String| Error::OptionFile { path: path.to_path_buf(), why };
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let mut client = FileLogin::default();
    for item in items(&text) {
        match item.map_err(wrong)? {
            Item::Include { .. } => {
                return Err(wrong(
                    "it includes another file; name the file that has the [client] group".to_owned(),
                ));
            }
            Item::Setting { group, name, value, .. } if group == "client" => match name.as_str() {
                "user" => client.user = value,
                "password" => client.password = value,
                _ => {}
            },
            Item::Setting { .. } => {}
        }
    }
    Ok(client)
}

/// TLS settings from an option file's `[client]` group.
pub(in crate::mysql) fn tls_of_file(path: &Path) -> Result<Option<TlsSettings>, Error> {
    let wrong = |why: String| Error::OptionFile { path: path.to_path_buf(), why };
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let mut tls = TlsOptions::default();
    for item in items(&text) {
        let Item::Setting { group, name, value, .. } = item.map_err(wrong)? else { continue };
        if group == "client" {
            take_switch(&mut tls, &name, value.as_deref());
        }
        let known = FACTS.tls_options.iter().find(|(known, _)| known.replace('-', "_") == name);
        if let (Some((_, option)), Some(value), "client") = (known, value, group.as_str()) {
            tls.take(*option, &value).map_err(wrong)?;
        }
    }
    let in_its_folder = |file: Option<PathBuf>| {
        file.map(|file| path.parent().map_or_else(|| file.clone(), |folder| folder.join(&file)))
    };
    Ok(tls.settings().map(|settings| TlsSettings {
        ca: in_its_folder(settings.ca),
        cert: in_its_folder(settings.cert),
        key: in_its_folder(settings.key),
        ..settings
    }))
}

/// Applies MariaDB's switches: `ssl`, `skip-ssl`, `ssl-verify-server-cert`.
fn take_switch(tls: &mut TlsOptions, name: &str, value: Option<&str>) {
    let is_on = !matches!(value.map(str::to_ascii_lowercase).as_deref(), Some("0" | "off" | "false"));
    let mode = match (name, is_on) {
        ("ssl", true) => None,
        ("ssl", false) | ("skip_ssl", true) => Some(TlsMode::Off),
        ("ssl_verify_server_cert", true) => Some(TlsMode::Verify),
        ("ssl_verify_server_cert", false) => Some(TlsMode::Require),
        _ => return,
    };
    tls.is_given = true;
    tls.mode = mode.or(tls.mode);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_of_mariadb_are_heeded() {
        let of = |line: &str| {
            let file = tempfile::NamedTempFile::new().unwrap();
            fs::write(file.path(), format!("[client]\n{line}\n[mysqld]\nskip-ssl\n")).unwrap();
            tls_of_file(file.path()).unwrap().map(|settings| settings.mode)
        };
        assert_eq!(of("user=x"), None);
        assert_eq!(of("ssl"), Some(TlsMode::Verify));
        assert_eq!(of("ssl = 0"), Some(TlsMode::Off));
        assert_eq!(of("skip-ssl"), Some(TlsMode::Off));
        assert_eq!(of("ssl-verify-server-cert"), Some(TlsMode::Verify));
        assert_eq!(of("ssl\nssl-verify-server-cert=OFF"), Some(TlsMode::Require));
    }
}
