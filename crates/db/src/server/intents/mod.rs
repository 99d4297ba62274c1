//! Config intents describe a server's configuration in words that hold for every product. They are
//! rendered from data to the options of each version.
//!
//! [`Intents`] are what a plan asks for. [`render()`] turns them into options for one
//! [`ConfigServer`]. The data lies here and with each product's facts, as TOML.
//! docs/reference/config-intents.md is generated from it.

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

use data::IntentData;
use dbdyno_products::{Product, Release};

pub use config::{Intents, WHERE_POSSIBLE};
pub use data::{OptionRange, OptionState};
pub use render::render;
pub(crate) use rendered::{OwnConfig, plain_name};
pub use rendered::{Rendered, Setting};
pub use server::{ConfigServer, Plugins};
pub use value::same_value;

/// Names of all `product` options in the data, in alphabetical order.
pub fn option_names(product: &'static Product) -> Vec<&'static str> {
    IntentData::get().names(product)
}

/// An option in one version of a product, with its default there. The result is `None` where the
/// option does not exist or is not in the data.
pub fn option_at(product: &'static Product, version: Release, option: &str) -> Option<&'static OptionRange> {
    IntentData::get().option(product, version, option)
}

/// The `product` versions that the data was compared with.
pub fn checked(product: &'static Product) -> &'static [String] {
    IntentData::get().checked(product)
}
