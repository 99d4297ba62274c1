//! The load: how many statements, which rows, what they hold.

use dbdyno_drivers::{mysql, postgres};
use dbdyno_plan::Oltp as Options;

use crate::desk::Desk;

/// The rows of a multi-row INSERT, as (k, c, pad).
fn rows(sql: &str) -> Vec<(u64, &str, &str)> {
    let values = sql.split_once("VALUES(").unwrap().1.strip_suffix(')').unwrap();
    values
        .split("),(")
        .map(|row| {
            let parts: Vec<&str> = row.split(", ").collect();
            let text = |index: usize| parts[index].strip_prefix('\'').unwrap().strip_suffix('\'').unwrap();
            (parts[0].parse().unwrap(), text(1), text(2))
        })
        .collect()
}

#[test]
fn ten_thousand_rows_are_four_statements_of_at_most_half_a_mebibyte() {
    let mut desk = Desk::new(&Options::default(), mysql::capabilities("innodb", true));
    let (end, _) = desk.run("load");
    let texts: Vec<String> = desk.journal.take().iter().map(crate::desk::text).collect();
    assert_eq!((texts.len(), end.lanes[0].started), (4, 4));
    let lengths: Vec<usize> = texts.iter().map(String::len).collect();
    assert!(lengths.iter().all(|&length| length <= 512 << 10), "{lengths:?}");
    assert!(lengths[..3].iter().all(|&length| length > 505 << 10), "{lengths:?}");
    let all: Vec<_> = texts.iter().flat_map(|sql| rows(sql)).collect();
    assert_eq!(all.len(), 10_000);
    assert!(all.iter().all(|(k, c, pad)| (1..=10_000).contains(k) && c.len() == 119 && pad.len() == 59));
    let distinct = all.iter().map(|row| row.1).collect::<std::collections::HashSet<_>>();
    assert_eq!(distinct.len(), 10_000);
}

#[test]
fn every_product_gets_the_same_rows_and_tables_differ() {
    let options = Options { tables: 2, table_size: 50, load_connections: 2, ..Options::default() };
    let load =
        |capabilities, lane| Desk::new(&options, capabilities).operations("load", lane, 1)[0][0].clone();
    let mysql = || mysql::capabilities("innodb", true);
    assert_eq!(load(mysql(), 0), load(postgres::capabilities(), 0));
    assert_ne!(rows(&load(mysql(), 0)), rows(&load(mysql(), 1)));
    assert!(load(mysql(), 1).starts_with("INSERT INTO sbtest2(k, c, pad) VALUES("));
}

#[test]
fn tables_go_round_the_connections_and_each_is_loaded_by_one() {
    let options = Options { tables: 5, table_size: 10, load_connections: 2, ..Options::default() };
    let mut desk = Desk::new(&options, mysql::capabilities("innodb", true));
    let tables = |operations: Vec<Vec<String>>| -> Vec<String> {
        operations.iter().map(|sql| sql[0].split(['(', ' ']).nth(2).unwrap().to_owned()).collect()
    };
    assert_eq!(tables(desk.operations("load", 0, 3)), ["sbtest1", "sbtest3", "sbtest5"]);
    assert_eq!(tables(desk.operations("load", 1, 2)), ["sbtest2", "sbtest4"]);
    let (end, record) = desk.run("index");
    assert_eq!(end.lanes.iter().map(|lane| lane.rows).sum::<u64>(), 50);
    assert_eq!(record.spec.headline.label, "indexed rows/s");
    let mut indexes: Vec<String> = desk.journal.take().iter().map(crate::desk::text).collect();
    indexes.sort();
    assert_eq!(indexes[4], "CREATE INDEX k_5 ON sbtest5(k)");
    assert_eq!(indexes.len(), 5);
}

#[test]
fn clients_number_rows_when_the_server_does_not() {
    let options = Options { table_size: 20, auto_inc: false, ..Options::default() };
    let sql = Desk::new(&options, mysql::capabilities("innodb", true)).operations("load", 0, 1)[0][0].clone();
    let ids: Vec<u64> = sql
        .split_once("INSERT INTO sbtest1(id, k, c, pad) VALUES(")
        .unwrap()
        .1
        .split("),(")
        .map(|row| row.split(", ").next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(ids, (1..=20).collect::<Vec<_>>());
}
