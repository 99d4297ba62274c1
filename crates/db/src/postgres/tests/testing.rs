//! Messages as a server would send them, for the tests in this folder.

use super::wire::{put, put_sized, put_text};

/// One message.
pub(super) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, kind, |out| out.extend_from_slice(body));
    out
}

/// The end of a statement.
pub(super) fn complete(tag: &str) -> Vec<u8> {
    message(b'C', format!("{tag}\0").as_bytes())
}

/// The message that the server is ready for the next query.
pub(super) fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

/// An error that the session survives.
pub(super) fn error(state: &str, text: &str) -> Vec<u8> {
    message(b'E', format!("SERROR\0VERROR\0C{state}\0M{text}\0\0").as_bytes())
}

/// An error that ends the session.
pub(super) fn fatal(state: &str, text: &str) -> Vec<u8> {
    message(b'E', format!("SFATAL\0VFATAL\0C{state}\0M{text}\0\0").as_bytes())
}

pub(super) fn notice(text: &str) -> Vec<u8> {
    message(b'N', format!("SNOTICE\0VNOTICE\0C00000\0M{text}\0\0").as_bytes())
}

/// A parameter's new value, which a server may send at any time.
pub(super) fn parameter(name: &str, value: &str) -> Vec<u8> {
    message(b'S', format!("{name}\0{value}\0").as_bytes())
}

/// The description of two columns.
pub(super) fn two_columns() -> Vec<u8> {
    let column =
        |name: &str| [name.as_bytes(), b"\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0"].concat();
    message(b'T', &[b"\0\x02".to_vec(), column("one"), column("two")].concat())
}

/// A row with these values.
pub(super) fn row(values: &[Option<&[u8]>]) -> Vec<u8> {
    let mut body = (values.len() as u16).to_be_bytes().to_vec();
    for value in values {
        match value {
            None => body.extend_from_slice(&[0xff; 4]),
            Some(bytes) => {
                body.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
                body.extend_from_slice(bytes);
            }
        }
    }
    message(b'D', &body)
}

/// A row with two short values.
pub(super) fn short_row() -> Vec<u8> {
    row(&[Some(b"1"), None])
}

/// The description of a statement with these parameters and one column.
pub(super) fn described(types: &[u32]) -> Vec<Vec<u8>> {
    let mut parameters = (types.len() as u16).to_be_bytes().to_vec();
    parameters.extend(types.iter().flat_map(|kind| kind.to_be_bytes()));
    vec![message(b'1', b""), message(b't', &parameters), message(b'T', b"\0\x01..."), ready()]
}

/// The start of a session after its login.
pub(super) fn welcome() -> Vec<u8> {
    [parameter("server_version", "15.19"), message(b'K', b"\0\0\x12\x34\0\0\0\x05"), ready()].concat()
}

/// A start-up message as a client would send it, for comparison.
pub(super) fn startup(pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    put_sized(&mut out, |body| {
        body.extend_from_slice(&[0, 3, 0, 0]);
        for (name, value) in pairs {
            put_text(body, name.as_bytes());
            put_text(body, value.as_bytes());
        }
        body.push(0);
    });
    out
}
