//! Servers that are none of the products and speak the protocol of one.

/// What to call a server that is none of the products: `PGlite, which speaks PostgreSQL's protocol`.
pub fn foreign_title(name: &str, speaks: &str) -> String {
    // `unknown server that speaks MySQL's protocol` and `Aurora MySQL` say so themselves.
    match name.contains(speaks) {
        true => name.to_owned(),
        false => format!("{name}, which speaks {speaks}'s protocol"),
    }
}
