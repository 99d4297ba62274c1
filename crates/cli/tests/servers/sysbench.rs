//! Debian's sysbench on the tables that dbdyno loads, and dbdyno's tests on the tables that sysbench prepares.

use std::process::Command;

use dbdyno_provision::{PgServer, Server};

use crate::support::{Desk, Ended, faults, findings};
use crate::watch::ask;
use crate::{MARIADB_10_11, POSTGRES_15, external, postgres};

/// Rows of each of the two tables.
const ROWS: u32 = 3000;

/// All scripts that ask two tables.
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

/// A server of others, for both programs.
enum Theirs {
    Mariadb(Server),
    Postgres(PgServer),
}

impl Theirs {
    fn mariadb(desk: &Desk) -> Self {
        Self::Mariadb(external::somebodys_server(desk, MARIADB_10_11))
    }

    fn postgres(desk: &Desk) -> Self {
        Self::Postgres(postgres::somebodys_server(desk, POSTGRES_15))
    }

    fn create(&self, database: &str) {
        let sql = format!("CREATE DATABASE {database}");
        match self {
            Self::Mariadb(server) => drop(ask(&server.options(None), &[&sql])),
            Self::Postgres(server) => drop(postgres::number(&server.options("postgres"), &sql)),
        }
    }

    /// How many tables of this name are in the database.
    fn tables(&self, database: &str, name: &str) -> i64 {
        let sql = format!("SELECT COUNT(*) FROM information_schema.tables WHERE table_name = '{name}'");
        match self {
            Self::Mariadb(server) => {
                let sql = format!("{sql} AND table_schema = '{database}'");
                dbdyno_drivers::first_i64(&ask(&server.options(None), &[&sql])).unwrap()
            }
            Self::Postgres(server) => postgres::number(&server.options(database), &sql).unwrap(),
        }
    }

    /// Address of `database` for a plan.
    fn address(&self, database: &str) -> String {
        match self {
            Self::Mariadb(server) => {
                format!("mysql://root@localhost/{database}?socket={}", server.socket().display())
            }
            Self::Postgres(server) => {
                let options = server.options(database);
                format!("postgres://{}@localhost/{database}?socket={}", options.user, options.address)
            }
        }
    }

    /// Runs a command of sysbench on two tables of `database`.
    fn sysbench(&self, database: &str, script: &str, options: &[&str], command: &str) {
        let mut line = Command::new("sysbench");
        line.arg(script).args(["--tables=2", "--rand-type=uniform"]).arg(format!("--table-size={ROWS}"));
        match self {
            Self::Mariadb(server) => {
                line.args(["--db-driver=mysql", "--mysql-user=root"]);
                line.arg(format!("--mysql-socket={}", server.socket().display()));
                line.arg(format!("--mysql-db={database}"));
            }
            Self::Postgres(server) => {
                let options = server.options(database);
                let address = options.address.to_string();
                let folder = address.rsplit_once('/').unwrap().0;
                line.arg("--db-driver=pgsql").arg(format!("--pgsql-user={}", options.user));
                line.arg(format!("--pgsql-host={folder}")).arg(format!("--pgsql-db={database}"));
            }
        }
        let output = line.args(options).arg(command).output();
        let output = output.expect("sysbench; install it with `cargo xtask test packages`");
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{script} {command}: {text}");
        assert!(!text.contains("FATAL") && !text.contains("ALERT"), "{script} {command}: {text}");
    }

    /// Runs dbdyno with these options of OLTP on two tables of `database`.
    fn dbdyno(&self, desk: &Desk, database: &str, options: &str) -> Ended {
        self.workload(desk, database, &format!("oltp]\ntime = \"1s\"\n{options}"))
    }

    /// Runs a workload of dbdyno, the rest of `[workload.`, on two tables of `database`.
    fn workload(&self, desk: &Desk, database: &str, workload: &str) -> Ended {
        let address = self.address(database);
        let text = format!(
            "name = \"test\"\n[[variant]]\nname = \"theirs\"\naddress = \"{address}\"\n\n[workload.{workload}\n\
             tables = 2\n"
        );
        desk.write("p.toml", &text);
        desk.dbdyno(&["run", "p.toml"])
    }
}

/// dbdyno loads in both ways and sysbench asks for what is in the tables.
fn sysbench_runs_on_our_tables(theirs: &Theirs, desk: &Desk) {
    for method in ["insert", "stream"] {
        let options = format!("tests = [\"point-select\"]\ntable_size = {ROWS}\nload_method = \"{method}\"");
        theirs.dbdyno(desk, "bench", &options).expect_ok();
        for script in SCRIPTS {
            theirs.sysbench("bench", script, &["--threads=1", "--events=100", "--time=0"], "run");
        }
    }
    let found = desk.run_dirs().iter().map(|dir| faults(&findings(dir))).collect::<Vec<_>>();
    assert_eq!(found, [Vec::<String>::new(), Vec::new()]);
}

/// sysbench prepares, and all of our tests run on what is there.
fn our_tests_run_on_tables_of_sysbench(theirs: &Theirs, desk: &Desk) {
    let all = "tests = [\"point-select\", \"read-only\", \"read-write\", \"write-only\", \"update-index\", \
               \"update-non-index\", \"insert\", \"delete\"]\nconnections = [2]\nuse_existing = true\n";
    theirs.create("sbtest");
    theirs.sysbench("sbtest", "oltp_read_write", &["--threads=2"], "prepare");
    let ended = theirs.dbdyno(desk, "sbtest", &format!("{all}table_size = {ROWS}"));
    ended.expect_ok();
    let found = findings(&desk.run_dir());
    assert_eq!((faults(&found), found.run.cells_completed), (Vec::new(), 1), "{}", ended.err);
    assert_eq!(theirs.tables("sbtest", "sbtest2"), 1, "nothing is dropped");
    assert_eq!(theirs.tables("sbtest", "dbdyno_mark"), 0, "nothing is claimed");

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
fn sysbench_runs_on_tables_that_dbdyno_loads_into_mariadb() {
    let desk = Desk::new();
    sysbench_runs_on_our_tables(&Theirs::mariadb(&desk), &desk);
}

#[test]
fn sysbench_runs_on_tables_that_dbdyno_loads_into_postgresql() {
    let desk = Desk::new();
    sysbench_runs_on_our_tables(&Theirs::postgres(&desk), &desk);
}

#[test]
fn tables_that_sysbench_prepares_in_mariadb_are_good_for_all_tests() {
    let desk = Desk::new();
    our_tests_run_on_tables_of_sysbench(&Theirs::mariadb(&desk), &desk);
}

#[test]
fn tables_that_sysbench_prepares_in_postgresql_are_good_for_all_tests() {
    let desk = Desk::new();
    our_tests_run_on_tables_of_sysbench(&Theirs::postgres(&desk), &desk);
}
