//! Builds the messages that prepare and execute a statement. Parameters written as `?` become
//! PostgreSQL's `$1`, `$2`, ...

use super::wire::{put, put_text};
use crate::Param;

/// OIDs of the types whose values are sent as binary numbers (`pg_type.dat`).
const INT8: u32 = 20;
const INT2: u32 = 21;
const INT4: u32 = 23;

/// Format codes for values.
const TEXT: [u8; 2] = [0, 0];
const BINARY: [u8; 2] = [0, 1];

/// Messages that execute the unnamed portal to its end, and then end the exchange with a Sync.
const EXECUTE_AND_SYNC: &[u8] = b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";

/// The two messages in [`EXECUTE_AND_SYNC`], separately.
pub(super) const EXECUTE: &[u8] = EXECUTE_AND_SYNC.split_at(10).0;
pub(super) const SYNC: &[u8] = EXECUTE_AND_SYNC.split_at(10).1;

/// What a session keeps about a statement that it prepared.
#[derive(Debug)]
pub(super) struct PostgresStatement {
    /// The server's name for the statement.
    pub(super) name: String,
    /// The parameter types, as the server described them.
    pub(super) types: Vec<u32>,
    pub(super) excerpt: String,
}

/// Appends the messages that parse `sql` under `name` and ask for its description.
pub(super) fn put_prepare(out: &mut Vec<u8>, name: &str, sql: &str) {
    put(out, b'P', |body| {
        put_text(body, name.as_bytes());
        put_text(body, sql.as_bytes());
        body.extend_from_slice(&[0, 0]); // the server infers the parameter types
    });
    put(out, b'D', |body| {
        body.push(b'S');
        put_text(body, name.as_bytes());
    });
    put(out, b'S', |_| {});
}

impl PostgresStatement {
    /// Appends the messages that execute the statement with `params`, whose number the caller has
    /// checked. Integers are sent as binary where the server expects an integer type, and
    /// everything else as text. Results are requested as text.
    pub(super) fn put(&self, out: &mut Vec<u8>, params: &[Param]) {
        self.put_bind(out, params);
        out.extend_from_slice(EXECUTE_AND_SYNC);
    }

    /// Appends the message that binds `params`.
    pub(super) fn put_bind(&self, out: &mut Vec<u8>, params: &[Param]) {
        put_bind(out, &self.name, params.iter().zip(self.types.iter().copied()));
    }
}

/// Appends the messages that parse `sql` without a name and bind `params` as text.
pub(super) fn put_parsed(out: &mut Vec<u8>, sql: &str, params: &[Param]) {
    const UNKNOWN: u32 = 0;
    put(out, b'P', |body| {
        put_text(body, b"");
        put_text(body, sql.as_bytes());
        body.extend_from_slice(&[0, 0]);
    });
    put_bind(out, "", params.iter().zip(std::iter::repeat_n(UNKNOWN, params.len())));
}

fn put_bind<'a>(
    out: &mut Vec<u8>,
    name: &str,
    params: impl ExactSizeIterator<Item = (&'a Param, u32)> + Clone,
) {
    // A statement has at most 65535 parameters.
    let count = (params.len() as u16).to_be_bytes();
    put(out, b'B', |body| {
        body.push(0); // the unnamed portal
        put_text(body, name.as_bytes());
        body.extend_from_slice(&count);
        for (param, kind) in params.clone() {
            body.extend_from_slice(if is_binary(param, kind) { &BINARY } else { &TEXT });
        }
        body.extend_from_slice(&count);
        for (param, kind) in params {
            put_value(body, param, kind);
        }
        body.extend_from_slice(&[0, 0]); // all results as text
    });
}

/// Whether a value is sent as binary. A number too large for its type is sent as text, so that the
/// server reports what is wrong with it.
fn is_binary(param: &Param, kind: u32) -> bool {
    match (param, kind) {
        (Param::Int(_), INT8) => true,
        (Param::Int(value), INT4) => i32::try_from(*value).is_ok(),
        (Param::Int(value), INT2) => i16::try_from(*value).is_ok(),
        _ => false,
    }
}

fn put_value(out: &mut Vec<u8>, param: &Param, kind: u32) {
    match param {
        Param::Int(value) if is_binary(param, kind) => {
            let bytes = value.to_be_bytes();
            let length = match kind {
                INT8 => 8,
                INT4 => 4,
                _ => 2,
            };
            out.extend_from_slice(&[0, 0, 0, length]);
            out.extend_from_slice(&bytes[bytes.len() - usize::from(length)..]);
        }
        Param::Int(value) => put_bytes(out, itoa::Buffer::new().format(*value).as_bytes()),
        Param::Text(text) => put_bytes(out, text),
        Param::Null => out.extend_from_slice(&(-1_i32).to_be_bytes()),
    }
}

/// Appends a value after its length. Unlike a message's length, this one does not count itself.
fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    // A value too long for the field is also far too long for the server, which says so.
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX - 1);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
}

/// The lexical context of a byte in a statement.
#[derive(Clone, Copy)]
enum LexerState<'a> {
    Plain,
    /// Inside `'...'` or `"..."`. A doubled quote ends and begins it again, which has the same
    /// effect.
    Quoted(u8),
    /// Inside `E'...'`, where a backslash escapes the next byte.
    Escaped,
    /// Inside `$tag$...$tag$`. The value is the tag with its dollars.
    Dollar(&'a [u8]),
    /// After `--`, up to the end of the line.
    Line,
    /// Inside this many nested `/* ... */`.
    Block(u32),
}

/// Replaces each `?` outside of quotes and comments by `$1`, `$2`, ... in their order. The JSON
/// operators `?`, `?|` and `?&` cannot be written this way, but their functions (`jsonb_exists`,
/// ...) can.
pub(super) fn numbered(sql: &str) -> String {
    let bytes = sql.as_bytes();
    let mut out = String::with_capacity(sql.len() + 16);
    let (mut state, mut number, mut at, mut copied) = (LexerState::Plain, 0_u32, 0, 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let mut step = 1;
        state = match (state, rest) {
            (LexerState::Plain, [b'?', ..]) => {
                number += 1;
                out.push_str(&sql[copied..at]);
                out.push_str(&format!("${number}"));
                copied = at + 1;
                LexerState::Plain
            }
            (LexerState::Plain, [b'\'', ..]) if begins_escaped(&bytes[..at]) => LexerState::Escaped,
            (LexerState::Plain, [quote @ (b'\'' | b'"'), ..]) => LexerState::Quoted(*quote),
            (LexerState::Plain, [b'$', ..]) => match dollar_tag(&bytes[..at], rest) {
                Some(tag) => {
                    step = tag.len();
                    LexerState::Dollar(tag)
                }
                None => LexerState::Plain,
            },
            (LexerState::Plain, [b'-', b'-', ..]) => LexerState::Line,
            (LexerState::Plain, [b'/', b'*', ..]) => {
                step = 2;
                LexerState::Block(1)
            }
            (LexerState::Quoted(quote), [byte, ..]) if *byte == quote => LexerState::Plain,
            (LexerState::Escaped, [b'\\', ..]) => {
                step = 2;
                LexerState::Escaped
            }
            (LexerState::Escaped, [b'\'', ..]) => LexerState::Plain,
            (LexerState::Dollar(tag), _) if rest.starts_with(tag) => {
                step = tag.len();
                LexerState::Plain
            }
            (LexerState::Line, [b'\n' | b'\r', ..]) => LexerState::Plain,
            (LexerState::Block(depth), [b'/', b'*', ..]) => {
                step = 2;
                LexerState::Block(depth + 1)
            }
            (LexerState::Block(depth), [b'*', b'/', ..]) => {
                step = 2;
                if depth == 1 { LexerState::Plain } else { LexerState::Block(depth - 1) }
            }
            (unchanged, _) => unchanged,
        };
        at += step;
    }
    out.push_str(&sql[copied..]);
    out
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// Whether the quote after `before` belongs to an `E` that is a separate word.
fn begins_escaped(before: &[u8]) -> bool {
    match before {
        [head @ .., b'e' | b'E'] => head.last().is_none_or(|&byte| !is_word(byte)),
        _ => false,
    }
}

/// Finds `$$` or `$tag$` at the front of `rest`. A dollar inside a name or before a number starts
/// no quote.
fn dollar_tag<'a>(before: &[u8], rest: &'a [u8]) -> Option<&'a [u8]> {
    if before.last().is_some_and(|&byte| is_word(byte)) || rest.get(1).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let end = 1 + rest[1..].iter().position(|&byte| byte == b'$' || !is_word(byte))?;
    (rest[end] == b'$').then(|| &rest[..=end])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::postgres::wire::put_sized;

    const NUMERIC: u32 = 1700;

    fn executed(types: &[u32], params: &[Param]) -> Vec<u8> {
        let prepared =
            PostgresStatement { name: "s7".to_owned(), types: types.to_vec(), excerpt: String::new() };
        let mut out = Vec::new();
        prepared.put(&mut out, params);
        out.strip_suffix(EXECUTE_AND_SYNC).expect("executed and synced").to_vec()
    }

    fn bound(body: &[u8]) -> Vec<u8> {
        let mut out = b"B".to_vec();
        put_sized(&mut out, |out| out.extend_from_slice(&[b"\0s7\0", body, b"\0\0"].concat()));
        out
    }

    #[test]
    fn numbers_are_binary_in_the_width_of_the_type_and_texts_are_text() {
        let params = [Param::Int(-2), Param::Int(3), Param::Int(4), Param::Text(b"ab".to_vec())];
        let body = b"\0\x04\0\x01\0\x01\0\x01\0\0\0\x04\
            \0\0\0\x08\xff\xff\xff\xff\xff\xff\xff\xfe\0\0\0\x04\0\0\0\x03\0\0\0\x02\0\x04\0\0\0\x02ab";
        assert_eq!(executed(&[INT8, INT4, INT2, INT4], &params), bound(body));
    }

    #[test]
    fn a_number_is_text_where_its_type_is_no_integer_or_too_narrow() {
        for (kind, value) in [(NUMERIC, 5), (INT4, 3_000_000_000), (INT2, -40_000)] {
            let text = value.to_string();
            let body = [b"\0\x01\0\0\0\x01\0\0\0", &[text.len() as u8][..], text.as_bytes()].concat();
            assert_eq!(executed(&[kind], &[Param::Int(value)]), bound(&body), "{kind}");
        }
    }

    #[test]
    fn a_null_is_a_length_below_zero() {
        let body = b"\0\x01\0\0\0\x01\xff\xff\xff\xff";
        assert_eq!(executed(&[INT4], &[Param::Null]), bound(body));
    }

    #[test]
    fn a_statement_without_parameters_binds_none() {
        assert_eq!(executed(&[], &[]), bound(b"\0\0\0\0"));
    }

    #[test]
    fn preparing_parses_describes_and_syncs() {
        let mut out = Vec::new();
        put_prepare(&mut out, "s0", "SELECT $1");
        assert_eq!(out, b"P\0\0\0\x13s0\0SELECT $1\0\0\0D\0\0\0\x08Ss0\0S\0\0\0\x04");
    }

    #[test]
    fn parameters_are_numbered_in_order() {
        assert_eq!(
            numbered("SELECT a FROM t WHERE a IN (?,?) LIMIT ?"),
            "SELECT a FROM t WHERE a IN ($1,$2) LIMIT $3"
        );
        assert_eq!(numbered("?"), "$1");
        assert_eq!(numbered("SELECT 1"), "SELECT 1");
    }

    #[test]
    fn question_marks_in_quotes_and_comments_stay() {
        for kept in [
            "'?'",
            "'it''s ?'",
            "\"a ? b\"",
            "E'\\'?'",
            "e'\\\\'",
            "$$ ? $$",
            "$f$ ? $$ ? $f$",
            "$ä$ ? $ä$",
            "-- ?\n",
            "/* ? /* ? */ ? */",
            "'ü?'",
        ] {
            assert_eq!(numbered(&format!("SELECT {kept}, ?")), format!("SELECT {kept}, $1"));
        }
    }

    #[test]
    fn text_that_only_looks_like_a_quote_hides_no_parameter() {
        // An ordinary string has no backslash escapes, `te` is a name, `a$b$c` and `a$` are names,
        // and `$1` is a parameter.
        for (before, after) in [
            ("'\\' + ?", "'\\' + $1"),
            ("te'x\\', ?", "te'x\\', $1"),
            ("a$b$c + ?", "a$b$c + $1"),
            ("a$ + ? + b$", "a$ + $1 + b$"),
            ("$1 + ?$2", "$1 + $1$2"),
            ("1 - - ?", "1 - - $1"),
            ("1 / * ?", "1 / * $1"),
        ] {
            assert_eq!(numbered(before), after);
        }
    }

    proptest! {
        #[test]
        fn only_parameters_change_in_any_text(sql in "[?'\"$a-cE\\\\/*ü \n-]{0,40}") {
            let translated = numbered(&sql);
            if !sql.contains('?') {
                prop_assert_eq!(&translated, &sql);
            }
            prop_assert!(translated.len() >= sql.len());
        }
    }
}
