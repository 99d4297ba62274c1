//! The statements that each test must send, written by hand from the original's statements. This
//! file uses none of dbdyno's own code.
//!
//! In a statement `?` stands for a value, `(?*10)` for a list of ten, and `sbtestN` for any of the
//! tables.

/// What a value in a statement must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    /// A random number from 1 to the table's size.
    Drawn,
    /// The value before it plus this number.
    Plus(i64),
    /// Half of the table's size plus this number.
    Middle(i64),
    /// This number.
    Exactly(i64),
    /// The id that the statement before it deleted.
    Deleted,
    /// The column `c`: ten groups of eleven digits.
    C,
    /// The column `pad`: five groups of eleven digits.
    Pad,
}

/// The table that a statement uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    /// A random table.
    Drawn,
    /// The same table as in the statement before it.
    Same,
    /// The connection's own table. For connection n (from 0) it is 1 + n mod the number of tables.
    Own,
    /// No table.
    None,
}

/// One statement of an operation.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(crate) sql: String,
    pub(crate) values: Vec<Value>,
    pub(crate) table: Table,
}

/// The products differ only in the way in which the server assigns an id to a new row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Product {
    Mariadb,
    Postgres,
}

/// One operation of a test: all of its statements in order, whether they are prepared, and how many
/// of them read, write and do neither, by published counts.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub(crate) is_prepared: bool,
    pub(crate) statements: Vec<Statement>,
    pub(crate) split: [usize; 3],
}

use Value::{C, Deleted, Drawn, Exactly, Middle, Pad, Plus};

/// The steps of a sequence in their order. A `*` after a name means one connection per table. All
/// other steps have one connection.
pub(crate) const THE_42: [&str; 43] = [
    "point-query.warm *",
    "point-query.pre",
    "random-points.pre_range=10",
    "random-points.pre_range=100",
    "random-points.pre_range=1000",
    "read-only.pre_range=10",
    "read-only.pre_range=100",
    "read-only.pre_range=10000",
    "points-covered-pk.pre",
    "points-notcovered-pk.pre",
    "points-covered-si.pre",
    "points-notcovered-si.pre",
    "range-covered-pk.pre",
    "range-notcovered-pk.pre",
    "range-covered-si.pre",
    "range-notcovered-si.pre",
    "update-inlist",
    "update-index",
    "update-nonindex",
    "update-one",
    "update-zipf",
    "write-only",
    "read-write_range=10",
    "read-write_range=100",
    "read-only_range=10",
    "read-only_range=100",
    "read-only_range=10000",
    "point-query",
    "random-points_range=10",
    "random-points_range=100",
    "random-points_range=1000",
    "hot-points",
    "points-covered-pk",
    "points-notcovered-pk",
    "points-covered-si",
    "points-notcovered-si",
    "range-covered-pk",
    "range-notcovered-pk",
    "range-covered-si",
    "range-notcovered-si",
    "scan *",
    "delete",
    "insert",
];

pub(crate) const THE_32: [&str; 38] = [
    "point-query.warm *",
    "scan.warmpre",
    "point-query.pre",
    "range-notcovered-si.pre",
    "update-inlist",
    "update-index",
    "update-nonindex",
    "update-one",
    "update-zipf",
    "write-only",
    "read-write_range=10",
    "read-write_range=100",
    "scan.warm",
    "scan",
    "read-only_range=10",
    "read-only_range=100",
    "read-only_range=10000",
    "read-only-simple",
    "read-only-sum",
    "read-only-order",
    "read-only-distinct",
    "read-only-count",
    "point-query",
    "random-points_range=10",
    "random-points_range=100",
    "random-points_range=1000",
    "hot-points",
    "points-covered-pk",
    "points-notcovered-pk",
    "range-covered-pk",
    "range-notcovered-pk",
    "points-covered-si.warm",
    "points-covered-si",
    "points-notcovered-si",
    "range-covered-si",
    "range-notcovered-si",
    "delete",
    "insert",
];

/// The names of the classic tests.
pub(crate) const OLTP: [&str; 8] = [
    "point-select",
    "read-only",
    "read-write",
    "write-only",
    "update-index",
    "update-non-index",
    "insert",
    "delete",
];

/// The statements that a microbenchmark step sends in one operation.
pub(crate) fn of_microbenchmark(step: &str, product: Product) -> Operation {
    let (name, range) = match step.split_once("_range=") {
        Some((name, range)) => (name, range.parse().unwrap()),
        None => (step, 100),
    };
    let reads_one = |sql: &str, values: Vec<Value>| single(true, [1, 0, 0], sql, values);
    let writes_one = |sql: &str, values: Vec<Value>| single(true, [0, 1, 0], sql, values);
    let ids = |count| vec![Drawn; count];
    match name.split('.').next().unwrap() {
        "point-query" => reads_one("SELECT c FROM sbtestN WHERE id=?", vec![Drawn]),
        "random-points" if range == 10 => reads_one("SELECT c FROM sbtestN WHERE id IN (?*10)", ids(10)),
        "random-points" if range == 100 => reads_one("SELECT c FROM sbtestN WHERE id IN (?*100)", ids(100)),
        "random-points" => reads_one("SELECT c FROM sbtestN WHERE id IN (?*1000)", ids(1000)),
        "hot-points" => {
            reads_one("SELECT c FROM sbtestN WHERE id IN (?*100)", (1..=100).map(Middle).collect())
        }
        "points-covered-pk" => reads_one("SELECT id FROM sbtestN WHERE id IN (?*100)", ids(100)),
        "points-notcovered-pk" => reads_one("SELECT id, c FROM sbtestN WHERE id IN (?*100)", ids(100)),
        "points-covered-si" => reads_one("SELECT k FROM sbtestN WHERE k IN (?*100)", ids(100)),
        "points-notcovered-si" => reads_one("SELECT k, c FROM sbtestN WHERE k IN (?*100)", ids(100)),
        "range-covered-pk" => {
            reads_one("SELECT id FROM sbtestN WHERE id BETWEEN ? AND ?", vec![Drawn, Plus(100)])
        }
        "range-notcovered-pk" => {
            reads_one("SELECT id, c FROM sbtestN WHERE id BETWEEN ? AND ?", vec![Drawn, Plus(100)])
        }
        "range-covered-si" => {
            reads_one("SELECT k FROM sbtestN WHERE k BETWEEN ? AND ?", vec![Drawn, Plus(100)])
        }
        "range-notcovered-si" => {
            reads_one("SELECT k, c FROM sbtestN WHERE k BETWEEN ? AND ?", vec![Drawn, Plus(100)])
        }
        "read-only-count" => {
            reads_one("SELECT count(c) FROM sbtestN WHERE id BETWEEN ? AND ?", vec![Drawn, Plus(999)])
        }
        "scan" => scan(),
        "read-only" => transaction([14, 0, 2], &[points(), ranges(range - 1)]),
        "read-only-simple" => transaction([11, 0, 2], &[points(), ranges(999)[..1].to_vec()]),
        "read-only-sum" => transaction([11, 0, 2], &[points(), ranges(999)[1..2].to_vec()]),
        "read-only-order" => transaction([11, 0, 2], &[points(), ranges(999)[2..3].to_vec()]),
        "read-only-distinct" => transaction([11, 0, 2], &[points(), ranges(999)[3..].to_vec()]),
        "update-inlist" => {
            writes_one("UPDATE sbtestN SET c=? WHERE id IN (?*10)", [C].into_iter().chain(ids(10)).collect())
        }
        "update-index" => writes_one("UPDATE sbtestN SET k=k+1 WHERE id=?", vec![Drawn]),
        "update-nonindex" | "update-zipf" => writes_one("UPDATE sbtestN SET c=? WHERE id=?", vec![C, Drawn]),
        "update-one" => writes_one("UPDATE sbtestN SET c=? WHERE id=?", vec![C, Exactly(1)]),
        "write-only" => transaction([0, 4, 2], &[writes()]),
        "read-write" => transaction([14, 4, 2], &[points(), ranges(range - 1), writes()]),
        "delete" => writes_one("DELETE FROM sbtestN WHERE id=?", vec![Drawn]),
        "insert" => insert(product),
        other => panic!("no such test: {other}"),
    }
}

/// The statements that a classic test sends in one operation with its default options.
pub(crate) fn of_oltp(test: &str, product: Product) -> Operation {
    match test {
        "point-select" => of_microbenchmark("point-query", product),
        "read-only" => of_microbenchmark("read-only_range=100", product),
        "read-write" => of_microbenchmark("read-write_range=100", product),
        "write-only" | "update-index" | "insert" | "delete" => of_microbenchmark(test, product),
        "update-non-index" => of_microbenchmark("update-nonindex", product),
        other => panic!("no such test: {other}"),
    }
}

/// The statements that sysbench 0.5 sends for the same test: as text, with one table for all
/// statements in a transaction, and with a sum as the range's upper bound.
pub(crate) fn of_oltp_0_5(test: &str, product: Product) -> Operation {
    let mut operation = of_oltp(test, product);
    operation.is_prepared = false;
    let mut is_first = true;
    for statement in operation.statements.iter_mut().filter(|statement| statement.table != Table::None) {
        statement.table = if is_first { Table::Drawn } else { Table::Same };
        is_first = false;
        if statement.sql.contains("BETWEEN") {
            statement.sql = statement.sql.replace("AND ?", "AND ?+99");
            statement.values = vec![Drawn, Plus(0)];
        }
    }
    operation
}

fn single(is_prepared: bool, split: [usize; 3], sql: &str, values: Vec<Value>) -> Operation {
    Operation { is_prepared, statements: vec![on(Table::Drawn, sql, values)], split }
}

fn on(table: Table, sql: &str, values: Vec<Value>) -> Statement {
    Statement { sql: sql.to_owned(), values, table }
}

fn scan() -> Operation {
    let statement = on(Table::Own, "SELECT * FROM sbtestN WHERE LENGTH(c) < 0", Vec::new());
    Operation { is_prepared: false, statements: vec![statement], split: [1, 0, 0] }
}

fn insert(product: Product) -> Operation {
    let (sql, values) = match product {
        Product::Mariadb => {
            ("INSERT INTO sbtestN (id, k, c, pad) VALUES (?, ?, ?, ?)", vec![Exactly(0), Drawn, C, Pad])
        }
        Product::Postgres => ("INSERT INTO sbtestN (k, c, pad) VALUES (?, ?, ?)", vec![Drawn, C, Pad]),
    };
    single(false, [0, 1, 0], sql, values)
}

fn transaction(split: [usize; 3], parts: &[Vec<Statement>]) -> Operation {
    let mut statements = vec![on(Table::None, "BEGIN", Vec::new())];
    statements.extend(parts.iter().flatten().cloned());
    statements.push(on(Table::None, "COMMIT", Vec::new()));
    Operation { is_prepared: true, statements, split }
}

/// Ten point selects on one table.
fn points() -> Vec<Statement> {
    let point = |table| on(table, "SELECT c FROM sbtestN WHERE id=?", vec![Drawn]);
    [vec![point(Table::Drawn)], vec![point(Table::Same); 9]].concat()
}

/// The four range queries, each from a random id to that id plus `more`, and each on its own random
/// table.
fn ranges(more: i64) -> Vec<Statement> {
    [
        "SELECT c FROM sbtestN WHERE id BETWEEN ? AND ?",
        "SELECT SUM(k) FROM sbtestN WHERE id BETWEEN ? AND ?",
        "SELECT c FROM sbtestN WHERE id BETWEEN ? AND ? ORDER BY c",
        "SELECT DISTINCT c FROM sbtestN WHERE id BETWEEN ? AND ? ORDER BY c",
    ]
    .map(|sql| on(Table::Drawn, sql, vec![Drawn, Plus(more)]))
    .to_vec()
}

fn writes() -> Vec<Statement> {
    vec![
        on(Table::Drawn, "UPDATE sbtestN SET k=k+1 WHERE id=?", vec![Drawn]),
        on(Table::Drawn, "UPDATE sbtestN SET c=? WHERE id=?", vec![C, Drawn]),
        on(Table::Drawn, "DELETE FROM sbtestN WHERE id=?", vec![Drawn]),
        on(
            Table::Same,
            "INSERT INTO sbtestN (id, k, c, pad) VALUES (?, ?, ?, ?)",
            vec![Deleted, Drawn, C, Pad],
        ),
    ]
}
