//! One connection to a SQLite file. It executes statements, counts rows, and waits for locks.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Batch, Connection, OpenFlags};

use super::error::{fatal, from_sqlite, quoted};
use super::pragma::PragmaTiming;
use super::{SqliteFile, marker, pragma};
use crate::{Answer, Cells, Param, Result, Session, Statement};

/// Number of prepared statements that a connection caches. With more statements, an evicted
/// statement is compiled again at its next use.
const STATEMENTS_MAX: usize = 1024;

/// How long the session may keep its thread's runtime busy. A yield makes the runtime check its
/// timers and sockets, which is a system call of some 0.4 µs. Reading the clock costs a tenth of
/// that.
const TURN_MAX: Duration = Duration::from_micros(200);

/// One connection to one file. Its calls block the thread. A statement that ends 200 µs or more
/// after the last yield makes the session yield, so that timers on the same runtime get their turn.
#[derive(Debug)]
pub struct SqliteSession {
    connection: Connection,
    path: PathBuf,
    /// Texts of the prepared statements, by id. The compiled statements borrow the connection, so
    /// they are in the connection's own cache, which finds them by text. That costs one hash and
    /// one copy of the text per call, and no compilation.
    prepared: Vec<String>,
    /// Time of the last yield to the runtime.
    yielded: Instant,
}

impl SqliteSession {
    /// Opens the file, and sets and checks its pragmas. An absent or empty file is made and marked
    /// as dbdyno's (see [`super::is_marked`]). An existing database gets no marker. The error is
    /// [`crate::Class::Retry`] if another connection held its lock for the whole busy timeout.
    pub fn open(options: &SqliteFile) -> Result<Self> {
        let path = options.path.clone();
        // URI names are off, because a path is only a path. The mutex is off, because only one
        // thread at a time uses a session.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_EXRESCODE;
        let opening = |error: rusqlite::Error| from_sqlite(&error, &path, "opening the database");
        let mut connection = Connection::open_with_flags(&path, flags).map_err(opening)?;
        connection.busy_handler(Some(handler(pauses_within(options.busy_timeout)))).map_err(opening)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        pragma::apply(&connection, &path, &options.pragmas, PragmaTiming::BeforeFirstPage)?;
        marker::mark_if_new(&connection, &path)?;
        pragma::apply(&connection, &path, &options.pragmas, PragmaTiming::Later)?;
        Ok(Self { connection, path, prepared: Vec::new(), yielded: Instant::now() })
    }

    /// Lets the runtime's timers and other tasks run, if the last yield was [`TURN_MAX`] or more
    /// ago.
    async fn yield_if_due(&mut self) {
        if self.yielded.elapsed() >= TURN_MAX {
            tokio::task::yield_now().await;
            self.yielded = Instant::now();
        }
    }

    /// Compiles the only statement in `sql`. SQLite itself would silently skip everything after the
    /// first statement.
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
        // that a client then sends would be an error. Other databases report success for such a
        // ROLLBACK.
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
        // A statement that changes no row, such as SELECT, BEGIN or CREATE, does not reset
        // `changes`.
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

/// Returns the parameter in the form that SQLite accepts. SQLite makes its own copy of a text.
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
        self.yield_if_due().await;
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
        self.yield_if_due().await;
        answer
    }

    async fn rows(&mut self, sql: &str) -> Result<Cells> {
        self.cells(sql)
    }

    async fn close(self) {
        // Dropping the session closes it too. The caller has no use for an error at this point.
        drop(self);
    }
}

/// Returns a value's size in bytes: 0 for NULL, 8 for a number, otherwise the text's own length.
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

const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

/// Returns the pause after the `count`-th failed attempt to get the lock, counted from 0. It starts
/// at 50 µs and doubles up to 2 ms.
fn pause(count: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1_u32.checked_shl(count).unwrap_or(u32::MAX)).min(LONGEST_PAUSE)
}

/// Returns how many pauses fit into `limit`.
///
/// SQLite counts one statement's pauses from 0 and passes only that count to the handler, so the
/// deadline is a count too. The count limits the sum of the requested sleeps. The system's timers
/// oversleep by some 60 µs per pause, so a wait may last a few percent longer than `limit`. The
/// statement's work between two pauses is not counted.
fn pauses_within(limit: Duration) -> u32 {
    let mut count = 0;
    let mut left = limit;
    while pause(count) < LONGEST_PAUSE {
        match left.checked_sub(pause(count)) {
            Some(rest) => left = rest,
            None => return count,
        }
        count += 1;
    }
    count.saturating_add(u32::try_from(left.as_micros() / LONGEST_PAUSE.as_micros()).unwrap_or(u32::MAX))
}

/// Returns the handler with which a statement waits for another connection's lock, in pauses that
/// grow, until the time limit. It sleeps and returns `true` ("try again"), or returns `false` once
/// `pauses` are used up.
///
/// SQLite's own handler sleeps up to 100 ms at a time. A waiter may then stay asleep long after the
/// lock is free, and the response time shows the sleep and not the lock.
pub(super) fn handler(pauses: u32) -> impl FnMut(i32) -> bool + Send + 'static {
    move |count| {
        let count = u32::try_from(count).unwrap_or(0);
        if count >= pauses {
            return false;
        }
        std::thread::sleep(pause(count));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_from_50_us_to_2_ms() {
        let pauses: Vec<u128> = (0..9).map(|count| pause(count).as_micros()).collect();
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1600, 2000, 2000, 2000]);
        assert_eq!(pause(40), LONGEST_PAUSE);
    }

    #[test]
    fn the_pauses_that_fit_never_exceed_the_limit_and_one_more_would() {
        for limit_us in [0, 49, 50, 149, 150, 3149, 3150, 5149, 5150, 20_000, 5_000_000] {
            let limit = Duration::from_micros(limit_us);
            let count = pauses_within(limit);
            let total: Duration = (0..count).map(pause).sum();
            assert!(total <= limit, "{count} pauses are {total:?}, more than {limit:?}");
            assert!(
                total + pause(count) > limit,
                "{count} pauses are {total:?}, one more fits into {limit:?}"
            );
        }
    }

    #[test]
    fn the_handler_gives_up_at_the_limit() {
        let mut handler = handler(pauses_within(Duration::from_micros(150)));
        assert!(handler(0));
        assert!(handler(1));
        assert!(!handler(2));
    }
}
