//! Sends and receives packets over a byte stream. One output and one input buffer last for the
//! session's whole life.

use std::future::poll_fn;
use std::io::IoSlice;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::AsyncWriteExt;

use super::fault::MysqlFault;
use super::outgoing::{HEADER, MAX_PAYLOAD, Outgoing};
use super::packet::{self, Form};
use super::scan::{MysqlScanStep, MysqlScanner};
use crate::input::{FIRST_SIZE, Input};
use crate::receive_limits::ReceiveLimits;
use crate::stream::{ByteStream, write_whole};

/// Length from which a body is not copied. Below it, copying costs the kernel less than gathering
/// two pieces.
const WORTH_GATHERING: usize = 1024;

/// Time for reading what a server said before it closed the connection. The text lies in the socket
/// already, or never comes.
const LAST_WORDS: Duration = Duration::from_secs(1);

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

    /// Subtracts what a row with so many values needs from what may be kept.
    pub(super) fn keep_row(&mut self, values: usize) -> Result<(), MysqlFault> {
        self.receive_limits.take_row(values).map_err(MysqlFault::TooLarge)
    }

    /// Returns the bare stream and the next packet's number, to continue with [`MysqlWire::resumed`]
    /// inside TLS. Bytes that arrived ahead of TLS are refused, because anyone may have sent them.
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

    /// Returns the buffer for the next message, which [`MysqlWire::send`] or [`MysqlWire::reply`] sends.
    pub(super) fn message(&mut self) -> &mut Vec<u8> {
        self.outgoing.start()
    }

    /// Sends the message as a new command.
    pub(super) fn send(&mut self) -> impl Future<Output = Result<(), MysqlFault>> {
        let checked = self.check_all_taken();
        self.sequence = 0;
        self.send_checked(checked)
    }

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

    /// Sends `piece`, shorter than the longest packet, as the next packet in the current exchange,
    /// without a copy.
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
        tokio::time::timeout(LAST_WORDS, self.read(&mut payload)).await.ok()?.ok()?;
        (payload[0] == 0xff).then(|| packet::server_error(&payload))
    }

    /// Overwrites the message sent last.
    pub(super) fn wipe(&mut self) {
        self.outgoing.wipe();
    }

    /// Starts a scan over the answer to what was just sent.
    pub(super) fn scanner(&self, form: Form) -> MysqlScanner {
        MysqlScanner::new(form, self.sequence)
    }

    /// Lets `scanner` process what has arrived, and reads more until it needs something other than
    /// bytes.
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

    /// Reads one whole message into `payload`. Everything that is kept is shorter than a packet
    /// that another one continues.
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
}
