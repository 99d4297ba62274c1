//! Pace, clock, histograms, start and stop together; knows no SQL.
//!
//! A step is a set of [`Lane`]s, one a connection. Worker threads each run a tokio current-thread runtime and share
//! nothing while the clock runs but a few atomics in [`control::Control`]. Every operation has a due time; response
//! time counts from there, service time from the moment it was sent. Counts and histograms are cut at whole
//! seconds, at the end of the common window and at the end of the step, by the time at which each answer was
//! complete.

mod abandon;
mod batch;
mod collector;
mod control;
mod coupling;
mod engine;
mod error;
mod lane;
mod lane_task;
mod pace;
mod recorder;
mod timer;
mod worker;

pub use control::StopReason;
pub use coupling::{Coupling, Side};
pub use engine::{Observer, Step, StepEnd, Threads, run};
pub use error::Error;
pub use lane::{Done, Failure, Lane, LaneEnd, LaneSpec, Limit, Lookup, Notes, Role};
pub use pace::Pace;
