//! What has been read and not yet taken. The buffer is filled with zeroes once, not before every
//! read.

use std::io;
use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// First size: a server's own network buffer, so that most answers come with one read.
pub(crate) const FIRST_SIZE: usize = 16 << 10;

/// A buffer grows up to this while reads fill it: large results come with fewer system calls.
pub(crate) const LARGEST_SIZE: usize = 256 << 10;

/// A buffer that is read into at its end and taken from at its front.
#[derive(Debug)]
pub(crate) struct Input {
    /// Always initialised to its whole length; the first `filled` bytes are from the server.
    bytes: Vec<u8>,
    filled: usize,
}

impl Input {
    pub(crate) fn new(size: usize) -> Self {
        Self { bytes: vec![0; size], filled: 0 }
    }

    /// One read into the spare room. Returns what it brought: 0 at the end of the stream.
    ///
    /// This and what calls it are functions to be polled and no futures: a load client passes
    /// through here twice for each statement, once to find nothing and once to find the answer, and
    /// each future between would cost it every time.
    #[inline(always)]
    pub(crate) fn poll_read_from<S: AsyncRead + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut S,
    ) -> Poll<io::Result<usize>> {
        let mut room = ReadBuf::new(self.room());
        ready!(Pin::new(stream).poll_read(context, &mut room))?;
        let read = room.filled().len();
        self.filled(read);
        if self.is_full() && self.size() < LARGEST_SIZE {
            self.grow();
        }
        Poll::Ready(Ok(read))
    }

    /// Takes `count` bytes from the front; the rest moves there.
    #[inline]
    pub(crate) fn take(&mut self, count: usize) {
        if count < self.filled {
            self.bytes.copy_within(count..self.filled, 0);
        }
        self.filled -= count;
    }

    /// Where the next read goes. Never empty: a full buffer doubles.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.is_full() {
            self.grow();
        }
        &mut self.bytes[self.filled..]
    }

    /// A read brought `count` bytes.
    pub(crate) fn filled(&mut self, count: usize) {
        self.filled += count;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.filled == self.bytes.len()
    }

    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn grow(&mut self) {
        self.bytes.resize(self.bytes.len() * 2, 0);
    }
}

impl Deref for Input {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.filled]
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
}
