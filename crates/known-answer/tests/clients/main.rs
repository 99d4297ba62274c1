//! dbdyno's own drivers as clients of the known-answer server: both protocols, over the wire.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod answers;
mod faults;
mod support;
mod truth;
