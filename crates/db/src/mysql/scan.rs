//! Scans an answer in the input buffer: finds its end and counts rows and bytes, without decoding
//! them. Only dbdyno's own queries have their rows decoded into text.

use super::fault::{MysqlFault, MysqlServerError};
use super::wire;
use super::wire::{Finish, Form, HEADER, MAX_PAYLOAD, MysqlReader, MysqlWire};
use crate::stream::ByteStream;
use crate::{Answer, Cells};

/// Longest packet that is read whole (OK, ERR, column count). Real ones have at most a few hundred
/// bytes. The limit keeps a faulty server from filling the memory.
const LONGEST_CONTROL: usize = 64 << 10;

/// What the scanner needs next.
#[derive(Debug)]
pub(super) enum MysqlScanStep {
    /// More bytes are needed: the input ends inside the answer.
    More,
    /// The answer is complete.
    Done,
    /// The answer is complete, and it is an error.
    Failed(MysqlFault),
    /// The server asks for a local file.
    LocalFile,
}

/// The part of an answer to which the next packet belongs.
#[derive(Debug, Clone, Copy)]
enum MysqlScanPhase {
    /// The first packet of a result: OK, ERR, a file request or the number of columns.
    Head,
    /// The column definitions. The value is the number of those that are still to come.
    Columns(u64),
    /// The EOF between column definitions and rows in the old form.
    ColumnsEnd,
    Rows,
}

/// The state of a scan over one answer, which gets bytes as they arrive.
#[derive(Debug)]
pub(super) struct MysqlScanner {
    phase: MysqlScanPhase,
    form: Form,
    /// Sequence number that the next packet must carry.
    sequence: u8,
    /// Bytes to skip in the current packet that have not arrived yet.
    skip: usize,
    /// Whether the next packet continues the current value, which has 16 MB or more.
    continued: bool,
    answer: Answer,
    in_transaction: bool,
}

impl MysqlScanner {
    /// Starts a scan over the answer whose first packet has the number `sequence`.
    pub(super) fn new(form: Form, sequence: u8) -> Self {
        Self {
            phase: MysqlScanPhase::Head,
            form,
            sequence,
            skip: 0,
            continued: false,
            answer: Answer::default(),
            in_transaction: false,
        }
    }

    /// The counts so far.
    pub(super) fn answer(&self) -> Answer {
        self.answer
    }

    /// Whether the session was in a transaction when the answer was complete.
    pub(super) fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    pub(super) fn sequence(&self) -> u8 {
        self.sequence
    }

    /// Tells the scanner that packets were sent to the server in the middle of the answer, so that
    /// the next one has the number `next`.
    pub(super) fn sent_up_to(&mut self, next: u8) {
        self.sequence = next;
    }

    /// Scans `input` and returns how many bytes are finished, and what is needed next. Unfinished
    /// bytes must be at the front of the next `input`.
    pub(super) fn scan(&mut self, input: &[u8]) -> Result<(usize, MysqlScanStep), MysqlFault> {
        let mut at = 0;
        loop {
            let passed = self.skip.min(input.len() - at);
            at += passed;
            self.skip -= passed;
            let rest = &input[at..];
            let Some(&[low, middle, high, number]) = rest.first_chunk::<HEADER>() else {
                return Ok((at, MysqlScanStep::More));
            };
            let length = u32::from_le_bytes([low, middle, high, 0]) as usize;
            if self.continued {
                self.check_sequence(number, 0)?;
                self.pass(length);
                at += HEADER;
                continue;
            }
            if length == 0 {
                return Err(MysqlFault::Malformed("an empty packet"));
            }
            let Some(&first) = rest.get(HEADER) else { return Ok((at, MysqlScanStep::More)) };
            if self.is_passed_over(first, length) {
                self.check_sequence(number, first)?;
                self.count_passed();
                self.pass(length);
                at += HEADER;
                continue;
            }
            if length > LONGEST_CONTROL {
                return Err(MysqlFault::Malformed("a control packet of more than 64 KiB"));
            }
            let Some(payload) = rest.get(HEADER..HEADER + length) else {
                return Ok((at, MysqlScanStep::More));
            };
            self.check_sequence(number, first)?;
            self.answer.bytes += (HEADER + length) as u64;
            at += HEADER + length;
            match self.control(payload)? {
                MysqlScanStep::More => {}
                step => return Ok((at, step)),
            }
        }
    }

    /// Whether a packet is a column definition or a row, of which only the length matters.
    fn is_passed_over(&self, first: u8, length: usize) -> bool {
        match self.phase {
            MysqlScanPhase::Columns(_) => first != 0xff,
            MysqlScanPhase::Rows => first != 0xff && !wire::ends_rows(first, length, self.form.deprecate_eof),
            MysqlScanPhase::Head | MysqlScanPhase::ColumnsEnd => false,
        }
    }

    /// Checks a packet's sequence number. Packets are numbered within an exchange, so a wrong
    /// number means that answers no longer match their statements. Errors are exempt: a server that
    /// gives up sends them unasked, with its own number.
    fn check_sequence(&mut self, number: u8, first: u8) -> Result<(), MysqlFault> {
        if number != self.sequence && first != 0xff {
            return Err(MysqlFault::Malformed("packets out of order"));
        }
        self.sequence = number.wrapping_add(1);
        Ok(())
    }

    /// Skips a packet's payload, and notes whether the next packet continues it.
    fn pass(&mut self, length: usize) {
        self.skip = length;
        self.continued = length == MAX_PAYLOAD;
        self.answer.bytes += (HEADER + length) as u64;
    }

    /// Counts a packet that is passed over, as a column definition or as a row.
    fn count_passed(&mut self) {
        match self.phase {
            MysqlScanPhase::Columns(1) => {
                self.phase = self.after_definitions();
            }
            MysqlScanPhase::Columns(left) => self.phase = MysqlScanPhase::Columns(left - 1),
            _ => self.answer.rows += 1,
        }
    }

    fn after_definitions(&self) -> MysqlScanPhase {
        if self.form.deprecate_eof { MysqlScanPhase::Rows } else { MysqlScanPhase::ColumnsEnd }
    }

    /// Reads a packet that decides what follows.
    fn control(&mut self, payload: &[u8]) -> Result<MysqlScanStep, MysqlFault> {
        match (self.phase, payload[0]) {
            (_, 0xff) => Ok(MysqlScanStep::Failed(wire::server_error(payload))),
            (MysqlScanPhase::Head, 0x00) => {
                let finish = wire::ok(payload)?;
                self.answer.affected = self.answer.affected.saturating_add(finish.affected);
                Ok(self.finish(finish))
            }
            (MysqlScanPhase::Head, 0xfb) => Ok(MysqlScanStep::LocalFile),
            (MysqlScanPhase::Head, _) => {
                self.phase = match wire::columns(payload, self.form)? {
                    (_, 0) => self.after_definitions(),
                    (_, follow) => MysqlScanPhase::Columns(follow),
                };
                Ok(MysqlScanStep::More)
            }
            (MysqlScanPhase::ColumnsEnd, 0xfe) => {
                self.phase = MysqlScanPhase::Rows;
                Ok(MysqlScanStep::More)
            }
            (MysqlScanPhase::Rows, _) => {
                let finish = wire::rows_end(payload, self.form.deprecate_eof)?;
                Ok(self.finish(finish))
            }
            (MysqlScanPhase::ColumnsEnd | MysqlScanPhase::Columns(_), _) => {
                Err(MysqlFault::Malformed("no end of the column definitions"))
            }
        }
    }

    /// Ends one result. The answer keeps the last result's warnings, as `SHOW WARNINGS` does.
    fn finish(&mut self, finish: Finish) -> MysqlScanStep {
        self.answer.warnings = finish.warnings;
        self.in_transaction = finish.in_transaction;
        self.phase = MysqlScanPhase::Head;
        if finish.more_results { MysqlScanStep::More } else { MysqlScanStep::Done }
    }
}

/// Reads the whole answer to a statement that was just sent. Where it has several results (a
/// procedure), this returns the rows of the first one that has columns.
pub(super) async fn collect<S: ByteStream>(wire: &mut MysqlWire<S>, form: Form) -> Result<Cells, MysqlFault> {
    let mut payload = Vec::new();
    let mut found: Option<Cells> = None;
    let mut local_file = false;
    loop {
        wire.read(&mut payload).await?;
        let finish = match payload[0] {
            0x00 => wire::ok(&payload)?,
            0xff if local_file => return Err(MysqlFault::Server(MysqlServerError::LocalFile)),
            0xff => return Err(wire::server_error(&payload)),
            0xfb => {
                local_file = true;
                wire.message();
                wire.reply().await?;
                continue;
            }
            _ => {
                let columns = wire::columns(&payload, form)?;
                let mut cells = Cells::new();
                let finish = result_set(wire, &mut payload, columns, form, &mut cells).await?;
                found.get_or_insert(cells);
                finish
            }
        };
        wire.in_transaction = finish.in_transaction;
        match (finish.more_results, local_file) {
            (true, _) => {}
            (false, true) => return Err(MysqlFault::Server(MysqlServerError::LocalFile)),
            (false, false) => return Ok(found.unwrap_or_default()),
        }
    }
}

/// Reads one result set with `count` columns into `cells`. Before the rows come as many column
/// definitions as `defined` says: all or none.
async fn result_set<S: ByteStream>(
    wire: &mut MysqlWire<S>,
    payload: &mut Vec<u8>,
    (count, defined): (u64, u64),
    form: Form,
    cells: &mut Cells,
) -> Result<Finish, MysqlFault> {
    definitions(wire, payload, defined).await?;
    if !form.deprecate_eof {
        definitions_end(wire, payload).await?;
    }
    loop {
        wire.read(payload).await?;
        match payload[0] {
            0xff => return Err(wire::server_error(payload)),
            first if wire::ends_rows(first, payload.len(), form.deprecate_eof) => {
                return wire::rows_end(payload, form.deprecate_eof);
            }
            _ => {
                wire.keep_row(count as usize)?;
                cells.push(row(payload, count)?);
            }
        }
    }
}

/// Skips `count` definitions of columns or parameters.
pub(super) async fn definitions<S: ByteStream>(
    wire: &mut MysqlWire<S>,
    payload: &mut Vec<u8>,
    count: u64,
) -> Result<(), MysqlFault> {
    for _ in 0..count {
        wire.read(payload).await?;
        if payload[0] == 0xff {
            return Err(wire::server_error(payload));
        }
    }
    Ok(())
}

/// Skips the EOF packet that ends definitions in the old form.
pub(super) async fn definitions_end<S: ByteStream>(
    wire: &mut MysqlWire<S>,
    payload: &mut Vec<u8>,
) -> Result<(), MysqlFault> {
    wire.read(payload).await?;
    match payload[0] {
        0xfe => Ok(()),
        0xff => Err(wire::server_error(payload)),
        _ => Err(MysqlFault::Malformed("no end of the column definitions")),
    }
}

/// Reads one row in the text protocol. Bytes that are not UTF-8 become replacement characters.
fn row(payload: &[u8], count: u64) -> Result<Vec<Option<String>>, MysqlFault> {
    let mut reader = MysqlReader(payload);
    let mut cells = Vec::new();
    for _ in 0..count {
        if reader.0.first() == Some(&0xfb) {
            reader.u8()?;
            cells.push(None);
        } else {
            cells.push(Some(String::from_utf8_lossy(reader.text()?).into_owned()));
        }
    }
    if reader.0.is_empty() {
        Ok(cells)
    } else {
        Err(MysqlFault::Malformed("a row with more values than columns"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_becomes_strings_and_nulls() {
        let cells = row(b"\x011\xfb\x00\x02\xff\xfe", 4).expect("a row of four");
        assert_eq!(
            cells,
            vec![Some("1".to_owned()), None, Some(String::new()), Some("\u{fffd}\u{fffd}".to_owned())]
        );
    }

    #[test]
    fn a_row_with_wrong_lengths_is_malformed() {
        for payload in
            [&b"\x05ab"[..], b"\x01a\x01b\x01c", b"\x01a", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"]
        {
            assert!(matches!(row(payload, 2), Err(MysqlFault::Malformed(_))), "{payload:?}");
        }
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod scan_tests;
