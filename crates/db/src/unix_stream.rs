//! A unix socket that wakes its reader only when there is something to read.
//!
//! tokio's own `UnixStream` is registered for reading and writing. Each time the server takes a
//! request out of a unix socket, the kernel reports the socket as writable again
//! (`unix_write_space`). That wakes the client once more for nothing while it waits for its answer,
//! and costs a context switch per request. This stream registers only for reading. It tries to
//! write at once, and registers for writing only for the rare request that does not fit the
//! socket's buffer. A read that blocks in the kernel is woken for nothing in the same way. With a
//! single connection it used a third more CPU per query than this stream.

use std::io::{self, IoSlice};
use std::os::unix::net::UnixStream as StdStream;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

/// Pause before the next attempt to connect to a server whose backlog was full.
const BACKLOG_PAUSE: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub struct UnixStream {
    reader: AsyncFd<StdStream>,
    /// The writer is made when a write first has to wait.
    writer: Option<AsyncFd<StdStream>>,
}

impl UnixStream {
    /// Connects to the socket at `path`. It waits while the server's backlog of connections to
    /// accept is full. The kernel makes a blocking client wait there, but rejects a non-blocking
    /// one. The caller limits the time.
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
                    // There is space by now, or the next wait ends when there is.
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
                    // A short read has emptied the socket, so the next read need not find that out
                    // with another system call.
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

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

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
    async fn a_server_with_a_full_backlog_is_waited_for() {
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
