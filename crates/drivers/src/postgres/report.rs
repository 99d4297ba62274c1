//! What a server reports beside rows: errors, and what a statement did.

use super::fault::Fault;
use super::message::Reader;

/// Longest message that is kept, in characters: a server repeats a value that it cannot read whole.
const LONGEST_MESSAGE: usize = 500;

/// An error that the server sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Report {
    /// SQLSTATE: five letters and digits.
    pub(super) state: String,
    pub(super) message: String,
    /// The server ends the session with it: FATAL or PANIC.
    pub(super) ends_session: bool,
}

/// Reads the body of an error.
pub(super) fn error(body: &[u8]) -> Result<Report, Fault> {
    let mut reader = Reader(body);
    let mut report = Report { state: String::new(), message: String::new(), ends_session: false };
    loop {
        let field = reader.u8()?;
        if field == 0 {
            break;
        }
        let text = String::from_utf8_lossy(reader.text()?);
        match field {
            b'C' => report.state = text.into_owned(),
            b'M' => report.message = shortened(&text),
            // Severity in English, whatever the server's language; `S` is the translated one.
            b'V' => report.ends_session = matches!(&*text, "FATAL" | "PANIC"),
            _ => {}
        }
    }
    if report.state.is_empty() {
        return Err(Fault::Malformed("an error without SQLSTATE"));
    }
    Ok(report)
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Rows changed, from the tag that ends a statement: `INSERT 0 100`, `DELETE 50`, `COPY 7`. Of a `SELECT` none.
pub(super) fn affected(tag: &[u8]) -> u64 {
    let mut words = tag.split(|&byte| byte == b' ');
    match words.next() {
        Some(b"INSERT" | b"UPDATE" | b"DELETE" | b"MERGE" | b"COPY") => {}
        _ => return 0,
    }
    let count = words.next_back().and_then(|word| std::str::from_utf8(word).ok());
    count.and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_read_from_its_fields() {
        let body = b"SFEHLER\0VERROR\0C23505\0Mduplicate key\0DKey (a)=(1)\0Fnbtinsert.c\0\0";
        let report = error(body).expect("an error");
        assert_eq!(
            (report.state.as_str(), report.message.as_str(), report.ends_session),
            ("23505", "duplicate key", false)
        );
        assert!(error(b"VFATAL\0C57P01\0Mterminating\0\0").expect("an error").ends_session);
    }

    #[test]
    fn a_message_that_repeats_a_long_value_is_cut() {
        let body = [b"C22P02\0M", "ü".repeat(5_000).as_bytes(), b"\0\0"].concat();
        assert_eq!(error(&body).expect("an error").message, format!("{}...", "ü".repeat(500)));
    }

    #[test]
    fn an_error_that_is_none_is_malformed() {
        for body in [&b""[..], b"\0", b"Mno state\0\0", b"C23505\0", b"C23505"] {
            assert!(matches!(error(body), Err(Fault::Malformed(_))), "{body:?}");
        }
    }

    #[test]
    fn rows_changed_are_the_last_word_of_the_tags_that_have_them() {
        for (tag, rows) in [
            ("INSERT 0 100", 100),
            ("DELETE 50", 50),
            ("UPDATE 0", 0),
            ("MERGE 3", 3),
            ("COPY 7", 7),
            ("SELECT 10", 0),
            ("CREATE TABLE", 0),
            ("INSERT", 0),
            ("DELETE 99999999999999999999999", 0),
            ("", 0),
        ] {
            assert_eq!(affected(tag.as_bytes()), rows, "{tag}");
        }
    }
}
