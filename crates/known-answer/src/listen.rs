//! The address on which a server listens, its listening socket, and the sockets of connected
//! clients. All of them are unix or TCP sockets.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::{Error, Protocol};

/// PostgreSQL's socket name in its folder, for the port that clients use by default.
const POSTGRES_SOCKET: &str = ".s.PGSQL.5432";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// A socket file. For PostgreSQL the path may also be a folder, in which the socket gets the
    /// name that clients expect.
    Unix(PathBuf),
    /// A TCP address. Port 0 lets the kernel choose one.
    Tcp(SocketAddr),
}

impl fmt::Display for Listen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(formatter, "{}", path.display()),
            Self::Tcp(address) => write!(formatter, "{address}"),
        }
    }
}

#[derive(Debug)]
pub(crate) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    /// Listens and returns the exact address. An existing socket file on which no process listens
    /// is replaced.
    pub(crate) fn bind(listen: &Listen, protocol: Protocol) -> Result<(Self, Listen), Error> {
        let failed = |source| Error::Listen { address: listen.to_string(), source };
        match listen {
            Listen::Unix(path) => {
                let in_folder = protocol == Protocol::Postgres && path.is_dir();
                let path = if in_folder { path.join(POSTGRES_SOCKET) } else { path.clone() };
                remove_dead_socket(&path)?;
                let listener = UnixListener::bind(&path).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                Ok((Self::Unix(listener), Listen::Unix(path)))
            }
            Listen::Tcp(address) => {
                let listener = TcpListener::bind(address).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                let address = listener.local_addr().map_err(failed)?;
                Ok((Self::Tcp(listener), Listen::Tcp(address)))
            }
        }
    }

    /// Accepts the next connection. The error is `WouldBlock` if there is none.
    pub(crate) fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Unix(listener) => {
                let stream = listener.accept()?.0;
                stream.set_nonblocking(true)?;
                Ok(Stream::Unix(stream))
            }
            Self::Tcp(listener) => {
                let stream = listener.accept()?.0;
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener) => listener.as_fd(),
            Self::Tcp(listener) => listener.as_fd(),
        }
    }
}

/// Removes a socket file that a dead server has left. Any other file at that path is an error.
fn remove_dead_socket(path: &Path) -> Result<(), Error> {
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(Error::NotASocket { path: path.to_owned() });
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            // A file that cannot be removed makes the later `bind` fail, which reports the problem.
            let _ = std::fs::remove_file(path);
            Ok(())
        }
        _ => Err(Error::SocketInUse { path: path.to_owned() }),
    }
}

/// A connected socket that never blocks.
#[derive(Debug)]
pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    pub(crate) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => (&*stream).read(into),
            Self::Tcp(stream) => (&*stream).read(into),
        }
    }
}

impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => (&*stream).write(bytes),
            Stream::Tcp(stream) => (&*stream).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_answers_is_kept_and_a_dead_one_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let listen = Listen::Unix(path.clone());
        let (alive, reported) = Listener::bind(&listen, Protocol::Mysql).expect("a free path");
        assert_eq!(reported, listen);
        let refused = Listener::bind(&listen, Protocol::Mysql).expect_err("in use");
        assert!(matches!(refused, Error::SocketInUse { .. }), "{refused}");
        drop(alive);
        assert!(path.exists());
        Listener::bind(&listen, Protocol::Mysql).expect("no one listens any more");
    }

    #[test]
    fn a_file_that_is_no_socket_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        std::fs::write(&path, "precious").expect("written");
        let refused = Listener::bind(&Listen::Unix(path.clone()), Protocol::Mysql).expect_err("no socket");
        assert!(matches!(refused, Error::NotASocket { .. }), "{refused}");
        let refused = Listener::bind(&Listen::Unix(folder.path().to_owned()), Protocol::Mysql);
        assert!(matches!(refused, Err(Error::NotASocket { .. })));
        assert!(path.exists());
    }

    #[test]
    fn a_folder_gets_a_postgres_socket_and_port_0_becomes_a_free_port() {
        let folder = tempfile::tempdir().expect("a folder");
        let bound = Listener::bind(&Listen::Unix(folder.path().to_owned()), Protocol::Postgres);
        assert_eq!(bound.expect("bound").1, Listen::Unix(folder.path().join(".s.PGSQL.5432")));
        let any = Listen::Tcp(([127, 0, 0, 1], 0).into());
        let Listen::Tcp(address) = Listener::bind(&any, Protocol::Mysql).expect("bound").1 else {
            panic!("not TCP")
        };
        assert_ne!(address.port(), 0);
    }
}
