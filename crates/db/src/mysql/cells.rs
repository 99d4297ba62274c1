//! Reads a text result's rows as strings. This simple path is for everything outside the measured
//! load.

use super::fault::{MysqlFault, MysqlServerError};
use super::packet::{self, Finish, Form, MysqlReader};
use super::wire::MysqlWire;
use crate::Cells;
use crate::stream::ByteStream;

/// Reads the whole answer to a statement that was just sent. Where it has several results (a
/// procedure), this returns the rows of the first one that has columns.
pub(super) async fn collect<S: ByteStream>(wire: &mut MysqlWire<S>, form: Form) -> Result<Cells, MysqlFault> {
    let mut payload = Vec::new();
    let mut found: Option<Cells> = None;
    let mut local_file = false;
    loop {
        wire.read(&mut payload).await?;
        let finish = match payload[0] {
            0x00 => packet::ok(&payload)?,
            0xff if local_file => return Err(MysqlFault::Server(MysqlServerError::LocalFile)),
            0xff => return Err(packet::server_error(&payload)),
            0xfb => {
                local_file = true;
                wire.message();
                wire.reply().await?;
                continue;
            }
            _ => {
                let columns = packet::columns(&payload, form)?;
                let mut cells = Cells::new();
                let finish = result_set(wire, &mut payload, columns, form, &mut cells).await?;
                found.get_or_insert(cells);
                finish
            }
        };
        wire.in_transaction = finish.in_transaction;
        match (finish.more_results, local_file) {
            (true, _) => {}
            (false, true) => return Err(MysqlFault::Server(MysqlServerError::LocalFile)),
            (false, false) => return Ok(found.unwrap_or_default()),
        }
    }
}

/// Reads one result set with so many columns, of which so many have definitions, into `cells`.
async fn result_set<S: ByteStream>(
    wire: &mut MysqlWire<S>,
    payload: &mut Vec<u8>,
    (count, defined): (u64, u64),
    form: Form,
    cells: &mut Cells,
) -> Result<Finish, MysqlFault> {
    definitions(wire, payload, defined).await?;
    if !form.deprecate_eof {
        definitions_end(wire, payload).await?;
    }
    loop {
        wire.read(payload).await?;
        match payload[0] {
            0xff => return Err(packet::server_error(payload)),
            first if packet::ends_rows(first, payload.len(), form.deprecate_eof) => {
                return packet::rows_end(payload, form.deprecate_eof);
            }
            _ => {
                wire.keep_row(count as usize)?;
                cells.push(row(payload, count)?);
            }
        }
    }
}

/// Skips `count` definitions of columns or parameters.
pub(super) async fn definitions<S: ByteStream>(
    wire: &mut MysqlWire<S>,
    payload: &mut Vec<u8>,
    count: u64,
) -> Result<(), MysqlFault> {
    for _ in 0..count {
        wire.read(payload).await?;
        if payload[0] == 0xff {
            return Err(packet::server_error(payload));
        }
    }
    Ok(())
}

/// Skips the EOF packet that ends definitions in the old form.
pub(super) async fn definitions_end<S: ByteStream>(
    wire: &mut MysqlWire<S>,
    payload: &mut Vec<u8>,
) -> Result<(), MysqlFault> {
    wire.read(payload).await?;
    match payload[0] {
        0xfe => Ok(()),
        0xff => Err(packet::server_error(payload)),
        _ => Err(MysqlFault::Malformed("no end of the column definitions")),
    }
}

/// Reads one row in the text protocol. Bytes that are not UTF-8 become replacement characters.
fn row(payload: &[u8], count: u64) -> Result<Vec<Option<String>>, MysqlFault> {
    let mut reader = MysqlReader(payload);
    let mut cells = Vec::new();
    for _ in 0..count {
        if reader.0.first() == Some(&0xfb) {
            reader.u8()?;
            cells.push(None);
        } else {
            cells.push(Some(String::from_utf8_lossy(reader.text()?).into_owned()));
        }
    }
    if reader.0.is_empty() {
        Ok(cells)
    } else {
        Err(MysqlFault::Malformed("a row with more values than columns"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_becomes_strings_and_nulls() {
        let cells = row(b"\x011\xfb\x00\x02\xff\xfe", 4).expect("a row of four");
        assert_eq!(
            cells,
            vec![Some("1".to_owned()), None, Some(String::new()), Some("\u{fffd}\u{fffd}".to_owned())]
        );
    }

    #[test]
    fn a_row_with_wrong_lengths_is_malformed() {
        for payload in
            [&b"\x05ab"[..], b"\x01a\x01b\x01c", b"\x01a", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"]
        {
            assert!(matches!(row(payload, 2), Err(MysqlFault::Malformed(_))), "{payload:?}");
        }
    }
}
