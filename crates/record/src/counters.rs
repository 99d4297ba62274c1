//! `counters/<source>.jsonl`: raw counters of one source, one line a sample, the first line a header.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// First line of a counter file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CounterHeader {
    /// `host`, `server`, `switches`, `client`, `disk`, `status`, `size`, `sampler`
    pub source: String,
    /// What is sampled: device name, process id, path, ...
    pub about: Map<String, Value>,
}

/// One sample. A key that is left out has not changed since the line before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterLine {
    /// Since the barrier; negative before it.
    pub at_us: i64,
    /// Unit is the key's last word (`cpu_user_us`, `rss_bytes`); server status keeps the server's names.
    pub values: BTreeMap<String, i64>,
}

/// A line as it stands in a file: its keys borrow from there, because a run has millions of them.
#[derive(Deserialize)]
pub(crate) struct Sample<'a> {
    at_us: i64,
    #[serde(borrow, deserialize_with = "pairs")]
    values: Vec<(Key<'a>, i64)>,
}

#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// The entries of a map in their order.
fn pairs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(Key<'de>, i64)>, D::Error> {
    struct Entries;
    impl<'de> Visitor<'de> for Entries {
        type Value = Vec<(Key<'de>, i64)>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a map of counters")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut entries = Vec::new();
            while let Some(entry) = map.next_entry()? {
                entries.push(entry);
            }
            Ok(entries)
        }
    }
    deserializer.deserialize_map(Entries)
}

/// A counter file as read. Held by key as it was written, by changes: a server has hundreds of counters, most of which
/// never move, and a run has thousands of files.
#[derive(Debug, Clone, PartialEq)]
pub struct CounterSeries {
    pub header: CounterHeader,
    /// When each sample was taken.
    at_us: Vec<i64>,
    /// By key the samples that brought another value, with it; the first one is the key's first.
    changes: BTreeMap<String, Vec<(usize, i64)>>,
}

impl CounterSeries {
    /// A series without samples.
    pub fn new(header: CounterHeader) -> Self {
        Self { header, at_us: Vec::new(), changes: BTreeMap::new() }
    }

    /// One more sample; what it leaves out has not changed.
    pub fn push(&mut self, line: &CounterLine) {
        self.add(line.at_us, line.values.iter().map(|(key, value)| (key.as_str(), *value)));
    }

    /// [`CounterSeries::push`] of a line as it was read.
    pub(crate) fn push_sample(&mut self, sample: &Sample<'_>) {
        self.add(sample.at_us, sample.values.iter().map(|(Key(key), value)| (key.as_ref(), *value)));
    }

    fn add<'a>(&mut self, at_us: i64, values: impl Iterator<Item = (&'a str, i64)>) {
        let sample = self.at_us.len();
        self.at_us.push(at_us);
        for (key, value) in values {
            match self.changes.get_mut(key) {
                Some(changes) => changes.push((sample, value)),
                None => {
                    self.changes.insert(key.to_owned(), vec![(sample, value)]);
                }
            }
        }
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.at_us.len()
    }

    pub fn is_empty(&self) -> bool {
        self.at_us.is_empty()
    }

    /// All keys that any sample had, sorted.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.changes.keys().map(String::as_str)
    }

    /// The value of `key` at a sample; `None` before its first one.
    pub fn value(&self, key: &str, sample: usize) -> Option<i64> {
        let changes = self.changes.get(key)?;
        let known = changes.partition_point(|(changed, _)| *changed <= sample);
        (sample < self.len()).then(|| Some(changes.get(known.checked_sub(1)?)?.1))?
    }

    /// When and what, of every sample from the key's first one on.
    pub fn values<'a>(&'a self, key: &'a str) -> impl Iterator<Item = (i64, i64)> + 'a {
        let samples = self.at_us.iter().enumerate();
        samples.filter_map(move |(sample, at_us)| Some((*at_us, self.value(key, sample)?)))
    }

    /// The value of `key` at the sample nearest to `at_us`, with that sample's time.
    pub fn nearest(&self, key: &str, at_us: i64) -> Option<(i64, i64)> {
        let (sample, at_us) =
            self.at_us.iter().copied().enumerate().min_by_key(|(_, at)| (at - at_us).abs())?;
        Some((at_us, self.value(key, sample)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_has_the_last_value_that_was_written() {
        let mut series = CounterSeries::new(CounterHeader { source: "status".into(), about: Map::new() });
        for (at_us, values) in
            [(-5, vec![("a", 1)]), (10, vec![("b", 7)]), (20, vec![]), (30, vec![("a", 2)])]
        {
            let values = values.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            series.push(&CounterLine { at_us, values });
        }
        assert_eq!(series.values("a").collect::<Vec<_>>(), [(-5, 1), (10, 1), (20, 1), (30, 2)]);
        assert_eq!(series.values("b").collect::<Vec<_>>(), [(10, 7), (20, 7), (30, 7)]);
        assert_eq!((series.value("b", 0), series.value("a", 4), series.value("c", 1)), (None, None, None));
        assert_eq!((series.nearest("a", 24), series.nearest("b", 0)), (Some((20, 1)), None));
        assert_eq!((series.len(), series.keys().collect::<Vec<_>>()), (4, vec!["a", "b"]));
    }
}
