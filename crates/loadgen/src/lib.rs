//! The load engine: it sends operations on time, measures how long each takes, and starts and stops all
//! connections together. It knows no SQL.
//!
//! A step is a set of [`ConnectionTask`]s, one per connection. Each load thread runs a tokio
//! current-thread runtime. While the clock runs, load threads share only the few atomics in
//! [`control::Control`]. Every operation has a due time: response time counts from there, and service
//! time from the moment when the operation was sent. Counts and histograms are cut at whole seconds, at
//! the end of the common window and at the end of the step. An operation counts before or after a cut
//! by the time at which its answer was complete.

mod abandon;
mod arrival_process;
mod arrivals;
mod batch;
mod blocks;
mod collector;
mod connect;
mod control;
mod coupling;
mod due_times;
mod engine;
mod error;
mod histogram;
mod host_share;
mod hosts;
mod message;
mod notified;
mod opening;
mod pauses;
mod random;
mod reconnect;
mod recorder;
#[cfg(test)]
mod recorder_tests;
mod running_task;
mod schedule;
mod schedule_accounting;
mod shared;
mod spin;
mod statements;
mod task;
mod threads;
mod timer;
mod waiting;
mod watched;
mod worker;

pub use arrival_process::{ArrivalProcess, Draws};
pub use arrivals::{Arrivals, ThinkTime};
pub use collector::Observer;
pub use connect::{Connections, LostConnections, Reconnect};
pub use control::{Follower, StepCommand, StopReason};
pub use coupling::{Coupling, Side};
pub use engine::{Step, StepEnd, run};
pub use error::Error;
pub use host_share::HostShare;
pub use hosts::{FromHost, HostMessage, HostPart, can_be_shared, run_on_hosts, run_part};
pub use random::{Philox, draw_below, draw_below_u64};
pub use running_task::MOST_RETRIES;
pub use schedule::Schedule;
pub use statements::StatementDone;
pub use task::{
    ConnectionTask, Done, Failure, Limit, Lookup, Notes, OperationTimes, Role, TaskEnd, TaskSpec,
};
pub use threads::Threads;
pub use watched::{is_stopping_here, watch_here};
