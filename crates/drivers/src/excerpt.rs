//! The beginning of a statement, as messages show it.

/// Longest text that is looked at: more than any 60 characters take.
const LOOKED_AT_BYTES: usize = 240;

/// At most 60 characters, and nothing from the first quote on, because `CREATE USER ... IDENTIFIED BY '...'` holds a
/// password; dollars quote in PostgreSQL.
pub(crate) fn excerpt(sql: &[u8]) -> String {
    let end = sql.iter().position(|byte| matches!(byte, b'\'' | b'"' | b'$')).unwrap_or(sql.len());
    let text = String::from_utf8_lossy(&sql[..end.min(LOOKED_AT_BYTES)]).into_owned();
    let mut short: String = text.chars().take(60).collect();
    if short.len() < sql.len() {
        short.push_str("...");
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_stops_before_the_first_quote() {
        assert_eq!(excerpt(b"CREATE USER a IDENTIFIED BY 'hunter2'"), "CREATE USER a IDENTIFIED BY ...");
        assert_eq!(excerpt(b"CREATE ROLE a PASSWORD $$hunter2$$"), "CREATE ROLE a PASSWORD ...");
        assert_eq!(excerpt(b"SELECT 1"), "SELECT 1");
        assert_eq!(excerpt("ü".repeat(100).as_bytes()), format!("{}...", "ü".repeat(60)));
    }
}
