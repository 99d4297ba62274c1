//! Tests how a profile, and existing tables, change the statements that are sent.

use dbdyno_db::{mysql, postgres};
use dbdyno_model::{Cold, DataMode};
use dbdyno_workloads::oltp::Oltp;
use dbdyno_workloads::oltp::options::{OltpOptions, OltpTest};
use dbdyno_workloads::options::Verify;
use dbdyno_workloads::plans::parse;
use dbdyno_workloads::{AnyWorkload, Workload};

use crate::desk::Desk;

/// Returns the options of a plan whose table `[workload.oltp]` has `text`.
fn options(text: &str) -> OltpOptions {
    let plan = format!(
        "name = \"p\"\n[[variant]]\nname = \"a\"\naddress = \"mysql://root@localhost/sbtest\"\n[workload.oltp]\n{text}\n"
    );
    parse(&plan, "p.toml")
        .unwrap_or_else(|error| panic!("{error}"))
        .workload
        .options::<OltpOptions>()
        .unwrap()
        .clone()
}

#[test]
fn version_0_5_sends_text_to_one_table_and_adds_up_ranges_in_sql() {
    let options =
        options("profile = \"sysbench-0.5\"\ntests = [\"read-write\"]\ntables = 8\ntable_size = 100_000");
    let mut desk = Desk::new(&options, mysql::capabilities("innodb", true));
    let operation = desk.operations("read-write.c1", 0, 1).remove(0);
    insta::assert_snapshot!(operation[10..].join("\n"), @r"
    SELECT c FROM sbtest8 WHERE id=55982
    SELECT c FROM sbtest8 WHERE id BETWEEN 50370 AND 50370+99
    SELECT SUM(k) FROM sbtest8 WHERE id BETWEEN 49590 AND 49590+99
    SELECT c FROM sbtest8 WHERE id BETWEEN 49645 AND 49645+99 ORDER BY c
    SELECT DISTINCT c FROM sbtest8 WHERE id BETWEEN 50088 AND 50088+99 ORDER BY c
    UPDATE sbtest8 SET k=k+1 WHERE id=50384
    UPDATE sbtest8 SET c='00938988571-49315694435-07595003749-05400662433-36861714172-05230399296-25098025449-23217047647-95344298393-53863329717' WHERE id=48060
    DELETE FROM sbtest8 WHERE id=57646
    INSERT INTO sbtest8 (id, k, c, pad) VALUES (57646, 49873, '14302729129-55392449043-27166654380-50702131810-89439312404-97242622096-67085758539-54209313522-69433328157-17886557304', '87506326250-43821121308-81976253785-35653872805-15013107182')
    COMMIT
    ");
    assert_eq!(operation.len(), 20);
    let deviations = Oltp::deviations(&options);
    assert_eq!(Oltp::follows(&options), "sysbench oltp.lua, version 0.5");
    assert!(
        !deviations
            .iter()
            .any(|one| ["protocol", "distribution", "tables of a transaction"].contains(&one.topic.as_str()))
    );
    insta::assert_snapshot!(desk.before("load")[1], @"CREATE TABLE sbtest1 (id INTEGER UNSIGNED NOT NULL AUTO_INCREMENT, k INTEGER UNSIGNED DEFAULT 0 NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id)) ENGINE=innodb MAX_ROWS = 1000000");
    let mut desk = Desk::new(&options, postgres::capabilities());
    insta::assert_snapshot!(desk.before("load")[1], @"CREATE TABLE sbtest1 (id SERIAL, k INTEGER DEFAULT 0 NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id))");
}

#[test]
fn what_differs_from_the_profile_is_recorded() {
    let topics = |text: &str| -> Vec<String> {
        Oltp::deviations(&options(text)).into_iter().map(|one| one.topic).collect()
    };
    let of = |text: &str, topic: &str| topics(text).iter().filter(|one| *one == topic).count();
    let old = "profile = \"sysbench-0.5\"";
    assert_eq!(of("one_table = true", "tables of a transaction"), 1);
    assert_eq!(of(&format!("{old}\none_table = false"), "tables of a transaction"), 1);
    assert_eq!(of(&format!("{old}\nprotocol = \"auto\""), "protocol"), 1);
    assert_eq!(of(&format!("{old}\ndistribution = \"uniform\""), "distribution"), 1);
    assert_eq!(of("distribution = \"zipfian\"\nzipfian_scrambled = true", "distribution"), 1);
    assert_eq!(of("load_connections = 1", "load connections"), 0);
    assert_eq!(of("load_method = \"insert\"", "character set of the load"), 1);
    assert_eq!(of("load_method = \"stream\"", "character set of the load"), 0);
    assert_eq!(of("use_existing = true", "tables"), 1);
    assert_eq!(of("use_existing = true", "load"), 0);
    assert_eq!(of("id = \"bigint\"\nindex_before_load = true", "id"), 1);
    assert_eq!((of("", "data"), of("", "cold")), (0, 0));
    let restarted = OltpOptions { data: DataMode::Restart, cold: Cold::All(true), ..OltpOptions::default() };
    let of_restarted = Oltp::deviations(&restarted);
    for topic in ["data", "cold"] {
        assert!(of_restarted.iter().any(|one| one.topic == topic), "{topic}");
    }
    assert_eq!((of("", "time_cap"), of("events = 1000", "time_cap")), (1, 0));
    assert_eq!(of("", "binary logs"), 1);
}

#[test]
fn a_cleanup_before_the_first_test_is_recorded_and_a_plan_can_turn_it_off() {
    let settle = |text: &str| {
        let deviations = Oltp::deviations(&options(text));
        deviations.into_iter().find(|one| one.topic == "settle").map(|one| one.here)
    };
    insta::assert_snapshot!(settle("").unwrap(), @"after the load: cleanup (InnoDB flushes dirty pages, vacuum, ANALYZE, a checkpoint, as far as the product has them), then until the server is quiet, at most 10m");
    assert!(settle("settle_wait = \"9s\"").unwrap().ends_with("with a pause at least 9 s long in all"));
    assert!(settle("settle = {}").unwrap().ends_with("then until the server is quiet, at most 10m"));
    assert_eq!(settle("use_existing = true"), None);
    assert!(settle("use_existing = true\nsettle = { after = \"each-write\" }").is_some());
    assert_eq!(settle("settle = { by = \"none\" }"), None);
    let nothing = options("tests = [\"point-select\"]\nsettle = { by = \"none\" }");
    let mut desk = Desk::new(&nothing, mysql::capabilities("innodb", true));
    assert_eq!(desk.after("index"), [""; 0]);
}

#[test]
fn existing_tables_are_inspected_and_neither_made_nor_dropped() {
    let tests = vec![OltpTest::PointSelect, OltpTest::ReadWrite];
    // Without verification no whole table is read.
    let verify = Verify::Off;
    let options = OltpOptions { use_existing: true, tables: 2, tests, verify, ..OltpOptions::default() };
    let mut desk = Desk::new(&options, mysql::capabilities("innodb", false));
    assert_eq!(desk.workload.steps(), ["point-select.c1", "read-write.c1"]);
    desk.journal.answer("SELECT MAX(id) FROM sbtest1", 10_000);
    desk.journal.answer("SELECT MAX(id) FROM sbtest2", 9_999);
    insta::assert_snapshot!(desk.before_fails("point-select.c1"), @"table sbtest2 has 9999 rows with ids up to 9999, but the plan says table_size = 10000: fill the tables (the original's command prepare does), or set their size in the plan");
    desk.journal.answer("SELECT MAX(id) FROM sbtest2", 10_000);
    assert_eq!(
        desk.before("point-select.c1"),
        ["SELECT MAX(id) FROM sbtest1", "SELECT MAX(id) FROM sbtest2"]
    );
    assert!(desk.before("read-write.c1").is_empty());
}
