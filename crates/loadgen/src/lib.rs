//! The load engine sends operations on time, measures how long each takes, and starts and stops all
//! connections together. It knows no SQL.
//!
//! A step is a set of [`ConnectionTask`]s, one per connection. Each load thread runs a tokio
//! current-thread runtime. While the clock runs, load threads share only the few atomics in
//! [`control::Control`]. Every operation has a scheduled time: response time counts from there, and service
//! time from the moment when the operation was sent. Counts and histograms are cut at whole seconds, at
//! the end of the common window and at the end of the step. An operation counts before or after a cut
//! by the time at which its answer was complete.

mod arrivals;
mod batch;
mod collector;
mod connect;
mod control;
mod engine;
mod hosts;
mod load_threads;
mod pauses;
mod random;
mod recorder;
#[cfg(test)]
mod recorder_tests;
mod running_task;
mod schedule;
mod statements;
mod task;
mod timer;

pub use arrivals::{ArrivalProcess, Arrivals, Draws, ThinkTime};
pub use collector::Observer;
pub use connect::{Connections, LostConnections, Reconnect};
pub use control::{Follower, StepCommand, StopReason};
pub use engine::{Step, StepEnd, run};
pub use hosts::{FromHost, HostMessage, HostPart, HostShare, can_be_shared, run_on_hosts, run_part};
pub use load_threads::{Threads, is_stopping_here, watch_here};
pub use random::{Philox, draw_below, draw_below_u64};
pub use running_task::MOST_RETRIES;
pub use schedule::Schedule;
pub use statements::StatementDone;
pub use task::{
    ConnectionTask, Coupling, Done, Failure, Limit, Lookup, Notes, OperationTimes, Role, Side, TaskEnd,
    TaskSpec,
};

/// An error that kept a step from being run at all. Errors inside a step are part of its record.
/// Each message names the part that failed and, where the user can do something, a remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Record(#[from] dbdyno_record::Error),
    #[error(
        "cannot start a load thread: {0}; lower client_threads or raise the limit on processes (ulimit -u)"
    )]
    Thread(std::io::Error),
    #[error(
        "tasks of client {client} mix schedules: all tasks of a client and kind must share one schedule and one limit, \
         and no other task may use it; this is a fault of the workload, please report it"
    )]
    MixedSchedules { client: u32 },
    #[error("a load thread ended without a word: {0}; this is a fault of dbdyno, please report it")]
    Panicked(String),
}
