//! Checks that the tables hold what the tests must have left. It compares row counts and sums of
//! `k`, where they are certain. It also compares some loaded rows to their last character, because
//! counts and sums say nothing about `c` and `pad`.

use std::time::Instant;

use crate::oltp::options::OltpTest as Test;
use dbdyno_db::{AnySession, Session};
use dbdyno_loadgen::StepEnd;
use dbdyno_record::{Check, CheckPart};
use serde_json::{Value, json};

use crate::checks::{check, numbers, part};
use crate::oltp::operation::OltpDraws;
use crate::oltp::rows::{OltpRowSource, push_c, push_pad};
use crate::oltp::steps::OltpStepKind;
use crate::oltp::{OltpSetup, sql};
use crate::{Error, Philox, Result};

/// What all tables together hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// Number of rows, or `None` once it is uncertain.
    pub(crate) rows: Option<i128>,
    /// Sum of `k`, or `None` once rows with a drawn `k` have come or gone.
    pub(crate) k: Option<i128>,
    /// Whether every id that a test may draw has its row.
    pub(crate) whole: bool,
}

impl Contents {
    /// Returns the contents after a load of all tables.
    pub(crate) fn loaded(setup: &OltpSetup) -> Self {
        let sums = (1..=setup.options.tables).map(|table| loaded_k(setup, table));
        Self { rows: Some(setup.options.loaded_rows().into()), k: Some(sums.sum()), whole: true }
    }

    /// Returns the contents in JSON, with all digits as text, because sums of `k` are beyond 64 bits.
    pub(crate) fn to_json(self) -> Value {
        let digits = |sum: Option<i128>| sum.map(|sum| sum.to_string());
        json!({ "rows": digits(self.rows), "k": digits(self.k), "whole": self.whole })
    }

    /// Reads what [`Contents::to_json`] wrote. The result is `None` for anything else.
    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        let sum = |key: &str| match value.get(key)? {
            Value::Null => Some(None),
            digits => digits.as_str()?.parse().ok().map(Some),
        };
        Some(Self { rows: sum("rows")?, k: sum("k")?, whole: value.get("whole")?.as_bool()? })
    }

    /// Returns the contents after a test. Rows of an operation that failed or had to be repeated are
    /// rolled back, so none of them are there.
    pub(crate) fn after(mut self, test: Test, setup: &OltpSetup, end: &StepEnd) -> Self {
        let changed: i128 = end.tasks.iter().map(|task| i128::from(task.rows)).sum();
        // Without a transaction a failure leaves what its operation had done before it.
        let torn = end.tasks.iter().any(|task| task.retries > 0 || !task.failed_numbers.is_empty());
        if end.tasks.iter().any(|task| !task.unknown_numbers.is_empty()) {
            // A connection was lost with an operation on its way, so its outcome is unknown.
            return Self::default();
        }
        let options = &setup.options;
        match test {
            Test::PointSelect | Test::ReadOnly => {}
            Test::UpdateNonIndex => {}
            // Each of these operations takes one row and adds one to its `k`.
            Test::UpdateIndex => self.k = self.k.filter(|_| !torn).map(|k| k + changed),
            Test::Insert => self = Self { rows: self.rows.map(|rows| rows + changed), k: None, ..self },
            Test::Delete => self = Self { rows: self.rows.map(|rows| rows - changed), k: None, whole: false },
            Test::ReadWrite | Test::WriteOnly => {
                self.k = self.k.filter(|_| options.delete_inserts == 0 && options.index_updates == 0);
                // A DELETE and the INSERT of its row leave the number of rows as it was only when they
                // happen together and once. Without a transaction, two connections may delete a row,
                // and one of them may fail to put it back. Without a unique key, a DELETE that waited
                // for another connection may find no row, and its INSERT then adds one more. The same
                // happens for an id that has no row.
                let may_tear = options.skip_trx || options.secondary;
                let is_same = options.delete_inserts == 0 || (self.whole && !may_tear);
                self.rows = self.rows.filter(|_| is_same);
                self.whole &= options.delete_inserts == 0 || !may_tear;
            }
        }
        self
    }
}

/// Returns the sum of `k` of a loaded table. It makes all rows again.
fn loaded_k(setup: &OltpSetup, table: u32) -> i128 {
    let source = OltpRowSource::of(setup);
    (1..=setup.options.table_size).map(|row| i128::from(source.row(table, row).0)).sum()
}

/// Reads all tables. After the load each is checked by itself, with its ids. Later all of them are
/// checked together.
pub(crate) async fn verify(
    setup: &OltpSetup,
    kind: OltpStepKind,
    expected: &mut Contents,
    session: &mut AnySession,
) -> Result<Vec<Check>> {
    let began = Instant::now();
    if kind == OltpStepKind::Load {
        let mut checks = Vec::new();
        for number in 1..=setup.options.tables {
            let began = Instant::now();
            let mut parts = loaded_parts(setup, number, &sums_of(number, session).await?);
            let (looked_at, as_sent) = compare_sample(setup, number, session).await?;
            parts.push(part("sampled rows as sent", looked_at.into(), as_sent.into()));
            checks.push(check(OltpSetup::table(number), parts, began));
        }
        return Ok(checks);
    }
    let mut tables = Vec::new();
    for number in 1..=setup.options.tables {
        tables.push(sums_of(number, session).await?);
    }
    let sum = |column: usize| tables.iter().map(|table| table[column]).sum::<i128>();
    let (rows, k) = (sum(0), sum(3));
    let certain = [("rows", expected.rows, rows), ("sum(k)", expected.k, k)].into_iter();
    let parts = certain.filter_map(|(name, expected, actual)| Some(part(name, expected?, actual))).collect();
    // The next step begins with the contents that were read.
    *expected = Contents { rows: Some(rows), k: Some(k), ..*expected };
    let name =
        if setup.options.tables == 1 { "sbtest1".to_owned() } else { "sbtest1 and all others".to_owned() };
    Ok(vec![check(name, parts, began)])
}

fn loaded_parts(setup: &OltpSetup, number: u32, actual: &[i128; 5]) -> Vec<CheckPart> {
    let rows = i128::from(setup.options.table_size);
    // Tests draw from all ids between the first and the last. A gap would make them ask for rows
    // that do not exist.
    let (first, last): (i128, i128) = (setup.options.first_id.into(), setup.options.last_id().into());
    vec![
        part("rows", rows, actual[0]),
        part("min(id)", first, actual[1]),
        part("max(id)", last, actual[2]),
        part("sum(id)", rows * (first + last) / 2, actual[4]),
        part("sum(k)", loaded_k(setup, number), actual[3]),
    ]
}

/// Returns the number of rows, lowest and highest id, sum of `k` and sum of `id` of a table.
pub(crate) async fn sums_of(number: u32, session: &mut AnySession) -> Result<[i128; 5]> {
    let table = OltpSetup::table(number);
    numbers(session, &sql::sums(&table), format!("checking table {table}")).await
}

/// Rows of each table that are compared, including the first and the last.
const SAMPLE: u64 = 32;

/// Stream of the draws that choose these rows.
const IDS: u32 = 0x7361_6d70;

/// Returns the number of rows of table `number` that were compared, and how many of them are as they
/// were sent.
async fn compare_sample(setup: &OltpSetup, number: u32, session: &mut AnySession) -> Result<(u64, u64)> {
    let rows = sampled(setup.context.seed, number, setup.options.table_size);
    let source = OltpRowSource::of(setup);
    let ids: Vec<u64> = rows.iter().map(|&row| source.id(row)).collect();
    let table = OltpSetup::table(number);
    let looking = Error::during(format!("comparing rows of table {table}"));
    let found = session.rows(&sql::rows_of(&table, &ids)).await.map_err(looking)?;
    let is_as_sent = |row: u64| {
        let wanted = wanted(&source, number, row);
        found.iter().any(|row| {
            // Some databases return a CHAR with blanks up to its length.
            let mut cells = row.iter().map(|cell| cell.as_deref().unwrap_or_default().trim_end_matches(' '));
            wanted.iter().all(|wanted| cells.next() == Some(wanted.as_str()))
        })
    };
    Ok((rows.len() as u64, rows.iter().filter(|&&row| is_as_sent(row)).count() as u64))
}

/// Returns the numbers of up to [`SAMPLE`] different rows out of `count`, in order.
fn sampled(seed: u64, table: u32, count: u64) -> Vec<u64> {
    let stream = Philox::new(seed, IDS);
    let mut rows: Vec<u64> =
        (2..SAMPLE).map(|number| 1 + OltpDraws::new(&stream, table, number).below(count)).collect();
    rows.extend([1, count]);
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// Returns the expected `id`, `k`, `c` and `pad` as text.
fn wanted(source: &OltpRowSource, table: u32, row: u64) -> [String; 4] {
    let (k, mut draws) = source.row(table, row);
    let mut text = |push: fn(&mut OltpDraws, &mut Vec<u8>)| {
        let mut out = Vec::new();
        push(&mut draws, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    };
    let c = text(push_c);
    [source.id(row).to_string(), k.to_string(), c, text(push_pad)]
}

#[cfg(test)]
mod tests {
    use crate::oltp::options::OltpOptions;
    use dbdyno_db::{DatabaseAddress, DatabaseServer, null};
    use dbdyno_loadgen::TaskEnd;
    use dbdyno_record::Outcome;

    use super::*;
    use crate::Context;

    fn setup(options: OltpOptions) -> OltpSetup {
        let address = DatabaseAddress::Null(null::Options::default());
        let database_server = DatabaseServer { address, capabilities: null::capabilities() };
        OltpSetup {
            options,
            context: Context { database_server, owned: true, seed: 1, draws: 1, device: None },
        }
    }

    /// Returns the end of a test in which two connections changed `rows` each.
    fn end(rows: u64, retries: u64) -> StepEnd {
        let task = |retries| TaskEnd {
            client: 1,
            kind: 0,
            started: rows,
            done: rows,
            rows,
            retries,
            failed_numbers: Vec::new(),
            unknown_numbers: Vec::new(),
            reconnects: 0,
            complete: true,
            unanswered: false,
        };
        StepEnd { outcome: Outcome::Completed, message: None, at_us: 1, tasks: vec![task(retries), task(0)] }
    }

    const BEFORE: Contents = Contents { rows: Some(100), k: Some(5000), whole: true };

    fn after(test: Test, options: OltpOptions, retries: u64) -> (Option<i128>, Option<i128>) {
        let Contents { rows, k, .. } = BEFORE.after(test, &setup(options), &end(10, retries));
        (rows, k)
    }

    #[test]
    fn what_is_certain_after_each_test_and_what_is_not() {
        let default = OltpOptions::default;
        assert_eq!(after(Test::PointSelect, default(), 0), (Some(100), Some(5000)));
        assert_eq!(after(Test::UpdateNonIndex, default(), 0), (Some(100), Some(5000)));
        assert_eq!(after(Test::UpdateIndex, default(), 0), (Some(100), Some(5020)));
        assert_eq!(after(Test::UpdateIndex, default(), 1), (Some(100), None));
        assert_eq!(after(Test::Insert, default(), 0), (Some(120), None));
        assert_eq!(after(Test::Delete, default(), 0), (Some(80), None));
        assert_eq!(after(Test::ReadWrite, default(), 3), (Some(100), None));
        let torn = OltpOptions { skip_trx: true, ..default() };
        assert_eq!(after(Test::WriteOnly, torn, 0), (None, None));
        let doubled = OltpOptions { secondary: true, ..default() };
        assert_eq!(after(Test::WriteOnly, doubled, 0), (None, None));
        let mut lost = end(10, 0);
        lost.tasks[1].unknown_numbers = vec![7];
        assert_eq!(BEFORE.after(Test::Insert, &setup(default()), &lost), Contents::default());
        let same_k = OltpOptions { skip_trx: true, delete_inserts: 0, index_updates: 0, ..default() };
        assert_eq!(after(Test::WriteOnly, same_k, 0), (Some(100), Some(5000)));
    }

    #[test]
    fn where_an_id_has_no_row_a_delete_with_its_insert_may_add_one() {
        let setup = setup(OltpOptions::default());
        let holed = BEFORE.after(Test::Delete, &setup, &end(10, 0));
        assert_eq!((holed.rows, holed.whole), (Some(80), false));
        assert_eq!(holed.after(Test::UpdateIndex, &setup, &end(10, 0)).rows, Some(80));
        assert_eq!(holed.after(Test::ReadWrite, &setup, &end(10, 0)).rows, None);
        let inserted = BEFORE.after(Test::Insert, &setup, &end(10, 0));
        assert_eq!(inserted.after(Test::ReadWrite, &setup, &end(10, 0)).rows, Some(120));
        for contents in [holed, inserted, Contents::default()] {
            assert_eq!(Contents::from_json(&contents.to_json()), Some(contents));
        }
    }

    #[test]
    fn a_loaded_table_is_known_to_its_last_row() {
        let options = OltpOptions { tables: 2, table_size: 1000, ..OltpOptions::default() };
        let setup = setup(options);
        let loaded = Contents::loaded(&setup);
        assert_eq!(loaded.rows, Some(2000));
        assert_eq!(loaded.k, Some(loaded_k(&setup, 1) + loaded_k(&setup, 2)));
        let parts = loaded_parts(&setup, 2, &[999, 1, 1000, loaded_k(&setup, 2), 499_500]);
        let wrong: Vec<&str> =
            parts.iter().filter(|p| p.expected != p.actual).map(|p| p.name.as_str()).collect();
        assert_eq!(wrong, ["rows", "sum(id)"]);
        let mut far = self::setup(setup.options.clone());
        far.options.first_id = 3_000_000_001;
        let shift = 3_000_000_000;
        let sums =
            [1000, 1 + shift, 1000 + shift, loaded_k(&setup, 2) + 1000 * shift, 500_500 + 1000 * shift];
        assert!(loaded_parts(&far, 2, &sums).iter().all(|part| part.expected == part.actual));
    }

    #[test]
    fn the_first_and_the_last_row_are_in_every_sample_and_none_is_twice() {
        for count in [1, 2, 20, 10_000_000] {
            let rows = sampled(1, 3, count);
            assert_eq!((rows[0], rows[rows.len() - 1]), (1, count));
            assert!(rows.windows(2).all(|pair| pair[0] < pair[1]), "{rows:?}");
        }
        assert_eq!(sampled(1, 3, 10_000_000).len(), 32);
        assert_ne!(sampled(1, 3, 10_000_000), sampled(1, 4, 10_000_000));
    }
}
