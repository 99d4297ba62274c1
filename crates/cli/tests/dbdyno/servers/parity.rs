//! Compares the predicted settings of each server with those that it reports, without an option
//! file and with one. Also tests plans that refuse variants with different settings.

use dbdyno_analyse::parity::{Build, Circumstances, ClassRow, Planned, compared, effective, predicted};
use dbdyno_db::server::{list, servers_dir};
use dbdyno_fetch::answer_of;
use dbdyno_record::Run;

use crate::servers::watch::server_of;
use crate::servers::{MARIADB_10_1, MARIADB_11_8, MYSQL_5_6, MYSQL_8_0, POSTGRES_15, POSTGRES_18, variant};
use crate::support::{Desk, findings};

/// Each line changes a class of settings and is valid in every version. Options that only some
/// versions have begin with `loose`. Old versions log statements in the binary log by default and
/// refuse this isolation level then, so the format is set.
const OPTION_FILE: &str = "[mysqld]\ninnodb_buffer_pool_size = 200M\ninnodb_flush_log_at_trx_commit = 2\ninnodb_doublewrite = 0\n\
     character_set_server = utf8mb4\ntransaction-isolation = READ-COMMITTED\ninnodb_flush_method = O_DIRECT\n\
     loose_innodb_log_file_size = 64M\nloose_performance_schema = OFF\nlog_bin = binlog\nloose_binlog_format = MIXED\nserver_id = 1\nsync_binlog = 0\n\
     slow_query_log = ON\ninnodb_io_capacity = 2000\nmax_connections = 300\n[client]\nport = 1\n";

const POSTGRESQL_CONF: &str = "shared_buffers = 12800\nfsync = off\nsynchronous_commit = off\nfull_page_writes = 0\n\
     max_wal_size = '2GB'\ndefault_transaction_isolation = 'repeatable read'\nwal_level = logical\nautovacuum = false\n\
     work_mem = 8192\n";

const WORKLOAD: &str = "[workload.oltp]\ntests = [\"point-select\"]\ntables = 1\ntable_size = 100\nevents = 100\n\
     connections = [1]\nsettle_wait = \"0s\"\n";

/// Runs every server whose name begins with `prefix`, once with its defaults and once with
/// `config`, and compares the prediction with the server's report. At least `minimum` servers must
/// be installed.
fn matches_the_prediction(prefix: &str, config: &str, minimum: usize) {
    let desk = Desk::new();
    desk.write("configured.cnf", config);
    let names: Vec<String> =
        list(&servers_dir()).into_iter().filter(|name| name.starts_with(prefix)).collect();
    assert!(
        names.len() >= minimum,
        "of {prefix} only {names:?} are here; get more with `cargo xtask servers`"
    );
    let variants: String = names
        .iter()
        .map(|name| {
            format!(
                "[[variant]]\nname = \"{name}\"\nserver = \"{name}\"\n[[variant]]\nname = \"{name}.configured\"\n\
                 server = \"{name}\"\nown_config = \"configured.cnf\"\n"
            )
        })
        .collect();
    desk.write("p.toml", &format!("name = \"p\"\n{variants}{WORKLOAD}"));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let dir = desk.run_dir();
    let run = Run::open(&dir).unwrap();
    let mut wrong = Vec::new();
    for info in &run.manifest.variants {
        let server = server_of(&dir, &info.name);
        let name = info.name.trim_end_matches(".configured");
        let answer = answer_of(&servers_dir(), name).expect("`cargo xtask servers` asks it");
        let (product, version, settings) = (answer.product, answer.version, answer.settings);
        let build = Build { product, version, settings, ask: String::new() };
        let foreseen = predicted(info, Some(&build), &Planned::default());
        let read_back = effective(info, &server, &Planned::default());
        let classes = compared(&[foreseen, read_back], &[], Circumstances::default()).classes;
        let is_wrong = |row: &&ClassRow| row.cells[0].text != row.cells[1].text;
        wrong.extend(classes.iter().filter(is_wrong).map(|row| format!("{name}: {:?}", row.cells)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn each_mariadbs_settings_are_predicted() {
    matches_the_prediction("mariadb-", OPTION_FILE, 2);
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn each_mysqls_settings_are_predicted() {
    matches_the_prediction("mysql-", OPTION_FILE, 2);
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn each_postgresqls_settings_are_predicted() {
    matches_the_prediction("pg-", POSTGRESQL_CONF, 2);
}

#[test]
fn a_plan_that_refuses_unequal_variants_ends_before_anything_runs() {
    let desk = Desk::new();
    let variants = variant("ma", MARIADB_11_8, "") + &variant("my", MYSQL_8_0, "");
    desk.write("p.toml", &format!("name = \"p\"\nparity = \"refuse\"\n{variants}{WORKLOAD}"));
    let ended = desk.dbdyno(&["run", "p.toml"]);
    ended.expect_code(2);
    let said = desk.refusal(&ended);
    assert!(
        said.contains(
            "binlog: binary log: off by default (ma), binary log, synced at each commit by default (my)"
        ),
        "{said}"
    );
    assert!(said.contains("make them equal, or list intended differences in differs of the plan"), "{said}");
    assert!(desk.run_dirs().is_empty(), "a run began");
}

/// A statement that a server runs at its start cannot be predicted, so each variant must be started
/// before its settings are known.
#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn a_difference_that_only_a_running_server_shows_is_refused_before_anything_is_measured() {
    let desk = Desk::new();
    desk.write("a.cnf", "[mysqld]\nskip_log_bin\n");
    let init = desk.write("init.sql", "SET GLOBAL innodb_flush_log_at_trx_commit = 2;\n");
    desk.write("b.cnf", &format!("[mysqld]\nskip_log_bin\ninit_file = {}\n", init.display()));
    let variants = variant("a", MYSQL_8_0, "own_config = \"a.cnf\"")
        + &variant("b", MYSQL_8_0, "own_config = \"b.cnf\"");
    desk.write("p.toml", &format!("name = \"p\"\nparity = \"refuse\"\n{variants}{WORKLOAD}"));
    let ended = desk.dbdyno(&["run", "p.toml"]);
    ended.expect_code(2);
    assert!(ended.err.contains("commit: commit: synced"), "{ended:?}");
    let run = Run::open(&desk.run_dir()).unwrap();
    assert!(run.cells.is_empty(), "a cell began");
    // With the difference declared, the plan runs.
    let declared = format!("name = \"p\"\nparity = \"refuse\"\ndiffers = [\"commit\"]\n{variants}{WORKLOAD}");
    desk.write("declared.toml", &declared);
    desk.dbdyno(&["run", "declared.toml", "--out", "declared"]).expect_ok();
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn sessions_and_origins_of_settings_are_recorded() {
    let desk = Desk::new();
    desk.write("my.cnf", "[mysqld]\ntransaction-isolation = READ-COMMITTED\n");
    desk.write("pg.conf", "default_transaction_isolation = 'repeatable read'\n");
    let variants = variant("xtradb", MARIADB_10_1, "own_config = \"my.cnf\"")
        + &variant("old", MYSQL_5_6, "own_config = \"my.cnf\"")
        + &variant("new", MYSQL_8_0, "own_config = \"my.cnf\"")
        + &variant("pg15", POSTGRES_15, "own_config = \"pg.conf\"")
        + &variant("pg18", POSTGRES_18, "");
    desk.write("p.toml", &format!("name = \"p\"\n{variants}{WORKLOAD}"));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let dir = desk.run_dir();
    let session = |variant: &str, name: &str| server_of(&dir, variant).session[name].clone();
    assert_eq!(session("xtradb", "tx_isolation"), "READ-COMMITTED");
    assert_eq!(session("old", "autocommit"), "ON");
    assert_eq!(session("new", "transaction_isolation"), "READ-COMMITTED");
    assert_eq!(session("new", "character_set_database"), "utf8mb4");
    assert_eq!(
        [session("pg15", "transaction_isolation"), session("pg18", "lc_collate")],
        ["repeatable read", "C"]
    );
    assert_eq!(server_of(&dir, "pg15").sources["default_transaction_isolation"], "configuration file");
    assert_eq!(server_of(&dir, "new").sources["datadir"], "COMMAND_LINE");
    assert!(
        server_of(&dir, "xtradb").sources.is_empty()
            || server_of(&dir, "xtradb").sources.contains_key("datadir")
    );
    let parity = findings(&dir).parity.unwrap();
    let isolation = parity.classes.iter().find(|row| row.id == "isolation").unwrap();
    let texts: Vec<&str> = isolation.cells.iter().map(|cell| cell.text.as_str()).collect();
    assert_eq!(
        texts,
        ["read committed", "read committed", "read committed", "repeatable read", "read committed"]
    );
}
