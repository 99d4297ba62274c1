//! Reads whole answers message by message: rows as strings, and statement descriptions. This simple
//! path is for everything outside the measured load.

use super::copy::put_no_rows;
use super::fault::{PostgresFault, PostgresServerError};
use super::message::PostgresReader;
use super::report;
use super::scan::is_in_transaction;
use super::wire::PostgresWire;
use crate::stream::ByteStream;
use crate::{Cells, Rows};

/// Reads the whole answer to a query text that was just sent. Where it holds several statements,
/// this returns the rows of the first one that has columns.
pub(super) async fn collect<S: ByteStream>(wire: &mut PostgresWire<S>) -> Result<Cells, PostgresFault> {
    Ok(results(wire).await?.into_iter().next().map(|rows| rows.cells).unwrap_or_default())
}

/// Reads the whole answer to what was just sent, and returns the rows of every statement in it that
/// has columns.
pub(super) async fn results<S: ByteStream>(wire: &mut PostgresWire<S>) -> Result<Vec<Rows>, PostgresFault> {
    let (mut body, mut fault) = (Vec::new(), None);
    let (mut answered, mut refused_copy) = (false, false);
    let mut found: Vec<Rows> = Vec::new();
    loop {
        match (read(wire, &mut body, &mut fault).await?, found.last_mut()) {
            (b'T', _) => found.push(Rows { columns: names(&body)?, cells: Cells::new() }),
            (b'D', Some(rows)) => {
                wire.keep_row(rows.columns.len())?;
                rows.cells.push(row(&body, rows.columns.len() as u16)?);
            }
            (b'C' | b'I' | b'E', _) => answered = true,
            (b'1' | b'2' | b'n' | b'H' | b'd' | b'c', _) => {}
            (b'G', _) => {
                refused_copy = true;
                put_no_rows(wire.message());
                wire.reply().await?;
            }
            (b'Z', _) if answered => {
                wire.in_transaction = is_in_transaction(&body);
                break;
            }
            (b'Z', _) => return Err(PostgresFault::Malformed("an end without an answer")),
            _ => return Err(PostgresFault::Malformed("a message that belongs to another answer")),
        }
    }
    match fault {
        Some(_) if refused_copy => Err(super::copy::no_copy_here()),
        Some(fault) => Err(fault),
        None => Ok(found),
    }
}

/// Names of the columns in a row description.
fn names(body: &[u8]) -> Result<Vec<String>, PostgresFault> {
    /// Bytes after a column's name: table, column, type, its size and modifier, format.
    const REST: usize = 18;
    let mut reader = PostgresReader(body);
    let count = reader.u16()?;
    let mut name = || -> Result<String, PostgresFault> {
        let name = String::from_utf8_lossy(reader.text()?).into_owned();
        reader.take(REST).map(|_| name)
    };
    (0..count).map(|_| name()).collect()
}

/// Reads what a server says about a statement that it has just parsed: parameter types and number
/// of columns.
pub(super) async fn described<S: ByteStream>(
    wire: &mut PostgresWire<S>,
) -> Result<(Vec<u32>, u16), PostgresFault> {
    let mut body = Vec::new();
    let mut fault = None;
    let (mut types, mut columns) = (None, None);
    loop {
        match read(wire, &mut body, &mut fault).await? {
            b'1' | b'E' => {}
            b't' => types = Some(parameter_types(&body)?),
            b'T' => columns = Some(PostgresReader(&body).u16()?),
            b'n' => columns = Some(0),
            b'Z' => break,
            _ => return Err(PostgresFault::Malformed("a message that belongs to another answer")),
        }
    }
    match (fault, types, columns) {
        (Some(fault), _, _) => Err(fault),
        (None, Some(types), Some(columns)) => Ok((types, columns)),
        _ => Err(PostgresFault::Malformed("a statement without description")),
    }
}

/// Reads the next message that belongs to the answer, and skips those that may come at any time.
/// The first error is kept, because the answer continues after it. An error that ends the session
/// is returned at once.
async fn read<S: ByteStream>(
    wire: &mut PostgresWire<S>,
    body: &mut Vec<u8>,
    fault: &mut Option<PostgresFault>,
) -> Result<u8, PostgresFault> {
    loop {
        let kind = match wire.read(body).await {
            Ok(kind) => kind,
            Err(broken) => return Err(fault.take().unwrap_or(broken)),
        };
        match kind {
            b'S' | b'A' | b'N' => {}
            b'E' => match PostgresFault::in_session(report::error(body)?) {
                ended @ PostgresFault::Server(PostgresServerError::Ended(_)) => return Err(ended),
                reported => {
                    fault.get_or_insert(reported);
                    return Ok(kind);
                }
            },
            _ => return Ok(kind),
        }
    }
}

fn parameter_types(body: &[u8]) -> Result<Vec<u32>, PostgresFault> {
    let mut reader = PostgresReader(body);
    let count = reader.u16()?;
    (0..count).map(|_| reader.u32()).collect()
}

/// Reads one row. Bytes that are not UTF-8 become replacement characters.
fn row(body: &[u8], columns: u16) -> Result<Vec<Option<String>>, PostgresFault> {
    let mut reader = PostgresReader(body);
    if reader.u16()? != columns {
        return Err(PostgresFault::Malformed("a row of another width than its columns"));
    }
    let text = |value: Option<&[u8]>| value.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let cells = (0..columns).map(|_| reader.value().map(text)).collect::<Result<Vec<_>, _>>()?;
    if reader.0.is_empty() {
        Ok(cells)
    } else {
        Err(PostgresFault::Malformed("a row with more values than columns"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_becomes_strings_and_nulls() {
        let cells = row(b"\0\x03\0\0\0\x011\xff\xff\xff\xff\0\0\0\x02\xff\xfe", 3).expect("a row of three");
        assert_eq!(cells, [Some("1".to_owned()), None, Some("\u{fffd}\u{fffd}".to_owned())]);
    }

    #[test]
    fn a_row_with_wrong_lengths_is_malformed() {
        for body in [
            &b""[..],
            b"\0\x02",
            b"\0\x01\0\0\0\x01a",
            b"\0\x02\0\0\0\0\0\0\0\x05a",
            b"\0\x02\0\0\0\0\0\0\0\0x",
        ] {
            assert!(matches!(row(body, 2), Err(PostgresFault::Malformed(_))), "{body:?}");
        }
    }
}
