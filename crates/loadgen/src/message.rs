//! What the collector of a step is sent, by load threads of its own or by those of other hosts.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::batch::Batch;
use crate::control::StopReason;
use crate::histogram::counts;
use crate::pauses::Pause;
use crate::{Failure, TaskEnd, Lookup};

/// From a load thread to the collector.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    /// All connections of a worker are open.
    Ready {
        worker: usize,
        took: Duration,
        /// How long each of them took to open.
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
    /// Of another host: its client did not run for a time.
    Paused(Pause),
    /// Of another host: it has so many workers.
    Workers(usize),
    /// Of another host: the start came so much too late there.
    BegunLate(Duration),
    /// Of another host: its part was stopped for this reason, and so the step is.
    Stopped(StopReason),
    /// Another host is gone, or is of no more use.
    HostLost(String),
}

/// Where the collector gets messages from.
pub(crate) trait Inbox {
    /// The next one; waits for it.
    fn next(&mut self, wait: Duration) -> Result<Message, RecvTimeoutError>;
}

impl Inbox for Receiver<Message> {
    fn next(&mut self, wait: Duration) -> Result<Message, RecvTimeoutError> {
        self.recv_timeout(wait)
    }
}
