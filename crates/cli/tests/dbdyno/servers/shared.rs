//! One MariaDB, one MySQL and one PostgreSQL server for all tests that only connect to a server.
//! The first test that needs a server starts it, and the kernel ends it with this program. Each
//! test has its own database.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use dbdyno_db::server::{Server, ServerSpec, find_named};

use crate::servers::{MARIADB_11_8, MYSQL_8_0, POSTGRES_15, external, postgres, require};
use crate::support::templates;

/// Options for servers that several tests use at once and that do not wait for a disk. Durability
/// does not matter, because no one needs the data after a crash.
const MY_CNF: &str = "[mysqld]\nmax_connections = 500\ninnodb_buffer_pool_size = 256M\ninnodb_doublewrite = 0\n\
    innodb_flush_log_at_trx_commit = 0\nskip_log_bin\nlocal_infile = ON\n";
const POSTGRESQL_CONF: &str = "max_connections = 500\nshared_buffers = 256MB\nfsync = off\n";

pub(crate) static MARIADB: LazyLock<Server> =
    LazyLock::new(|| start("mariadb", MARIADB_11_8, MY_CNF, external::add_user));
pub(crate) static MYSQL: LazyLock<Server> =
    LazyLock::new(|| start("mysql", MYSQL_8_0, MY_CNF, external::add_user));
pub(crate) static POSTGRES: LazyLock<Server> =
    LazyLock::new(|| start("pg", POSTGRES_15, POSTGRESQL_CONF, postgres::add_user));

/// Two servers whose counters and global settings belong to one test at a time.
pub(crate) static COUNTED_MARIADB: LazyLock<Server> =
    LazyLock::new(|| start("counted-mariadb", MARIADB_11_8, MY_CNF, external::add_user));
pub(crate) static COUNTED_POSTGRES: LazyLock<Server> = LazyLock::new(|| {
    let without_vacuum = format!("{POSTGRESQL_CONF}autovacuum = off\n");
    start("counted-pg", POSTGRES_15, &without_vacuum, postgres::add_user)
});

/// The three shared servers, with names for variants.
pub(crate) fn all() -> [(&'static str, &'static Server); 3] {
    [("maria", &MARIADB), ("mysql", &MYSQL), ("pg", &POSTGRES)]
}

/// A database name that no other test uses.
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

/// A variant in a new database, as the superuser, with the further lines `more`.
pub(crate) fn at(name: &str, server: &Server, more: &str) -> String {
    let address = address(server, server.base.family.facts().superuser, &database());
    format!("[[variant]]\nname = \"{name}\"\naddress = \"{address}\"\n{more}\n")
}

/// A variant on each server.
pub(crate) fn on_all() -> String {
    all().map(|(name, server)| at(name, server, "")).concat()
}

/// The folder for the servers' data. Folders of test programs that have ended are removed.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shared");
    for entry in std::fs::read_dir(&parent).into_iter().flatten().flatten() {
        if !Path::new("/proc").join(entry.file_name()).exists() {
            // A server that is still ending may write into its folder. The next test program tries
            // again.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    parent.join(std::process::id().to_string())
});

/// Starts a server in the folder `name` from a thread that lives as long as this program, because
/// the kernel ends a server together with the thread that started it.
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
