//! Reserves a TCP port on 127.0.0.1 for one server.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::Result;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, bind, getsockname, setsockopt, socket, sockopt,
};

/// A socket that is bound to the port and does not listen. While it exists, the kernel gives the
/// port to no one who asks for any port. It still lets a process have the port that asks for it by
/// number with `SO_REUSEADDR`, as servers do (socket(7)). Without it another server could take the
/// free port that dbdyno chose, before its own server listens or while that restarts.
#[derive(Debug)]
pub(crate) struct KeptPort {
    pub(crate) number: u16,
    _socket: OwnedFd,
}

impl KeptPort {
    /// Reserves any free port.
    pub(crate) fn any() -> Result<Self> {
        let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
        setsockopt(&socket, sockopt::ReuseAddr, &true)?;
        bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)))?;
        let number = getsockname::<SockaddrIn>(socket.as_raw_fd())?.port();
        Ok(Self { number, _socket: socket })
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Whether a process that asks for any port could get this one. Without `SO_REUSEADDR` the
    /// kernel answers as it would choose.
    fn is_free(port: u16) -> bool {
        let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
        bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))).is_ok()
    }

    #[test]
    fn a_port_is_kept_from_others_and_its_server_takes_it_at_each_start() {
        let port = KeptPort::any().unwrap();
        for _ in 0..2 {
            assert!(!is_free(port.number));
            // The library binds as servers do.
            let server = TcpListener::bind((Ipv4Addr::LOCALHOST, port.number)).unwrap();
            TcpStream::connect(server.local_addr().unwrap()).unwrap();
        }
        assert_ne!(KeptPort::any().unwrap().number, port.number);
    }
}
