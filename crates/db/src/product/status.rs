//! A server's description, its deferred work (writes, purge, merges, compactions and vacuum), and
//! helpers that read the answers to server queries.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{LimitedSession, Product};
use crate::foreign::Identity;
use crate::{Capabilities, Class, Foreign, Result, Session};

/// Texts by name, as a server reports them, for counters, settings and the sources of settings.
pub(crate) type Texts = BTreeMap<String, String>;

/// A server's identity and settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description {
    /// `MariaDB`, `MySQL`, `Percona Server`, `PostgreSQL`, `SQLite`, `null`, or the name that
    /// another kind of server gives itself.
    pub product: String,
    /// The first three numbers of the version: `[10, 11, 19]`.
    pub version: [u32; 3],
    /// The version as the server writes it: `10.11.19-MariaDB-0+deb12u1`.
    pub version_text: String,
    /// The default engine, with InnoDB's or XtraDB's own version where it has one: `XtraDB
    /// 5.6.35-80.0`. For PostgreSQL it is the default table access method, `heap`.
    pub engine: String,
    /// Every effective global setting by name. For SQLite these are this session's pragmas and
    /// `compile_options`.
    pub settings: Texts,
    /// This session's values that may differ from the server's: isolation, autocommit, character
    /// set, SQL mode.
    pub session: Texts,
    /// The sources of settings that are not defaults, by name, as far as the server reports them.
    pub sources: Texts,
    /// The server's identity, if the server is not one of the known products.
    pub foreign: Option<Foreign>,
}

impl Description {
    /// The description of an identified server, without settings.
    pub(crate) fn of(Identity { product, version_text, version, foreign }: Identity) -> Self {
        Self { product, version, version_text, foreign, ..Self::default() }
    }
}

/// The part of the work that a server's counters may still miss, because its sessions report late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreported {
    /// Number of dbdyno's open sessions in the session's database, including this session. A closed
    /// session has reported everything, because a session reports before it leaves the server's
    /// list of sessions.
    pub sessions: i64,
    /// How old the counters from [`crate::status`] may be.
    pub age: Duration,
}

/// Returns a version's first three numbers. A missing number is 0.
pub(crate) fn version_numbers(text: &str) -> [u32; 3] {
    let numbers =
        text.split(|separator: char| !separator.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    let mut version = [0; 3];
    version.iter_mut().zip(numbers).for_each(|(place, number)| *place = number);
    version
}

/// Runs `sql` and returns the first column's value in the first row.
pub(crate) async fn first_value(session: &mut impl Session, sql: &str) -> Result<Option<String>> {
    Ok(session.rows(sql).await?.into_iter().flatten().next().flatten())
}

/// Runs `sql`, whose rows have a name and a value. A NULL value becomes an empty text.
pub(crate) async fn name_value_pairs(session: &mut impl Session, sql: &str) -> Result<Texts> {
    let pair = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter();
        Some((cells.next()??, cells.next()?.unwrap_or_default()))
    };
    Ok(session.rows(sql).await?.into_iter().filter_map(pair).collect())
}

/// Runs `sql` and returns the first column's values, without NULLs.
pub async fn column(session: &mut impl Session, sql: &str) -> Result<Vec<String>> {
    let cells = session.rows(sql).await?;
    Ok(cells.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect())
}

/// Keeps the values that are numbers.
pub(crate) fn numbers(texts: Texts) -> BTreeMap<String, i64> {
    texts.into_iter().filter_map(|(name, text)| Some((name, number(&text)?))).collect()
}

/// Reads a counter's value as a number, and returns `None` for a word. Conversion from `f64`
/// saturates at the limits of `i64`.
fn number(text: &str) -> Option<i64> {
    let fraction =
        || text.parse::<f64>().ok().filter(|value| value.is_finite()).map(|value| value.round() as i64);
    text.parse().ok().or_else(fraction)
}

/// Lowest limit in bytes for dirty pages and for the log. Even an idle server has this much, and a
/// share of a small pool or log would be lower.
const MIN_BOUND_BYTES: f64 = 1_048_576.0;
/// Lowest limit for the number of dead rows or change buffer pages, for the same reason.
pub(crate) const MIN_BOUND_COUNT: i64 = 1_000;

/// The work that a server had deferred at one moment.
///
/// The table lists each product's levels. A level is absent, not zero, where a version or the
/// session's rights do not report it.
///
/// | level | engine | meaning |
/// |---|---|---|
/// | `dirty_bytes` | InnoDB | changed pages in the buffer pool that are not yet in the files |
/// | `checkpoint_age_bytes` | InnoDB | redo that a restart would apply: log position minus last
/// checkpoint |
/// | `history_list_length` | InnoDB | transactions whose old rows are not yet purged |
/// | `change_buffer_pages` | InnoDB | pages with index changes that are not yet merged |
/// | `memtable_bytes` | MyRocks | rows that are only in memory and in the log |
/// | `flushes_pending`, `compactions_pending`, `compactions_running` | MyRocks | work on its files
/// |
/// | `dead_rows` | PostgreSQL | deleted row versions in the tables, as estimated by the server |
/// | `wal_since_checkpoint_bytes` | PostgreSQL | log that a restart would apply |
/// | `vacuums_running`, `autovacuum_workers`, `checkpoints_running` | PostgreSQL | work in progress
/// |
/// | `wal_bytes` | SQLite | log pages that are not yet in the database file |
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeferredWork {
    pub levels: BTreeMap<String, i64>,
    /// The totals for levels with a limit that is a share: `buffer_pool_bytes`,
    /// `redo_capacity_bytes` (PostgreSQL: `max_wal_size`), `live_rows`, `autocheckpoint_bytes`. In
    /// addition, `merges_by_itself` is 1 where the change buffer is merged in the background.
    pub capacities: BTreeMap<String, i64>,
}

impl DeferredWork {
    pub(crate) fn level(&mut self, name: &str, value: Option<i64>) {
        if let Some(value) = value {
            self.levels.insert(name.to_owned(), value.max(0));
        }
    }

    pub(crate) fn capacity(&mut self, name: &str, value: Option<i64>) {
        if let Some(value) = value {
            self.capacities.insert(name.to_owned(), value);
        }
    }

    /// A limit in bytes: the fraction `share` of the capacity named `of`, at least 1 MiB.
    pub(crate) fn share_bytes(&self, share: f64, of: &str) -> Option<i64> {
        let whole = *self.capacities.get(of)? as f64;
        Some((share * whole).max(MIN_BOUND_BYTES).min(i64::MAX as f64) as i64)
    }
}

/// Reads the server's deferred work. The result is empty for another product's server with the same
/// protocol, because the levels would have another meaning there.
pub(crate) async fn deferred_work<P: Product>(
    session: &mut LimitedSession<'_, P>,
    capabilities: &Capabilities,
) -> Result<DeferredWork> {
    match capabilities.counts_as_the_product() {
        true => P::deferred_work(session, capabilities).await,
        false => Ok(DeferredWork::default()),
    }
}

/// Turns a query's error into `None`, because the session may lack the rights, or the server the
/// table. A lost connection stays an error.
pub(crate) fn permitted<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.class == Class::Lost => Err(error),
        Err(_) => Ok(None),
    }
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
