//! Reads and writes `histograms.hlog`, an HdrHistogram interval log of version 1.3 with one
//! histogram per line.
//!
//! The `hdrhistogram` crate has a log writer, but it prints times with three decimals only and
//! borrows its file for its whole life. This module therefore writes the lines itself, and tests
//! them with the crate's reader. Its own reader accepts only lines of exactly the form that it
//! writes.

use data_encoding::BASE64;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::Tag;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

use crate::Error;
use crate::sum::{Sum, big_endian};

/// The lines above the first histogram. Readers of the format skip them.
pub(crate) const HEADER: &str = "#[Histogram log format version 1.3]\n\
    #[Times are seconds since the step's barrier, values are microseconds]\n\
    \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";

/// Message for bytes that are not a histogram. It gives no details, because the bytes are not given
/// to hdrhistogram's own reader, which would reserve as much memory as a number within them says.
const MALFORMED: &str = "its bytes are no histogram as dbdyno writes it";

/// The moment from which an operation's time counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Clock {
    /// Time from when an operation was sent to when it was answered.
    Service,
    /// Time from when an operation was due to when it was answered.
    Response,
    /// Time from when an operation was due to when it was sent, only for operations that a free
    /// connection was waiting to send. It shows how late the load engine itself was.
    Lag,
}

impl Clock {
    pub const ALL: [Self; 3] = [Self::Service, Self::Response, Self::Lag];

    /// Returns `service`, `response` or `lag`, the last part of a histogram's tag.
    pub fn name(self) -> &'static str {
        match self {
            Clock::Service => "service",
            Clock::Response => "response",
            Clock::Lag => "lag",
        }
    }

    /// Returns the tag for one operation kind's histogram: `<kind>/service`, `<kind>/response` or
    /// `<kind>/lag`.
    pub fn tag(self, kind: &str) -> String {
        format!("{kind}/{}", self.name())
    }
}

/// Returns the kind under which the times of one statement within operations of `kind` are
/// recorded, such as `transaction:delete`.
pub fn statement_kind(kind: &str, statement: &str) -> String {
    format!("{kind}:{statement}")
}

/// Times of one operation kind over `[from_us, to_us)` since the barrier, in microseconds.
///
/// The histogram is kept in its compressed form (about 1 kB) and unpacked on demand (up to 190 kB),
/// because a run has one for each second, kind and clock of each step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistogramSpan {
    /// Operation kind: `insert`, `query`, ...
    pub kind: String,
    pub clock: Clock,
    pub from_us: u64,
    pub to_us: u64,
    compressed: Vec<u8>,
}

impl HistogramSpan {
    /// Returns a span from a histogram in memory. It fails when the histogram cannot be serialised,
    /// because a count is beyond 2^63.
    pub fn new(
        kind: &str,
        clock: Clock,
        from_us: u64,
        to_us: u64,
        histogram: &Histogram<u64>,
    ) -> Result<Self, Error> {
        let mut span = HistogramSpan { kind: kind.into(), clock, from_us, to_us, compressed: Vec::new() };
        span.compressed = compress(histogram).map_err(|message| span.error(message))?;
        Ok(span)
    }

    /// Returns the histogram's tag: `<kind>/service`, `<kind>/response` or `<kind>/lag`.
    pub fn tag(&self) -> String {
        self.clock.tag(&self.kind)
    }

    /// Returns the span's time and the stored form of its counts. Equal histograms have equal
    /// content.
    pub fn content(&self) -> (u64, u64, &[u8]) {
        (self.from_us, self.to_us, &self.compressed)
    }

    /// Returns the unpacked histogram. Its values are in microseconds, and its range grows with
    /// values that are added to it. The call fails when the bytes are not a histogram as dbdyno
    /// writes it.
    pub fn histogram(&self) -> Result<Histogram<u64>, Error> {
        let mut sum = Sum::default();
        sum.add(&self.compressed)
            .and_then(|()| sum.histogram())
            .ok_or_else(|| self.error(MALFORMED.to_owned()))
    }

    /// Returns the histograms of `spans` added up without loss. The values are in microseconds, and
    /// the range grows with values that are added to it. The result is `None` where there is no
    /// span. The call fails when the bytes of a span are not a histogram as dbdyno writes it.
    pub fn sum<'a>(spans: impl Iterator<Item = &'a Self>) -> Result<Option<Histogram<u64>>, Error> {
        let (mut sum, mut last) = (Sum::default(), None);
        for span in spans {
            sum.add(&span.compressed).ok_or_else(|| span.error(MALFORMED.to_owned()))?;
            last = Some(span);
        }
        let whole = last.map(|last| sum.histogram().ok_or_else(|| last.error(MALFORMED.to_owned())));
        whole.transpose()
    }

    fn error(&self, message: String) -> Error {
        Error::Histogram { tag: self.tag(), from_us: self.from_us, to_us: self.to_us, message }
    }
}

/// Returns the histogram's stored form. The stored range ends at the highest value, because a
/// reader clears and walks the whole range, and a range up to one hour takes 190 kB even for a
/// handful of values.
fn compress(histogram: &Histogram<u64>) -> Result<Vec<u8>, String> {
    let low = histogram.low();
    let high = histogram.max().max(low.saturating_mul(2));
    let mut short = Histogram::<u64>::new_with_bounds(low, high, histogram.sigfig())
        .map_err(|error| error.to_string())?;
    short.add(histogram).map_err(|error| error.to_string())?;
    let mut compressed = Vec::new();
    V2DeflateSerializer::new().serialize(&short, &mut compressed).map_err(|error| error.to_string())?;
    Ok(compressed)
}

/// Returns the tag's kind and clock, or `None` when it is not `<kind>/<clock>`.
fn parse_tag(tag: &str) -> Option<(&str, Clock)> {
    let (kind, clock) = Tag::new(tag)?.as_str().rsplit_once('/')?;
    let clock = Clock::ALL.into_iter().find(|known| known.name() == clock)?;
    (!kind.is_empty()).then_some((kind, clock))
}

/// Returns one line of the log, with its end. It fails with a message when the tag or the span
/// could not be read back.
pub(crate) fn format_line(
    tag: &str,
    from_us: u64,
    to_us: u64,
    histogram: &Histogram<u64>,
) -> Result<Vec<u8>, String> {
    let (kind, _) = parse_tag(tag).ok_or_else(|| {
        format!("histogram tag {tag:?} is not `<kind>/service`, `<kind>/response` or `<kind>/lag`")
    })?;
    if kind.contains(char::is_control) {
        return Err(format!("histogram tag {tag:?} holds a control character"));
    }
    let length_us = to_us
        .checked_sub(from_us)
        .ok_or_else(|| format!("histogram {tag} ends at {to_us} us, before it begins at {from_us} us"))?;
    let max_us = histogram.max();
    let histogram = BASE64.encode(&compress(histogram)?);
    let (from, length) = (seconds(from_us), seconds(length_us));
    Ok(format!("Tag={tag},{from},{length},{max_us}.000,{histogram}\n").into_bytes())
}

/// Writes a time in seconds and keeps every microsecond.
fn seconds(time_us: u64) -> String {
    format!("{}.{:06}", time_us / 1_000_000, time_us % 1_000_000)
}

/// Parses one line of the log without its end. The result is `None` for a comment or the legend,
/// and a message for anything broken.
pub(crate) fn parse_line(line: &[u8]) -> Result<Option<HistogramSpan>, String> {
    if line.starts_with(b"#") || line.starts_with(b"\"") {
        return Ok(None);
    }
    parse_written(line)
        .map(Some)
        .ok_or_else(|| "not a line of a histogram log as dbdyno writes it".to_owned())
}

/// Parses a line as [`format_line`] makes it. The result is `None` for anything else.
fn parse_written(line: &[u8]) -> Option<HistogramSpan> {
    let mut fields = line.strip_prefix(b"Tag=")?.splitn(5, |byte| *byte == b',');
    let (kind, clock) = parse_tag(str::from_utf8(fields.next()?).ok()?)?;
    let from_us = written_micros(fields.next()?)?;
    let to_us = from_us.checked_add(written_micros(fields.next()?)?)?;
    let max_us = fields.next()?.strip_suffix(b".000")?;
    if max_us.is_empty() || !max_us.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let compressed = BASE64.decode(fields.next()?).ok().filter(|compressed| is_whole(compressed))?;
    Some(HistogramSpan { kind: kind.into(), clock, from_us, to_us, compressed })
}

/// Parses seconds with six decimals into microseconds.
fn written_micros(text: &[u8]) -> Option<u64> {
    let (whole, decimals) = text.split_at_checked(text.len().checked_sub(7)?)?;
    let digits = |text: &[u8]| {
        let append =
            |number: u64, digit: &u8| digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0'));
        (1..=13).contains(&text.len()).then(|| text.iter().try_fold(0, append))?
    };
    Some(digits(whole)? * 1_000_000 + digits(decimals.strip_prefix(b".")?)?)
}

/// Returns whether the histogram has the length that its second four bytes state. A truncated
/// histogram is found in this way without unpacking it.
fn is_whole(compressed: &[u8]) -> bool {
    let Some((head, payload)) = compressed.split_at_checked(8) else { return false };
    payload.len() as u64 == big_endian(&head[4..])
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use proptest::prelude::*;

    use super::*;

    fn line(from_us: u64, length_us: u64, values: &[u64]) -> Vec<u8> {
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000, 3).unwrap();
        values.iter().for_each(|value| histogram.record(*value).unwrap());
        let mut line = format_line("a/b/lag", from_us, from_us + length_us, &histogram).unwrap();
        line.pop();
        line
    }

    #[test]
    fn a_line_that_is_cut_or_changed_is_refused() {
        let whole = line(1, 1_000_000, &[5, 900]);
        assert!(parse_written(&whole).is_some());
        for end in 0..whole.len() {
            assert_eq!(parse_written(&whole[..end]), None, "{end}");
        }
        let text = String::from_utf8(whole).unwrap();
        for (from, to) in [
            ("Tag=", ""),
            ("/lag", "/gap"),
            ("a/b", "a b"),
            ("0.000001", ".000001"),
            ("0.000001", "0.0000010"),
            ("0.000001", "0,000001"),
            ("1.000000", "1e0"),
            (".000,", ".001,"),
            ("HIST", "HI"),
            ("HIST", "HI\u{fffd}T"),
        ] {
            assert!(text.contains(from), "{from}");
            let changed = text.replacen(from, to, 1);
            assert!(parse_line(changed.as_bytes()).is_err(), "{changed}");
        }
    }

    proptest! {
        #[test]
        fn a_written_line_is_read_as_the_crates_reader_reads_it(
            from_us in 0..10_000_000_000_000_000_u64,
            length_us in 0..10_000_000_000_u64,
            values in prop::collection::vec(0..3_600_000_000_u64, 0..20),
        ) {
            let line = line(from_us, length_us, &values);
            let span = parse_line(&line).unwrap().unwrap();
            let log = [&line[..], b"\n"].concat();
            let Some(Ok(LogEntry::Interval(entry))) = IntervalLogIterator::new(&log).next() else { panic!() };
            prop_assert_eq!(entry.tag().map(|tag| tag.as_str()), Some("a/b/lag"));
            prop_assert_eq!(entry.start_timestamp().as_micros(), u128::from(span.from_us));
            prop_assert_eq!(entry.duration().as_micros(), u128::from(span.to_us - span.from_us));
            let compressed = BASE64.decode(entry.encoded_histogram().as_bytes());
            prop_assert_eq!(compressed, Ok(span.compressed));
        }
    }
}
