//! The products whose settings and query plans are known, one folder or file a family. A new family
//! is a line here.

mod mysql;
mod postgres;
mod sqlite;

use super::subject::Product;
use super::value::Value;

pub(super) const ALL: &[&[Product]] = &[mysql::ALL, postgres::ALL, sqlite::ALL];

/// A server that answers by program, or one that is not known. Families say what is different of
/// them.
pub(super) const UNKNOWN: Product = Product {
    name: "",
    family: "",
    engine: None,
    has_tls: false,
    zero_is_automatic: false,
    lines: |_, _, _| Vec::new(),
    word: None,
    follow: |_, _| (),
    plan_nodes: |rows| rows.iter().map(|row| joined(row)).collect(),
    classes: &[],
};

/// The product of this name, as servers say it.
pub(super) fn of(name: &str) -> &'static Product {
    ALL.iter().copied().flatten().find(|product| product.name == name).unwrap_or(&UNKNOWN)
}

/// The product that gives query plans of this form, which is the word for its family.
pub(super) fn of_form(form: &str) -> &'static Product {
    ALL.iter().copied().flatten().find(|product| product.family == form).unwrap_or(&UNKNOWN)
}

/// A row of a query plan of which nothing is known.
fn joined(row: &[Option<String>]) -> String {
    row.iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect::<Vec<_>>().join(" ")
}

// Words for commits, which hold for every product.
const SYNCED: &str = "synced";
const LATER: &str = "synced within a second or so";
const NEVER: &str = "never synced";

/// The words for how files of tables are read and written.
fn io_words(is_direct: bool) -> Value {
    Value::words(if is_direct { "O_DIRECT" } else { "page cache" })
}
