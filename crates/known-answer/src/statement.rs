//! Determines a statement's kind from its first words, and counts its parameters.

/// Bytes of a command tag that are kept. PostgreSQL's longest tag is `CREATE MATERIALIZED VIEW`.
const LONGEST_TAG: usize = 32;

/// Statements that return rows.
const ROWS: &[&[u8]] =
    &[b"SELECT", b"SHOW", b"WITH", b"VALUES", b"TABLE", b"EXPLAIN", b"DESCRIBE", b"DESC", b"FETCH", b"CHECK"];

/// Statements whose second word is also in PostgreSQL's tag.
const TWO_WORDS: &[&[u8]] = &[b"CREATE", b"DROP", b"ALTER", b"LOCK", b"DECLARE"];

/// The kind of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatementKind {
    /// It returns the programmed rows.
    Rows,
    /// It affects one row.
    Change(Change),
    Begin,
    Commit,
    Rollback,
    /// It completes without rows.
    Other(Tag),
    /// There is no statement in the text.
    Empty,
}

/// The change to one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Insert,
    Update,
    Delete,
    Merge,
}

/// A command's name, in capitals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag {
    bytes: [u8; LONGEST_TAG],
    length: u8,
}

impl Tag {
    pub(crate) fn new(words: &[&[u8]]) -> Self {
        let mut tag = Self { bytes: [0; LONGEST_TAG], length: 0 };
        for (number, word) in words.iter().enumerate() {
            let space: &[u8] = if number > 0 { b" " } else { b"" };
            for &byte in space.iter().chain(*word).take(LONGEST_TAG - usize::from(tag.length)) {
                tag.bytes[usize::from(tag.length)] = byte.to_ascii_uppercase();
                tag.length += 1;
            }
        }
        tag
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// The kind of the first statement in `sql`.
pub(crate) fn statement_kind(sql: &[u8]) -> StatementKind {
    let start = after_blanks(sql);
    let (word, rest) = split_word(start);
    let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
    if ROWS.iter().any(|name| is(name)) {
        return StatementKind::Rows;
    }
    match () {
        () if word.is_empty() => StatementKind::Empty,
        () if is(b"UPDATE") => StatementKind::Change(Change::Update),
        () if is(b"INSERT") || is(b"REPLACE") => StatementKind::Change(Change::Insert),
        () if is(b"DELETE") => StatementKind::Change(Change::Delete),
        () if is(b"MERGE") => StatementKind::Change(Change::Merge),
        () if is(b"BEGIN") || is(b"START") => StatementKind::Begin,
        () if is(b"COMMIT") || is(b"END") => StatementKind::Commit,
        () if is(b"ROLLBACK") || is(b"ABORT") => StatementKind::Rollback,
        () if TWO_WORDS.iter().any(|name| is(name)) => {
            StatementKind::Other(Tag::new(&[word, split_word(after_blanks(rest)).0]))
        }
        () => StatementKind::Other(Tag::new(&[word])),
    }
}

/// `sql` without blanks, comments and brackets at its front.
fn after_blanks(mut sql: &[u8]) -> &[u8] {
    loop {
        sql = match sql {
            [b' ' | b'\t' | b'\r' | b'\n' | b'(' | b';', rest @ ..] => rest,
            [b'/', b'*', rest @ ..] => after(rest, b"*/"),
            [b'-', b'-', rest @ ..] | [b'#', rest @ ..] => after(rest, b"\n"),
            _ => return sql,
        };
    }
}

fn after<'a>(text: &'a [u8], end: &[u8]) -> &'a [u8] {
    let at = text.windows(end.len()).position(|window| window == end);
    at.map_or(&[], |at| &text[at + end.len()..])
}

fn split_word(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(text.len());
    // If the text begins with a character that is not a letter, that character is the word, so that
    // the text does not count as empty.
    text.split_at(if end == 0 { text.len().min(1) } else { end })
}

/// Number of parameters written as `?`, outside quotes and comments.
pub(crate) fn question_marks(sql: &[u8]) -> u16 {
    let mut count = 0_u16;
    each_plain_byte(sql, true, |rest| count = count.saturating_add(u16::from(rest[0] == b'?')));
    count
}

/// Number of parameters that are written as `$1`, `$2`, ... It is the highest of these numbers.
pub(crate) fn dollar_numbers(sql: &[u8]) -> u16 {
    let mut highest = 0;
    each_plain_byte(sql, false, |rest| {
        if rest[0] == b'$' {
            let digits = rest[1..].iter().take_while(|byte| byte.is_ascii_digit());
            let number = digits
                .fold(0_u32, |sum, digit| sum.saturating_mul(10).saturating_add(u32::from(digit - b'0')));
            highest = highest.max(u16::try_from(number).unwrap_or(u16::MAX));
        }
    });
    highest
}

/// Calls `see` for each byte outside quotes and comments, with the text from that byte on. With
/// `backslash`, as in MySQL, a backslash within quotes escapes the next byte.
fn each_plain_byte(mut sql: &[u8], backslash: bool, mut see: impl FnMut(&[u8])) {
    while let Some(&first) = sql.first() {
        sql = match first {
            b'\'' | b'"' | b'`' => after_quotes(&sql[1..], first, backslash),
            b'-' if sql.starts_with(b"--") => after(sql, b"\n"),
            b'/' if sql.starts_with(b"/*") => after(sql, b"*/"),
            _ => {
                see(sql);
                &sql[1..]
            }
        };
    }
}

/// The text after a quoted part. Doubled quotes need no special case, because the second one begins
/// another quoted part.
fn after_quotes(text: &[u8], quote: u8, backslash: bool) -> &[u8] {
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'\\' if backslash => at += 2,
            byte if byte == quote => return &text[at + 1..],
            _ => at += 1,
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_distinguished_by_their_first_words() {
        let check = |expected: StatementKind, texts: &[&str]| {
            texts.iter().for_each(|text| assert_eq!(statement_kind(text.as_bytes()), expected, "{text}"));
        };
        check(
            StatementKind::Rows,
            &["SELECT 1", "  select c", "(SELECT 1)", "/* x */ SELECT 1", "-- x\nSHOW a", "VALUES (1)"],
        );
        check(StatementKind::Change(Change::Insert), &["INSERT INTO t VALUES (1)", "REPLACE INTO t"]);
        check(StatementKind::Change(Change::Update), &["update t set a=1"]);
        check(StatementKind::Change(Change::Delete), &["DELETE FROM t"]);
        check(StatementKind::Begin, &["BEGIN", "START TRANSACTION", "begin;"]);
        check(StatementKind::Commit, &["COMMIT", "END"]);
        check(StatementKind::Rollback, &["ROLLBACK", "abort"]);
        check(StatementKind::Empty, &["", "  ", ";", "-- nothing", "/* open"]);
        check(StatementKind::Other(Tag::new(&[b"CREATE", b"TABLE"])), &["create  table t (a int)"]);
        check(StatementKind::Other(Tag::new(&[b"SET"])), &["SET NAMES utf8"]);
        check(StatementKind::Other(Tag::new(&[b"1"])), &["1"]);
        check(StatementKind::Other(Tag::new(&[b"SELECTED"])), &["selected"]);
    }

    #[test]
    fn a_long_word_is_cut_off() {
        let word = [b'x'; 100];
        assert_eq!(Tag::new(&[b"CREATE", &word]).bytes().len(), LONGEST_TAG);
    }

    #[test]
    fn parameters_are_counted_outside_of_quotes_and_comments() {
        assert_eq!(
            question_marks(b"SELECT ? FROM t WHERE a = '?' AND b = \"?\\\"?\" AND c = ? -- ?\n /* ? */ + ?"),
            3
        );
        assert_eq!(question_marks(b"SELECT 'it''s ?', ?"), 1);
        assert_eq!(question_marks(b"SELECT '?"), 0);
        assert_eq!(dollar_numbers(b"SELECT $1, $2, '$9', $2 + $11"), 11);
        assert_eq!(dollar_numbers(b"SELECT '\\', $3"), 3);
        assert_eq!(dollar_numbers(b"SELECT $99999999999, $"), u16::MAX);
    }
}
