//! The files `counters/<source>.jsonl`, which hold the raw counters of one source. Each line is one
//! sample, and the first line is a header.

mod gathered;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(crate) use gathered::Gathered;

/// First line of a counter file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CounterHeader {
    /// The source, one of `host`, `server`, `switches`, `client`, `disk`, `status`, `size`, `sampler`.
    pub source: String,
    /// What is sampled: device name, process id, path, ...
    pub about: Map<String, Value>,
}

/// One sample. A key that is left out has not changed since the line before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterLine {
    /// Time since the barrier. It is negative before the barrier.
    pub at_us: i64,
    /// The last word of a key is its unit (`cpu_user_us`, `rss_bytes`). The server's status keeps the
    /// server's names.
    pub values: BTreeMap<String, i64>,
}

/// A counter file as read. Values are held by key, and only where they change. A server has hundreds of
/// counters, most of which never move, and a run has thousands of such files.
#[derive(Debug, Clone, PartialEq)]
pub struct CounterSeries {
    pub header: CounterHeader,
    /// When each sample was taken.
    at_us: Vec<i64>,
    /// All keys one after the other, sorted.
    keys: String,
    /// For each key, where it ends in `keys` and where its changes end in `changes`.
    ends: Vec<(usize, usize)>,
    /// For each key in turn, the samples that brought another value, with that value. A key's first
    /// change is its first value.
    changes: Vec<(u32, i64)>,
}

impl CounterSeries {
    /// Returns a series from the samples of one file in their order. What a sample leaves out has not
    /// changed.
    pub fn new<'a>(header: CounterHeader, lines: impl IntoIterator<Item = &'a CounterLine>) -> Self {
        let mut gathered = Gathered::default();
        for line in lines {
            gathered.sample(line.at_us, line.values.iter().map(|(key, value)| (key.as_str(), *value)));
        }
        gathered.series(header)
    }

    pub fn len(&self) -> usize {
        self.at_us.len()
    }

    pub fn is_empty(&self) -> bool {
        self.at_us.is_empty()
    }

    /// Returns all keys that any sample had, sorted.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len()).map(|number| self.key(number))
    }

    /// Returns the value of `key` at a sample, or `None` before the key's first one.
    pub fn value(&self, key: &str, sample: usize) -> Option<i64> {
        self.value_of(self.changes_of(key)?, sample)
    }

    /// Returns the time and value of every sample from the key's first one on.
    pub fn values<'a>(&'a self, key: &str) -> impl Iterator<Item = (i64, i64)> + 'a {
        let changes = self.changes_of(key).unwrap_or_default();
        let samples = self.at_us.iter().enumerate();
        samples.filter_map(move |(sample, at_us)| Some((*at_us, self.value_of(changes, sample)?)))
    }

    /// Returns the time and value of `key` at the sample nearest to `at_us`.
    pub fn nearest(&self, key: &str, at_us: i64) -> Option<(i64, i64)> {
        let (sample, at_us) =
            self.at_us.iter().copied().enumerate().min_by_key(|(_, at)| (at - at_us).abs())?;
        Some((at_us, self.value(key, sample)?))
    }

    /// Returns the key at place `number` in their order.
    fn key(&self, number: usize) -> &str {
        &self.keys[self.before(number).0..self.ends[number].0]
    }

    /// Returns where a key and its changes begin.
    fn before(&self, number: usize) -> (usize, usize) {
        number.checked_sub(1).map_or((0, 0), |before| self.ends[before])
    }

    fn changes_of(&self, key: &str) -> Option<&[(u32, i64)]> {
        let (mut from, mut to) = (0, self.ends.len());
        while from < to {
            let middle = usize::midpoint(from, to);
            match self.key(middle).cmp(key) {
                Ordering::Less => from = middle + 1,
                Ordering::Greater => to = middle,
                Ordering::Equal => return Some(&self.changes[self.before(middle).1..self.ends[middle].1]),
            }
        }
        None
    }

    fn value_of(&self, changes: &[(u32, i64)], sample: usize) -> Option<i64> {
        let known = changes.partition_point(|(changed, _)| *changed as usize <= sample);
        (sample < self.len()).then(|| Some(changes.get(known.checked_sub(1)?)?.1))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_has_the_last_value_that_was_written() {
        let header = CounterHeader { source: "status".into(), about: Map::new() };
        let samples = [(-5, vec![("a", 1)]), (10, vec![("b", 7)]), (20, vec![]), (30, vec![("a", 2)])];
        let lines = samples.map(|(at_us, values)| CounterLine {
            at_us,
            values: values.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        });
        let series = CounterSeries::new(header, &lines);
        assert_eq!(series.values("a").collect::<Vec<_>>(), [(-5, 1), (10, 1), (20, 1), (30, 2)]);
        assert_eq!(series.values("b").collect::<Vec<_>>(), [(10, 7), (20, 7), (30, 7)]);
        assert_eq!((series.value("b", 0), series.value("a", 4), series.value("c", 1)), (None, None, None));
        assert_eq!((series.nearest("a", 24), series.nearest("b", 0)), (Some((20, 1)), None));
        assert_eq!((series.len(), series.keys().collect::<Vec<_>>()), (4, vec!["a", "b"]));
    }
}
