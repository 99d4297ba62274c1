//! Sends and receives PostgreSQL's messages over a byte stream, and reads the fields inside them. A
//! message consists of one byte for the kind, four for the length, and a body. One output and one
//! input buffer last for the session's whole life.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::ReadBuf;

use super::fault;
use super::fault::{PostgresFault, PostgresServerError};
use super::scan::{LONGEST_CONTROL, PostgresScanStep, PostgresScanner};
use crate::input::{FIRST_SIZE, Input, ReceiveLimits};
use crate::stream::{ByteStream, write_whole};

/// Time limit for reading the message that a server sent before it closed the connection. If there
/// is such a message, it has arrived already.
const CLOSING_MESSAGE_TIMEOUT: Duration = Duration::from_secs(1);

/// The first event on a stream that is both written and read.
enum Event {
    Sent(io::Result<usize>),
    /// The stream has sent all that was written. TLS may hold back bytes that the socket did not
    /// accept.
    Flushed(io::Result<()>),
    Received(io::Result<usize>),
}

#[derive(Debug)]
pub(super) struct PostgresWire<S> {
    stream: S,
    output: Vec<u8>,
    input: Input,
    /// How much [`PostgresWire::read`] may still keep.
    receive_limits: ReceiveLimits,
    /// Whether the session is in a transaction, according to the server's last answer.
    pub(super) in_transaction: bool,
}

impl<S: ByteStream> PostgresWire<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            output: Vec::with_capacity(256),
            input: Input::new(FIRST_SIZE),
            receive_limits: ReceiveLimits::LOGIN,
            in_transaction: false,
        }
    }

    /// Sets how much of the following messages may be kept.
    pub(super) fn allow(&mut self, receive_limits: ReceiveLimits) {
        self.receive_limits = receive_limits;
    }

    /// Subtracts from the receive limits the memory that a kept row with `values` values takes
    /// besides their bytes.
    pub(super) fn keep_row(&mut self, values: usize) -> Result<(), PostgresFault> {
        self.receive_limits.take_row(values).map_err(PostgresFault::TooLarge)
    }

    pub(super) fn stream(&self) -> &S {
        &self.stream
    }

    /// Returns the empty buffer for the next messages. [`PostgresWire::send`] or
    /// [`PostgresWire::reply`] sends them.
    pub(super) fn message(&mut self) -> &mut Vec<u8> {
        self.output.clear();
        &mut self.output
    }

    /// Returns the messages that are built but not yet sent, so that more can be added.
    pub(super) fn unsent(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Checks the messages that arrived since the last answer, and then sends a new request.
    pub(super) fn send(&mut self) -> impl Future<Output = Result<(), PostgresFault>> {
        let checked = if self.input.is_empty() { Ok(()) } else { self.check_unsolicited() };
        self.send_checked(checked)
    }

    /// Sends the messages as part of the current exchange.
    pub(super) fn reply(&mut self) -> impl Future<Output = Result<(), PostgresFault>> {
        self.send_checked(Ok(()))
    }

    async fn send_checked(&mut self, checked: Result<(), PostgresFault>) -> Result<(), PostgresFault> {
        checked?;
        match write_whole(&mut self.stream, &self.output).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.closing_message().await.unwrap_or(error.into())),
        }
    }

    /// Sends the messages as part of the current exchange, and lets `scanner` process the bytes
    /// that arrive meanwhile. A server that reports each row stops reading rows when no one reads
    /// its reports. The result is `true` when the answer is complete already, because the server
    /// refuses the rest.
    pub(super) async fn reply_listening(
        &mut self,
        scanner: &mut PostgresScanner,
    ) -> Result<bool, PostgresFault> {
        let mut complete = self.scan_arrived(scanner)?;
        if complete {
            return Ok(true);
        }
        let (mut sent, mut is_flushed) = (0, false);
        while !is_flushed {
            match poll_fn(|context| self.poll_event(context, sent)).await {
                Event::Sent(Ok(0)) => return Err(PostgresFault::Closed),
                Event::Sent(Ok(count)) => sent += count,
                Event::Flushed(Ok(())) => is_flushed = true,
                Event::Sent(Err(error)) | Event::Flushed(Err(error)) => {
                    return Err(self.scanned_closing_message(scanner).await.unwrap_or(error.into()));
                }
                Event::Received(Ok(0)) => return Err(scanner.last_word().unwrap_or(PostgresFault::Closed)),
                Event::Received(Ok(count)) => {
                    self.input.filled(count);
                    if !complete {
                        complete = self.scan_arrived(scanner)?;
                    } else if self.input.len() > LONGEST_CONTROL {
                        return Err(PostgresFault::Malformed("more than notices after the end of an answer"));
                    }
                }
                Event::Received(Err(error)) => return Err(error.into()),
            }
        }
        Ok(complete)
    }

    /// Lets `scanner` process the bytes that have arrived. The result is `true` when the answer is
    /// complete.
    fn scan_arrived(&mut self, scanner: &mut PostgresScanner) -> Result<bool, PostgresFault> {
        let (done, step) = scanner.scan(&self.input)?;
        self.input.take(done);
        if step == PostgresScanStep::Done {
            self.in_transaction = scanner.in_transaction();
        }
        Ok(step == PostgresScanStep::Done)
    }

    /// Writes the messages from byte `sent` on. When the stream accepts nothing, this reads from it
    /// instead.
    fn poll_event(&mut self, context: &mut Context<'_>, sent: usize) -> Poll<Event> {
        let stream = Pin::new(&mut self.stream);
        let event = match &self.output[sent..] {
            [] => stream.poll_flush(context).map(Event::Flushed),
            rest => stream.poll_write(context, rest).map(Event::Sent),
        };
        if event.is_ready() {
            return event;
        }
        let mut room = ReadBuf::new(self.input.room());
        let outcome = ready!(Pin::new(&mut self.stream).poll_read(context, &mut room));
        Poll::Ready(Event::Received(outcome.map(|()| room.filled().len())))
    }

    /// Checks what arrived after the last answer. Without a request a server may report only new
    /// parameters, notifications, notices and its own end.
    fn check_unsolicited(&mut self) -> Result<(), PostgresFault> {
        while let Some((kind, length)) = header(&self.input)? {
            match kind {
                b'S' | b'A' | b'N' => {}
                // The error stays in the input, so the next answer begins with it.
                b'E' => return Ok(()),
                _ => return Err(PostgresFault::Malformed("a message after the end of the last answer")),
            }
            if self.input.len() < HEADER + length {
                return Ok(());
            }
            self.input.take(HEADER + length);
        }
        Ok(())
    }

    /// Returns the reason that the server sent before it closed the connection, if any: a shutdown,
    /// a kill, or an idle timeout. Without it the user would only see a broken pipe.
    async fn closing_message(&mut self) -> Option<PostgresFault> {
        let mut body = Vec::new();
        self.allow(ReceiveLimits::LOGIN);
        let search = async {
            loop {
                match self.read(&mut body).await {
                    Ok(b'E') => {
                        return fault::error(&body)
                            .ok()
                            .map(PostgresServerError::Ended)
                            .map(PostgresFault::Server);
                    }
                    Ok(_) => {}
                    Err(_) => return None,
                }
            }
        };
        tokio::time::timeout(CLOSING_MESSAGE_TIMEOUT, search).await.ok()?
    }

    /// Does the same as [`PostgresWire::closing_message`] in the middle of an answer that `scanner`
    /// is processing.
    async fn scanned_closing_message(&mut self, scanner: &mut PostgresScanner) -> Option<PostgresFault> {
        match tokio::time::timeout(CLOSING_MESSAGE_TIMEOUT, self.scan(scanner)).await {
            Ok(Err(
                fault @ PostgresFault::Server(
                    PostgresServerError::Ended(_) | PostgresServerError::Reported(_),
                ),
            )) => Some(fault),
            _ => None,
        }
    }

    /// Overwrites the message sent last, so that a login leaves no password in memory.
    pub(super) fn wipe(&mut self) {
        self.output.fill(0);
    }

    /// Lets `scanner` process the bytes that have arrived, and reads more until it asks for
    /// something other than more bytes.
    pub(super) async fn scan(
        &mut self,
        scanner: &mut PostgresScanner,
    ) -> Result<PostgresScanStep, PostgresFault> {
        poll_fn(|context| self.poll_scan(context, scanner)).await
    }

    pub(super) fn poll_scan(
        &mut self,
        context: &mut Context<'_>,
        scanner: &mut PostgresScanner,
    ) -> Poll<Result<PostgresScanStep, PostgresFault>> {
        loop {
            if !self.input.is_empty() {
                let (done, step) = scanner.scan(&self.input)?;
                self.input.take(done);
                if step == PostgresScanStep::Done {
                    self.in_transaction = scanner.in_transaction();
                }
                if step != PostgresScanStep::More {
                    return Poll::Ready(Ok(step));
                }
            }
            if let Err(fault) = ready!(self.input.poll_fill(context, &mut self.stream)) {
                return Poll::Ready(Err(scanner.last_word().unwrap_or(fault)));
            }
        }
    }

    /// Reads one whole message. Returns its kind, and puts its body into `body`.
    pub(super) async fn read(&mut self, body: &mut Vec<u8>) -> Result<u8, PostgresFault> {
        let (kind, length) = loop {
            match header(&self.input)? {
                Some(found) => break found,
                None => self.input.fill(&mut self.stream).await?,
            }
        };
        self.receive_limits.take(HEADER + length).map_err(PostgresFault::TooLarge)?;
        self.input.take(HEADER);
        self.input.read(&mut self.stream, length, body).await?;
        Ok(kind)
    }
}

/// Bytes before a message's body.
pub(super) const HEADER: usize = 5;

/// Bytes in the length field, which counts itself.
const LENGTH: usize = 4;

/// Longest message that is accepted. No server sends a longer one, because its largest memory
/// allocation is 1 GiB.
const LONGEST_MESSAGE: usize = 1 << 30;

/// Appends a message of this kind, whose body the closure writes.
pub(super) fn put(out: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    put_sized(out, body);
}

/// Appends a message without a kind, as a connection's first message is: its length, which counts
/// itself, and what `body` writes.
pub(super) fn put_sized(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH]);
    body(out);
    // A message too long for the field is also far too long for the server, which says so and
    // closes the connection.
    let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
    out[start..start + LENGTH].copy_from_slice(&length.to_be_bytes());
}

/// Appends a text and its final NUL.
pub(super) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
    out.push(0);
}

/// Returns the kind and the body length of the message that begins with `bytes`. The result is
/// `None` while its header is incomplete.
pub(super) fn header(bytes: &[u8]) -> Result<Option<(u8, usize)>, PostgresFault> {
    let Some(&[kind, length @ ..]) = bytes.first_chunk::<HEADER>() else { return Ok(None) };
    let length = u32::from_be_bytes(length) as usize;
    match length.checked_sub(LENGTH) {
        Some(body) if length <= LONGEST_MESSAGE => Ok(Some((kind, body))),
        _ => Err(PostgresFault::Malformed("a message of an impossible length")),
    }
}

/// The rest of a message's body. Each read takes bytes from its front and fails when they are
/// missing.
#[derive(Debug, Clone, Copy)]
pub(super) struct PostgresReader<'a>(pub(super) &'a [u8]);

impl<'a> PostgresReader<'a> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], PostgresFault> {
        let (head, tail) = self
            .0
            .split_at_checked(count)
            .ok_or(PostgresFault::Malformed("a message ends inside a value"))?;
        self.0 = tail;
        Ok(head)
    }

    pub(super) fn u8(&mut self) -> Result<u8, PostgresFault> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn u16(&mut self) -> Result<u16, PostgresFault> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    pub(super) fn u32(&mut self) -> Result<u32, PostgresFault> {
        let bytes = self.take(4)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// Reads a text up to its NUL.
    pub(super) fn text(&mut self) -> Result<&'a [u8], PostgresFault> {
        let end = self.0.iter().position(|&byte| byte == 0);
        let text = self.take(end.ok_or(PostgresFault::Malformed("a text without end"))?)?;
        self.u8()?;
        Ok(text)
    }

    /// Reads one column's value from a row. `None` is NULL.
    pub(super) fn value(&mut self) -> Result<Option<&'a [u8]>, PostgresFault> {
        match self.u32()? {
            u32::MAX => Ok(None),
            length => self.take(length as usize).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_message_includes_the_length_field() {
        let mut out = b"before".to_vec();
        put(&mut out, b'Q', |body| put_text(body, b"SELECT 1"));
        put(&mut out, b'S', |_| {});
        assert_eq!(out, b"beforeQ\0\0\0\x0dSELECT 1\0S\0\0\0\x04");
        assert_eq!(header(&out[6..]).expect("a header"), Some((b'Q', 9)));
        assert_eq!(header(b"S\0\0\0").expect("the beginning of a header"), None);
    }

    #[test]
    fn impossible_lengths_are_malformed() {
        for bytes in [b"D\0\0\0\x03", b"D\0\0\0\0", b"D\xff\xff\xff\xff", b"D\x40\0\0\x01"] {
            assert!(matches!(header(bytes), Err(PostgresFault::Malformed(_))), "{bytes:?}");
        }
    }

    #[test]
    fn fields_beyond_the_end_are_malformed() {
        assert!(matches!(PostgresReader(b"abc").text(), Err(PostgresFault::Malformed(_))));
        assert!(matches!(PostgresReader(b"\0").u16(), Err(PostgresFault::Malformed(_))));
        assert!(matches!(PostgresReader(b"\0\0\0\x05abc").value(), Err(PostgresFault::Malformed(_))));
        assert!(matches!(PostgresReader(b"\xff\xff\xff\xfe").value(), Err(PostgresFault::Malformed(_))));
        assert_eq!(PostgresReader(b"\xff\xff\xff\xff").value().expect("NULL"), None);
        assert_eq!(PostgresReader(b"\0\0\0\x01a").value().expect("a value"), Some(&b"a"[..]));
    }
}
