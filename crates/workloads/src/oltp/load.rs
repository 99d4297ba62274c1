//! Prepares the tables for the first test: it creates them, or inspects existing ones. A load
//! divides the rows of all tables over statements and connections.

use std::ops::Range;
use std::time::Instant;

use dbdyno_db::{AnySession, KeySource, RowStream, Session};
use serde_json::json;

use crate::engine::allow_local_infile;
use crate::engine::{Origin, create_tables, read_back};
use crate::oltp::options::LoadMethod;
use crate::oltp::rows::{C_LENGTH, OltpRowSource, PAD_LENGTH, push_c, push_pad};
use crate::oltp::verify::{Contents, sums_of};
use crate::oltp::{OltpSetup, sql};
use crate::options::{Protocol, Verify};
use crate::{Error, Result, Work, checks};

/// Bytes of the original's buffer, which no INSERT exceeds.
const INSERT_BYTES: usize = 512 << 10;
/// Bytes that are streamed at a time. A commit costs nothing compared with so many rows, and there
/// are several per second.
const STREAM_BYTES: usize = 4 << 20;
/// Bytes of a row in an INSERT without its numbers: the two texts, brackets, commas, spaces and
/// quotes. A streamed row has fewer.
const ROW_BYTES_WITHOUT_NUMBERS: usize = "(, '', ''),".len() + C_LENGTH + PAD_LENGTH;

/// How a statement of the load is made and sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadForm {
    /// A multi-row INSERT as text.
    Text,
    /// The same INSERT, prepared. The rows are sent as parameters.
    Prepared,
    /// The database's own way for bulk loads.
    Stream(RowStream),
}

/// How the rows of all tables are divided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoadPlan {
    pub(crate) form: LoadForm,
    /// Whether the client gives the ids. It does where the options need it, where several
    /// connections fill a table, where ids do not begin with 1, and where the table's counter would
    /// skip some.
    pub(crate) with_ids: bool,
    tables: u32,
    rows: u64,
    /// Rows of a full statement.
    pub(crate) rows_per_statement: u64,
    /// Number of connections that have something to load.
    pub(crate) connections: u32,
    /// Whether each table is filled by one connection, in the order of ids. Where rows stay in the
    /// order in which they came, that order decides what ranges cost and how a planner reads them.
    by_tables: bool,
}

/// Rows of one table that go with one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowBatch {
    pub(crate) table: u32,
    /// First row, counted from 1.
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl RowBatch {
    pub(crate) fn rows(&self) -> u64 {
        self.last - self.first + 1
    }
}

impl LoadPlan {
    /// Divides the rows. A statement has as many rows as surely fit, so the number depends on the
    /// table's size and on nothing that is drawn.
    pub(crate) fn new(setup: &OltpSetup) -> Self {
        let capabilities = &setup.context.database_server.capabilities;
        let options = &setup.options;
        let form = match (options.load_method, options.protocol) {
            (LoadMethod::Insert, Protocol::Text) => LoadForm::Text,
            (LoadMethod::Insert, Protocol::Auto | Protocol::Prepared) => LoadForm::Prepared,
            (LoadMethod::Stream, _) => LoadForm::Stream(capabilities.row_stream),
        };
        let by_tables = capabilities.keeps_arrival_order;
        let wanted = match (capabilities.parallel_writers, by_tables) {
            (false, _) => 1,
            (true, false) => options.load_connections,
            (true, true) => options.load_connections.min(options.tables),
        };
        let are_shared = !by_tables && !options.tables.is_multiple_of(wanted);
        // A table gives out ids from 1 on. InnoDB does not know how many rows a LOAD DATA has. It
        // reserves ids in powers of two and loses the rest, so that the next statement's ids begin
        // after a gap, and tests would ask for rows that are not there.
        let skips_ids = form == LoadForm::Stream(RowStream::LocalInfile);
        let with_ids = setup.client_ids() || are_shared || options.first_id != 1 || skips_ids;
        let digits = options.last_id().to_string().len();
        let row = ROW_BYTES_WITHOUT_NUMBERS + digits + if with_ids { digits + ", ".len() } else { 0 };
        let room = match form {
            LoadForm::Text | LoadForm::Prepared => {
                INSERT_BYTES - sql::load_prefix(&OltpSetup::table(options.tables), with_ids).len()
            }
            LoadForm::Stream(_) => STREAM_BYTES,
        };
        let rows_per_statement = (room / row) as u64;
        let mut plan = Self {
            form,
            with_ids,
            tables: options.tables,
            rows: options.table_size,
            rows_per_statement,
            connections: wanted,
            by_tables,
        };
        plan.connections = u32::try_from(plan.all_statements()).unwrap_or(wanted).min(wanted);
        plan
    }

    /// Returns the number of connections that build indexes. Each builds the indexes of whole
    /// tables.
    pub(crate) fn index_connections(&self) -> u32 {
        self.connections.min(self.tables)
    }

    fn statements_per_table(&self) -> u64 {
        self.rows.div_ceil(self.rows_per_statement)
    }

    fn all_statements(&self) -> u64 {
        self.statements_per_table() * u64::from(self.tables)
    }

    /// Returns the statements of connection `number` (from 0): an equal part of those of all
    /// tables, counted table by table. Where one connection fills each table, the part consists of
    /// whole tables.
    pub(crate) fn statements_of(&self, number: u32) -> Range<u64> {
        let together = if self.by_tables { self.statements_per_table() } else { 1 };
        let parts = u128::from(self.all_statements() / together);
        let begin =
            |number: u32| together * (parts * u128::from(number) / u128::from(self.connections)) as u64;
        begin(number)..begin(number + 1)
    }

    /// Returns the rows of statement `number` among those of all tables.
    pub(crate) fn batch(&self, number: u64) -> RowBatch {
        let per_table = self.statements_per_table();
        let before = number % per_table * self.rows_per_statement;
        RowBatch {
            table: 1 + (number / per_table) as u32,
            first: before + 1,
            last: (before + self.rows_per_statement).min(self.rows),
        }
    }

    /// Returns whether the INSERT of `batch` is a prepared one. The last multi-row INSERT of a
    /// table is text where it has fewer rows, because it would be prepared only to be executed
    /// once.
    pub(crate) fn is_prepared(&self, batch: RowBatch) -> bool {
        match self.form {
            LoadForm::Prepared => batch.rows() == self.rows_per_statement,
            LoadForm::Stream(form) => form == RowStream::PreparedRows,
            LoadForm::Text => false,
        }
    }

    /// Returns whether any statement is a prepared INSERT. Tables with fewer rows than a full
    /// statement have none.
    pub(crate) fn prepares(&self) -> bool {
        self.form == LoadForm::Prepared && self.rows >= self.rows_per_statement
    }

    /// Returns the INSERT to prepare. It has the rows of a full statement, or one row where rows
    /// are streamed.
    pub(crate) fn prepared_insert(&self, table: u32) -> String {
        if let LoadForm::Stream(form) = self.form {
            return sql::load_rows(&OltpSetup::table(table), form, self.with_ids);
        }
        let row = if self.with_ids { "(?, ?, ?, ?)" } else { "(?, ?, ?)" };
        // The text is at most one MiB.
        let rows = vec![row; self.rows_per_statement as usize].join(",");
        format!("{}{rows}", sql::load_prefix(&OltpSetup::table(table), self.with_ids))
    }

    /// Writes the rows of `batch` as lines into `out`. Columns are separated by tabs, because no
    /// column holds one.
    pub(crate) fn write_lines(&self, batch: RowBatch, source: &OltpRowSource, out: &mut Vec<u8>) {
        let mut digits = itoa::Buffer::new();
        out.clear();
        for row in batch.first..=batch.last {
            if self.with_ids {
                out.extend_from_slice(digits.format(source.id(row)).as_bytes());
                out.push(b'\t');
            }
            let (k, mut draws) = source.row(batch.table, row);
            out.extend_from_slice(digits.format(k).as_bytes());
            out.push(b'\t');
            push_c(&mut draws, out);
            out.push(b'\t');
            push_pad(&mut draws, out);
            out.push(b'\n');
        }
    }
}

/// Writes an INSERT of these `rows` (from 1) of a table into `out`. There must be at least one row.
pub(crate) fn write_insert(
    table: u32,
    rows: impl Iterator<Item = u64>,
    with_ids: bool,
    source: &OltpRowSource,
    out: &mut Vec<u8>,
) {
    let mut digits = itoa::Buffer::new();
    out.clear();
    out.extend_from_slice(sql::load_prefix(&OltpSetup::table(table), with_ids).as_bytes());
    for row in rows {
        out.push(b'(');
        if with_ids {
            out.extend_from_slice(digits.format(source.id(row)).as_bytes());
            out.extend_from_slice(b", ");
        }
        let (k, mut draws) = source.row(table, row);
        out.extend_from_slice(digits.format(k).as_bytes());
        out.extend_from_slice(b", '");
        push_c(&mut draws, out);
        out.extend_from_slice(b"', '");
        push_pad(&mut draws, out);
        out.extend_from_slice(b"'),");
    }
    // This removes the comma after the last row.
    out.pop();
}

/// Creates all tables, without rows. Where the load uses LOAD DATA LOCAL INFILE, a server that
/// dbdyno owns is first set to allow it.
pub(crate) async fn make(setup: &OltpSetup, session: &mut AnySession) -> Result<Vec<Work>> {
    let mut works = Vec::new();
    if LoadPlan::new(setup).form == LoadForm::Stream(RowStream::LocalInfile) {
        works.extend(allow_local_infile(&setup.context, session).await?);
    }
    let tables =
        (1..=setup.options.tables).map(|number| (OltpSetup::table(number), sql::create_table(setup, number)));
    works.push(create_tables(&setup.context, session, tables).await?);
    Ok(works)
}

/// Makes each table's sequence continue after the ids that the client gave in the load, because the
/// sequence does not know them.
pub(crate) async fn restart_ids(setup: &OltpSetup, session: &mut AnySession) -> Result<Option<Work>> {
    let has_sequence = setup.context.database_server.capabilities.key_source == KeySource::Sequence;
    if !has_sequence || setup.client_ids() || !LoadPlan::new(setup).with_ids {
        return Ok(None);
    }
    let began = Instant::now();
    for table in setup.tables() {
        let restarting = Error::during(format!("restarting the ids of table {table}"));
        let statement = sql::restart_ids(&table, setup.options.last_id());
        session.query(statement.as_bytes()).await.map_err(restarting)?;
    }
    Ok(Some(work("restart ids", began, setup.options.tables)))
}

/// Tables that dbdyno found and did not make.
pub(crate) struct ExistingTables {
    /// The contents that later checks compare with.
    pub(crate) contents: Contents,
    /// Number of rows in each table. It is empty where they were not counted.
    pub(crate) rows: Vec<u64>,
    pub(crate) work: Work,
}

/// Checks whether existing tables hold what the tests will ask for. With `with_rows` it also finds
/// how many rows each table has.
pub(crate) async fn find(
    setup: &OltpSetup,
    session: &mut AnySession,
    with_rows: bool,
) -> Result<ExistingTables> {
    let began = Instant::now();
    let mut found = work("find tables", began, setup.options.tables);
    let tables = setup.tables();
    read_back(session, &setup.context.database_server.capabilities, &tables, Origin::Found, &mut found)
        .await?;
    let mut contents = Contents { rows: Some(0), k: Some(0), whole: true };
    let mut rows_of_tables = Vec::new();
    let is_verified = setup.options.verify != Verify::Off;
    for number in 1..=setup.options.tables {
        let [rows, lowest, highest, k, _] = if is_verified {
            sums_of(number, session).await?
        } else {
            // Without verification no one needs the sums, so a large table is not read.
            let highest = highest_id(number, session).await?;
            [highest, 1, highest, 0, 0]
        };
        let last_id = setup.options.last_id();
        if setup.context.stores_data() && highest < i128::from(last_id) {
            let wanted = wanted(setup);
            return Err(Error::TooSmall { table: OltpSetup::table(number), rows, highest, wanted });
        }
        if with_rows {
            let counted =
                if is_verified { rows } else { checks::count(session, &OltpSetup::table(number)).await? };
            rows_of_tables.push(u64::try_from(counted).unwrap_or(0));
        }
        contents.rows = contents.rows.map(|all| all + rows);
        contents.k = contents.k.map(|all| all + k);
        contents.whole &= rows == highest - lowest + 1 && lowest <= setup.options.first_id.into();
    }
    let work = Work { duration: began.elapsed(), ..found };
    Ok(ExistingTables { contents, rows: rows_of_tables, work })
}

/// Returns the size of the tables as the plan writes it.
fn wanted(setup: &OltpSetup) -> String {
    let size = format!("table_size = {}", setup.options.table_size);
    match setup.options.first_id {
        1 => size,
        first_id => format!("first_id = {first_id} and {size}"),
    }
}

pub(crate) async fn highest_id(number: u32, session: &mut AnySession) -> Result<i128> {
    let table = OltpSetup::table(number);
    let looking = format!("looking for the highest id of table {table}");
    checks::number(session, &sql::highest_id(&table), looking).await
}

fn work(name: &str, began: Instant, tables: u32) -> Work {
    Work::new(name, began.elapsed(), [("tables", json!(tables))])
}

#[cfg(test)]
mod tests {
    use dbdyno_db::{Capabilities, DatabaseAddress, DatabaseServer, mysql, null, postgres, sqlite};

    use super::*;
    use crate::Context;
    use crate::oltp::options::OltpOptions;
    use crate::oltp::steps;
    use crate::step::StepOptions;

    fn plan(options: OltpOptions, capabilities: Capabilities) -> LoadPlan {
        let database_server =
            DatabaseServer { address: DatabaseAddress::Null(null::Options::default()), capabilities };
        LoadPlan::new(&OltpSetup {
            options,
            context: Context { database_server, owned: true, seed: 1, draws: 1, device: None },
        })
    }

    fn innodb(tables: u32, table_size: u64, load_connections: u32, load_method: LoadMethod) -> LoadPlan {
        let options =
            OltpOptions { tables, table_size, load_connections, load_method, ..OltpOptions::default() };
        plan(options, mysql::capabilities("innodb", true))
    }

    #[test]
    fn every_row_of_every_table_is_in_one_statement_of_one_connection() {
        for (tables, size, connections) in
            [(1, 1, 4), (1, 10_000, 4), (3, 9_999, 2), (5, 100, 3), (8, 5_000, 4), (2, 30_000, 7)]
        {
            for method in [LoadMethod::Insert, LoadMethod::Stream] {
                let plan = innodb(tables, size, connections, method);
                let mut next = (1, 1);
                for statement in (0..plan.connections).flat_map(|number| plan.statements_of(number)) {
                    let RowBatch { table, first, last } = plan.batch(statement);
                    assert_eq!((table, first), next, "{plan:?}");
                    assert!(last >= first && last - first < plan.rows_per_statement);
                    next = if last == size { (table + 1, 1) } else { (table, last + 1) };
                }
                assert_eq!(next, (tables + 1, 1), "{plan:?}");
            }
        }
    }

    #[test]
    fn a_heap_is_filled_by_one_connection_in_the_order_of_ids() {
        for (tables, connections) in [(1, 4), (3, 2), (5, 4), (8, 4), (2, 1)] {
            for load_method in [LoadMethod::Insert, LoadMethod::Stream] {
                let options =
                    OltpOptions { tables, table_size: 30_000, load_method, ..OltpOptions::default() };
                let options = OltpOptions { load_connections: connections, ..options };
                for capabilities in [postgres::capabilities(), mysql::capabilities("MyISAM", true)] {
                    let plan = plan(options.clone(), capabilities);
                    assert_eq!(plan.connections, connections.min(tables));
                    let first_of = |number| plan.batch(plan.statements_of(number).start).first;
                    let mut firsts = (0..plan.connections).map(first_of);
                    assert!(firsts.all(|first| first == 1), "a part begins within a table: {plan:?}");
                }
            }
        }
        let shared = OltpOptions { load_connections: 4, ..OltpOptions::default() };
        assert!(
            !plan(shared, postgres::capabilities()).with_ids,
            "the server gives them, as to one connection"
        );
    }

    #[test]
    fn connections_have_equal_parts_and_none_is_idle() {
        let plan = innodb(1, 1_000_000, 4, LoadMethod::Insert);
        let parts: Vec<u64> = (0..4).map(|number| plan.statements_of(number).count() as u64).collect();
        assert!(parts.iter().max().unwrap() - parts.iter().min().unwrap() <= 1, "{parts:?}");
        assert_eq!(innodb(2, 10, 16, LoadMethod::Insert).connections, 2);
    }

    #[test]
    fn the_client_gives_the_ids_of_tables_that_connections_share() {
        let with_ids = |tables, connections| innodb(tables, 10_000, connections, LoadMethod::Insert).with_ids;
        assert!(with_ids(1, 4) && with_ids(5, 4) && with_ids(3, 2));
        assert!(!with_ids(1, 1) && !with_ids(8, 4) && !with_ids(4, 4));
    }

    #[test]
    fn the_client_gives_the_ids_of_a_stream_whose_statements_would_leave_gaps() {
        let stream = |capabilities| {
            let options = OltpOptions { tables: 8, load_connections: 4, ..OltpOptions::default() };
            plan(OltpOptions { load_method: LoadMethod::Stream, ..options }, capabilities).with_ids
        };
        assert!(stream(mysql::capabilities("innodb", true)) && stream(mysql::capabilities("rocksdb", false)));
        assert!(!stream(postgres::capabilities()));
    }

    #[test]
    fn the_client_gives_ids_that_do_not_begin_with_1_and_statements_have_room_for_them() {
        let plan = |first_id| {
            let options = OltpOptions { first_id, load_connections: 1, ..OltpOptions::default() };
            plan(options, mysql::capabilities("innodb", true))
        };
        assert!(!plan(1).with_ids && plan(2).with_ids);
        assert!(plan(3_000_000_000).rows_per_statement < plan(2).rows_per_statement);
    }

    #[test]
    fn the_record_says_text_where_no_table_fills_an_insert() {
        let protocol = |table_size| {
            let options = OltpOptions { table_size, ..OltpOptions::default() };
            let database_server = DatabaseServer {
                address: DatabaseAddress::Null(null::Options::default()),
                capabilities: null::capabilities(),
            };
            let context = Context { database_server, owned: true, seed: 1, draws: 1, device: None };
            let load = options.list().remove(0);
            steps::spec(&load, &OltpSetup { options, context }).kinds.remove(0).protocol
        };
        let full = plan(OltpOptions { table_size: 9_999, ..OltpOptions::default() }, null::capabilities());
        let rows = full.rows_per_statement;
        assert_eq!((protocol(rows - 1).as_str(), protocol(rows).as_str()), ("text", "prepared"));
    }

    #[test]
    fn a_database_with_one_writer_is_loaded_by_one_connection() {
        let plan = plan(OltpOptions { tables: 8, ..OltpOptions::default() }, sqlite::capabilities());
        assert_eq!((plan.connections, plan.with_ids), (1, false));
    }
}
