//! Whether a PostgreSQL server answers: it does when it lets someone in.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Asks for a session of user and database `postgres`, in version 3.0 of the protocol.
const HELLO: &[u8] = b"\0\0\0\x29\0\x03\0\0user\0postgres\0database\0postgres\0\0";

const GOODBYE: &[u8] = b"X\0\0\0\x04";

/// A server that accepts but does not answer within this time is asked again.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);

/// Connects and asks for a session. A server that still starts or recovers answers with an error.
pub(super) fn lets_in(socket: &Path) -> bool {
    let mut kind = [0];
    let asked = UnixStream::connect(socket).and_then(|mut stream| {
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        stream.write_all(HELLO)?;
        stream.read_exact(&mut kind)?;
        // Not to leave a complaint about a lost client in the log.
        stream.write_all(GOODBYE)
    });
    asked.is_ok() && kind == *b"R"
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    fn answer(bytes: &'static [u8]) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut hello = [0; HELLO.len()];
            stream.read_exact(&mut hello).unwrap();
            stream.write_all(bytes).unwrap();
            // Holds the line until the goodbye.
            let _ = stream.read(&mut hello);
        });
        let let_in = lets_in(&socket);
        server.join().unwrap();
        let_in
    }

    #[test]
    fn a_session_counts_and_an_error_or_a_hangup_does_not() {
        assert_eq!(HELLO[..4], (HELLO.len() as u32).to_be_bytes());
        assert!(answer(b"R\0\0\0\x08\0\0\0\0"));
        assert!(!answer(b"E\0\0\0\x30SFATAL\0C57P03\0Mthe database system is starting up\0\0"));
        assert!(!answer(b""));
        assert!(!lets_in(Path::new("/nowhere/s")));
    }
}
