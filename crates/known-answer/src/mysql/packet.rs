//! MySQL packets: framing with numbers and continuation, OK, ERR, EOF, column definitions.
//!
//! Sources: the pages "MySQL packets", "Generic response packets" and "Text resultset" in MySQL's
//! documentation of its client/server protocol.

/// Bytes before each packet's payload: length and number.
pub(super) const HEADER: usize = 4;

/// A payload with this length is continued in the next packet.
pub(super) const MAX_PAYLOAD: usize = 0xff_ffff;

/// Status bits.
pub(super) const IN_TRANSACTION: u16 = 0x0001;
pub(super) const AUTOCOMMIT: u16 = 0x0002;

/// The type `VAR_STRING`; its collation is utf8mb4_general_ci.
const TEXT_TYPE: u8 = 0xfd;
const TEXT_COLLATION: u16 = 45;
/// The type `LONGLONG`, with the collation for values that are no text.
const INTEGER_TYPE: u8 = 0x08;
const BINARY_COLLATION: u16 = 63;

/// Packets with consecutive numbers, which are appended to a buffer.
pub(super) struct Packets<'a> {
    out: &'a mut Vec<u8>,
    number: u8,
}

impl<'a> Packets<'a> {
    /// Appends to `out`. The first packet has the number `number`.
    pub(super) fn new(out: &'a mut Vec<u8>, number: u8) -> Self {
        Self { out, number }
    }

    /// Appends one packet, with continuations if `fill` writes 16 MiB or more.
    pub(super) fn put(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        let start = self.out.len();
        self.out.extend_from_slice(&[0; HEADER]);
        fill(self.out);
        let length = self.out.len() - start - HEADER;
        if length < MAX_PAYLOAD {
            self.header(start, length);
            return;
        }
        let payload = self.out.split_off(start + HEADER);
        self.out.truncate(start);
        let mut rest = payload.as_slice();
        loop {
            let (chunk, after) = rest.split_at(rest.len().min(MAX_PAYLOAD));
            let start = self.out.len();
            self.out.extend_from_slice(&[0; HEADER]);
            self.out.extend_from_slice(chunk);
            self.header(start, chunk.len());
            rest = after;
            // Another chunk follows one with the full length, even if it is empty.
            if chunk.len() < MAX_PAYLOAD {
                return;
            }
        }
    }

    fn header(&mut self, at: usize, length: usize) {
        let bytes = (length as u32).to_le_bytes();
        self.out[at..at + HEADER].copy_from_slice(&[bytes[0], bytes[1], bytes[2], self.number]);
        self.number = self.number.wrapping_add(1);
    }

    pub(super) fn ok(&mut self, affected: u8, status: u16) {
        let [low, high] = status.to_le_bytes();
        self.put(|out| out.extend_from_slice(&[0x00, affected, 0, low, high, 0, 0]));
    }

    /// Appends the end of columns or rows in the old form.
    pub(super) fn eof(&mut self, status: u16) {
        let [low, high] = status.to_le_bytes();
        self.put(|out| out.extend_from_slice(&[0xfe, 0, 0, low, high]));
    }

    /// Appends the end of rows, in the form that the client has requested.
    pub(super) fn rows_end(&mut self, status: u16, deprecate_eof: bool) {
        if deprecate_eof {
            let [low, high] = status.to_le_bytes();
            self.put(|out| out.extend_from_slice(&[0xfe, 0, 0, low, high, 0, 0]));
        } else {
            self.eof(status);
        }
    }

    pub(super) fn error(&mut self, code: u16, state: &str, message: &str) {
        self.put(|out| {
            out.push(0xff);
            out.extend_from_slice(&code.to_le_bytes());
            out.push(b'#');
            out.extend_from_slice(state.as_bytes());
            out.extend_from_slice(message.as_bytes());
        });
    }

    /// Appends the definition of a text column that is `bytes` long.
    pub(super) fn text_column(&mut self, name: &str, bytes: u32) {
        self.column(name, TEXT_TYPE, TEXT_COLLATION, bytes.saturating_mul(4));
    }

    /// Appends the definition of a parameter, whose type the client chooses.
    pub(super) fn parameter(&mut self) {
        self.column("?", INTEGER_TYPE, BINARY_COLLATION, 21);
    }

    fn column(&mut self, name: &str, kind: u8, collation: u16, length: u32) {
        self.put(|out| {
            for text in ["def", "", "", "", name, ""] {
                put_text(out, text.as_bytes());
            }
            out.push(12); // bytes of the fixed part
            out.extend_from_slice(&collation.to_le_bytes());
            out.extend_from_slice(&length.to_le_bytes());
            out.push(kind);
            out.extend_from_slice(&[0, 0, 0, 0, 0]); // flags, decimals, filler
        });
    }
}

/// Appends a number in as few bytes as it needs.
pub(super) fn put_number(out: &mut Vec<u8>, number: u64) {
    let bytes = number.to_le_bytes();
    match number {
        0..=250 => out.push(bytes[0]),
        251..=0xffff => put_prefixed(out, 0xfc, &bytes[..2]),
        0x1_0000..=0xff_ffff => put_prefixed(out, 0xfd, &bytes[..3]),
        _ => put_prefixed(out, 0xfe, &bytes),
    }
}

fn put_prefixed(out: &mut Vec<u8>, prefix: u8, bytes: &[u8]) {
    out.push(prefix);
    out.extend_from_slice(bytes);
}

/// Appends a text after its length.
pub(super) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_its_length_and_its_number_in_front() {
        let mut out = Vec::new();
        let mut packets = Packets::new(&mut out, 255);
        packets.ok(1, AUTOCOMMIT);
        packets.eof(AUTOCOMMIT | IN_TRANSACTION);
        assert_eq!(out, b"\x07\0\0\xff\0\x01\0\x02\0\0\0\x05\0\0\0\xfe\0\0\x03\0");
    }

    #[test]
    fn a_payload_of_16_mib_and_more_is_continued() {
        let lengths = |payload: usize| {
            let mut out = Vec::new();
            Packets::new(&mut out, 7).put(|out| out.resize(out.len() + payload, b'x'));
            let mut found = Vec::new();
            let mut rest = out.as_slice();
            while !rest.is_empty() {
                let length = usize::from(rest[0]) | usize::from(rest[1]) << 8 | usize::from(rest[2]) << 16;
                found.push((length, rest[3]));
                rest = &rest[HEADER + length..];
            }
            found
        };
        assert_eq!(lengths(MAX_PAYLOAD - 1), [(MAX_PAYLOAD - 1, 7)]);
        assert_eq!(lengths(MAX_PAYLOAD), [(MAX_PAYLOAD, 7), (0, 8)]);
        assert_eq!(lengths(2 * MAX_PAYLOAD + 5), [(MAX_PAYLOAD, 7), (MAX_PAYLOAD, 8), (5, 9)]);
    }

    #[test]
    fn numbers_take_as_few_bytes_as_they_need() {
        let put = |number| {
            let mut out = Vec::new();
            put_number(&mut out, number);
            out
        };
        assert_eq!(put(250), [250]);
        assert_eq!(put(251), [0xfc, 251, 0]);
        assert_eq!(put(0x1_0000), [0xfd, 0, 0, 1]);
        assert_eq!(put(0x100_0000), [0xfe, 0, 0, 0, 1, 0, 0, 0, 0]);
    }
}
