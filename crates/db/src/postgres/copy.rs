//! Bulk loads with COPY ... FROM STDIN: rows in the server's own text, CSV or binary format.

use super::fault::{PostgresFault, PostgresServerError};
use super::message::{put, put_text};
use super::scan::{PostgresScanStep, PostgresScanner, RequestForm};
use super::wire::PostgresWire;
use crate::Answer;
use crate::stream::ByteStream;

/// Approximate number of bytes in one write. It is large enough to make the system call's cost
/// small.
const BATCH: usize = 64 << 10;

/// Longest piece of a chunk that is sent as one message.
const PIECE: usize = 1 << 20;

/// Appends the message that refuses to send rows for a COPY that no one expected. Its statement
/// then fails.
pub(super) fn put_no_rows(out: &mut Vec<u8>) {
    put(out, b'f', |body| put_text(body, b"no rows were given to this COPY"));
}

/// The error for a COPY that was sent as an ordinary statement.
pub(super) fn no_copy_here() -> PostgresFault {
    PostgresFault::Server(PostgresServerError::Copy(
        "a COPY from the client cannot be run as an ordinary statement; give its rows with it",
    ))
}

/// Sends the rows for a COPY whose text was just sent, and reads its answer. Chunks may end
/// anywhere, even inside a row.
pub(super) async fn copy_in<S, C>(wire: &mut PostgresWire<S>, chunks: C) -> Result<Answer, PostgresFault>
where
    S: ByteStream,
    C: IntoIterator<Item: AsRef<[u8]>>,
{
    let mut scanner = PostgresScanner::new(RequestForm::Query);
    if wire.scan(&mut scanner).await? != PostgresScanStep::CopyIn {
        scanner.finish()?;
        return Err(PostgresFault::Server(PostgresServerError::Copy(
            "this is no COPY ... FROM STDIN: the server asks for no rows",
        )));
    }
    wire.message();
    for chunk in chunks {
        for piece in chunk.as_ref().chunks(PIECE) {
            put(wire.unsent(), b'd', |body| body.extend_from_slice(piece));
            if wire.unsent().len() >= BATCH {
                // A server that has refused a row would discard everything that follows, even the
                // end.
                if wire.reply_listening(&mut scanner).await? {
                    return refused(scanner);
                }
                wire.message();
            }
        }
    }
    put(wire.unsent(), b'c', |_| {});
    if wire.reply_listening(&mut scanner).await? {
        return refused(scanner);
    }
    match wire.scan(&mut scanner).await? {
        PostgresScanStep::Done => scanner.finish(),
        PostgresScanStep::More | PostgresScanStep::CopyIn => {
            Err(PostgresFault::Malformed("a second COPY in one text"))
        }
    }
}

/// Handles an answer that is complete before the last row was sent. It can only be a refusal.
fn refused(scanner: PostgresScanner) -> Result<Answer, PostgresFault> {
    scanner.finish()?;
    Err(PostgresFault::Malformed("a COPY that ends before its rows do"))
}
