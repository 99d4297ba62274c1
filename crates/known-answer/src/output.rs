//! The bytes to send to a client. Large answers are sent without a copy.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

/// Largest answer in bytes that is copied to the bytes that wait to be sent. Larger answers are
/// sent from their own buffer.
const COPIED: usize = 32 * 1024;

/// The data that waits to be sent on one connection.
#[derive(Debug, Default)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    /// Number of bytes at the start of `bytes` that have been sent.
    sent: usize,
    /// A large answer that follows `bytes`.
    large: Option<(Arc<[u8]>, Range<usize>)>,
}

impl Output {
    /// The buffer for short answers. No large answer may wait.
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        debug_assert!(self.large.is_none(), "nothing may overtake a large answer");
        &mut self.bytes
    }

    /// Appends the part `range` of an answer that many connections share.
    pub(crate) fn put_shared(&mut self, answer: &Arc<[u8]>, range: Range<usize>) {
        if range.len() <= COPIED {
            self.bytes().extend_from_slice(&answer[range]);
        } else {
            self.large = Some((Arc::clone(answer), range));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.large.is_none()
    }

    /// Whether the output must be sent before more can be appended.
    pub(crate) fn is_full(&self) -> bool {
        self.large.is_some() || self.bytes.len() > COPIED
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.sent + self.large.as_ref().map_or(0, |(_, range)| range.len())
    }

    /// Keeps the first `length` waiting bytes and returns the others.
    pub(crate) fn split_off(&mut self, length: usize) -> Self {
        let buffered = self.bytes.len() - self.sent;
        if length <= buffered {
            let bytes = self.bytes.split_off(self.sent + length);
            return Self { bytes, sent: 0, large: self.large.take() };
        }
        let mut rest = Self::default();
        if let Some((answer, range)) = &mut self.large {
            let middle = (range.start + length - buffered).min(range.end);
            if middle < range.end {
                rest.large = Some((Arc::clone(answer), middle..range.end));
                range.end = middle;
            }
        }
        rest
    }

    /// Appends `rest` to the waiting bytes. No large answer may wait.
    pub(crate) fn put_rest(&mut self, rest: Self) {
        self.bytes().extend_from_slice(&rest.bytes[rest.sent..]);
        self.large = rest.large;
    }

    /// Sends as much as the socket accepts. The first value is `true` when nothing is left. The
    /// second value is the number of bytes sent.
    pub(crate) fn send(&mut self, mut stream: impl Write) -> io::Result<(bool, u64)> {
        let mut total = 0;
        loop {
            let waiting = match &self.large {
                _ if self.sent < self.bytes.len() => &self.bytes[self.sent..],
                Some((answer, range)) => &answer[range.clone()],
                None => {
                    self.bytes.clear();
                    self.sent = 0;
                    return Ok((true, total));
                }
            };
            let sent = match stream.write(waiting) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok((false, total)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            total += sent as u64;
            self.mark_sent(sent);
        }
    }

    fn mark_sent(&mut self, sent: usize) {
        if self.sent < self.bytes.len() {
            self.sent += sent;
        } else if let Some((_, range)) = &mut self.large {
            range.start += sent;
            if range.start == range.end {
                self.large = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream that accepts three bytes in one write and none in the next.
    #[derive(Default)]
    struct SlowStream {
        taken: Vec<u8>,
        blocked: bool,
    }

    impl Write for &mut SlowStream {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.blocked = !self.blocked;
            if self.blocked {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let some = bytes.len().min(300);
            self.taken.extend_from_slice(&bytes[..some]);
            Ok(some)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn everything_arrives_once_and_in_order_through_a_slow_stream() {
        let answer: Arc<[u8]> = (0..COPIED + 1000).map(|n| (n % 251) as u8).collect();
        let mut output = Output::default();
        output.bytes().extend_from_slice(b"before");
        output.put_shared(&answer, 0..50);
        output.put_shared(&answer, 50..answer.len());
        assert!(output.is_full() && !output.is_empty());
        assert!(drained(&mut output) == [b"before", &answer[..]].concat());
        assert!(output.is_empty() && !output.is_full());
    }

    fn drained(output: &mut Output) -> Vec<u8> {
        let mut socket = SlowStream::default();
        let (expected, mut total) = (output.len(), 0);
        loop {
            let (done, sent) = output.send(&mut socket).expect("sent");
            total += sent as usize;
            if done {
                assert_eq!((total, socket.taken.len()), (expected, expected));
                return socket.taken;
            }
        }
    }

    #[test]
    fn an_answer_can_be_cut_anywhere() {
        let answer: Arc<[u8]> = (0..COPIED + 100).map(|n| (n % 251) as u8).collect();
        let whole = [b"before", &answer[..]].concat();
        for length in [0, 3, 6, 7, 1000, whole.len() - 1, whole.len()] {
            let mut output = Output::default();
            output.bytes().extend_from_slice(b"before");
            output.put_shared(&answer, 0..answer.len());
            let rest = output.split_off(length);
            assert_eq!((output.len(), rest.len()), (length, whole.len() - length));
            assert!(drained(&mut output) == whole[..length]);
            output.put_rest(rest);
            assert!(drained(&mut output) == whole[length..]);
        }
    }
}
