//! Statements within operations: counted by kind of statement, with the times of each.

use std::collections::BTreeMap;
use std::time::Duration;

use dbdyno_record::{Clock, StepEvent, StepWriter};
use hdrhistogram::Histogram;

use crate::arrivals::to_ns;
use crate::batch::{histogram, record};
use crate::recorder::to_us;

/// What one statement of an answered operation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementDone {
    /// Which kind of statement: a small number, the same on every lane of the same operation kind.
    pub index: usize,
    /// The name of that kind, `simple-range`.
    pub name: &'static str,
    /// From sending to its complete answer. `None` where the operation is this one statement: its time is the operation's.
    pub took: Option<Duration>,
    /// Rows it fetched or changed.
    pub rows: u64,
}

/// All statements of one kind between two moments.
#[derive(Debug, Clone)]
struct Tally {
    name: &'static str,
    done: u64,
    /// Statements that neither fetched nor changed a row.
    empty: u64,
    rows: u64,
    times: Option<Histogram<u64>>,
}

/// Statements of all kinds, by the index of their operation's kind and their own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Statements {
    tallies: BTreeMap<(usize, usize), Tally>,
}

impl Statements {
    /// Counts the statements of one operation of `kind`.
    pub(crate) fn count(&mut self, kind: usize, statements: &[StatementDone]) {
        for statement in statements {
            let tally =
                self.tallies.entry((kind, statement.index)).or_insert_with(|| Tally::new(statement.name));
            tally.done += 1;
            tally.empty += u64::from(statement.rows == 0);
            tally.rows += statement.rows;
            if let Some(took) = statement.took {
                record(tally.times.get_or_insert_with(histogram), to_us(to_ns(took)));
            }
        }
    }

    /// Adds what another thread, or another second, has counted, without loss.
    pub(crate) fn add(&mut self, more: &Self) {
        for (key, more) in &more.tallies {
            let tally = self.tallies.entry(*key).or_insert_with(|| Tally::new(more.name));
            tally.done += more.done;
            tally.empty += more.empty;
            tally.rows += more.rows;
            if let Some(times) = &more.times {
                // Same figures on both sides, and ranges that grow, so that adding cannot fail.
                let _ = tally.times.get_or_insert_with(histogram).add(times);
            }
        }
    }

    /// Writes one event for each kind of statement, and the histogram of its times.
    pub(crate) fn write(
        &self,
        kinds: &[String],
        (from_us, to_us): (u64, u64),
        writer: &mut StepWriter,
    ) -> Result<(), dbdyno_record::Error> {
        for ((kind, _), tally) in &self.tallies {
            let kind = &kinds[*kind];
            writer.event(&StepEvent::Statement {
                kind: kind.clone(),
                statement: tally.name.to_owned(),
                from_us,
                to_us,
                done: tally.done,
                empty: tally.empty,
                rows: tally.rows,
            })?;
            if let Some(times) = &tally.times {
                let tag = Clock::Service.tag(&dbdyno_record::statement_kind(kind, tally.name));
                writer.histogram(&tag, from_us, to_us, times)?;
            }
        }
        Ok(())
    }
}

impl Tally {
    fn new(name: &'static str) -> Self {
        Self { name, done: 0, empty: 0, rows: 0, times: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(index: usize, took_us: u64, rows: u64) -> StatementDone {
        let took = (took_us > 0).then(|| Duration::from_micros(took_us));
        StatementDone { index, name: ["point", "delete"][index], took, rows }
    }

    #[test]
    fn statements_are_counted_by_kind_and_those_without_a_row_apart() {
        let mut sum = Statements::default();
        sum.count(0, &[done(0, 10, 1), done(1, 30, 0), done(0, 10, 0)]);
        let mut more = Statements::default();
        more.count(0, &[done(1, 40, 1)]);
        more.count(1, &[done(1, 0, 1)]);
        sum.add(&more);
        let found: Vec<_> =
            sum.tallies.iter().map(|(key, t)| (*key, t.name, t.done, t.empty, t.rows)).collect();
        assert_eq!(
            found,
            [((0, 0), "point", 2, 1, 1), ((0, 1), "delete", 2, 1, 1), ((1, 1), "delete", 1, 0, 1)]
        );
        let times = |key| sum.tallies[&key].times.as_ref().map(Histogram::len);
        assert_eq!((times((0, 0)), times((0, 1)), times((1, 1))), (Some(2), Some(2), None));
    }
}
