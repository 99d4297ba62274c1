//! Messages over a byte stream, with one output and one input buffer that are kept for the life of
//! the session.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::ReadBuf;

use super::fault::{Fault, Said};
use super::message::{HEADER, header};
use super::report;
use super::scan::{LONGEST_CONTROL, Scanner, Step};
use crate::allowance::Allowance;
use crate::input::{FIRST_SIZE, Input};
use crate::stream::{ByteStream, write_whole};

/// Time for reading what a server said before it closed the connection; it lies in the socket
/// already or never comes.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What happened first on a stream that is written to and listened to.
enum Event {
    Sent(io::Result<usize>),
    /// Nothing is held back any more; TLS may do that with what did not fit into the socket.
    Flushed(io::Result<()>),
    Heard(io::Result<usize>),
}

/// A stream with its buffers.
#[derive(Debug)]
pub(super) struct Wire<S> {
    stream: S,
    output: Vec<u8>,
    input: Input,
    /// Bytes at the front of `input` that are done with.
    consumed: usize,
    /// What [`Wire::read`] may still keep.
    allowance: Allowance,
}

impl<S: ByteStream> Wire<S> {
    /// A wire over a fresh stream.
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            output: Vec::with_capacity(256),
            input: Input::new(FIRST_SIZE),
            consumed: 0,
            allowance: Allowance::LOGIN,
        }
    }

    /// From now on messages may be kept up to this.
    pub(super) fn allow(&mut self, allowance: Allowance) {
        self.allowance = allowance;
    }

    /// Takes what a row of so many values needs off what may be kept.
    pub(super) fn keep_row(&mut self, values: usize) -> Result<(), Fault> {
        self.allowance.take_row(values).map_err(Fault::TooLarge)
    }

    /// The stream, for what only it knows.
    pub(super) fn stream(&self) -> &S {
        &self.stream
    }

    /// Where the next messages are built; [`Wire::send`] or [`Wire::reply`] sends them.
    pub(super) fn message(&mut self) -> &mut Vec<u8> {
        self.output.clear();
        &mut self.output
    }

    /// Messages that are built and not yet sent, to add to.
    pub(super) fn unsent(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Sends the messages as a new question.
    pub(super) fn send(&mut self) -> impl Future<Output = Result<(), Fault>> {
        let checked = if self.unread().is_empty() { Ok(()) } else { self.check_unasked() };
        self.send_checked(checked)
    }

    /// Sends the messages as a part of the exchange that is going on.
    pub(super) fn reply(&mut self) -> impl Future<Output = Result<(), Fault>> {
        self.send_checked(Ok(()))
    }

    async fn send_checked(&mut self, checked: Result<(), Fault>) -> Result<(), Fault> {
        checked?;
        match write_whole(&mut self.stream, &self.output).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.last_words().await.unwrap_or(error.into())),
        }
    }

    /// Sends the messages as a part of the exchange that is going on, and lets `scanner` walk over
    /// what comes meanwhile: a server that reports each row stops reading rows when no one listens.
    /// Says whether the answer is complete, which happens when the server refuses the rest.
    pub(super) async fn reply_listening(&mut self, scanner: &mut Scanner) -> Result<bool, Fault> {
        let mut complete = self.walk(scanner)?;
        if complete {
            return Ok(true);
        }
        let (mut sent, mut is_flushed) = (0, false);
        while !is_flushed {
            self.input.take(self.consumed);
            self.consumed = 0;
            match poll_fn(|context| self.poll_event(context, sent)).await {
                Event::Sent(Ok(0)) => return Err(Fault::Closed),
                Event::Sent(Ok(count)) => sent += count,
                Event::Flushed(Ok(())) => is_flushed = true,
                Event::Sent(Err(error)) | Event::Flushed(Err(error)) => {
                    return Err(self.scanned_last_words(scanner).await.unwrap_or(error.into()));
                }
                Event::Heard(Ok(0)) => return Err(scanner.last_word().unwrap_or(Fault::Closed)),
                Event::Heard(Ok(count)) => {
                    self.input.filled(count);
                    if !complete {
                        complete = self.walk(scanner)?;
                    } else if self.unread().len() > LONGEST_CONTROL {
                        return Err(Fault::Malformed("more than notices after the end of an answer"));
                    }
                }
                Event::Heard(Err(error)) => return Err(error.into()),
            }
        }
        Ok(complete)
    }

    /// Lets `scanner` walk over what has arrived; `true` when the answer is complete.
    fn walk(&mut self, scanner: &mut Scanner) -> Result<bool, Fault> {
        let (done, step) = scanner.scan(self.unread())?;
        self.consumed += done;
        Ok(step == Step::Done)
    }

    /// Writes what is not `sent` of the messages; where the stream takes nothing, reads instead.
    fn poll_event(&mut self, context: &mut Context<'_>, sent: usize) -> Poll<Event> {
        let stream = Pin::new(&mut self.stream);
        let event = match &self.output[sent..] {
            [] => stream.poll_flush(context).map(Event::Flushed),
            rest => stream.poll_write(context, rest).map(Event::Sent),
        };
        if event.is_ready() {
            return event;
        }
        let mut room = ReadBuf::new(self.input.room());
        let outcome = ready!(Pin::new(&mut self.stream).poll_read(context, &mut room));
        Poll::Ready(Event::Heard(outcome.map(|()| room.filled().len())))
    }

    /// What came after the last answer: a server reports new parameters, notifications and its own
    /// end when it likes, and of nothing else.
    fn check_unasked(&mut self) -> Result<(), Fault> {
        while let Some((kind, length)) = header(self.unread())? {
            match kind {
                b'S' | b'A' | b'N' => {}
                // The next answer begins with it.
                b'E' => return Ok(()),
                _ => return Err(Fault::Malformed("a message after the end of the last answer")),
            }
            if self.unread().len() < HEADER + length {
                return Ok(());
            }
            self.consumed += HEADER + length;
        }
        Ok(())
    }

    /// Why the server closed the connection, when it said so before: a shutdown, a kill, an idle
    /// connection's end. Without this the user would only learn of a broken pipe.
    async fn last_words(&mut self) -> Option<Fault> {
        let mut body = Vec::new();
        self.allow(Allowance::LOGIN);
        let search = async {
            loop {
                match self.read(&mut body).await {
                    Ok(b'E') => return report::error(&body).ok().map(Said::Ended).map(Fault::Said),
                    Ok(_) => {}
                    Err(_) => return None,
                }
            }
        };
        tokio::time::timeout(LAST_WORDS, search).await.ok()?
    }

    /// As [`Wire::last_words`], in the middle of an answer that `scanner` walks over.
    async fn scanned_last_words(&mut self, scanner: &mut Scanner) -> Option<Fault> {
        match tokio::time::timeout(LAST_WORDS, self.scan(scanner)).await {
            Ok(Err(fault @ Fault::Said(Said::Ended(_) | Said::Server(_)))) => Some(fault),
            _ => None,
        }
    }

    /// Overwrites the message sent last: a login leaves no password in memory.
    pub(super) fn wipe(&mut self) {
        self.output.fill(0);
    }

    /// Lets `scanner` walk over what has arrived, and reads until it wants something else than
    /// more.
    pub(super) async fn scan(&mut self, scanner: &mut Scanner) -> Result<Step, Fault> {
        poll_fn(|context| self.poll_scan(context, scanner)).await
    }

    /// See [`Wire::scan`].
    pub(super) fn poll_scan(
        &mut self,
        context: &mut Context<'_>,
        scanner: &mut Scanner,
    ) -> Poll<Result<Step, Fault>> {
        loop {
            if !self.unread().is_empty() {
                let (done, step) = scanner.scan(self.unread())?;
                self.consumed += done;
                if step != Step::More {
                    return Poll::Ready(Ok(step));
                }
            }
            if let Err(fault) = ready!(self.poll_fill(context)) {
                return Poll::Ready(Err(scanner.last_word().unwrap_or(fault)));
            }
        }
    }

    /// Reads one message whole: its kind, and its body into `body`.
    pub(super) async fn read(&mut self, body: &mut Vec<u8>) -> Result<u8, Fault> {
        let (kind, length) = loop {
            match header(self.unread())? {
                Some(found) => break found,
                None => self.fill().await?,
            }
        };
        self.allowance.take(HEADER + length).map_err(Fault::TooLarge)?;
        self.consumed += HEADER;
        body.clear();
        while body.len() < length {
            if self.unread().is_empty() {
                self.fill().await?;
            }
            let piece = (length - body.len()).min(self.unread().len());
            body.extend_from_slice(&self.unread()[..piece]);
            self.consumed += piece;
        }
        Ok(kind)
    }

    /// What has been read and is not done with.
    fn unread(&self) -> &[u8] {
        &self.input[self.consumed..]
    }

    /// One read into the spare room of the input buffer; what is not done with moves to its front
    /// first.
    async fn fill(&mut self) -> Result<(), Fault> {
        poll_fn(|context| self.poll_fill(context)).await
    }

    #[inline(always)]
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.input.take(std::mem::take(&mut self.consumed));
        Poll::Ready(match ready!(self.input.poll_read_from(context, &mut self.stream))? {
            0 => Err(Fault::Closed),
            _ => Ok(()),
        })
    }
}
