//! Translates parameters written as `?` into PostgreSQL's `$1`, `$2`, ...

/// Where in a statement a byte is.
#[derive(Clone, Copy)]
enum Place<'a> {
    Plain,
    /// Inside `'...'` or `"..."`; doubled quotes end and begin it again, which comes to the same.
    Quoted(u8),
    /// Inside `E'...'`, where a backslash hides the next byte.
    Escaped,
    /// Inside `$tag$...$tag$`; the tag with its dollars.
    Dollar(&'a [u8]),
    /// After `--`.
    Line,
    /// Inside so many `/* ... */`, which nest.
    Block(u32),
}

/// The statement with each `?` outside of quotes and comments numbered in its order. The operators
/// `?`, `?|` and `?&` of JSON cannot be written this way; their functions (`jsonb_exists`, ...)
/// can.
pub(super) fn numbered(sql: &str) -> String {
    let bytes = sql.as_bytes();
    let mut out = String::with_capacity(sql.len() + 16);
    let (mut place, mut number, mut at, mut copied) = (Place::Plain, 0_u32, 0, 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let mut step = 1;
        place = match (place, rest) {
            (Place::Plain, [b'?', ..]) => {
                number += 1;
                out.push_str(&sql[copied..at]);
                out.push_str(&format!("${number}"));
                copied = at + 1;
                Place::Plain
            }
            (Place::Plain, [b'\'', ..]) if begins_escaped(&bytes[..at]) => Place::Escaped,
            (Place::Plain, [quote @ (b'\'' | b'"'), ..]) => Place::Quoted(*quote),
            (Place::Plain, [b'$', ..]) => match dollar_tag(&bytes[..at], rest) {
                Some(tag) => {
                    step = tag.len();
                    Place::Dollar(tag)
                }
                None => Place::Plain,
            },
            (Place::Plain, [b'-', b'-', ..]) => Place::Line,
            (Place::Plain, [b'/', b'*', ..]) => {
                step = 2;
                Place::Block(1)
            }
            (Place::Quoted(quote), [byte, ..]) if *byte == quote => Place::Plain,
            (Place::Escaped, [b'\\', ..]) => {
                step = 2;
                Place::Escaped
            }
            (Place::Escaped, [b'\'', ..]) => Place::Plain,
            (Place::Dollar(tag), _) if rest.starts_with(tag) => {
                step = tag.len();
                Place::Plain
            }
            (Place::Line, [b'\n' | b'\r', ..]) => Place::Plain,
            (Place::Block(depth), [b'/', b'*', ..]) => {
                step = 2;
                Place::Block(depth + 1)
            }
            (Place::Block(depth), [b'*', b'/', ..]) => {
                step = 2;
                if depth == 1 { Place::Plain } else { Place::Block(depth - 1) }
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

/// Whether the quote after `before` belongs to an `E` that is a word of its own.
fn begins_escaped(before: &[u8]) -> bool {
    match before {
        [head @ .., b'e' | b'E'] => head.last().is_none_or(|&byte| !is_word(byte)),
        _ => false,
    }
}

/// `$$` or `$tag$` at the front of `rest`; a dollar inside a name or before a number begins no
/// quote.
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
        // An ordinary string knows no backslash, `te` is a name, `a$b$c` and `a$` are names, `$1`
        // is a parameter.
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
