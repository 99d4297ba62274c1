//! Derives from a statement's text how many rows it would change, so that row rates are meaningful
//! on the null database too.

use crate::Param;

/// An INSERT's column list must end within this many bytes.
const HEAD_MAX: usize = 512;

/// The row count of one statement, known before it is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Affected {
    Rows(u64),
    /// The last parameter is the maximum number of rows.
    LastParam,
}

impl Affected {
    /// Derives the count from a statement's text. Text values in a row must not contain a
    /// parenthesis, and the workloads' do not.
    pub(super) fn of(sql: &[u8]) -> Self {
        let from_values = || {
            let head = &sql[..sql.len().min(HEAD_MAX)];
            let values = head.windows(6).position(|word| word.eq_ignore_ascii_case(b"VALUES"));
            values.map(|at| &sql[at..])
        };
        match sql.get(..6) {
            Some(verb) if verb.eq_ignore_ascii_case(b"INSERT") => {
                let rows = from_values().map_or(1, |rows| rows.iter().filter(|&&byte| byte == b'(').count());
                Self::Rows(rows as u64)
            }
            Some(verb) if verb.eq_ignore_ascii_case(b"DELETE") => Self::limited(sql),
            _ => Self::Rows(1),
        }
    }

    /// Reads `... LIMIT 100` or `... LIMIT ?`.
    fn limited(sql: &[u8]) -> Self {
        let Some((word, number)) = std::str::from_utf8(sql).ok().and_then(|sql| sql.rsplit_once("LIMIT "))
        else {
            return Self::Rows(1);
        };
        match (word.is_empty(), number.trim_end_matches(')')) {
            (false, "?") => Self::LastParam,
            (_, number) => Self::Rows(number.parse().unwrap_or(1)),
        }
    }

    /// The count with this execution's parameters.
    pub(super) fn with(self, params: &[Param]) -> u64 {
        match (self, params.last()) {
            (Self::Rows(rows), _) => rows,
            (Self::LastParam, Some(Param::Int(limit))) => u64::try_from(*limit).unwrap_or(0),
            (Self::LastParam, _) => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_inserts_are_counted_and_deletes_have_their_limit() {
        let rows = |sql: &str, params: &[Param]| Affected::of(sql.as_bytes()).with(params);
        assert_eq!(rows("INSERT INTO t (a,b) VALUES (?,?),(?,?),(?,?)", &[Param::Int(7)]), 3);
        assert_eq!(rows("INSERT INTO t(k, c, pad) VALUES(1, 'a', 'b')", &[]), 1);
        let columns = "column_with_a_long_name, ".repeat(10);
        assert_eq!(rows(&format!("insert into t ({columns}z) values {}(1)", "(1),".repeat(99)), &[]), 100);
        assert_eq!(rows("DELETE FROM t WHERE a >= 5 ORDER BY a ASC LIMIT 250", &[]), 250);
        assert_eq!(
            rows("DELETE FROM t WHERE a >= ? ORDER BY a ASC LIMIT ?", &[Param::Int(5), Param::Int(40)]),
            40
        );
        let nested = "DELETE FROM t WHERE a IN (SELECT a FROM t WHERE a >= 5 ORDER BY a ASC LIMIT 30)";
        assert_eq!(rows(nested, &[]), 30);
        assert_eq!(rows("DELETE FROM t WHERE id=?", &[Param::Int(9)]), 1);
        assert_eq!(rows("UPDATE t SET k=k+1 WHERE id=4", &[]), 1);
        assert_eq!(rows("BEGIN", &[]), 1);
    }
}
