//! Asks a server to cancel what it does for another connection.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Options;
use super::fault::Fault;
use super::secure::connected;
use crate::DbError;
use crate::roster::Ticket;

/// In the place of the protocol's version.
const CANCEL: u32 = 1234 << 16 | 5678;

/// Sends the request for `ticket` over a connection of its own, and waits until the server has
/// taken it. The server does not report what became of it.
pub(crate) async fn request_cancel(options: &Options, ticket: Ticket) -> Result<(), DbError> {
    let sent = send(options, ticket).await;
    sent.map_err(|fault| fault.into_error(&format!("asking {} to cancel", options.place())))
}

async fn send(options: &Options, ticket: Ticket) -> Result<(), Fault> {
    let mut stream = connected(options).await?.stream;
    let words = [16, CANCEL, ticket.id, ticket.key];
    let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_be_bytes).collect();
    stream.write_all(&bytes).await?;
    stream.flush().await?;
    // It closes the connection without an answer; TLS may take that for a fault.
    let _ = stream.read(&mut [0]).await;
    Ok(())
}
