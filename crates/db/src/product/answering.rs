//! Checks whether the server that accepted the login answers statements, or passes them on.

use crate::{Session, first_i64};

const WORD: &str = "dbdyno";

/// Which server answers a session's statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answering {
    /// The server that accepted the login.
    Itself,
    /// A server that has another number for the connection. A proxy or pooler lies between, and it
    /// may send each statement over a different connection to the server.
    Another,
    /// Something that does not return a given word, and so does not answer SQL.
    Nothing,
}

/// Asks for the connection's number with `expression`. At login it was `number`.
pub(crate) async fn answering(session: &mut impl Session, expression: &str, number: u32) -> Answering {
    let rows = session.rows(&format!("SELECT {expression}, '{WORD}'")).await.unwrap_or_default();
    if rows.first().and_then(|row| row.get(1)?.as_deref()) != Some(WORD) {
        return Answering::Nothing;
    }
    // The login has only 32 bits of the number, which may have 64.
    match first_i64(&rows).map(|said| said.cast_unsigned() & u64::from(u32::MAX)) {
        Some(said) if said == u64::from(number) => Answering::Itself,
        _ => Answering::Another,
    }
}
