//! A pooler in front of a PostgreSQL server. Every client may log in, but only a limited number get
//! answers at the same time.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// Codes that a client sends in place of a protocol version, for TLS, encryption by GSSAPI, and a
/// cancel request.
const NOT_OFFERED: [u32; 2] = [80_877_103, 80_877_104];
const CANCEL: u32 = 80_877_102;

/// The message with which a client logs out.
const TERMINATE: u8 = b'X';

/// What happens to a client's place in the pool when the client has disconnected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The next client gets the place.
    Freed,
    /// No client gets the place any more.
    Lost,
}

/// Listens on `listen` for the server on the socket `server` until the test program ends. The pool
/// has `most` places. A client takes a place with its first statement.
pub(crate) fn start(listen: &Path, server: &Path, most: usize, place: Place) {
    let listener = UnixListener::bind(listen).unwrap();
    let (server, places) = (server.to_owned(), Arc::new((Mutex::new(most), Condvar::new())));
    thread::spawn(move || {
        for client in listener.incoming() {
            let (server, places) = (server.clone(), Arc::clone(&places));
            // A failed or closed connection is no fault of the test.
            thread::spawn(move || client.and_then(|client| serve(client, &server, &places, place)));
        }
    });
}

fn serve(
    mut client: UnixStream,
    server: &Path,
    places: &(Mutex<usize>, Condvar),
    place: Place,
) -> io::Result<()> {
    let Some(hello) = hello(&mut client)? else { return Ok(()) };
    let mut server = UnixStream::connect(server)?;
    server.write_all(&hello)?;
    client.write_all(&greeting(&mut server)?)?;
    let mut first = [0];
    client.read_exact(&mut first)?;
    if first[0] == TERMINATE {
        return server.write_all(&[TERMINATE, 0, 0, 0, 4]);
    }
    let free = places.0.lock().unwrap();
    *places.1.wait_while(free, |free| *free == 0).unwrap() -= 1;
    let relayed = server.write_all(&first).and_then(|()| relay(client, server));
    if place == Place::Freed {
        *places.0.lock().unwrap() += 1;
        places.1.notify_one();
    }
    relayed
}

/// The client's first packet after its requests for encryption, which the pooler declines. It is
/// `None` for a client that only sends a cancel request.
fn hello(client: &mut UnixStream) -> io::Result<Option<Vec<u8>>> {
    loop {
        let mut packet = vec![0; 4];
        client.read_exact(&mut packet)?;
        let rest = length(&packet) - 4;
        append(client, &mut packet, rest)?;
        match length(&packet[4..]) as u32 {
            code if NOT_OFFERED.contains(&code) => client.write_all(b"N")?,
            CANCEL => return Ok(None),
            _ => return Ok(Some(packet)),
        }
    }
}

/// All messages from the server until it waits for a statement or has refused the login.
fn greeting(server: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let from = all.len();
        append(server, &mut all, 5)?;
        let rest = length(&all[from + 1..]) - 4;
        append(server, &mut all, rest)?;
        if matches!(all[from], b'Z' | b'E') {
            return Ok(all);
        }
    }
}

fn length(bytes: &[u8]) -> usize {
    u32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize
}

fn append(from: &mut UnixStream, to: &mut Vec<u8>, count: usize) -> io::Result<()> {
    let begin = to.len();
    to.resize(begin + count, 0);
    from.read_exact(&mut to[begin..])
}

/// Passes bytes in both directions until one side disconnects.
fn relay(client: UnixStream, server: UnixStream) -> io::Result<()> {
    let (client_too, server_too) = (client.try_clone()?, server.try_clone()?);
    let back = thread::spawn(move || pass(server_too, client_too));
    pass(client, server)?;
    back.join().unwrap()
}

fn pass(mut from: UnixStream, mut to: UnixStream) -> io::Result<()> {
    let passed = io::copy(&mut from, &mut to);
    // The other direction ends with this one. An error only means that the peer is gone already.
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    passed.map(drop)
}
