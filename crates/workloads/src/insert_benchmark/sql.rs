//! Writes the statements of the Insert Benchmark in the original's shapes. For a server to explain,
//! it also writes a step's statements with values for their parameters.

use dbdyno_db::{Capabilities, DeleteForm, KeySource};

use crate::Explained;
use crate::engine::{add_indexes, after_columns};
use crate::insert_benchmark::InsertSetup;
use crate::insert_benchmark::history::History;
use crate::insert_benchmark::steps::{ClientPart, InsertStepKind};

/// A secondary index, and the range query that reads it.
#[derive(Debug)]
pub(crate) struct RangeKind {
    /// The last part of the index's name.
    pub(crate) suffix: &'static str,
    /// Indexed columns in order.
    columns: &'static str,
    /// The condition up to its parameter.
    condition: &'static str,
}

/// The range queries in the order in which they are numbered. The register query has `>` where the
/// others have `>=`, as in the original.
pub(crate) const RANGES: [RangeKind; 3] = [
    RangeKind {
        suffix: "marketsegment",
        columns: "productid, customerid, price",
        condition: "productid >= ",
    },
    RangeKind {
        suffix: "registersegment",
        columns: "cashregisterid, customerid, price",
        condition: "cashregisterid > ",
    },
    RangeKind { suffix: "pdc", columns: "price, dateandtime, customerid", condition: "price >= " },
];

/// Keys that a session takes from a sequence at once, as in the original.
const SEQUENCE_CACHE: u32 = 1000;

/// Returns statements that drop and create one table. `own` is the plan's text after its columns.
/// With a `first_id` above 1 they also set the table's first key.
pub(crate) fn create_table(
    table: &str,
    capabilities: &Capabilities,
    own: &str,
    first_id: u64,
) -> Vec<String> {
    let Capabilities { auto_key, datetime, table_suffix, .. } = capabilities;
    let own = after_columns(own);
    let mut statements = vec![
        format!("DROP TABLE IF EXISTS {table}"),
        format!(
            "CREATE TABLE {table} (transactionid {auto_key}, dateandtime {datetime}, cashregisterid int not null, \
             customerid int not null, productid int not null, price int not null, \
             data varchar(4000)){table_suffix}{own}"
        ),
    ];
    match capabilities.key_source {
        KeySource::TableCounter if first_id > 1 => {
            statements.push(format!("ALTER TABLE {table} AUTO_INCREMENT = {first_id}"));
        }
        KeySource::Sequence => {
            let restart = if first_id > 1 { format!(" RESTART WITH {first_id}") } else { String::new() };
            statements
                .push(format!("ALTER SEQUENCE {table}_transactionid_seq CACHE {SEQUENCE_CACHE}{restart}"));
        }
        KeySource::Table | KeySource::TableCounter => {}
    }
    statements
}

/// Returns statements that add the first `count` secondary indexes.
pub(crate) fn create_indexes(table: &str, capabilities: &Capabilities, count: u32) -> Vec<String> {
    let indexes = RANGES.iter().take(count as usize);
    let indexes: Vec<_> = indexes.map(|kind| (format!("{table}_{}", kind.suffix), kind.columns)).collect();
    let indexes = indexes.iter().map(|(name, columns)| (name.as_str(), *columns));
    add_indexes(table, None, indexes, capabilities.index_ddl)
}

/// Returns `INSERT INTO t (...) VALUES ` up to the first row.
pub(crate) fn insert_prefix(table: &str) -> String {
    format!("INSERT INTO {table} (dateandtime,cashregisterid,customerid,productid,price,data) VALUES ")
}

/// Returns an INSERT of `rows` rows with parameters.
pub(crate) fn prepared_insert(table: &str, rows: u32) -> String {
    let mut sql = insert_prefix(table);
    for row in 0..rows {
        sql.push_str(if row == 0 { "(?,?,?,?,?,?)" } else { ",(?,?,?,?,?,?)" });
    }
    sql
}

/// Returns the parts of a DELETE around its parameters: the lowest id, then the number of rows.
pub(crate) fn delete_parts(table: &str, capabilities: &Capabilities) -> [String; 3] {
    match capabilities.delete_form {
        DeleteForm::OrderLimit => [
            format!("DELETE FROM {table} WHERE transactionid >= "),
            " ORDER BY transactionid ASC LIMIT ".to_owned(),
            String::new(),
        ],
        DeleteForm::InSubquery => [
            format!(
                "DELETE FROM {table} WHERE transactionid IN \
                 (SELECT transactionid FROM {table} WHERE transactionid >= "
            ),
            " ORDER BY transactionid ASC LIMIT ".to_owned(),
            ")".to_owned(),
        ],
    }
}

/// Returns the parts of a range query around its parameter.
pub(crate) fn range_parts(
    table: &str,
    kind: &RangeKind,
    capabilities: &Capabilities,
    limit: u32,
) -> [String; 2] {
    let columns = kind.columns;
    let index = format!("{table}_{}", kind.suffix);
    let hint = capabilities.index_hint.words(&index);
    [
        format!("SELECT {columns} FROM {table}{hint} WHERE {}", kind.condition),
        format!(" ORDER BY {columns} LIMIT {limit}"),
    ]
}

/// Returns a point query up to its list of ids.
pub(crate) fn point_prefix(table: &str) -> String {
    format!("SELECT transactionid, productid, data FROM {table} WHERE transactionid IN (")
}

/// Returns the prepared point query. The original declares its ids `int` on PostgreSQL, which then
/// has to widen each of them. `wide` ids have more than 32 bits, so an `int` would be refused.
pub(crate) fn prepared_point(table: &str, capabilities: &Capabilities, ids: u32, wide: bool) -> String {
    let mark = if wide { "?" } else { capabilities.int_param };
    let marks = vec![mark; ids as usize].join(",");
    format!("{}{marks})", point_prefix(table))
}

/// Returns the query for the lowest or highest id. `function` is `MIN` or `MAX`.
pub(crate) fn extreme(table: &str, function: &str) -> String {
    format!("SELECT {function}(transactionid) FROM {table}")
}

/// Returns the query for everything that verification compares.
pub(crate) fn sums(table: &str) -> String {
    format!(
        "SELECT COUNT(*), SUM(cashregisterid), SUM(customerid), SUM(productid), SUM(price), \
         MIN(transactionid), MAX(transactionid), SUM(transactionid) FROM {table}"
    )
}

/// Returns the queries of the step and its DELETE, on the first client's table. A range query
/// begins in the middle of the values that it draws from. A point query has ids from the middle of
/// those that the table holds now. The DELETE begins with the lowest id.
pub(crate) fn explained(step: &ClientPart, setup: &InsertSetup, history: &History) -> Vec<Explained> {
    const CLIENT: u32 = 1;
    let (table, options) = (InsertSetup::table(CLIENT), &setup.options);
    let capabilities = &setup.context.database_server.capabilities;
    let after_last = options.first_id + history.of(CLIENT).rows_inserted();
    let min = after_last.saturating_sub(history.in_table(CLIENT)).max(options.first_id);
    let middle = u64::midpoint(min, after_last);
    let explained =
        |statement: &str, sql: String| Explained { statement: statement.to_owned(), sql, is_executed: false };
    let mut found = Vec::new();
    if step.kind == InsertStepKind::Range {
        let middles = [options.products, options.cashregisters, options.max_price].map(|max| max / 2);
        let kinds = RANGES.iter().zip(middles).take(options.secondary_indexes.clamp(1, 3) as usize);
        found.extend(kinds.map(|(kind, middle)| {
            let parts = range_parts(&table, kind, capabilities, options.rows_per_query);
            explained(&format!("range-{}", kind.suffix), parts.join(&middle.to_string()))
        }));
    }
    if step.kind == InsertStepKind::Point {
        let ids: Vec<String> =
            (0..u64::from(options.points_per_query)).map(|at| (middle + at).to_string()).collect();
        found.push(explained("point", format!("{}{})", point_prefix(&table), ids.join(","))));
    }
    if step.deletes {
        let [head, between, tail] = delete_parts(&table, capabilities);
        found.push(explained("delete", format!("{head}{min}{between}{}{tail}", step.rows_per_commit)));
    }
    found
}

#[cfg(test)]
mod tests {
    use dbdyno_db::{DatabaseAddress, DatabaseServer, mysql, null, postgres, sqlite};

    use super::*;
    use crate::Context;
    use crate::insert_benchmark::Prepared;
    use crate::insert_benchmark::history::Inserted;
    use crate::insert_benchmark::options::InsertBenchmarkOptions;
    use crate::step::StepOptions;

    fn all(capabilities: &Capabilities) -> String {
        let mut lines = create_table("pi1", capabilities, "", 3_000_000_000);
        lines.extend(create_indexes("pi1", capabilities, 3));
        lines.push(prepared_insert("pi1", 2));
        lines.push(delete_parts("pi1", capabilities).join("?"));
        for kind in &RANGES {
            lines.push(range_parts("pi1", kind, capabilities, 10).join("?"));
        }
        lines.push(prepared_point("pi1", capabilities, 10, false));
        lines.push(extreme("pi1", "min"));
        lines.join("\n")
    }

    #[test]
    fn mysql_statements_have_the_originals_shape() {
        insta::assert_snapshot!(all(&mysql::capabilities("innodb", true)), @r"
        DROP TABLE IF EXISTS pi1
        CREATE TABLE pi1 (transactionid bigint not null auto_increment primary key, dateandtime datetime, cashregisterid int not null, customerid int not null, productid int not null, price int not null, data varchar(4000)) ENGINE=innodb
        ALTER TABLE pi1 AUTO_INCREMENT = 3000000000
        ALTER TABLE pi1 ADD INDEX pi1_marketsegment (productid, customerid, price), ADD INDEX pi1_registersegment (cashregisterid, customerid, price), ADD INDEX pi1_pdc (price, dateandtime, customerid)
        INSERT INTO pi1 (dateandtime,cashregisterid,customerid,productid,price,data) VALUES (?,?,?,?,?,?),(?,?,?,?,?,?)
        DELETE FROM pi1 WHERE transactionid >= ? ORDER BY transactionid ASC LIMIT ?
        SELECT productid, customerid, price FROM pi1 FORCE INDEX (pi1_marketsegment) WHERE productid >= ? ORDER BY productid, customerid, price LIMIT 10
        SELECT cashregisterid, customerid, price FROM pi1 FORCE INDEX (pi1_registersegment) WHERE cashregisterid > ? ORDER BY cashregisterid, customerid, price LIMIT 10
        SELECT price, dateandtime, customerid FROM pi1 FORCE INDEX (pi1_pdc) WHERE price >= ? ORDER BY price, dateandtime, customerid LIMIT 10
        SELECT transactionid, productid, data FROM pi1 WHERE transactionid IN (?,?,?,?,?,?,?,?,?,?)
        SELECT min(transactionid) FROM pi1
        ");
    }

    #[test]
    fn sqlite_statements_differ_only_where_sqlite_must() {
        insta::assert_snapshot!(all(&sqlite::capabilities()), @r"
        DROP TABLE IF EXISTS pi1
        CREATE TABLE pi1 (transactionid integer primary key, dateandtime text, cashregisterid int not null, customerid int not null, productid int not null, price int not null, data varchar(4000))
        CREATE INDEX pi1_marketsegment ON pi1 (productid, customerid, price)
        CREATE INDEX pi1_registersegment ON pi1 (cashregisterid, customerid, price)
        CREATE INDEX pi1_pdc ON pi1 (price, dateandtime, customerid)
        INSERT INTO pi1 (dateandtime,cashregisterid,customerid,productid,price,data) VALUES (?,?,?,?,?,?),(?,?,?,?,?,?)
        DELETE FROM pi1 WHERE transactionid IN (SELECT transactionid FROM pi1 WHERE transactionid >= ? ORDER BY transactionid ASC LIMIT ?)
        SELECT productid, customerid, price FROM pi1 INDEXED BY pi1_marketsegment WHERE productid >= ? ORDER BY productid, customerid, price LIMIT 10
        SELECT cashregisterid, customerid, price FROM pi1 INDEXED BY pi1_registersegment WHERE cashregisterid > ? ORDER BY cashregisterid, customerid, price LIMIT 10
        SELECT price, dateandtime, customerid FROM pi1 INDEXED BY pi1_pdc WHERE price >= ? ORDER BY price, dateandtime, customerid LIMIT 10
        SELECT transactionid, productid, data FROM pi1 WHERE transactionid IN (?,?,?,?,?,?,?,?,?,?)
        SELECT min(transactionid) FROM pi1
        ");
    }

    #[test]
    fn postgres_statements_have_the_originals_shape() {
        insta::assert_snapshot!(all(&postgres::capabilities()), @r"
        DROP TABLE IF EXISTS pi1
        CREATE TABLE pi1 (transactionid bigserial primary key, dateandtime timestamp without time zone, cashregisterid int not null, customerid int not null, productid int not null, price int not null, data varchar(4000))
        ALTER SEQUENCE pi1_transactionid_seq CACHE 1000 RESTART WITH 3000000000
        CREATE INDEX pi1_marketsegment ON pi1 (productid, customerid, price)
        CREATE INDEX pi1_registersegment ON pi1 (cashregisterid, customerid, price)
        CREATE INDEX pi1_pdc ON pi1 (price, dateandtime, customerid)
        INSERT INTO pi1 (dateandtime,cashregisterid,customerid,productid,price,data) VALUES (?,?,?,?,?,?),(?,?,?,?,?,?)
        DELETE FROM pi1 WHERE transactionid IN (SELECT transactionid FROM pi1 WHERE transactionid >= ? ORDER BY transactionid ASC LIMIT ?)
        SELECT productid, customerid, price FROM pi1 WHERE productid >= ? ORDER BY productid, customerid, price LIMIT 10
        SELECT cashregisterid, customerid, price FROM pi1 WHERE cashregisterid > ? ORDER BY cashregisterid, customerid, price LIMIT 10
        SELECT price, dateandtime, customerid FROM pi1 WHERE price >= ? ORDER BY price, dateandtime, customerid LIMIT 10
        SELECT transactionid, productid, data FROM pi1 WHERE transactionid IN (?::int,?::int,?::int,?::int,?::int,?::int,?::int,?::int,?::int,?::int)
        SELECT min(transactionid) FROM pi1
        ");
    }

    #[test]
    fn a_table_has_the_options_of_the_plan_after_its_engine() {
        let made = |capabilities: &Capabilities, own: &str| {
            let statements = create_table("pi1", capabilities, own, 1);
            statements[1].split_once("data varchar(4000))").map(|(_, rest)| rest.to_owned())
        };
        let of_mysql = made(&mysql::capabilities("innodb", true), "ROW_FORMAT=COMPRESSED");
        assert_eq!(of_mysql.as_deref(), Some(" ENGINE=innodb ROW_FORMAT=COMPRESSED"));
        let of_postgres = made(&postgres::capabilities(), "WITH (fillfactor = 90)");
        assert_eq!(of_postgres.as_deref(), Some(" WITH (fillfactor = 90)"));
    }

    #[test]
    fn rocksdb_builds_its_indexes_one_by_one() {
        insta::assert_snapshot!(create_indexes("pi1", &mysql::capabilities("rocksdb", true), 3).join("\n"), @r"
        ALTER TABLE pi1 ADD INDEX pi1_marketsegment (productid, customerid, price)
        ALTER TABLE pi1 ADD INDEX pi1_registersegment (cashregisterid, customerid, price)
        ALTER TABLE pi1 ADD INDEX pi1_pdc (price, dateandtime, customerid)
        ");
    }

    #[test]
    fn queries_are_explained_in_the_middle_of_the_rows_and_deletes_at_their_beginning() {
        let database_server = DatabaseServer {
            address: DatabaseAddress::Null(null::Options::default()),
            capabilities: postgres::capabilities(),
        };
        let options = InsertBenchmarkOptions {
            points_per_query: 3,
            rates: vec![100],
            ..InsertBenchmarkOptions::default()
        };
        let steps = options.list();
        let setup = InsertSetup {
            options,
            context: Context { database_server, owned: true, seed: 1, draws: 1, device: None },
            prepared: Prepared::default(),
        };
        let mut history = History::new(1);
        let table = &mut history.clients_mut()[0];
        table.inserted.push(Inserted {
            step: 0,
            statements: 30,
            rows_per_statement: 100,
            failed: Vec::new(),
            unlisted: 0,
        });
        table.deleted = 1_000;
        let of = |name: &str| {
            let step = steps.iter().find(|step| step.name == name).unwrap();
            let lines = explained(&step.kind, &setup, &history);
            lines
                .iter()
                .map(|line| format!("{}: {}", line.statement, line.sql))
                .collect::<Vec<_>>()
                .join("\n")
        };
        assert_eq!(of("l.i0"), "");
        insta::assert_snapshot!([of("l.i1"), of("qr100"), of("qp100")].join("\n"), @r"
        delete: DELETE FROM pi1 WHERE transactionid IN (SELECT transactionid FROM pi1 WHERE transactionid >= 1001 ORDER BY transactionid ASC LIMIT 50)
        range-marketsegment: SELECT productid, customerid, price FROM pi1 WHERE productid >= 5000 ORDER BY productid, customerid, price LIMIT 10
        range-registersegment: SELECT cashregisterid, customerid, price FROM pi1 WHERE cashregisterid > 500 ORDER BY cashregisterid, customerid, price LIMIT 10
        range-pdc: SELECT price, dateandtime, customerid FROM pi1 WHERE price >= 250 ORDER BY price, dateandtime, customerid LIMIT 10
        delete: DELETE FROM pi1 WHERE transactionid IN (SELECT transactionid FROM pi1 WHERE transactionid >= 1001 ORDER BY transactionid ASC LIMIT 50)
        point: SELECT transactionid, productid, data FROM pi1 WHERE transactionid IN (2001,2002,2003)
        delete: DELETE FROM pi1 WHERE transactionid IN (SELECT transactionid FROM pi1 WHERE transactionid >= 1001 ORDER BY transactionid ASC LIMIT 50)
        ");
    }
}
