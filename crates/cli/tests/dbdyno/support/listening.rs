//! Servers of the tests that someone can connect to.

use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::support::wait_for;

/// Waits until someone listens on a unix socket: its file is there a moment earlier.
#[track_caller]
pub(crate) fn wait_until_it_listens(socket: &Path) {
    wait_for("the server to listen", || UnixStream::connect(socket).is_ok().then_some(()));
}
