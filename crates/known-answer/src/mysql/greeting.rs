//! The start of a MySQL connection: the server's greeting, and the client's response to it.

use super::packet::Packets;

/// The version reported to clients. It is high enough that none of them takes the server for an old
/// one.
pub(super) const VERSION: &str = "8.0.0-dbdyno-known-answer";

/// The only authentication method. It accepts any password.
pub(super) const PLUGIN: &[u8] = b"mysql_native_password";

/// Both parts of the nonce. It protects nothing, so it need not be random.
const NONCE: [&[u8]; 2] = [b"dbdynokn", b"ownanswer123"];

/// Capability bits.
const CONNECT_WITH_DB: u32 = 0x8;
const SECURE_CONNECTION: u32 = 0x8000;
const PLUGIN_AUTH: u32 = 0x8_0000;
const PLUGIN_AUTH_LENENC: u32 = 0x20_0000;
pub(super) const DEPRECATE_EOF: u32 = 0x100_0000;

/// The offered capabilities: long passwords, found rows, long flags, CONNECT_WITH_DB, protocol 4.1,
/// interactive, transactions, SECURE_CONNECTION, several results, PLUGIN_AUTH, connection
/// attributes, PLUGIN_AUTH_LENENC.
const OFFERED: u32 = 0x1
    | 0x2
    | 0x4
    | CONNECT_WITH_DB
    | 0x200
    | 0x400
    | 0x2000
    | SECURE_CONNECTION
    | 0x2_0000
    | 0x4_0000
    | PLUGIN_AUTH
    | 0x10_0000
    | PLUGIN_AUTH_LENENC;

/// Appends a connection's first packet.
pub(super) fn put_greeting(out: &mut Vec<u8>, connection: u64, deprecate_eof: bool) {
    let offered = OFFERED | if deprecate_eof { DEPRECATE_EOF } else { 0 };
    let [c0, c1, c2, c3] = offered.to_le_bytes();
    Packets::new(out, 0).put(|out| {
        out.push(10);
        out.extend_from_slice(VERSION.as_bytes());
        out.push(0);
        out.extend_from_slice(&(connection as u32).wrapping_add(1).to_le_bytes());
        out.extend_from_slice(NONCE[0]);
        out.extend_from_slice(&[0, c0, c1, 45, 2, 0, c2, c3, 21]); // utf8mb4, autocommit, 21 bytes of nonce
        out.extend_from_slice(&[0; 10]);
        out.extend_from_slice(NONCE[1]);
        out.push(0);
        out.extend_from_slice(PLUGIN);
        out.push(0);
    });
}

/// Asks for another authentication method, with the same nonce.
pub(super) fn put_switch(out: &mut Vec<u8>, number: u8) {
    Packets::new(out, number).put(|out| {
        out.push(0xfe);
        out.extend_from_slice(PLUGIN);
        out.push(0);
        out.extend_from_slice(NONCE[0]);
        out.extend_from_slice(NONCE[1]);
        out.push(0);
    });
}

/// A client's response to the greeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) capabilities: u32,
    /// Whether the password was prepared for another method than [`PLUGIN`].
    pub(super) other_plugin: bool,
}

impl Response {
    /// Reads the payload. The result is `None` when it ends too early.
    pub(super) fn parse(payload: &[u8]) -> Option<Self> {
        let (capabilities, _) = payload.split_first_chunk::<4>()?;
        let capabilities = u32::from_le_bytes(*capabilities);
        let common = capabilities & OFFERED;
        // The fixed part has capabilities, largest packet, character set and filler.
        let mut rest = until_nul(payload.get(32..)?)?.1;
        let length = usize::from(*rest.first()?);
        rest = if common & (PLUGIN_AUTH_LENENC | SECURE_CONNECTION) != 0 {
            rest.get(1 + length..)?
        } else {
            until_nul(rest)?.1
        };
        if common & CONNECT_WITH_DB != 0 {
            rest = until_nul(rest)?.1;
        }
        let named = common & PLUGIN_AUTH != 0;
        let plugin = until_nul(rest).map_or(rest, |(name, _)| name);
        Some(Self { capabilities, other_plugin: named && !plugin.is_empty() && plugin != PLUGIN })
    }
}

fn until_nul(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| *byte == 0)?;
    Some((&text[..end], &text[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(capabilities: u32, tail: &[u8]) -> Vec<u8> {
        [&capabilities.to_le_bytes(), [0; 28].as_slice(), tail].concat()
    }

    #[test]
    fn a_greeting_has_the_bytes_of_the_documentation() {
        let mut out = Vec::new();
        put_greeting(&mut out, 6, true);
        assert_eq!(out[..5], [out.len() as u8 - 4, 0, 0, 0, 10]);
        let after_version = &out[5 + VERSION.len() + 1..];
        assert_eq!(&after_version[..4], &7_u32.to_le_bytes());
        assert_eq!(&after_version[4..12], b"dbdynokn");
        assert!(out.ends_with(b"\0ownanswer123\0mysql_native_password\0"));
    }

    #[test]
    fn the_clients_method_is_found_after_password_and_database() {
        let all = OFFERED | DEPRECATE_EOF;
        let check = |capabilities, tail: &[u8], other_plugin| {
            let parsed = Response::parse(&response(capabilities, tail));
            assert_eq!(parsed, Some(Response { capabilities, other_plugin }), "{tail:?}");
        };
        check(all, b"me\0\x03abcdb\0mysql_native_password\0attributes", false);
        check(all, b"me\0\x03abcdb\0caching_sha2_password\0", true);
        check(all, b"me\0\0db\0caching_sha2_password", true);
        check(all & !CONNECT_WITH_DB, b"me\0\0mysql_native_password\0", false);
        check(all & !PLUGIN_AUTH, b"me\0\0db\0", false);
    }

    #[test]
    fn an_answer_that_is_cut_is_none() {
        let whole = response(OFFERED, b"me\0\x03abcdb\0x");
        for end in 0..whole.len() - 1 {
            assert_eq!(Response::parse(&whole[..end]), None, "{end}");
        }
    }
}
