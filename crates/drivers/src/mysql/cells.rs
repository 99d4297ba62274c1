//! Reads the rows of a text result as strings: the simple path for everything that is not hot.

use tokio::io::{AsyncRead, AsyncWrite};

use super::fault::Fault;
use super::packet::{self, Finish, Reader};
use super::scan::columns;
use super::wire::Wire;
use crate::Cells;

/// Reads the whole answer to a statement that was just sent. Where it has several results (a procedure), the rows of
/// the first one that has columns are returned.
pub(super) async fn collect<S>(wire: &mut Wire<S>, deprecate_eof: bool) -> Result<Cells, Fault>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut payload = Vec::new();
    let mut found: Option<Cells> = None;
    let mut local_file = false;
    loop {
        wire.read(&mut payload).await?;
        let finish = match payload[0] {
            0x00 => packet::ok(&payload)?,
            0xff if local_file => return Err(Fault::LocalFile),
            0xff => return Err(packet::server_error(&payload)),
            0xfb => {
                local_file = true;
                wire.message();
                wire.reply().await?;
                continue;
            }
            _ => {
                let count = columns(&payload)?;
                let mut cells = Cells::new();
                let finish = result_set(wire, &mut payload, count, deprecate_eof, &mut cells).await?;
                found.get_or_insert(cells);
                finish
            }
        };
        match (finish.more_results, local_file) {
            (true, _) => {}
            (false, true) => return Err(Fault::LocalFile),
            (false, false) => return Ok(found.unwrap_or_default()),
        }
    }
}

/// Reads one result set of `count` columns into `cells`.
async fn result_set<S>(
    wire: &mut Wire<S>,
    payload: &mut Vec<u8>,
    count: u64,
    deprecate_eof: bool,
    cells: &mut Cells,
) -> Result<Finish, Fault>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    definitions(wire, payload, count, deprecate_eof).await?;
    loop {
        wire.read(payload).await?;
        match payload[0] {
            0xff => return Err(packet::server_error(payload)),
            first if packet::ends_rows(first, payload.len(), deprecate_eof) => {
                return packet::rows_end(payload, deprecate_eof);
            }
            _ => cells.push(row(payload, count)?),
        }
    }
}

/// Passes over `count` column or parameter definitions and the EOF that ends them in the old form.
pub(super) async fn definitions<S>(
    wire: &mut Wire<S>,
    payload: &mut Vec<u8>,
    count: u64,
    deprecate_eof: bool,
) -> Result<(), Fault>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    for _ in 0..count {
        wire.read(payload).await?;
        if payload[0] == 0xff {
            return Err(packet::server_error(payload));
        }
    }
    if count > 0 && !deprecate_eof {
        wire.read(payload).await?;
        match payload[0] {
            0xfe => {}
            0xff => return Err(packet::server_error(payload)),
            _ => return Err(Fault::Malformed("no end of the column definitions")),
        }
    }
    Ok(())
}

/// One row of the text protocol; bytes that are not UTF-8 become replacement characters.
fn row(payload: &[u8], count: u64) -> Result<Vec<Option<String>>, Fault> {
    let mut reader = Reader(payload);
    let mut cells = Vec::new();
    for _ in 0..count {
        if reader.0.first() == Some(&0xfb) {
            reader.u8()?;
            cells.push(None);
        } else {
            cells.push(Some(String::from_utf8_lossy(reader.text()?).into_owned()));
        }
    }
    if reader.0.is_empty() { Ok(cells) } else { Err(Fault::Malformed("a row with more values than columns")) }
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
            assert!(matches!(row(payload, 2), Err(Fault::Malformed(_))), "{payload:?}");
        }
    }
}
