//! Defines and reads the files `counters/<source>.jsonl`. Each file holds the raw counters of one
//! source. The first line is a header, and each other line is one sample. A fast reader takes lines
//! in the exact form in which they are written, and a JSON reader takes any other. Samples are
//! added one by one and looked up by key.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::lines::parse_json;

/// First line of a counter file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CounterHeader {
    /// Name of the source, such as `host`, `server` or `disk`.
    pub source: String,
    /// The sampled object, such as a device's name, a process id or a path.
    pub about: Map<String, Value>,
}

/// One sample. A key that is left out has not changed since the line before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterLine {
    /// Time since the barrier. It is negative before the barrier.
    pub at_us: i64,
    /// The last word of a key is its unit (`cpu_user_us`, `rss_bytes`). The server's status keeps
    /// the server's names.
    pub values: BTreeMap<String, i64>,
}

/// A counter file as read. Values are held by key, and only where they change. A server has
/// hundreds of counters, most of which never move, and a run has thousands of such files.
#[derive(Debug, Clone, PartialEq)]
pub struct CounterSeries {
    pub header: CounterHeader,
    /// When each sample was taken.
    at_us: Vec<i64>,
    /// All keys one after the other, sorted.
    keys: String,
    /// For each key, where it ends in `keys` and where its changes end in `changes`.
    ends: Vec<(usize, usize)>,
    /// For each key in turn, the samples in which its value changed, with the new value. A key's
    /// first change is its first value.
    changes: Vec<(u32, i64)>,
}

impl CounterSeries {
    /// Returns a series from the samples of one file in their order. A key that a sample leaves out
    /// has not changed.
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

    /// Returns the key with this number in sorted order.
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

/// The key number that stands for no key.
const NONE: usize = usize::MAX;

/// Every change of every key so far. Keys are numbered in the order in which they first came.
///
/// A run has millions of changes, and from sample to sample the same keys change in the same order.
/// So the key that followed another one the last time is tried first.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    at_us: Vec<i64>,
    keys: Vec<Box<str>>,
    /// Numbers of the keys, sorted by key.
    sorted: Vec<usize>,
    /// Which key follows, as seen most recently. The first entry has the key at the beginning of a
    /// sample, and entry n + 1 has the key after key n.
    followers: Vec<usize>,
    /// Each change has a key number, a sample and a value.
    changes: Vec<(usize, u32, i64)>,
}

impl Gathered {
    pub(crate) fn sample<'a>(&mut self, at_us: i64, values: impl Iterator<Item = (&'a str, i64)>) {
        // With one sample per millisecond, the first sample without a number would come after 49
        // days.
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

    /// Returns the number of `key`. `place` is the entry in `followers` for the key before it.
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

/// A line of a counter file.
#[derive(Debug)]
pub(crate) enum CounterEntry<'a> {
    Header(CounterHeader),
    Line(Sample<'a>),
}

impl CounterEntry<'_> {
    /// Returns when a sample was taken.
    pub(crate) fn at_us(&self) -> Option<i64> {
        match self {
            CounterEntry::Header(_) => None,
            CounterEntry::Line(sample) => Some(sample.at_us),
        }
    }
}

/// A sample. Its keys borrow from the line, because a run has millions of them.
#[derive(Debug, PartialEq)]
pub(crate) struct Sample<'a> {
    at_us: i64,
    values: Vec<(Cow<'a, str>, i64)>,
}

impl From<CounterLine> for Sample<'_> {
    fn from(CounterLine { at_us, values }: CounterLine) -> Self {
        Self { at_us, values: values.into_iter().map(|(key, value)| (key.into(), value)).collect() }
    }
}

/// Returns one line, or a message that says what is wrong and in which column.
pub(crate) fn parse_line(line: &[u8]) -> Result<CounterEntry<'_>, String> {
    if let Some(sample) = parse_written(line) {
        return Ok(CounterEntry::Line(sample));
    }
    match parse_json::<CounterLine>(line) {
        Ok(line) => Ok(CounterEntry::Line(line.into())),
        Err(message) => parse_json(line).map(CounterEntry::Header).map_err(|_| message),
    }
}

/// Parses a sample that is byte for byte as the writer leaves it: no blank, no escape, and only
/// whole numbers of at most 18 digits. The result is `None` for anything else, which the JSON
/// reader must then read.
fn parse_written(line: &[u8]) -> Option<Sample<'_>> {
    let line = str::from_utf8(line).ok()?;
    let (at_us, rest) = whole_number(line.strip_prefix("{\"at_us\":")?)?;
    let mut rest = rest.strip_prefix(",\"values\":{")?;
    // A key and its value seldom take less than 16 bytes.
    let mut values = Vec::with_capacity(rest.len() / 16 + 1);
    if rest == "}}" {
        return Some(Sample { at_us, values });
    }
    loop {
        rest = rest.strip_prefix('"')?;
        let end = rest.bytes().position(|byte| byte == b'"' || byte == b'\\' || byte < b' ')?;
        let (key, after) = rest.split_at(end);
        let (value, after) = whole_number(after.strip_prefix("\":")?)?;
        values.push((Cow::Borrowed(key), value));
        if after == "}}" {
            return Some(Sample { at_us, values });
        }
        rest = after.strip_prefix(',')?;
    }
}

/// Returns the number at the beginning, and the rest of the text. JSON has no leading zeros, and a
/// minus zero is no whole number.
fn whole_number(text: &str) -> Option<(i64, &str)> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_negative = digits.len() < text.len();
    let mut value = 0;
    let mut length = 0;
    for byte in digits.bytes().take_while(u8::is_ascii_digit) {
        length += 1;
        if length > 18 {
            return None;
        }
        value = value * 10 + i64::from(byte - b'0');
    }
    let is_plain = match digits.as_bytes().first()? {
        b'0' => length == 1 && !is_negative,
        _ => length > 0,
    };
    is_plain.then(|| (if is_negative { -value } else { value }, &digits[length..]))
}

/// Collects the lines of a file as they are read. A file without a header is refused, because its
/// figures mean nothing.
#[derive(Debug, Default)]
pub(crate) struct SeriesBuilder {
    header: Option<CounterHeader>,
    gathered: Gathered,
    fault: Option<&'static str>,
}

impl SeriesBuilder {
    pub(crate) fn take(&mut self, entry: CounterEntry<'_>) {
        match (entry, &self.header) {
            (CounterEntry::Header(header), None) => self.header = Some(header),
            (CounterEntry::Header(_), Some(_)) => self.fault = self.fault.or(Some("has a second header")),
            (CounterEntry::Line(_), None) => self.fault = self.fault.or(Some("does not begin with a header")),
            (CounterEntry::Line(line), Some(_)) => {
                let values = line.values.iter().map(|(key, value)| (key.as_ref(), *value));
                self.gathered.sample(line.at_us, values);
            }
        }
    }

    /// Returns the series of all samples, or `None` when a crash came before the header.
    pub(crate) fn series(self) -> Result<Option<CounterSeries>, &'static str> {
        match self.fault {
            Some(fault) => Err(fault),
            None => Ok(self.header.map(|header| self.gathered.series(header))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::Map;

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

    #[test]
    fn a_line_as_it_is_written_needs_no_json_reader() {
        let line = br#"{"at_us":-7,"values":{"Bytes_\u00e4":1,"b":2}}"#;
        assert_eq!(parse_written(line), None, "an escape");
        let line = "{\"at_us\":-7,\"values\":{\"Bytes ä\":-20,\"\":0}}";
        let sample = parse_written(line.as_bytes()).unwrap();
        assert_eq!(sample.at_us, -7);
        assert_eq!(sample.values, [("Bytes ä".into(), -20), ("".into(), 0)]);
        assert_eq!(parse_written(b"{\"at_us\":0,\"values\":{}}").unwrap().values, []);
    }

    #[test]
    fn a_line_that_is_cut_or_changed_is_reported_as_by_the_json_reader() {
        let line = "{\"at_us\":12,\"values\":{\"a\":1,\"b\":-2}}";
        let mut broken: Vec<Vec<u8>> = (0..line.len()).map(|end| line.as_bytes()[..end].to_vec()).collect();
        for (from, to) in [
            ("12", "012"),
            ("12", "-0"),
            ("12", "1.5"),
            ("12", "9223372036854775808"),
            ("12", ""),
            ("1,", "+1,"),
            ("1,", "1,,"),
            ("1,", "1"),
            ("-2", "--2"),
            ("-2", "-"),
            ("\"b\"", "b"),
            ("\"b\":", "\"b\""),
            ("}}", "}}}"),
            ("}}", "}} x"),
            ("}}", ",}}"),
            ("values", "value"),
            ("a", "\u{1}"),
        ] {
            assert!(line.contains(from), "{from}");
            broken.push(line.replacen(from, to, 1).into_bytes());
        }
        broken.push(line.replace('a', "\u{fffd}").bytes().filter(|byte| *byte != 0xbf).collect());
        for line in broken {
            let text = String::from_utf8_lossy(&line).into_owned();
            assert_eq!(parse_written(&line), None, "{text}");
            let expected = parse_json::<CounterLine>(&line).unwrap_err();
            assert_eq!(parse_line(&line).unwrap_err(), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_written_line_is_read_as_by_the_json_reader(
            at_us: i64,
            values in prop::collection::btree_map("[ -~äß\t\"]{0,12}", any::<i64>(), 0..6),
        ) {
            let line = serde_json::to_vec(&CounterLine { at_us, values }).unwrap();
            let CounterEntry::Line(sample) = parse_line(&line).unwrap() else { panic!("no header") };
            prop_assert_eq!(sample, Sample::from(parse_json::<CounterLine>(&line).unwrap()));
        }

        #[test]
        fn a_line_that_the_fast_reader_takes_is_read_alike_by_the_json_reader(
            line in "\\{\"at_us\":-?[0-9]{1,3},\"values\":\\{(\"[ab\\\\]{0,2}\":-?[0-9.e]{1,3}[, ]?){0,3}\\}\\}",
        ) {
            if let Some(sample) = parse_written(line.as_bytes()) {
                let json = parse_json::<CounterLine>(line.as_bytes()).unwrap();
                // When a key comes twice, the JSON reader keeps the last value.
                let values = sample.values.iter().map(|(key, value)| (key.to_string(), *value)).collect();
                prop_assert_eq!(CounterLine { at_us: sample.at_us, values }, json);
            }
        }
    }
}
