//! The byte stream under a session: a unix socket, TCP with TCP_NODELAY, or TLS over one of them.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::net::sockopt::{set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use dbdyno_products::Address;

use crate::connections::Encryption;
use crate::unix_stream::UnixStream;

/// Keepalive settings for TCP: the silence after which the kernel probes the other side, the
/// interval between probes, and the number of unanswered probes after which the connection is lost.
/// That is 90 s in all.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 6;

/// The stream that a session uses: a [`Stream`], or its replacement in tests.
pub trait ByteStream: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> ByteStream for S {}

#[derive(Debug)]
pub enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
    /// The stream is boxed, because it is large and most sessions do not use it.
    Tls(Box<TlsStream<Stream>>),
}

impl Stream {
    pub(crate) async fn connect(address: &Address) -> io::Result<Self> {
        match address {
            Address::Socket(path) => Ok(Self::Unix(UnixStream::connect(path).await?)),
            Address::Tcp { host, port } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                keep_alive(&stream)?;
                Ok(Self::Tcp(stream))
            }
        }
    }

    /// What both sides agreed on; `None` for plaintext.
    pub(crate) fn encryption(&self) -> Option<Encryption> {
        let Self::Tls(stream) = self else { return None };
        let connection = stream.get_ref().1;
        let version = connection.protocol_version()?;
        let cipher = connection.negotiated_cipher_suite()?.suite();
        // rustls writes TLSv1_3 and TLS13_AES_..., while the registry has TLSv1.3 and TLS_AES_...
        let cipher = cipher.as_str().unwrap_or("unknown").replacen("TLS13_", "TLS_", 1);
        let version = version.as_str().unwrap_or("unknown").replace('_', ".");
        Some(Encryption { version, cipher })
    }

    /// The process at the other end, as the kernel knows it (SO_PEERCRED, unix(7)). It is `None`
    /// over TCP, and when the process is in a namespace that this process cannot see.
    pub(crate) fn peer_pid(&self) -> Option<u32> {
        match self {
            Self::Unix(stream) => stream.peer_pid(),
            Self::Tcp(_) => None,
            Self::Tls(stream) => stream.get_ref().0.peer_pid(),
        }
    }

    /// The server's certificate (DER).
    pub(crate) fn server_certificate(&self) -> Option<&[u8]> {
        let Self::Tls(stream) = self else { return None };
        Some(stream.get_ref().1.peer_certificates()?.first()?)
    }
}

/// Lets the kernel probe a silent server. Otherwise a client that waits for an answer would never
/// notice a peer that is gone without a message (a machine that lost its power, a firewall that
/// dropped the connection). While a request is not acknowledged, the kernel resends it instead, and
/// gives up according to its own setting (`tcp_retries2`). `TCP_USER_TIMEOUT` would replace that,
/// and would also end connections to a server that accepts no bytes during a long stall.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    set_socket_keepalive(stream, true)?;
    set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)?;
    set_tcp_keepcnt(stream, KEEPALIVE_PROBES)?;
    Ok(())
}

/// Writes all of `bytes`, including what TLS has held back because it did not fit the socket.
pub(crate) fn write_whole<S: AsyncWrite + Unpin>(
    stream: &mut S,
    bytes: &[u8],
) -> impl Future<Output = io::Result<()>> {
    let mut written = 0;
    poll_fn(move |context| {
        while written < bytes.len() {
            match ready!(Pin::new(&mut *stream).poll_write(context, &bytes[written..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => written += count,
            }
        }
        Pin::new(&mut *stream).poll_flush(context)
    })
}

/// Evaluates an expression with whichever stream this is.
macro_rules! each {
    ($stream:expr, $inner:ident => $done:expr) => {
        match $stream.get_mut() {
            Stream::Unix($inner) => $done,
            Stream::Tcp($inner) => $done,
            Stream::Tls($inner) => $done,
        }
    };
}

impl AsyncRead for Stream {
    #[inline]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_read(cx, buf))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, stream => Pin::new(stream).poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, stream => Pin::new(stream).poll_write_vectored(cx, pieces))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::sockopt::{socket_keepalive, tcp_keepcnt, tcp_keepidle, tcp_keepintvl};

    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn a_tcp_connection_finds_out_that_its_server_is_gone() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let address = Address::Tcp { host: "127.0.0.1".to_owned(), port };
        let Stream::Tcp(stream) = Stream::connect(&address).await.expect("connected") else {
            panic!("not a TCP stream");
        };
        assert!(socket_keepalive(&stream).expect("keepalive"));
        assert_eq!(tcp_keepidle(&stream).expect("idle time"), Duration::from_secs(30));
        assert_eq!(tcp_keepintvl(&stream).expect("interval"), Duration::from_secs(10));
        assert_eq!(tcp_keepcnt(&stream).expect("questions"), 6);
        assert!(stream.nodelay().expect("no delay"));
    }
}
