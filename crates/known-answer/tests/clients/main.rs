//! Tests dbdyno's own drivers as clients of the known-answer server, over both wire protocols.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod answers;
mod faults;
mod support;
mod truth;
