//! Tests that sysbench's own scripts, as Debian packages them, send the statements of the classic
//! tests. Those were compared with sysbench itself.

use std::collections::BTreeMap;

use dbdyno_db::{mysql, postgres, sqlite};
use dbdyno_workloads::oltp::options::{OltpOptions, OltpTest};

use super::{desk, desk_on, stock};
use crate::desk::{Desk, text};

/// Returns the statement in lower case without blanks, and with each run of digits as `#`.
fn shape(sql: &str) -> String {
    let mut out = String::new();
    for character in sql.chars() {
        let character = if character.is_ascii_digit() { '#' } else { character };
        if !(character == '#' && out.ends_with('#')) {
            out.push(character);
        }
    }
    out.replace("#-#-#-#-#-#-#-#-#-#", "C").replace("#-#-#-#-#", "PAD").replace(' ', "").to_lowercase()
}

fn shapes(operations: &[Vec<String>]) -> Vec<Vec<String>> {
    operations.iter().map(|operation| operation.iter().map(|sql| shape(sql)).collect()).collect()
}

#[test]
#[ignore = "in cargo xtask test --all: sysbench's own scripts"]
fn scripts_send_the_statements_of_the_classic_tests_in_their_order() {
    let scripts = [
        (OltpTest::PointSelect, "oltp_point_select"),
        (OltpTest::ReadOnly, "oltp_read_only"),
        (OltpTest::ReadWrite, "oltp_read_write"),
        (OltpTest::WriteOnly, "oltp_write_only"),
        (OltpTest::UpdateIndex, "oltp_update_index"),
        (OltpTest::UpdateNonIndex, "oltp_update_non_index"),
        (OltpTest::Insert, "oltp_insert"),
        (OltpTest::Delete, "oltp_delete"),
    ];
    for capabilities in [mysql::capabilities("innodb", true), postgres::capabilities()] {
        for (test, script) in scripts {
            let options = OltpOptions { tests: vec![test], tables: 3, ..OltpOptions::default() };
            let classic =
                Desk::new(&options, capabilities.clone()).operations(&format!("{}.c1", test.name()), 0, 20);
            let own = desk_on(&stock(script, "tables = 3"), capabilities.clone()).operations(
                &format!("{script}.c1"),
                0,
                20,
            );
            // The classic insert gives id 0 on MySQL and leaves the id out on PostgreSQL, as the
            // script does.
            assert_eq!(shapes(&own), shapes(&classic), "{script}");
        }
    }
}

#[test]
#[ignore = "in cargo xtask test --all: sysbench's own scripts"]
fn draws_depend_on_the_event_and_not_on_the_database() {
    let of = |connection, capabilities| {
        desk_on(&format!("{}connections = 2", stock("oltp_read_only", "")), capabilities).operations(
            "oltp_read_only.c2",
            connection,
            10,
        )
    };
    let first = of(0, mysql::capabilities("innodb", true));
    assert_eq!(first, of(0, postgres::capabilities()));
    assert_ne!(first, of(1, postgres::capabilities()));
    assert_ne!(first[0], first[1]);
}

#[test]
#[ignore = "in cargo xtask test --all: sysbench's own scripts"]
fn prepare_makes_the_tables_that_the_original_makes() {
    let mut desk = desk(
        &stock("oltp_common", "tables = 2, table_size = 6_000").replace("oltp_common", "oltp_read_only"),
    );
    let (end, record) = desk.run("prepare");
    let sent: Vec<String> = desk.journal.take().iter().map(text).collect();
    let creates: Vec<&String> = sent.iter().filter(|sql| sql.contains("CREATE TABLE")).collect();
    assert_eq!(creates.len(), 2, "{creates:?}");
    assert!(creates.iter().all(|sql| sql.contains("/*! ENGINE = innodb */")), "{creates:?}");
    let inserts: Vec<&String> =
        sent.iter().filter(|sql| sql.starts_with("INSERT INTO sbtest1(k, c, pad)")).collect();
    // 6,000 rows of 192 bytes need three statements of 512 KiB.
    assert_eq!(inserts.len(), 3);
    assert!(inserts.iter().all(|sql| sql.len() < 512 * 1024) && inserts[0].len() > 500 * 1024);
    assert!(sent.iter().any(|sql| sql.contains("CREATE INDEX k_2 ON sbtest2(k)")));
    let rows: u64 = end.tasks.iter().map(|task| task.rows).sum();
    // The null database reports one changed row for each of the four other statements.
    assert_eq!(rows, 12_000 + 4);
    assert_eq!(record.damaged, None);
}

#[test]
#[ignore = "in cargo xtask test --all: sysbench's own scripts"]
fn scripts_of_random_points_and_ranges_send_as_many_as_their_options_say() {
    let sent = |script: &str, options: &str| {
        let operations = desk(&stock(script, options)).operations(&format!("{script}.c1"), 0, 5);
        shapes(&operations).concat()
    };
    let points = sent("select_random_points", "random_points = 3");
    assert_eq!(points.len(), 5);
    assert!(points[0].replace('\n', "").contains("wherekin(#,#,#)"), "{points:?}");
    let ranges = sent("select_random_ranges", "number_of_ranges = 2");
    assert!(ranges[0].replace('\n', "").contains("kbetween#and#orkbetween#and#"), "{ranges:?}");
}

#[test]
#[ignore = "in cargo xtask test --all: sysbench's own scripts"]
fn bulk_inserts_are_sent_when_they_are_full_and_at_the_end() {
    let mut desk = desk(&format!("{}events = 60_000", stock("bulk_insert", "")));
    let (end, record) = desk.run("bulk_insert.c1");
    let sent: Vec<String> = desk.journal.take().iter().map(text).collect();
    assert_eq!(end.tasks[0].done, 60_000);
    let rows: usize = sent.iter().map(|sql| sql.matches('(').count()).sum();
    assert_eq!(rows, 60_000);
    assert!(sent.len() > 1 && sent[0].starts_with("INSERT INTO sbtest1 VALUES(1,1),(2,2)"), "{}", sent.len());
    assert_eq!(record.damaged, None);
}

#[test]
#[ignore = "in cargo xtask test --all: sysbench's own scripts"]
fn a_database_whose_tables_give_the_keys_gets_them_as_integers() {
    let mut desk = desk_on(&stock("oltp_read_only", "table_size = 10"), sqlite::capabilities());
    desk.run("prepare");
    let sent: Vec<String> = desk.journal.take().iter().map(text).collect();
    assert!(sent[0].contains("id INTEGER,") && !sent[0].contains("SERIAL"), "{}", sent[0]);
}

#[test]
#[ignore = "in cargo xtask test --all: sysbench's own scripts"]
fn statements_are_counted_by_kind_and_separately_from_the_script() {
    let mut desk = desk(&format!("{}events = 50", stock("oltp_read_write", "")));
    let (_, record) = desk.run("oltp_read_write.c1");
    let counted: BTreeMap<String, u64> = record
        .events
        .iter()
        .filter_map(|event| match event {
            dbdyno_record::StepEvent::Statement { statement, done, .. } => Some((statement.clone(), *done)),
            _ => None,
        })
        .collect();
    let of = |name: &str| counted.get(name).copied().unwrap_or(0);
    // The null database reports a changed row for BEGIN and COMMIT, so the two kinds are added.
    assert_eq!((of("read"), of("write") + of("other"), of("script")), (14 * 50, 6 * 50, 50), "{counted:?}");
}
