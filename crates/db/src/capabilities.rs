//! What a database can do and how it wants to be addressed: the only thing a workload may know of a
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
    /// What has a table read by `index`, to be written after its name; empty where no words do.
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
    /// One `ALTER TABLE` with all of them.
    OneAlter,
    /// One `ALTER TABLE` each.
    AlterEach,
    /// One `CREATE INDEX` each.
    CreateEach,
}

/// Where the keys come from that a server fills in, which decides how the next one is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySource {
    /// The table itself, one above its greatest key; the next one cannot be set.
    Table,
    /// A counter of the table: `ALTER TABLE t AUTO_INCREMENT = n`.
    TableCounter,
    /// A sequence named `t_column_seq`: `ALTER SEQUENCE ... RESTART WITH n`. Each session takes
    /// keys in blocks, whose size is the sequence's (`CACHE n`), and leaves gaps.
    Sequence,
}

/// How a table is filled the fastest way that a client has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowStream {
    /// `LOAD DATA LOCAL INFILE`, which the server's `local_infile` must allow.
    LocalInfile,
    /// `COPY ... FROM STDIN`.
    CopyIn,
    /// A prepared INSERT of one row, many of them in a transaction.
    PreparedRows,
}

/// Facts about a database that shape SQL and scheduling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// Column definition of a 64-bit key that the server fills in, primary key included.
    pub auto_key: &'static str,
    /// Type of a 32-bit key that the server fills in, without the primary key.
    pub int_key: &'static str,
    /// As `int_key`, of 64 bits.
    pub big_key: &'static str,
    /// Type of a whole number of 64 bits.
    pub big_int: &'static str,
    /// A parameter that is a whole number of 32 bits, where it could be taken for a longer one.
    pub int_param: &'static str,
    /// Whole numbers can be UNSIGNED, and a table can say how many rows it will have (`MAX_ROWS`).
    pub unsigned: bool,
    /// Begins a transaction that will write. Where a lock is one of the whole database it is taken
    /// at once: readers that all want to become writers would wait for each other in vain.
    pub begin_write: &'static str,
    /// Type of a civil time of one second.
    pub datetime: &'static str,
    /// Storage engine of the tables, where there are several.
    pub engine: Option<String>,
    /// Text after the closing bracket of CREATE TABLE, e.g. ` ENGINE=InnoDB`.
    pub table_suffix: String,
    pub index_hint: IndexHint,
    pub delete_form: DeleteForm,
    pub index_ddl: IndexDdl,
    /// INSERTs and DELETEs are sent as text unless the plan says otherwise.
    pub text_writes_by_default: bool,
    /// Queries are sent as text unless the plan says otherwise.
    pub text_queries_by_default: bool,
    /// A statement blocks the thread that sends it: one thread a connection.
    pub blocking: bool,
    pub row_stream: RowStream,
    /// Several connections can write at the same time; else they only wait for each other.
    pub parallel_writers: bool,
    /// Rows lie apart from all indexes in the order in which they came, as in a heap: several
    /// connections that fill one table leave it in another order than that of its ids.
    pub keeps_arrival_order: bool,
    /// The server keeps a binary log that `dbdyno` may drop between steps, because it owns the
    /// server.
    pub drops_binlog: bool,
    pub key_source: KeySource,
    /// As long as no other inserts and nothing fails, automatic keys have no gaps.
    pub contiguous_keys: bool,
    /// Words that gather the optimiser's statistics of the table after them; empty where none do.
    pub gather_statistics: &'static str,
    /// There are types for dates and exact decimal numbers; else dates are texts and decimal
    /// numbers floating-point ones.
    pub typed_values: bool,
    /// Foreign keys can be added to a table that exists, and are checked.
    pub foreign_keys: bool,
    /// What between two tables has them joined in the order in which they are written, and the
    /// statement that a session needs for that first; empty where it needs none.
    pub ordered_join: (&'static str, &'static str),
    /// The engine answers with real data; `false` only for the null driver, whose contents cannot
    /// be checked.
    pub stores_data: bool,
    /// The server, where it is another one than the product whose protocol it speaks. See
    /// [`crate::Endpoint::identify`].
    pub foreign: Option<Foreign>,
}

impl Capabilities {
    /// What answers questions about state is the product: its counters and levels mean what they mean
    /// there. Other servers have many of them by name, with numbers of their own or none.
    pub fn counts_as_the_product(&self) -> bool {
        self.foreign.as_ref().is_none_or(|foreign| foreign.is_proxy)
    }

    /// The process at the server's socket is the one that has the data.
    pub fn is_at_its_socket(&self) -> bool {
        self.foreign.as_ref().is_none_or(|foreign| !foreign.is_proxy)
    }
}
