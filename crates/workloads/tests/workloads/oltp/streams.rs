//! Tests the statements of each test: their shapes, order, shares and ranges.

use std::collections::BTreeMap;

use dbdyno_db::{mysql, postgres, sqlite};
use dbdyno_workloads::Workload;
use dbdyno_workloads::oltp::options::{Distribution, OltpOptions, OltpTest};
use dbdyno_workloads::options::Protocol;

use crate::desk::Desk;

fn options() -> OltpOptions {
    OltpOptions { tests: OltpTest::ALL.to_vec(), connections: vec![1, 4], ..OltpOptions::default() }
}

fn desk(options: &OltpOptions) -> Desk {
    Desk::new(options, mysql::capabilities("innodb", true))
}

/// Returns the statement with each run of digits as `#`.
fn shape(sql: &str) -> String {
    let mut out = String::new();
    for character in sql.chars() {
        let character = if character.is_ascii_digit() { '#' } else { character };
        if !(character == '#' && out.ends_with('#')) {
            out.push(character);
        }
    }
    out.replace("#-#-#-#-#-#-#-#-#-#", "C").replace("#-#-#-#-#", "PAD")
}

fn numbers(sql: &str) -> Vec<i64> {
    let is_digit = |character: char| character.is_ascii_digit();
    sql.split(|character| !is_digit(character)).filter_map(|part| part.parse().ok()).collect()
}

/// This is the first transaction of seed 1 on every database. It is frozen. A change of it makes
/// runs before and after it incomparable, and must raise the workload's version.
#[test]
fn the_first_transaction_of_seed_1_is_this() {
    let operation = desk(&options()).operations("read-write.c1", 0, 1).remove(0);
    insta::assert_snapshot!(operation.join("\n"), @r"
    BEGIN
    SELECT c FROM sbtest1 WHERE id=9792
    SELECT c FROM sbtest1 WHERE id=9661
    SELECT c FROM sbtest1 WHERE id=927
    SELECT c FROM sbtest1 WHERE id=9610
    SELECT c FROM sbtest1 WHERE id=1015
    SELECT c FROM sbtest1 WHERE id=3464
    SELECT c FROM sbtest1 WHERE id=6759
    SELECT c FROM sbtest1 WHERE id=4001
    SELECT c FROM sbtest1 WHERE id=3832
    SELECT c FROM sbtest1 WHERE id=7568
    SELECT c FROM sbtest1 WHERE id BETWEEN 3852 AND 3951
    SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN 7015 AND 7114
    SELECT c FROM sbtest1 WHERE id BETWEEN 3781 AND 3880 ORDER BY c
    SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN 7780 AND 7879 ORDER BY c
    UPDATE sbtest1 SET k=k+1 WHERE id=4088
    UPDATE sbtest1 SET c='03567829708-42021472347-74628398534-98840363091-84377498819-61053288713-16865690339-96042151116-77049794535-99484448476' WHERE id=5893
    DELETE FROM sbtest1 WHERE id=7353
    INSERT INTO sbtest1 (id, k, c, pad) VALUES (7353, 455, '35339495645-61145282177-86099780910-34034646022-84851805514-63821004906-85887690207-59580294488-61989883048-36377899184', '62749410525-97054266092-38351718692-31507271397-80480590083')
    COMMIT
    ");
    assert_eq!(dbdyno_workloads::oltp::Oltp::VERSION, 4);
}

#[test]
fn every_test_sends_its_statements_and_no_other() {
    let mut desk = desk(&options());
    let mut lines = Vec::new();
    for test in OltpTest::ALL {
        let step = format!("{}.c4", test.name());
        let operations = desk.operations(&step, 1, 20);
        let shapes: Vec<String> = operations[0].iter().map(|sql| shape(sql)).collect();
        for operation in &operations {
            assert_eq!(operation.iter().map(|sql| shape(sql)).collect::<Vec<_>>(), shapes, "{step}");
        }
        let mut runs: Vec<(String, usize)> = Vec::new();
        for sql in shapes {
            match runs.last_mut() {
                Some(last) if last.0 == sql => last.1 += 1,
                _ => runs.push((sql, 1)),
            }
        }
        lines.push(format!("{}:", test.name()));
        lines.extend(runs.into_iter().map(|(sql, times)| format!("  {times} {sql}")));
    }
    insta::assert_snapshot!(lines.join("\n"), @r"
    point-select:
      1 SELECT c FROM sbtest# WHERE id=#
    read-only:
      1 BEGIN
      10 SELECT c FROM sbtest# WHERE id=#
      1 SELECT c FROM sbtest# WHERE id BETWEEN # AND #
      1 SELECT SUM(k) FROM sbtest# WHERE id BETWEEN # AND #
      1 SELECT c FROM sbtest# WHERE id BETWEEN # AND # ORDER BY c
      1 SELECT DISTINCT c FROM sbtest# WHERE id BETWEEN # AND # ORDER BY c
      1 COMMIT
    read-write:
      1 BEGIN
      10 SELECT c FROM sbtest# WHERE id=#
      1 SELECT c FROM sbtest# WHERE id BETWEEN # AND #
      1 SELECT SUM(k) FROM sbtest# WHERE id BETWEEN # AND #
      1 SELECT c FROM sbtest# WHERE id BETWEEN # AND # ORDER BY c
      1 SELECT DISTINCT c FROM sbtest# WHERE id BETWEEN # AND # ORDER BY c
      1 UPDATE sbtest# SET k=k+# WHERE id=#
      1 UPDATE sbtest# SET c='C' WHERE id=#
      1 DELETE FROM sbtest# WHERE id=#
      1 INSERT INTO sbtest# (id, k, c, pad) VALUES (#, #, 'C', 'PAD')
      1 COMMIT
    write-only:
      1 BEGIN
      1 UPDATE sbtest# SET k=k+# WHERE id=#
      1 UPDATE sbtest# SET c='C' WHERE id=#
      1 DELETE FROM sbtest# WHERE id=#
      1 INSERT INTO sbtest# (id, k, c, pad) VALUES (#, #, 'C', 'PAD')
      1 COMMIT
    update-index:
      1 UPDATE sbtest# SET k=k+# WHERE id=#
    update-non-index:
      1 UPDATE sbtest# SET c='C' WHERE id=#
    insert:
      1 INSERT INTO sbtest# (id, k, c, pad) VALUES (#, #, 'C', 'PAD')
    delete:
      1 DELETE FROM sbtest# WHERE id=#
    ");
}

#[test]
fn text_and_prepared_statements_are_the_same_on_every_product() {
    let text = |protocol, capabilities| {
        let mut desk = Desk::new(&OltpOptions { protocol, ..options() }, capabilities);
        desk.operations("read-write.c4", 2, 3)
    };
    let prepared = text(Protocol::Prepared, mysql::capabilities("innodb", true));
    assert_eq!(prepared, text(Protocol::Text, mysql::capabilities("innodb", true)));
    assert_eq!(prepared, text(Protocol::Auto, postgres::capabilities()));
    let embedded = text(Protocol::Auto, sqlite::capabilities());
    assert_eq!(embedded[0][0], "BEGIN IMMEDIATE");
    assert_eq!(prepared[0][1..], embedded[0][1..]);
    let reads = Desk::new(&options(), sqlite::capabilities()).operations("read-only.c1", 0, 1);
    assert_eq!(reads[0][0], "BEGIN");
}

#[test]
fn ranges_span_their_size_and_ids_stay_in_the_table() {
    let options = OltpOptions { range_size: 37, table_size: 1000, ..options() };
    let mut seen = (i64::MAX, 0);
    for operation in desk(&options).operations("read-only.c1", 0, 300) {
        for sql in operation.iter().filter(|sql| sql.starts_with("SELECT")) {
            let numbers = numbers(sql);
            // The first number belongs to the table's name.
            let id = numbers[1];
            assert!((1..=1000).contains(&id), "{sql}");
            seen = (seen.0.min(id), seen.1.max(id));
            if sql.contains("BETWEEN") {
                assert_eq!(numbers[2] - id, 36, "{sql}");
            }
        }
    }
    assert!(seen.0 <= 5 && seen.1 >= 996, "{seen:?}");
}

#[test]
fn a_delete_and_the_insert_after_it_affect_the_same_row() {
    let options = OltpOptions { tables: 8, delete_inserts: 2, ..options() };
    for operation in desk(&options).operations("write-only.c1", 0, 200) {
        let pairs: Vec<_> = operation.iter().map(|sql| numbers(sql)).collect();
        assert!(operation[3].starts_with("DELETE") && operation[4].starts_with("INSERT"));
        assert_eq!(pairs[3][..2], pairs[4][..2], "table and id");
        assert_eq!(pairs[5][..2], pairs[6][..2]);
        assert_eq!(pairs[3][0], pairs[5][0], "both pairs use one table");
    }
}

#[test]
fn each_group_of_statements_draws_its_own_table_from_all_tables() {
    let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
    let mut differ = 0;
    let many = OltpOptions { tables: 8, ..options() };
    for operation in desk(&many).operations("read-write.c1", 0, 2000) {
        let tables: Vec<i64> = operation[1..19].iter().map(|sql| numbers(sql)[0]).collect();
        assert!(tables[..10].iter().all(|&table| table == tables[0]), "point selects share a table");
        assert_eq!(tables[16], tables[17], "delete and insert share a table");
        differ += usize::from(tables[10] != tables[0]);
        *counts.entry(tables[0]).or_default() += 1;
    }
    assert_eq!(counts.len(), 8);
    assert!(counts.values().all(|count| count.abs_diff(250) < 75), "{counts:?}");
    // In 7 of 8 transactions, the ranges and the point selects use different tables.
    assert!(usize::abs_diff(differ, 1750) < 75, "{differ}");
    let one = OltpOptions { tables: 8, one_table: true, ..options() };
    for operation in desk(&one).operations("read-write.c1", 0, 50) {
        let tables: Vec<i64> = operation[1..19].iter().map(|sql| numbers(sql)[0]).collect();
        assert!(tables.iter().all(|&table| table == tables[0]), "{tables:?}");
    }
}

#[test]
fn connections_and_steps_draw_different_numbers_and_each_can_be_repeated() {
    let mut desk = desk(&options());
    let first = desk.operations("point-select.c4", 0, 50);
    assert_eq!(first, desk.operations("point-select.c4", 0, 50));
    assert_ne!(first, desk.operations("point-select.c4", 1, 50));
    assert_ne!(first, desk.operations("point-select.c1", 0, 50));
}

#[test]
fn tests_draw_from_the_distribution_of_the_plan() {
    let options = OltpOptions { distribution: Distribution::Pareto, ..options() };
    let operations = desk(&options).operations("point-select.c1", 0, 20_000);
    let low = operations.iter().filter(|sql| numbers(&sql[0])[1] <= 2000).count();
    assert!(low.abs_diff(16_000) < 250, "{low} of 20,000 ids lie in the first fifth");
}

#[test]
fn ids_from_the_client_follow_the_highest_id_and_are_never_given_twice() {
    let options = OltpOptions { auto_inc: false, tables: 2, ..options() };
    let mut desk = desk(&options);
    desk.journal.answer("SELECT MAX(id) FROM sbtest1", 10_000);
    desk.journal.answer("SELECT MAX(id) FROM sbtest2", 10_007);
    desk.before("insert.c4");
    let mut ids: Vec<i64> = (0..4)
        .flat_map(|connection| desk.operations("insert.c4", connection, 25))
        .map(|operation| numbers(&operation[0])[1])
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (10_008..10_108).collect::<Vec<_>>());
}
