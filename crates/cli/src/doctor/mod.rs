//! Checks whether this machine is fit to measure on, and what rate the load client can reach on it.

pub(crate) mod calibrate;
mod checks;
pub(crate) mod finding;
pub(crate) mod fitness;
pub(crate) mod store;
mod table;

pub(crate) use table::{blocks, json};
