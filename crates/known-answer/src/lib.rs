//! A server whose answers, delays and faults are programmed. Its known truth is the reference for
//! dbdyno's and other tools' measurements.
//!
//! It speaks enough of MySQL's and PostgreSQL's protocols for dbdyno's own drivers and for foreign
//! clients (sysbench, the command line clients, pgbench). It understands no SQL beyond a
//! statement's first words. Both protocols are written here from their documentation and share no
//! code with the drivers in the crate `db`, so that an error in one cannot cancel an error in the
//! other. A [`Script`] says what the server should do, and its truth (the mean, the quantiles, the
//! delay of the nth statement) is computed. [`Stats`] says what the server really did.
//!
//! Each thread serves its own connections, for which it waits with epoll. Its timer queue has the
//! work that is due later, with the earliest entry first. In the last 80 µs before an entry is due,
//! the thread does not sleep but polls for new requests, so that answers are sent within
//! microseconds of their time.

mod connection;
mod distribution;
mod error;
mod fault;
mod listen;
mod mysql;
mod output;
mod postgres;
mod protocol;
mod script;
mod server;
mod statement;
mod stats;
mod units;
mod worker;

pub use distribution::Distribution;
pub use error::Error;
pub use fault::{Freeze, FreezeOrigin, Half, Occurrence, Refusal, StatementFault};
pub use listen::Listen;
pub use protocol::Protocol;
pub use script::Script;
pub use server::{Handle, Server, Threads};
pub use stats::{AnswerTimes, Connections, Faults, Requests, Stats};
pub use units::duration;

/// A column's value with `bytes` bytes. Its digits do not begin with 0, so that a short one can be
/// read as a number.
fn value(bytes: u32) -> Vec<u8> {
    b"1234567890".iter().copied().cycle().take(bytes as usize).collect()
}
