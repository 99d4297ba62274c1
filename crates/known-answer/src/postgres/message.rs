//! PostgreSQL messages: framing, and the messages that are the same in every answer.
//!
//! Source: section "Message Formats" in the chapter "Frontend/Backend Protocol" of PostgreSQL's
//! documentation.

/// Bytes before each message's body: kind and length.
pub(super) const HEADER: usize = 5;

/// Type for all columns and parameters, a text of any length: `text` in `pg_type.dat`.
pub(super) const TEXT: u32 = 25;

pub(super) fn put(out: &mut Vec<u8>, kind: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[kind, 0, 0, 0, 0]);
    fill(out);
    // The length counts itself but not the kind. Answers are limited to far less than 4 GiB.
    let length = (out.len() - start - 1) as u32;
    out[start + 1..start + HEADER].copy_from_slice(&length.to_be_bytes());
}

pub(super) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
    out.push(0);
}

/// Appends `ReadyForQuery` with the transaction's state.
pub(super) fn put_ready(out: &mut Vec<u8>, state: u8) {
    out.extend_from_slice(&[b'Z', 0, 0, 0, 5, state]);
}

/// Appends a message without a body: `ParseComplete`, `BindComplete`, `CloseComplete`, `NoData`,
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
