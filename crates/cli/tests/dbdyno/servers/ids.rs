//! Tests that the ids that servers assign have no gaps with any load method, even where a server
//! increments by more than 1.

use dbdyno_record::Run;

use crate::servers::external::{address, external_server};
use crate::servers::shared::{MARIADB, MYSQL, at};
use crate::servers::watch::ask;
use crate::servers::{MARIADB_10_11, MYSQL_5_5, MYSQL_8_0, small_plan, variant};
use crate::support::{Desk, faults, findings};

/// The settings of nodes in a cluster, or of servers that replicate in both directions.
const IN_STEPS: &str = "[mysqld]\nauto_increment_increment = 3\nauto_increment_offset = 2\n";

/// A plan in which each connection loads whole tables, each with several statements, whatever the
/// load method.
fn oltp(variants: &str, options: &str) -> String {
    format!(
        "name = \"test\"\n{variants}\n[workload.oltp]\nsettle_wait = \"0s\"\ntests = [\"insert\"]\ntables = 2\nload_connections = 2\n\
         table_size = 12_000\nevents = 200\n{options}\n"
    )
}

/// Each table's lowest id, highest id and number of rows, from the checks after the load.
fn loaded(run: &Run) -> Vec<[i128; 3]> {
    let checks = run.cells.iter().flat_map(|cell| cell.steps[0].checks());
    let part = |check: &dbdyno_record::Check, name: &str| {
        check.parts.iter().find(|part| part.name == name).map(|part| part.actual).unwrap()
    };
    checks.map(|check| ["min(id)", "max(id)", "rows"].map(|name| part(check, name))).collect()
}

#[test]
fn tables_of_their_own_connections_have_ids_without_gaps_in_every_way_to_load() {
    for load_method in ["insert", "stream"] {
        ids_have_no_gaps(&Desk::new(), &(at("maria", &MARIADB, "") + &at("mysql", &MYSQL, "")), load_method);
    }
}

#[test]
#[ignore = "in cargo xtask test --all: servers with other settings"]
fn servers_that_count_in_steps_give_tables_ids_without_gaps_in_every_way_to_load() {
    for load_method in ["insert", "stream"] {
        let desk = Desk::new();
        desk.write("my.cnf", IN_STEPS);
        let variants = variant("maria", MARIADB_10_11, "")
            + &variant("mysql", MYSQL_8_0, "")
            + &variant("maria-steps", MARIADB_10_11, "own_config = \"my.cnf\"")
            + &variant("mysql-steps", MYSQL_8_0, "own_config = \"my.cnf\"")
            + &variant("old-steps", MYSQL_5_5, "own_config = \"my.cnf\"");
        ids_have_no_gaps(&desk, &variants, load_method);
    }
}

fn ids_have_no_gaps(desk: &Desk, variants: &str, load_method: &str) {
    desk.write("p.toml", &oltp(variants, &format!("load_method = \"{load_method}\"")));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let dir = desk.run_dir();
    let (findings, cells) = (findings(&dir), variants.matches("[[variant]]").count());
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), cells), "{load_method}");
    assert_eq!(loaded(&Run::open(&dir).unwrap()), vec![[1, 12_000, 12_000]; 2 * cells], "{load_method}");
}

/// An external server's own increment stays as it is. The sessions that insert set their own.
#[test]
#[ignore = "in cargo xtask test --all: a server with other settings"]
fn an_external_server_that_counts_in_steps_gives_tests_the_ids_that_they_ask_for() {
    let desk = Desk::new();
    let server = external_server(&desk, MYSQL_8_0);
    let root = server.options(None);
    ask(&root, &["SET GLOBAL auto_increment_increment = 3", "SET GLOBAL auto_increment_offset = 2"]);
    let address = address(&server, "bench").replace("bench@", "root@");
    let variant = format!("[[variant]]\nname = \"theirs\"\naddress = \"{address}\"\n");
    desk.write("p.toml", &oltp(&variant, ""));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let dir = desk.run_dir();
    assert_eq!(faults(&findings(&dir)), [""; 0]);
    assert_eq!(loaded(&Run::open(&dir).unwrap()), [[1, 12_000, 12_000]; 2]);
    // The ids of the rows that the test inserted have no gaps either.
    for table in ["sbtest1", "sbtest2"] {
        let gaps = format!("SELECT MAX(id) - COUNT(*), COUNT(*) > 12000 FROM bench.{table}");
        assert_eq!(ask(&root, &[&gaps]), [["0", "1"].map(|cell| Some(cell.to_owned()))]);
    }
    assert_eq!(ask(&root, &["SELECT @@GLOBAL.auto_increment_increment"]), [[Some("3".to_owned())]]);
}

#[test]
#[ignore = "in cargo xtask test --all: servers with other settings"]
fn the_insert_benchmark_finds_its_ids_where_the_server_counts_in_steps() {
    for protocol in ["text", "prepared"] {
        let desk = Desk::new();
        desk.write("my.cnf", IN_STEPS);
        let variants = variant("maria", MARIADB_10_11, "own_config = \"my.cnf\"")
            + &variant("mysql", MYSQL_8_0, "own_config = \"my.cnf\"");
        desk.write("p.toml", &small_plan(&variants, &format!("protocol = \"{protocol}\"")));
        desk.dbdyno(&["run", "p.toml"]).expect_ok();
        let findings = findings(&desk.run_dir());
        assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 2), "{protocol}");
    }
}
