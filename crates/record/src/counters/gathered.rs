//! Collects the samples of a counter file for a series. They come in by sample and are asked for by
//! key.

use super::{CounterHeader, CounterSeries};

/// Stands for no key.
const NONE: usize = usize::MAX;

/// Every change of every key so far. Keys are numbered in the order in which they first came.
///
/// A run has millions of changes, and from sample to sample the same keys change in the same order. So
/// the key that followed another one the last time is tried first.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    at_us: Vec<i64>,
    keys: Vec<Box<str>>,
    /// Numbers of the keys, sorted by key.
    sorted: Vec<usize>,
    /// Which key came last at the beginning of a sample, then which key came last after each key.
    followers: Vec<usize>,
    /// Key number, sample, value.
    changes: Vec<(usize, u32, i64)>,
}

impl Gathered {
    pub(crate) fn sample<'a>(&mut self, at_us: i64, values: impl Iterator<Item = (&'a str, i64)>) {
        // With one sample per millisecond, the first sample without a number would come after 49 days.
        let sample = u32::try_from(self.at_us.len()).unwrap_or(u32::MAX);
        self.at_us.push(at_us);
        if self.followers.is_empty() {
            self.followers.push(NONE);
        }
        let mut place = 0;
        for (key, value) in values {
            let number = self.number(key, place);
            self.followers[place] = number;
            place = number + 1;
            self.changes.push((number, sample, value));
        }
    }

    /// Returns the number of `key`, which follows the key that stands at `place` in the followers.
    fn number(&mut self, key: &str, place: usize) -> usize {
        let guess = self.followers[place];
        if self.keys.get(guess).is_some_and(|known| **known == *key) {
            return guess;
        }
        // A server gives its counters sorted.
        let is_last = self.sorted.last().is_none_or(|last| *self.keys[*last] < *key);
        let found = match is_last {
            true => Err(self.sorted.len()),
            false => self.sorted.binary_search_by(|number| (*self.keys[*number]).cmp(key)),
        };
        match found {
            Ok(place) => self.sorted[place],
            Err(place) => {
                let number = self.keys.len();
                self.keys.push(key.into());
                self.sorted.insert(place, number);
                self.followers.push(NONE);
                number
            }
        }
    }

    /// Returns everything as a series by key.
    pub(crate) fn series(self, header: CounterHeader) -> CounterSeries {
        let mut counts = vec![0; self.keys.len()];
        for (number, ..) in &self.changes {
            counts[*number] += 1;
        }
        let mut keys = String::with_capacity(self.keys.iter().map(|key| key.len()).sum());
        let mut ends = Vec::with_capacity(self.keys.len());
        let mut places = vec![0; self.keys.len()];
        let mut end = 0;
        for number in self.sorted {
            keys.push_str(&self.keys[number]);
            places[number] = end;
            end += counts[number];
            ends.push((keys.len(), end));
        }
        let mut changes = vec![(0, 0); self.changes.len()];
        for (number, sample, value) in self.changes {
            changes[places[number]] = (sample, value);
            places[number] += 1;
        }
        CounterSeries { header, at_us: self.at_us, keys, ends, changes }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::Map;

    use super::*;

    proptest! {
        #[test]
        fn every_key_keeps_its_changes_in_whatever_order_keys_come(
            samples in prop::collection::vec(prop::collection::vec(("[a-e]{1,2}", any::<i64>()), 0..8), 0..12),
        ) {
            let mut gathered = Gathered::default();
            let mut expected: BTreeMap<&str, Vec<Option<i64>>> = BTreeMap::new();
            for (number, values) in samples.iter().enumerate() {
                gathered.sample(number as i64, values.iter().map(|(key, value)| (key.as_str(), *value)));
                for (key, value) in values {
                    let known = expected.entry(key).or_default();
                    let last = known.last().copied().flatten();
                    known.resize(number, last);
                    known.truncate(number);
                    known.push(Some(*value));
                }
            }
            let series = gathered.series(CounterHeader { source: "status".into(), about: Map::new() });
            prop_assert_eq!(series.keys().collect::<Vec<_>>(), expected.keys().copied().collect::<Vec<_>>());
            for (key, mut known) in expected {
                let last = known.last().copied().flatten();
                known.resize(samples.len(), last);
                let found: Vec<_> = (0..samples.len()).map(|sample| series.value(key, sample)).collect();
                prop_assert_eq!(found, known, "{}", key);
            }
        }
    }
}
