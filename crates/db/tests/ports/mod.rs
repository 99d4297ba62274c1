//! Ports that the tests reserve for their servers.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, bind, getsockname, setsockopt, socket, sockopt,
};

/// Returns a free port on 127.0.0.1, and the socket that reserves it. While the socket exists, the
/// kernel does not give the port to a process that asks for any free port. A server that binds the
/// port by its number, with `SO_REUSEADDR`, still gets it.
pub(crate) fn kept() -> (u16, OwnedFd) {
    let socket =
        socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
    setsockopt(&socket, sockopt::ReuseAddr, &true).expect("a port may be shared with who names it");
    bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))).expect("a port");
    let port = getsockname::<SockaddrIn>(socket.as_raw_fd()).expect("the port's number").port();
    (port, socket)
}
