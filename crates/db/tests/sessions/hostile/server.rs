//! A server for one connection, whose behaviour each test programs.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest wait for the client.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that has been started.
pub(crate) struct Hostile {
    pub(crate) port: u16,
    thread: JoinHandle<Peer>,
}

/// The server's end of the connection.
pub(crate) struct Peer {
    stream: TcpStream,
    /// The bytes received from the client.
    pub(crate) received: Vec<u8>,
    /// Number of bytes that the socket has accepted for the client.
    pub(crate) sent: usize,
}

/// Starts a server that runs `act` for the first client.
pub(crate) fn serve(act: impl FnOnce(&mut Peer) + Send + 'static) -> Hostile {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let thread = std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a client");
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        stream.set_write_timeout(Some(PATIENCE)).expect("a limit");
        let mut peer = Peer { stream, received: Vec::new(), sent: 0 };
        act(&mut peer);
        peer
    });
    Hostile { port, thread }
}

impl Hostile {
    /// Waits until the client has disconnected, and returns the received bytes and the number of
    /// sent bytes.
    pub(crate) fn ended(self) -> Peer {
        let mut peer = self.thread.join().expect("the server did its part");
        // The client may have closed the connection before it had read everything, which the kernel
        // reports as a reset.
        let _ = peer.stream.read_to_end(&mut peer.received);
        peer
    }
}

impl Peer {
    /// Sends `bytes`. The result is `false` if the client takes no more.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(count) if count > 0 => {
                    self.sent += count;
                    rest = &rest[count..];
                }
                _ => return false,
            }
        }
        true
    }

    /// Sends `bytes` and closes the sending side.
    pub(crate) fn send_all(&mut self, bytes: &[u8]) {
        self.send(bytes);
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Sends `count` bytes of a value.
    pub(crate) fn send_value(&mut self, count: usize) -> bool {
        let piece = vec![b'x'; count.min(1 << 20)];
        let mut left = count;
        while left > 0 {
            let some = left.min(piece.len());
            if !self.send(&piece[..some]) {
                return false;
            }
            left -= some;
        }
        true
    }

    /// Waits for `count` bytes from the client. The result is `None` if the client is gone.
    pub(crate) fn receive(&mut self, count: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).ok()?;
        self.received.extend_from_slice(&bytes);
        Some(bytes)
    }

    /// Waits for the client's next bytes.
    pub(crate) fn receive_some(&mut self) {
        let mut bytes = [0; 4096];
        if let Ok(count) = self.stream.read(&mut bytes) {
            self.received.extend_from_slice(&bytes[..count]);
        }
    }
}
