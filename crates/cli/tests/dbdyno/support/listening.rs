//! Waits for the tests' servers.

use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::support::wait_for;

/// Waits until a server listens on a unix socket, because the socket's file exists a moment
/// earlier.
#[track_caller]
pub(crate) fn wait_until_it_listens(socket: &Path) {
    wait_for("the server to listen", || UnixStream::connect(socket).is_ok().then_some(()));
}
