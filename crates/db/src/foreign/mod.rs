//! Servers that speak a product's protocol but are another product. This module finds out which
//! they are, from what they say, and what they can do, by probing.
//!
//! Known servers are rows in `known.toml`. None has its own code: the probes in [`ask`] find out
//! where a server differs from the product.

mod ask;
mod known;

#[cfg(test)]
use ask::is_ability;
pub use known::Foreign;
pub(crate) use known::{Identification, Identity, identify, telling_names};
