//! Who a server says it is, and the forms in which servers answer questions.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::foreign::Identity;
use crate::{Foreign, Result, Session};

/// Texts by their names, as a server gives them.
pub(crate) type Texts = BTreeMap<String, String>;

/// Who a server says it is and how it is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description {
    /// `MariaDB`, `MySQL`, `Percona Server`, `PostgreSQL`, `SQLite`, `null`, or the name that a server
    /// of another kind gives itself.
    pub product: String,
    /// The first three numbers of the version: `[10, 11, 19]`.
    pub version: [u32; 3],
    /// The version as the server writes it: `10.11.19-MariaDB-0+deb12u1`.
    pub version_text: String,
    /// The default engine, with the InnoDB's or XtraDB's own version where it has one: `XtraDB
    /// 5.6.35-80.0`. PostgreSQL: the default table access method, `heap`.
    pub engine: String,
    /// Every effective global setting by name. SQLite: its pragmas and `compile_options`, of this
    /// session.
    pub settings: Texts,
    /// Values of this session that may differ from the server's: isolation, autocommit, character
    /// set, SQL mode.
    pub session: Texts,
    /// Where settings that are no defaults come from, by name, as far as the server reports.
    pub sources: Texts,
    /// The server, where it is none of the products.
    pub foreign: Option<Foreign>,
}

impl Description {
    /// The description of a server that was identified, without settings.
    pub(crate) fn of(Identity { product, version_text, version, foreign }: Identity) -> Self {
        Self { product, version, version_text, foreign, ..Self::default() }
    }
}

/// What is missing in the counters of a server whose sessions report theirs late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreported {
    /// Open sessions of dbdyno in the session's database, this one included. One that is gone has
    /// reported everything: it does so before it leaves the list.
    pub sessions: i64,
    /// How old [`crate::status`] may be.
    pub age: Duration,
}

/// The first three numbers of a version, 0 for one that is missing.
pub(crate) fn version_numbers(text: &str) -> [u32; 3] {
    let numbers =
        text.split(|separator: char| !separator.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    let mut version = [0; 3];
    version.iter_mut().zip(numbers).for_each(|(place, number)| *place = number);
    version
}

/// The only value of a statement's first row.
pub(crate) async fn cell(session: &mut impl Session, sql: &str) -> Result<Option<String>> {
    Ok(session.rows(sql).await?.into_iter().flatten().next().flatten())
}

pub(crate) async fn name_value_pairs(session: &mut impl Session, sql: &str) -> Result<Texts> {
    let pair = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter();
        Some((cells.next()??, cells.next()?.unwrap_or_default()))
    };
    Ok(session.rows(sql).await?.into_iter().filter_map(pair).collect())
}

/// The first column of an answer without its NULLs.
pub async fn column(session: &mut impl Session, sql: &str) -> Result<Vec<String>> {
    let cells = session.rows(sql).await?;
    Ok(cells.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect())
}

/// The values that are numbers.
pub(crate) fn numbers(texts: Texts) -> BTreeMap<String, i64> {
    texts.into_iter().filter_map(|(name, text)| Some((name, number(&text)?))).collect()
}

/// A counter's value: `None` for a word. Conversion from `f64` saturates at the ends of `i64`.
fn number(text: &str) -> Option<i64> {
    let fraction =
        || text.parse::<f64>().ok().filter(|value| value.is_finite()).map(|value| value.round() as i64);
    text.parse().ok().or_else(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_numbers_and_words_are_left_out() {
        assert_eq!(number("42"), Some(42));
        assert_eq!(number("-1"), Some(-1));
        assert_eq!(number("0.7"), Some(1));
        assert_eq!(number("18446744073709551615"), Some(i64::MAX));
        for word in ["ON", "", "0 rows", "nan", "inf", "2026-01-01"] {
            assert_eq!(number(word), None, "{word}");
        }
    }

    #[test]
    fn versions_are_three_numbers() {
        for (text, version) in [
            ("10.11.19-MariaDB-0+deb12u1", [10, 11, 19]),
            ("8.0.31", [8, 0, 31]),
            ("5.6.24-log", [5, 6, 24]),
            ("8.0.36-28", [8, 0, 36]),
            ("19rc1", [19, 0, 1]),
            ("", [0, 0, 0]),
        ] {
            assert_eq!(version_numbers(text), version, "{text}");
        }
    }
}
