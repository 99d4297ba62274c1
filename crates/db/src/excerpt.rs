//! Shortens texts for messages: the start of a statement, and what a server says.

/// Longest part of a text that is looked at, in bytes. 60 characters never take more.
const LOOKED_AT_BYTES: usize = 240;

/// Returns at most 60 characters and stops before the first quote, because `CREATE USER ...
/// IDENTIFIED BY '...'` holds a password. Dollars are quotes in PostgreSQL.
pub(crate) fn excerpt(sql: &[u8]) -> String {
    let end = sql.iter().position(|byte| matches!(byte, b'\'' | b'"' | b'$')).unwrap_or(sql.len());
    let text = String::from_utf8_lossy(&sql[..end.min(LOOKED_AT_BYTES)]).into_owned();
    let mut short: String = text.chars().take(60).collect();
    if short.len() < sql.len() {
        short.push_str("...");
    }
    short
}

/// Longest text from a server that is kept, in characters. A server repeats a value that it cannot
/// read in full.
const LONGEST_SERVER_TEXT: usize = 500;

/// The start of a server's text, in one line, without control characters that a terminal would
/// obey.
pub(crate) fn server_text(text: &[u8]) -> String {
    // No character takes more than four bytes.
    let looked_at = &text[..text.len().min(4 * LONGEST_SERVER_TEXT)];
    let mut short = String::new();
    let text = String::from_utf8_lossy(looked_at);
    let mut characters = text.chars();
    for character in characters.by_ref().take(LONGEST_SERVER_TEXT) {
        match character {
            // Characters that change the writing direction would show a text in another order than
            // it has.
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                short.extend(character.escape_default());
            }
            _ if character.is_control() => short.extend(character.escape_default()),
            _ => short.push(character),
        }
    }
    if characters.next().is_some() {
        short.push_str("...");
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_text_is_short_and_one_line() {
        assert_eq!(server_text(b"You have an error near 'x\ny'"), r"You have an error near 'x\ny'");
        assert_eq!(
            server_text(b"\x1b]0;title\x07\xff\xc2\x9b31m"),
            r"\u{1b}]0;title\u{7}".to_owned() + "\u{fffd}\\u{9b}31m"
        );
        assert_eq!(server_text("\u{202e}gpj".as_bytes()), r"\u{202e}gpj");
        assert_eq!(server_text("ü".repeat(5_000).as_bytes()), format!("{}...", "ü".repeat(500)));
        assert_eq!(server_text("ü".repeat(500).as_bytes()), "ü".repeat(500));
    }

    #[test]
    fn an_excerpt_stops_before_the_first_quote() {
        assert_eq!(excerpt(b"CREATE USER a IDENTIFIED BY 'hunter2'"), "CREATE USER a IDENTIFIED BY ...");
        assert_eq!(excerpt(b"CREATE ROLE a PASSWORD $$hunter2$$"), "CREATE ROLE a PASSWORD ...");
        assert_eq!(excerpt(b"SELECT 1"), "SELECT 1");
        assert_eq!(excerpt("ü".repeat(100).as_bytes()), format!("{}...", "ü".repeat(60)));
    }
}
