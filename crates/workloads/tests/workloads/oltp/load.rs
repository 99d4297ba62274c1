//! Tests the statements of the load, and the rows that they insert.

use dbdyno_db::null::Request;
use dbdyno_db::{Capabilities, mysql, postgres, sqlite};
use dbdyno_workloads::oltp::options::{IdType, LoadMethod, OltpOptions};
use dbdyno_workloads::options::Protocol;
use dbdyno_workloads::{AnyWorkload, Workload};

use crate::desk::Desk;

/// Returns the rows of a multi-row INSERT, as (k, c, pad).
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
    let options = OltpOptions { load_connections: 1, ..OltpOptions::default() };
    let mut desk = Desk::new(&options, mysql::capabilities("innodb", true));
    let (end, _) = desk.run("load");
    let texts: Vec<String> = desk.journal.take().iter().map(crate::desk::text).collect();
    assert_eq!((texts.len(), end.tasks[0].started), (4, 4));
    let lengths: Vec<usize> = texts.iter().map(String::len).collect();
    assert!(lengths.iter().all(|&length| length <= 512 << 10), "{lengths:?}");
    assert!(lengths[..3].iter().all(|&length| length > 505 << 10), "{lengths:?}");
    let all: Vec<_> = texts.iter().flat_map(|sql| rows(sql)).collect();
    assert_eq!(all.len(), 10_000);
    assert!(all.iter().all(|(k, c, pad)| (1..=10_000).contains(k) && c.len() == 119 && pad.len() == 59));
    let distinct = all.iter().map(|row| row.1).collect::<std::collections::HashSet<_>>();
    assert_eq!(distinct.len(), 10_000);
}

/// Returns, for each statement of the load, whether it is prepared, and its text with parameters
/// filled in.
fn load_of(protocol: Protocol, capabilities: Capabilities) -> Vec<(bool, String)> {
    let options =
        OltpOptions { tables: 2, table_size: 6_000, load_connections: 1, protocol, ..OltpOptions::default() };
    let mut desk = Desk::new(&options, capabilities);
    desk.run("load");
    let is_prepared = |request: &Request| matches!(request, Request::Execute(..));
    desk.journal.take().iter().map(|request| (is_prepared(request), crate::desk::text(request))).collect()
}

#[test]
fn all_inserts_but_the_last_of_a_table_are_prepared_and_equal_the_text_inserts() {
    for capabilities in
        [mysql::capabilities("innodb", true), postgres::capabilities(), sqlite::capabilities()]
    {
        let (prepared, texts) =
            (load_of(Protocol::Auto, capabilities.clone()), load_of(Protocol::Text, capabilities));
        let how = |load: &[(bool, String)]| load.iter().map(|(prepared, _)| *prepared).collect::<Vec<_>>();
        assert_eq!(how(&prepared), [true, true, false, true, true, false]);
        assert_eq!(how(&texts), [false; 6]);
        let said = |load: Vec<(bool, String)>| load.into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        let (prepared, texts) = (said(prepared), said(texts));
        assert!(prepared == texts, "{} and {}", prepared[0], texts[0]);
        assert!(prepared[3].starts_with("INSERT INTO sbtest2("), "the next table has a statement of its own");
    }
}

#[test]
fn every_product_gets_the_same_rows_and_tables_differ() {
    let options = OltpOptions { tables: 2, table_size: 50, load_connections: 2, ..OltpOptions::default() };
    let load =
        |capabilities, task| Desk::new(&options, capabilities).operations("load", task, 1)[0][0].clone();
    let mysql = || mysql::capabilities("innodb", true);
    assert_eq!(load(mysql(), 0), load(postgres::capabilities(), 0));
    assert_ne!(rows(&load(mysql(), 0)), rows(&load(mysql(), 1)));
    assert!(load(mysql(), 1).starts_with("INSERT INTO sbtest2(k, c, pad) VALUES("));
}

#[test]
fn each_connection_loads_whole_tables_where_the_tables_divide_evenly() {
    let options = OltpOptions { tables: 4, table_size: 10, load_connections: 2, ..OltpOptions::default() };
    let mut desk = Desk::new(&options, mysql::capabilities("innodb", true));
    let tables = |operations: Vec<Vec<String>>| -> Vec<String> {
        operations.iter().map(|sql| sql[0].split(['(', ' ']).nth(2).unwrap().to_owned()).collect()
    };
    assert_eq!(tables(desk.operations("load", 0, 2)), ["sbtest1", "sbtest2"]);
    assert_eq!(tables(desk.operations("load", 1, 2)), ["sbtest3", "sbtest4"]);
    assert_eq!(desk.workload.tasks(desk.index("load")).len(), 2);
}

#[test]
fn every_table_gets_its_index() {
    let options = OltpOptions { tables: 5, table_size: 10, load_connections: 2, ..OltpOptions::default() };
    let mut desk = Desk::new(&options, mysql::capabilities("innodb", true));
    let (end, record) = desk.run("index");
    assert_eq!(end.tasks.iter().map(|task| task.rows).sum::<u64>(), 50);
    assert_eq!(record.spec.headline.label, "indexed rows/s");
    let mut indexes: Vec<String> = desk.journal.take().iter().map(crate::desk::text).collect();
    indexes.sort();
    assert_eq!(indexes[4], "CREATE INDEX k_5 ON sbtest5(k)");
    assert_eq!(indexes.len(), 5);
}

/// Returns the id, and `k`, `c` and `pad` as text, of every row that the INSERTs in `texts` hold.
/// The rows are in the order of ids.
fn rows_with_ids(texts: &[String]) -> Vec<(u64, String)> {
    let of_statement = |sql: &String| -> Vec<(u64, String)> {
        let values = sql.split_once("VALUES(").unwrap().1.strip_suffix(')').unwrap();
        let row = |row: &str| {
            let (id, rest) = row.split_once(", ").unwrap();
            (id.parse().unwrap(), rest.replace(", ", "\t").replace('\'', ""))
        };
        values.split("),(").map(row).collect()
    };
    let mut rows: Vec<(u64, String)> = texts.iter().flat_map(of_statement).collect();
    rows.sort();
    rows
}

fn sent(desk: &mut Desk) -> Vec<String> {
    desk.run("load");
    desk.journal.take().iter().map(crate::desk::text).collect()
}

#[test]
fn several_connections_load_the_same_rows_into_a_table_as_one_connection() {
    let options = |load_connections, auto_inc| OltpOptions {
        table_size: 12_000,
        load_connections,
        auto_inc,
        ..OltpOptions::default()
    };
    let load = |options: OltpOptions| {
        let mut desk = Desk::new(&options, mysql::capabilities("innodb", true));
        let rows = rows_with_ids(&sent(&mut desk));
        (desk.workload.tasks(desk.index("load")).len(), rows)
    };
    let (shared, rows) = load(options(4, true));
    let (alone, same) = load(options(1, false));
    assert_eq!((shared, alone), (4, 1));
    assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), (1..=12_000).collect::<Vec<_>>());
    assert_eq!(rows, same);
}

#[test]
fn a_stream_holds_the_same_rows_as_the_inserts_in_every_products_form() {
    let options = |load_method| OltpOptions { table_size: 30_000, load_method, ..OltpOptions::default() };
    let inserts = Desk::new(&options(LoadMethod::Insert), mysql::capabilities("innodb", true));
    let inserts = rows_with_ids(&sent(&mut { inserts }));
    for (capabilities, statement) in [
        (
            mysql::capabilities("innodb", true),
            "LOAD DATA LOCAL INFILE 'rows' INTO TABLE sbtest1 CHARACTER SET utf8mb4 (id, k, c, pad)",
        ),
        (postgres::capabilities(), "COPY sbtest1 (k, c, pad) FROM STDIN"),
    ] {
        let mut rows = Vec::new();
        let texts = sent(&mut Desk::new(&options(LoadMethod::Stream), capabilities));
        assert_eq!(texts.len(), 2, "4 MiB of rows in a statement");
        for text in texts {
            let (said, lines) = text.split_once('\n').unwrap();
            assert_eq!(said, statement);
            // Where the server gives the ids, rows must arrive in the order of ids.
            let counted = rows.len() as u64..;
            let row = |(number, line): (u64, &str)| match line.split_once('\t').unwrap() {
                (id, rest) if statement.contains("id") => (id.parse::<u64>().unwrap(), rest.to_owned()),
                _ => (1 + number, line.to_owned()),
            };
            rows.extend(counted.zip(lines.lines()).map(row).collect::<Vec<_>>());
        }
        if statement.contains("id") {
            rows.sort();
        }
        assert!(rows == inserts, "{statement}");
    }
}

#[test]
fn an_embedded_database_gets_prepared_rows_in_long_transactions() {
    let options =
        OltpOptions { table_size: 30_000, load_method: LoadMethod::Stream, ..OltpOptions::default() };
    let mut desk = Desk::new(&options, sqlite::capabilities());
    let texts = sent(&mut desk);
    let count = |begin: &str| texts.iter().filter(|text| text.starts_with(begin)).count();
    assert_eq!((count("BEGIN IMMEDIATE"), count("INSERT"), count("COMMIT")), (2, 30_000, 2));
    let inserts =
        Desk::new(&OltpOptions { load_method: LoadMethod::Insert, ..options }, sqlite::capabilities());
    let all = sent(&mut { inserts });
    let wanted = all.iter().flat_map(|sql| rows(sql)).map(|(k, c, pad)| format!("({k}, '{c}', '{pad}')"));
    let given = texts.iter().filter_map(|text| text.strip_prefix("INSERT INTO sbtest1 (k, c, pad) VALUES "));
    assert!(wanted.eq(given.map(str::to_owned)));
}

#[test]
fn a_table_may_have_more_rows_than_32_bits_can_number() {
    let options = OltpOptions {
        table_size: 5_000_000_000,
        id: IdType::Bigint,
        load_connections: 1000,
        ..OltpOptions::default()
    };
    let mut desk = Desk::new(&options, mysql::capabilities("innodb", true));
    let last = desk.workload.tasks(desk.index("load")).len() - 1;
    let sql = desk.operations("load", last, 1)[0][0].clone();
    let first: u64 = sql.split_once("VALUES(").unwrap().1.split(", ").next().unwrap().parse().unwrap();
    assert!((4_994_000_000..5_000_000_000).contains(&first), "{first}");
    let mut desk = Desk::new(&options, postgres::capabilities());
    assert_eq!(desk.workload.tasks(desk.index("load")).len(), 1);
    assert_eq!(
        desk.before("load")[1],
        "CREATE TABLE sbtest1 (id BIGSERIAL, k BIGINT DEFAULT 0 NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, pad \
         CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id))"
    );
}

#[test]
fn an_index_before_the_load_is_created_with_the_table() {
    let options = OltpOptions { index_before_load: true, ..OltpOptions::default() };
    let mut desk = Desk::new(&options, mysql::capabilities("innodb", true));
    assert!(!desk.workload.steps().contains(&"index".to_owned()));
    assert_eq!(desk.before("load").last().unwrap(), "CREATE INDEX k_1 ON sbtest1(k)");
}

#[test]
fn clients_number_rows_when_the_server_does_not() {
    let options = OltpOptions { table_size: 20, auto_inc: false, ..OltpOptions::default() };
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
