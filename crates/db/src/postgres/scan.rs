//! Scans an answer in the input buffer: finds its end and counts rows and bytes, without decoding
//! them.

use super::fault::{PostgresFault, PostgresServerError};
use super::message::{HEADER, header};
use super::report;
use crate::Answer;

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
    /// Whether a message has arrived that may stand for a whole answer.
    answered: bool,
    /// Whether a COPY is sending rows to the client. Its tag repeats their number.
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

    /// The error that arrived before the stream broke. It says more than the break.
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
                    let affected = report::affected(body.strip_suffix(&[0]).unwrap_or(body));
                    self.answer.affected = self.answer.affected.saturating_add(affected);
                }
                self.copies_out = false;
                self.end_of_statement();
                Ok(false)
            }
            b'E' => {
                let read = if self.skip > 0 { report::beginning_of_error } else { report::error };
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

/// The session's state at the end of an answer: `I` for idle, `T` in a transaction, `E` in a failed
/// one.
pub(super) fn is_in_transaction(body: &[u8]) -> bool {
    matches!(body.first(), Some(b'T' | b'E'))
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
