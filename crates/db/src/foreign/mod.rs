//! Servers that speak a product's protocol but are another product. This module finds out which
//! they are, from what they say, and what they can do, by probing.
//!
//! Known servers are rows in `known.toml`. None has its own code: the probes in [`probe`] find out
//! where a server differs from the product.

mod known;
mod probe;

pub use known::Foreign;
pub(crate) use known::{Identification, Identity, identify, telling_names};
#[cfg(test)]
use probe::is_ability;
