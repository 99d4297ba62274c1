//! Tests every load method for sbtest tables on real servers. All rows must be there, down to the
//! last character.

use dbdyno_record::{CellEvent, Run};

use crate::servers::shared::{self, MARIADB, POSTGRES, at};
use crate::servers::{
    MARIADB_10_1, MARIADB_10_11, MYSQL_5_5, MYSQL_8_0, POSTGRES_9_6, POSTGRES_18, external, variant,
};
use crate::support::{Desk, faults, findings};

/// A plan with three tables and four connections, so that several connections share a table.
fn plan(variants: &str, options: &str) -> String {
    format!(
        "name = \"test\"\n{variants}\n[workload.oltp]\nsettle_wait = \"0s\"\ntests = [\"insert\"]\ntables = 3\ntable_size = 20_000\n\
         events = 200\n{options}\n"
    )
}

/// The names of the parts in the load's first check, and of the work that the conductor did outside
/// the measured time.
fn checked(desk: &Desk) -> (String, String) {
    let run = Run::open(&desk.run_dir()).unwrap();
    let names = |cell: &dbdyno_record::CellRecord| {
        let parts = cell.steps[0].checks()[0].parts.iter().map(|part| part.name.clone());
        let works = cell.events.iter().filter_map(|event| match event {
            CellEvent::Work { name, .. } => Some(name.clone()),
            _ => None,
        });
        (parts.collect::<Vec<_>>().join(", "), works.collect::<Vec<_>>().join(", "))
    };
    names(run.cells.last().unwrap())
}

#[test]
fn a_stream_fills_tables_of_every_product_and_new_ids_follow_its_own() {
    stream(&shared::on_all());
}

#[test]
#[ignore = "in cargo xtask test --all: other versions"]
fn a_stream_fills_tables_of_other_versions_and_engines() {
    let variants = variant("xtradb", MARIADB_10_1, "")
        + &variant("maria", MARIADB_10_11, "")
        + &variant("myisam", MARIADB_10_11, "options.engine = \"myisam\"")
        + &variant("mysql-old", MYSQL_5_5, "")
        + &variant("mysql", MYSQL_8_0, "")
        + &variant("pg-old", POSTGRES_9_6, "")
        + &variant("pg", POSTGRES_18, "");
    stream(&variants);
}

fn stream(variants: &str) {
    let desk = Desk::new();
    desk.write("p.toml", &plan(variants, "load_method = \"stream\""));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let (findings, cells) = (findings(&desk.run_dir()), variants.matches("[[variant]]").count());
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), cells));
    let (parts, _) = checked(&desk);
    assert_eq!(parts, "rows, min(id), max(id), sum(id), sum(k), sampled rows as sent");
}

#[test]
#[ignore = "in cargo xtask test --all: larger loads"]
fn wide_ids_the_old_profile_and_an_early_index_load_by_insert_too() {
    for options in ["id = \"bigint\"", "profile = \"sysbench-0.5\"\nindex_before_load = true"] {
        let desk = Desk::new();
        let variants = at("maria", &MARIADB, "") + &at("pg", &POSTGRES, "");
        desk.write("p.toml", &plan(&variants, options));
        desk.dbdyno(&["run", "p.toml"]).expect_ok();
        let findings = findings(&desk.run_dir());
        assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 2), "{options}");
    }
}

#[test]
#[ignore = "in cargo xtask test --all: a server of its own"]
fn an_external_server_that_refuses_a_stream_is_reported_with_the_remedy() {
    let desk = Desk::new();
    let server = external::external_server(&desk, MYSQL_8_0);
    let address = format!("mysql://root@localhost/bench?socket={}", server.socket().display());
    let variant = format!("[[variant]]\nname = \"theirs\"\naddress = \"{address}\"\n");
    let of_dbt3 = format!("name = \"test\"\n{variant}[workload.dbt3]\nscale_factor = 0.01\n");
    for text in [plan(&variant, "load_method = \"stream\""), of_dbt3] {
        desk.write("p.toml", &text);
        let ended = desk.dbdyno(&["run", "p.toml"]);
        assert_eq!(ended.code, Some(4), "{ended:?}");
        assert!(ended.err.contains("variant theirs: the server's local_infile is off"), "{}", ended.err);
        assert!(ended.err.contains("SET GLOBAL local_infile = ON"), "{}", ended.err);
    }
    assert!(desk.run_dirs().is_empty(), "a run was begun");
}
