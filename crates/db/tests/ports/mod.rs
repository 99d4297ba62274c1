//! Ports that the tests keep for their servers.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, bind, getsockname, setsockopt, socket, sockopt,
};

/// A free port of 127.0.0.1, and the socket that keeps it: as long as that is there, no one who
/// asks the kernel for any port gets this one, and a server that asks for it by its number, with
/// `SO_REUSEADDR`, does.
pub(crate) fn kept() -> (u16, OwnedFd) {
    let socket =
        socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
    setsockopt(&socket, sockopt::ReuseAddr, &true).expect("a port may be shared with who names it");
    bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))).expect("a port");
    let port = getsockname::<SockaddrIn>(socket.as_raw_fd()).expect("the port's number").port();
    (port, socket)
}
