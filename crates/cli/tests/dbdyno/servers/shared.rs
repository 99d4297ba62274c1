//! One MariaDB, one MySQL and one PostgreSQL for all tests that only talk to a server: each is
//! started by the first test that asks for it, and the kernel ends it with this program. Each test
//! has a database of its own.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use dbdyno_db::server::{Server, ServerSpec, find_named};

use crate::servers::{MARIADB_11_8, MYSQL_8_0, POSTGRES_15, external, postgres, require};
use crate::support::templates;

/// For several tests at once, and without waits for a disk: what a killed server would lose is
/// nobody's.
const MY_CNF: &str = "[mysqld]\nmax_connections = 500\ninnodb_buffer_pool_size = 256M\ninnodb_doublewrite = 0\n\
    innodb_flush_log_at_trx_commit = 0\nskip_log_bin\nlocal_infile = ON\n";
const POSTGRESQL_CONF: &str = "max_connections = 500\nshared_buffers = 256MB\nfsync = off\n";

pub(crate) static MARIADB: LazyLock<Server> =
    LazyLock::new(|| start("mariadb", MARIADB_11_8, MY_CNF, external::add_user));
pub(crate) static MYSQL: LazyLock<Server> =
    LazyLock::new(|| start("mysql", MYSQL_8_0, MY_CNF, external::add_user));
pub(crate) static POSTGRES: LazyLock<Server> =
    LazyLock::new(|| start("pg", POSTGRES_15, POSTGRESQL_CONF, postgres::add_user));

/// Two whose counters, and global settings, are one test's at a time.
pub(crate) static COUNTED_MARIADB: LazyLock<Server> =
    LazyLock::new(|| start("counted-mariadb", MARIADB_11_8, MY_CNF, external::add_user));
pub(crate) static COUNTED_POSTGRES: LazyLock<Server> = LazyLock::new(|| {
    let without_vacuum = format!("{POSTGRESQL_CONF}autovacuum = off\n");
    start("counted-pg", POSTGRES_15, &without_vacuum, postgres::add_user)
});

/// All of them, with names for variants.
pub(crate) fn all() -> [(&'static str, &'static Server); 3] {
    [("maria", &MARIADB), ("mysql", &MYSQL), ("pg", &POSTGRES)]
}

/// A name for a database that no other test has.
pub(crate) fn database() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    format!("of_test_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The address of `database` for this user.
pub(crate) fn address(server: &Server, user: &str, database: &str) -> String {
    let (family, scheme) = (server.base.family, server.base.family.facts().schemes[0]);
    let socket = family.socket_in_address(server.socket()).display();
    format!("{scheme}{user}@localhost/{database}?socket={socket}")
}

/// A variant in a database of its own, as the superuser, with more lines of its own.
pub(crate) fn at(name: &str, server: &Server, more: &str) -> String {
    let address = address(server, server.base.family.facts().superuser, &database());
    format!("[[variant]]\nname = \"{name}\"\naddress = \"{address}\"\n{more}\n")
}

/// A variant on each server.
pub(crate) fn on_all() -> String {
    all().map(|(name, server)| at(name, server, "")).concat()
}

/// Folder of the servers' data. Those of test programs that have ended go.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shared");
    for entry in std::fs::read_dir(&parent).into_iter().flatten().flatten() {
        if !Path::new("/proc").join(entry.file_name()).exists() {
            // A server that has not ended yet may still write: the next start tries again.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    parent.join(std::process::id().to_string())
});

/// Starts a server in a folder of this name from a thread that lives as long as this program: the
/// kernel ends what a thread has started with that thread.
fn start(name: &str, prefix: &str, options: &str, add_user: fn(&Server)) -> Server {
    let folder = FOLDER.join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let option_file = folder.join("options");
    std::fs::write(&option_file, options).unwrap();
    let base = find_named(&require(prefix)).unwrap();
    let spec = ServerSpec::new(&base, Some(&option_file), &folder, templates()).unwrap();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        sender.send(Server::start(&spec)).unwrap();
        loop {
            std::thread::park();
        }
    });
    let server = receiver.recv().unwrap().unwrap();
    add_user(&server);
    server
}
