//! Servers that speak the protocol of one of the products and are none of them: which they are, by
//! what they say, and what they can do, by asking.
//!
//! Known ones are rows of `known.toml`. None has code: what a server does otherwise than the
//! product is found out with the questions of [`ask`].

mod ask;
mod known;

#[cfg(test)]
use ask::is_ability;
pub use known::Foreign;
pub(crate) use known::{Evidence, Identity, identify, telling_names};
