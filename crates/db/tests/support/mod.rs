//! What tests with real servers share: builds that must be there, folders, templates, specs,
//! sessions.
//!
//! The servers are looked for in the servers folder. One that is absent fails its test: a test that
//! skips proves nothing.

pub(crate) mod program;
#[macro_use]
mod versions;

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use dbdyno_db::server::{Base, Server, ServerSpec, find_named, list, servers_dir};
use dbdyno_db::{ConnectionSettings, Session};
use tempfile::TempDir;

/// How the names of servers begin, and the catalogue's name that gets one.
pub(crate) type Wanted = (&'static str, &'static str);

/// Longest time that a test waits for a process to end; only a fault comes near it.
const PATIENCE: Duration = Duration::from_secs(600);

/// One build of each product, for what does not depend on the version.
pub(crate) const MARIADB: Wanted = ("mariadb-11.8", "mariadb-11.8-debian");
pub(crate) const MYSQL: Wanted = ("mysql-8.0.31", "mysql-8.0.31");
pub(crate) const POSTGRES: Wanted = ("pg-15.", "pg-15.19");

/// Names in the servers folder that begin as wanted; at least one.
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

/// Templates are shared by all tests with servers: each build is initialised once. Tests of
/// initialising itself have a folder of their own.
pub(crate) fn templates() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("templates")
}

/// A server of `base` whose files lie in `folder`.
pub(crate) fn spec(base: &Base, folder: &Path) -> ServerSpec {
    ServerSpec::new(base, None, folder, templates()).unwrap()
}

/// The same with an option file.
pub(crate) fn with_options(base: &Base, folder: &Path, text: &str) -> ServerSpec {
    let ending = base.family.facts().option_file_ending;
    let path = folder.join(format!("options.{ending}"));
    std::fs::write(&path, text).unwrap();
    ServerSpec::new(base, Some(&path), folder, templates()).unwrap()
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Sends the statements over one session; the first column of the last one's first row, empty
/// without one.
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

/// Of those that this process may use; both are the same where there is but one.
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
