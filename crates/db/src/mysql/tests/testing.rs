//! Packets as a server would send them, for the tests in this folder.

/// One packet.
pub(super) fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let size = (payload.len() as u32).to_le_bytes();
    assert!(payload.len() <= super::wire::MAX_PAYLOAD);
    [&[size[0], size[1], size[2], sequence], payload].concat()
}

/// Several messages as packets numbered from 1. Long ones are split.
pub(super) fn packets(payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut sequence = 1_u8;
    for payload in payloads {
        let mut rest = payload.as_slice();
        loop {
            let (piece, more) = rest.split_at(rest.len().min(super::wire::MAX_PAYLOAD));
            bytes.extend(packet(sequence, piece));
            sequence = sequence.wrapping_add(1);
            rest = more;
            if piece.len() < super::wire::MAX_PAYLOAD {
                break;
            }
        }
    }
    bytes
}

/// An OK packet. It affects one row more than it has `warnings`, which keeps the two apart.
pub(super) fn ok(warnings: u8) -> Vec<u8> {
    vec![0x00, warnings + 1, 0, 2, 0, warnings, 0]
}

/// An OK packet that announces another result.
pub(super) fn ok_and_more() -> Vec<u8> {
    vec![0x00, 4, 0, 0x0a, 0, 0, 0]
}

/// The end of rows or column definitions, in either form.
pub(super) fn eof(new_form: bool, warnings: u8, more_results: bool) -> Vec<u8> {
    let status = if more_results { 0x0a } else { 0x02 };
    if new_form { vec![0xfe, 0, 0, status, 0, warnings, 0] } else { vec![0xfe, warnings, 0, status, 0] }
}

/// An ERR packet with an SQL state.
pub(super) fn error(code: u16, message: &str) -> Vec<u8> {
    [&[0xff][..], &code.to_le_bytes(), b"#HY000", message.as_bytes()].concat()
}

/// A result set with two columns and these rows.
pub(super) fn result_set(new_form: bool, rows: &[&[u8]], more_results: bool) -> Vec<Vec<u8>> {
    let mut payloads = vec![vec![2], b"\x03def column one".to_vec(), b"\x03def column two".to_vec()];
    if !new_form {
        payloads.push(eof(false, 0, false));
    }
    payloads.extend(rows.iter().map(|row| row.to_vec()));
    payloads.push(eof(new_form, 5, more_results));
    payloads
}

/// A MySQL 8.0 greeting that proposes `plugin`, with the nonce `abcdefghijklmnopqrst`.
pub(super) fn greeting(plugin: &str) -> Vec<u8> {
    let mut payload = b"\x0a8.0.31\0\x07\0\0\0abcdefgh\0\xff\xff\xff\x02\0\xff\xdf\x15".to_vec();
    payload.extend_from_slice(&[0; 10]);
    payload.extend_from_slice(b"ijklmnopqrst\0");
    payload.extend_from_slice(plugin.as_bytes());
    payload.push(0);
    payload
}

/// A 2048-bit public key, PKCS#8.
pub(super) const TEST_KEY: &str = "-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAmGvcONpZJxqETk7/otYp
nC0Rtnh67vqFwAa6q8AseNS+nLyIsj7OJI46INxUR0KwepRVdpAU7hW1oXcA9EpP
Bau3EQSBGJzIx4SF6D8QR142VBHb4q6uWicLft5tfyQYm+Acg9qa722bSwt8l5yv
PDG05xkzt1P02UFVBqAHGTuTnU4fKr5gDLZkPHRGTw3dAiE4TLIKTmcGQgbDVuRz
R5bEoMtZ62akgOw2QYpGzIZvu5yaHG9H6RUBxZkHSAydjnZsot1o5bD6uvnahhfD
I8L6PObzDi28b/G1QgdUFRT9D0KN78RUSDKzjEJnh3VkbqyAXKsiABRH4gohl+uw
WwIDAQAB
-----END PUBLIC KEY-----
";

/// A 512-bit key, which can be broken within hours.
pub(super) const WEAK_KEY: &str = "-----BEGIN PUBLIC KEY-----
MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBALHZQIg2FyJRQvZKdMJHeKDGD5g1h1K8
KsrUd1I5tiEwmtiaueTw3Gmp9JCnyas2Cd7XVqH7eurbxqjS/t55HEcCAwEAAQ==
-----END PUBLIC KEY-----
";
