//! Is this machine fit to measure on, and what can the load client reach on it.

pub(crate) mod calibrate;
mod checks;
pub(crate) mod finding;
pub(crate) mod fitness;
pub(crate) mod store;
mod table;

pub(crate) use table::{blocks, json};
