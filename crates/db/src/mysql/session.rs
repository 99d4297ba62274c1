//! A session is one connection to a MySQL, MariaDB or Percona server. It runs statements and keeps
//! those that it prepared.

use std::fmt;
use std::future::poll_fn;

use super::fault::{MysqlFault, MysqlServerError};
use super::login::{MysqlHandshake, greeted, login, secured};
use super::scan::{MysqlScanStep, MysqlScanner};
use super::wire::{MysqlReader, MysqlWire, put_text};
use super::{LoginOptions, scan, wire};
use crate::connections::Ticket;
use crate::error::excerpt;
use crate::exchange::{Exchange, NO_DATABASE, NO_PASSWORD, NO_ROOM, connected};
use crate::input::ReceiveLimits;
use crate::stream::{ByteStream, Stream};
use crate::{Answer, Cells, Encryption, Param, Result, Session, Statement};

// A command begins with one of these bytes.
const QUIT: u8 = 0x01;
const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
const CLOSE_STATEMENT: u8 = 0x19;

/// Bytes of rows in one packet of `LOAD DATA LOCAL INFILE`. The server reads each packet whole and
/// refuses one beyond `max_allowed_packet`, whose default is at least 1 MiB.
const ROWS_PACKET_BYTES: usize = 256 << 10;

/// Statement for servers whose default is autocommit off. Without it, statements that no one
/// commits (a benchmark's, a check's, or upkeep's) would keep their locks and block the next
/// statement.
const AUTOCOMMIT: &str = "SET autocommit = 1";

/// One connection to a MySQL, MariaDB or Percona server, over any byte stream.
pub struct MysqlSession<S = Stream> {
    wire: MysqlWire<S>,
    agreed: MysqlHandshake,
    statements: Vec<MysqlStatement>,
    pub(super) exchange: Exchange,
}

impl MysqlSession {
    /// Connects and logs in, within the login limit. The session commits after each statement until
    /// told otherwise. It uses utf8mb4 (utf8 before MySQL 5.5.3) or the options' `client_charset`.
    pub async fn connect(options: &LoginOptions) -> Result<Self> {
        connected(Self::open(options), (options, "MySQL"), hint).await
    }

    /// The version that the server reports, without the prefix that MariaDB before 11 adds.
    pub fn server_version(&self) -> &str {
        &self.agreed.version
    }

    pub fn is_mariadb(&self) -> bool {
        self.agreed.is_mariadb
    }

    /// Whether the server sends a prepared statement's column definitions only once, and not with
    /// each answer.
    pub fn defines_columns_once(&self) -> bool {
        self.agreed.form.optional_definitions
    }

    /// Which of `DEPRECATE_EOF` (results end in an OK packet, and no EOF packet follows their
    /// column definitions) and `SESSION_TRACK` (OK packets report changes of the session's state)
    /// the login agreed on, or `none`.
    pub fn protocol_options(&self) -> &'static str {
        match (self.agreed.form.deprecate_eof, self.agreed.session_track) {
            (true, true) => "DEPRECATE_EOF, SESSION_TRACK",
            (true, false) => "DEPRECATE_EOF",
            (false, true) => "SESSION_TRACK",
            (false, false) => "none",
        }
    }

    pub fn encryption(&self) -> Option<Encryption> {
        self.wire.stream().encryption()
    }

    pub(crate) fn peer_pid(&self) -> Option<u32> {
        self.wire.stream().peer_pid()
    }

    /// Whether the session is in a transaction, according to the last answer that was not an error.
    pub fn in_transaction(&self) -> bool {
        self.wire.in_transaction
    }

    /// The server's number for this connection, as in `SHOW PROCESSLIST` and `KILL`.
    pub fn connection_id(&self) -> u32 {
        self.agreed.connection_id
    }
}

fn hint(error: &MysqlServerError, options: &LoginOptions) -> &'static str {
    let MysqlServerError::Reported { code, .. } = error else { return "" };
    match code {
        1045 | 1698 if options.password.is_empty() => NO_PASSWORD,
        1044 | 1045 | 1698 => "; check the user and where its password comes from",
        1049 => NO_DATABASE,
        1115 | 1231 if options.connection_settings.client_charset.is_some() => {
            "; options.client_charset must be a name from the server's SHOW CHARACTER SET that clients may use"
        }
        3159 => "; set tls = { mode = \"require\" }",
        1040 | 1203 | 1226 => NO_ROOM,
        _ => "",
    }
}

impl<S> fmt::Debug for MysqlSession<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MysqlHandshake { version, connection_id, .. } = &self.agreed;
        write!(formatter, "Connection({} {version}, number {connection_id})", self.exchange.login_text)
    }
}

impl MysqlSession {
    async fn open(options: &LoginOptions) -> Result<Self, MysqlFault> {
        let mut wire = MysqlWire::new(Stream::connect(&options.address).await?);
        let greeting = greeted(&mut wire).await?;
        let (mut wire, channel) = secured(wire, &greeting, options).await?;
        let agreed = login(&mut wire, greeting, options, channel).await?;
        let ticket = Ticket { id: agreed.connection_id, key: 0 };
        let exchange = Exchange::entered(options.login_text(), &options.connection_settings, ticket);
        let mut session = Self { wire, agreed, statements: Vec::new(), exchange };
        if options.connection_settings.sets_autocommit {
            session.set(AUTOCOMMIT).await?;
        }
        if let Some(charset) = &options.connection_settings.client_charset {
            session.set(&format!("SET NAMES {charset}")).await?;
        }
        Ok(session)
    }

    /// Runs a `SET` statement while the session opens. It corrects a setting for which the server
    /// has another default.
    async fn set(&mut self, sql: &str) -> Result<(), MysqlFault> {
        self.wire.send_command(QUERY, sql.as_bytes()).await?;
        self.answer().await.map(drop)
    }
}

impl<S: ByteStream> Session for MysqlSession<S> {
    async fn query(&mut self, sql: &[u8]) -> Result<Answer> {
        self.exchange.begin()?;
        let outcome = match self.wire.send_command(QUERY, sql).await {
            Ok(()) => self.answer().await,
            Err(fault) => Err(fault),
        };
        self.exchange.end(outcome, || excerpt(sql))
    }

    async fn execute(&mut self, statement: Statement, params: &[Param]) -> Result<Answer> {
        let index = statement.id as usize;
        let Some(prepared) = self.statements.get_mut(index) else {
            return Err(self.exchange.unknown_statement(index));
        };
        if params.len() != usize::from(prepared.params) {
            let wanted = usize::from(prepared.params);
            return Err(self.exchange.wrong_params(&prepared.excerpt, wanted, params.len()));
        }
        self.exchange.begin()?;
        prepared.put(self.wire.message(), params);
        let outcome = match self.wire.send().await {
            Ok(()) => self.answer().await,
            Err(fault) => Err(fault),
        };
        if outcome.is_err() {
            // It is unknown whether the server read the types before the failure, so they are sent
            // again.
            self.statements[index].types.clear();
        }
        self.exchange.end(outcome, || self.statements[index].excerpt.clone())
    }

    async fn prepare(&mut self, sql: &str) -> Result<Statement> {
        self.exchange.begin()?;
        let outcome = self.prepared(sql).await;
        self.exchange.end(outcome, || excerpt(sql.as_bytes()))
    }

    /// Closes a prepared statement. The server sends no answer to this.
    async fn forget(&mut self, statement: Statement) -> Result<()> {
        let Some(prepared) = self.statements.get(statement.id as usize) else { return Ok(()) };
        self.exchange.begin()?;
        let message = self.wire.message();
        message.push(CLOSE_STATEMENT);
        message.extend_from_slice(&prepared.server_id.to_le_bytes());
        let outcome = self.wire.send().await;
        self.exchange.end(outcome, || format!("closing {}", prepared.excerpt))
    }

    async fn rows(&mut self, sql: &str) -> Result<Cells> {
        self.exchange.begin()?;
        let outcome = self.collected(sql).await;
        self.exchange.end(outcome, || excerpt(sql.as_bytes()))
    }

    /// Sends the quit command. The server closes the connection without an answer.
    async fn close(mut self) {
        if !self.exchange.is_unfinished() {
            self.wire.message().push(QUIT);
            // A connection that is already gone needs no quit command.
            let _ = self.wire.send().await;
        }
    }
}

impl<S: ByteStream> MysqlSession<S> {
    /// Runs `sql`, a `LOAD DATA LOCAL INFILE`, with `rows` in place of the file that it names. No
    /// file is read. The session's options must allow it, and the server's `local_infile` must be
    /// on. The answer's `affected` is the number of rows.
    pub async fn load_rows(&mut self, sql: &str, rows: &[u8]) -> Result<Answer> {
        self.exchange.begin()?;
        let outcome = self.loaded(sql, rows).await;
        self.exchange.end(outcome, || excerpt(sql.as_bytes()))
    }

    /// Sends `rows` whatever file the server names. A server that refuses them reads them to their
    /// end first.
    async fn loaded(&mut self, sql: &str, rows: &[u8]) -> Result<Answer, MysqlFault> {
        self.wire.send_command(QUERY, sql.as_bytes()).await?;
        let mut scanner = self.wire.scanner(self.agreed.form);
        if !matches!(self.wire.scan(&mut scanner).await?, MysqlScanStep::LocalFile) {
            return Err(MysqlFault::Server(MysqlServerError::NoLocalFile));
        }
        for piece in rows.chunks(ROWS_PACKET_BYTES) {
            self.wire.send_piece(piece).await?;
        }
        // An empty packet ends the file.
        self.wire.send_piece(&[]).await?;
        scanner.sent_up_to(self.wire.sequence());
        match self.wire.scan(&mut scanner).await? {
            MysqlScanStep::Done => Ok(scanner.answer()),
            _ => Err(MysqlFault::Malformed("a second file for one statement")),
        }
    }

    /// Reads the answer to the statement that was sent. The rows are counted and not kept.
    async fn answer(&mut self) -> Result<Answer, MysqlFault> {
        let mut scanner = self.wire.scanner(self.agreed.form);
        match poll_fn(|context| self.wire.poll_scan(context, &mut scanner)).await? {
            MysqlScanStep::LocalFile => Err(self.refuse_file(scanner).await),
            _ => Ok(scanner.answer()),
        }
    }

    /// Ends the exchange after the server asked for a file, which dbdyno does not send. Returns the
    /// error of the statement.
    async fn refuse_file(&mut self, mut scanner: MysqlScanner) -> MysqlFault {
        loop {
            // `message` empties the buffer. An empty packet tells the server that there is no file,
            // and its result for that must still be read.
            self.wire.message();
            if let Err(fault) = self.wire.reply().await {
                return fault;
            }
            scanner.sent_up_to(self.wire.sequence());
            match self.wire.scan(&mut scanner).await {
                Ok(MysqlScanStep::LocalFile) => {}
                Ok(_) | Err(MysqlFault::Server(MysqlServerError::Reported { .. })) => {
                    return MysqlFault::Server(MysqlServerError::LocalFile);
                }
                Err(fault) => return fault,
            }
        }
    }

    async fn collected(&mut self, sql: &str) -> Result<Cells, MysqlFault> {
        self.wire.allow(ReceiveLimits::ANSWER);
        self.wire.send_command(QUERY, sql.as_bytes()).await?;
        scan::collect(&mut self.wire, self.agreed.form).await
    }

    async fn prepared(&mut self, sql: &str) -> Result<Statement, MysqlFault> {
        self.wire.allow(ReceiveLimits::ANSWER);
        self.wire.send_command(PREPARE, sql.as_bytes()).await?;
        let mut payload = Vec::new();
        self.wire.read(&mut payload).await?;
        let mut reader = MysqlReader(&payload);
        match reader.u8()? {
            0x00 => {}
            0xff => return Err(wire::server_error(&payload)),
            _ => return Err(MysqlFault::Malformed("an unknown answer to a prepare")),
        }
        let server_id = reader.u32()?;
        let columns = reader.u16()?;
        let params = reader.u16()?;
        for count in [params, columns] {
            scan::definitions(&mut self.wire, &mut payload, u64::from(count)).await?;
            if count > 0 && !self.agreed.form.deprecate_eof {
                scan::definitions_end(&mut self.wire, &mut payload).await?;
            }
        }
        let id =
            u32::try_from(self.statements.len()).map_err(|_| MysqlFault::Malformed("too many statements"))?;
        let excerpt = excerpt(sql.as_bytes());
        self.statements.push(MysqlStatement { server_id, params, types: Vec::new(), excerpt });
        Ok(Statement { id, params, columns })
    }
}

/// `MYSQL_TYPE_LONGLONG`, signed.
const LONGLONG: u8 = 0x08;

/// `MYSQL_TYPE_VAR_STRING`.
const VAR_STRING: u8 = 0xfd;

/// `MYSQL_TYPE_NULL`.
const NULL: u8 = 0x06;

/// What a session keeps about a statement that it prepared.
#[derive(Debug)]
pub(super) struct MysqlStatement {
    /// The server's number for the statement.
    pub(super) server_id: u32,
    pub(super) params: u16,
    /// The parameter types that were last sent to the server, one byte per parameter. The list is
    /// empty when the server knows none.
    pub(super) types: Vec<u8>,
    pub(super) excerpt: String,
}

impl MysqlStatement {
    /// Appends the message that executes the statement with `params`, whose number the caller has
    /// checked. The types are sent only when the server does not know them from the previous
    /// execution.
    pub(super) fn put(&mut self, out: &mut Vec<u8>, params: &[Param]) {
        out.push(EXECUTE);
        out.extend_from_slice(&self.server_id.to_le_bytes());
        out.extend_from_slice(&[0, 1, 0, 0, 0]); // no cursor, one iteration
        if params.is_empty() {
            return;
        }
        let null_bits = out.len();
        out.resize(null_bits + params.len().div_ceil(8), 0);
        for (index, _) in params.iter().enumerate().filter(|(_, param)| **param == Param::Null) {
            out[null_bits + index / 8] |= 1 << (index % 8);
        }
        if self.knows_types_of(params) {
            out.push(0);
        } else {
            self.types.clear();
            self.types.extend(params.iter().map(type_of));
            out.push(1);
            out.extend(self.types.iter().flat_map(|&kind| [kind, 0]));
        }
        for param in params {
            match param {
                Param::Int(value) => out.extend_from_slice(&value.to_le_bytes()),
                Param::Text(text) => put_text(out, text),
                Param::Null => {}
            }
        }
    }

    fn knows_types_of(&self, params: &[Param]) -> bool {
        self.types.len() == params.len()
            && self.types.iter().zip(params).all(|(&kind, param)| kind == type_of(param))
    }
}

fn type_of(param: &Param) -> u8 {
    match param {
        Param::Int(_) => LONGLONG,
        Param::Text(_) => VAR_STRING,
        Param::Null => NULL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(prepared: &mut MysqlStatement, params: &[Param]) -> Vec<u8> {
        let mut out = Vec::new();
        prepared.put(&mut out, params);
        out
    }

    fn prepared(params: u16) -> MysqlStatement {
        MysqlStatement { server_id: 5, params, types: Vec::new(), excerpt: String::new() }
    }

    #[test]
    fn types_are_sent_with_the_first_execution_and_after_a_change_only() {
        let mut statement = prepared(2);
        let numbers = [Param::Int(-1), Param::Int(2)];
        let head = b"\x17\x05\0\0\0\0\x01\0\0\0\0";
        let minus_one_and_two = [[0xff; 8], [2, 0, 0, 0, 0, 0, 0, 0]].concat();
        let with_types = [&head[..], b"\x01\x08\0\x08\0", &minus_one_and_two].concat();
        let without_types = [&head[..], b"\0", &minus_one_and_two].concat();
        assert_eq!(built(&mut statement, &numbers), with_types);
        assert_eq!(built(&mut statement, &numbers), without_types);
        let mixed = [Param::Text(b"ab".to_vec()), Param::Int(2)];
        let with_new_types = [&head[..], b"\x01\xfd\0\x08\0\x02ab\x02\0\0\0\0\0\0\0"].concat();
        assert_eq!(built(&mut statement, &mixed), with_new_types);
        assert_eq!(built(&mut statement, &numbers), with_types);
    }

    #[test]
    fn a_null_has_its_bit_and_no_bytes() {
        let params = [Param::Int(7), Param::Null];
        let message = b"\x17\x05\0\0\0\0\x01\0\0\0\x02\x01\x08\0\x06\0\x07\0\0\0\0\0\0\0";
        assert_eq!(built(&mut prepared(2), &params), message);
    }

    #[test]
    fn no_parameters_means_no_null_bits_and_no_types() {
        assert_eq!(built(&mut prepared(0), &[]), b"\x17\x05\0\0\0\0\x01\0\0\0");
    }

    #[test]
    fn null_bits_are_rounded_up_to_bytes() {
        for (count, bytes) in [(1, 1), (8, 1), (9, 2), (600, 75)] {
            let params = vec![Param::Int(0); count];
            let length = built(&mut prepared(count as u16), &params).len();
            // The head is followed by the NULL bits, the flag, the types and the values.
            assert_eq!(length, 10 + bytes + 1 + 2 * count + 8 * count, "{count}");
        }
    }
}

#[cfg(test)]
#[path = "tests/fuzz.rs"]
mod fuzz;

#[cfg(test)]
#[path = "model_tests.rs"]
mod model_tests;

#[cfg(test)]
#[path = "session_tests.rs"]
mod session_tests;
