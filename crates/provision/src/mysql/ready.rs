//! Whether a server answers: it does when it greets on its socket.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// First byte of a greeting: version 10 of the protocol, the only one that servers since 3.21
/// speak.
const PROTOCOL_VERSION: u8 = 10;

/// A server that accepts but does not greet within this time is asked again.
const GREETING_LIMIT: Duration = Duration::from_secs(1);

/// Connects and reads the start of the greeting: a packet header of 4 bytes, then the protocol's
/// version. A server that listens but still starts accepts connections without greeting, or greets
/// with an error packet.
pub(super) fn greets(socket: &Path) -> bool {
    let mut start = [0; 5];
    let read = UnixStream::connect(socket).and_then(|mut stream| {
        stream.set_read_timeout(Some(GREETING_LIMIT))?;
        stream.read_exact(&mut start)
    });
    read.is_ok() && start[4] == PROTOCOL_VERSION
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn answer(bytes: &'static [u8]) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let server = std::thread::spawn(move || listener.accept().unwrap().0.write_all(bytes).unwrap());
        let greeted = greets(&socket);
        server.join().unwrap();
        greeted
    }

    #[test]
    fn a_greeting_counts_and_an_error_packet_or_a_hangup_does_not() {
        assert!(answer(b"\x4a\0\0\0\x0a8.0.31\0"));
        assert!(!answer(b"\x10\0\0\0\xff\x10\x04Too many connections"));
        assert!(!answer(b""));
        assert!(!greets(Path::new("/nowhere/s")));
    }
}
