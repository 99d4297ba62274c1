//! Tests servers that speak a product's protocol but are another product: PGlite, mysql-mimic and
//! PgBouncer. `cargo xtask test --all` installs them by their package names.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use dbdyno_db::{DatabaseAddress, DatabaseServer, Options, mysql, postgres};
use dbdyno_record::{Run, ServerInfo};

use crate::servers::postgres::number;
use crate::servers::shared::{self, POSTGRES};
use crate::servers::watch::server_of;
use crate::support::{Desk, Ended, faults, findings, wait_for};

const TEXT_ONLY: &str = "[workload.oltp]\nsettle_wait = \"0s\"\ntests = [\"point-select\"]\nprotocol = \"text\"\n\
                         table_size = 200\nevents = 100\n";

/// A server that ends with the test.
struct Other {
    child: Child,
    port: u16,
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Other {
    /// Starts the command that `command` makes for a free port, and waits until the server accepts
    /// a login.
    fn start(
        desk: &Desk,
        name: &str,
        database_server: fn(u16) -> DatabaseServer,
        command: impl FnOnce(u16) -> Command,
    ) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let log = std::fs::File::create(desk.path(&format!("{name}.log"))).unwrap();
        let mut command = command(port);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let mut other = Self { child: command.spawn().expect(name), port };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        wait_for(&format!("{name} to let someone in"), || {
            assert!(other.child.try_wait().unwrap().is_none(), "{name} has ended; see its log");
            runtime.block_on(database_server(port).connect()).ok()
        });
        other
    }

    fn postgres(port: u16) -> DatabaseServer {
        let login = Options::tcp("127.0.0.1", port, "postgres").with_database("postgres");
        DatabaseServer { address: DatabaseAddress::Postgres(login), capabilities: postgres::capabilities() }
    }

    fn mysql(port: u16) -> DatabaseServer {
        let login = Options::tcp("127.0.0.1", port, "root");
        DatabaseServer {
            address: DatabaseAddress::Mysql(login),
            capabilities: mysql::capabilities("innodb", false),
        }
    }

    fn pglite(desk: &Desk) -> Self {
        Self::start(desk, "pglite", Self::postgres, |port| {
            let program =
                tools().join("node/node_modules/@electric-sql/pglite-socket/dist/scripts/server.js");
            assert!(program.exists(), "no {}: cargo xtask test --all gets it", program.display());
            let mut command = Command::new("node");
            command.arg(program).arg(format!("--port={port}"));
            command.args(["--host=127.0.0.1", "--db=memory://", "--max-connections=20"]);
            command
        })
    }

    fn variant(&self, name: &str, address: &str) -> String {
        let address = address.replace("PORT", &self.port.to_string());
        format!("[[variant]]\nname = \"{name}\"\naddress = \"{address}\"\n")
    }
}

/// The folder in which `cargo xtask test` installs packages.
fn tools() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    cache.unwrap().join("dbdyno/tools")
}

fn ran(desk: &Desk, plan: &str) -> Ended {
    desk.write("p.toml", &format!("name = \"p\"\n{plan}"));
    desk.dbdyno(&["run", "p.toml"])
}

/// Checks that the run has no faults and `cells` complete cells. Returns the recorded description
/// of the server of `variant`.
fn described(desk: &Desk, cells: usize, variant: &str) -> ServerInfo {
    let findings = findings(&desk.run_dir());
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), cells));
    server_of(&desk.run_dir(), variant)
}

#[test]
#[ignore = "in cargo xtask test --all: PGlite of npm"]
fn pglite_is_measured_as_pglite_and_parity_says_what_it_does_not_know() {
    let desk = Desk::new();
    let pglite = Other::pglite(&desk);
    let variants =
        shared::at("pg", &POSTGRES, "") + &pglite.variant("lite", "postgres://postgres@127.0.0.1:PORT/bench");
    // PGlite has one database under every name, and it is empty.
    let small = "[workload.insert-benchmark]\nload_rows = 2000\nwrite_rows = 500\nread_write_time = \"1s\"\nclients = 1\n\
                 settle_wait = \"0s\"\n";
    ran(&desk, &format!("{variants}{TEXT_ONLY}{small}")).expect_ok();
    let server = described(&desk, 4, "lite");
    assert_eq!((server.product.as_str(), server.speaks.as_deref()), ("PGlite", Some("PostgreSQL")));
    assert!(server.version_text.contains("PGlite"), "{server:?}");
    let missing: Vec<&str> = server.missing.keys().map(String::as_str).collect();
    assert_eq!(missing, ["prepared statements", "streamed rows"]);
    assert_eq!(server_of(&desk.run_dir(), "pg").speaks, None);

    let findings = findings(&desk.run_dir());
    let parity = serde_json::to_value(&findings.parity).unwrap();
    let classes = parity["classes"].as_array().unwrap();
    assert!(!classes.is_empty() && classes.iter().all(|class| class["cells"][1]["text"] == ""), "{parity}");
    assert!(parity["remarks"].to_string().contains("\"PGlite\""), "{parity}");
    let run = desk.run_dir();
    let shown = desk.dbdyno(&["report", run.to_str().unwrap(), "--section", "config"]).out;
    assert!(
        shown.replace("\n", " ").contains("lite is not PostgreSQL itself (PGlite, which speaks"),
        "{shown}"
    );

    // PGlite's connections share the names of prepared statements. A plan that prepares statements
    // is refused before it runs.
    let ended = ran(&desk, &format!("{variants}{}", TEXT_ONLY.replace("\"text\"", "\"prepared\"")));
    ended.expect_code(2);
    assert!(ended.err.contains("no prepared statements of each connection's own"), "{}", ended.err);
    let ended = ran(&desk, &format!("parity = \"refuse\"\n{variants}{TEXT_ONLY}"));
    ended.expect_code(2);
    assert!(ended.err.contains("lite is not PostgreSQL itself"), "{}", ended.err);
}

#[test]
#[ignore = "in cargo xtask test --all: PGlite of npm"]
fn the_only_database_of_a_server_is_left_alone_when_it_holds_tables() {
    let desk = Desk::new();
    let pglite = Other::pglite(&desk);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut session = Other::postgres(pglite.port).connect().await.unwrap();
        dbdyno_db::Session::query(&mut session, b"CREATE TABLE orders (id int)").await.unwrap();
        dbdyno_db::Session::close(session).await;
    });
    let ended = ran(&desk, &(pglite.variant("lite", "postgres://postgres@127.0.0.1:PORT/bench") + TEXT_ONLY));
    insta::assert_snapshot!(desk.refusal(&ended), @"exit 4: error: variant lite: this server has only the database postgres, which contains tables and is not marked as dbdyno's, so it is left alone; hand it over with: (connected to it) CREATE TABLE dbdyno_mark (created timestamp NOT NULL PRIMARY KEY, tool varchar(40) NOT NULL)");
}

#[test]
#[ignore = "in cargo xtask test --all: mysql-mimic of PyPI"]
fn a_server_that_imitates_mysql_is_probed() {
    let desk = Desk::new();
    let script = desk.write("mimic.py", include_str!("foreign/mimic.py"));
    let mimic = Other::start(&desk, "mysql-mimic", Other::mysql, |port| {
        let mut command = Command::new("python3");
        command.env("PYTHONPATH", tools().join("python")).arg(script).arg(port.to_string());
        command
    });
    ran(&desk, &(mimic.variant("mimic", "mysql://root@127.0.0.1:PORT/bench") + TEXT_ONLY)).expect_ok();
    let server = described(&desk, 1, "mimic");
    assert_eq!((server.product.as_str(), server.speaks.as_deref()), ("mysql-mimic", Some("MySQL")));
    for name in ["prepared statements", "streamed rows", "foreign keys"] {
        assert!(server.missing.contains_key(name), "{:?}", server.missing);
    }
    assert_eq!((server.engine, server.tables_engine), (None, None));
}

#[test]
#[ignore = "in cargo xtask test --all: PgBouncer of Debian"]
fn postgresql_behind_a_pooler_is_not_recorded_as_postgresql() {
    let (desk, database) = (Desk::new(), shared::database());
    number(&POSTGRES.options(None), &format!("CREATE DATABASE {database}"));
    let mark = "CREATE TABLE dbdyno_mark (created timestamp NOT NULL PRIMARY KEY, tool varchar(40) NOT NULL)";
    number(&POSTGRES.options(Some(&database)), mark);
    let bouncer = Other::start(&desk, "pgbouncer", Other::postgres, |port| {
        let folder = POSTGRES.socket().parent().unwrap().display().to_string();
        let text = format!(
            "[databases]\n* = host={folder} port=5432 user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = session\n"
        );
        // The file is not in the test's folder, because the server's user must be able to read it.
        let file = tempfile::Builder::new().suffix(".ini").tempfile().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let (_, path) = file.keep().unwrap();
        let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(POSTGRES.socket()).unwrap());
        std::os::unix::fs::chown(&path, Some(owner), None).unwrap();
        let mut command = Command::new("setpriv");
        command.arg(format!("--reuid={owner}")).args(["--clear-groups", "pgbouncer"]).arg(path);
        command
    });
    let address = format!("postgres://postgres@127.0.0.1:PORT/{database}");
    ran(&desk, &(bouncer.variant("pooled", &address) + TEXT_ONLY)).expect_ok();
    let server = described(&desk, 1, "pooled");
    assert_eq!(server.product, "proxy or pooler in front of PostgreSQL");
    assert_eq!((server.version_text.as_str(), server.pid), (POSTGRES.base.version.as_str(), None));
    let parity = serde_json::to_string(&findings(&desk.run_dir()).parity).unwrap();
    assert!(parity.contains("\"foreign\"") && Run::open(&desk.run_dir()).is_ok(), "{parity}");
}
