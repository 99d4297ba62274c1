//! Counts the statements within operations by kind of statement, and records the times of each kind.

use std::borrow::Cow;
use std::time::Duration;

use dbdyno_record::{Clock, StepEvent, StepWriter};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::arrivals::{to_ns, to_us};
use crate::batch::{histogram, record, some_counts};

/// The result of one statement in an answered operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementDone {
    /// The index of the statement's kind, which is a small number that is the same on every task of
    /// the same operation kind.
    pub index: usize,
    /// The name of that kind, such as `simple-range`.
    pub name: &'static str,
    /// Time from when the statement was sent to its complete answer. It is `None` where the operation
    /// is this one statement, because then the operation's time is the statement's.
    pub took: Option<Duration>,
    /// Rows that the statement fetched or changed.
    pub rows: u64,
}

/// All statements of one kind between two moments.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StatementTally {
    name: Cow<'static, str>,
    done: u64,
    /// Statements that neither fetched nor changed a row.
    empty: u64,
    rows: u64,
    #[serde(with = "some_counts")]
    times: Option<Histogram<u64>>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Statements {
    /// The tallies by the index of their operation's kind, then by their own index. A `Vec` is
    /// enough, because both indices are small and have no large gaps.
    tallies: Vec<Vec<Option<StatementTally>>>,
}

impl Statements {
    /// Counts the statements of one operation of `kind`.
    pub(crate) fn count(&mut self, kind: usize, statements: &[StatementDone]) {
        for statement in statements {
            let tally = self.tally(kind, statement.index, || Cow::Borrowed(statement.name));
            tally.done += 1;
            tally.empty += u64::from(statement.rows == 0);
            tally.rows += statement.rows;
            if let Some(took) = statement.took {
                record(tally.times.get_or_insert_with(histogram), to_us(to_ns(took)));
            }
        }
    }

    /// Adds the counts of another thread or another second, without loss.
    pub(crate) fn add(&mut self, more: &Self) {
        for (kind, index, more) in more.all() {
            let tally = self.tally(kind, index, || more.name.clone());
            tally.done += more.done;
            tally.empty += more.empty;
            tally.rows += more.rows;
            if let Some(times) = &more.times {
                // Both sides have the same significant figures and ranges that grow, so adding cannot
                // fail.
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
        for (kind, _, tally) in self.all() {
            let kind = &kinds[kind];
            writer.event(&StepEvent::Statement {
                kind: kind.clone(),
                statement: tally.name.clone().into_owned(),
                from_us,
                to_us,
                done: tally.done,
                empty: tally.empty,
                rows: tally.rows,
            })?;
            if let Some(times) = &tally.times {
                let tag = Clock::Service.tag(&dbdyno_record::statement_kind(kind, &tally.name));
                writer.histogram(&tag, from_us, to_us, times)?;
            }
        }
        Ok(())
    }

    /// Returns the tally of statement `index` in operations of `kind`. A new tally is made for the
    /// first such statement.
    #[inline]
    fn tally(
        &mut self,
        kind: usize,
        index: usize,
        name: impl FnOnce() -> Cow<'static, str>,
    ) -> &mut StatementTally {
        if self.tallies.get(kind).is_none_or(|tallies| tallies.len() <= index) {
            self.make_room(kind, index);
        }
        let new = || StatementTally { name: name(), done: 0, empty: 0, rows: 0, times: None };
        self.tallies[kind][index].get_or_insert_with(new)
    }

    #[cold]
    fn make_room(&mut self, kind: usize, index: usize) {
        let kinds = self.tallies.len().max(kind + 1);
        self.tallies.resize(kinds, Vec::new());
        self.tallies[kind].resize(index + 1, None);
    }

    /// Returns each kind of statement with its name, how many were answered, and their times.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&str, u64, Option<&Histogram<u64>>)> {
        self.all().map(|(_, _, tally)| (&*tally.name, tally.done, tally.times.as_ref()))
    }

    /// Returns every tally with the two indices by which it is found, in the order of these indices.
    fn all(&self) -> impl Iterator<Item = (usize, usize, &StatementTally)> {
        self.tallies.iter().enumerate().flat_map(|(kind, tallies)| {
            let tallies = tallies.iter().enumerate();
            tallies.filter_map(move |(index, tally)| Some((kind, index, tally.as_ref()?)))
        })
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
    fn statements_are_counted_by_kind_and_empty_ones_separately() {
        let mut sum = Statements::default();
        sum.count(0, &[done(0, 10, 1), done(1, 30, 0), done(0, 10, 0)]);
        let mut more = Statements::default();
        more.count(0, &[done(1, 40, 1)]);
        more.count(1, &[done(1, 0, 1)]);
        sum.add(&more);
        let found: Vec<_> =
            sum.all().map(|(kind, index, t)| ((kind, index), &*t.name, t.done, t.empty, t.rows)).collect();
        assert_eq!(
            found,
            [((0, 0), "point", 2, 1, 1), ((0, 1), "delete", 2, 1, 1), ((1, 1), "delete", 1, 0, 1)]
        );
        let times: Vec<_> = sum.all().map(|(_, _, t)| t.times.as_ref().map(Histogram::len)).collect();
        assert_eq!(times, [Some(2), Some(2), None]);
    }
}
