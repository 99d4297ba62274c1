//! Runs Debian's sysbench on tables that dbdyno loads, and dbdyno's tests on tables that sysbench
//! prepares.

use std::process::Command;

use dbdyno_db::server::Server;

use crate::servers::watch::ask;
use crate::servers::{MARIADB_10_11, POSTGRES_15, external, postgres, shared};
use crate::support::{Desk, Ended, faults, findings, wait_for};

/// The number of rows in each of the two tables.
const ROWS: u32 = 3000;

/// All scripts that use two tables.
const SCRIPTS: [&str; 8] = [
    "oltp_point_select",
    "oltp_read_only",
    "oltp_read_write",
    "oltp_write_only",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_delete",
    "oltp_insert",
];

/// A server that dbdyno did not start, for use by both programs.
pub(crate) enum ExternalServer {
    Mysql(ServerHandle),
    Postgres(ServerHandle),
}

/// A server that belongs to one test, or that all tests share.
pub(crate) enum ServerHandle {
    Own(Box<Server>),
    Shared(&'static Server),
}

impl std::ops::Deref for ServerHandle {
    type Target = Server;

    fn deref(&self) -> &Server {
        match self {
            Self::Own(server) => server,
            Self::Shared(server) => server,
        }
    }
}

impl ExternalServer {
    pub(crate) fn mariadb(desk: &Desk) -> Self {
        Self::Mysql(ServerHandle::Own(Box::new(external::external_server(desk, MARIADB_10_11))))
    }

    pub(crate) fn postgres(desk: &Desk) -> Self {
        Self::Postgres(ServerHandle::Own(Box::new(postgres::external_server(desk, POSTGRES_15))))
    }

    /// The three servers that all tests share.
    pub(crate) fn shared() -> [Self; 3] {
        [
            Self::Mysql(ServerHandle::Shared(&shared::MARIADB)),
            Self::Mysql(ServerHandle::Shared(&shared::MYSQL)),
            Self::Postgres(ServerHandle::Shared(&shared::POSTGRES)),
        ]
    }

    pub(crate) fn create(&self, database: &str) {
        let sql = format!("CREATE DATABASE {database}");
        match self {
            Self::Mysql(server) => drop(ask(&server.options(None), &[&sql])),
            Self::Postgres(server) => drop(postgres::number(&server.options(Some("postgres")), &sql)),
        }
    }

    /// The number of tables with this name in the database.
    pub(crate) fn tables(&self, database: &str, name: &str) -> i64 {
        let sql = format!("SELECT COUNT(*) FROM information_schema.tables WHERE table_name = '{name}'");
        match self {
            Self::Mysql(server) => {
                let sql = format!("{sql} AND table_schema = '{database}'");
                dbdyno_db::first_i64(&ask(&server.options(None), &[&sql])).unwrap()
            }
            Self::Postgres(server) => postgres::number(&server.options(Some(database)), &sql).unwrap(),
        }
    }

    /// The address of `database` for a plan.
    pub(crate) fn address(&self, database: &str) -> String {
        let (Self::Mysql(server) | Self::Postgres(server)) = self;
        shared::address(server, server.base.family.facts().superuser, database)
    }

    /// The address of the database, and the size of its tables, as sysbench options.
    fn words(&self, database: &str) -> Vec<String> {
        let mut words = vec![format!("--table-size={ROWS}")];
        match self {
            Self::Mysql(server) => {
                words.extend(["--db-driver=mysql", "--mysql-user=root"].map(str::to_owned));
                words.push(format!("--mysql-socket={}", server.socket().display()));
                words.push(format!("--mysql-db={database}"));
            }
            Self::Postgres(server) => {
                let options = server.options(Some(database));
                let address = options.address.to_string();
                let folder = address.rsplit_once('/').unwrap().0;
                words.push("--db-driver=pgsql".to_owned());
                words.push(format!("--pgsql-user={}", options.user));
                words.push(format!("--pgsql-host={folder}"));
                words.push(format!("--pgsql-db={database}"));
            }
        }
        words
    }

    /// Runs a sysbench command on the tables in `database`. Returns its standard output.
    pub(crate) fn sysbench(&self, database: &str, script: &str, options: &[&str], command: &str) -> String {
        let mut line = Command::new("sysbench");
        line.arg(script).args(self.words(database)).args(options).arg(command);
        let output = line.output().expect("sysbench; install it with `cargo xtask test packages`");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let text = format!("{said}{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{script} {command}: {text}");
        assert!(!text.contains("FATAL") && !text.contains("ALERT"), "{script} {command}: {text}");
        said
    }

    /// Runs the same command with dbdyno.
    pub(crate) fn run_dbdyno(
        &self,
        desk: &Desk,
        database: &str,
        script: &str,
        options: &[&str],
        command: &str,
    ) -> Ended {
        let words = self.words(database);
        let words = words.iter().map(String::as_str);
        let line =
            ["sysbench", script].into_iter().chain(words).chain(options.iter().copied()).chain([command]);
        desk.dbdyno(&line.collect::<Vec<_>>())
    }

    /// The statements that the server has received since the last call, without those of this
    /// function. The first call switches the server's log on.
    pub(crate) fn logged(&self) -> Vec<String> {
        match self {
            Self::Mysql(server) => {
                let asks =
                    "SELECT argument FROM mysql.general_log WHERE command_type IN ('Query', 'Execute')";
                let off = ["SET GLOBAL general_log = OFF", "SET GLOBAL log_output = 'TABLE'"];
                let rows = ask(&server.options(None), &[off[0], off[1], asks]);
                ask(&server.options(None), &["TRUNCATE mysql.general_log", "SET GLOBAL general_log = ON"]);
                rows.into_iter().flatten().flatten().collect()
            }
            Self::Postgres(server) => {
                let options = server.options(Some("postgres"));
                let log = std::fs::read_to_string(&server.log).unwrap();
                postgres::number(&options, "ALTER SYSTEM SET log_statement = 'all'");
                postgres::number(&options, "SELECT pg_reload_conf()");
                // The setting takes effect with a delay.
                let asks =
                    "SELECT COUNT(*) FROM pg_settings WHERE name = 'log_statement' AND setting = 'all'";
                wait_for("log_statement", || (postgres::number(&options, asks) == Some(1)).then_some(()));
                let new = log.rsplit_once("pg_reload_conf()").map_or(log.as_str(), |(_, new)| new);
                // The further lines of a statement begin with a tab.
                let joined = new.replace("\n\t", " ");
                let statement = |line: &str| {
                    let (_, execution) =
                        line.split_once("LOG:  execute ").or(line.split_once("LOG:  statement"))?;
                    Some(execution.split_once(": ")?.1.to_owned())
                };
                joined.lines().filter_map(statement).collect()
            }
        }
    }

    /// The properties of a script's tables that do not depend on random values.
    pub(crate) fn facts(&self, database: &str) -> std::collections::BTreeMap<String, u32> {
        let number = |sql: String| match self {
            Self::Mysql(server) => {
                let in_database = format!("USE {database}");
                dbdyno_db::first_i64(&ask(&server.options(None), &[&in_database, &sql]))
            }
            Self::Postgres(server) => postgres::number(&server.options(Some(database)), &sql),
        };
        let mut facts = std::collections::BTreeMap::new();
        for table in ["sbtest1", "sbtest2"] {
            if self.tables(database, table) == 0 {
                continue;
            }
            let columns = format!(
                "SELECT COUNT(*) FROM information_schema.columns WHERE table_name = '{table}' AND table_schema IN ('{database}', 'public')"
            );
            let mut sums = vec!["COUNT(*)", "MIN(id)", "MAX(id)", "SUM(id)", "COUNT(k)"];
            if number(columns.clone()) == Some(4) {
                sums.extend(["COUNT(DISTINCT c)", "MAX(LENGTH(c))", "MAX(LENGTH(pad))"]);
            }
            for sum in sums {
                let value = number(format!("SELECT {sum} FROM {table}"));
                facts.insert(format!("{table} {sum}"), value.map_or(0, |value| value as u32));
            }
            facts.insert(format!("{table} columns"), number(columns).unwrap_or(0) as u32);
        }
        facts
    }

    /// Runs a workload in `database`, which dbdyno creates. `workload` is the plan's text after
    /// `[workload.`.
    pub(crate) fn plan(&self, desk: &Desk, database: &str, workload: &str) -> Ended {
        let address = self.address(database);
        desk.write("p.toml", &format!("name = \"test\"\n[[variant]]\nname = \"theirs\"\naddress = \"{address}\"\n\n[workload.{workload}"));
        desk.dbdyno(&["run", "p.toml"])
    }

    /// Runs the OLTP workload with these options on two tables in `database`.
    fn dbdyno(&self, desk: &Desk, database: &str, options: &str) -> Ended {
        self.workload(desk, database, &format!("oltp]\ntime = \"1s\"\n{options}"))
    }

    /// Runs a workload on two tables in `database`. `workload` is the plan's text after
    /// `[workload.`.
    pub(crate) fn workload(&self, desk: &Desk, database: &str, workload: &str) -> Ended {
        let address = self.address(database);
        let text = format!(
            "name = \"test\"\n[[variant]]\nname = \"theirs\"\naddress = \"{address}\"\n\n[workload.{workload}\n\
             tables = 2\n"
        );
        desk.write("p.toml", &text);
        desk.dbdyno(&["run", "p.toml"])
    }
}

/// dbdyno loads the tables with each load method, and every sysbench script runs on them.
fn sysbench_runs_on_our_tables(theirs: &ExternalServer, desk: &Desk) {
    for method in ["insert", "stream"] {
        let options = format!("tests = [\"point-select\"]\ntable_size = {ROWS}\nload_method = \"{method}\"");
        theirs.dbdyno(desk, "bench", &options).expect_ok();
        for script in SCRIPTS {
            theirs.sysbench(
                "bench",
                script,
                &["--tables=2", "--threads=1", "--events=100", "--time=0"],
                "run",
            );
        }
    }
    let found = desk.run_dirs().iter().map(|dir| faults(&findings(dir))).collect::<Vec<_>>();
    assert_eq!(found, [Vec::<String>::new(), Vec::new()]);
}

/// sysbench prepares the tables, and all of dbdyno's tests run on them.
fn our_tests_run_on_tables_of_sysbench(theirs: &ExternalServer, desk: &Desk) {
    let all = "tests = [\"point-select\", \"read-only\", \"read-write\", \"write-only\", \"update-index\", \
               \"update-non-index\", \"insert\", \"delete\"]\nconnections = [2]\nuse_existing = true\n";
    theirs.create("sbtest");
    theirs.sysbench(
        "sbtest",
        "oltp_read_write",
        &["--tables=2", "--rand-type=uniform", "--threads=2"],
        "prepare",
    );
    let ended = theirs.dbdyno(desk, "sbtest", &format!("{all}table_size = {ROWS}"));
    ended.expect_ok();
    let found = findings(&desk.run_dir());
    assert_eq!((faults(&found), found.run.cells_completed), (Vec::new(), 1), "{}", ended.err);
    assert_eq!(theirs.tables("sbtest", "sbtest2"), 1, "nothing is dropped");
    assert_eq!(theirs.tables("sbtest", "dbdyno_mark"), 0, "no database is marked as dbdyno's");

    std::fs::rename(desk.path("runs"), desk.path("runs-1")).unwrap();
    let steps = format!(
        "microbenchmarks]\nuse_existing = true\ntable_size = {ROWS}\nconnections = 2\noperations = 50\nsettle_wait = \"0s\""
    );
    let ended = theirs.workload(desk, "sbtest", &steps);
    assert!(
        ended.expect_ok().err.contains("delete, insert will change rows of tables that are not dbdyno's")
    );
    let found = findings(&desk.run_dir());
    assert_eq!((faults(&found), found.run.cells_completed), (Vec::new(), 1), "{}", ended.err);
    assert_eq!(found.workloads[0].steps.len(), 1 + 42, "{}", ended.err);

    std::fs::rename(desk.path("runs"), desk.path("runs-2")).unwrap();
    let ended = theirs.dbdyno(desk, "sbtest", &format!("{all}table_size = {}", ROWS * 10));
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(ended.err.contains("but the plan says table_size = 30000: fill the tables"), "{}", ended.err);
}

#[test]
#[ignore = "in cargo xtask test --all: the original sysbench"]
fn sysbench_runs_on_tables_that_dbdyno_loads_into_mariadb() {
    let desk = Desk::new();
    sysbench_runs_on_our_tables(&ExternalServer::mariadb(&desk), &desk);
}

#[test]
#[ignore = "in cargo xtask test --all: the original sysbench"]
fn sysbench_runs_on_tables_that_dbdyno_loads_into_postgresql() {
    let desk = Desk::new();
    sysbench_runs_on_our_tables(&ExternalServer::postgres(&desk), &desk);
}

#[test]
#[ignore = "in cargo xtask test --all: the original sysbench"]
fn tables_that_sysbench_prepares_in_mariadb_are_good_for_all_tests() {
    let desk = Desk::new();
    our_tests_run_on_tables_of_sysbench(&ExternalServer::mariadb(&desk), &desk);
}

#[test]
#[ignore = "in cargo xtask test --all: the original sysbench"]
fn tables_that_sysbench_prepares_in_postgresql_are_good_for_all_tests() {
    let desk = Desk::new();
    our_tests_run_on_tables_of_sysbench(&ExternalServer::postgres(&desk), &desk);
}
