//! The way to a server, encrypted or not.

use crate::address::Address;
use crate::options::Options;
use crate::tls::Tls;

/// What the way to the server keeps from others, which decides what may be said on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Channel {
    pub(crate) is_encrypted: bool,
    /// A password may go over it as it is: a unix socket, or TLS that was demanded. TLS that is
    /// only preferred is not enough, because an attacker in between takes it away.
    pub(crate) may_carry_passwords: bool,
    /// A unix socket.
    pub(crate) is_local: bool,
}

impl Channel {
    /// The way to the server of `options`, with TLS under it or not.
    pub(crate) fn new(options: &Options, is_encrypted: bool) -> Self {
        let is_local = matches!(options.address, Address::Socket(_));
        let is_demanded = options.manner.tls.as_ref().is_some_and(Tls::is_required);
        Self { is_encrypted, may_carry_passwords: is_local || is_encrypted && is_demanded, is_local }
    }
}
