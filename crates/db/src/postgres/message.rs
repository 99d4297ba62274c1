//! Message framing: one byte for the kind, four for the length, and a body. Also reads the fields
//! inside bodies.

use super::fault::PostgresFault;

/// Bytes before a message's body.
pub(super) const HEADER: usize = 5;

/// Bytes in the length field, which counts itself.
const LENGTH: usize = 4;

/// Longest message that is accepted. No server sends a longer one, because its largest memory
/// allocation is 1 GiB.
const LONGEST: usize = 1 << 30;

/// Appends a message with the kind `kind`. The closure writes its body.
pub(super) fn put(out: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    put_sized(out, body);
}

/// Appends a message without a kind: its length, which counts itself, and what `body` writes.
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

/// Kind and body length of the message that begins with `bytes`. The result is `None` while its
/// header is incomplete.
pub(super) fn header(bytes: &[u8]) -> Result<Option<(u8, usize)>, PostgresFault> {
    let Some(&[kind, length @ ..]) = bytes.first_chunk::<HEADER>() else { return Ok(None) };
    let length = u32::from_be_bytes(length) as usize;
    match length.checked_sub(LENGTH) {
        Some(body) if length <= LONGEST => Ok(Some((kind, body))),
        _ => Err(PostgresFault::Malformed("a message of an impossible length")),
    }
}

/// Bytes that are read from a body's front, with a check at each step.
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

    /// Reads a row's value. `None` is NULL.
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
    fn a_message_says_its_length_with_the_length_field_in_it() {
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
