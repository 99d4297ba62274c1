//! A server whose answers, delays and faults are programmed: the truth that dbdyno and others are
//! held against.
//!
//! It speaks enough of MySQL's and of PostgreSQL's protocol for dbdyno's own drivers and for
//! foreign clients (sysbench, the command line clients, pgbench), and understands no SQL beyond the
//! first words of a statement. Both protocols are written here from their documentation and share
//! no code with the crate `drivers`, so that an error of one is not cancelled by the other. What
//! the server is meant to do is a [`Script`], whose truth (the mean, the quantiles, the delay of
//! the nth statement) is computed; what it really did is in its [`Stats`].
//!
//! Threads share nothing while they serve. Each waits with epoll for the connections it was given,
//! and has an timer queue of what is due, the earliest first. The last 80 µs before something is due it
//! does not sleep but looks for new requests, so that answers go out within microseconds of their
//! time.

mod timer_queue;
mod script;
mod burn;
mod connection;
mod distribution;
mod random;
mod error;
mod exchange;
mod fault;
mod freeze;
mod listen;
mod mysql;
mod output;
mod postgres;
mod protocol;
mod server;
mod session;
mod statement;
mod stats;
mod stream;
mod units;
mod worker;

pub use script::Script;
pub use distribution::Distribution;
pub use error::Error;
pub use fault::{Fault, Half, Occurrence, Refusal};
pub use freeze::{Freeze, Origin};
pub use listen::Listen;
pub use protocol::Protocol;
pub use server::{Handle, Server, Threads};
pub use stats::{Connections, Faults, Requests, Stats, Times};
pub use units::duration;

/// A column's value of `bytes` bytes: digits that do not begin with 0, so that a short one can be
/// read as a number.
fn value(bytes: u32) -> Vec<u8> {
    b"1234567890".iter().copied().cycle().take(bytes as usize).collect()
}
