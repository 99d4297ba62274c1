//! Tests that get, add and remove real servers, from a tarball and from a base directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use dbdyno_db::server::{Abilities, Base, ThreadPool, TlsAbility, list, servers_dir};
use dbdyno_fetch::{self as servers, Catalogue, Entry, Error, ServerEntry, ServerOrigin, catalogue};
use tempfile::TempDir;

use crate::program::write_program;

const POSTGRES: (&str, &str) = ("pg-15.", "pg-15.19");
const MARIADB: (&str, &str) = ("mariadb-11.8", "mariadb-11.8-debian");
const MYSQL: (&str, &str) = ("mysql-5.7.", "mysql-5.7.22");

/// Each test's own folder, with a servers folder, a catalogue and a tarball.
struct Fixture {
    folder: TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self { folder: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn servers(&self) -> PathBuf {
        self.path("servers")
    }

    /// Makes a tarball of the base directory inside one folder, as vendors do, and returns its
    /// SHA-256.
    fn tarball(&self, base: &Path) -> String {
        let archive = self.path("server.tar");
        let status = Command::new("tar")
            .args(["-c", "--transform", "s,^\\.,vendor-1.0,", "-f"])
            .arg(&archive)
            .args(["-C", base.to_str().unwrap(), "."])
            .status()
            .unwrap();
        assert!(status.success());
        let output = Command::new("sha256sum").arg(&archive).output().unwrap();
        String::from_utf8(output.stdout).unwrap().split_whitespace().next().unwrap().to_owned()
    }

    /// The entry `own` in a catalogue next to the tarball.
    fn entry(&self, product: &str, version: &str, sha256: &str) -> Entry {
        let file = self.path("servers.toml");
        let text = format!(
            "[[server]]\nname = \"own\"\nproduct = \"{product}\"\nversion = \"{version}\"\n\
             source = {{ kind = \"tarball\", path = \"server.tar\", sha256 = \"{sha256}\" }}\n"
        );
        fs::write(&file, text).unwrap();
        Catalogue::with(&file).unwrap().find("own").unwrap().clone()
    }

    fn get(&self, entry: &Entry) -> Result<ServerEntry, Error> {
        servers::get(entry, &self.servers(), &AtomicBool::new(false), &mut |_| {})
    }

    /// Names in the servers folder.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.servers()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// The base directory of an installed server with the prefix. Panics if there is none.
fn require((prefix, catalogue): (&str, &str)) -> PathBuf {
    let folder = servers_dir();
    let name = list(&folder).into_iter().find(|name| name.starts_with(prefix));
    let name = name.unwrap_or_else(|| {
        panic!("no server {prefix}* in {}; get one with `cargo xtask servers {catalogue}`", folder.display())
    });
    folder.join(name).canonicalize().unwrap()
}

fn builtin() -> Catalogue {
    Catalogue { entries: catalogue(), own_file: None }
}

#[test]
fn a_tarball_becomes_a_server_that_is_probed_listed_and_removed() {
    let fixture = Fixture::new();
    let sha256 = fixture.tarball(&require(POSTGRES));
    let entry = fixture.entry("PostgreSQL", "15", &sha256);
    let server_entry = fixture.get(&entry).unwrap();
    let answer = server_entry.answer.clone().unwrap();
    assert_eq!((server_entry.origin, answer.product.as_str()), (ServerOrigin::Got, "PostgreSQL"));
    assert!(answer.version.starts_with("15."), "{}", answer.version);
    let abilities = &answer.abilities;
    assert_eq!(
        (abilities.default_engine.as_str(), abilities.default_login.as_str()),
        ("heap", "scram-sha-256")
    );
    assert_eq!(fixture.names(), [".lock", "own", "own.toml"]);
    assert!(Base::open(fixture.servers().join("own")).is_ok());

    // The second `get` unpacks and starts nothing, because it succeeds without the tarball.
    fs::remove_file(fixture.path("server.tar")).unwrap();
    assert_eq!(fixture.get(&entry).unwrap(), server_entry);

    let known = servers::inventory(&fixture.servers(), &Catalogue { entries: vec![entry], own_file: None });
    assert_eq!(known.len(), 1);
    assert_eq!(known[0].here.as_ref().unwrap().answer, Some(answer));
    servers::remove("own", &fixture.servers(), &mut |_| {}).unwrap();
    assert_eq!(fixture.names(), [".lock"]);
}

#[test]
fn a_file_with_another_checksum_is_not_unpacked() {
    let fixture = Fixture::new();
    let sha256 = fixture.tarball(&require(POSTGRES));
    let wrong = "0".repeat(64);
    let error = fixture.get(&fixture.entry("PostgreSQL", "15", &wrong)).unwrap_err();
    assert!(matches!(&error, Error::Checksum { found, .. } if *found == sha256), "{error}");
    assert_eq!(fixture.names(), [".lock"]);
}

#[test]
fn another_version_than_the_entry_promises_is_not_kept() {
    let fixture = Fixture::new();
    let sha256 = fixture.tarball(&require(POSTGRES));
    let error = fixture.get(&fixture.entry("PostgreSQL", "17.5", &sha256)).unwrap_err().to_string();
    assert!(error.starts_with("own is not what its entry says: it answers as PostgreSQL 15."), "{error}");
    assert_eq!(fixture.names(), [".lock"]);
    fs::write(fixture.path("server.tar"), "no archive").unwrap();
    let output = Command::new("sha256sum").arg(fixture.path("server.tar")).output().unwrap();
    let sha256 = String::from_utf8(output.stdout).unwrap()[..64].to_owned();
    let error = fixture.get(&fixture.entry("PostgreSQL", "15", &sha256)).unwrap_err();
    assert!(matches!(error, Error::Tool { .. }), "{error}");
    assert_eq!(fixture.names(), [".lock"]);
}

#[test]
fn a_get_that_is_stopped_leaves_nothing_behind() {
    let fixture = Fixture::new();
    let sha256 = fixture.tarball(&require(POSTGRES));
    let entry = fixture.entry("PostgreSQL", "15", &sha256);
    for moment in ["getting PostgreSQL", "starting it once"] {
        let cancel = AtomicBool::new(false);
        let mut log = |line: &str| {
            if line.contains(moment) {
                cancel.store(true, Ordering::Relaxed);
            }
        };
        let stopped = servers::get(&entry, &fixture.servers(), &cancel, &mut log);
        assert!(matches!(stopped, Err(Error::Cancelled { .. })), "{moment}: {stopped:?}");
        assert_eq!(fixture.names(), [".lock"], "{moment}");
    }
}

#[test]
fn files_of_a_killed_get_are_replaced_by_the_next_get() {
    let fixture = Fixture::new();
    let sha256 = fixture.tarball(&require(POSTGRES));
    let entry = fixture.entry("PostgreSQL", "15", &sha256);
    fs::create_dir_all(fixture.servers().join("own.partial/bin")).unwrap();
    fs::create_dir_all(fixture.servers().join(".download-x")).unwrap();
    fs::write(fixture.servers().join("own.toml"), "origin = \"got\"\nsource = \"x\"\n").unwrap();
    fixture.get(&entry).unwrap();
    assert_eq!(fixture.names(), [".lock", "own", "own.toml"]);
}

#[test]
fn the_users_own_build_is_added_under_a_free_name_and_stays_after_removal() {
    let abilities = check_added_and_removed(MARIADB, "MariaDB", ("mysql-8.0.31", "MariaDB 11.8."));
    assert_eq!(abilities.tls, TlsAbility::OwnCertificate);
}

#[test]
#[ignore = "in cargo xtask test --all: another version"]
fn a_mysql_build_is_added_under_a_free_name_and_stays_after_removal() {
    let abilities = check_added_and_removed(MYSQL, "MySQL", ("mysql-8.0.31", "MySQL 5.7."));
    assert_eq!(abilities.tls, TlsAbility::WithCertificate);
}

/// Adds and removes the build `server`, and returns its abilities. The build cannot get the
/// catalogue's name `other`, because it is another version.
fn check_added_and_removed(server: (&str, &str), product: &str, (other, answers): (&str, &str)) -> Abilities {
    let fixture = Fixture::new();
    let base = require(server);
    let server_entry = servers::add("patched", &base, &fixture.servers(), &builtin(), &mut |_| {}).unwrap();
    let answer = server_entry.answer.unwrap();
    assert_eq!((server_entry.origin, answer.product.as_str()), (ServerOrigin::Added, product));
    let abilities = answer.abilities;
    assert!(abilities.engines.contains(&"InnoDB".to_owned()), "{abilities:?}");
    assert!(abilities.logins.contains(&"mysql_native_password".to_owned()), "{abilities:?}");
    assert_eq!(abilities.default_login, "mysql_native_password");
    assert_eq!(fixture.names(), [".lock", "patched", "patched.toml"]);
    assert_eq!(Base::open(fixture.servers().join("patched")).unwrap().path, base);

    let taken =
        |name: &str, base: &Path| match servers::add(name, base, &fixture.servers(), &builtin(), &mut |_| {})
        {
            Err(error @ Error::NameTaken { .. }) => error.to_string(),
            other => panic!("{name}: {other:?}"),
        };
    assert!(taken("patched", &require(POSTGRES)).contains("is another server"));
    assert!(taken(other, &base).contains(&format!("it answers as {answers}")));
    assert!(taken("sqlite", &base).contains("means something else"));

    servers::remove("patched", &fixture.servers(), &mut |_| {}).unwrap();
    assert_eq!(fixture.names(), [".lock"]);
    assert!(Base::open(&base).is_ok());
    abilities
}

#[test]
fn a_server_that_others_put_into_the_folder_is_probed_and_never_removed() {
    let fixture = Fixture::new();
    let base = require(POSTGRES);
    fs::create_dir(fixture.servers()).unwrap();
    let status =
        Command::new("cp").arg("-a").arg(&base).arg(fixture.servers().join("pg-15.19")).status().unwrap();
    assert!(status.success());
    let entry = builtin().find("pg-15.19").unwrap().clone();
    let server_entry = fixture.get(&entry).unwrap();
    assert!(server_entry.origin == ServerOrigin::Found && server_entry.answer.is_some());
    let refused = servers::remove("pg-15.19", &fixture.servers(), &mut |_| {});
    assert!(matches!(refused, Err(Error::NotRemovable { .. })), "{refused:?}");
    assert!(fixture.servers().join("pg-15.19/bin/postgres").exists());
}

#[test]
fn a_build_that_does_not_run_is_not_added() {
    let fixture = Fixture::new();
    let script = "case \"$*\" in *--version*) echo 'mysqld  Ver 8.0.31 for Linux (x)';; *) exit 1;; esac";
    write_program(&fixture.path("base/bin/mysqld"), script);
    let refused = servers::add("broken", &fixture.path("base"), &fixture.servers(), &builtin(), &mut |_| {});
    assert!(matches!(refused, Err(Error::DoesNotRun { .. })), "{refused:?}");
    assert_eq!(fixture.names(), [".lock"]);
}

#[test]
#[ignore = "in cargo xtask test --all: versions of all products"]
fn builds_report_their_different_abilities() {
    let fixture = Fixture::new();
    let abilities = |name: &str, server| {
        let server_entry =
            servers::add(name, &require(server), &fixture.servers(), &builtin(), &mut |_| {}).unwrap();
        server_entry.answer.unwrap().abilities
    };
    let mariadb = abilities("mariadb", MARIADB);
    assert!(mariadb.engines.contains(&"ROCKSDB".to_owned()), "{mariadb:?}");
    assert_eq!((mariadb.thread_pool, mariadb.tls), (ThreadPool::BuiltIn, TlsAbility::OwnCertificate));
    assert_eq!(
        (mariadb.vector.as_deref(), mariadb.default_login.as_str()),
        (Some("index"), "mysql_native_password")
    );
    let mysql = abilities("mysql", ("mysql-9", "mysql-9-sid"));
    assert_eq!((mysql.thread_pool, mysql.tls), (ThreadPool::Plugin, TlsAbility::OwnCertificate));
    assert_eq!(
        (mysql.vector.as_deref(), mysql.default_login.as_str()),
        (Some("type"), "caching_sha2_password")
    );
    assert_eq!(mysql.logins, ["caching_sha2_password", "sha256_password"]);
    let old_postgres = abilities("old", ("pg-9.6.", "pg-9.6.24"));
    assert_eq!((old_postgres.default_engine.as_str(), old_postgres.default_login.as_str()), ("heap", "md5"));
    let postgres = abilities("postgres", ("pg-18", "pg-18.6"));
    assert!(postgres.aio.starts_with(&["worker".to_owned()]), "{postgres:?}");
    assert_eq!((postgres.thread_pool, postgres.tls), (ThreadPool::None, TlsAbility::WithCertificate));
}

#[test]
fn a_base_directory_in_the_users_catalogue_is_linked_to_and_stays() {
    let fixture = Fixture::new();
    let (base, file) = (require(POSTGRES), fixture.path("servers.toml"));
    let text = format!(
        "[[server]]\nname = \"mine\"\nproduct = \"PostgreSQL\"\nversion = \"15\"\n\
         source = {{ kind = \"basedir\", path = \"{}\" }}\n",
        base.display()
    );
    fs::write(&file, text).unwrap();
    let catalogue = Catalogue::with(&file).unwrap();
    let server_entry = fixture.get(catalogue.find("mine").unwrap()).unwrap();
    assert!(server_entry.origin == ServerOrigin::Added && server_entry.answer.is_some());
    assert_eq!(fixture.servers().join("mine").canonicalize().unwrap(), base);
    servers::remove("mine", &fixture.servers(), &mut |_| {}).unwrap();
    assert_eq!(fixture.names(), [".lock"]);
    assert!(base.join("bin/postgres").exists());
}
