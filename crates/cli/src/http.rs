//! Answers questions of a browser or of Prometheus, each on a connection of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Bytes of a question that are read; a browser sends far less.
const QUESTION_BYTES: u64 = 16 << 10;

pub(crate) struct Answer {
    pub(crate) status: &'static str,
    /// As of `Content-Type`.
    pub(crate) kind: &'static str,
    pub(crate) body: String,
}

/// Reads the head of one question and sends what `reply` makes of its lines. `patience`: how long
/// the other side may take for its question, and for taking the answer.
pub(crate) fn answer(
    mut stream: &TcpStream,
    patience: Duration,
    reply: impl FnOnce(&[String]) -> Answer,
) -> std::io::Result<()> {
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let mut head = Vec::new();
    // An answer to a question that was not read to its end may be lost on its way.
    for line in BufReader::new(stream.take(QUESTION_BYTES)).lines() {
        match line? {
            end if end.is_empty() => break,
            line => head.push(line),
        }
    }
    let Answer { status, kind, body } = reply(&head);
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{body}"
    )
}
