//! What a plan knows of products: how addresses of their servers begin, and which keys of a variant
//! are for one family of products only.

mod mysql;
mod postgres;

use std::path::PathBuf;

use dbdyno_model::Variant;

/// A key, and whether a variant has it.
pub(crate) type Key = (&'static str, fn(&Variant) -> bool);

/// Products whose servers are alike to a plan.
pub(crate) struct Family {
    /// The name of their driver.
    pub(crate) driver: &'static str,
    pub(crate) products: &'static [&'static str],
    /// How addresses begin.
    pub(crate) schemes: &'static [&'static str],
    /// Which file can hold the password for an address.
    pub(crate) password_file: &'static str,
    /// The key of the option file of a server that dbdyno starts, and its value.
    pub(crate) option_file_key: &'static str,
    pub(crate) option_file: fn(&Variant) -> &Option<PathBuf>,
    pub(crate) option_file_mut: fn(&mut Variant) -> &mut Option<PathBuf>,
    /// Other keys, for any of their servers.
    pub(crate) keys: &'static [Key],
    /// Keys for addresses only.
    pub(crate) address_keys: &'static [Key],
}

/// In the order in which messages name them.
pub(crate) const FAMILIES: &[Family] = &[mysql::FAMILY, postgres::FAMILY];

/// `a MariaDB, MySQL or PostgreSQL server`, of the products of these families.
pub(crate) fn a_server(families: &[Family]) -> String {
    let products: Vec<&str> = families.iter().flat_map(|family| family.products).copied().collect();
    format!("a {} server", either(&products))
}

/// `a, b or c`.
pub(crate) fn either(words: &[&str]) -> String {
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => words.concat(),
    }
}
