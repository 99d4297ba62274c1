//! Config intents: what a server is told, in words that hold for every product, rendered from data to the options of each version.
//!
//! [`Intents`] are what a plan asks for. [`render`] makes of them the options of one [`ConfigServer`]; the data lies in
//! `data/`, as TOML, and [`reference()`] is the table of it for people.

mod asked;
mod data;
mod native;
mod possible;
mod reference;
mod render;
mod rendered;
mod server;
mod span;
mod value;

pub use asked::{Intents, WHERE_POSSIBLE};
pub use data::{OptionRange, OptionState};
pub use native::native_settings;
pub use reference::reference;
pub use render::{default_of, render};
pub use rendered::{Rendered, Setting};
pub use server::{ConfigProduct, ConfigServer, Plugins, Release};
