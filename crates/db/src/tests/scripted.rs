//! Test helpers: a stream that sends scripted answers piece by piece, and functions that damage the
//! answers.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Default number of cases for a property, unless `PROPTEST_CASES` is set. All properties together
/// take a few seconds in a debug build.
const CASES: u32 = 200;

/// Seed that gives the same cases in each run, unless `PROPTEST_RNG_SEED` is set.
const SEED: u64 = 20_240_229;

/// The number of cases, and their seed.
pub(crate) fn cases() -> ProptestConfig {
    let mut config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = CASES;
    }
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(SEED);
    }
    config
}

/// A server that sends its next answer each time the client sends something, and closes the
/// connection after the last answer. Answers arrive in pieces with the given lengths, which repeat.
#[derive(Debug)]
pub(crate) struct Scripted {
    answers: VecDeque<Vec<u8>>,
    current: Vec<u8>,
    sent: usize,
    pieces: Vec<usize>,
    piece: usize,
    /// Adapts an answer to the bytes that the client has sent.
    fit: fn(&[u8], &mut [u8]),
    /// The bytes that the client has sent.
    pub(crate) received: Vec<u8>,
    /// The largest read buffer that the client has offered, in bytes.
    pub(crate) widest: usize,
}

impl Scripted {
    pub(crate) fn new(answers: impl IntoIterator<Item = Vec<u8>>, pieces: &[usize]) -> Self {
        let answers = answers.into_iter().collect();
        let pieces = if pieces.is_empty() { vec![usize::MAX] } else { pieces.to_vec() };
        let (current, received) = (Vec::new(), Vec::new());
        Self { answers, current, sent: 0, pieces, piece: 0, fit: |_, _| {}, received, widest: 0 }
    }

    /// The same server, but `fit` adapts its answers to the received bytes.
    pub(crate) fn fitting(mut self, fit: fn(&[u8], &mut [u8])) -> Self {
        self.fit = fit;
        self
    }

    /// The same server, but it sends its first answer before the client sends anything.
    pub(crate) fn greets(mut self) -> Self {
        self.current = self.answers.pop_front().unwrap_or_default();
        self
    }
}

impl AsyncRead for Scripted {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let own = self.get_mut();
        own.widest = own.widest.max(buf.remaining());
        let piece = own.pieces[own.piece % own.pieces.len()].max(1);
        own.piece += 1;
        let rest = &own.current[own.sent..];
        let count = piece.min(rest.len()).min(buf.remaining());
        buf.put_slice(&rest[..count]);
        own.sent += count;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Scripted {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let own = self.get_mut();
        own.received.extend_from_slice(bytes);
        if let Some(mut answer) = own.answers.pop_front() {
            (own.fit)(&own.received, &mut answer);
            own.current.extend(answer);
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Lengths of pieces. Most pieces have only a few bytes.
pub(crate) fn pieces() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![6 => 1..9_usize, 1 => 9..5_000_usize], 1..20)
}

/// One way to damage bytes. A position is a fraction of their length.
#[derive(Debug, Clone)]
pub(crate) enum Damage {
    Flip(prop::sample::Index, u8),
    Set(prop::sample::Index, u8),
    Delete(prop::sample::Index, usize),
    Insert(prop::sample::Index, Vec<u8>),
    Repeat(prop::sample::Index, usize),
    Cut(prop::sample::Index),
}

/// A few pieces of damage. The first bytes of lengths and packets are written more often than other
/// bytes.
pub(crate) fn damages() -> impl Strategy<Value = Vec<Damage>> {
    let place = any::<prop::sample::Index>;
    let telling = prop::sample::select(vec![0, 1, 3, 4, 0x7f, 0x80, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff]);
    let damage = prop_oneof![
        3 => (place(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip(at, 1 << bit)),
        4 => (place(), telling).prop_map(|(at, byte)| Damage::Set(at, byte)),
        2 => (place(), 1..9_usize).prop_map(|(at, count)| Damage::Delete(at, count)),
        2 => (place(), prop::collection::vec(any::<u8>(), 1..9)).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        1 => (place(), 1..60_usize).prop_map(|(at, count)| Damage::Repeat(at, count)),
        1 => place().prop_map(Damage::Cut),
    ];
    prop::collection::vec(damage, 1..6)
}

/// `bytes` after all `damages`, in order.
pub(crate) fn damaged(mut bytes: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages {
        if bytes.is_empty() {
            break;
        }
        match damage {
            Damage::Flip(at, bits) => *at.get_mut(&mut bytes) ^= bits,
            Damage::Set(at, byte) => *at.get_mut(&mut bytes) = *byte,
            Damage::Delete(at, count) => {
                let at = at.index(bytes.len());
                bytes.drain(at..(at + count).min(bytes.len()));
            }
            Damage::Insert(at, more) => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, more.iter().copied());
            }
            Damage::Repeat(at, count) => {
                let at = at.index(bytes.len());
                let again = bytes[at..(at + count).min(bytes.len())].to_vec();
                bytes.splice(at..at, again);
            }
            Damage::Cut(at) => bytes.truncate(at.index(bytes.len())),
        }
    }
    bytes
}

/// Runs a future that never waits for input from outside the test.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(work)
}
