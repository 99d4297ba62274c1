//! The entry for a server in the servers folder. It records the server's origin and its answers to
//! a probe.
//!
//! The server entry for `NAME` is the file `NAME.toml` next to it. dbdyno removes no server without
//! a server entry.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use dbdyno_db::server::{Abilities, Base};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::build::BuildFacts;

const HEAD: &str = "# What dbdyno knows about the server next to this file. `dbdyno servers \
                    remove` needs it.\n";

/// A server's origin and its answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerEntry {
    pub origin: ServerOrigin,
    pub source: String,
    /// The answers; `None` until the server has been probed.
    pub answer: Option<ProbeAnswer>,
    /// What the server was built from, if dbdyno has built it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<BuildFacts>,
}

/// The base directory's origin, which determines whether dbdyno may remove it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerOrigin {
    /// dbdyno has fetched it, so dbdyno may remove it.
    Got,
    /// dbdyno has built it, so dbdyno may remove it.
    Built,
    /// It is outside the servers folder and belongs to the user. dbdyno may remove only the link to
    /// it.
    Added,
    /// The user has put it into the servers folder, so dbdyno may not remove it.
    Found,
}

/// A server's answers to a probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeAnswer {
    /// `MariaDB`, `MySQL`, `Percona Server` or `PostgreSQL`.
    pub product: String,
    /// The version as the server writes it: `10.11.19-MariaDB-0+deb12u1`.
    pub version: String,
    /// Size and modification time of the server's program. If they differ from the current ones,
    /// another program gave the answers.
    pub program: String,
    /// Time for making a data directory and starting, up to the first answer, in milliseconds.
    pub start_ms: u64,
    pub abilities: Abilities,
    /// The server's settings without an option file, as the server writes them. Some depend on this
    /// machine.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
}

impl ServerEntry {
    /// Reads the server entry for `name`. The result is `None` when there is none.
    pub(crate) fn read(servers_dir: &Path, name: &str) -> Result<Option<Self>, Error> {
        let path = path(servers_dir, name);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("cannot read", path)(error)),
        };
        toml::from_str(&text).map(Some).map_err(|error| Error::ServerEntry {
            path,
            why: error.message().lines().next().unwrap_or("").to_owned(),
        })
    }

    /// Writes the server entry for `name`, completely or not at all.
    pub(crate) fn write(&self, servers_dir: &Path, name: &str) -> Result<(), Error> {
        let path = path(servers_dir, name);
        let text = toml::to_string(self).expect("a server_entry holds texts, numbers and lists of texts");
        let new = servers_dir.join(format!(".{name}.new"));
        fs::write(&new, format!("{HEAD}{text}")).map_err(Error::io("cannot write", new.clone()))?;
        fs::rename(&new, &path).map_err(Error::io("cannot write", path))
    }

    /// Removes the server entry for `name`. A missing one is no error.
    pub(crate) fn remove(servers_dir: &Path, name: &str) -> Result<(), Error> {
        let path = path(servers_dir, name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("cannot remove", path)(error))
            }
            _ => Ok(()),
        }
    }

    /// The answers of the server in `base_dir`, if the probe included the settings and the program
    /// has not changed since.
    pub fn current_answer(&self, base_dir: &Path) -> Option<&ProbeAnswer> {
        let is_whole = |answer: &&ProbeAnswer| !answer.settings.is_empty();
        let answer = self.answer.as_ref().filter(is_whole)?;
        (fingerprint(base_dir).as_deref() == Some(&answer.program)).then_some(answer)
    }
}

/// The answers of the server `name` in the servers folder to its last probe. The result is `None`
/// if the server was not probed or its program has changed since.
pub fn answer_of(servers_dir: &Path, name: &str) -> Option<ProbeAnswer> {
    let server_entry = ServerEntry::read(servers_dir, name).ok()??;
    server_entry.current_answer(&servers_dir.join(name)).cloned()
}

fn path(servers_dir: &Path, name: &str) -> PathBuf {
    servers_dir.join(format!("{name}.toml"))
}

/// Size in bytes and modification time of the server program in `base_dir`. They change when the
/// program is rebuilt in the same folder.
pub(crate) fn fingerprint(base_dir: &Path) -> Option<String> {
    let file = fs::metadata(Base::program_in(base_dir)?).ok()?;
    Some(format!("{} bytes, changed {}.{:09}", file.len(), file.mtime(), file.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use dbdyno_db::server::{ThreadPool, TlsAbility};

    use super::*;

    fn server_entry(program: &str) -> ServerEntry {
        let abilities = Abilities {
            engines: vec!["InnoDB".to_owned(), "ROCKSDB".to_owned()],
            default_engine: "InnoDB 10.11.19".to_owned(),
            thread_pool: ThreadPool::BuiltIn,
            logins: vec!["ed25519".to_owned(), "mysql_native_password".to_owned()],
            default_login: "mysql_native_password".to_owned(),
            tls: TlsAbility::WithCertificate,
            aio: vec!["io_uring".to_owned()],
            ..Abilities::default()
        };
        let answer = ProbeAnswer {
            product: "MariaDB".to_owned(),
            version: "10.11.19-MariaDB".to_owned(),
            program: program.to_owned(),
            start_ms: 110,
            abilities,
            settings: [("log_bin".to_owned(), "OFF".to_owned())].into(),
        };
        ServerEntry { origin: ServerOrigin::Got, source: "Debian bookworm".to_owned(), answer: Some(answer), build: None }
    }

    #[test]
    fn an_entry_is_readable_text_and_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        server_entry("1 byte").write(folder.path(), "a").unwrap();
        assert_eq!(ServerEntry::read(folder.path(), "a").unwrap(), Some(server_entry("1 byte")));
        insta::assert_snapshot!(fs::read_to_string(folder.path().join("a.toml")).unwrap(), @r#"
        # What dbdyno knows about the server next to this file. `dbdyno servers remove` needs it.
        origin = "got"
        source = "Debian bookworm"

        [answer]
        product = "MariaDB"
        version = "10.11.19-MariaDB"
        program = "1 byte"
        start_ms = 110

        [answer.abilities]
        engines = ["InnoDB", "ROCKSDB"]
        default_engine = "InnoDB 10.11.19"
        thread_pool = "built-in"
        logins = ["ed25519", "mysql_native_password"]
        default_login = "mysql_native_password"
        tls = "with-certificate"
        aio = ["io_uring"]
        jit = false

        [answer.settings]
        log_bin = "OFF"
        "#);
        ServerEntry::remove(folder.path(), "a").unwrap();
        ServerEntry::remove(folder.path(), "a").unwrap();
        assert_eq!(ServerEntry::read(folder.path(), "a").unwrap(), None);
    }

    #[test]
    fn an_answer_counts_until_the_program_is_built_again() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("bin/mysqld");
        fs::create_dir(folder.path().join("bin")).unwrap();
        fs::write(&program, "one").unwrap();
        let server_entry = server_entry(&fingerprint(folder.path()).unwrap());
        assert!(server_entry.current_answer(folder.path()).is_some());
        fs::write(&program, "other").unwrap();
        assert!(server_entry.current_answer(folder.path()).is_none());
    }

    #[test]
    fn the_error_for_a_damaged_entry_names_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.toml"), "origin = \"stolen\"\n").unwrap();
        let message = ServerEntry::read(folder.path(), "a").unwrap_err().to_string();
        let message = message.replace(folder.path().to_str().unwrap(), "FOLDER");
        insta::assert_snapshot!(message, @"FOLDER/a.toml was changed or damaged (unknown variant `stolen`, expected one of `got`, `added`, `found`); remove the file, and dbdyno probes the server again");
    }
}
