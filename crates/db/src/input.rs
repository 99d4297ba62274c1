//! The input buffer: bytes that have been read but not yet used. It is filled with zeroes once, and
//! not before every read.
//!
//! [`ReceiveLimits`] limit how much of a server's data is kept in memory for one purpose. All other
//! data is counted in the buffer and skipped. So no server, and no one who poses as one, can fill
//! the memory of the measuring machine.

use std::future::poll_fn;
use std::mem::size_of;
use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use crate::error::WireFault;

/// First size. It is a server's own network buffer, so that most answers need one read.
pub(crate) const FIRST_SIZE: usize = 16 << 10;

/// Size up to which a buffer grows while reads fill it. Large results then need fewer system calls.
const LARGEST_SIZE: usize = 256 << 10;

/// A buffer that is read into at its end and emptied at its front.
#[derive(Debug)]
pub(crate) struct Input {
    /// The buffer, always initialised to its whole length. The bytes from `taken` to `filled` are
    /// from the server and not yet used.
    bytes: Vec<u8>,
    taken: usize,
    filled: usize,
}

impl Input {
    pub(crate) fn new(size: usize) -> Self {
        Self { bytes: vec![0; size], taken: 0, filled: 0 }
    }

    /// Takes the next `count` bytes into `body`, which then holds nothing else.
    pub(crate) async fn read<S: AsyncRead + Unpin, W>(
        &mut self,
        stream: &mut S,
        count: usize,
        body: &mut Vec<u8>,
    ) -> Result<(), WireFault<W>> {
        body.clear();
        while body.len() < count {
            if self.is_empty() {
                self.fill(stream).await?;
            }
            let piece = (count - body.len()).min(self.len());
            body.extend_from_slice(&self[..piece]);
            self.take(piece);
        }
        Ok(())
    }

    pub(crate) async fn fill<S: AsyncRead + Unpin, W>(&mut self, stream: &mut S) -> Result<(), WireFault<W>> {
        poll_fn(|context| self.poll_fill(context, stream)).await
    }

    /// Performs one read into the free space.
    ///
    /// This function and its callers are poll functions instead of futures. A load client calls it
    /// twice for each statement: the first call finds nothing, and the second finds the answer.
    /// Each future in the call chain would cost time.
    #[inline(always)]
    pub(crate) fn poll_fill<S: AsyncRead + Unpin, W>(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut S,
    ) -> Poll<Result<(), WireFault<W>>> {
        let mut room = ReadBuf::new(self.room());
        ready!(Pin::new(stream).poll_read(context, &mut room))?;
        let read = room.filled().len();
        self.filled(read);
        if self.is_full() && self.size() < LARGEST_SIZE {
            self.grow();
        }
        Poll::Ready(if read == 0 { Err(WireFault::Closed) } else { Ok(()) })
    }

    /// Takes `count` bytes from the front.
    #[inline]
    pub(crate) fn take(&mut self, count: usize) {
        self.taken += count;
    }

    /// The free space for the next read. Unused bytes move to the front first. It is never empty,
    /// because a full buffer doubles.
    #[inline]
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.taken < self.filled {
            self.bytes.copy_within(self.taken..self.filled, 0);
        }
        self.filled -= std::mem::take(&mut self.taken);
        if self.is_full() {
            self.grow();
        }
        &mut self.bytes[self.filled..]
    }

    /// Notes that a read brought `count` bytes.
    pub(crate) fn filled(&mut self, count: usize) {
        self.filled += count;
    }

    fn is_full(&self) -> bool {
        self.filled == self.bytes.len()
    }

    fn size(&self) -> usize {
        self.bytes.len()
    }

    fn grow(&mut self) {
        self.bytes.resize(self.bytes.len() * 2, 0);
    }
}

impl Deref for Input {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.taken..self.filled]
    }
}

/// Bytes that may still be kept in the current exchange. They are subtracted when a length is read,
/// before any data with that length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceiveLimits {
    left: usize,
    exceeded: &'static str,
}

impl ReceiveLimits {
    /// The limit for a login, with all its messages together. A regular one has a few KiB.
    pub(crate) const LOGIN: Self =
        Self { left: 64 << 10, exceeded: "the server sent more than 64 KiB before the login was done" };

    /// The limit for the answer to one of dbdyno's own queries, including what its rows take in
    /// memory.
    pub(crate) const ANSWER: Self =
        Self { left: 8 << 20, exceeded: "the answer is larger than the 8 MiB that dbdyno keeps of one" };

    /// Subtracts `bytes`. The error says which limit was exceeded.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), &'static str> {
        self.left = self.left.checked_sub(bytes).ok_or(self.exceeded)?;
        Ok(())
    }

    /// Subtracts the memory that a row with this number of values needs besides the values' bytes.
    pub(crate) fn take_row(&mut self, values: usize) -> Result<(), &'static str> {
        self.take(size_of::<Vec<Option<String>>>() + values * size_of::<Option<String>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_in_the_order_in_which_they_were_read() {
        let mut input = Input::new(4);
        input.room()[..3].copy_from_slice(b"abc");
        input.filled(3);
        input.take(2);
        assert_eq!(&input[..], b"c");
        input.room()[..3].copy_from_slice(b"def");
        input.filled(3);
        assert!(input.is_full());
        input.room()[..2].copy_from_slice(b"gh");
        input.filled(2);
        assert_eq!((&input[..], input.size()), (&b"cdefgh"[..], 8));
    }

    #[test]
    fn receive_limits_end_with_their_last_byte() {
        let mut login = ReceiveLimits::LOGIN;
        login.take(64 << 10).expect("all of it");
        assert_eq!(login.take(0), Ok(()));
        assert_eq!(login.take(1), Err("the server sent more than 64 KiB before the login was done"));
        let mut answer = ReceiveLimits::ANSWER;
        answer.take_row(65_535).expect("one wide row");
        assert!((0..10).any(|_| answer.take_row(65_535).is_err()), "wide rows of NULLs are not free");
        assert!(answer.take(usize::MAX).is_err());
    }
}
