//! Config intents: how a server is configured, in words that hold for every product, rendered from
//! data to the options of each version.
//!
//! [`Intents`] are what a plan asks for. [`render()`] makes of them the options of one
//! [`ConfigServer`]; the data lies in `data/`, as TOML; docs/reference/config-intents.md is written
//! from it.

mod config;
mod data;
mod possible;
#[cfg(test)]
#[path = "tests/reference.rs"]
mod reference;
mod render;
mod rendered;
mod server;
mod span;
mod value;

use data::Data;

pub use crate::server::release::{ConfigProduct, Release};
pub use config::{Intents, WHERE_POSSIBLE};
pub use data::{OptionRange, OptionState};
pub use render::render;
pub use rendered::{Rendered, Setting};
pub use server::{ConfigServer, Plugins};
pub use value::same_value;

/// Names of all options of `product` that the data knows, in alphabetical order.
pub fn option_names(product: ConfigProduct) -> Vec<&'static str> {
    Data::get().names(product)
}

/// An option in one version of a product, with its default there; `None` where it does not exist or
/// is not in the data.
pub fn option_at(product: ConfigProduct, version: Release, option: &str) -> Option<&'static OptionRange> {
    Data::get().option(product, version, option)
}

/// Versions of `product` that the data was compared with.
pub fn checked(product: ConfigProduct) -> &'static [String] {
    Data::get().checked(product)
}
