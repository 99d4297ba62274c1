//! The byte stream under a session: a unix socket, TCP with TCP_NODELAY, or TLS over one of them.

use std::future::poll_fn;
use std::io;
use std::io::IoSlice;
use std::os::unix::net::UnixStream as StdStream;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use dbdyno_products::Address;
use rustix::net::sockopt::{set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::connections::Encryption;

/// Keepalive settings for TCP: the silence after which the kernel probes the other side, the
/// interval between probes, and the number of unanswered probes after which the connection counts
/// as lost. A silent peer is detected after 90 s.
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

    /// The encryption that both sides agreed on; `None` for plaintext.
    pub(crate) fn encryption(&self) -> Option<Encryption> {
        let Self::Tls(stream) = self else { return None };
        let connection = stream.get_ref().1;
        let version = connection.protocol_version()?;
        let cipher = connection.negotiated_cipher_suite()?.suite();
        // rustls writes TLSv1_3 and TLS13_AES_..., but the registered names are TLSv1.3 and
        // TLS_AES_...
        let cipher = cipher.as_str().unwrap_or("unknown").replacen("TLS13_", "TLS_", 1);
        let version = version.as_str().unwrap_or("unknown").replace('_', ".");
        Some(Encryption { version, cipher })
    }

    /// The process at the other end, as the kernel knows it (SO_PEERCRED, unix(7)). It is `None`
    /// over TCP, and if this process cannot see the other process's namespace.
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
/// notice a peer that disappeared without a message, for example after a power failure or behind a
/// firewall that dropped the connection. While a request is not acknowledged, the kernel resends it
/// and gives up according to its own setting (`tcp_retries2`). `TCP_USER_TIMEOUT` would replace
/// that setting, and would also end connections to a server that accepts no bytes during a long
/// stall.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    set_socket_keepalive(stream, true)?;
    set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)?;
    set_tcp_keepcnt(stream, KEEPALIVE_PROBES)?;
    Ok(())
}

/// Writes all of `bytes`, including the bytes that TLS has buffered because the socket was full.
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

/// Evaluates an expression with the inner stream of any variant.
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

/// Pause before the next attempt to connect to a server whose backlog was full.
const BACKLOG_PAUSE: Duration = Duration::from_millis(1);

/// A unix socket that wakes its reader only when there is something to read.
///
/// tokio's own `UnixStream` is registered for reading and writing. Each time the server takes a
/// request out of a unix socket, the kernel reports the socket as writable again
/// (`unix_write_space`). That event wakes the client needlessly while it waits for its answer, and
/// costs a context switch per request. This stream registers only for reading. It tries to write at
/// once, and registers for writing only for the rare request that does not fit into the socket's
/// buffer. A blocking read in the kernel is woken in the same way: with a single connection it used
/// a third more CPU per query than this stream.
#[derive(Debug)]
pub struct UnixStream {
    reader: AsyncFd<StdStream>,
    /// The writer is made when a write first has to wait.
    writer: Option<AsyncFd<StdStream>>,
}

impl UnixStream {
    /// Connects to the socket at `path`. It waits while the server's backlog of connections to
    /// accept is full, because the kernel makes a blocking client wait in that case but rejects a
    /// non-blocking one. The caller limits the time.
    pub(crate) async fn connect(path: &Path) -> io::Result<Self> {
        let stream = loop {
            match tokio::net::UnixStream::connect(path).await {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tokio::time::sleep(BACKLOG_PAUSE).await;
                }
                other => break other?.into_std()?,
            }
        };
        Ok(Self { reader: register(stream, Interest::READABLE)?, writer: None })
    }

    /// Implements [`crate::stream::Stream::peer_pid`] for unix sockets.
    pub(crate) fn peer_pid(&self) -> Option<u32> {
        let stream = self.reader.get_ref().try_clone().ok()?;
        let pid = tokio::net::UnixStream::from_std(stream).ok()?.peer_cred().ok()?.pid()?;
        u32::try_from(pid).ok().filter(|pid| *pid > 0)
    }

    /// Writes at once if there is space, and otherwise waits for it.
    fn poll_write_with(
        &mut self,
        cx: &mut Context<'_>,
        write: impl Fn(&StdStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            match write(self.reader.get_ref()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let mut ready = ready!(self.writer()?.poll_write_ready(cx))?;
                    ready.clear_ready();
                    // There may be space by now. If there is none, the next wait ends when there is
                    // some.
                    match write(self.reader.get_ref()) {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        other => return Poll::Ready(other),
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return Poll::Ready(other),
            }
        }
    }

    fn writer(&mut self) -> io::Result<&AsyncFd<StdStream>> {
        if self.writer.is_none() {
            self.writer = Some(register(self.reader.get_ref().try_clone()?, Interest::WRITABLE)?);
        }
        self.writer.as_ref().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

#[expect(
    deprecated,
    reason = "the replacement is an unsafe function; a std stream owns its descriptor for life"
)]
fn register(stream: StdStream, interest: Interest) -> io::Result<AsyncFd<StdStream>> {
    AsyncFd::with_interest(stream, interest)
}

impl AsyncRead for UnixStream {
    #[inline]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.reader.poll_read_ready(cx))?;
            let space = buf.initialize_unfilled();
            let wanted = space.len();
            match recv(ready.get_inner(), space, RecvFlags::empty())
                .map(|(read, _)| read)
                .map_err(io::Error::from)
            {
                Ok(read) => {
                    // A short read has emptied the socket, so another system call would only report
                    // that the socket is empty.
                    if read > 0 && read < wanted {
                        ready.clear_ready();
                    }
                    buf.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for UnixStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().poll_write_with(cx, |stream| Ok(send(stream, bytes, SendFlags::NOSIGNAL)?))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_write_with(cx, |stream| {
            Ok(sendmsg(stream, pieces, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL)?)
        })
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.reader.get_ref().shutdown(std::net::Shutdown::Write))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    use rustix::net::sockopt::{socket_keepalive, tcp_keepcnt, tcp_keepidle, tcp_keepintvl};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

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

    fn connected() -> (tempfile::TempDir, UnixListener) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let listener = UnixListener::bind(folder.path().join("s")).expect("a socket");
        (folder, listener)
    }

    #[tokio::test(flavor = "current_thread")]
    async fn requests_and_answers_larger_than_the_sockets_buffers_get_through() {
        let (folder, listener) = connected();
        let echo = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("a connection");
            let mut all = Vec::new();
            peer.read_to_end(&mut all).expect("all bytes");
            peer.write_all(&all).expect("all bytes back");
        });
        let mut stream = UnixStream::connect(&folder.path().join("s")).await.expect("connected");
        let sent: Vec<u8> = (0..5_000_000_u32).map(|n| (n % 251) as u8).collect();
        stream.write_all(&sent).await.expect("written");
        stream.shutdown().await.expect("shut down");
        let mut received = Vec::new();
        stream.read_to_end(&mut received).await.expect("read");
        assert!(received == sent);
        echo.join().expect("the peer ends");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn the_process_that_listens_is_known() {
        let (folder, _listener) = connected();
        let stream = UnixStream::connect(&folder.path().join("s")).await.expect("connected");
        assert_eq!(stream.peer_pid(), Some(std::process::id()));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_client_waits_for_a_server_with_a_full_backlog() {
        use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, accept, bind, listen, socket};
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("s");
        let listener = socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
        bind(&listener, &SocketAddrUnix::new(&path).expect("a path")).expect("bound");
        listen(&listener, 1).expect("listening");
        let mut held = Vec::new();
        loop {
            match tokio::net::UnixStream::connect(&path).await {
                Ok(stream) => held.push(stream),
                Err(error) => break assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        assert_eq!(held.len(), 2, "what a backlog of 1 holds");
        let server = std::thread::spawn(move || {
            // Meanwhile the client finds the backlog full repeatedly.
            std::thread::sleep(Duration::from_millis(100));
            let begins = std::time::Instant::now();
            (begins, (0..3).map(|_| accept(&listener).expect("a connection")).collect::<Vec<_>>())
        });
        UnixStream::connect(&path).await.expect("connected late");
        let connected = std::time::Instant::now();
        let (begins, _accepted) = server.join().expect("the server ends");
        assert!(connected >= begins, "{:?} before there was room", begins - connected);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn many_short_answers_are_all_seen() {
        let (folder, listener) = connected();
        let peer = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("a connection");
            let mut request = [0; 8];
            for _ in 0..20_000 {
                peer.read_exact(&mut request).expect("a request");
                peer.write_all(&request[..4]).expect("half an answer");
                peer.write_all(&request[4..]).expect("the other half");
            }
        });
        let mut stream = UnixStream::connect(&folder.path().join("s")).await.expect("connected");
        for number in 0..20_000_u64 {
            stream.write_all(&number.to_le_bytes()).await.expect("written");
            let mut answer = [0; 8];
            stream.read_exact(&mut answer).await.expect("read");
            assert_eq!(u64::from_le_bytes(answer), number);
        }
        peer.join().expect("the peer ends");
        assert_eq!(stream.read(&mut [0; 1]).await.expect("end of stream"), 0);
    }
}
