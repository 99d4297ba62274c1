//! A session's only output buffer. A message is built after its packet header, and split where it
//! is too long.

/// Longest payload in one packet. A packet with exactly this length says that another one follows.
pub(super) const MAX_PAYLOAD: usize = 0xff_ffff;

/// Bytes in a packet header: three for the length, one for the sequence number.
pub(super) const HEADER: usize = 4;

/// A message under construction. The header's place is reserved from the start, so that nothing
/// must be moved later.
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
    pub(super) fn seal(&mut self, first: u8) -> usize {
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

    /// Overwrites what was sent last, so that a login leaves no password in memory.
    pub(super) fn wipe(&mut self) {
        self.bytes.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
