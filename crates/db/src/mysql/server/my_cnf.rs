//! Reads MySQL option files: the settings that dbdyno must know before a server starts, logins, and
//! TLS settings.

use std::fs;
use std::path::{Path, PathBuf};

use dbdyno_model::{TlsMode, TlsSettings};
use dbdyno_products::TlsOptions;
use dbdyno_products::mysql::FACTS;
use dbdyno_products::mysql::option_file::{Item, is_read, items};

use crate::server::base::FileLogin;
use crate::server::intents::plain_name;
use crate::server::{Base, Error, OwnConfig};

/// Settings that put part of the data elsewhere. With an absolute path, the files would outlive the
/// data directory, and the next block's server would find files that are not its own.
const DATA_PATHS: &[&str] = &[
    "aria_log_dir_path",
    "innodb_data_home_dir",
    "innodb_doublewrite_dir",
    "innodb_log_group_home_dir",
    "innodb_undo_directory",
    "log_bin",
    "relay_log",
    "rocksdb_datadir",
    "rocksdb_wal_dir",
];

/// Depth to which includes may nest, which is also the servers' limit.
const MAX_DEPTH: usize = 10;

/// Implements [`crate::Family::own_config`], and follows includes.
pub(in crate::mysql) fn own_config(base: &Base, path: &Path) -> Result<OwnConfig, Error> {
    let wrong = |why: String| Error::OptionFile { path: path.to_path_buf(), why };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let mut settings = Vec::new();
    collect(path, &text, base, MAX_DEPTH, &mut settings)?;
    match outside_path(&settings) {
        Some(name) => Err(wrong(format!(
            "{name} is an absolute path; dbdyno makes a fresh data directory for each cell and keeps everything \
             in it: leave the line out or make it relative"
        ))),
        None => Ok(OwnConfig { settings, text }),
    }
}

/// Returns the first setting in [`DATA_PATHS`] that has an absolute path.
fn outside_path(settings: &[(String, Option<String>)]) -> Option<&str> {
    let absolute = |value: &Option<String>| value.as_deref().is_some_and(|value| value.starts_with('/'));
    settings
        .iter()
        .find(|(name, value)| DATA_PATHS.contains(&plain_name(name)) && absolute(value))
        .map(|(name, _)| name.as_str())
}

/// Collects what `text`, from the file at `path`, sets in the groups that a `base` server reads.
fn collect(
    path: &Path,
    text: &str,
    base: &Base,
    depth: usize,
    settings: &mut Vec<(String, Option<String>)>,
) -> Result<(), Error> {
    let wrong = |why: String| Error::OptionFile { path: path.to_path_buf(), why };
    if depth == 0 {
        return Err(wrong("includes are nested too deeply".to_owned()));
    }
    for item in items(text) {
        let files = match item.map_err(wrong)? {
            Item::Setting { group, name, value, .. } => {
                if is_read(&group, base.product, base.release) {
                    settings.push((name, value));
                }
                continue;
            }
            Item::Include { path, folder: false } => vec![PathBuf::from(path)],
            Item::Include { path, folder: true } => option_files_in(Path::new(&path))?,
        };
        for file in files {
            let wrong =
                |error: std::io::Error| Error::OptionFile { path: file.clone(), why: error.to_string() };
            let text = std::fs::read_to_string(&file).map_err(wrong)?;
            collect(&file, &text, base, depth - 1, settings)?;
        }
    }
    Ok(())
}

/// Lists the option files in `folder` that an include of the folder reads, sorted by name.
fn option_files_in(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let wrong =
        |error: std::io::Error| Error::OptionFile { path: folder.to_path_buf(), why: error.to_string() };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        if path.extension().is_some_and(|extension| extension == "cnf") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Reads user and password from an option file's `[client]` group.
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

/// Reads TLS settings from an option file's `[client]` group. Relative paths are relative to the
/// file's folder.
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
    use dbdyno_products::Product;
    use dbdyno_products::mysql::{MARIADB, MYSQL};

    use super::*;

    fn read(
        text: &str,
        product: &'static Product,
        version: (u32, u32, u32),
    ) -> Result<Vec<(String, Option<String>)>, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my.cnf");
        std::fs::write(&path, text.replace("FOLDER", folder.path().to_str().unwrap())).unwrap();
        std::fs::write(folder.path().join("more.cnf"), "[mysqld]\ninnodb_undo_tablespaces=3\n").unwrap();
        Ok(own_config(&Base::sample(product, version), &path)?.settings)
    }

    #[test]
    fn includes_are_followed_where_they_stand() {
        let text = "[client]\nuser=x\n[mysqld]\nport = 1\n!include FOLDER/more.cnf\n[mysqld]\nskip-ssl\n";
        let names = |version| {
            let settings = read(text, MYSQL, version).unwrap();
            settings.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names((8, 0, 31)), "port innodb_undo_tablespaces skip_ssl");
    }

    #[test]
    fn mariadb_groups_are_read_by_mariadb_only() {
        let has_any = |product, version| {
            !read("[mariadb-10.11]\nssl-cert=x.pem\n", product, version).unwrap().is_empty()
        };
        assert!(has_any(MARIADB, (10, 11, 5)));
        assert!(!has_any(MARIADB, (10, 5, 5)) && !has_any(MYSQL, (8, 0, 31)));
    }

    #[test]
    fn data_outside_the_data_directory_is_refused() {
        let text = "[mysqld]\nloose-innodb_log_group_home_dir = /mnt/redo\n";
        let message = read(text, MYSQL, (8, 0, 31)).unwrap_err().to_string();
        assert!(message.contains("innodb_log_group_home_dir is an absolute path"), "{message}");
        assert!(read("[mysqld]\nlog_bin = binlog\n", MYSQL, (8, 0, 31)).is_ok());
    }

    #[test]
    fn an_absent_file_is_named() {
        let base = Base::sample(MYSQL, (8, 0, 31));
        let message = own_config(&base, Path::new("/nowhere/my.cnf")).err().unwrap().to_string();
        assert_eq!(message, "option file /nowhere/my.cnf: No such file or directory (os error 2)");
    }

    #[test]
    fn mariadb_switches_are_applied() {
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
