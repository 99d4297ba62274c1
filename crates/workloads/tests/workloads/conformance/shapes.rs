//! Tests the exact text of each statement.

use dbdyno_db::null::Request;
use dbdyno_db::{Capabilities, Param, mysql, postgres, sqlite};
use dbdyno_workloads::insert_benchmark::options::{InsertBenchmarkOptions, RowsPerCommit};
use dbdyno_workloads::options::Protocol;
use dbdyno_workloads::{AnyWorkload, Steps, Workload};

use super::recorded::{Recorded, number_between};

fn mysql_text(options: &InsertBenchmarkOptions) -> Recorded {
    Recorded::new(options, mysql::capabilities("innodb", true))
}

fn small() -> InsertBenchmarkOptions {
    let rows_per_commit = RowsPerCommit { load: 2, ..RowsPerCommit::default() };
    InsertBenchmarkOptions { load_rows: 4, rows_per_commit, ..InsertBenchmarkOptions::default() }
}

/// These are the first rows of seed 1, client 1, l.i0, on every database. They are frozen. A change
/// of them makes runs before and after it incomparable, and must raise the workload's version.
#[test]
fn the_first_inserts_of_seed_1_are_these() {
    let texts = mysql_text(&small()).texts("l.i0", "insert", 2).join("\n");
    insta::assert_snapshot!(texts, @r"
        INSERT INTO pi1 (dateandtime,cashregisterid,customerid,productid,price,data) VALUES ('2024-01-01 00:00:00',187,88682,2740,128.00,'aaaaaaaaaaalvdHyS'),('2024-01-01 00:00:00',183,27620,6022,245.00,'aaaaaaaaaaaaODtnM6J')
        INSERT INTO pi1 (dateandtime,cashregisterid,customerid,productid,price,data) VALUES ('2024-01-01 00:00:00',645,670,5848,266.00,'aaaaaaaaaaaamHPzqZJ'),('2024-01-01 00:00:00',12,63364,5065,283.00,'aaaaaaaaaaRMhND')
    ");
    assert_eq!(dbdyno_workloads::insert_benchmark::InsertBenchmark::VERSION, 3);
}

/// These operations of other steps, clients and kinds of draws are frozen for the same reason.
#[test]
fn the_first_operations_of_later_steps_are_these() {
    let options = InsertBenchmarkOptions { clients: 2, ..small() };
    let recorded = mysql_text(&options);
    recorded.journal.answer("SELECT min(transactionid) FROM pi2", 1);
    recorded.journal.answer("SELECT max(transactionid) FROM pi2", 5_000_000_000);
    let mut lines = vec![recorded.tasks("l.i1").text(2, "insert", 3)[..160].to_owned()];
    let mut ranges = recorded.tasks("qr100");
    lines.extend((0..3).map(|number| ranges.text(2, "query", number)));
    let mut points = recorded.tasks("qp1000");
    points.send(2, "delete", 0);
    lines.push(points.text(2, "query", 0));
    insta::assert_snapshot!(lines.join("\n"), @r"
        INSERT INTO pi2 (dateandtime,cashregisterid,customerid,productid,price,data) VALUES ('2024-01-01 00:00:00',198,66753,5070,262.00,'aaaaaaaaaaO64L4'),('2024-01-01
        SELECT productid, customerid, price FROM pi2 FORCE INDEX (pi2_marketsegment) WHERE productid >= 5068 ORDER BY productid, customerid, price LIMIT 10
        SELECT productid, customerid, price FROM pi2 FORCE INDEX (pi2_marketsegment) WHERE productid >= 4210 ORDER BY productid, customerid, price LIMIT 10
        SELECT productid, customerid, price FROM pi2 FORCE INDEX (pi2_marketsegment) WHERE productid >= 4056 ORDER BY productid, customerid, price LIMIT 10
        SELECT transactionid, productid, data FROM pi2 WHERE transactionid IN (2876189888,648004895,504763453,1112179545,3451107201,1184462085,2531414039,2155382140,4574827126,2523205382)
    ");
}

#[test]
fn deletes_take_the_first_rows_from_a_key_on() {
    for (capabilities, expected) in [
        (
            mysql::capabilities("innodb", true),
            "DELETE FROM pi1 WHERE transactionid >= 77 ORDER BY transactionid ASC LIMIT 50",
        ),
        (
            sqlite::capabilities(),
            "DELETE FROM pi1 WHERE transactionid IN (SELECT transactionid FROM pi1 WHERE transactionid >= 77 \
             ORDER BY transactionid ASC LIMIT 50)",
        ),
    ] {
        let recorded =
            Recorded::new(&InsertBenchmarkOptions { protocol: Protocol::Text, ..small() }, capabilities);
        recorded.journal.answer("SELECT min(transactionid) FROM pi1", 77);
        assert_eq!(recorded.texts("l.i1", "delete", 1), [expected]);
    }
}

#[test]
fn range_queries_have_three_shapes_and_no_other() {
    const SHAPES: [(&str, &str); 3] = [
        (
            "SELECT productid, customerid, price FROM pi1 FORCE INDEX (pi1_marketsegment) WHERE productid >= ",
            " ORDER BY productid, customerid, price LIMIT 10",
        ),
        (
            "SELECT cashregisterid, customerid, price FROM pi1 FORCE INDEX (pi1_registersegment) \
             WHERE cashregisterid > ",
            " ORDER BY cashregisterid, customerid, price LIMIT 10",
        ),
        (
            "SELECT price, dateandtime, customerid FROM pi1 FORCE INDEX (pi1_pdc) WHERE price >= ",
            " ORDER BY price, dateandtime, customerid LIMIT 10",
        ),
    ];
    let mut seen = [0; 3];
    for sql in mysql_text(&small()).texts("qr500", "query", 300) {
        let shape = SHAPES.iter().position(|(head, _)| sql.starts_with(head)).expect("one of the three");
        number_between(&sql, SHAPES[shape].0, SHAPES[shape].1);
        seen[shape] += 1;
    }
    assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
}

#[test]
fn with_fewer_indexes_only_their_queries_are_sent() {
    for (secondary_indexes, expected) in [(1, vec!["productid"]), (2, vec!["cashregisterid", "productid"])] {
        let options = InsertBenchmarkOptions { secondary_indexes, ..small() };
        let texts = mysql_text(&options).texts("qr100", "query", 100);
        let mut columns: Vec<&str> =
            texts.iter().filter_map(|sql| sql.strip_prefix("SELECT ")?.split(',').next()).collect();
        columns.sort_unstable();
        columns.dedup();
        assert_eq!(columns, expected);
    }
}

#[test]
fn a_point_query_lists_ten_ids() {
    let recorded = mysql_text(&small());
    recorded.journal.answer("SELECT max(transactionid) FROM pi1", 1000);
    let sql = &recorded.texts("qp100", "query", 1)[0];
    let head = "SELECT transactionid, productid, data FROM pi1 WHERE transactionid IN (";
    let ids = sql.strip_prefix(head).and_then(|rest| rest.strip_suffix(')')).expect("the original's shape");
    assert_eq!(ids.split(',').filter(|id| id.parse::<i64>().is_ok()).count(), 10, "{sql}");
}

#[test]
fn prepared_statements_have_the_same_shapes_with_placeholders() {
    let recorded = Recorded::new(&small(), sqlite::capabilities());
    recorded.journal.answer("SELECT min(transactionid) FROM pi1", 9);
    let execute = |step: &str, kind: &str| match recorded.tasks(step).send(1, kind, 0).pop() {
        Some(Request::Execute(sql, params)) => (sql, params),
        other => panic!("not prepared: {other:?}"),
    };
    let (insert, params) = execute("l.i0", "insert");
    assert_eq!(
        insert,
        "INSERT INTO pi1 (dateandtime,cashregisterid,customerid,productid,price,data) VALUES \
         (?,?,?,?,?,?),(?,?,?,?,?,?)"
    );
    assert_eq!(params.len(), 12);
    let (delete, params) = execute("l.i2", "delete");
    assert_eq!(
        delete,
        "DELETE FROM pi1 WHERE transactionid IN (SELECT transactionid FROM pi1 WHERE transactionid >= ? \
         ORDER BY transactionid ASC LIMIT ?)"
    );
    assert_eq!(params, [Param::Int(9), Param::Int(5)]);
    let (point, params) = execute("qp100", "query");
    let head = "SELECT transactionid, productid, data FROM pi1 WHERE transactionid IN ";
    assert_eq!(point, format!("{head}(?,?,?,?,?,?,?,?,?,?)"));
    assert_eq!(params.len(), 10);
    assert!(execute("qr100", "query").0.contains(" INDEXED BY pi1_"));
}

#[test]
fn ids_of_point_queries_are_int_on_postgres_until_they_need_more_bits() {
    for (highest, mark) in [(2_147_483_647, "?::int"), (2_147_483_648, "?")] {
        let recorded = Recorded::new(&small(), postgres::capabilities());
        recorded.journal.answer("SELECT max(transactionid) FROM pi1", highest);
        let request = recorded.tasks("qp100").send(1, "query", 0).pop();
        let Some(Request::Execute(sql, _)) = request else { panic!("not prepared: {request:?}") };
        assert!(sql.ends_with(&format!(" IN ({})", [mark; 10].join(","))), "{sql}");
    }
}

/// Describes how INSERTs, DELETEs, range queries and point queries arrive: as text or prepared.
fn sent(protocol: Protocol, capabilities: Capabilities) -> String {
    let recorded = Recorded::new(&InsertBenchmarkOptions { protocol, ..small() }, capabilities);
    let of = |(step, kind): (&str, &str)| {
        let arrived = match recorded.tasks(step).send(1, kind, 0).pop() {
            Some(Request::Query(_)) => "text",
            Some(Request::Execute(..)) => "prepared",
            other => panic!("{other:?}"),
        };
        let kinds = recorded.workload.spec(recorded.index_of(step)).kinds;
        let reported = kinds.iter().find(|of| of.kind == kind).map(|kind| kind.protocol.clone());
        assert_eq!(reported.as_deref(), Some(arrived), "what is recorded of {step} {kind}");
        arrived
    };
    [("l.i1", "insert"), ("l.i1", "delete"), ("qr100", "query"), ("qp100", "query")].map(of).join(" ")
}

#[test]
fn writes_are_text_where_the_original_sends_text_and_queries_are_prepared_on_postgresql() {
    let mysql = mysql::capabilities("innodb", true);
    assert_eq!(sent(Protocol::Auto, mysql.clone()), "text text text text");
    assert_eq!(sent(Protocol::Auto, postgres::capabilities()), "text text prepared prepared");
    assert_eq!(sent(Protocol::Auto, sqlite::capabilities()), "prepared prepared prepared prepared");
    for capabilities in [mysql, postgres::capabilities(), sqlite::capabilities()] {
        assert_eq!(sent(Protocol::Text, capabilities.clone()), "text text text text");
        assert_eq!(sent(Protocol::Prepared, capabilities), "prepared prepared prepared prepared");
    }
}

#[test]
fn each_client_has_a_table_of_its_own_that_is_made_before_the_load() {
    let own = "ROW_FORMAT=COMPRESSED";
    let options = InsertBenchmarkOptions { clients: 2, create_table_options: own.to_owned(), ..small() };
    let mut recorded = mysql_text(&options);
    let mut session = recorded.runtime.block_on(recorded.database_server.connect()).unwrap();
    let load = recorded.index_of("l.i0");
    recorded.runtime.block_on(recorded.workload.before(load, &mut session)).unwrap();
    let statements: Vec<String> = recorded
        .journal
        .take()
        .into_iter()
        .filter_map(|request| match request {
            Request::Query(sql) => Some(sql),
            _ => None,
        })
        .filter(|sql| sql.contains(" TABLE "))
        .inspect(|sql| assert!(!sql.starts_with("CREATE") || sql.ends_with(&format!(" {own}")), "{sql}"))
        .map(|sql| sql.split(" (").next().unwrap_or_default().to_owned())
        .collect();
    let expected =
        ["DROP TABLE IF EXISTS pi1", "CREATE TABLE pi1", "DROP TABLE IF EXISTS pi2", "CREATE TABLE pi2"];
    assert_eq!(statements, expected);
}

#[test]
fn the_index_step_inserts_one_full_statement_and_then_builds_all_indexes_at_once() {
    let options = InsertBenchmarkOptions { load_rows: 1000, ..InsertBenchmarkOptions::default() };
    let recorded = mysql_text(&options);
    let requests = recorded.tasks("l.x").send(1, "index", 0);
    let [Request::Query(insert), Request::Query(alter)] = &requests[..] else { panic!("{requests:?}") };
    assert!(insert.starts_with("INSERT INTO pi1 "));
    assert_eq!(super::recorded::rows_of_text(insert).len(), 100);
    assert_eq!(
        alter,
        "ALTER TABLE pi1 ADD INDEX pi1_marketsegment (productid, customerid, price), \
         ADD INDEX pi1_registersegment (cashregisterid, customerid, price), \
         ADD INDEX pi1_pdc (price, dateandtime, customerid)"
    );
}
