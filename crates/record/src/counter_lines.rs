//! Parses lines of `counters/<source>.jsonl`. A fast reader takes the exact form in which they are
//! written, and a JSON reader takes any other.

use std::borrow::Cow;

use crate::counters::{CounterSeries, Gathered};
use crate::lines::parse_json;
use crate::{CounterHeader, CounterLine};

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

/// Returns one line, or what is wrong with it and at which column.
pub(crate) fn parse_line(line: &[u8]) -> Result<CounterEntry<'_>, String> {
    if let Some(sample) = written(line) {
        return Ok(CounterEntry::Line(sample));
    }
    match parse_json::<CounterLine>(line) {
        Ok(line) => Ok(CounterEntry::Line(line.into())),
        Err(message) => parse_json(line).map(CounterEntry::Header).map_err(|_| message),
    }
}

/// Parses a sample that is byte for byte as the writer leaves it: no blank, no escape, and only whole
/// numbers of at most 18 digits. The result is `None` for anything else, and then the JSON reader must
/// say what it is.
fn written(line: &[u8]) -> Option<Sample<'_>> {
    let line = str::from_utf8(line).ok()?;
    let (at_us, rest) = whole_number(line.strip_prefix("{\"at_us\":")?)?;
    let mut rest = rest.strip_prefix(",\"values\":{")?;
    // A name and a number are seldom shorter.
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

/// Returns the number at the beginning, and what follows it. JSON has no leading zeros, and a minus
/// zero is no whole number.
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

/// Collects the lines of a file as they come in. Without a header the figures mean nothing.
#[derive(Debug, Default)]
pub(crate) struct Together {
    header: Option<CounterHeader>,
    gathered: Gathered,
    fault: Option<&'static str>,
}

impl Together {
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

    /// Returns all lines together, or `None` when a crash came before the header.
    pub(crate) fn series(self) -> Result<Option<CounterSeries>, &'static str> {
        match self.fault {
            Some(fault) => Err(fault),
            None => Ok(self.header.map(|header| self.gathered.series(header))),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_as_it_is_written_needs_no_reader_of_json() {
        let line = br#"{"at_us":-7,"values":{"Bytes_\u00e4":1,"b":2}}"#;
        assert_eq!(written(line), None, "an escape");
        let line = "{\"at_us\":-7,\"values\":{\"Bytes ä\":-20,\"\":0}}";
        let sample = written(line.as_bytes()).unwrap();
        assert_eq!(sample.at_us, -7);
        assert_eq!(sample.values, [("Bytes ä".into(), -20), ("".into(), 0)]);
        assert_eq!(written(b"{\"at_us\":0,\"values\":{}}").unwrap().values, []);
    }

    #[test]
    fn a_line_that_is_cut_or_changed_is_reported_as_by_the_reader_of_json() {
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
            assert_eq!(written(&line), None, "{text}");
            let expected = parse_json::<CounterLine>(&line).unwrap_err();
            assert_eq!(parse_line(&line).unwrap_err(), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_by_the_reader_of_json(
            at_us: i64,
            values in prop::collection::btree_map("[ -~äß\t\"]{0,12}", any::<i64>(), 0..6),
        ) {
            let line = serde_json::to_vec(&CounterLine { at_us, values }).unwrap();
            let CounterEntry::Line(sample) = parse_line(&line).unwrap() else { panic!("no header") };
            prop_assert_eq!(sample, Sample::from(parse_json::<CounterLine>(&line).unwrap()));
        }

        #[test]
        fn what_the_quick_reader_takes_is_the_same_to_the_reader_of_json(
            line in "\\{\"at_us\":-?[0-9]{1,3},\"values\":\\{(\"[ab\\\\]{0,2}\":-?[0-9.e]{1,3}[, ]?){0,3}\\}\\}",
        ) {
            if let Some(sample) = written(line.as_bytes()) {
                let json = parse_json::<CounterLine>(line.as_bytes()).unwrap();
                // When a key comes twice, the JSON reader keeps the last value.
                let values = sample.values.iter().map(|(key, value)| (key.to_string(), *value)).collect();
                prop_assert_eq!(CounterLine { at_us: sample.at_us, values }, json);
            }
        }
    }
}
