//! One connection to a SQLite file: it executes statements and counts rows.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Batch, Connection, OpenFlags};

use crate::{Answer, Cells, Param, Result, Session, Statement};

use super::error::{fatal, from_sqlite, quoted};
use super::pragma::{self, PragmaTiming};
use super::{SqliteFile, mark, wait};

/// Number of prepared statements that a connection caches. Beyond it, a statement is compiled again
/// at its next use.
const STATEMENTS_MAX: usize = 1024;

/// How long the session may keep its thread's runtime busy. A yield makes the runtime check its
/// timers and sockets, which is a system call of some 0.4 µs. Reading the clock costs a tenth of
/// that.
const TURN_MAX: Duration = Duration::from_micros(200);

/// One connection to one file. Its calls block the thread. The first statement to end 200 µs after
/// the last yield yields, so that timers on the same runtime get their turn.
#[derive(Debug)]
pub struct SqliteSession {
    connection: Connection,
    path: PathBuf,
    /// Texts of the prepared statements, by id. The compiled statements borrow the connection, so
    /// they live in its own cache and are found by text. That costs one hash and one copy of the
    /// text per call, and no compilation.
    prepared: Vec<String>,
    /// When the runtime last had its turn.
    yielded: Instant,
}

impl SqliteSession {
    /// Opens the file, and sets and checks its pragmas. An absent or empty file is made and marked
    /// as dbdyno's (see [`super::is_marked`]). An existing one gets no marker. The error is
    /// [`crate::Class::Retry`] if another connection held its lock for the whole busy timeout.
    pub fn open(options: &SqliteFile) -> Result<Self> {
        let path = options.path.clone();
        // There are no URI names, because a path is a path. There is no mutex, because only one
        // thread at a time uses a session.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_EXRESCODE;
        let opening = |error: rusqlite::Error| from_sqlite(&error, &path, "opening the database");
        let mut connection = Connection::open_with_flags(&path, flags).map_err(opening)?;
        connection
            .busy_handler(Some(wait::handler(wait::pauses_within(options.busy_timeout))))
            .map_err(opening)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        pragma::apply(&connection, &path, &options.pragmas, PragmaTiming::BeforeFirstPage)?;
        mark::mark_if_new(&connection, &path)?;
        pragma::apply(&connection, &path, &options.pragmas, PragmaTiming::Later)?;
        Ok(Self { connection, path, prepared: Vec::new(), yielded: Instant::now() })
    }

    /// Lets the runtime's timers and other tasks run if they had to wait for [`TURN_MAX`].
    async fn give_turn(&mut self) {
        if self.yielded.elapsed() >= TURN_MAX {
            tokio::task::yield_now().await;
            self.yielded = Instant::now();
        }
    }

    /// The only statement in `sql`. SQLite itself would silently skip everything after the first
    /// statement.
    fn only_statement(&self, sql: &str) -> Result<rusqlite::Statement<'_>> {
        let mut batch = Batch::new(&self.connection, sql);
        let error = |error| from_sqlite(&error, &self.path, sql);
        let first = batch.next().map_err(error)?;
        let first = first.ok_or_else(|| fatal(&self.path, "an empty statement"))?;
        if batch.next().map_err(error)?.is_some() {
            return Err(fatal(
                &self.path,
                format_args!("more than one statement in one text: `{}`", quoted(sql)),
            ));
        }
        Ok(first)
    }

    fn run_text(&self, sql: &str) -> Result<Answer> {
        // SQLite rolls back by itself after some errors (full disk, input/output). The ROLLBACK
        // that a client then sends would be an error. Other databases report success for it.
        if is_rollback(sql) && self.connection.is_autocommit() {
            return Ok(Answer::default());
        }
        let mut statement = self.only_statement(sql)?;
        self.run(&mut statement).map_err(|error| from_sqlite(&error, &self.path, sql))
    }

    fn run_prepared(&self, statement: Statement, params: &[Param]) -> Result<Answer> {
        let sql = self.prepared.get(statement.id as usize).ok_or_else(|| {
            fatal(&self.path, format_args!("statement {} was not prepared by this session", statement.id))
        })?;
        if params.len() != usize::from(statement.params) {
            let (wanted, given, sql) = (statement.params, params.len(), quoted(sql));
            return Err(fatal(&self.path, format_args!("{given} parameters for {wanted} places in `{sql}`")));
        }
        let run = || -> rusqlite::Result<Answer> {
            let mut compiled = self.connection.prepare_cached(sql)?;
            for (index, param) in params.iter().enumerate() {
                compiled.raw_bind_parameter(index + 1, bound(param))?;
            }
            self.run(&mut compiled)
        };
        run().map_err(|error| from_sqlite(&error, &self.path, sql))
    }

    /// Runs a statement with bound parameters to its end, and reads every value in every row.
    fn run(&self, statement: &mut rusqlite::Statement<'_>) -> rusqlite::Result<Answer> {
        let changes_before = self.connection.total_changes();
        let columns = statement.column_count();
        let mut answer = Answer::default();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            answer.rows += 1;
            for column in 0..columns {
                answer.bytes += size_bytes(row.get_ref(column)?);
            }
        }
        // `changes` keeps its value across statements that change no row, such as SELECT, BEGIN or
        // CREATE.
        if self.connection.total_changes() != changes_before {
            answer.affected = self.connection.changes();
        }
        Ok(answer)
    }

    pub(crate) fn in_transaction(&self) -> bool {
        !self.connection.is_autocommit()
    }

    /// Returns a handle that ends the connection's current statement from any thread.
    pub(crate) fn interrupt_handle(&self) -> rusqlite::InterruptHandle {
        self.connection.get_interrupt_handle()
    }

    fn cells(&self, sql: &str) -> Result<Cells> {
        let mut statement = self.only_statement(sql)?;
        let columns = statement.column_count();
        let read = |row: &rusqlite::Row<'_>| {
            (0..columns).map(|column| row.get_ref(column).map(pragma::text)).collect()
        };
        let mut rows = statement.raw_query();
        let mut cells = Cells::new();
        loop {
            match rows.next().and_then(|row| row.map(read).transpose()) {
                Ok(Some(row)) => cells.push(row),
                Ok(None) => return Ok(cells),
                Err(error) => return Err(from_sqlite(&error, &self.path, sql)),
            }
        }
    }
}

/// Makes a new, empty database with dbdyno's marker, sets its pragmas as `options` say, and closes
/// it.
pub fn create_marked(options: &SqliteFile) -> Result<()> {
    let path = &options.path;
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => SqliteSession::open(options).map(drop),
        Err(error) => Err(fatal(path, format_args!("cannot look for an existing file: {error}"))),
        Ok(_) => Err(fatal(path, "exists already; remove it or choose another path for the new database")),
    }
}

/// The parameter in the form that SQLite accepts. SQLite makes its own copy of a text.
fn bound(param: &Param) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(match param {
        Param::Int(number) => ValueRef::Integer(*number),
        Param::Text(text) => ValueRef::Text(text),
        Param::Null => ValueRef::Null,
    })
}

impl Session for SqliteSession {
    async fn query(&mut self, sql: &[u8]) -> Result<Answer> {
        let text = std::str::from_utf8(sql)
            .map_err(|error| fatal(&self.path, format_args!("the statement is not UTF-8: {error}")))?;
        let answer = self.run_text(text);
        self.give_turn().await;
        answer
    }

    async fn prepare(&mut self, sql: &str) -> Result<Statement> {
        let too_many = |what: &str| fatal(&self.path, format_args!("too many {what} in `{}`", quoted(sql)));
        let (params, columns) = {
            let statement = self.only_statement(sql)?;
            (statement.parameter_count(), statement.column_count())
        };
        let statement = Statement {
            id: u32::try_from(self.prepared.len())
                .map_err(|_| too_many("prepared statements before this one"))?,
            params: u16::try_from(params).map_err(|_| too_many("parameters"))?,
            columns: u16::try_from(columns).map_err(|_| too_many("columns"))?,
        };
        self.prepared.push(sql.to_owned());
        Ok(statement)
    }

    async fn execute(&mut self, statement: Statement, params: &[Param]) -> Result<Answer> {
        let answer = self.run_prepared(statement, params);
        self.give_turn().await;
        answer
    }

    async fn rows(&mut self, sql: &str) -> Result<Cells> {
        self.cells(sql)
    }

    async fn close(self) {
        // Dropping the session closes it too. No one is left to hear about a failure here.
        drop(self);
    }
}

/// Size of a value as it was read: 8 for a number, otherwise the text's own length.
fn size_bytes(value: ValueRef<'_>) -> u64 {
    match value {
        ValueRef::Null => 0,
        ValueRef::Integer(_) | ValueRef::Real(_) => 8,
        ValueRef::Text(text) | ValueRef::Blob(text) => text.len() as u64,
    }
}

fn is_rollback(sql: &str) -> bool {
    sql.trim_end_matches(|last: char| last == ';' || last.is_whitespace())
        .trim_start()
        .eq_ignore_ascii_case("rollback")
}
