//! A server whose answers, delays and faults are programmed. Because the correct results are known,
//! measurements by dbdyno and other tools can be compared with them.
//!
//! It speaks enough of MySQL's and PostgreSQL's protocols for dbdyno's own drivers and for foreign
//! clients (sysbench, the command line clients, pgbench). It understands no SQL beyond a
//! statement's first words. Both protocols are implemented from their documentation and share no
//! code with the drivers in the crate `dbdyno-db`, so that an error in a driver cannot be hidden by
//! the same error in this server. A [`Script`] says what the server should do, and the correct
//! results (the mean, the quantiles, the delay of the nth statement) are computed from it.
//! [`Stats`] reports the server's actual work.
//!
//! Each thread serves its own connections and waits for them with epoll. The thread's timer queue
//! has the jobs that are due later, the earliest first. In the last 80 µs before a job is due, the
//! thread does not sleep but polls for new requests, so that answers are sent within microseconds
//! of their time.

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

/// A column's value with `bytes` bytes. It consists of digits and does not begin with 0, so that a
/// short value can be read as a number.
fn value(bytes: u32) -> Vec<u8> {
    b"1234567890".iter().copied().cycle().take(bytes as usize).collect()
}
