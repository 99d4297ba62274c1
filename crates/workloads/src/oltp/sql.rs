//! Writes the statements of the classic OLTP tests in the original's shapes: with parameters, as
//! text with the values filled in, and with fixed values for a server to explain.

use dbdyno_db::{Capabilities, KeySource, Param, RowStream};

use crate::Explained;
use crate::engine::after_columns;
use crate::oltp::OltpSetup;
use crate::oltp::operation::StatementSlot;
use crate::oltp::options::{IdType, OltpProfile};

/// One kind of statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OltpStatement {
    Begin,
    Point,
    SimpleRange,
    SumRange,
    OrderRange,
    DistinctRange,
    /// It returns the number of rows in a range.
    CountRange,
    /// It reads rows whose column is in a list of random values.
    Points(Fetch, u32),
    /// It reads rows whose column is in a list that is the same for all connections: this many
    /// consecutive ids in the middle of the table.
    HotPoints(u32),
    /// It reads rows whose column lies between a value and that value plus this number.
    Range(Fetch, u32),
    /// It reads the whole table, with a condition that no row meets.
    Scan,
    IndexUpdate,
    NonIndexUpdate,
    /// It sets a new `c` for this many ids.
    ListUpdate(u32),
    Delete,
    /// It inserts the row that the DELETE before it removed, with new contents.
    Insert,
    /// It inserts a new row, with an id from the server.
    NewRow,
    /// It inserts a new row, with an id from the client.
    NewRowWithId,
    Commit,
}

/// What a query of the microbenchmarks fetches, and by which column it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fetch {
    pub(crate) columns: &'static str,
    pub(crate) by: &'static str,
}

impl OltpStatement {
    /// Returns the name in records and reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Begin => "begin",
            Self::Commit => "commit",
            Self::Point => "point-select",
            Self::SimpleRange => "simple-range",
            Self::SumRange => "sum-range",
            Self::OrderRange => "order-range",
            Self::DistinctRange => "distinct-range",
            Self::CountRange => "count-range",
            Self::Points(..) | Self::HotPoints(_) => "points",
            Self::Range(..) => "range",
            Self::Scan => "scan",
            Self::IndexUpdate => "index-update",
            Self::NonIndexUpdate => "non-index-update",
            Self::ListUpdate(_) => "list-update",
            Self::Delete => "delete",
            Self::Insert | Self::NewRow | Self::NewRowWithId => "insert",
        }
    }

    /// Returns whether the statement begins or ends a transaction. Such a statement has no
    /// parameters and no table.
    pub(crate) fn is_transaction_control(self) -> bool {
        matches!(self, Self::Begin | Self::Commit)
    }

    /// Returns whether the statement reads a range of ids that is as wide as `range_size` says.
    pub(crate) fn is_range(self) -> bool {
        matches!(
            self,
            Self::SimpleRange | Self::SumRange | Self::OrderRange | Self::DistinctRange | Self::CountRange
        )
    }

    /// Returns whether the statement changes rows.
    pub(crate) fn is_write(self) -> bool {
        match self {
            Self::IndexUpdate | Self::NonIndexUpdate | Self::ListUpdate(_) => true,
            Self::Delete | Self::Insert | Self::NewRow | Self::NewRowWithId => true,
            Self::Begin | Self::Commit | Self::Point | Self::Points(..) | Self::HotPoints(_) => false,
            Self::Range(..) | Self::Scan | Self::SimpleRange | Self::SumRange => false,
            Self::OrderRange | Self::DistinctRange | Self::CountRange => false,
        }
    }
}

/// Returns the statement of `kind` on `table`, with parameters as `?`. `writes` says whether the
/// transaction that a BEGIN starts will write.
pub(crate) fn statement(
    kind: OltpStatement,
    table: &str,
    writes: bool,
    capabilities: &Capabilities,
) -> String {
    let from = "WHERE id BETWEEN ? AND ?";
    match kind {
        OltpStatement::Begin if writes => capabilities.begin_write.to_owned(),
        OltpStatement::Begin => "BEGIN".to_owned(),
        OltpStatement::Commit => "COMMIT".to_owned(),
        OltpStatement::Point => format!("SELECT c FROM {table} WHERE id=?"),
        OltpStatement::SimpleRange => format!("SELECT c FROM {table} {from}"),
        OltpStatement::SumRange => format!("SELECT SUM(k) FROM {table} {from}"),
        OltpStatement::OrderRange => format!("SELECT c FROM {table} {from} ORDER BY c"),
        OltpStatement::DistinctRange => format!("SELECT DISTINCT c FROM {table} {from} ORDER BY c"),
        OltpStatement::CountRange => format!("SELECT count(c) FROM {table} {from}"),
        OltpStatement::Points(Fetch { columns, by }, count) => {
            format!("SELECT {columns} FROM {table} WHERE {by} IN ({})", placeholders(count))
        }
        OltpStatement::HotPoints(count) => {
            format!("SELECT c FROM {table} WHERE id IN ({})", placeholders(count))
        }
        OltpStatement::Range(Fetch { columns, by }, _) => {
            format!("SELECT {columns} FROM {table} WHERE {by} BETWEEN ? AND ?")
        }
        OltpStatement::Scan => format!("SELECT * FROM {table} WHERE LENGTH(c) < 0"),
        OltpStatement::ListUpdate(count) => {
            format!("UPDATE {table} SET c=? WHERE id IN ({})", placeholders(count))
        }
        OltpStatement::IndexUpdate => format!("UPDATE {table} SET k=k+1 WHERE id=?"),
        OltpStatement::NonIndexUpdate => format!("UPDATE {table} SET c=? WHERE id=?"),
        OltpStatement::Delete => format!("DELETE FROM {table} WHERE id=?"),
        OltpStatement::Insert | OltpStatement::NewRowWithId => {
            format!("INSERT INTO {table} (id, k, c, pad) VALUES (?, ?, ?, ?)")
        }
        // Where a counter of the table gives out ids, a 0 asks for the next one. The original sends
        // a 0 too.
        OltpStatement::NewRow if capabilities.key_source == KeySource::TableCounter => {
            format!("INSERT INTO {table} (id, k, c, pad) VALUES (0, ?, ?, ?)")
        }
        OltpStatement::NewRow => format!("INSERT INTO {table} (k, c, pad) VALUES (?, ?, ?)"),
    }
}

/// Returns a list of `count` placeholders.
fn placeholders(count: u32) -> String {
    vec!["?"; count as usize].join(", ")
}

/// Returns the [`statement`] as the profile of `setup` writes it.
pub(crate) fn statement_of(setup: &OltpSetup, kind: OltpStatement, table: &str, writes: bool) -> String {
    let sql = statement(kind, table, writes, &setup.context.database_server.capabilities);
    match setup.added_span() {
        Some(span) if kind.is_range() => sql.replace("AND ?", &format!("AND ?+{span}")),
        _ => sql,
    }
}

/// Returns statements that drop and create table number `number`, empty.
pub(crate) fn create_table(setup: &OltpSetup, number: u32) -> Vec<String> {
    let capabilities = &setup.context.database_server.capabilities;
    let options = &setup.options;
    let table = OltpSetup::table(number);
    let Types { id, k, more_rows } = types(setup);
    let is_counter = capabilities.key_source == KeySource::TableCounter;
    let key = match (options.secondary, is_counter) {
        (false, _) => ", PRIMARY KEY (id)",
        // A table's counter needs an index on its column from the start.
        (true, true) => ", KEY xid (id)",
        (true, false) => "",
    };
    let more = after_columns(more_rows) + &after_columns(&options.create_table_options);
    let mut statements = vec![
        format!("DROP TABLE IF EXISTS {table}"),
        format!(
            "CREATE TABLE {table} (id {id}, k {k} DEFAULT 0 NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, \
             pad CHAR(60) DEFAULT '' NOT NULL{key}){}{more}",
            capabilities.table_suffix
        ),
    ];
    if options.secondary && !is_counter {
        statements.push(format!("CREATE INDEX xid{number} ON {table} (id)"));
    }
    if options.create_secondary && options.index_before_load {
        statements.push(create_index(number));
    }
    statements
}

/// Types of `id` and `k`, and the table option that states the largest number of rows.
struct Types {
    id: String,
    k: String,
    more_rows: &'static str,
}

fn types(setup: &OltpSetup) -> Types {
    let capabilities = &setup.context.database_server.capabilities;
    let is_big = setup.options.id == IdType::Bigint;
    let number = if is_big { capabilities.big_int } else { "INTEGER" };
    let counted = if is_big { capabilities.big_key } else { capabilities.int_key };
    let id = if setup.client_ids() { format!("{number} NOT NULL") } else { counted.to_owned() };
    let is_old = setup.options.profile == OltpProfile::Sysbench05 && capabilities.unsigned;
    if !is_old {
        return Types { id, k: number.to_owned(), more_rows: "" };
    }
    let unsigned = format!("{number} UNSIGNED");
    Types { id: id.replacen(number, &unsigned, 1), k: unsigned, more_rows: "MAX_ROWS = 1000000" }
}

/// Returns the secondary index of table number `number`.
pub(crate) fn create_index(number: u32) -> String {
    format!("CREATE INDEX k_{number} ON {}(k)", OltpSetup::table(number))
}

/// Returns a multi-row INSERT up to its first row.
pub(crate) fn load_prefix(table: &str, client_ids: bool) -> String {
    format!("INSERT INTO {table}({}k, c, pad) VALUES", if client_ids { "id, " } else { "" })
}

/// Returns the bulk statement that reads rows from the client, with columns in this order.
pub(crate) fn load_rows(table: &str, form: RowStream, with_ids: bool) -> String {
    let columns = if with_ids { "id, k, c, pad" } else { "k, c, pad" };
    match form {
        RowStream::LocalInfile => {
            format!("LOAD DATA LOCAL INFILE 'rows' INTO TABLE {table} CHARACTER SET utf8mb4 ({columns})")
        }
        RowStream::CopyIn => format!("COPY {table} ({columns}) FROM STDIN"),
        RowStream::PreparedRows if with_ids => format!("INSERT INTO {table} ({columns}) VALUES (?, ?, ?, ?)"),
        RowStream::PreparedRows => format!("INSERT INTO {table} ({columns}) VALUES (?, ?, ?)"),
    }
}

/// Returns the statement that makes the sequence of `table` continue after `highest`.
pub(crate) fn restart_ids(table: &str, highest: u64) -> String {
    format!("ALTER SEQUENCE {table}_id_seq RESTART WITH {}", highest + 1)
}

/// Returns the query for everything that verification compares.
pub(crate) fn sums(table: &str) -> String {
    format!("SELECT COUNT(*), MIN(id), MAX(id), SUM(k), SUM(id) FROM {table}")
}

pub(crate) fn rows_of(table: &str, ids: &[u64]) -> String {
    let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
    format!("SELECT id, k, c, pad FROM {table} WHERE id IN ({}) ORDER BY id", ids.join(", "))
}

pub(crate) fn highest_id(table: &str) -> String {
    format!("SELECT MAX(id) FROM {table}")
}

/// A statement's text without its parameters.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    pieces: Vec<String>,
}

impl Template {
    /// Returns the template of `sql`, in which each `?` is a parameter. There must be no other
    /// question mark.
    pub(crate) fn new(sql: &str) -> Self {
        Self { pieces: sql.split('?').map(str::to_owned).collect() }
    }

    /// Writes the statement with `params` into `out`. Texts are digits and hyphens, so that nothing
    /// needs an escape.
    pub(crate) fn write(&self, params: &[Param], out: &mut Vec<u8>) {
        out.clear();
        for (index, piece) in self.pieces.iter().enumerate() {
            out.extend_from_slice(piece.as_bytes());
            match params.get(index) {
                Some(Param::Int(number)) => {
                    out.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes());
                }
                Some(Param::Text(text)) => {
                    out.push(b'\'');
                    out.extend_from_slice(text);
                    out.push(b'\'');
                }
                Some(Param::Null) => out.extend_from_slice(b"NULL"),
                None => {}
            }
        }
    }
}

/// Returns each statement of an operation that looks for rows, once, on the first table, in the
/// order of the operation. The values are the same for every server: ids and values of `k` from the
/// middle of the table, where `special` and `gaussian` have most of theirs.
pub(crate) fn explained(setup: &OltpSetup, statement_slots: &[StatementSlot]) -> Vec<Explained> {
    let mut found: Vec<Explained> = Vec::new();
    for kind in statement_slots.iter().map(|place| place.kind) {
        let Some(values) = values(setup, kind) else { continue };
        let mut text = Vec::new();
        Template::new(&statement_of(setup, kind, &OltpSetup::table(1), false)).write(&values, &mut text);
        let explained = Explained {
            statement: kind.name().to_owned(),
            sql: String::from_utf8_lossy(&text).into_owned(),
            is_executed: false,
        };
        if !found.contains(&explained) {
            found.push(explained);
        }
    }
    found
}

/// Returns values for the parameters, or `None` for statements that look up no rows.
fn values(setup: &OltpSetup, kind: OltpStatement) -> Option<Vec<Param>> {
    let rows = setup.options.table_size.max(1);
    let middle = rows.div_ceil(2);
    // Ids and `k` begin with `first_id`.
    let skipped = setup.options.first_id.saturating_sub(1);
    let id =
        |id: u64| Param::Int(i64::try_from(id.clamp(1, rows).saturating_add(skipped)).unwrap_or(i64::MAX));
    let spread = |count: u32| (0..u64::from(count)).map(move |at| 1 + at * rows / u64::from(count.max(1)));
    let text = || Param::Text(b"0".to_vec());
    Some(match kind {
        OltpStatement::Begin
        | OltpStatement::Commit
        | OltpStatement::Insert
        | OltpStatement::NewRow
        | OltpStatement::NewRowWithId => return None,
        OltpStatement::Scan => Vec::new(),
        OltpStatement::Point | OltpStatement::IndexUpdate | OltpStatement::Delete => vec![id(middle)],
        OltpStatement::NonIndexUpdate => vec![text(), id(middle)],
        kind if kind.is_range() && setup.added_span().is_some() => vec![id(middle), id(middle)],
        OltpStatement::SimpleRange
        | OltpStatement::SumRange
        | OltpStatement::OrderRange
        | OltpStatement::DistinctRange
        | OltpStatement::CountRange => {
            vec![id(middle), id(middle + u64::from(setup.options.range_size) - 1)]
        }
        OltpStatement::Range(_, length) => vec![id(middle), id(middle + u64::from(length))],
        OltpStatement::Points(_, count) => spread(count).map(id).collect(),
        OltpStatement::HotPoints(count) => (0..u64::from(count)).map(|at| id(middle + at)).collect(),
        OltpStatement::ListUpdate(count) => std::iter::once(text()).chain(spread(count).map(id)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use dbdyno_db::{DatabaseAddress, DatabaseServer, mysql, null, postgres, sqlite};
    use dbdyno_record::StatementClass;

    use super::*;
    use crate::Context;
    use crate::oltp::operation::statement_slots;
    use crate::oltp::options::{IdType, OltpOptions, OltpProfile, OltpTest};

    const KINDS: [OltpStatement; 13] = [
        OltpStatement::Begin,
        OltpStatement::Point,
        OltpStatement::SimpleRange,
        OltpStatement::SumRange,
        OltpStatement::OrderRange,
        OltpStatement::DistinctRange,
        OltpStatement::IndexUpdate,
        OltpStatement::NonIndexUpdate,
        OltpStatement::Delete,
        OltpStatement::Insert,
        OltpStatement::NewRow,
        OltpStatement::NewRowWithId,
        OltpStatement::Commit,
    ];

    fn setup(options: OltpOptions, capabilities: Capabilities) -> OltpSetup {
        let database_server =
            DatabaseServer { address: DatabaseAddress::Null(null::Options::default()), capabilities };
        OltpSetup {
            options,
            context: Context { database_server, owned: true, seed: 1, draws: 1, device: None },
        }
    }

    fn tables(options: &OltpOptions, capabilities: &Capabilities) -> String {
        create_table(&setup(options.clone(), capabilities.clone()), 3).join("\n")
    }

    fn own(capabilities: &Capabilities) -> String {
        let mut lines = vec![tables(&OltpOptions::default(), capabilities), create_index(3)];
        lines.push(statement(OltpStatement::Begin, "", true, capabilities));
        lines.push(statement(OltpStatement::NewRow, "sbtest3", true, capabilities));
        lines.join("\n")
    }

    #[test]
    fn statements_have_the_originals_shapes() {
        let lines = KINDS.map(|kind| statement(kind, "sbtest2", false, &postgres::capabilities()));
        insta::assert_snapshot!(lines.join("\n"), @r"
        BEGIN
        SELECT c FROM sbtest2 WHERE id=?
        SELECT c FROM sbtest2 WHERE id BETWEEN ? AND ?
        SELECT SUM(k) FROM sbtest2 WHERE id BETWEEN ? AND ?
        SELECT c FROM sbtest2 WHERE id BETWEEN ? AND ? ORDER BY c
        SELECT DISTINCT c FROM sbtest2 WHERE id BETWEEN ? AND ? ORDER BY c
        UPDATE sbtest2 SET k=k+1 WHERE id=?
        UPDATE sbtest2 SET c=? WHERE id=?
        DELETE FROM sbtest2 WHERE id=?
        INSERT INTO sbtest2 (id, k, c, pad) VALUES (?, ?, ?, ?)
        INSERT INTO sbtest2 (k, c, pad) VALUES (?, ?, ?)
        INSERT INTO sbtest2 (id, k, c, pad) VALUES (?, ?, ?, ?)
        COMMIT
        ");
    }

    #[test]
    fn the_name_of_a_statement_has_the_class_that_the_statement_has() {
        for kind in KINDS {
            let class = StatementClass::of(kind.name());
            let writes = matches!(class, StatementClass::Write | StatementClass::Delete);
            assert_eq!(writes, kind.is_write(), "{kind:?}");
            assert_eq!(class == StatementClass::Commit, kind == OltpStatement::Commit, "{kind:?}");
        }
    }

    #[test]
    fn tables_differ_only_where_products_must() {
        insta::assert_snapshot!(own(&mysql::capabilities("innodb", true)), @r"
        DROP TABLE IF EXISTS sbtest3
        CREATE TABLE sbtest3 (id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER DEFAULT 0 NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id)) ENGINE=innodb
        CREATE INDEX k_3 ON sbtest3(k)
        BEGIN
        INSERT INTO sbtest3 (id, k, c, pad) VALUES (0, ?, ?, ?)
        ");
        insta::assert_snapshot!(own(&postgres::capabilities()), @r"
        DROP TABLE IF EXISTS sbtest3
        CREATE TABLE sbtest3 (id SERIAL, k INTEGER DEFAULT 0 NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id))
        CREATE INDEX k_3 ON sbtest3(k)
        BEGIN
        INSERT INTO sbtest3 (k, c, pad) VALUES (?, ?, ?)
        ");
        insta::assert_snapshot!(own(&sqlite::capabilities()), @r"
        DROP TABLE IF EXISTS sbtest3
        CREATE TABLE sbtest3 (id INTEGER NOT NULL, k INTEGER DEFAULT 0 NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id))
        CREATE INDEX k_3 ON sbtest3(k)
        BEGIN IMMEDIATE
        INSERT INTO sbtest3 (k, c, pad) VALUES (?, ?, ?)
        ");
    }

    #[test]
    fn options_of_tables_have_their_effect() {
        let secondary = OltpOptions { secondary: true, ..OltpOptions::default() };
        insta::assert_snapshot!(tables(&secondary, &mysql::capabilities("innodb", true)), @r"
        DROP TABLE IF EXISTS sbtest3
        CREATE TABLE sbtest3 (id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER DEFAULT 0 NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, KEY xid (id)) ENGINE=innodb
        ");
        insta::assert_snapshot!(tables(&secondary, &postgres::capabilities()), @r"
        DROP TABLE IF EXISTS sbtest3
        CREATE TABLE sbtest3 (id SERIAL, k INTEGER DEFAULT 0 NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL)
        CREATE INDEX xid3 ON sbtest3 (id)
        ");
        insta::assert_snapshot!(tables(&secondary, &sqlite::capabilities()), @r"
        DROP TABLE IF EXISTS sbtest3
        CREATE TABLE sbtest3 (id INTEGER NOT NULL, k INTEGER DEFAULT 0 NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL)
        CREATE INDEX xid3 ON sbtest3 (id)
        ");
        let other = OltpOptions {
            auto_inc: false,
            create_table_options: "WITH (fillfactor=90)".into(),
            ..OltpOptions::default()
        };
        insta::assert_snapshot!(tables(&other, &postgres::capabilities()), @r"
        DROP TABLE IF EXISTS sbtest3
        CREATE TABLE sbtest3 (id INTEGER NOT NULL, k INTEGER DEFAULT 0 NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id)) WITH (fillfactor=90)
        ");
        assert_eq!(load_prefix("sbtest1", true), "INSERT INTO sbtest1(id, k, c, pad) VALUES");
        assert_eq!(load_prefix("sbtest1", false), "INSERT INTO sbtest1(k, c, pad) VALUES");
    }

    #[test]
    fn parameters_replace_the_placeholders() {
        let mut out = b"old".to_vec();
        let params = [Param::Text(b"12-3".to_vec()), Param::Int(-7)];
        Template::new("UPDATE t SET c=? WHERE id=?").write(&params, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "UPDATE t SET c='12-3' WHERE id=-7");
        let mut out = Vec::new();
        Template::new("COMMIT").write(&[], &mut out);
        assert_eq!(out, b"COMMIT");
    }

    fn setup_of(options: OltpOptions) -> OltpSetup {
        let capabilities = mysql::capabilities("innodb", true);
        let database_server =
            DatabaseServer { address: DatabaseAddress::Null(null::Options::default()), capabilities };
        OltpSetup {
            options,
            context: Context { database_server, owned: true, seed: 1, draws: 1, device: None },
        }
    }

    fn text(setup: &OltpSetup, statement_slots: &[StatementSlot]) -> String {
        let lines = explained(setup, statement_slots);
        lines.iter().map(|line| format!("{}: {}", line.statement, line.sql)).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_transactions_statements_are_explained_once_each_without_begin_commit_and_inserts() {
        let setup = setup_of(OltpOptions { table_size: 1_000, ..OltpOptions::default() });
        let statement_slots = statement_slots(OltpTest::ReadWrite, &setup.options, false);
        insta::assert_snapshot!(text(&setup, &statement_slots), @r"
        point-select: SELECT c FROM sbtest1 WHERE id=500
        simple-range: SELECT c FROM sbtest1 WHERE id BETWEEN 500 AND 599
        sum-range: SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN 500 AND 599
        order-range: SELECT c FROM sbtest1 WHERE id BETWEEN 500 AND 599 ORDER BY c
        distinct-range: SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN 500 AND 599 ORDER BY c
        index-update: UPDATE sbtest1 SET k=k+1 WHERE id=500
        non-index-update: UPDATE sbtest1 SET c='0' WHERE id=500
        delete: DELETE FROM sbtest1 WHERE id=500
        ");
    }

    #[test]
    fn explained_ids_count_from_the_first_id() {
        let first_id = 5_000_000_000;
        let options =
            OltpOptions { table_size: 1_000, id: IdType::Bigint, first_id, ..OltpOptions::default() };
        let setup = setup_of(options);
        let statement_slots =
            [OltpStatement::Point, OltpStatement::HotPoints(2)].map(|kind| StatementSlot { kind, group: 1 });
        insta::assert_snapshot!(text(&setup, &statement_slots), @r"
        point-select: SELECT c FROM sbtest1 WHERE id=5000000499
        points: SELECT c FROM sbtest1 WHERE id IN (5000000499, 5000000500)
        ");
    }

    #[test]
    fn lists_ranges_and_the_old_profile_have_values_for_all_placeholders() {
        let old =
            OltpOptions { profile: OltpProfile::Sysbench05, table_size: 1_000, ..OltpOptions::default() };
        let old = setup_of(old);
        let kinds = [
            OltpStatement::SimpleRange,
            OltpStatement::Points(Fetch { columns: "c", by: "k" }, 3),
            OltpStatement::HotPoints(2),
            OltpStatement::Range(Fetch { columns: "id", by: "k" }, 10),
            OltpStatement::ListUpdate(2),
            OltpStatement::Scan,
            OltpStatement::NewRow,
        ];
        let statement_slots = kinds.map(|kind| StatementSlot { kind, group: 1 });
        insta::assert_snapshot!(text(&old, &statement_slots), @r"
        simple-range: SELECT c FROM sbtest1 WHERE id BETWEEN 500 AND 500+99
        points: SELECT c FROM sbtest1 WHERE k IN (1, 334, 667)
        points: SELECT c FROM sbtest1 WHERE id IN (500, 501)
        range: SELECT id FROM sbtest1 WHERE k BETWEEN 500 AND 510
        list-update: UPDATE sbtest1 SET c='0' WHERE id IN (1, 501)
        scan: SELECT * FROM sbtest1 WHERE LENGTH(c) < 0
        ");
    }
}
