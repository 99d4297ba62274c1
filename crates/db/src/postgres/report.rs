//! Reads what a server reports besides rows: errors, and command tags.

use super::fault::{PostgresFault, Report};
use super::message::PostgresReader;
use crate::excerpt::server_text;

pub(super) fn error(body: &[u8]) -> Result<Report, PostgresFault> {
    let mut reader = PostgresReader(body);
    let mut report = Report { state: String::new(), message: String::new(), ends_session: false };
    loop {
        let field = reader.u8()?;
        if field == 0 {
            break;
        }
        let text = reader.text()?;
        match field {
            b'C' => report.state = server_text(text),
            b'M' => report.message = server_text(text),
            // This is the severity in English, whatever the server's language. Field `S` is the
            // translated one.
            b'V' => report.ends_session = matches!(text, b"FATAL" | b"PANIC"),
            _ => {}
        }
    }
    if report.state.is_empty() {
        return Err(PostgresFault::Malformed("an error without SQLSTATE"));
    }
    Ok(report)
}

/// Reads an error like [`error`], from a body of which only the beginning is there.
pub(super) fn beginning_of_error(body: &[u8]) -> Result<Report, PostgresFault> {
    error(&[body, b"\0\0"].concat())
}

/// Affected rows, from the tag that ends a statement: `INSERT 0 100`, `DELETE 50`, `COPY 7`. A
/// `SELECT` affects none.
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
    fn of_an_error_that_repeats_a_long_value_the_beginning_is_read() {
        let whole = b"SERROR\0VERROR\0C22P02\0Minvalid input: 777\0\0";
        let read =
            |end: usize| beginning_of_error(&whole[..end]).map(|report| (report.state, report.message));
        assert_eq!(read(14).ok(), None);
        let state = || "22P02".to_owned();
        let state_ends = 21;
        for (end, message) in
            [(state_ends, ""), (22, ""), (29, "invalid"), (whole.len(), "invalid input: 777")]
        {
            assert_eq!(read(end).ok(), Some((state(), message.to_owned())), "{end}");
        }
    }

    #[test]
    fn an_error_that_is_none_is_malformed() {
        for body in [&b""[..], b"\0", b"Mno state\0\0", b"C23505\0", b"C23505"] {
            assert!(matches!(error(body), Err(PostgresFault::Malformed(_))), "{body:?}");
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
