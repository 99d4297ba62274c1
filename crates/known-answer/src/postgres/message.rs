//! PostgreSQL messages: framing, and those that are the same in every answer.
//!
//! Source: PostgreSQL's documentation, chapter "Frontend/Backend Protocol", section "Message
//! Formats".

/// Bytes before each message's body: kind, length.
pub(super) const HEADER: usize = 5;

/// A text of unknown length, the type of all columns and parameters: `text` in `pg_type.dat`.
pub(super) const TEXT: u32 = 25;

pub(super) fn put(out: &mut Vec<u8>, kind: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[kind, 0, 0, 0, 0]);
    fill(out);
    // The length counts itself, not the kind. Answers are limited to far less than 4 GiB.
    let length = (out.len() - start - 1) as u32;
    out[start + 1..start + HEADER].copy_from_slice(&length.to_be_bytes());
}

pub(super) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
    out.push(0);
}

/// `ReadyForQuery` with the state of the transaction.
pub(super) fn put_ready(out: &mut Vec<u8>, state: u8) {
    out.extend_from_slice(&[b'Z', 0, 0, 0, 5, state]);
}

/// A message without a body: `ParseComplete`, `BindComplete`, `CloseComplete`, `NoData`,
/// `EmptyQueryResponse`.
pub(super) fn put_bare(out: &mut Vec<u8>, kind: u8) {
    out.extend_from_slice(&[kind, 0, 0, 0, 4]);
}

pub(super) fn put_complete(out: &mut Vec<u8>, tag: &[u8]) {
    put(out, b'C', |body| put_text(body, tag));
}

pub(super) fn put_error(out: &mut Vec<u8>, severity: &str, state: &str, message: &str) {
    put(out, b'E', |body| {
        for (field, text) in [(b'S', severity), (b'V', severity), (b'C', state), (b'M', message)] {
            body.push(field);
            put_text(body, text.as_bytes());
        }
        body.push(0);
    });
}

/// The text up to the next NUL, and what follows.
pub(super) fn until_nul(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| *byte == 0)?;
    Some((&text[..end], &text[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_bytes_of_the_documentation() {
        let mut out = Vec::new();
        put_complete(&mut out, b"SELECT 1");
        put_ready(&mut out, b'T');
        put_bare(&mut out, b'1');
        put_error(&mut out, "ERROR", "40P01", "no");
        assert_eq!(
            out,
            b"C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05T1\0\0\0\x04E\0\0\0\x1eSERROR\0VERROR\0C40P01\0Mno\0\0"
        );
    }
}
