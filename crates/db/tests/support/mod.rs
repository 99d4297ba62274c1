//! Helpers for tests with real servers: required builds, folders, templates, specs and sessions.
//!
//! The servers must be in the servers folder. A test whose server is missing fails, because a
//! skipped test proves nothing.

pub(crate) mod program;
#[macro_use]
mod versions;

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use dbdyno_db::server::{Base, Server, ServerSpec, find_named, list, servers_dir};
use dbdyno_db::{ConnectionSettings, Session};
use tempfile::TempDir;

/// A prefix of server names, and the catalogue's name for a server with that prefix.
pub(crate) type Wanted = (&'static str, &'static str);

/// Longest time that a test waits for a process to end. Only a fault makes a test wait that long.
const PATIENCE: Duration = Duration::from_secs(600);

/// One build of each product, for tests of behaviour that does not depend on the version.
pub(crate) const MARIADB: Wanted = ("mariadb-11.8", "mariadb-11.8-debian");
pub(crate) const MYSQL: Wanted = ("mysql-8.0.31", "mysql-8.0.31");
pub(crate) const POSTGRES: Wanted = ("pg-15.", "pg-15.19");

/// Names in the servers folder with the prefix of `Wanted`. Panics if there is none.
pub(crate) fn all_of((prefix, catalogue): Wanted) -> Vec<String> {
    let folder = servers_dir();
    let mut names = list(&folder);
    names.retain(|name| name.starts_with(prefix));
    assert!(
        !names.is_empty(),
        "no server {prefix}* in {}; get one with `cargo xtask servers {catalogue}`",
        folder.display()
    );
    names
}

/// The first of [`all_of`].
pub(crate) fn base(wanted: Wanted) -> Base {
    find_named(&all_of(wanted)[0]).unwrap()
}

pub(crate) fn new_folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// The template folder of all tests with servers, so that each build is initialised only once.
/// Tests of the initialisation use their own folder.
pub(crate) fn templates() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("templates")
}

/// A `base` server whose files are in `folder`.
pub(crate) fn spec(base: &Base, folder: &Path) -> ServerSpec {
    ServerSpec::new(base, None, folder, templates()).unwrap()
}

/// Does the same as [`spec`] with an option file that contains `text`.
pub(crate) fn with_options(base: &Base, folder: &Path, text: &str) -> ServerSpec {
    let ending = base.family.facts().option_file_ending;
    let path = folder.join(format!("options.{ending}"));
    std::fs::write(&path, text).unwrap();
    ServerSpec::new(base, Some(&path), folder, templates()).unwrap()
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Runs the statements in one session. Returns the first column of the last statement's first row,
/// or an empty text if there is no row.
pub(crate) fn ask(server: &Server, statements: &[&str]) -> String {
    let database_server =
        server.address(None, &ConnectionSettings::default()).database_server("innodb", true);
    block_on(async { answer(database_server.connect().await.unwrap(), statements).await })
}

async fn answer(mut session: impl Session, statements: &[&str]) -> String {
    let mut rows = Vec::new();
    for statement in statements {
        rows = session.rows(statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    session.close().await;
    rows.first().and_then(|row| row[0].clone()).unwrap_or_default()
}

/// The first and the last CPU that this process may use. They are the same if there is only one.
pub(crate) fn first_and_last_cpu() -> [u32; 2] {
    let usable = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).unwrap();
    let mut cpus = (0..1024).filter(|&cpu| usable.is_set(cpu as usize).unwrap_or(false));
    let first = cpus.next().unwrap();
    [first, cpus.next_back().unwrap_or(first)]
}

pub(crate) fn process_is_there(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

pub(crate) fn wait_until_gone(pid: u32) {
    let deadline = Instant::now() + PATIENCE;
    while process_is_there(pid) {
        assert!(Instant::now() < deadline, "process {pid} is still there");
        sleep(Duration::from_millis(20));
    }
}
