//! Scans an answer in the input buffer: finds its end and counts rows and bytes, without decoding
//! them. Only dbdyno's own queries have their rows decoded into text.

use super::fault;
use super::fault::{PostgresFault, PostgresServerError};
use super::session::put_no_rows;
use super::wire::{HEADER, PostgresReader, PostgresWire, header};
use crate::stream::ByteStream;
use crate::{Answer, Cells, Rows};

/// Longest message that is read whole (errors, tags). An error that repeats a longer value is read
/// up to this length, and the rest is skipped. The limit keeps a faulty server from filling the
/// memory.
pub(super) const LONGEST_CONTROL: usize = 64 << 10;

/// What the scanner needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PostgresScanStep {
    /// More bytes are needed: the input ends inside the answer.
    More,
    /// The answer is complete.
    Done,
    /// The server waits for the rows of a COPY.
    CopyIn,
}

/// How the statement was sent, which decides which messages may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestForm {
    /// A query text, which may hold several statements.
    Query,
    /// The execution of one prepared statement.
    Execute,
    /// Executions of several statements before one Sync. Each was prepared earlier or is parsed in
    /// the pipeline.
    Pipeline,
}

/// The part of an answer to which the next message belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PostgresScanPhase {
    /// No message about the statement has arrived. An execution must first be confirmed as bound.
    Begun,
    /// Results are arriving or have arrived. A query text may have more of them.
    Results,
    /// The only statement in an execution has ended. Only an error from its commit may follow.
    Over,
}

/// The state of a scan over one answer, which gets bytes as they arrive.
#[derive(Debug)]
pub(super) struct PostgresScanner {
    form: RequestForm,
    phase: PostgresScanPhase,
    /// Bytes to skip in the current message that have not arrived yet.
    skip: usize,
    /// Whether a statement has ended or failed. Before that, no answer can be complete.
    answered: bool,
    /// Whether a COPY is sending rows to the client. Its tag counts these rows, which are not
    /// affected rows.
    copies_out: bool,
    answer: Answer,
    in_transaction: bool,
    /// The first error. The answer continues after it until the server is ready again.
    fault: Option<PostgresFault>,
}

impl PostgresScanner {
    pub(super) fn new(form: RequestForm) -> Self {
        let phase =
            if form == RequestForm::Query { PostgresScanPhase::Results } else { PostgresScanPhase::Begun };
        Self {
            form,
            phase,
            skip: 0,
            answered: false,
            copies_out: false,
            answer: Answer::default(),
            in_transaction: false,
            fault: None,
        }
    }

    pub(super) fn form(&self) -> RequestForm {
        self.form
    }

    /// Whether the session was in a transaction when the answer was complete. A failed transaction
    /// counts too.
    pub(super) fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    /// Returns the counts, or the error that came instead.
    pub(super) fn finish(self) -> Result<Answer, PostgresFault> {
        self.fault.map_or(Ok(self.answer), Err)
    }

    /// The error that arrived before the stream broke. It says more than the broken stream does.
    pub(super) fn last_word(&mut self) -> Option<PostgresFault> {
        self.fault.take()
    }

    /// Scans `input` and returns how many bytes are finished, and what is needed next. Unfinished
    /// bytes must be at the front of the next `input`.
    pub(super) fn scan(&mut self, input: &[u8]) -> Result<(usize, PostgresScanStep), PostgresFault> {
        let mut at = 0;
        loop {
            let passed = self.skip.min(input.len() - at);
            at += passed;
            self.skip -= passed;
            let rest = &input[at..];
            let Some((kind, length)) = header(rest)? else { return Ok((at, PostgresScanStep::More)) };
            if matches!(kind, b'C' | b'E' | b'Z') {
                let whole = length.min(LONGEST_CONTROL);
                if whole < length && kind != b'E' {
                    return Err(PostgresFault::Malformed("a control message of more than 64 KiB"));
                }
                let Some(body) = rest.get(HEADER..HEADER + whole) else {
                    return Ok((at, PostgresScanStep::More));
                };
                at += HEADER + whole;
                self.skip = length - whole;
                self.answer.bytes += (HEADER + length) as u64;
                if self.control(kind, body)? {
                    return Ok((at, PostgresScanStep::Done));
                }
                continue;
            }
            let step = self.passed_over(kind)?;
            at += HEADER;
            self.skip = length;
            self.answer.bytes += (HEADER + length) as u64;
            if step == PostgresScanStep::CopyIn {
                return Ok((at, step));
            }
        }
    }

    /// Handles a message of which only the kind and the length matter.
    fn passed_over(&mut self, kind: u8) -> Result<PostgresScanStep, PostgresFault> {
        match (kind, self.phase) {
            // Parameters and notifications come at any time, and so do warnings and notices.
            (b'S' | b'A', _) => {}
            (b'N', _) => self.answer.warnings = self.answer.warnings.saturating_add(1),
            (b'D' | b'd', PostgresScanPhase::Results) => self.answer.rows += 1,
            (b'T' | b'c', PostgresScanPhase::Results) => {}
            (b'2', PostgresScanPhase::Begun) => self.phase = PostgresScanPhase::Results,
            (b'2', PostgresScanPhase::Over) if self.form == RequestForm::Pipeline => {
                self.phase = PostgresScanPhase::Results
            }
            (b'1', PostgresScanPhase::Begun | PostgresScanPhase::Over)
                if self.form == RequestForm::Pipeline => {}
            // This is an empty statement, or a portal that stopped at a row limit, which this
            // client never sets.
            (b'I' | b's', PostgresScanPhase::Results) => self.end_of_statement(),
            (b'H', PostgresScanPhase::Results) => {
                self.copies_out = true;
                self.answer.copied_out = true;
            }
            (b'G', PostgresScanPhase::Results) => return Ok(PostgresScanStep::CopyIn),
            _ => return Err(PostgresFault::Malformed("a message that belongs to another answer")),
        }
        Ok(PostgresScanStep::More)
    }

    /// Reads a message that decides what follows. The result is `true` when the answer is complete.
    fn control(&mut self, kind: u8, body: &[u8]) -> Result<bool, PostgresFault> {
        match kind {
            b'C' if self.phase == PostgresScanPhase::Results => {
                if !self.copies_out {
                    let affected = fault::affected(body.strip_suffix(&[0]).unwrap_or(body));
                    self.answer.affected = self.answer.affected.saturating_add(affected);
                }
                self.copies_out = false;
                self.end_of_statement();
                Ok(false)
            }
            b'E' => {
                let read = if self.skip > 0 { fault::beginning_of_error } else { fault::error };
                let fault = PostgresFault::in_session(read(body)?);
                if matches!(fault, PostgresFault::Server(PostgresServerError::Ended(_))) {
                    return Err(fault);
                }
                self.fault.get_or_insert(fault);
                self.answered = true;
                self.phase = PostgresScanPhase::Over;
                Ok(false)
            }
            b'Z' if self.answered => {
                self.in_transaction = is_in_transaction(body);
                Ok(true)
            }
            b'Z' => Err(PostgresFault::Malformed("an end without an answer")),
            _ => Err(PostgresFault::Malformed("a message that belongs to another answer")),
        }
    }

    fn end_of_statement(&mut self) {
        self.answered = true;
        if self.form != RequestForm::Query {
            self.phase = PostgresScanPhase::Over;
        }
    }
}

/// Reads the session's state at the end of an answer: `I` is idle, `T` is in a transaction, and `E`
/// is in a failed transaction.
fn is_in_transaction(body: &[u8]) -> bool {
    matches!(body.first(), Some(b'T' | b'E'))
}

/// Reads the whole answer to a query text that was just sent. Where it holds several statements,
/// this returns the rows of the first one that has columns.
pub(super) async fn collect<S: ByteStream>(wire: &mut PostgresWire<S>) -> Result<Cells, PostgresFault> {
    Ok(results(wire).await?.into_iter().next().map(|rows| rows.cells).unwrap_or_default())
}

/// Reads the whole answer to the last request, and returns the rows of every statement in it that
/// has columns.
pub(super) async fn results<S: ByteStream>(wire: &mut PostgresWire<S>) -> Result<Vec<Rows>, PostgresFault> {
    let (mut body, mut fault) = (Vec::new(), None);
    let (mut answered, mut refused_copy) = (false, false);
    let mut found: Vec<Rows> = Vec::new();
    loop {
        match (read(wire, &mut body, &mut fault).await?, found.last_mut()) {
            (b'T', _) => found.push(Rows { columns: names(&body)?, cells: Cells::new() }),
            (b'D', Some(rows)) => {
                wire.keep_row(rows.columns.len())?;
                rows.cells.push(row(&body, rows.columns.len() as u16)?);
            }
            (b'C' | b'I' | b'E', _) => answered = true,
            (b'1' | b'2' | b'n' | b'H' | b'd' | b'c', _) => {}
            (b'G', _) => {
                refused_copy = true;
                put_no_rows(wire.message());
                wire.reply().await?;
            }
            (b'Z', _) if answered => {
                wire.in_transaction = is_in_transaction(&body);
                break;
            }
            (b'Z', _) => return Err(PostgresFault::Malformed("an end without an answer")),
            _ => return Err(PostgresFault::Malformed("a message that belongs to another answer")),
        }
    }
    match fault {
        Some(_) if refused_copy => Err(super::session::no_copy_here()),
        Some(fault) => Err(fault),
        None => Ok(found),
    }
}

/// Reads the names of the columns in a row description.
fn names(body: &[u8]) -> Result<Vec<String>, PostgresFault> {
    /// Bytes after a column's name: table, column, type, its size and modifier, format.
    const REST: usize = 18;
    let mut reader = PostgresReader(body);
    let count = reader.u16()?;
    let mut name = || -> Result<String, PostgresFault> {
        let name = String::from_utf8_lossy(reader.text()?).into_owned();
        reader.take(REST).map(|_| name)
    };
    (0..count).map(|_| name()).collect()
}

/// Reads a server's description of a statement that it has just parsed: parameter types and number
/// of columns.
pub(super) async fn described<S: ByteStream>(
    wire: &mut PostgresWire<S>,
) -> Result<(Vec<u32>, u16), PostgresFault> {
    let mut body = Vec::new();
    let mut fault = None;
    let (mut types, mut columns) = (None, None);
    loop {
        match read(wire, &mut body, &mut fault).await? {
            b'1' | b'E' => {}
            b't' => types = Some(parameter_types(&body)?),
            b'T' => columns = Some(PostgresReader(&body).u16()?),
            b'n' => columns = Some(0),
            b'Z' => break,
            _ => return Err(PostgresFault::Malformed("a message that belongs to another answer")),
        }
    }
    match (fault, types, columns) {
        (Some(fault), _, _) => Err(fault),
        (None, Some(types), Some(columns)) => Ok((types, columns)),
        _ => Err(PostgresFault::Malformed("a statement without description")),
    }
}

/// Reads the next message that belongs to the answer, and skips those that may come at any time.
/// The first error is kept, because the answer continues after it. An error that ends the session
/// is returned at once.
async fn read<S: ByteStream>(
    wire: &mut PostgresWire<S>,
    body: &mut Vec<u8>,
    fault: &mut Option<PostgresFault>,
) -> Result<u8, PostgresFault> {
    loop {
        let kind = match wire.read(body).await {
            Ok(kind) => kind,
            Err(broken) => return Err(fault.take().unwrap_or(broken)),
        };
        match kind {
            b'S' | b'A' | b'N' => {}
            b'E' => match PostgresFault::in_session(fault::error(body)?) {
                ended @ PostgresFault::Server(PostgresServerError::Ended(_)) => return Err(ended),
                reported => {
                    fault.get_or_insert(reported);
                    return Ok(kind);
                }
            },
            _ => return Ok(kind),
        }
    }
}

fn parameter_types(body: &[u8]) -> Result<Vec<u32>, PostgresFault> {
    let mut reader = PostgresReader(body);
    let count = reader.u16()?;
    (0..count).map(|_| reader.u32()).collect()
}

/// Reads one row. Bytes that are not UTF-8 become replacement characters.
fn row(body: &[u8], columns: u16) -> Result<Vec<Option<String>>, PostgresFault> {
    let mut reader = PostgresReader(body);
    if reader.u16()? != columns {
        return Err(PostgresFault::Malformed("a row with the wrong number of values"));
    }
    let text = |value: Option<&[u8]>| value.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let cells = (0..columns).map(|_| reader.value().map(text)).collect::<Result<Vec<_>, _>>()?;
    if reader.0.is_empty() {
        Ok(cells)
    } else {
        Err(PostgresFault::Malformed("a row with more values than columns"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_becomes_strings_and_nulls() {
        let cells = row(b"\0\x03\0\0\0\x011\xff\xff\xff\xff\0\0\0\x02\xff\xfe", 3).expect("a row of three");
        assert_eq!(cells, [Some("1".to_owned()), None, Some("\u{fffd}\u{fffd}".to_owned())]);
    }

    #[test]
    fn a_row_with_wrong_lengths_is_malformed() {
        for body in [
            &b""[..],
            b"\0\x02",
            b"\0\x01\0\0\0\x01a",
            b"\0\x02\0\0\0\0\0\0\0\x05a",
            b"\0\x02\0\0\0\0\0\0\0\0x",
        ] {
            assert!(matches!(row(body, 2), Err(PostgresFault::Malformed(_))), "{body:?}");
        }
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod scan_tests;
