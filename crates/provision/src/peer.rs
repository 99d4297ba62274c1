//! The process of a unix socket, so that a server that others run on this machine can be charged
//! its CPU.

use std::os::unix::net::UnixStream;

use dbdyno_drivers::Address;
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;

/// The process that listens at `address`, as the kernel knows it (SO_PEERCRED, unix(7)): of
/// PostgreSQL the first one.
///
/// `None` over TCP, when no one listens, when the listener lives in a process namespace that is
/// hidden from us, and when it is a service manager that holds the socket for the server.
pub fn local_pid(address: &Address) -> Option<u32> {
    /// The first process: it only holds sockets for others.
    const INIT: u32 = 1;
    let Address::Socket(path) = address else { return None };
    let stream = UnixStream::connect(path).ok()?;
    let pid = u32::try_from(getsockopt(&stream, PeerCredentials).ok()?.pid()).ok()?;
    (pid > INIT).then_some(pid)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn the_process_that_listens_on_a_socket_is_found_and_without_one_there_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        assert_eq!(local_pid(&Address::Socket(path.clone())), None);
        let _listener = UnixListener::bind(&path).unwrap();
        assert_eq!(local_pid(&Address::Socket(path)), Some(std::process::id()));
        assert_eq!(local_pid(&Address::Tcp { host: "127.0.0.1".to_owned(), port: 1 }), None);
    }
}
