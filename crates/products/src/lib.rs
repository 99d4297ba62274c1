//! Facts about the database products, without sessions and processes. Each family of similar
//! products is one folder and one line in [`ALL`].
//!
//! A family is a [`FamilyFacts`]: its products' names, its addresses, the options that variants
//! have for its servers, and what its settings and query plans mean. Other crates read these facts
//! and implement the sessions and servers.

mod configured;
mod engine;
mod facts;
mod known;
pub mod mysql;
mod options;
pub mod postgres;
mod product;
mod release;
mod server_address;
pub mod sqlite;
mod subject;
mod tls_options;
mod value;
mod variant_kind;

pub use configured::ConfiguredLine;
pub use engine::{engine_name, engine_of};
pub use facts::{FamilyFacts, PlanRow};
pub use known::KNOWN;
pub use options::{OptionProblem, TypedOptions, VariantOptions, is_word};
pub use product::Product;
pub use release::Release;
pub use server_address::{Address, ServerAddress};
pub use subject::{Derive, Foreign, Knowledge, Planned, Reader, Settings, Subject};
pub use tls_options::{TlsOption, TlsOptions};
pub use value::{Value, number, says_the_same, size, size_text, switch};
pub use variant_kind::VariantKind;

/// Every family, in the order of tables.
pub static ALL: &[&FamilyFacts] = &[&mysql::FACTS, &postgres::FACTS, &sqlite::FACTS];

/// The family that works inside dbdyno.
pub static EMBEDDED: &FamilyFacts = &sqlite::FACTS;
