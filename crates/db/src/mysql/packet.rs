//! Reads the small packets that frame an answer (OK, EOF, ERR), and the length-encoded numbers
//! inside them.

use super::fault::{MysqlFault, MysqlServerError};
use crate::excerpt::server_text;

/// The session is in a transaction (`SERVER_STATUS_IN_TRANS`).
pub(super) const IN_TRANSACTION: u16 = 0x0001;

/// Another result set follows (`SERVER_MORE_RESULTS_EXISTS`).
pub(super) const MORE_RESULTS: u16 = 0x0008;

/// Upper bound on a row end's length in the old form, which has code, warnings and status.
const EOF_LONGEST: usize = 9;

/// What an OK packet or the end of rows reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Finish {
    pub(super) affected: u64,
    pub(super) warnings: u16,
    pub(super) more_results: bool,
    pub(super) in_transaction: bool,
}

impl Finish {
    fn new(affected: u64, warnings: u16, status: u16) -> Self {
        let is_set = |flag| status & flag != 0;
        let (more_results, in_transaction) = (is_set(MORE_RESULTS), is_set(IN_TRANSACTION));
        Self { affected, warnings, more_results, in_transaction }
    }
}

/// Bytes that are read from the front, with a check at each step.
#[derive(Debug, Clone, Copy)]
pub(super) struct MysqlReader<'a>(pub(super) &'a [u8]);

impl<'a> MysqlReader<'a> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], MysqlFault> {
        let parts = self.0.split_at_checked(count);
        let (head, tail) = parts.ok_or(MysqlFault::Malformed("a packet ends inside a value"))?;
        self.0 = tail;
        Ok(head)
    }

    pub(super) fn u8(&mut self) -> Result<u8, MysqlFault> {
        Ok(self.take(1)?[0])
    }

    /// Reads a little-endian number of `count` bytes, at most eight.
    pub(super) fn number(&mut self, count: usize) -> Result<u64, MysqlFault> {
        Ok(self.take(count)?.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    pub(super) fn u16(&mut self) -> Result<u16, MysqlFault> {
        let bytes = self.take(2)?;
        Ok(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    pub(super) fn u32(&mut self) -> Result<u32, MysqlFault> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// Reads a length-encoded number. The first bytes 0xfb (NULL) and 0xff do not start one.
    pub(super) fn length(&mut self) -> Result<u64, MysqlFault> {
        match self.u8()? {
            small @ 0..=0xfa => Ok(u64::from(small)),
            0xfc => self.number(2),
            0xfd => self.number(3),
            0xfe => self.number(8),
            _ => Err(MysqlFault::Malformed("a length begins with 0xfb or 0xff")),
        }
    }

    /// Reads a length-encoded string.
    pub(super) fn text(&mut self) -> Result<&'a [u8], MysqlFault> {
        let length = self.length()?;
        let length =
            usize::try_from(length).map_err(|_| MysqlFault::Malformed("a length beyond the memory"))?;
        self.take(length)
    }

    /// Reads a string up to a NUL, or up to the end where the NUL is missing.
    pub(super) fn until_nul(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        let text = &self.0[..end];
        self.0 = self.0.get(end + 1..).unwrap_or_default();
        text
    }
}

/// Reads an OK packet. It begins with 0x00, or with 0xfe at the end of rows.
pub(super) fn ok(payload: &[u8]) -> Result<Finish, MysqlFault> {
    let mut reader = MysqlReader(payload);
    reader.u8()?;
    let affected = reader.length()?;
    reader.length()?; // last insert id
    let status = reader.u16()?;
    let warnings = reader.u16()?;
    Ok(Finish::new(affected, warnings, status))
}

/// Reads an ERR packet, with or without an SQL state. Before login there is none.
pub(super) fn server_error(payload: &[u8]) -> MysqlFault {
    let mut reader = MysqlReader(payload);
    let (Ok(0xff), Ok(code)) = (reader.u8(), reader.u16()) else {
        return MysqlFault::Malformed("an error packet without a number");
    };
    let text = match reader.0 {
        [b'#', _, _, _, _, _, text @ ..] => text,
        text => text,
    };
    MysqlFault::Server(MysqlServerError::Reported { code, message: server_text(text) })
}

/// The form of answers that a login agreed on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Form {
    /// Whether `CLIENT_DEPRECATE_EOF` was agreed. Then no EOF follows the column definitions, and
    /// an OK replaces the EOF after the rows.
    pub(super) deprecate_eof: bool,
    /// Whether `MARIADB_CLIENT_CACHE_METADATA` was agreed. Then a byte after the number of columns
    /// says whether their definitions follow. They are left out when a prepared statement is
    /// executed again with the definitions that the client already has.
    pub(super) optional_definitions: bool,
}

/// Reads a result set's first packet: how many columns its rows have, at least 1, and how many
/// definitions follow.
pub(super) fn columns(payload: &[u8], form: Form) -> Result<(u64, u64), MysqlFault> {
    let mut reader = MysqlReader(payload);
    let count = reader.length()?;
    let follow = if form.optional_definitions { reader.u8()? } else { 1 };
    if count == 0 || count > u64::from(u16::MAX) || follow > 1 || !reader.0.is_empty() {
        return Err(MysqlFault::Malformed("an impossible number of columns"));
    }
    Ok((count, count * u64::from(follow)))
}

/// Whether a packet in a result set ends its rows. A row may also begin with 0xfe, as the length of
/// a value with 16 MB and more. Its packet is then a full one (new form) or longer than the old
/// form's five bytes.
pub(super) fn ends_rows(first: u8, length: usize, deprecate_eof: bool) -> bool {
    first == 0xfe && if deprecate_eof { length < super::outgoing::MAX_PAYLOAD } else { length < EOF_LONGEST }
}

/// Reads the end of rows in the agreed form. It does not report affected rows.
pub(super) fn rows_end(payload: &[u8], deprecate_eof: bool) -> Result<Finish, MysqlFault> {
    if deprecate_eof {
        return Ok(Finish { affected: 0, ..ok(payload)? });
    }
    let mut reader = MysqlReader(payload);
    reader.u8()?;
    let warnings = reader.u16()?;
    let status = reader.u16()?;
    Ok(Finish::new(0, warnings, status))
}

/// Appends a length-encoded string.
pub(super) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    let length = text.len() as u64;
    let bytes = length.to_le_bytes();
    match length {
        0..=0xfa => out.push(bytes[0]),
        0xfb..=0xffff => out.extend_from_slice(&[0xfc, bytes[0], bytes[1]]),
        0x1_0000..=0xff_ffff => out.extend_from_slice(&[0xfd, bytes[0], bytes[1], bytes[2]]),
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&bytes);
        }
    }
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_written_and_read_in_all_four_sizes() {
        for length in [0, 250, 251, 252, 0xffff, 0x1_0000, 0xff_ffff, 0x100_0000] {
            let mut bytes = Vec::new();
            put_text(&mut bytes, &vec![b'x'; length]);
            let mut reader = MysqlReader(&bytes);
            assert_eq!(reader.text().expect("what was written").len(), length);
            assert!(reader.0.is_empty());
        }
    }

    #[test]
    fn a_length_past_the_end_is_malformed() {
        for bytes in
            [&b"\x05abc"[..], b"\xfe\xff\xff\xff\xff\xff\xff\xff\xffabc", b"\xfc\x01", b"\xfb", b"\xff", b""]
        {
            assert!(matches!(MysqlReader(bytes).text(), Err(MysqlFault::Malformed(_))), "{bytes:?}");
        }
    }

    #[test]
    fn an_error_is_read_with_and_without_its_sql_state() {
        insta::assert_snapshot!(server_error(b"\xff\x28\x04#42000You have an error"), @"server said: You have an error");
        insta::assert_snapshot!(server_error(b"\xff\x10\x04Too many connections"), @"server said: Too many connections");
        assert!(matches!(server_error(b"\xff\x10"), MysqlFault::Malformed(_)));
    }

    #[test]
    fn the_end_of_rows_is_distinguished_from_a_huge_value() {
        assert!(ends_rows(0xfe, 5, false));
        assert!(!ends_rows(0xfe, 9, false));
        assert!(ends_rows(0xfe, 7, true));
        assert!(!ends_rows(0xfe, 0xff_ffff, true));
        assert!(!ends_rows(0x00, 5, true));
    }
}
