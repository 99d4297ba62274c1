//! Facts about the database products, without sessions and processes. Each family of similar
//! products is one folder and one line in [`ALL`].
//!
//! A family is a [`FamilyFacts`]: its products' names, its addresses, the options that variants
//! have for its servers, and the meaning of its settings and query plans. Other crates read these
//! facts and implement the sessions and servers.

mod facts;
pub mod mysql;
pub mod postgres;
mod product;
mod server_address;
mod settings;
pub mod sqlite;
mod subject;
mod variant;

pub use facts::{FamilyFacts, PlanRow};
pub use product::{Product, Release};
pub use server_address::{Address, ServerAddress, TlsOption, TlsOptions};
pub use settings::{ConfiguredLine, KNOWN, Value, number, says_the_same, size, size_text, switch};
pub use subject::{Derive, Foreign, Planned, Reader, Settings, SettingsSource, Subject};
pub use variant::{
    OptionProblem, TypedOptions, VariantKind, VariantOptions, engine_name, engine_of, is_word,
};

/// Every family, in the order of tables.
pub static ALL: &[&FamilyFacts] = &[&mysql::FACTS, &postgres::FACTS, &sqlite::FACTS];

/// The family that works inside dbdyno.
pub static EMBEDDED: &FamilyFacts = &sqlite::FACTS;
