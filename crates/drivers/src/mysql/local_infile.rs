//! LOAD DATA LOCAL INFILE: rows from memory in place of the file that the server asks for.

use super::fault::{Fault, Said};
use super::packet::Form;
use super::scan::Step;
use super::wire::Wire;
use crate::Answer;
use crate::stream::ByteStream;

/// Bytes of one packet. The server reads each whole, and refuses one beyond `max_allowed_packet`, 1
/// MiB at least.
const PIECE: usize = 256 << 10;

/// Sends `rows` for the statement whose text was just sent, and reads its answer. Whatever file the
/// server names, it gets these rows; one that says no to them reads them to their end first.
pub(super) async fn send_rows<S: ByteStream>(
    wire: &mut Wire<S>,
    form: Form,
    rows: &[u8],
) -> Result<Answer, Fault> {
    let mut scanner = wire.scanner(form);
    if !matches!(wire.scan(&mut scanner).await?, Step::LocalFile) {
        return Err(Fault::Said(Said::NoLocalFile));
    }
    for piece in rows.chunks(PIECE) {
        wire.send_piece(piece).await?;
    }
    // An empty packet is the end of the file.
    wire.send_piece(&[]).await?;
    scanner.sent_up_to(wire.sequence());
    match wire.scan(&mut scanner).await? {
        Step::Done => Ok(scanner.answer()),
        _ => Err(Fault::Malformed("a second file for one statement")),
    }
}
