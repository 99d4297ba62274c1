//! Whether statements are answered by the server that took the login, or passed on.

use crate::{Session, first_i64};

const WORD: &str = "dbdyno";

/// Who answers the statements of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answering {
    /// The server that took the login.
    Itself,
    /// A server that has another number for the connection. A proxy or pooler is between, which may
    /// give each statement to another one of the server's connections.
    Another,
    /// Something that does not repeat a word, and so does not answer SQL.
    Nothing,
}

/// Asks for the connection's number with `expression`; at the login it was `number`.
pub(crate) async fn answering(session: &mut impl Session, expression: &str, number: u32) -> Answering {
    let rows = session.rows(&format!("SELECT {expression}, '{WORD}'")).await.unwrap_or_default();
    if rows.first().and_then(|row| row.get(1)?.as_deref()) != Some(WORD) {
        return Answering::Nothing;
    }
    // The login has 32 bits of a number that may have 64.
    match first_i64(&rows).map(|said| said.cast_unsigned() & u64::from(u32::MAX)) {
        Some(said) if said == u64::from(number) => Answering::Itself,
        _ => Answering::Another,
    }
}
