//! Titles for servers that are none of our products but speak the protocol of one.

/// Returns the title of such a server: `PGlite, which speaks PostgreSQL's protocol`.
pub fn foreign_title(name: &str, speaks: &str) -> String {
    // Some names say so themselves: `unknown server that speaks MySQL's protocol` and `Aurora
    // MySQL`.
    match name.contains(speaks) {
        true => name.to_owned(),
        false => format!("{name}, which speaks {speaks}'s protocol"),
    }
}
