//! The messages that a step's collector receives, from its own load threads or from those of other
//! hosts.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::batch::Batch;
use crate::control::StopReason;
use crate::histogram::counts;
use crate::pauses::Pause;
use crate::{Failure, Lookup, TaskEnd};

/// A message from a load thread to the collector.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    /// All connections of a load thread are open.
    Ready {
        worker: usize,
        took: Duration,
        /// How long each of them took to open, in microseconds.
        #[serde(with = "counts")]
        logins: Box<Histogram<u64>>,
    },
    Batch(Batch),
    ConnectionEnded {
        at_ns: u64,
        end: TaskEnd,
    },
    Error {
        at_ns: u64,
        client: u32,
        kind: usize,
        failure: Failure,
    },
    Lookup {
        at_ns: u64,
        client: u32,
        lookup: Lookup,
    },
    Lost {
        at_ns: u64,
        client: u32,
        kind: usize,
        failure: Failure,
    },
    Reconnected {
        at_ns: u64,
        client: u32,
        kind: usize,
        down_ns: u64,
        attempts: u32,
    },
    WorkerEnded {
        ends: Vec<TaskEnd>,
    },
    /// Sent for another host: its client did not run for a time.
    Paused(Pause),
    /// Sent for another host: it has this many load threads.
    Workers(usize),
    /// Sent for another host: its clock started this much too late.
    BegunLate(Duration),
    /// Sent for another host: its part was stopped for this reason, and so the whole step stops.
    Stopped(StopReason),
    /// Another host is gone, or is of no more use.
    HostLost(String),
}

/// Where the collector gets messages from.
pub(crate) trait Inbox {
    /// Waits at most `wait` for the next message.
    fn next(&mut self, wait: Duration) -> Result<Message, RecvTimeoutError>;
}

impl Inbox for Receiver<Message> {
    fn next(&mut self, wait: Duration) -> Result<Message, RecvTimeoutError> {
        self.recv_timeout(wait)
    }
}
