//! Translates parameters written as `?` into PostgreSQL's `$1`, `$2`, ...

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

/// The statement with each `?` outside of quotes and comments replaced by its number in order. The
/// JSON operators `?`, `?|` and `?&` cannot be written this way, but their functions
/// (`jsonb_exists`, ...) can.
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

    #[test]
    fn parameters_are_numbered_in_their_order() {
        assert_eq!(
            numbered("SELECT a FROM t WHERE a IN (?,?) LIMIT ?"),
            "SELECT a FROM t WHERE a IN ($1,$2) LIMIT $3"
        );
        assert_eq!(numbered("?"), "$1");
        assert_eq!(numbered("SELECT 1"), "SELECT 1");
    }

    #[test]
    fn what_is_quoted_or_commented_stays() {
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
    fn what_only_looks_like_a_quote_hides_nothing() {
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
        fn any_text_comes_back_but_for_its_parameters(sql in "[?'\"$a-cE\\\\/*ü \n-]{0,40}") {
            let translated = numbered(&sql);
            if !sql.contains('?') {
                prop_assert_eq!(&translated, &sql);
            }
            prop_assert!(translated.len() >= sql.len());
        }
    }
}
