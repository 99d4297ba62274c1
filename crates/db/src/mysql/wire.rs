//! Sends and receives packets over a byte stream, and reads the fields inside them. One output and
//! one input buffer last for the session's whole life.

use std::future::poll_fn;
use std::io::IoSlice;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::AsyncWriteExt;

use super::fault::{MysqlFault, MysqlServerError};
use super::scan::{MysqlScanStep, MysqlScanner};
use crate::error::server_text;
use crate::input::{FIRST_SIZE, Input, ReceiveLimits};
use crate::stream::{ByteStream, write_whole};

/// Length in bytes from which a body is not copied. Copying a shorter body costs less than making
/// the kernel gather two pieces.
const WORTH_GATHERING: usize = 1024;

/// Time limit for reading the message that the server sent before it closed the connection. If
/// there is such a message, it has arrived already.
const CLOSING_MESSAGE_TIMEOUT: Duration = Duration::from_secs(1);

/// A byte stream with its buffers, and the state of the exchange on it.
#[derive(Debug)]
pub(super) struct MysqlWire<S> {
    stream: S,
    outgoing: Outgoing,
    input: Input,
    /// Sequence number of the next packet, in either direction.
    sequence: u8,
    /// How much [`MysqlWire::read`] may still keep.
    receive_limits: ReceiveLimits,
    /// Whether the session is in a transaction, according to the server's last answer.
    pub(super) in_transaction: bool,
}

impl<S: ByteStream> MysqlWire<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            outgoing: Outgoing::default(),
            input: Input::new(FIRST_SIZE),
            sequence: 0,
            receive_limits: ReceiveLimits::LOGIN,
            in_transaction: false,
        }
    }

    /// Sets how much of the following messages may be kept.
    pub(super) fn allow(&mut self, receive_limits: ReceiveLimits) {
        self.receive_limits = receive_limits;
    }

    /// Subtracts the memory for a row with this number of values from the receive limits.
    pub(super) fn keep_row(&mut self, values: usize) -> Result<(), MysqlFault> {
        self.receive_limits.take_row(values).map_err(MysqlFault::TooLarge)
    }

    /// Returns the bare stream and the next packet's number, to continue with
    /// [`MysqlWire::resumed`] inside TLS. Bytes that arrived ahead of TLS are refused, because
    /// anyone may have sent them.
    pub(super) fn into_stream(self) -> Result<(S, u8), MysqlFault> {
        if !self.input.is_empty() {
            return Err(MysqlFault::Malformed(
                "bytes before the beginning of TLS, possibly from an attacker",
            ));
        }
        Ok((self.stream, self.sequence))
    }

    /// Continues over `stream` in the middle of an exchange.
    pub(super) fn resumed(stream: S, sequence: u8) -> Self {
        Self { sequence, ..Self::new(stream) }
    }

    pub(super) fn stream(&self) -> &S {
        &self.stream
    }

    /// Returns the buffer for the next message, which [`MysqlWire::send`] or [`MysqlWire::reply`]
    /// sends.
    pub(super) fn message(&mut self) -> &mut Vec<u8> {
        self.outgoing.start()
    }

    /// Sends the message as a new command.
    pub(super) fn send(&mut self) -> impl Future<Output = Result<(), MysqlFault>> {
        let checked = self.check_all_taken();
        self.sequence = 0;
        self.send_checked(checked)
    }

    /// Checks that nothing of the last answer is left in the input buffer.
    fn check_all_taken(&self) -> Result<(), MysqlFault> {
        if !self.input.is_empty() {
            return Err(MysqlFault::Malformed("bytes after the end of the last answer"));
        }
        Ok(())
    }

    /// Sends a command byte with `body` after it. A long body goes to the kernel without a copy. A
    /// short one is cheaper to copy after its header.
    pub(super) async fn send_command(&mut self, command: u8, body: &[u8]) -> Result<(), MysqlFault> {
        if body.len() < WORTH_GATHERING || body.len() + 1 >= MAX_PAYLOAD {
            let message = self.message();
            message.reserve(body.len() + 1);
            message.push(command);
            message.extend_from_slice(body);
            return self.send().await;
        }
        self.check_all_taken()?;
        self.sequence = 1;
        let size = (body.len() as u32 + 1).to_le_bytes();
        let head = [size[0], size[1], size[2], 0, command];
        match self.write_both(&head, body).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.closing_message().await.unwrap_or(error.into())),
        }
    }

    /// Sends `piece` as the next packet in the current exchange, without a copy. It must be shorter
    /// than the longest packet.
    pub(super) async fn send_piece(&mut self, piece: &[u8]) -> Result<(), MysqlFault> {
        let size = (piece.len() as u32).to_le_bytes();
        let head = [size[0], size[1], size[2], self.sequence];
        self.sequence = self.sequence.wrapping_add(1);
        match self.write_both(&head, piece).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.closing_message().await.unwrap_or(error.into())),
        }
    }

    /// Sequence number of the next packet, in either direction.
    pub(super) fn sequence(&self) -> u8 {
        self.sequence
    }

    async fn write_both(&mut self, head: &[u8], body: &[u8]) -> std::io::Result<()> {
        let written = self.stream.write_vectored(&[IoSlice::new(head), IoSlice::new(body)]).await?;
        if written < head.len() {
            self.stream.write_all(&head[written..]).await?;
        }
        self.stream.write_all(&body[written.saturating_sub(head.len())..]).await?;
        // TLS may hold back a record that did not fit the socket. Without TLS this does nothing.
        self.stream.flush().await
    }

    /// Sends the message as the next packet in the current exchange.
    pub(super) fn reply(&mut self) -> impl Future<Output = Result<(), MysqlFault>> {
        self.send_checked(Ok(()))
    }

    async fn send_checked(&mut self, checked: Result<(), MysqlFault>) -> Result<(), MysqlFault> {
        checked?;
        let packets = self.outgoing.seal(self.sequence);
        self.sequence = self.sequence.wrapping_add(packets as u8);
        match write_whole(&mut self.stream, self.outgoing.bytes()).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.closing_message().await.unwrap_or(error.into())),
        }
    }

    /// The reason why the server closed the connection, if it sent one: a statement beyond
    /// `max_allowed_packet`, a kill, or an idle timeout. Without this the user would only see a
    /// broken pipe.
    async fn closing_message(&mut self) -> Option<MysqlFault> {
        let mut payload = Vec::new();
        self.allow(ReceiveLimits::LOGIN);
        tokio::time::timeout(CLOSING_MESSAGE_TIMEOUT, self.read(&mut payload)).await.ok()?.ok()?;
        (payload[0] == 0xff).then(|| server_error(&payload))
    }

    /// Overwrites the message that was sent last.
    pub(super) fn wipe(&mut self) {
        self.outgoing.wipe();
    }

    /// Starts a scan over the answer to the last request.
    pub(super) fn scanner(&self, form: Form) -> MysqlScanner {
        MysqlScanner::new(form, self.sequence)
    }

    /// Lets `scanner` process the bytes that have arrived, and reads more until it needs something
    /// other than bytes.
    pub(super) async fn scan(&mut self, scanner: &mut MysqlScanner) -> Result<MysqlScanStep, MysqlFault> {
        poll_fn(|context| self.poll_scan(context, scanner)).await
    }

    pub(super) fn poll_scan(
        &mut self,
        context: &mut Context<'_>,
        scanner: &mut MysqlScanner,
    ) -> Poll<Result<MysqlScanStep, MysqlFault>> {
        loop {
            if !self.input.is_empty() {
                let (done, step) = scanner.scan(&self.input)?;
                self.input.take(done);
                self.sequence = scanner.sequence();
                match step {
                    MysqlScanStep::More => {}
                    MysqlScanStep::Failed(fault) => return Poll::Ready(Err(fault)),
                    MysqlScanStep::Done => {
                        self.in_transaction = scanner.in_transaction();
                        return Poll::Ready(Ok(step));
                    }
                    MysqlScanStep::LocalFile => return Poll::Ready(Ok(step)),
                }
            }
            ready!(self.input.poll_fill(context, &mut self.stream))?;
        }
    }

    /// Reads one whole message into `payload`. A message that may be kept is too short to be
    /// continued in a second packet.
    pub(super) async fn read(&mut self, payload: &mut Vec<u8>) -> Result<(), MysqlFault> {
        while self.input.len() < HEADER {
            self.input.fill(&mut self.stream).await?;
        }
        let header = &self.input[..HEADER];
        let length = usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16;
        let in_order = header[3] == self.sequence;
        self.sequence = header[3].wrapping_add(1);
        self.receive_limits.take(HEADER + length).map_err(MysqlFault::TooLarge)?;
        self.input.take(HEADER);
        self.input.read(&mut self.stream, length, payload).await?;
        match payload.first() {
            None => Err(MysqlFault::Malformed("an empty packet")),
            Some(&first) if !in_order && first != 0xff => Err(MysqlFault::Malformed("packets out of order")),
            Some(_) => Ok(()),
        }
    }
}

/// Longest payload in one packet. A packet with exactly this length says that another one follows.
pub(super) const MAX_PAYLOAD: usize = 0xff_ffff;

/// Bytes in a packet header: three for the length, one for the sequence number.
pub(super) const HEADER: usize = 4;

/// A message under construction. Space for the header is reserved from the start, so that no byte
/// has to be moved later in a message of one packet.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    bytes: Vec<u8>,
}

impl Outgoing {
    /// Clears the last message and returns the buffer to which the next payload is appended.
    pub(super) fn start(&mut self) -> &mut Vec<u8> {
        self.bytes.clear();
        self.bytes.extend_from_slice(&[0; HEADER]);
        &mut self.bytes
    }

    /// Fills in the headers, numbered from `first`; returns how many packets the message takes.
    fn seal(&mut self, first: u8) -> usize {
        let payload = self.bytes.len().saturating_sub(HEADER);
        if payload < MAX_PAYLOAD
            && let Some(header) = self.bytes.first_chunk_mut::<HEADER>()
        {
            // Nearly every message fits one packet.
            let size = (payload as u32).to_le_bytes();
            *header = [size[0], size[1], size[2], first];
            return 1;
        }
        let packets = payload / MAX_PAYLOAD + 1;
        self.bytes.resize(payload + packets * HEADER, 0);
        // The loop runs from the back, so that no piece overwrites one that has still to move.
        for index in (0..packets).rev() {
            let start = HEADER + index * MAX_PAYLOAD;
            let length = (payload - index * MAX_PAYLOAD).min(MAX_PAYLOAD);
            let moved = start + index * HEADER;
            if index > 0 {
                self.bytes.copy_within(start..start + length, moved);
            }
            let size = (length as u32).to_le_bytes();
            let number = first.wrapping_add(index as u8);
            self.bytes[moved - HEADER..moved].copy_from_slice(&[size[0], size[1], size[2], number]);
        }
        packets
    }

    /// The complete message, headers included.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Overwrites the last message, so that a login leaves no password in memory.
    pub(super) fn wipe(&mut self) {
        self.bytes.fill(0);
    }
}

/// Status flag of a session in a transaction (`SERVER_STATUS_IN_TRANS`).
const IN_TRANSACTION: u16 = 0x0001;

/// Status flag of an answer in which another result follows (`SERVER_MORE_RESULTS_EXISTS`).
const MORE_RESULTS: u16 = 0x0008;

/// Length in bytes below which a packet with the code 0xfe ends the rows in the old form. Such an
/// end has five bytes: code, warnings and status.
const EOF_LONGEST: usize = 9;

/// What an OK packet or the end of rows reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Finish {
    pub(super) affected: u64,
    pub(super) warnings: u16,
    pub(super) more_results: bool,
    pub(super) in_transaction: bool,
}

impl Finish {
    fn new(affected: u64, warnings: u16, status: u16) -> Self {
        let is_set = |flag| status & flag != 0;
        let (more_results, in_transaction) = (is_set(MORE_RESULTS), is_set(IN_TRANSACTION));
        Self { affected, warnings, more_results, in_transaction }
    }
}

/// Bytes that are read from the front, with a check at each step.
#[derive(Debug, Clone, Copy)]
pub(super) struct MysqlReader<'a>(pub(super) &'a [u8]);

impl<'a> MysqlReader<'a> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], MysqlFault> {
        let parts = self.0.split_at_checked(count);
        let (head, tail) = parts.ok_or(MysqlFault::Malformed("a packet ends inside a value"))?;
        self.0 = tail;
        Ok(head)
    }

    pub(super) fn u8(&mut self) -> Result<u8, MysqlFault> {
        Ok(self.take(1)?[0])
    }

    /// Reads a little-endian number of `count` bytes, at most eight.
    pub(super) fn number(&mut self, count: usize) -> Result<u64, MysqlFault> {
        Ok(self.take(count)?.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    pub(super) fn u16(&mut self) -> Result<u16, MysqlFault> {
        let bytes = self.take(2)?;
        Ok(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    pub(super) fn u32(&mut self) -> Result<u32, MysqlFault> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// Reads a length-encoded number. The first bytes 0xfb (NULL) and 0xff do not start one.
    pub(super) fn length(&mut self) -> Result<u64, MysqlFault> {
        match self.u8()? {
            small @ 0..=0xfa => Ok(u64::from(small)),
            0xfc => self.number(2),
            0xfd => self.number(3),
            0xfe => self.number(8),
            _ => Err(MysqlFault::Malformed("a length begins with 0xfb or 0xff")),
        }
    }

    /// Reads a length-encoded string.
    pub(super) fn text(&mut self) -> Result<&'a [u8], MysqlFault> {
        let length = self.length()?;
        let length = usize::try_from(length)
            .map_err(|_| MysqlFault::Malformed("a length that exceeds the address space"))?;
        self.take(length)
    }

    /// Reads a string up to a NUL, or up to the end where the NUL is missing.
    pub(super) fn until_nul(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        let text = &self.0[..end];
        self.0 = self.0.get(end + 1..).unwrap_or_default();
        text
    }
}

/// Reads an OK packet. It begins with 0x00, or with 0xfe at the end of rows.
pub(super) fn ok(payload: &[u8]) -> Result<Finish, MysqlFault> {
    let mut reader = MysqlReader(payload);
    reader.u8()?;
    let affected = reader.length()?;
    reader.length()?; // last insert id
    let status = reader.u16()?;
    let warnings = reader.u16()?;
    Ok(Finish::new(affected, warnings, status))
}

/// Reads an ERR packet, with or without an SQL state. Before login there is none.
pub(super) fn server_error(payload: &[u8]) -> MysqlFault {
    let mut reader = MysqlReader(payload);
    let (Ok(0xff), Ok(code)) = (reader.u8(), reader.u16()) else {
        return MysqlFault::Malformed("an error packet without a number");
    };
    let text = match reader.0 {
        [b'#', _, _, _, _, _, text @ ..] => text,
        text => text,
    };
    MysqlFault::Server(MysqlServerError::Reported { code, message: server_text(text) })
}

/// The form of answers that a login agreed on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Form {
    /// Whether both sides agreed on `CLIENT_DEPRECATE_EOF`. Then no EOF follows the column
    /// definitions, and an OK replaces the EOF after the rows.
    pub(super) deprecate_eof: bool,
    /// Whether both sides agreed on `MARIADB_CLIENT_CACHE_METADATA`. Then a byte after the number
    /// of columns says whether their definitions follow. They are left out when a prepared
    /// statement is executed again with the definitions that the client already has.
    pub(super) optional_definitions: bool,
}

/// Reads a result set's first packet: how many columns its rows have, at least 1, and how many
/// definitions follow.
pub(super) fn columns(payload: &[u8], form: Form) -> Result<(u64, u64), MysqlFault> {
    let mut reader = MysqlReader(payload);
    let count = reader.length()?;
    let follow = if form.optional_definitions { reader.u8()? } else { 1 };
    if count == 0 || count > u64::from(u16::MAX) || follow > 1 || !reader.0.is_empty() {
        return Err(MysqlFault::Malformed("an impossible number of columns"));
    }
    Ok((count, count * u64::from(follow)))
}

/// Whether a packet in a result set ends its rows. A row may also begin with 0xfe, which is then
/// the length code of a value with 16 MB or more. Such a row fills its packet, so it is longer than
/// the end of rows in either form.
pub(super) fn ends_rows(first: u8, length: usize, deprecate_eof: bool) -> bool {
    first == 0xfe && if deprecate_eof { length < MAX_PAYLOAD } else { length < EOF_LONGEST }
}

/// Reads the end of rows in the agreed form. It does not report affected rows.
pub(super) fn rows_end(payload: &[u8], deprecate_eof: bool) -> Result<Finish, MysqlFault> {
    if deprecate_eof {
        return Ok(Finish { affected: 0, ..ok(payload)? });
    }
    let mut reader = MysqlReader(payload);
    reader.u8()?;
    let warnings = reader.u16()?;
    let status = reader.u16()?;
    Ok(Finish::new(0, warnings, status))
}

/// Appends a length-encoded string.
pub(super) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    let length = text.len() as u64;
    let bytes = length.to_le_bytes();
    match length {
        0..=0xfa => out.push(bytes[0]),
        0xfb..=0xffff => out.extend_from_slice(&[0xfc, bytes[0], bytes[1]]),
        0x1_0000..=0xff_ffff => out.extend_from_slice(&[0xfd, bytes[0], bytes[1], bytes[2]]),
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&bytes);
        }
    }
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn bodies_of_any_length_arrive_whole_through_a_narrow_stream() {
        for length in [0, 1, WORTH_GATHERING - 1, WORTH_GATHERING, 5_000, MAX_PAYLOAD - 2, MAX_PAYLOAD - 1] {
            let (client, mut server) = tokio::io::duplex(if length > 100_000 { 1 << 16 } else { 37 });
            let body: Vec<u8> = (0..length).map(|n| (n % 251) as u8).collect();
            let mut wire = MysqlWire::new(client);
            let sends = async {
                wire.send_command(3, &body).await.expect("sent");
                drop(wire);
            };
            let mut received = Vec::new();
            let (_, read) = tokio::join!(sends, server.read_to_end(&mut received));
            read.expect("read");
            let header = [received[0], received[1], received[2], 0];
            assert_eq!(u32::from_le_bytes(header) as usize, length + 1, "{length}");
            assert_eq!((received[3], received[4]), (0, 3));
            assert!(received[5..5 + length] == body[..], "{length}");
            // An empty packet follows a payload with the maximum length.
            assert_eq!(received.len(), 5 + length + if length + 1 == MAX_PAYLOAD { HEADER } else { 0 });
        }
    }

    fn sealed(payload: &[u8]) -> (usize, Vec<u8>) {
        let mut outgoing = Outgoing::default();
        outgoing.start().extend_from_slice(payload);
        let packets = outgoing.seal(0);
        (packets, outgoing.bytes().to_vec())
    }

    /// Puts the payload together from its packets again, as a server would.
    fn joined(mut bytes: &[u8]) -> Vec<u8> {
        let mut payload = Vec::new();
        let mut number = 0u8;
        loop {
            let length = usize::from(bytes[0]) | usize::from(bytes[1]) << 8 | usize::from(bytes[2]) << 16;
            assert_eq!(bytes[3], number, "packets are numbered in order");
            number += 1;
            payload.extend_from_slice(&bytes[4..4 + length]);
            bytes = &bytes[4 + length..];
            if length < MAX_PAYLOAD {
                assert!(bytes.is_empty());
                return payload;
            }
        }
    }

    #[test]
    fn a_short_message_is_one_packet() {
        assert_eq!(sealed(b"\x03SELECT 1"), (1, b"\x09\0\0\0\x03SELECT 1".to_vec()));
        assert_eq!(sealed(b""), (1, vec![0; 4]));
    }

    #[test]
    fn long_messages_are_split_where_the_protocol_says() {
        for (length, packets) in [
            (MAX_PAYLOAD - 1, 1),
            (MAX_PAYLOAD, 2),
            (MAX_PAYLOAD + 1, 2),
            (2 * MAX_PAYLOAD, 3),
            (2 * MAX_PAYLOAD + 77, 3),
        ] {
            let payload: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let (count, bytes) = sealed(&payload);
            assert_eq!(count, packets, "{length}");
            assert!(joined(&bytes) == payload, "{length}");
        }
    }

    #[test]
    fn lengths_are_written_and_read_in_all_four_sizes() {
        for length in [0, 250, 251, 252, 0xffff, 0x1_0000, 0xff_ffff, 0x100_0000] {
            let mut bytes = Vec::new();
            put_text(&mut bytes, &vec![b'x'; length]);
            let mut reader = MysqlReader(&bytes);
            assert_eq!(reader.text().expect("what was written").len(), length);
            assert!(reader.0.is_empty());
        }
    }

    #[test]
    fn a_length_past_the_end_is_malformed() {
        for bytes in
            [&b"\x05abc"[..], b"\xfe\xff\xff\xff\xff\xff\xff\xff\xffabc", b"\xfc\x01", b"\xfb", b"\xff", b""]
        {
            assert!(matches!(MysqlReader(bytes).text(), Err(MysqlFault::Malformed(_))), "{bytes:?}");
        }
    }

    #[test]
    fn an_error_is_read_with_and_without_its_sql_state() {
        insta::assert_snapshot!(server_error(b"\xff\x28\x04#42000You have an error"), @"server said: You have an error");
        insta::assert_snapshot!(server_error(b"\xff\x10\x04Too many connections"), @"server said: Too many connections");
        assert!(matches!(server_error(b"\xff\x10"), MysqlFault::Malformed(_)));
    }

    #[test]
    fn the_end_of_rows_is_distinguished_from_a_huge_value() {
        assert!(ends_rows(0xfe, 5, false));
        assert!(!ends_rows(0xfe, 9, false));
        assert!(ends_rows(0xfe, 7, true));
        assert!(!ends_rows(0xfe, 0xff_ffff, true));
        assert!(!ends_rows(0x00, 5, true));
    }
}
