//! What a database can do, and the form of SQL that it needs. A workload knows nothing else about a
//! product.

use crate::Foreign;

/// How a query is tied to an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexHint {
    None,
    /// `FORCE INDEX (name)` after the table.
    Force,
    /// `INDEXED BY name` after the table.
    IndexedBy,
}

impl IndexHint {
    /// The text after a table's name that makes a query read it by `index`. It is empty where there
    /// is no such text.
    pub fn words(self, index: &str) -> String {
        match self {
            Self::None => String::new(),
            Self::Force => format!(" FORCE INDEX ({index})"),
            Self::IndexedBy => format!(" INDEXED BY {index}"),
        }
    }
}

/// How the first N rows of a key range are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteForm {
    /// `DELETE ... ORDER BY ... LIMIT n`
    OrderLimit,
    /// `DELETE ... WHERE key IN (SELECT ... ORDER BY ... LIMIT n)`
    InSubquery,
}

/// How several secondary indexes are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexDdl {
    /// One `ALTER TABLE` adds all of them.
    OneAlter,
    /// Each index gets its own `ALTER TABLE`.
    AlterEach,
    /// Each index gets its own `CREATE INDEX`.
    CreateEach,
}

/// The source of the keys that a server assigns. It decides how the next key is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySource {
    /// The server takes the key above the table's highest one. The next key cannot be set.
    Table,
    /// A counter for the table: `ALTER TABLE t AUTO_INCREMENT = n`.
    TableCounter,
    /// A sequence named `t_column_seq`: `ALTER SEQUENCE ... RESTART WITH n`. Each session takes
    /// keys in blocks of the sequence's size (`CACHE n`), so keys have gaps.
    Sequence,
}

/// The fastest way in which a client can fill a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowStream {
    /// `LOAD DATA LOCAL INFILE`, which the server's `local_infile` must allow.
    LocalInfile,
    /// `COPY ... FROM STDIN`.
    CopyIn,
    /// A prepared INSERT of one row, with many of them in one transaction.
    PreparedRows,
}

/// Facts about a database that shape SQL and scheduling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// Column definition for a 64-bit key that the server assigns, primary key included.
    pub auto_key: &'static str,
    /// Type for a 32-bit key that the server assigns, without the primary key.
    pub int_key: &'static str,
    /// The same as `int_key`, with 64 bits.
    pub big_key: &'static str,
    /// Type for a 64-bit integer.
    pub big_int: &'static str,
    /// The text for a parameter that is a 32-bit integer. Some servers would take a bare parameter
    /// for a longer integer.
    pub int_param: &'static str,
    /// Whether integers can be UNSIGNED and a table can say how many rows it will have
    /// (`MAX_ROWS`).
    pub unsigned: bool,
    /// Statement that begins a transaction that will write. Where one lock covers the whole
    /// database, the statement takes that lock at once. Otherwise transactions that have read and
    /// then want to write would block each other.
    pub begin_write: &'static str,
    /// Type for a local date and time with a resolution of one second.
    pub datetime: &'static str,
    /// The tables' storage engine, where there are several.
    pub engine: Option<String>,
    /// Text after the closing bracket of CREATE TABLE, e.g. ` ENGINE=InnoDB`.
    pub table_suffix: String,
    pub index_hint: IndexHint,
    pub delete_form: DeleteForm,
    pub index_ddl: IndexDdl,
    /// Whether INSERTs and DELETEs are sent as text unless the plan says otherwise.
    pub text_writes_by_default: bool,
    /// Whether queries are sent as text unless the plan says otherwise.
    pub text_queries_by_default: bool,
    /// Whether a statement blocks the thread that sends it, so that each connection needs its own
    /// thread.
    pub blocking: bool,
    pub row_stream: RowStream,
    /// Whether several connections can write at the same time. Otherwise they only wait for each
    /// other.
    pub parallel_writers: bool,
    /// Whether rows are stored apart from all indexes, in the order in which they arrived, as in a
    /// heap. If several connections fill one table, its rows are then not in the order of their
    /// ids.
    pub keeps_arrival_order: bool,
    /// Whether VACUUM cleans tables, which can have a fill factor, be unlogged and be partitioned
    /// with `PARTITION OF`.
    pub vacuumed_tables: bool,
    /// Whether the server keeps a binary log that dbdyno may drop between steps, because dbdyno
    /// owns the server.
    pub drops_binlog: bool,
    pub key_source: KeySource,
    /// Whether automatic keys have no gaps as long as only one session inserts and nothing fails.
    pub contiguous_keys: bool,
    /// The start of a statement that gathers the optimiser's statistics for the table after it. It
    /// is empty where there is none.
    pub gather_statistics: &'static str,
    /// Whether there are types for dates and exact decimal numbers. Otherwise dates are texts, and
    /// decimal numbers are floating-point.
    pub typed_values: bool,
    /// Whether foreign keys can be added to an existing table and are checked.
    pub foreign_keys: bool,
    /// The text between two tables that makes the server join them in the written order, and the
    /// statement that a session needs first. The statement is empty where none is needed.
    pub ordered_join: (&'static str, &'static str),
    /// Whether the engine returns real data. It is `false` only for the null driver, whose contents
    /// cannot be checked.
    pub stores_data: bool,
    /// The server, where it is not the product whose protocol it speaks. See
    /// [`crate::DatabaseServer::identify`].
    pub foreign: Option<Foreign>,
}

impl Capabilities {
    /// Whether the product itself answers queries about its state, so that counters and levels have
    /// their usual meaning. Other servers report many counters under the same names, but with
    /// another meaning or without a number.
    pub fn counts_as_the_product(&self) -> bool {
        self.foreign.as_ref().is_none_or(|foreign| foreign.is_proxy)
    }

    /// Whether the process at the server's socket is the one that has the data.
    pub fn is_at_its_socket(&self) -> bool {
        self.foreign.as_ref().is_none_or(|foreign| !foreign.is_proxy)
    }
}
