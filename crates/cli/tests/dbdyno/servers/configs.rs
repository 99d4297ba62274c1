//! Tests config intents on real servers. The run contains the option file, the server has the
//! requested settings, and an error about a rejected option names its intent.

use dbdyno_record::{CellEvent, Run};

use crate::servers::watch::server;
use crate::servers::{MARIADB_10_1, MARIADB_10_11, MYSQL_5_5, MYSQL_8_0, POSTGRES_18, small_plan, variant};
use crate::support::{Desk, faults, findings};

const CONFIG: &str = "
buffer_pool = '64 MiB'
redo = '128 MiB'
durability = 'second'
doublewrite = false
binlog = 'off'
[where_possible]
page_size = '8 KiB'
checksums = false
change_buffer = 'inserts'
";

/// Runs one server with [`CONFIG`] and checks the settings that the server reports.
fn has(prefix: &str, file: &str, wanted: &[(&str, &str)]) {
    let desk = Desk::new();
    desk.write("c.toml", CONFIG);
    desk.write("p.toml", &small_plan(&variant("a", prefix, "config = \"c.toml\""), ""));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let dir = desk.run_dir();
    let run = Run::open(&dir).unwrap();
    assert_eq!(faults(&findings(&dir)), [""; 0]);
    let settings = server(&run.cells[0]).unwrap().settings;
    for (name, value) in wanted {
        assert_eq!(settings[*name], *value, "{prefix} {name}");
    }
    let info = &run.manifest.variants[0];
    assert_eq!(std::fs::read_to_string(dir.join("configs").join(file)).unwrap(), info.config);
    assert_eq!(info.intents["durability"], "second");
}

#[test]
#[ignore = "in cargo xtask test --all: other versions"]
fn mysql_5_5_has_the_settings_of_the_intents() {
    has(
        MYSQL_5_5,
        "a.cnf",
        &[("innodb_doublewrite", "OFF"), ("innodb_log_file_size", "67108864"), ("innodb_checksums", "OFF")],
    );
}

#[test]
#[ignore = "in cargo xtask test --all: other versions"]
fn mysql_8_has_the_settings_of_the_intents() {
    has(
        MYSQL_8_0,
        "a.cnf",
        &[("innodb_redo_log_capacity", "134217728"), ("innodb_page_size", "8192"), ("log_bin", "OFF")],
    );
}

#[test]
#[ignore = "in cargo xtask test --all: other versions"]
fn mariadb_10_1_has_the_settings_of_the_intents() {
    has(
        MARIADB_10_1,
        "a.cnf",
        &[
            ("innodb_log_files_in_group", "2"),
            ("innodb_page_size", "8192"),
            ("innodb_change_buffering", "inserts"),
        ],
    );
}

#[test]
#[ignore = "in cargo xtask test --all: other versions"]
fn postgres_18_has_the_settings_of_the_intents() {
    has(
        POSTGRES_18,
        "a.conf",
        &[
            ("shared_buffers", "64MB"),
            ("data_checksums", "off"),
            ("full_page_writes", "off"),
            ("max_wal_size", "128MB"),
        ],
    );
}

#[test]
#[ignore = "in cargo xtask test --all: other versions"]
fn an_own_option_file_wins_and_the_record_says_so() {
    let desk = Desk::new();
    desk.write("own.cnf", "[mysqld]\ninnodb-buffer-pool-size = 48M\n");
    let config = "config = { buffer_pool = \"64 MiB\", redo = \"96 MiB\" }\nown_config = \"own.cnf\"";
    desk.write("p.toml", &small_plan(&variant("a", MARIADB_10_11, config), ""));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let run = Run::open(&desk.run_dir()).unwrap();
    let cell = &run.cells[0];
    assert_eq!(server(cell).unwrap().settings["innodb_buffer_pool_size"], "50331648");
    let note = "innodb_buffer_pool_size is 48M by the variant's own option file, which wins over buffer_pool = 64 MiB";
    assert!(cell.events.iter().any(|event| matches!(event, CellEvent::Note { text, .. } if text == note)));
}

#[test]
#[ignore = "in cargo xtask test --all: other versions"]
fn a_refused_option_is_reported_with_its_intent() {
    let desk = Desk::new();
    desk.write(
        "p.toml",
        &small_plan(&variant("a", MARIADB_10_11, "config = { page_size = \"12 KiB\" }"), ""),
    );
    let ended = desk.dbdyno(&["run", "p.toml"]);
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    let run = Run::open(&desk.run_dir()).unwrap();
    let events = format!("{:?}", run.cells[0].events);
    assert!(events.contains("innodb_page_size comes from the intent page_size = 12 KiB"), "{events}");
}
