//! One connection to a PostgreSQL server. Bulk loads use COPY ... FROM STDIN, with rows in the
//! server's own text, CSV or binary format.

use std::fmt;
use std::future::poll_fn;

use super::fault::{PostgresFault, PostgresServerError};
use super::login::{PostgresHandshake, Secured, connected, login};
use super::scan::{PostgresScanStep, PostgresScanner, RequestForm};
use super::statement::{EXECUTE, PostgresStatement, SYNC, numbered, put_parsed, put_prepare};
use super::wire::{PostgresWire, put, put_text};
use super::{LoginOptions, scan};
use crate::connections::Ticket;
use crate::error::excerpt;
use crate::exchange::Exchange;
use crate::input::ReceiveLimits;
use crate::product::Connection;
use crate::stream::{ByteStream, Stream};
use crate::{Answer, Cells, Encryption, Param, Result, Rows, Sent, Session, Statement, exchange};

/// One connection to a PostgreSQL server, over any byte stream.
pub struct PostgresSession<S = Stream> {
    wire: PostgresWire<S>,
    agreed: PostgresHandshake,
    statements: Vec<PostgresStatement>,
    /// Number for the next statement's name. It is never used again, because a statement whose
    /// description failed keeps its name on the server.
    next_name: u32,
    pub(super) exchange: Exchange,
    /// The options are boxed because they are large and rarely used, and dbdyno keeps thousands of
    /// sessions.
    options: Box<LoginOptions>,
    /// The counter queries that the server has answered; `None` before the first time.
    pub(super) counted: Option<Vec<String>>,
}

impl PostgresSession {
    /// Connects and logs in, within the login limit. The session commits after each statement until
    /// told otherwise, and uses UTF-8. Without a database the server takes the one with the user's
    /// name.
    pub async fn connect(options: &LoginOptions) -> Result<Self> {
        exchange::connected(Self::open(options), (options, "PostgreSQL"), hint).await
    }

    /// Opens another session with the same login.
    pub async fn another(&self) -> Result<Self> {
        Self::connect(&self.options).await
    }

    /// The version that the server reports: `15.19`, `17.5 (Debian 17.5-1)`.
    pub fn server_version(&self) -> &str {
        &self.agreed.version
    }

    pub fn encryption(&self) -> Option<Encryption> {
        self.wire.stream().encryption()
    }

    pub(crate) fn peer_pid(&self) -> Option<u32> {
        self.wire.stream().peer_pid()
    }

    /// Whether the session was in a transaction at the end of the last answer. A failed transaction
    /// counts too.
    pub fn in_transaction(&self) -> bool {
        self.wire.in_transaction
    }

    /// The number of the server's process for this connection, as in `pg_stat_activity` and
    /// `pg_terminate_backend`.
    pub fn connection_id(&self) -> u32 {
        self.agreed.backend
    }
}

fn hint(error: &PostgresServerError, options: &LoginOptions) -> &'static str {
    let PostgresServerError::Reported(report) = error else { return "" };
    match report.state.as_str() {
        "28P01" if options.password.is_empty() => exchange::NO_PASSWORD,
        "28P01" | "28000" => "; check the user, where its password comes from, and the server's pg_hba.conf",
        "3D000" => exchange::NO_DATABASE,
        "53300" => exchange::NO_ROOM,
        _ => "",
    }
}

impl<S> fmt::Debug for PostgresSession<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PostgresHandshake { version, backend, .. } = &self.agreed;
        write!(formatter, "Connection({} {version}, process {backend})", self.exchange.login_text)
    }
}

impl PostgresSession {
    async fn open(options: &LoginOptions) -> Result<Self, PostgresFault> {
        let Secured { stream, channel, binding } = connected(options).await?;
        let mut wire = PostgresWire::new(stream);
        let agreed = login(&mut wire, options, channel, binding).await?;
        let ticket = Ticket { id: agreed.backend, key: agreed.key };
        let exchange = Exchange::entered(options.login_text(), &options.connection_settings, ticket);
        let options = Box::new(options.clone());
        let (statements, next_name, counted) = (Vec::new(), 0, None);
        Ok(Self { wire, agreed, statements, next_name, exchange, options, counted })
    }
}

impl<S: ByteStream> Session for PostgresSession<S> {
    async fn query(&mut self, sql: &[u8]) -> Result<Answer> {
        self.exchange.begin()?;
        put_query(self.wire.message(), sql);
        let outcome = self.answer(RequestForm::Query).await;
        self.exchange.end(outcome, || excerpt(sql))
    }

    async fn execute(&mut self, statement: Statement, params: &[Param]) -> Result<Answer> {
        let index = statement.id as usize;
        let Some(prepared) = self.statements.get(index) else {
            return Err(self.exchange.unknown_statement(index));
        };
        if params.len() != prepared.types.len() {
            let wanted = prepared.types.len();
            return Err(self.exchange.wrong_params(&prepared.excerpt, wanted, params.len()));
        }
        self.exchange.begin()?;
        prepared.put(self.wire.message(), params);
        let outcome = self.answer(RequestForm::Execute).await;
        self.exchange.end(outcome, || self.statements[index].excerpt.clone())
    }

    async fn prepare(&mut self, sql: &str) -> Result<Statement> {
        self.exchange.begin()?;
        let name = format!("s{}", self.next_name);
        self.next_name += 1;
        put_prepare(self.wire.message(), &name, &numbered(sql));
        let outcome = self.prepared(name, sql).await;
        self.exchange.end(outcome, || excerpt(sql.as_bytes()))
    }

    async fn forget(&mut self, statement: Statement) -> Result<()> {
        let Some(prepared) = self.statements.get(statement.id as usize) else { return Ok(()) };
        // This uses SQL, because its answer is read like every statement's.
        let sql = format!("DEALLOCATE {}", prepared.name);
        self.query(sql.as_bytes()).await.map(|_| ())
    }

    async fn rows(&mut self, sql: &str) -> Result<Cells> {
        self.exchange.begin()?;
        put_query(self.wire.message(), sql.as_bytes());
        let outcome = self.collected().await;
        self.exchange.end(outcome, || excerpt(sql.as_bytes()))
    }

    /// Sends the terminate message. The server closes the connection without an answer.
    async fn close(mut self) {
        if !self.exchange.is_unfinished() {
            put(self.wire.message(), b'X', |_| {});
            // A connection that is already gone needs no terminate message.
            let _ = self.wire.send().await;
        }
    }
}

impl Connection for PostgresSession {
    fn exchange(&self) -> Option<&Exchange> {
        Some(&self.exchange)
    }

    fn exchange_mut(&mut self) -> Option<&mut Exchange> {
        Some(&mut self.exchange)
    }

    fn encryption(&self) -> Option<Encryption> {
        self.encryption()
    }

    fn peer_pid(&self) -> Option<u32> {
        self.peer_pid()
    }

    fn in_transaction(&self) -> bool {
        self.in_transaction()
    }

    async fn load_rows(&mut self, sql: &str, rows: &[u8]) -> Result<Answer> {
        self.copy_in(sql, [rows]).await
    }

    async fn pipeline(&mut self, statements: &[Sent<'_>]) -> Result<Answer> {
        self.exchange.begin()?;
        let out = self.wire.message();
        for sent in statements {
            put_sent(out, &self.statements, *sent);
            out.extend_from_slice(EXECUTE);
        }
        out.extend_from_slice(SYNC);
        let mut scanner = PostgresScanner::new(RequestForm::Pipeline);
        let outcome = match self.wire.reply_listening(&mut scanner).await {
            Ok(true) => scanner.finish(),
            Ok(false) => self.scanned(scanner).await,
            Err(fault) => Err(fault),
        };
        let beginning = outcome.is_err().then(|| self.beginning(statements.first()));
        self.exchange.end(outcome, || beginning.unwrap_or_default())
    }

    async fn results(&mut self, statement: Sent<'_>) -> Result<Vec<Rows>> {
        self.exchange.begin()?;
        let out = self.wire.message();
        put_sent(out, &self.statements, statement);
        if !matches!(statement, Sent::Text(_)) {
            put(out, b'D', |body| body.extend_from_slice(b"P\0"));
            out.extend_from_slice(EXECUTE);
            out.extend_from_slice(SYNC);
        }
        self.wire.allow(ReceiveLimits::ANSWER);
        let outcome = match self.wire.send().await {
            Ok(()) => scan::results(&mut self.wire).await,
            Err(fault) => Err(fault),
        };
        let beginning = outcome.is_err().then(|| self.beginning(Some(&statement)));
        self.exchange.end(outcome, || beginning.unwrap_or_default())
    }
}

impl<S: ByteStream> PostgresSession<S> {
    /// Runs `sql`, a `COPY ... FROM STDIN`, with `chunks` as its rows, in the format that `sql`
    /// names. Chunks may end anywhere, even inside a row. The answer's `affected` is the number of
    /// rows.
    pub async fn copy_in(
        &mut self,
        sql: &str,
        chunks: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<Answer> {
        self.exchange.begin()?;
        put_query(self.wire.message(), sql.as_bytes());
        let outcome = self.copied(chunks).await;
        self.exchange.end(outcome, || excerpt(sql.as_bytes()))
    }

    /// The text by which an error names a request that begins with `sent`.
    fn beginning(&self, sent: Option<&Sent<'_>>) -> String {
        match sent {
            Some(Sent::Text(sql) | Sent::Parsed(sql, _)) => excerpt(sql.as_bytes()),
            Some(Sent::Prepared(statement, _)) => {
                self.statements.get(statement.id as usize).map_or_else(String::new, |own| own.excerpt.clone())
            }
            None => "an empty pipeline".to_owned(),
        }
    }

    /// Sends the request and counts through the answer.
    async fn answer(&mut self, form: RequestForm) -> Result<Answer, PostgresFault> {
        self.wire.send().await?;
        self.scanned(PostgresScanner::new(form)).await
    }

    async fn scanned(&mut self, mut scanner: PostgresScanner) -> Result<Answer, PostgresFault> {
        if poll_fn(|context| self.wire.poll_scan(context, &mut scanner)).await? == PostgresScanStep::CopyIn {
            return self.without_copy(scanner).await;
        }
        scanner.finish()
    }

    /// Ends a COPY from the client for which there are no rows, and reads its result.
    async fn without_copy(&mut self, mut scanner: PostgresScanner) -> Result<Answer, PostgresFault> {
        let message = self.wire.message();
        put_no_rows(message);
        if scanner.form() != RequestForm::Query {
            // The server discarded the Sync that came before the COPY ended, so another is needed.
            put(message, b'S', |_| {});
        }
        self.wire.reply().await?;
        match self.wire.scan(&mut scanner).await? {
            PostgresScanStep::Done => Err(no_copy_here()),
            PostgresScanStep::More | PostgresScanStep::CopyIn => {
                Err(PostgresFault::Malformed("a COPY that does not end"))
            }
        }
    }

    async fn collected(&mut self) -> Result<Cells, PostgresFault> {
        self.wire.allow(ReceiveLimits::ANSWER);
        self.wire.send().await?;
        scan::collect(&mut self.wire).await
    }

    async fn copied(
        &mut self,
        chunks: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<Answer, PostgresFault> {
        self.wire.send().await?;
        copy_in(&mut self.wire, chunks).await
    }

    async fn prepared(&mut self, name: String, sql: &str) -> Result<Statement, PostgresFault> {
        self.wire.allow(ReceiveLimits::ANSWER);
        self.wire.send().await?;
        let (types, columns) = scan::described(&mut self.wire).await?;
        let id = u32::try_from(self.statements.len())
            .map_err(|_| PostgresFault::Malformed("too many statements"))?;
        // The server counts parameters with two bytes, so the number fits.
        let params = types.len() as u16;
        self.statements.push(PostgresStatement { name, types, excerpt: excerpt(sql.as_bytes()) });
        Ok(Statement { id, params, columns })
    }
}

/// Appends the messages up to a statement's execution. A query text is executed at once.
fn put_sent(out: &mut Vec<u8>, statements: &[PostgresStatement], sent: Sent<'_>) {
    match sent {
        Sent::Text(sql) => put_query(out, sql.as_bytes()),
        Sent::Parsed(sql, params) => put_parsed(out, sql, params),
        Sent::Prepared(statement, params) => {
            if let Some(prepared) = statements.get(statement.id as usize) {
                prepared.put_bind(out, params);
            }
        }
    }
}

fn put_query(out: &mut Vec<u8>, sql: &[u8]) {
    out.reserve(sql.len() + 8);
    put(out, b'Q', |body| put_text(body, sql));
}

/// Approximate number of bytes in one write. It is large enough to make the system call's cost
/// small.
const BATCH: usize = 64 << 10;

/// Longest piece of a chunk that is sent as one message.
const PIECE: usize = 1 << 20;

/// Appends the message that ends a COPY for which there are no rows. Its statement then fails.
pub(super) fn put_no_rows(out: &mut Vec<u8>) {
    put(out, b'f', |body| put_text(body, b"no rows were given to this COPY"));
}

/// The error for a COPY that was sent as an ordinary statement.
pub(super) fn no_copy_here() -> PostgresFault {
    PostgresFault::Server(PostgresServerError::Copy(
        "a COPY from the client cannot be run as an ordinary statement; give its rows with it",
    ))
}

/// Sends the rows for a COPY whose text was just sent, and reads its answer. Chunks may end
/// anywhere, even inside a row.
pub(super) async fn copy_in<S, C>(wire: &mut PostgresWire<S>, chunks: C) -> Result<Answer, PostgresFault>
where
    S: ByteStream,
    C: IntoIterator<Item: AsRef<[u8]>>,
{
    let mut scanner = PostgresScanner::new(RequestForm::Query);
    if wire.scan(&mut scanner).await? != PostgresScanStep::CopyIn {
        scanner.finish()?;
        return Err(PostgresFault::Server(PostgresServerError::Copy(
            "the statement is not COPY ... FROM STDIN, so the server takes no rows",
        )));
    }
    wire.message();
    for chunk in chunks {
        for piece in chunk.as_ref().chunks(PIECE) {
            put(wire.unsent(), b'd', |body| body.extend_from_slice(piece));
            if wire.unsent().len() >= BATCH {
                // A server that has refused a row would discard everything that follows, even the
                // end.
                if wire.reply_listening(&mut scanner).await? {
                    return refused(scanner);
                }
                wire.message();
            }
        }
    }
    put(wire.unsent(), b'c', |_| {});
    if wire.reply_listening(&mut scanner).await? {
        return refused(scanner);
    }
    match wire.scan(&mut scanner).await? {
        PostgresScanStep::Done => scanner.finish(),
        PostgresScanStep::More | PostgresScanStep::CopyIn => {
            Err(PostgresFault::Malformed("a second COPY in one text"))
        }
    }
}

/// Handles an answer that was complete before the last row was sent. Such an answer can only be a
/// refusal.
fn refused(scanner: PostgresScanner) -> Result<Answer, PostgresFault> {
    scanner.finish()?;
    Err(PostgresFault::Malformed("a COPY that ends before its rows do"))
}

#[cfg(test)]
#[path = "tests/fuzz.rs"]
mod fuzz;

#[cfg(test)]
#[path = "model_tests.rs"]
mod model_tests;

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
