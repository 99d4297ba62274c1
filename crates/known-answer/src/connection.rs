//! One open connection, with its received bytes, its job in progress, and the bytes to send.

use std::io;
use std::time::{Duration, Instant};

use crate::listen::Stream;
use crate::output::Output;
use crate::protocol::Session;
use crate::protocol::{ParsedInput, RequestKind, StatementRequest};
use crate::stats::Stats;
use crate::{Script, StatementFault};

/// A connection's next state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextState {
    /// It waits for its client.
    Waits,
    /// It has a job, which must be put on the timer queue.
    Works,
    Over,
}

/// Work that takes time.
#[derive(Debug)]
pub(crate) struct Job {
    task: Task,
    pub(crate) since: Instant,
    /// The time that the job should take, apart from freezes.
    pub(crate) programmed: Duration,
    /// CPU time that the job must still burn.
    pub(crate) burn_left: Duration,
    /// The job's entry on the timer queue; `None` before the job is on the queue.
    pub(crate) ticket: Option<u64>,
}

impl Job {
    pub(crate) fn is_statement(&self) -> bool {
        matches!(self.task, Task::Answer(..))
    }
}

#[derive(Debug)]
enum Task {
    Login,
    Answer(StatementRequest, StatementFault),
    /// The job answers a statement for which nothing is programmed.
    Unprogrammed(StatementRequest),
    /// The job sends the second half of an answer.
    Rest(Output),
    /// The job only sends the output. It exists because a freeze may delay the sending.
    SendOutput,
}

/// Statements whose answers are complete in the output but not yet fully written to the socket.
#[derive(Debug, Clone, Copy)]
struct Unwritten {
    count: u64,
    since: Instant,
    programmed: Duration,
}

#[derive(Debug)]
pub(crate) struct ClientConnection {
    pub(crate) stream: Stream,
    number: u64,
    /// Whether the connection counts against the connection limit.
    pub(crate) admitted: bool,
    session: Session,
    /// Received bytes that are not parsed yet, because the message is incomplete or a job is in
    /// progress.
    input: Vec<u8>,
    output: Output,
    pub(crate) job: Option<Job>,
    statements: u64,
    unwritten: Option<Unwritten>,
    /// Whether there may be bytes in the socket.
    pub(crate) readable: bool,
    /// Whether the client has closed its side, so that no bytes follow those in the socket.
    pub(crate) hung_up: bool,
    /// Whether the socket is full.
    pub(crate) blocked: bool,
    /// Whether the connection closes as soon as everything is written.
    closing: bool,
}

impl ClientConnection {
    pub(crate) fn new(
        stream: Stream,
        number: u64,
        admitted: bool,
        mut begin: impl FnMut(&mut Output) -> Session,
    ) -> Self {
        let mut output = Output::default();
        let session = begin(&mut output);
        Self {
            stream,
            number,
            admitted,
            closing: matches!(session, Session::TurnedAway),
            session,
            input: Vec::new(),
            output,
            job: None,
            statements: 0,
            unwritten: None,
            readable: true,
            hung_up: false,
            blocked: false,
        }
    }

    /// Parses the input, answers, writes and reads until the connection must wait.
    pub(crate) fn advance(
        &mut self,
        script: &Script,
        stats: &mut Stats,
        read_buffer: &mut [u8],
    ) -> NextState {
        let mut now = Instant::now();
        loop {
            if !self.input.is_empty() {
                let input = std::mem::take(&mut self.input);
                let used = self.parse_input(&input, now, script, stats);
                self.input = input;
                self.input.drain(..used);
            }
            let stopped = self.output.is_full();
            if self.write(stats).is_err() || (self.closing && !self.blocked) {
                return NextState::Over;
            }
            if self.job.is_some() {
                return NextState::Works;
            }
            if self.blocked {
                return NextState::Waits;
            }
            if stopped && !self.input.is_empty() {
                continue;
            }
            if !self.readable {
                return NextState::Waits;
            }
            let length = match self.stream.read(read_buffer) {
                Ok(0) => return NextState::Over,
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.readable = false;
                    return NextState::Waits;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return NextState::Over,
            };
            now = Instant::now();
            stats.received_bytes += length as u64;
            // A short read has emptied the socket, and the kernel will report new bytes. If the
            // kernel has already reported the end of the stream, it does not report it again, so
            // another read must find the end.
            self.readable = length == read_buffer.len() || self.hung_up;
            if self.input.is_empty() {
                let used = self.parse_input(&read_buffer[..length], now, script, stats);
                self.input.extend_from_slice(&read_buffer[used..length]);
            } else {
                self.input.extend_from_slice(&read_buffer[..length]);
            }
        }
    }

    /// Parses messages until `input` ends or a message needs a job. The result is the number of
    /// bytes that were parsed.
    fn parse_input(&mut self, input: &[u8], now: Instant, script: &Script, stats: &mut Stats) -> usize {
        let mut at = 0;
        while self.job.is_none() && !self.closing && !self.output.is_full() {
            match self.session.next(&input[at..], &mut self.output) {
                ParsedInput::More => break,
                ParsedInput::Close => self.closing = true,
                ParsedInput::Done(length, kind) => {
                    at += length;
                    count(stats, kind);
                    if kind != RequestKind::Part && script.freeze.is_some() {
                        self.begin(Task::SendOutput, now, Duration::ZERO, script, stats);
                    }
                }
                ParsedInput::Login(length) => {
                    at += length;
                    self.begin(Task::Login, now, script.login_delay, script, stats);
                }
                ParsedInput::Statement(length, work) => {
                    at += length;
                    let number = if work.prepared {
                        &mut stats.requests.executions
                    } else {
                        &mut stats.requests.queries
                    };
                    *number += 1;
                    if script.prepared_only && !work.prepared {
                        self.begin(Task::Unprogrammed(work), now, Duration::ZERO, script, stats);
                        continue;
                    }
                    self.statements += 1;
                    let fault = script.fault_of(self.number, self.statements);
                    let time = script.burn + script.delay_of(self.number, self.statements);
                    self.begin(Task::Answer(work, fault), now, time, script, stats);
                }
            }
        }
        at
    }

    fn begin(
        &mut self,
        task: Task,
        since: Instant,
        programmed: Duration,
        script: &Script,
        stats: &mut Stats,
    ) {
        let burn_left = if matches!(task, Task::Answer(..)) { script.burn } else { Duration::ZERO };
        let job = Job { task, since, programmed, burn_left, ticket: None };
        if programmed.is_zero() && script.freeze.is_none() {
            self.finish(job, script, stats);
        } else {
            self.job = Some(job);
        }
    }

    /// Finishes the job, which is due.
    pub(crate) fn finish_job(&mut self, script: &Script, stats: &mut Stats) {
        if let Some(job) = self.job.take() {
            self.finish(job, script, stats);
        }
    }

    fn finish(&mut self, job: Job, script: &Script, stats: &mut Stats) {
        match job.task {
            Task::Login => {
                self.session.welcome(&mut self.output);
                stats.connections.logged_in += 1;
            }
            Task::Rest(rest) => self.output.put_rest(rest),
            Task::SendOutput => {}
            Task::Unprogrammed(work) => self.session.answer(work, &mut self.output),
            Task::Answer(work, StatementFault::None) => {
                self.session.answer(work, &mut self.output);
                self.answered(job.since, job.programmed);
            }
            Task::Answer(work, StatementFault::Refused) => {
                let code = script.error.as_ref().map_or("", |error| error.code.as_str());
                self.session.refuse(work, code, &mut self.output);
                stats.faults.errors += 1;
                self.answered(job.since, job.programmed);
            }
            Task::Answer(_, StatementFault::Disconnected) => {
                stats.faults.disconnects += 1;
                self.closing = true;
            }
            Task::Answer(work, StatementFault::Half) => {
                stats.faults.half_answers += 1;
                self.answer_half(work, script);
            }
        }
    }

    fn answered(&mut self, since: Instant, programmed: Duration) {
        match &mut self.unwritten {
            Some(unwritten) => unwritten.count += 1,
            None => self.unwritten = Some(Unwritten { count: 1, since, programmed }),
        }
    }

    /// Answers with the first half. A new job sends the second half later, or the connection
    /// closes.
    fn answer_half(&mut self, work: StatementRequest, script: &Script) {
        let before = self.output.len();
        self.session.answer(work, &mut self.output);
        let rest = self.output.split_off(before + (self.output.len() - before) / 2);
        match script.half.and_then(|half| half.stall) {
            None => self.closing = true,
            Some(stall) => {
                let (since, burn_left) = (Instant::now(), Duration::ZERO);
                self.job =
                    Some(Job { task: Task::Rest(rest), since, programmed: stall, burn_left, ticket: None });
            }
        }
    }

    fn write(&mut self, stats: &mut Stats) -> io::Result<()> {
        let must_wait = self.job.as_ref().is_some_and(|job| matches!(job.task, Task::SendOutput));
        if must_wait || self.output.is_empty() {
            return Ok(());
        }
        let (done, sent) = self.output.send(&self.stream)?;
        stats.sent_bytes += sent;
        self.blocked = !done;
        if let (true, Some(Unwritten { count, since, programmed })) = (done, self.unwritten) {
            stats.answered(programmed, since.elapsed(), count);
            self.unwritten = None;
        }
        Ok(())
    }
}

fn count(stats: &mut Stats, kind: RequestKind) {
    let requests = &mut stats.requests;
    match kind {
        RequestKind::Prepare => requests.prepares += 1,
        RequestKind::Close => requests.closes += 1,
        RequestKind::Ping => requests.pings += 1,
        RequestKind::Other => requests.others += 1,
        RequestKind::Part => {}
    }
}
