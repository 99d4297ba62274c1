//! The start of a PostgreSQL connection: what a client may send first, and the server's welcome.

use super::message::{put, put_ready, put_text};

/// Codes that may replace a protocol version.
const CANCEL: u32 = 80_877_102;
const TLS: u32 = 80_877_103;
const GSS: u32 = 80_877_104;

/// Protocol version 3.0.
const MAJOR: u32 = 3;

/// Longest first message that PostgreSQL accepts (`MAX_STARTUP_PACKET_LENGTH`).
const LONGEST: usize = 10_000;

/// The parameters reported to clients, which depend on them or print them.
const PARAMETERS: &[(&str, &str)] = &[
    ("server_version", "15.0 (dbdyno known-answer)"),
    ("server_encoding", "UTF8"),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO, MDY"),
    ("IntervalStyle", "postgres"),
    ("TimeZone", "UTC"),
    ("integer_datetimes", "on"),
    ("standard_conforming_strings", "on"),
    ("is_superuser", "off"),
];

/// The kinds of first message that a client may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    More,
    /// It asks for encryption. The answer is `N`, because there is none.
    Encryption(usize),
    Login {
        length: usize,
        /// Whether the client wants a later minor version than 3.0 and must be told the one in use.
        newer: bool,
    },
    /// It wants to cancel something, or cannot be understood.
    Close,
}

pub(super) fn first(input: &[u8]) -> First {
    let Some(&[l0, l1, l2, l3, c0, c1, c2, c3]) = input.first_chunk::<8>() else { return First::More };
    let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
    let code = u32::from_be_bytes([c0, c1, c2, c3]);
    if !(8..=LONGEST).contains(&length) {
        return First::Close;
    }
    if input.len() < length {
        return First::More;
    }
    match code {
        TLS | GSS => First::Encryption(length),
        CANCEL => First::Close,
        _ if code >> 16 == MAJOR => First::Login { length, newer: code & 0xffff > 0 },
        _ => First::Close,
    }
}

/// Appends the message that the minor version is 0 and that no option is known.
pub(super) fn put_negotiation(out: &mut Vec<u8>) {
    put(out, b'v', |body| body.extend_from_slice(&[0, 3, 0, 0, 0, 0, 0, 0]));
}

/// Appends the messages for a successful login. No password was needed.
pub(super) fn put_welcome(out: &mut Vec<u8>, connection: u64) {
    put(out, b'R', |body| body.extend_from_slice(&[0; 4]));
    for (name, value) in PARAMETERS {
        put(out, b'S', |body| {
            put_text(body, name.as_bytes());
            put_text(body, value.as_bytes());
        });
    }
    put(out, b'K', |body| {
        body.extend_from_slice(&(connection as u32).wrapping_add(1).to_be_bytes());
        body.extend_from_slice(&[0; 4]); // nothing can be cancelled
    });
    put_ready(out, b'I');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_messages_are_distinguished_however_they_are_cut() {
        let message = |code: u32, tail: &[u8]| {
            let length = 8 + tail.len() as u32;
            [&length.to_be_bytes(), code.to_be_bytes().as_slice(), tail].concat()
        };
        let login = message(3 << 16, b"user\0me\0\0");
        for end in 0..login.len() {
            assert_eq!(first(&login[..end]), First::More, "{end}");
        }
        assert_eq!(first(&login), First::Login { length: 17, newer: false });
        assert_eq!(first(&message((3 << 16) + 2, b"\0")), First::Login { length: 9, newer: true });
        assert_eq!(first(&message(TLS, b"")), First::Encryption(8));
        assert_eq!(first(&message(GSS, b"")), First::Encryption(8));
        assert_eq!(first(&message(CANCEL, &[0; 8])), First::Close);
        assert_eq!(first(&message(2 << 16, b"")), First::Close);
        assert_eq!(first(&[0; 8]), First::Close);
        assert_eq!(first(b"GET / HTTP/1.1"), First::Close);
    }
}
