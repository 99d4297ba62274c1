//! Limits on how much of a server's data is kept in memory, by purpose. All other data is counted
//! in the buffer and skipped. So no server, and no one who poses as one, can fill the memory of the
//! measuring machine.

use std::mem::size_of;

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

    /// Subtracts what a row with so many values needs besides the bytes of its values.
    pub(crate) fn take_row(&mut self, values: usize) -> Result<(), &'static str> {
        self.take(size_of::<Vec<Option<String>>>() + values * size_of::<Option<String>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
